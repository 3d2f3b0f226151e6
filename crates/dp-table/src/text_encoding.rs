//! Texts that are not UTF-8, decoded while they are read.

use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Bytes that are decoded at a time.
const PIECE: usize = 1 << 16;

/// The encoding of a text. UTF-8 unless declared; then a text that begins with a mark of UTF-16 is
/// read as that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextEncoding(&'static Encoding);

impl Default for TextEncoding {
    fn default() -> Self {
        Self(UTF_8)
    }
}

impl TextEncoding {
    /// An encoding by one of the labels of the WHATWG, such as `latin1`, `windows-1252`, `utf-16le`
    /// or `shift_jis`; `None` for others.
    ///
    /// ```
    /// use dp_table::TextEncoding;
    /// assert_eq!(TextEncoding::of("Latin1").unwrap().name(), "windows-1252");
    /// assert_eq!(TextEncoding::of("morse"), None);
    /// ```
    pub fn of(label: &str) -> Option<Self> {
        Encoding::for_label_no_replacement(label.as_bytes()).map(Self)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The encoding of a text that begins with these bytes.
    pub(crate) fn of_text(self, begin: &[u8]) -> Self {
        match begin {
            [0xff, 0xfe, ..] if self.is_utf8() => Self(UTF_16LE),
            [0xfe, 0xff, ..] if self.is_utf8() => Self(UTF_16BE),
            _ => self,
        }
    }

    pub(crate) fn is_utf8(self) -> bool {
        self.0 == UTF_8
    }

    /// The text as UTF-8. Bytes that are no text become a byte that no UTF-8 text has, so that their
    /// row is refused as any other that is no text.
    pub(crate) fn decoded<R: Read>(self, text: R) -> Decoded<R> {
        Decoded {
            text,
            decoder: self.0.new_decoder_with_bom_removal(),
            given: vec![0; PIECE],
            unread: 0..0,
            is_at_end: false,
            is_done: false,
            made: vec![0; 2 * PIECE],
            left: 0..0,
        }
    }
}

/// A text in UTF-8, made of one in another encoding.
pub(crate) struct Decoded<R> {
    text: R,
    decoder: Decoder,
    given: Vec<u8>,
    unread: std::ops::Range<usize>,
    is_at_end: bool,
    /// Whether the decoder has finished: it must not be asked again.
    is_done: bool,
    made: Vec<u8>,
    left: std::ops::Range<usize>,
}

impl<R: Read> Decoded<R> {
    /// Decodes until there is something to hand out; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        while !self.is_done {
            if self.unread.is_empty() && !self.is_at_end {
                let n = self.text.read(&mut self.given)?;
                (self.unread, self.is_at_end) = (0..n, n == 0);
            }
            // Room for the mark of bytes that are no text.
            let room = self.made.len() - 1;
            let (result, n_read, n_made) = self.decoder.decode_to_utf8_without_replacement(
                &self.given[self.unread.clone()],
                &mut self.made[..room],
                self.is_at_end,
            );
            self.unread.start += n_read;
            self.left = 0..n_made;
            if let DecoderResult::Malformed(..) = result {
                self.made[n_made] = 0xff;
                self.left.end += 1;
            }
            self.is_done = self.is_at_end && result == DecoderResult::InputEmpty;
            if !self.left.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.left.is_empty() && !self.fill()? {
            return Ok(0);
        }
        let n = buffer.len().min(self.left.len());
        buffer[..n].copy_from_slice(&self.made[self.left.start..self.left.start + n]);
        self.left.start += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(label: &str, bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        TextEncoding::of(label).unwrap().of_text(bytes).decoded(bytes).read_to_end(&mut text).unwrap();
        text
    }

    #[test]
    fn texts_by_hand() {
        assert_eq!(decoded("latin1", b"gro\xdf \x80"), "groß €".as_bytes());
        let utf16: Vec<u8> = "\u{feff}groß 😀".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decoded("utf-8", &utf16), "groß 😀".as_bytes());
        assert_eq!(decoded("utf-16le", &utf16[2..]), "groß 😀".as_bytes());
        let big: Vec<u8> = "\u{feff}a".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decoded("utf-8", &big), b"a");
        // Half of a pair, and half of a letter.
        assert_eq!(decoded("utf-16le", b"a\0\x00\xd8b\0c"), b"a\xffb\xff");
        let long = "ß".repeat(100_000);
        let bytes: Vec<u8> = long.chars().map(|letter| letter as u8).collect();
        assert_eq!(decoded("latin1", &bytes), long.as_bytes());
        // The end is the end, however often it is asked for.
        let mut text = TextEncoding::of("latin1").unwrap().decoded(&b"a"[..]);
        assert_eq!([0; 3].map(|_| text.read(&mut [0; 4]).unwrap()), [1, 0, 0]);
    }
}
