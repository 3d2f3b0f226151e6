//! Images as texts of a row: the path of a file, or what a table itself holds of it.

/// Before the bytes of a PNG or JPEG file, in hexadecimal digits.
pub(crate) const BYTES: &str = "bytes:";
/// Before rows, columns and channels, such as `28x28x1:`, and the pixels in hexadecimal digits.
pub(crate) const PIXELS: &str = "pixels:";

/// Whether a text looks like an image: by its prefix, or its ending.
pub(crate) fn is_image(text: &str) -> bool {
    let ending = text.rsplit_once('.').map(|(_, ending)| ending);
    let is_path =
        || ending.is_some_and(|ending| ["png", "jpg", "jpeg"].iter().any(|known| ending.eq_ignore_ascii_case(known)));
    text.starts_with(BYTES) || text.starts_with(PIXELS) || is_path()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_by_their_texts() {
        assert!(is_image("a.JPG") && is_image("bytes:00") && is_image("pixels:1x1x1:00"));
        assert!(!is_image("jpg") && !is_image("a.gif") && !is_image(""));
    }
}
