//! What the cap hides of a rule.

use crate::{ScaleRule, bound::breaks};

/// Thresholds that a rule is tried at.
const THRESHOLDS: [f64; 7] = [1.0, 1e-9, 1e-3, 0.1, 10.0, 1e3, 1e9];

/// Norms over a threshold that a rule is tried at, from the smallest number to almost the largest.
fn norms(threshold: f64) -> Vec<f64> {
    let mut norms = vec![0.0, 5e-324, f64::MIN_POSITIVE];
    norms.extend((-120..=120).map(|step| threshold * 10_f64.powf(f64::from(step) / 10.0)));
    norms.extend([1e100, 1e300, f64::MAX]);
    norms
}

/// What is wrong with a rule, one line for each kind of mistake; nothing for a rule without one.
///
/// No mistake of these can break the guarantee: the cap that every scale passes holds the bound. But the
/// cap hides it, and the rule that trains is then not the one that was meant. The mistakes:
///
/// - a scale that is not a number, or is below 0;
/// - an infinite scale at a norm that is not among the smallest numbers;
/// - a contribution `s‖g‖` above the bound that the rule declares;
/// - a length `s‖g‖` that falls while the norm rises. Rules that leave gradients out, as
///   [`ScaleRule::GlobalDrop`], do so on purpose;
/// - another answer to the same question: what a rule remembers would be private.
///
/// ```
/// use dp_clipping::{ScaleRule, check};
/// assert!(check(&ScaleRule::Hard).is_empty());
/// let findings = check(&ScaleRule::GlobalDrop { clip_norm: 1.0 });
/// assert!(findings.len() == 1 && findings[0].contains("falls"), "{findings:?}");
/// ```
pub fn check(rule: &ScaleRule) -> Vec<String> {
    let (mut findings, mut most) = (Findings::default(), 1.0);
    for threshold in THRESHOLDS {
        let bound = rule.bound(threshold);
        let (mut length, norms) = (0.0, norms(threshold));
        for &norm in &norms {
            let scale = rule.scale(norm, threshold);
            let at = || format!("scale {scale} at norm {norm:e} and threshold {threshold}");
            if scale.is_nan() || scale < 0.0 {
                findings.add(0, || format!("{}: expected a number of at least 0", at()));
                continue;
            }
            if scale.is_infinite() && norm >= f64::MIN_POSITIVE * f64::from(u16::MAX) {
                findings.add(1, || format!("{}: expected a finite number", at()));
            }
            if breaks(scale, norm, bound) {
                let times = scale * norm / bound;
                if times > most * (1.0 + 1e-9) {
                    most = times;
                    findings.0[2] = None;
                }
                findings.add(2, || format!("{}: adds {times:.3e} times the bound {bound}; the cap lowers it", at()));
            }
            // As the cap leaves it.
            let now = (scale * norm).min(bound);
            if now < length * (1.0 - 1e-9) {
                findings.add(3, || format!("{}: the length falls from {length:e} to {now:e}", at()));
            }
            length = if now.is_finite() { now } else { length };
        }
        let again = norms.iter().rev().any(|&norm| {
            let (one, other) = (rule.scale(norm, threshold), rule.scale(norm, threshold));
            one.to_bits() != other.to_bits()
        });
        if again {
            findings.add(4, || format!("another answer to the same question, at threshold {threshold}"));
        }
    }
    findings.0.into_iter().flatten().collect()
}

/// The first finding of each kind.
#[derive(Default)]
struct Findings([Option<String>; 5]);

impl Findings {
    fn add(&mut self, kind: usize, finding: impl FnOnce() -> String) {
        self.0[kind].get_or_insert_with(finding);
    }
}
