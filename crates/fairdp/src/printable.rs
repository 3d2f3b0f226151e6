//! Texts of tables and releases on their way to a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A text that cannot command a terminal: control characters, which move the cursor, change colours
/// or begin a line, and invisible letters, which turn the direction of a line around or make two
/// names look alike, are written as `\u{1b}`.
///
/// ```
/// assert_eq!(fairdp::printable("é 5 %"), "é 5 %");
/// assert_eq!(fairdp::printable("a\u{1b}[31m\n\u{202e}b"), "a\\u{1b}[31m\\u{a}\\u{202e}b");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_hidden(letter) { escaped.extend(letter.escape_unicode()) } else { escaped.push(letter) }
    }
    Cow::Owned(escaped)
}

/// A JSON document with such letters as escapes of JSON, line breaks between its values aside: the
/// same document.
pub fn printable_json(document: &str) -> Cow<'_, str> {
    let is_hidden = |letter: char| letter != '\n' && is_hidden(letter);
    if !document.contains(is_hidden) {
        return Cow::Borrowed(document);
    }
    let mut escaped = String::with_capacity(document.len());
    for letter in document.chars() {
        if is_hidden(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(letter);
        }
    }
    Cow::Owned(escaped)
}

/// Controls, marks of direction, separators of lines, and letters that show nothing.
pub(crate) fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{70f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Three decimals, upwards.
pub(crate) fn rounded_up(epsilon: f64) -> String {
    dp_accounting::decimal(epsilon, 3, dp_accounting::Rounding::Up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_is_left() {
        let all = ('\0'..=char::MAX).collect::<String>();
        assert!(!printable(&all).contains(is_hidden));
        for letter in
            ['\u{7}', '\u{1b}', '\u{7f}', '\u{9b}', '\u{200f}', '\u{202e}', '\u{2066}', '\u{2028}', '\u{e0041}']
        {
            assert!(is_hidden(letter), "{letter:?}");
        }
        for letter in [' ', 'a', 'é', 'ß', 'ж', '中', 'ع', '×', 'ε', '🙂'] {
            assert!(!is_hidden(letter), "{letter:?}");
        }
    }

    #[test]
    fn a_document_stays_the_same() {
        let all = ('\0'..=char::MAX).filter(|letter| is_hidden(*letter)).collect::<String>();
        for text in [&all, "\"\\\u{1b}\n", "a\u{202e}\\", "🙂\u{e0041}\u{9b}"] {
            let value = serde_json::json!({ text: [text, "plain"] });
            let document = serde_json::to_string_pretty(&value).unwrap();
            let shown = printable_json(&document);
            assert!(!shown.contains(|letter| letter != '\n' && is_hidden(letter)));
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }
}
