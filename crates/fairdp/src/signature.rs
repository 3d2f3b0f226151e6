//! Signatures of releases: Ed25519, in the files of [minisign](https://jedisct1.github.io/minisign/).
//!
//! What is signed is `statement.json`, which has the digests of all other files. Digests and seal
//! find a change by somebody who did not renew them; a signature also finds one by somebody who did,
//! as long as the reader has the author's public key from elsewhere.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use minisign::{KeyPair, PublicKey, PublicKeyBox, SecretKey, SecretKeyBox, SignatureBox};

use crate::error::{FairdpError, Result};
use crate::input;
use crate::output::{self, Readers};
use crate::release::STATEMENT;
use crate::seal::sha256;
use crate::unfinished::release_of;
use crate::verify::verify;

/// The one file of a release without an entry in the statement, which it signs.
pub(crate) const SIGNATURE: &str = "statement.json.minisig";
const COMMENT: &str = "signature by fairdp";

/// Whether a release is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signature {
    /// There is no signature.
    None,
    /// There is one, and no public key was given to compare it with: it says nothing.
    NotCompared,
    /// By the owner of the public key that was given, whose minisign ID this is.
    By(String),
}

/// Makes a pair of keys: `OUT.key`, which signs and is its owner's alone, and `OUT.pub`, which
/// compares. Both are files of minisign. The secret key has no password; one that `minisign -G` made
/// has, and signs too.
///
/// # Errors
/// [`FairdpError::Folder`] for a file that is there, which is not replaced.
pub fn generate_key(out: &Path) -> Result<[PathBuf; 2]> {
    let named = |ending: &str| {
        let mut name = out.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let paths = [named(".key"), named(".pub")];
    if let Some(taken) = paths.iter().find(|path| path.exists()) {
        return Err(FairdpError::folder(taken, "is there", "keys are not replaced: give another name"));
    }
    let pair = KeyPair::generate_unencrypted_keypair().map_err(|error| FairdpError::system("random numbers", error))?;
    let secret = pair.sk.to_box(Some("fairdp secret key, without a password")).map_err(|e| broken(&paths[0], &e))?;
    let public = pair.pk.to_box().map_err(|e| broken(&paths[1], &e))?;
    output::write(&paths[0], secret.into_string().as_bytes(), Readers::Owner)?;
    output::write(&paths[1], public.into_string().as_bytes(), Readers::Default)?;
    Ok(paths)
}

/// Signs a release that holds, in place of a signature that it has. Returns the file.
///
/// # Errors
/// Those of [`verify`]; [`FairdpError::File`] for a key that is damaged or has another password.
pub fn sign(folder: &Path, key: &Path) -> Result<PathBuf> {
    verify(folder)?;
    let key = secret(key)?;
    let release = release_of(folder)?;
    let statement = input::bytes(&release.join(STATEMENT))?;
    let trusted = format!("fairdp release, sha256 of {STATEMENT}: {}", sha256(&statement));
    let place = release.join(SIGNATURE);
    let signed = minisign::sign(None, &key, Cursor::new(&statement), Some(&trusted), Some(COMMENT));
    let signed = signed.map_err(|error| broken(&place, &error))?;
    output::write(&place, signed.into_string().as_bytes(), Readers::Default)?;
    Ok(place)
}

/// Compares the signature of a statement's bytes, if a key is given.
///
/// # Errors
/// [`FairdpError::File`] for a signature that is missing or not of these bytes and this key; for a
/// file that is no key, too.
pub(crate) fn compare(release: &Path, statement: &[u8], key: Option<&PublicKey>) -> Result<Signature> {
    let place = release.join(SIGNATURE);
    let Some(key) = key else {
        return Ok(if place.exists() { Signature::NotCompared } else { Signature::None });
    };
    if !place.exists() {
        return Err(FairdpError::file(&place, "is missing: nobody has signed the release"));
    }
    let signature = SignatureBox::from_string(&input::text(&place)?).map_err(|error| broken(&place, &error))?;
    let (found, expected) = (id(signature.keynum()), id(key.keynum()));
    if found != expected {
        return Err(FairdpError::file(&place, format!("is by the key {found}, and not by {expected}")));
    }
    minisign::verify(key, &signature, Cursor::new(statement), true, false, false)
        .map_err(|_| FairdpError::file(&place, format!("is not the signature of {STATEMENT} by the key {expected}")))?;
    Ok(Signature::By(expected))
}

/// A public key of a file.
pub(crate) fn public(path: &Path) -> Result<PublicKey> {
    let text = input::text(path)?;
    let parsed = PublicKeyBox::from_string(&text).and_then(PublicKeyBox::into_public_key);
    parsed.map_err(|error| FairdpError::file(path, format!("is no public key of minisign: {error}")))
}

/// A secret key of a file; one with a password is asked for on the terminal.
fn secret(path: &Path) -> Result<SecretKey> {
    let text = input::text(path)?;
    let of = |text: &str| SecretKeyBox::from_string(text);
    if let Ok(key) = of(&text).and_then(SecretKeyBox::into_unencrypted_secret_key) {
        return Ok(key);
    }
    let asked = of(&text).and_then(|key| key.into_secret_key(None));
    asked.map_err(|error| FairdpError::file(path, format!("is no secret key of minisign that can be used: {error}")))
}

/// The number of a key, as minisign prints it.
fn id(keynum: &[u8]) -> String {
    hex::encode_upper(keynum.iter().rev().copied().collect::<Vec<u8>>())
}

fn broken(path: &Path, error: &minisign::PError) -> FairdpError {
    FairdpError::file(path, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATEMENT_BYTES: &[u8] = b"{}\n";

    /// The public key and the signature of the text `test` in the documentation of `minisign-verify`.
    #[test]
    fn a_key_of_another_program_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.pub");
        let text = "untrusted comment: x\nRWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\n";
        std::fs::write(&path, text).unwrap();
        assert_eq!(id(public(&path).unwrap().keynum()), "E7620F1842B4E81F");
        let signature = "untrusted comment: signature from minisign secret key\n\
            RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\n\
            trusted comment: timestamp:1556193335\tfile:test\n\
            y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==\n";
        std::fs::write(folder.path().join(SIGNATURE), signature).unwrap();
        let key = public(&path).unwrap();
        assert!(compare(folder.path(), b"test", Some(&key)).is_ok());
        assert!(compare(folder.path(), b"tent", Some(&key)).is_err());
    }

    #[test]
    fn a_signature_is_of_one_key_and_one_text() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let [secret_path, public_path] = generate_key(&here.join("a")).unwrap();
        let [_, other] = generate_key(&here.join("b")).unwrap();
        assert!(generate_key(&here.join("a")).is_err());
        let key = secret(&secret_path).unwrap();
        let signed = minisign::sign(None, &key, Cursor::new(STATEMENT_BYTES), None, None).unwrap();
        std::fs::write(here.join(SIGNATURE), signed.into_string()).unwrap();
        let public_key = public(&public_path).unwrap();
        assert!(matches!(compare(here, STATEMENT_BYTES, Some(&public_key)), Ok(Signature::By(_))));
        assert_eq!(compare(here, STATEMENT_BYTES, None).unwrap(), Signature::NotCompared);
        let changed = compare(here, b"{ }\n", Some(&public_key)).unwrap_err().to_string();
        assert!(changed.contains("is not the signature of statement.json"), "{changed}");
        let wrong = compare(here, STATEMENT_BYTES, Some(&public(&other).unwrap())).unwrap_err().to_string();
        assert!(wrong.contains("is by the key"), "{wrong}");
        assert!(public(&secret_path).is_err() && secret(&public_path).is_err());
    }
}
