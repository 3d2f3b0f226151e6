//! Methods as papers write them.

use dp_clipping::registry;

use super::metric::REFERENCE;

/// A method as papers write it, with what tells several runs of it apart: `DPSGD-F ε=1` for
/// `dpsgd-f ε=1`. Names that are in no paper stay.
pub(super) fn label(id: &str) -> String {
    let known = registry::all().into_iter().map(|entry| (entry.name, entry.label)).chain([(REFERENCE, "Non-private")]);
    let begins = |(name, _): &(&str, &str)| {
        id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '-']))
    };
    match known.filter(begins).max_by_key(|(name, _)| name.len()) {
        Some((name, label)) => format!("{label}{}", &id[name.len()..]),
        None => id.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_paper_has_keeps_its_name() {
        for (id, written) in [
            ("dpsgd", "DPSGD"),
            ("dpsgd-f ε=1", "DPSGD-F ε=1"),
            ("dpsgd-adjusted", "DPSGD-adjusted"),
            ("non-private", "Non-private"),
            ("conditioned-fair ε=1", "conditioned-fair ε=1"),
        ] {
            assert_eq!(label(id), written);
        }
    }
}
