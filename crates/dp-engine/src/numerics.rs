//! The version of everything that decides bits.

use std::hint::black_box;

use dp_clipping::internal::instruction_set;
use sha2::{Digest as _, Sha256};

/// Version of the arithmetic: two programs of the same version, on processors with the same
/// instructions, take the same steps from the same seed, bit for bit. Checkpoints and stored runs
/// carry it.
///
/// | version | since |
/// |---|---|
/// | 1 | sums in floating point, over the whole batch |
/// | 2 | sums over pieces of public blocks, added as integers; batches drawn block by block; norms that bound what is added |
/// | 3 | on CPUs as 2; on CUDA devices other pieces, and sums divided among more threads |
/// | 4 | norms of convolutions from products of pixels, each summed in `f64` over sixteen lanes |
/// | 5 | on CPUs pieces in stretches, long products with few columns in lanes; FairLens's own pass |
pub const NUMERICS: u32 = 5;

/// The properties of the platform that decide bits: kind of processor, its vectors, and a digest of
/// the values of `exp`, `tanh`, `ln` and `ln_1p` at fixed points, which differ between mathematical
/// libraries.
pub fn platform() -> String {
    let mut digest = Sha256::new();
    for place in 0..1_000 {
        let x = black_box(f64::from(place) / 64.0);
        digest.update((-x as f32).exp().to_bits().to_le_bytes());
        for value in [(-x).exp(), x.tanh(), (x + 0.1).ln(), (-x / 16.0).exp().ln_1p()] {
            digest.update(value.to_bits().to_le_bytes());
        }
    }
    let functions = hex::encode(&digest.finalize()[..4]);
    format!("{} {}, functions {functions}", std::env::consts::ARCH, instruction_set())
}
