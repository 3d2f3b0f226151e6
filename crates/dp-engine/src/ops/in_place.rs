//! How an operation gets at the storage of its tensors.

use std::cell::Cell;

#[cfg(feature = "cuda")]
use candle_core::CudaStorage;
use candle_core::{CpuStorage, Error, InplaceOp1, InplaceOp2, InplaceOp3, Layout, Result, Tensor};

#[cfg(feature = "cuda")]
use super::cuda;
use super::element;

/// The destination of an operation and the `N` tensors that it reads, on their device.
pub(super) enum Operands<'a, const N: usize> {
    Cpu(element::Destination<'a>, [element::Source<'a>; N]),
    #[cfg(feature = "cuda")]
    Cuda(cuda::Destination<'a>, [cuda::Source<'a>; N]),
}

impl<'a, const N: usize> Operands<'a, N> {
    /// The operands of an operation that has no CUDA path.
    #[cfg_attr(
        not(feature = "cuda"),
        expect(clippy::unnecessary_wraps, unused_variables, reason = "there is no other device")
    )]
    pub(super) fn on_cpu(self, name: &str) -> Result<(element::Destination<'a>, [element::Source<'a>; N])> {
        match self {
            Self::Cpu(out, sources) => Ok((out, sources)),
            #[cfg(feature = "cuda")]
            Self::Cuda(..) => Err(Error::Msg(format!("{name}: expected tensors on the CPU"))),
        }
    }
}

/// Runs an operation on its destination alone.
pub(super) fn unary(name: &'static str, out: &Tensor, run: impl FnOnce(Operands<'_, 0>) -> Result<()>) -> Result<()> {
    out.inplace_op1(&Closure::new(name, run))
}

/// Runs an operation on its destination and one source.
pub(super) fn binary(
    name: &'static str,
    out: &Tensor,
    source: &Tensor,
    run: impl FnOnce(Operands<'_, 1>) -> Result<()>,
) -> Result<()> {
    out.inplace_op2(source, &Closure::new(name, run))
}

/// Runs an operation on its destination and two sources.
pub(super) fn ternary(
    name: &'static str,
    out: &Tensor,
    first: &Tensor,
    second: &Tensor,
    run: impl FnOnce(Operands<'_, 2>) -> Result<()>,
) -> Result<()> {
    out.inplace_op3(first, second, &Closure::new(name, run))
}

/// The one in-place operation that candle sees: a closure.
struct Closure<F> {
    name: &'static str,
    run: Cell<Option<F>>,
}

impl<F> Closure<F> {
    fn new(name: &'static str, run: F) -> Self {
        Self { name, run: Cell::new(Some(run)) }
    }

    fn run<const N: usize>(&self, operands: Operands<'_, N>) -> Result<()>
    where
        F: FnOnce(Operands<'_, N>) -> Result<()>,
    {
        match self.run.take() {
            Some(run) => run(operands),
            None => Err(Error::Msg(format!("{}: run twice", self.name))),
        }
    }
}

impl<F: FnOnce(Operands<'_, 0>) -> Result<()>> InplaceOp1 for Closure<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cpu_fwd(&self, out: &mut CpuStorage, layout: &Layout) -> Result<()> {
        self.run(Operands::Cpu((out, layout), []))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, out: &mut CudaStorage, layout: &Layout) -> Result<()> {
        self.run(Operands::Cuda((out, layout), []))
    }
}

impl<F: FnOnce(Operands<'_, 1>) -> Result<()>> InplaceOp2 for Closure<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cpu_fwd(&self, out: &mut CpuStorage, out_l: &Layout, a: &CpuStorage, a_l: &Layout) -> Result<()> {
        self.run(Operands::Cpu((out, out_l), [(a, a_l)]))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, out: &mut CudaStorage, out_l: &Layout, a: &CudaStorage, a_l: &Layout) -> Result<()> {
        self.run(Operands::Cuda((out, out_l), [(a, a_l)]))
    }
}

impl<F: FnOnce(Operands<'_, 2>) -> Result<()>> InplaceOp3 for Closure<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cpu_fwd(
        &self,
        out: &mut CpuStorage,
        out_l: &Layout,
        a: &CpuStorage,
        a_l: &Layout,
        b: &CpuStorage,
        b_l: &Layout,
    ) -> Result<()> {
        self.run(Operands::Cpu((out, out_l), [(a, a_l), (b, b_l)]))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        out: &mut CudaStorage,
        out_l: &Layout,
        a: &CudaStorage,
        a_l: &Layout,
        b: &CudaStorage,
        b_l: &Layout,
    ) -> Result<()> {
        self.run(Operands::Cuda((out, out_l), [(a, a_l), (b, b_l)]))
    }
}
