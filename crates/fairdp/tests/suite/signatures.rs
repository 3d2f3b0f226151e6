//! Who made a release.

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::program::{declared, done, refused};

const SEAL: &str = ",\n  \"seal\": \"";

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Changes a figure, and renews every digest and the seal as its author would.
fn forge(release: &Path) {
    let place = release.join("fairness.json");
    let before = fs::read_to_string(&place).unwrap();
    let (head, tail) = before.split_once("\"value\": 0.").unwrap();
    let digit = if tail.starts_with('9') { "1" } else { "9" };
    let after = format!("{head}\"value\": 0.{digit}{}", &tail[1..]);
    fs::write(&place, &after).unwrap();
    let place = release.join("statement.json");
    let text = fs::read_to_string(&place).unwrap();
    let body = text.rsplit_once(SEAL).unwrap().0.replace(&sha256(before.as_bytes()), &sha256(after.as_bytes()));
    let sealed = format!("{body}{SEAL}{}\"\n}}\n", sha256(body.as_bytes()));
    assert_ne!(sealed, text);
    fs::write(&place, sealed).unwrap();
}

#[test]
fn a_signature_tells_the_author() {
    let folder = declared(3_000, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "-q"]);
    let said = done(here, &["verify", "run"]);
    assert!(said.contains("not signed: digests detect changes, not authors"), "{said}");
    done(here, &["keygen", "--out", "office"]);
    done(here, &["keygen", "--out", "other"]);
    assert_eq!(refused(here, &["keygen", "--out", "office"]).0, 3);
    #[cfg(unix)]
    {
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(here.join("office.key")).unwrap().permissions());
        assert_eq!(mode & 0o077, 0);
    }
    let author = ["verify", "run", "--public-key", "office.pub"];
    let (code, message) = refused(here, &author);
    assert!(code == 4 && message.contains("is missing: nobody has signed the release"), "{code} {message}");
    done(here, &["sign", "run", "--key", "office.key"]);
    let said = done(here, &author);
    assert!(said.contains("signed by the owner of the key "), "{said}");
    let said = done(here, &["verify", "run"]);
    assert!(said.contains("without --public-key nothing says by whom"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&done(here, &[&author[..], &["--json"]].concat())).unwrap();
    assert!(json["signed"] == true && json["signed_by"].as_str().is_some_and(|key| key.len() == 16), "{json}");
    // The release alone, and what follows from it.
    done(here, &["verify", "run/release", "--public-key", "office.pub"]);
    done(here, &["export", "registry", "run"]);

    let (code, message) = refused(here, &["verify", "run", "--public-key", "other.pub"]);
    assert!(code == 4 && message.contains("statement.json.minisig`: is by the key "), "{code} {message}");
    let (code, message) = refused(here, &["verify", "run", "--public-key", "office.key"]);
    assert!(code == 1 && message.contains("is no public key"), "{code} {message}");

    // A figure that was changed with its digests and the seal holds by the digests alone.
    fs::rename(here.join("run/private"), here.join("private")).unwrap();
    forge(&here.join("run/release"));
    done(here, &["verify", "run/release"]);
    let (code, message) = refused(here, &["verify", "run/release", "--public-key", "office.pub"]);
    assert!(code == 4 && message.contains("is not the signature of statement.json by the key"), "{code} {message}");
    // The forger's own signature is another one's.
    done(here, &["sign", "run/release", "--key", "other.key"]);
    assert_eq!(refused(here, &["verify", "run/release", "--public-key", "office.pub"]).0, 4);
    // A changed byte of the signature.
    let place = here.join("run/release/statement.json.minisig");
    let text = fs::read_to_string(&place).unwrap();
    fs::write(&place, text.replacen("fairdp release", "fairer release", 1)).unwrap();
    assert_eq!(refused(here, &["verify", "run/release", "--public-key", "other.pub"]).0, 4);
    // A release that does not hold is not signed.
    fs::write(here.join("run/release/card.html"), "x").unwrap();
    assert_eq!(refused(here, &["sign", "run/release", "--key", "office.key"]).0, 4);
}
