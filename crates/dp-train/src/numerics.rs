//! The version of everything that decides bits.

/// Version of the arithmetic: two programs of the same version, on processors with the same
/// instructions, take the same steps from the same seed, bit for bit. Checkpoints and stored runs
/// carry it.
///
/// | version | since |
/// |---|---|
/// | 1 | sums in floating point, over the whole batch |
/// | 2 | sums over pieces of public blocks, added as integers; batches drawn block by block; norms that bound what is added |
pub const NUMERICS: u32 = 2;
