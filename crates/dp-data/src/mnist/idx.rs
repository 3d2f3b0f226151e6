//! The IDX format of MNIST: a magic number, big-endian sizes, unsigned bytes.

use std::path::Path;

use crate::error::DataError;

/// Reads the bytes of an array with `N` sizes.
///
/// **Errors.** [`DataError::EmptyFile`]; [`DataError::MalformedBinary`] for another magic number,
/// or sizes that do not match the length.
pub(super) fn parse<'a, const N: usize>(contents: &'a [u8], path: &Path) -> Result<([usize; N], &'a [u8]), DataError> {
    if contents.is_empty() {
        return Err(DataError::EmptyFile { path: path.into() });
    }
    let malformed = |offset: usize, reason: String| DataError::MalformedBinary { path: path.into(), offset, reason };
    let (words, _) = contents.as_chunks::<4>();
    // Two zero bytes, the type (8: unsigned byte), the number of sizes.
    if words.first() != Some(&[0, 0, 8, N as u8]) {
        return Err(malformed(0, format!("not an IDX file of unsigned bytes with {N} sizes")));
    }
    let body = 4 * (N + 1);
    if contents.len() < body {
        return Err(malformed(contents.len(), format!("it ends within its {N} sizes")));
    }
    let mut sizes = [0; N];
    for (size, word) in sizes.iter_mut().zip(&words[1..]) {
        *size = u32::from_be_bytes(*word) as usize;
    }
    let expected = sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    let found = contents.len() - body;
    if expected != Some(found) {
        return Err(malformed(body, format!("{found} bytes follow, the sizes {sizes:?} need another number")));
    }
    Ok((sizes, &contents[body..]))
}

/// The content of a file with these sizes and bytes.
pub(super) fn write<const N: usize>(sizes: [usize; N], bytes: &[u8]) -> Vec<u8> {
    let mut contents = vec![0, 0, 8, N as u8];
    contents.extend(sizes.iter().flat_map(|&size| (size as u32).to_be_bytes()));
    contents.extend(bytes);
    contents
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error<const N: usize>(contents: &[u8]) -> String {
        parse::<N>(contents, Path::new("labels")).unwrap_err().to_string()
    }

    #[test]
    fn by_hand() {
        let (sizes, body) = parse::<1>(&[0, 0, 8, 1, 0, 0, 0, 2, 7, 9], Path::new("labels")).unwrap();
        assert_eq!((sizes, body), ([2], &[7, 9][..]));
        assert_eq!(write([2], &[7, 9]), [0, 0, 8, 1, 0, 0, 0, 2, 7, 9]);
        insta::assert_snapshot!(error::<1>(&[]), @"`labels` has no records");
        insta::assert_snapshot!(
            error::<3>(&[0, 0, 8, 1, 0, 0, 0, 2, 7, 9]),
            @"`labels`, byte 0: not an IDX file of unsigned bytes with 3 sizes"
        );
        insta::assert_snapshot!(error::<1>(&[0, 0, 8, 1, 0, 0]), @"`labels`, byte 6: it ends within its 1 sizes");
        insta::assert_snapshot!(
            error::<1>(&[0, 0, 8, 1, 0, 0, 0, 3, 7, 9]),
            @"`labels`, byte 8: 2 bytes follow, the sizes [3] need another number"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), sizes: [u32; 3]) {
            let _ = parse::<1>(&bytes, Path::new("x"));
            let mut contents = vec![0, 0, 8, 3];
            contents.extend(sizes.iter().flat_map(|size| size.to_be_bytes()));
            contents.extend(bytes);
            let _ = parse::<3>(&contents, Path::new("x"));
        }
    }
}
