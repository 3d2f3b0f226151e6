//! Symbols with a raised index: `R^dir` in plain text, R with a small "dir" where that can be set.

/// Plain text, or an index that was marked by `^`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span<'a> {
    Plain(&'a str),
    Raised(&'a str),
}

/// The text in spans. An index is what letters and stars follow a `^` behind a letter; any other
/// `^` is text.
pub(crate) fn spans(text: &str) -> Vec<Span<'_>> {
    let mut spans = Vec::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(at) = rest[from..].find('^').map(|at| from + at) {
        let index = &rest[at + 1..];
        let length = index.find(|c: char| !(c.is_alphabetic() || c == '*')).unwrap_or(index.len());
        if length > 0 && rest[..at].ends_with(char::is_alphabetic) {
            spans.push(Span::Plain(&rest[..at]));
            spans.push(Span::Raised(&index[..length]));
            rest = &index[length..];
            from = 0;
        } else {
            from = at + 1;
        }
    }
    if !rest.is_empty() {
        spans.push(Span::Plain(rest));
    }
    spans
}

/// The text in a markup that has `<sup>`, what is between escaped by `escape`.
pub(crate) fn superscript(text: &str, escape: impl Fn(&str) -> String) -> String {
    let set = |span| match span {
        Span::Plain(plain) => escape(plain),
        Span::Raised(index) => format!("<sup>{}</sup>", escape(index)),
    };
    spans(text).into_iter().map(set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_behind_a_letter() {
        use Span::{Plain, Raised};
        assert_eq!(
            spans("R^mag* + R^dir = 2^k ^x R^"),
            [Plain("R"), Raised("mag*"), Plain(" + R"), Raised("dir"), Plain(" = 2^k ^x R^")]
        );
        assert_eq!(spans("plain"), [Plain("plain")]);
        assert!(spans("").is_empty());
    }
}
