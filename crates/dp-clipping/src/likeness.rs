//! Methods by a name that is not quite theirs: the one of a paper, a part of it, or a slip.

use crate::MethodEntry;
use crate::registry::all;

/// The methods whose name, name in the papers, description or source has this text; small and capital
/// letters, hyphens and blanks aside. Those whose names begin with it come first.
///
/// ```
/// use dp_clipping::registry::like;
/// let names = |text| like(text).iter().map(|entry| entry.name).collect::<Vec<_>>();
/// assert_eq!(names("SoftAdaClip"), ["soft-adaptive"]);
/// assert_eq!(names("bu et al. 2021"), ["dpsgd-global"]);
/// assert!(names("no such word").is_empty());
/// ```
pub fn like(text: &str) -> Vec<&'static MethodEntry> {
    let wanted = plain(text);
    if wanted.is_empty() {
        return Vec::new();
    }
    let rank = |entry: &MethodEntry| {
        let names = [entry.name, entry.label].map(plain);
        if names.contains(&wanted) {
            Some(0)
        } else if names.iter().any(|name| name.starts_with(&wanted)) {
            Some(1)
        } else if names.iter().any(|name| name.contains(&wanted)) {
            Some(2)
        } else {
            [entry.summary, entry.source].iter().any(|text| plain(text).contains(&wanted)).then_some(3)
        }
    };
    let mut found: Vec<(u8, &'static MethodEntry)> =
        all().into_iter().filter_map(|entry| Some((rank(entry)?, entry))).collect();
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, entry)| entry).collect()
}

/// The method that an unknown name was probably meant to be: one with it in its names, or with names a
/// few letters away.
pub fn meant(unknown: &str) -> Option<&'static MethodEntry> {
    let wanted = plain(unknown);
    let by_part = || {
        let entry = like(unknown).into_iter().next()?;
        [entry.name, entry.label].map(plain).iter().any(|name| name.contains(&wanted)).then_some(entry)
    };
    let by_letters = || {
        let distance = |entry: &MethodEntry| {
            [entry.name, entry.label].map(|name| letters_between(&wanted, &plain(name))).into_iter().min()
        };
        let nearest = all().into_iter().filter_map(|entry| Some((distance(entry)?, entry))).min_by_key(|(n, _)| *n);
        nearest.filter(|(distance, _)| *distance <= wanted.chars().count().div_ceil(3)).map(|(_, entry)| entry)
    };
    by_part().or_else(by_letters)
}

/// Small letters and digits alone.
fn plain(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Letters to insert, remove or replace (Levenshtein).
fn letters_between(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            row.push((last[j] + usize::from(letter != *other)).min(last[j + 1] + 1).min(row[j] + 1));
        }
        last = row;
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_found_by_the_names_of_papers() {
        for entry in crate::registry::methods() {
            assert_eq!(like(entry.label)[0].name, entry.name, "{}", entry.label);
            assert_eq!(meant(entry.name).map(|entry| entry.name), Some(entry.name));
        }
        let names = |text| like(text).iter().map(|entry| entry.name).collect::<Vec<_>>();
        assert_eq!(names("soft")[0], "soft-adaptive");
        assert!(names("soft").contains(&"bounded-soft-adaptive") && !names("soft").contains(&"dpsgd"));
        assert!(names("soleymani").contains(&"fixed-soft") && names("").is_empty());
        let meant = |text| meant(text).map(|entry| entry.name);
        assert_eq!(
            [meant("SoftAdaClip"), meant("dpsdg"), meant("Global Adapt"), meant("xyzzy")],
            [Some("soft-adaptive"), Some("dpsgd"), Some("dpsgd-global-adapt"), None]
        );
        assert_eq!(letters_between("kitten", "sitting"), 3);
    }
}
