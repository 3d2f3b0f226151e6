//! Faults in the names of columns, and their likely causes.

use crate::value::Value;

/// The likely cause of a column without a name; `None` if every column has a name.
pub(crate) fn nameless(names: &[String]) -> Option<String> {
    let place = names.iter().position(String::is_empty)?;
    let cause = if is_like_a_record(names) {
        LIKE_A_RECORD
    } else if place == 0 {
        ": pandas and R write an index so; leave it out (`index=False`, `row.names = FALSE`) or name it"
    } else if names[place..].iter().all(String::is_empty) {
        ": does the line end in a delimiter?"
    } else {
        ""
    };
    Some(format!("column {} of the header has no name{cause}", place + 1))
}

/// Why two columns may have one name.
pub(crate) fn why_doubled(names: &[String]) -> &'static str {
    if is_like_a_record(names) { LIKE_A_RECORD } else { "" }
}

const LIKE_A_RECORD: &str = ": the first line looks like a record; is the header missing?";

/// Whether some names are numbers, and the numbers are not column numbers, which programs
/// write where columns have no names.
fn is_like_a_record(names: &[String]) -> bool {
    let is_number = |name: &String| matches!(Value::of_identifier(name), Value::Number(_));
    names.iter().any(is_number) && !counts_columns(names)
}

/// Whether the names are 0, 1, 2… or 1, 2, 3….
pub(crate) fn counts_columns<S: AsRef<str>>(names: &[S]) -> bool {
    let counts = |first: usize| names.iter().zip(first..).all(|(name, place)| name.as_ref() == place.to_string());
    counts(0) || counts(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_follows_from_the_names() {
        let of = |names: &[&str]| nameless(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        insta::assert_snapshot!(
            of(&["", "age", "y"]).unwrap(),
            @"column 1 of the header has no name: pandas and R write an index so; leave it out (`index=False`, `row.names = FALSE`) or name it"
        );
        insta::assert_snapshot!(of(&["age", "y", ""]).unwrap(), @"column 3 of the header has no name: does the line end in a delimiter?");
        insta::assert_snapshot!(of(&["age", "", "y"]).unwrap(), @"column 2 of the header has no name");
        insta::assert_snapshot!(
            of(&["", "39", "f"]).unwrap(),
            @"column 1 of the header has no name: the first line looks like a record; is the header missing?"
        );
        assert_eq!(of(&["a", "b"]), None);
        let names = ["0", "1", "2"].map(str::to_owned);
        assert_eq!(
            (is_like_a_record(&names), is_like_a_record(&names[1..]), is_like_a_record(&names[..1])),
            (false, false, false)
        );
        assert!(is_like_a_record(&["39", "f", "0"].map(str::to_owned)));
    }
}
