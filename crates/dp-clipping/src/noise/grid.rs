//! The grid in single precision.

/// The single-precision number next to `x`, not above it: a grid no finer and noise no smaller than
/// asked for.
pub fn at_most(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) > x { near.next_down() } else { near }
}
