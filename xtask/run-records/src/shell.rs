//! Words and paths as a shell reads them back, on one line whatever they hold.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

/// The arguments of this command; what is not UTF-8 in them is replaced.
pub fn arguments() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The arguments of this command without the places on this machine (`--out`, `--records`, `--from`,
/// `--data-dir`, `--cache-dir`): what a record that others read tells of them.
pub fn portable_arguments() -> Vec<String> {
    without_places(arguments())
}

fn without_places(words: Vec<String>) -> Vec<String> {
    const PLACES: [&str; 5] = ["--out", "--records", "--from", "--data-dir", "--cache-dir"];
    let mut kept = Vec::with_capacity(words.len());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if PLACES.contains(&word.as_str()) {
            words.next();
        } else if !PLACES.iter().any(|place| word.strip_prefix(place).is_some_and(|rest| rest.starts_with('='))) {
            kept.push(word);
        }
    }
    kept
}

/// A word, quoted where the shell would see more than a word in it.
pub fn quote(word: &OsStr) -> String {
    let bytes = word.as_encoded_bytes();
    if let Ok(text) = std::str::from_utf8(bytes) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            return text.to_owned();
        }
        if !text.chars().any(breaks_lines) {
            return format!("'{}'", text.replace('\'', r"'\''"));
        }
    }
    let mut quoted = "$'".to_owned();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => quoted.push_str("\\n"),
                '\'' | '\\' => quoted.extend(['\\', c]),
                c if breaks_lines(c) => escape(&mut quoted, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => quoted.push(c),
            }
        }
        escape(&mut quoted, chunk.invalid());
    }
    quoted.push('\'');
    quoted
}

fn escape(text: &mut String, bytes: &[u8]) {
    // Three octal digits end by themselves; a digit may follow.
    text.extend(bytes.iter().map(|byte| format!("\\{byte:03o}")));
}

fn breaks_lines(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// A path as a word.
pub fn path(path: &Path) -> String {
    quote(path.as_os_str())
}

/// A command, word by word; the first may be several words.
pub fn line(words: &[String]) -> String {
    let quoted = words.iter().enumerate().map(|(position, word)| {
        if position == 0 { Cow::Borrowed(word.as_str()) } else { Cow::Owned(quote(OsStr::new(word))) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word_on_one_line() {
        let quoted = |word: &str| quote(OsStr::new(word));
        assert_eq!(quoted("target/a-b=1"), "target/a-b=1");
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
        assert_eq!(quoted("a\nrm -rf \\b'"), r"$'a\nrm -rf \\b\''");
        assert_eq!(quoted(""), "''");
        assert_eq!(line(&["cargo xtask".to_owned(), "a b".to_owned()]), "cargo xtask 'a b'");
    }

    #[test]
    fn places_are_not_told() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let told = without_places(words(
            "reproduce adult --out /home/me/run --seed 1 --data-dir=/data --records runs.db --quick",
        ));
        assert_eq!(told, words("reproduce adult --seed 1 --quick"));
    }

    #[cfg(unix)]
    #[test]
    fn the_shell_reads_back_what_was_quoted() {
        use std::os::unix::ffi::OsStrExt;
        for word in [&b"plain"[..], b"a\nb", b"\xff1\xfe", b"it's $HOME", "\u{2028}1\u{85}".as_bytes()] {
            let script = format!("printf %s {}", quote(OsStr::from_bytes(word)));
            let Ok(output) = std::process::Command::new("bash").args(["-c", &script]).output() else {
                return;
            };
            assert_eq!(output.stdout, word, "{script}");
            assert_eq!(script.lines().count(), 1);
        }
    }
}
