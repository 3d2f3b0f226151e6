//! What optimisers do to their moments and to the parameters.

use candle_core::{CpuStorage, InplaceOp1, InplaceOp2, InplaceOp3, Layout, Result, WithDType};

use super::element::{Element, destination, dtype, for_float, same, source};
use super::on_cuda::on_cuda;
use crate::threads::Threads;
use crate::vector_math::{map_in_place, vectorise};

/// Values below which one thread does it all: it takes longer to wake another one.
const FEW: usize = 1 << 17;

/// Calls `f` for every value and the one of the source in its place.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn update<T: Element>(threads: &Threads, dst: &mut [T], src: &[T], f: impl Fn(&mut T, T) + Sync) {
    let len = threads.part_len(dst.len(), 1, FEW);
    threads.each(dst.chunks_mut(len).zip(src.chunks(len)), |(dst, src)| {
        vectorise(
            #[inline(always)]
            || {
                for (v, &s) in dst.iter_mut().zip(src) {
                    f(v, s);
                }
            },
        );
    });
}

/// `dst *= factor`.
pub(crate) struct Scale(pub(crate) f64);

impl InplaceOp1 for Scale {
    fn name(&self) -> &'static str {
        "scale"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        for_float!(dtype(storage), "scale", T => {
            let factor = T::from_f64(self.0);
            map_in_place(destination::<T>(storage, layout)?, |v| v * factor);
            Ok(())
        })
    }

    on_cuda!(|self, dst| cuda::scale(self, dst));
}

/// `dst = scale · dst + alpha · src`.
pub(crate) struct ScaleAdd<'a> {
    /// Factor on the destination.
    pub(crate) scale: f64,
    /// Factor on the source.
    pub(crate) alpha: f64,
    /// Who works on it.
    pub(crate) threads: &'a Threads,
}

impl InplaceOp2 for ScaleAdd<'_> {
    fn name(&self) -> &'static str {
        "scale-add"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, src: &CpuStorage, src_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "scale-add", T => {
            let (scale, alpha) = (T::from_f64(self.scale), T::from_f64(self.alpha));
            let (dst, src) = (destination::<T>(dst, dst_l)?, source::<T>((src, src_l))?);
            same("elements to add", dst.len(), src.len())?;
            update(self.threads, dst, src, #[inline(always)] |v, s| *v = scale * *v + alpha * s);
            Ok(())
        })
    }

    on_cuda!(|self, dst, src| cuda::scale_add(self, dst, src));
}

/// `dst = scale · dst + alpha · src²`.
pub(crate) struct ScaleAddSquare<'a> {
    /// Factor on the destination.
    pub(crate) scale: f64,
    /// Factor on the squares.
    pub(crate) alpha: f64,
    /// Who works on it.
    pub(crate) threads: &'a Threads,
}

impl InplaceOp2 for ScaleAddSquare<'_> {
    fn name(&self) -> &'static str {
        "scale-add-square"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, src: &CpuStorage, src_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "scale-add-square", T => {
            let (scale, alpha) = (T::from_f64(self.scale), T::from_f64(self.alpha));
            let (dst, src) = (destination::<T>(dst, dst_l)?, source::<T>((src, src_l))?);
            same("elements to square", dst.len(), src.len())?;
            update(self.threads, dst, src, #[inline(always)] |v, s| *v = scale * *v + alpha * (s * s));
            Ok(())
        })
    }

    on_cuda!(|self, dst, src| cuda::scale_add_square(self, dst, src));
}

/// `dst −= rate · m / (√v / second + epsilon)` for the moments `m` and `v`.
pub(crate) struct AdamUpdate<'a> {
    /// Learning rate over the first moment's bias correction.
    pub(crate) rate: f64,
    /// Square root of the second moment's bias correction.
    pub(crate) second: f64,
    /// ε.
    pub(crate) epsilon: f64,
    /// Who works on it.
    pub(crate) threads: &'a Threads,
}

impl InplaceOp3 for AdamUpdate<'_> {
    fn name(&self) -> &'static str {
        "adam-update"
    }

    fn cpu_fwd(
        &self,
        dst: &mut CpuStorage,
        dst_l: &Layout,
        first: &CpuStorage,
        first_l: &Layout,
        second: &CpuStorage,
        second_l: &Layout,
    ) -> Result<()> {
        for_float!(dtype(dst), "adam-update", T => {
            let parameters = destination::<T>(dst, dst_l)?;
            let (m, v) = (source::<T>((first, first_l))?, source::<T>((second, second_l))?);
            same("elements of the first moment", parameters.len(), m.len())?;
            same("elements of the second moment", parameters.len(), v.len())?;
            let (rate, root, epsilon) = (T::from_f64(self.rate), T::from_f64(1.0 / self.second), T::from_f64(self.epsilon));
            let len = self.threads.part_len(parameters.len(), 1, FEW);
            let parts = parameters.chunks_mut(len).zip(m.chunks(len)).zip(v.chunks(len));
            self.threads.each(parts, |((parameters, m), v)| {
                vectorise(#[inline(always)] || {
                    for ((p, &m), &v) in parameters.iter_mut().zip(m).zip(v) {
                        *p -= rate * m / (v.sqrt() * root + epsilon);
                    }
                });
            });
            Ok(())
        })
    }

    on_cuda!(|self, dst, first, second| cuda::adam_update(self, dst, first, second));
}
