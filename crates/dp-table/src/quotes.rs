//! Quotes where RFC 4180 has them: around a whole field, and doubled inside.

use memchr::{memchr, memchr_iter};

/// The mark of byte order at the beginning of a file, which is no text.
const MARK: [u8; 3] = *b"\xef\xbb\xbf";

/// Follows the quotes of a text from its beginning.
///
/// Where every quote is around a field or doubled, a record has an even number of them. A record
/// with a stray one then leaves all behind it on the wrong side of their quotes, up to the end of
/// the file at the latest: it cannot hide other records unseen.
pub(crate) struct Quotes {
    delimiter: u8,
    quote: u8,
    state: State,
    /// Bytes of the mark of byte order that were passed.
    marked: usize,
    /// Line breaks that were passed, and those before the quote that was opened last.
    lines: u64,
    lines_at_quote: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// At the beginning of a field.
    Begin,
    /// In a field without quotes.
    Bare,
    /// In a field with quotes.
    Quoted,
    /// Behind a quote in such a field: it is doubled, or the field ends.
    Closing,
    /// Blanks behind a field with quotes.
    Closed,
}

impl Quotes {
    pub(crate) fn new(delimiter: u8, quote: u8) -> Self {
        Self { delimiter, quote, state: State::Begin, marked: 0, lines: 0, lines_at_quote: 0 }
    }

    /// Whether the text may not end here.
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Quoted
    }

    /// Line breaks before the place to look at: where the quoted field begins that is not over, or
    /// where the text was passed up to.
    pub(crate) fn lines(&self) -> u64 {
        match self.state {
            State::Quoted | State::Closing | State::Closed => self.lines_at_quote,
            State::Begin | State::Bare => self.lines,
        }
    }

    /// Passes over the next bytes: up to a quote that is elsewhere, whose place it returns.
    pub(crate) fn pass(&mut self, text: &[u8]) -> Option<usize> {
        let mut at = 0;
        while self.marked < MARK.len() && text.get(at) == Some(&MARK[self.marked]) {
            (self.marked, at) = (self.marked + 1, at + 1);
        }
        if at < text.len() {
            self.marked = MARK.len();
        }
        while at < text.len() {
            let found = match self.state {
                State::Closing | State::Closed => Some(at),
                _ => memchr(self.quote, &text[at..]).map(|skipped| at + skipped),
            };
            let end = found.unwrap_or(text.len());
            if self.state != State::Quoted
                && let Some(&last) = text[at..end].last()
            {
                self.state = if self.ends_field(last) { State::Begin } else { State::Bare };
            }
            self.lines += memchr_iter(b'\n', &text[at..end]).count() as u64;
            let Some(place) = found else { break };
            let byte = text[place];
            self.lines += u64::from(byte == b'\n');
            if self.state == State::Begin {
                self.lines_at_quote = self.lines;
            }
            self.state = match self.state {
                State::Begin | State::Closing if byte == self.quote => State::Quoted,
                State::Quoted => State::Closing,
                State::Closing | State::Closed if self.ends_field(byte) => State::Begin,
                State::Closing | State::Closed if b" \t\r".contains(&byte) => State::Closed,
                _ => return Some(place),
            };
            at = place + 1;
        }
        None
    }

    fn ends_field(&self, byte: u8) -> bool {
        byte == self.delimiter || byte == b'\n'
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_elsewhere_are_found_in_whatever_pieces_a_text_comes() {
        let texts = [
            ("a,\"b\"\n\"c, \"\"d\"\"\ne\" \r\n\"\",\n", None),
            ("\u{feff}\"a\",b\n", None),
            ("a,5\" pipe\n", Some(3)),
            ("a, \"b\"\n", Some(3)),
            ("30,\"a,1\n31,b,0\n32,\"c\",1\n", Some(19)),
            ("\"a\" b\n", Some(4)),
            ("\"a\" \"\n", Some(4)),
            ("\u{feff}\u{feff}\"a\"", Some(6)),
        ];
        for (text, place) in texts {
            for size in 1..=text.len() {
                let mut quotes = Quotes::new(b',', b'"');
                let mut pieces = text.as_bytes().chunks(size).enumerate();
                let found = pieces.find_map(|(piece, bytes)| Some(piece * size + quotes.pass(bytes)?));
                assert_eq!(found, place, "{text:?} by {size}");
                assert!(found.is_some() || !quotes.is_open());
            }
        }
        let mut quotes = Quotes::new(b';', b'\'');
        assert_eq!((quotes.pass(b"a\n\n'b\n\n"), quotes.is_open(), quotes.lines()), (None, true, 2));
        let mut quotes = Quotes::new(b';', b'"');
        assert_eq!((quotes.pass(b"a;\"\n\"\n\nb\"\n"), quotes.lines()), (Some(8), 3));
    }
}
