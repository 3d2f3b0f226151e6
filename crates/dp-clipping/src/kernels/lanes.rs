//! Eight f64 lanes, whatever registers hold them.

/// Eight f64 values that move together. Every implementation rounds alike (no fused multiply-add),
/// so the kernels written over it give the same bits on every instruction set.
///
/// The implementations for an instruction set may only be used below a function with that target
/// feature; the kernels are reached through [`super::dispatch`] alone, which sees to it.
pub(super) trait Lanes: Copy {
    fn splat(value: f64) -> Self;
    fn load_f32(values: &[f32; 8]) -> Self;
    fn load_f64(values: &[f64; 8]) -> Self;
    fn store(self, values: &mut [f64; 8]);
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}
