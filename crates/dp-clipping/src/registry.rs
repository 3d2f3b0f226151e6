//! Every named method, in one list: the command line, help, tables, tests and benches iterate it.
//!
#![doc = include_str!("../METHODS.md")]

use std::fmt::Write as _;
use std::sync::{PoisonError, RwLock};

pub use crate::likeness::{like, meant};
use crate::{
    ClipError, MethodEntry, PublicContext, methods,
    own::{Parts, is_kebab_case},
};

/// What this process registered.
struct Registered {
    entries: Vec<&'static MethodEntry>,
    parts: Parts,
}

static REGISTERED: RwLock<Registered> = RwLock::new(Registered { entries: Vec::new(), parts: Parts::none() });

/// Makes a method of one's own known by its name, and its parts by theirs, to this whole process:
/// configurations, command lines, audits and files find it as they find the methods of this crate.
///
/// Call it once for each method, at the start of the program. Nothing is ever replaced or removed, so
/// that a name means one thing for as long as the program runs.
///
/// # Errors
/// [`ClipError::InvalidParameter`] for a name that is not in kebab case or that another method or part
/// has, and for settings of the paper (the default ones) that are out of range.
///
/// **Example**: [`ScaleRule::Own`](crate::ScaleRule::Own).
pub fn register(entry: MethodEntry) -> Result<(), ClipError> {
    if !is_kebab_case(entry.name) {
        return Err(ClipError::invalid("name", entry.name, "lower-case letters, digits and hyphens"));
    }
    let config = entry.default_config();
    config.check_values()?;
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let known = methods().iter().chain(registered.entries.iter().copied());
    if known.into_iter().any(|known| known.name == entry.name) {
        return Err(ClipError::invalid("name", entry.name, "a name that no other method has"));
    }
    registered.parts.take_in(&config)?;
    registered.entries.push(Box::leak(Box::new(entry)));
    Ok(())
}

/// The methods that [`register`] was given, in that order.
pub fn own() -> Vec<&'static MethodEntry> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).entries.clone()
}

/// Every method that [`find`] knows: [`methods`], then [`own`].
pub fn all() -> Vec<&'static MethodEntry> {
    methods().iter().chain(own()).collect()
}

/// The parts that this process registered.
pub(crate) fn with_parts<T>(read: impl FnOnce(&Parts) -> T) -> T {
    read(&REGISTERED.read().unwrap_or_else(PoisonError::into_inner).parts)
}

/// Every named method of this crate, in the order of the tables.
pub fn methods() -> &'static [MethodEntry] {
    const METHODS: &[MethodEntry] = &[
        methods::dpsgd::ENTRY,
        methods::dpsgd_normalised::ENTRY,
        methods::naive::ENTRY,
        methods::dpsgd_f::ENTRY,
        methods::dpsgd_global::ENTRY,
        methods::dpsgd_global_adapt::ENTRY,
        methods::adaptive::ENTRY,
        methods::unbounded_adaptive::ENTRY,
        methods::bounded_adaptive::ENTRY,
        methods::fixed_soft::ENTRY,
        methods::soft_adaptive::ENTRY,
        methods::automatic::ENTRY,
        methods::soft_global_adapt::ENTRY,
        methods::bounded_global_adapt::ENTRY,
        methods::bounded_soft_global_adapt::ENTRY,
        methods::bounded_soft_adaptive::ENTRY,
        methods::soft_dpsgd_f::ENTRY,
        methods::group_dro::ENTRY,
        methods::asc::ENTRY,
        methods::asc_by_loss::ENTRY,
        methods::fairlens::ENTRY,
        methods::magnitude_only::ENTRY,
        methods::direction_only::ENTRY,
    ];
    METHODS
}

/// The method of this name, of this crate or registered.
///
/// # Errors
/// [`ClipError::UnknownMethod`], listing every name.
pub fn find(name: &str) -> Result<&'static MethodEntry, ClipError> {
    let all = all();
    all.iter().copied().find(|entry| entry.name == name).ok_or_else(|| ClipError::UnknownMethod {
        name: name.to_owned(),
        known: all.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}

/// The table of all methods.
fn markdown_table() -> String {
    let mut table = String::from(
        "| method | in papers and reports | rule | controller | weights | counts (L2 sensitivity) | group labels | certified | source |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    let context = PublicContext { n_groups: 2, expected_batch_size: 1.0, noise_multiplier: 1.0 };
    for entry in methods() {
        let config = entry.default_config();
        let counts = config
            .queries(&context)
            .iter()
            .map(|query| format!("{} ({})", query.name, query.l2_sensitivity))
            .collect::<Vec<_>>()
            .join("; ");
        let yes = |condition: bool| if condition { "yes" } else { "no" };
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} |",
            entry.name,
            entry.label,
            config.rule.name(),
            config.controller.name(),
            config.weights.name(),
            if counts.is_empty() { "none" } else { &counts },
            yes(config.needs_groups()),
            yes(config.certified()),
            entry.source,
        );
    }
    table
}

/// Where methods differ from their published text or code, as a Markdown list.
fn markdown_differences() -> String {
    let mut list = String::new();
    for entry in methods().iter().filter(|entry| !entry.differs.is_empty()) {
        let _ = writeln!(list, "- `{}`: {}", entry.name, entry.differs);
    }
    list
}

/// `METHODS.md` of the crate: the table of all methods, then where they differ from their papers.
pub fn markdown() -> String {
    format!("{}\n## Where they differ from their papers\n\n{}", markdown_table(), markdown_differences())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CountNoise, FairlensForm, PresetParams, ShareOf};

    #[test]
    fn the_table_in_the_crate_is_current() {
        assert_eq!(
            markdown(),
            include_str!("../METHODS.md"),
            "run `cargo run --release -p dp-clipping --example methods_table > crates/dp-clipping/METHODS.md`"
        );
    }

    #[test]
    fn names_are_unique_kebab_case_and_found() {
        for (index, entry) in methods().iter().enumerate() {
            assert!(entry.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", entry.name);
            assert!(methods()[..index].iter().all(|other| other.name != entry.name));
            assert_eq!(find(entry.name).unwrap().label, entry.label);
            assert!(!entry.summary.is_empty() && !entry.source.is_empty());
            entry.default_config().validate().unwrap();
        }
    }

    #[test]
    fn settings_without_a_part_in_a_method_are_named() {
        let all = PresetParams {
            clip_norm: 0.5,
            upper_bound: Some(20.0),
            tolerance: Some(0.1),
            rate: Some(0.1),
            target: Some(0.5),
            lower_bound: Some(0.01),
            loss_bound: Some(2.0),
            count_noise: CountNoise::Multiplier(3.0),
            share_of: ShareOf::Groups,
            fairlens_weights: Some([1.0, 2.0]),
            fairlens_form: FairlensForm::Code,
        };
        let line = |entry: &MethodEntry| format!("{}: {}", entry.name, entry.unread(&all).join(" "));
        insta::assert_snapshot!(methods().iter().map(line).collect::<Vec<_>>().join("\n"));
        for entry in methods() {
            assert!(entry.unread(&PresetParams::default()).is_empty(), "{}", entry.name);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = find("dpsdg").unwrap_err().to_string();
        assert!(error.starts_with("method = dpsdg: expected one of dpsgd, "), "{error}");
        assert!(methods().iter().all(|entry| error.contains(entry.name)), "{error}");
    }

    #[test]
    fn only_what_is_proven_is_certified() {
        let not_certified: Vec<_> =
            methods().iter().filter(|entry| !entry.default_config().certified()).map(|entry| entry.name).collect();
        assert_eq!(not_certified, ["fairlens", "magnitude-only", "direction-only"]);
    }
}
