//! The known name that an unknown one was probably meant to be.

/// The known name that an unknown one is a slip of: the beginning of it or its continuation, or a few letters
/// away. Small and capital letters are alike.
pub fn did_you_mean<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let unknown = unknown.to_lowercase();
    let length = unknown.chars().count();
    let slips = known.into_iter().filter_map(|name| {
        let lower = name.to_lowercase();
        let is_part = length >= 3 && lower.starts_with(&unknown) || name.len() >= 3 && unknown.starts_with(&lower);
        let distance = distance(&unknown, &lower);
        (is_part || distance <= length.div_ceil(3)).then_some((!is_part, distance, name))
    });
    slips.min().map(|(.., name)| name)
}

/// The question that ends a message about an unknown name; empty if no known one is near.
pub fn question<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    did_you_mean(unknown, known).map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
}

/// Letters to insert, remove or replace (Levenshtein), or two neighbours to exchange.
fn distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|text| text.chars().collect::<Vec<_>>());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let mut least = (last[j] + usize::from(letter != other)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == b[j - 1] && a[i - 1] == *other {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_named() {
        let distances = [("epsilonn", "epsilon"), ("", "abc"), ("kitten", "sitting"), ("dpsdg", "dpsgd")];
        assert_eq!(distances.map(|(a, b)| distance(a, b)), [1, 3, 3, 1]);
        let known = ["none", "worst-group", "Age", "epsilon"];
        let meant = |unknown| did_you_mean(unknown, known);
        assert_eq!(
            (meant("worst"), meant("age"), meant("epsilom")),
            (Some("worst-group"), Some("Age"), Some("epsilon"))
        );
        assert_eq!((meant("income"), question("non", known)), (None, "; did you mean `none`?".into()));
    }
}
