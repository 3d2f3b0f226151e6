//! Whole-vector updates of parameters and gradients.

use candle_core::{CpuStorage, InplaceOp1, InplaceOp2, Layout, Result, WithDType};

use super::element::{Element, destination, dtype, for_float, same, source};
use super::on_cuda::on_cuda;
use crate::vector_math::vectorise;

/// Sets every value.
pub(crate) struct Fill(pub(crate) f64);

impl InplaceOp1 for Fill {
    fn name(&self) -> &'static str {
        "fill"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        for_float!(dtype(storage), "fill", T => {
            destination::<T>(storage, layout)?.fill(T::from_f64(self.0));
            Ok(())
        })
    }

    on_cuda!(|self, dst| cuda::fill(self, dst));
}

/// `dst = src`.
pub(crate) struct Copy;

impl InplaceOp2 for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, src: &CpuStorage, src_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "copy", T => {
            let dst = destination::<T>(dst, dst_l)?;
            let src = source::<T>((src, src_l))?;
            same("elements to copy", dst.len(), src.len())?;
            dst.copy_from_slice(src);
            Ok(())
        })
    }

    on_cuda!(|self, dst, src| cuda::copy(dst, src));
}

/// `dst += alpha · src`.
pub(crate) struct Axpy {
    /// The factor.
    pub(crate) alpha: f64,
}

impl InplaceOp2 for Axpy {
    fn name(&self) -> &'static str {
        "axpy"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, src: &CpuStorage, src_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "axpy", T => {
            let dst = destination::<T>(dst, dst_l)?;
            let src = source::<T>((src, src_l))?;
            same("elements to add", dst.len(), src.len())?;
            axpy(dst, T::from_f64(self.alpha), src);
            Ok(())
        })
    }

    on_cuda!(|self, dst, src| cuda::axpy(self, dst, src));
}

/// `dst += alpha · values`, values that are in host memory in `f64`: nothing is copied to a tensor first.
pub(crate) struct AddSlice<'a> {
    /// The factor.
    pub(crate) alpha: f64,
    /// One value per element.
    pub(crate) values: &'a [f64],
}

impl InplaceOp1 for AddSlice<'_> {
    fn name(&self) -> &'static str {
        "add-slice"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        for_float!(dtype(storage), "add-slice", T => {
            let dst = destination::<T>(storage, layout)?;
            same("values to add", dst.len(), self.values.len())?;
            vectorise(#[inline(always)] || {
                for (v, &s) in dst.iter_mut().zip(self.values) {
                    *v += T::from_f64(self.alpha * s);
                }
            });
            Ok(())
        })
    }

    on_cuda!(|self, dst| cuda::add_slice(self, dst));
}

/// `dst = origin + alpha · values`, both in host memory.
pub(crate) struct SetAlong<'a, V> {
    /// One value per element.
    pub(crate) origin: &'a [f64],
    /// The factor.
    pub(crate) alpha: f64,
    /// One value per element.
    pub(crate) values: &'a [V],
}

impl<V: std::marker::Copy + Into<f64>> InplaceOp1 for SetAlong<'_, V> {
    fn name(&self) -> &'static str {
        "set-along"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        for_float!(dtype(storage), "set-along", T => {
            let dst = destination::<T>(storage, layout)?;
            same("values to start from", dst.len(), self.origin.len())?;
            same("values to add", dst.len(), self.values.len())?;
            vectorise(#[inline(always)] || {
                for (v, (&o, &s)) in dst.iter_mut().zip(self.origin.iter().zip(self.values)) {
                    *v = T::from_f64(o + self.alpha * s.into());
                }
            });
            Ok(())
        })
    }

    on_cuda!(|self, dst| cuda::set_along(self, dst));
}

fn axpy<T: Element>(dst: &mut [T], alpha: T, src: &[T]) {
    vectorise(
        #[inline(always)]
        || {
            for (v, &s) in dst.iter_mut().zip(src) {
                *v += alpha * s;
            }
        },
    );
}
