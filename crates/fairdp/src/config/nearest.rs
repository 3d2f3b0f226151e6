//! The known name that an unknown one was probably meant to be.

/// Turns `` unknown field `x`, expected one of `a`, `b` `` into a message with the nearest name.
pub(super) fn explain(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `").or_else(|| message.strip_prefix("unknown variant `"))
    else {
        return message.to_owned();
    };
    let Some((unknown, expected)) = rest.split_once("`, expected ") else { return message.to_owned() };
    let known = expected.split('`').skip(1).step_by(2);
    match nearest(unknown, known) {
        Some(nearest) => format!("unknown name `{unknown}`; the nearest known one is `{nearest}`"),
        None => message.to_owned(),
    }
}

/// The known name that takes the fewest changes.
pub(crate) fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is_part = |name: &str| name.starts_with(unknown) || unknown.starts_with(name);
    known.min_by_key(|name| (!is_part(name), distance(unknown, name)))
}

/// Letters to insert, remove or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_named() {
        assert_eq!((distance("epsilonn", "epsilon"), distance("", "abc"), distance("kitten", "sitting")), (1, 3, 3));
        insta::assert_snapshot!(
            explain("unknown field `epsilom`, expected `epsilon` or `delta`"),
            @"unknown name `epsilom`; the nearest known one is `epsilon`"
        );
        assert_eq!(nearest("worst", ["none", "worst-group"].into_iter()), Some("worst-group"));
        assert_eq!(explain("invalid type"), "invalid type");
    }
}
