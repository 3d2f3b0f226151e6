//! Oddities of a table, in comments.

use std::fmt::Write as _;
use std::path::Path;

use dp_table::{ColumnGuess, EmptyLines, Guess, GuessedKind, StrayTexts, Value, is_invisible, thousands};

/// The most remarks on one column, and texts in one; the most characters of a text.
const MOST_REMARKS: usize = 5;
const MOST_SHOWN: usize = 40;

/// Oddities in the rows and the header of a table.
pub(super) fn remarks_on_rows(text: &mut String, guess: &Guess) {
    if guess.broken > 0 {
        let _ = writeln!(
            text,
            "# rows of another number of fields, or that are not UTF-8: {}; `fit` names the first",
            guess.broken
        );
    }
    if let Some(EmptyLines { count, first, file, .. }) = &guess.empty_lines {
        let lines =
            if *count == 1 { "1 empty line,".into() } else { format!("{} empty lines, the first", thousands(*count)) };
        let _ = writeln!(
            text,
            "# {lines} {}: read as nothing here, but for `fit` a row that does not fit: remove it",
            place(*first, file.as_deref())
        );
    }
    if guess.not_utf8 > 0 {
        let _ = writeln!(
            text,
            "# {} of {} rows are not UTF-8 text and were not read here: give the encoding by --encoding",
            thousands(guess.not_utf8),
            thousands(guess.rows + guess.broken)
        );
    }
    if let [first, ..] = guess.names_like_values()[..] {
        let _ = writeln!(
            text,
            "# the first line looks like a record, not like a header: {} is a value of its column. Without a header the table \
             needs one",
            shown(first)
        );
    }
}

/// Oddities in the texts of a column.
pub(super) fn remarks(text: &mut String, found: &ColumnGuess) {
    if let Some(StrayTexts { count, of, first, line, file, texts, .. }) = &found.words {
        let (one, several) = if found.kind == GuessedKind::Date { ("date", "dates") } else { ("number", "numbers") };
        let at = place(*line, file.as_deref());
        let what = if *count == 1 {
            format!("is no {one}: {} in {at}", shown(first))
        } else {
            let others: Vec<String> = texts.iter().skip(1).take(MOST_REMARKS).map(|text| shown(text)).collect();
            let others = if others.is_empty() { String::new() } else { format!("; others are {}", others.join(", ")) };
            format!("are no {several}, the first {} in {at}{others}", shown(first))
        };
        let advice = "correct it, list it in table.missing, or set table.bad_rows = \"drop\"";
        let _ = writeln!(text, "# {} of {} values {what}: {advice}", thousands(*count), thousands(*of));
    }
    for alike in found.alike.iter().take(MOST_REMARKS) {
        let texts: Vec<String> = alike.texts.iter().take(MOST_REMARKS).map(|text| shown(text)).collect();
        let differences: Vec<String> = alike.differ_by.iter().map(ToString::to_string).collect();
        let is_one = alike.texts.iter().all(|other| Value::of(other) == Value::of(&alike.texts[0]));
        let meaning = if is_one { "they are one value" } else { "each is a value of its own" };
        let _ = writeln!(text, "# {} differ by {} alone; {meaning}", texts.join(", "), differences.join(" and "));
    }
    if found.alike.len() > MOST_REMARKS {
        let _ = writeln!(text, "# and {} more values have such twins", found.alike.len() - MOST_REMARKS);
    }
}

/// A line, with its file in a table of several.
fn place(line: usize, file: Option<&Path>) -> String {
    let file = file.and_then(Path::file_name).map(|name| format!(" of {}", shown(&name.to_string_lossy())));
    format!("line {line}{}", file.unwrap_or_default())
}

/// A text for a comment, in which everything can be seen.
pub(super) fn shown(text: &str) -> String {
    let mut shown = String::from("`");
    for letter in text.chars().take(MOST_SHOWN) {
        match letter {
            ' ' => shown.push(' '),
            letter if is_invisible(letter) || letter.is_whitespace() || letter.is_control() => {
                let _ = write!(shown, "{}", letter.escape_unicode());
            }
            letter => shown.push(letter),
        }
    }
    if text.chars().nth(MOST_SHOWN).is_some() {
        shown.push('…');
    }
    shown + "`"
}
