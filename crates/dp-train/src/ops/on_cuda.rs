//! How an operation gets its CUDA path.

/// The method `cuda_fwd` of a candle in-place operation, from a function in `ops/cuda/`. Operands come as pairs of storage and layout.
/// Without the feature `cuda` there is no such method, and nothing is compiled.
macro_rules! on_cuda {
    (|$op:ident, $dst:ident| $body:expr) => {
        #[cfg(feature = "cuda")]
        fn cuda_fwd(&$op, dst: &mut candle_core::CudaStorage, dst_l: &candle_core::Layout) -> candle_core::Result<()> {
            use $crate::ops::cuda;
            let $dst = (dst, dst_l);
            $body
        }
    };
    (|$op:ident, $dst:ident, $src:ident| $body:expr) => {
        #[cfg(feature = "cuda")]
        fn cuda_fwd(
            &$op,
            dst: &mut candle_core::CudaStorage,
            dst_l: &candle_core::Layout,
            src: &candle_core::CudaStorage,
            src_l: &candle_core::Layout,
        ) -> candle_core::Result<()> {
            use $crate::ops::cuda;
            let ($dst, $src) = ((dst, dst_l), (src, src_l));
            $body
        }
    };
    (|$op:ident, $dst:ident, $first:ident, $second:ident| $body:expr) => {
        #[cfg(feature = "cuda")]
        fn cuda_fwd(
            &$op,
            dst: &mut candle_core::CudaStorage,
            dst_l: &candle_core::Layout,
            first: &candle_core::CudaStorage,
            first_l: &candle_core::Layout,
            second: &candle_core::CudaStorage,
            second_l: &candle_core::Layout,
        ) -> candle_core::Result<()> {
            use $crate::ops::cuda;
            let ($dst, $first, $second) = ((dst, dst_l), (first, first_l), (second, second_l));
            $body
        }
    };
}
pub(super) use on_cuda;
