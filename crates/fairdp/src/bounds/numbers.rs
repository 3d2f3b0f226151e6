//! The grid of numbers: zero, and for either sign four bins per doubling between [`LEAST`] and 2⁶⁰
//! times that.

/// Smaller numbers count as zero.
pub(super) const LEAST: f64 = 1e-6;
/// Bins per doubling.
const PER_DOUBLING: usize = 4;
/// Bins of either sign.
const SIDE: usize = 60 * PER_DOUBLING;
pub(super) const N_BINS: usize = 2 * SIDE + 1;

/// The bin of a number; they ascend.
pub(super) fn bin(value: f64) -> usize {
    let size = value.abs() / LEAST;
    if size < 1.0 {
        return SIDE;
    }
    let step = ((size.log2() * PER_DOUBLING as f64) as usize).min(SIDE - 1);
    if value > 0.0 { SIDE + 1 + step } else { SIDE - 1 - step }
}

/// The numbers of a bin.
pub(super) fn range(bin: usize) -> (f64, f64) {
    let edge = |step: usize| LEAST * 2f64.powf(step as f64 / PER_DOUBLING as f64);
    match bin {
        SIDE => (0.0, 0.0),
        bin if bin > SIDE => (edge(bin - SIDE - 1), edge(bin - SIDE)),
        bin => (-edge(SIDE - bin), -edge(SIDE - 1 - bin)),
    }
}
