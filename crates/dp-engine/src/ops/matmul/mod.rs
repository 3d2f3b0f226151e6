//! Matrix products into an existing tensor.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

mod aliased;
mod dots;
#[cfg(target_arch = "x86_64")]
pub(super) mod few_columns;

use std::ops::Range;

use candle_core::{CpuStorage, Error, Layout, Tensor};
use dots::{dot, dots};
use gemm::Parallelism;

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, destination, dtype, for_float, rows_and_columns, same, source};
use super::in_place::{Operands, ternary};
use crate::error::TensorError;
use crate::hook;
use crate::vector_math::vectorise;

/// A matrix as a product reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// As it is stored.
    Plain,
    /// With rows and columns exchanged.
    Transposed,
}

/// A matrix in a slice: element `(i, j)` is `values[i · row_stride + j · column_stride]`. Rows may
/// overlap.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

/// The shape, and no value.
impl<T> std::fmt::Debug for Matrix<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix({} × {})", self.rows, self.columns)
    }
}

impl<'a, T: Element> Matrix<'a, T> {
    fn new(tensor: (&'a CpuStorage, &Layout), operand: Operand) -> candle_core::Result<Self> {
        let (rows, columns) = rows_and_columns(tensor.1)?;
        let matrix = Self::strided(source::<T>(tensor)?, rows, columns, columns)?;
        Ok(match operand {
            Operand::Plain => matrix,
            Operand::Transposed => matrix.transposed(),
        })
    }

    /// `rows` rows of `columns` adjacent values, each `row_stride` values after the one before.
    ///
    /// # Errors
    /// [`TensorError`] if shapes or number types do not fit, or the device fails.
    pub fn strided(values: &'a [T], rows: usize, columns: usize, row_stride: usize) -> Result<Self, TensorError> {
        let needed = if rows * columns == 0 { 0 } else { (rows - 1) * row_stride + columns };
        if needed > values.len() {
            let error = format!("values of a matrix: expected at least {needed}, got {}", values.len());
            return Err(Error::Msg(error).into());
        }
        Ok(Self { values, rows, columns, row_stride, column_stride: 1 })
    }

    /// Element `(i, j)`.
    #[inline(always)]
    fn at(&self, i: usize, j: usize) -> T {
        self.values[i * self.row_stride + j * self.column_stride]
    }

    /// Some of its rows, at least one.
    fn rows(self, range: Range<usize>) -> Self {
        Self { values: &self.values[range.start * self.row_stride..], rows: range.len(), ..self }
    }

    /// Some of its columns, at least one.
    fn columns(self, range: Range<usize>) -> Self {
        self.transposed().rows(range).transposed()
    }

    /// Whether it is stored by rows, each contiguous. A single row stored by columns, which has both
    /// strides 1, is not.
    fn has_contiguous_rows(&self) -> bool {
        self.column_stride == 1 && self.row_stride >= self.columns
    }

    /// Rows and columns exchanged.
    #[must_use]
    pub fn transposed(self) -> Self {
        let Self { values, rows, columns, row_stride, column_stride } = self;
        Self { values, rows: columns, columns: rows, row_stride: column_stride, column_stride: row_stride }
    }
}

/// Matrices of one shape, each so many values after the one before.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a, T> {
    first: Matrix<'a, T>,
    height: usize,
    stride: usize,
}

impl<'a, T: Element> Stack<'a, T> {
    /// `height` matrices like the first.
    ///
    /// # Errors
    /// [`TensorError`] if the first one's values do not hold the others.
    pub(super) fn new(first: Matrix<'a, T>, height: usize, stride: usize) -> Result<Self, TensorError> {
        let last = height.saturating_sub(1) * stride;
        let Matrix { values, rows, columns, row_stride, column_stride } = first;
        let ends = rows * columns == 0 || last + (rows - 1) * row_stride + (columns - 1) * column_stride < values.len();
        if !ends {
            return Err(Error::Msg(format!("{height} matrices, {stride} values apart: got {}", values.len())).into());
        }
        Ok(Self { first, height, stride })
    }

    fn matrices(self) -> impl Iterator<Item = Matrix<'a, T>> {
        let values = self.first.values;
        (0..self.height).map(move |i| Matrix { values: &values[i * self.stride..], ..self.first })
    }
}

/// [`product`] of all matrices of a stack, whose results follow each other.
///
/// # Errors
/// As [`product`].
pub(super) fn product_of_stack<T: Element>(
    dst: &mut [T],
    dst_stride: usize,
    lhs: Stack<'_, T>,
    rhs: Matrix<'_, T>,
    accumulate: bool,
) -> Result<(), TensorError> {
    let Matrix { rows, columns, .. } = lhs.first;
    let is_own = hook::ask(|other| other.left_factor(rows)).is_none();
    let is_chain = (3..=DEPTH).contains(&columns) && rhs.columns > 1;
    if is_own && is_chain && T::few_columns(dst, dst_stride, lhs, rhs, accumulate) {
        return Ok(());
    }
    for (i, lhs) in lhs.matrices().enumerate() {
        product(&mut dst[i * rows * dst_stride..], dst_stride, lhs, rhs, accumulate)?;
    }
    Ok(())
}

/// Longest inner dimension of one call of `gemm`: up to here it never splits it, whatever the other
/// two are.
const DEPTH: usize = 512;

/// Columns of a product that is summed in lanes, at most, and its inner dimension, at least.
const DOTS: usize = 16;
const LONG: usize = 256;

/// `dst = lhs · rhs` on one thread, or `dst += lhs · rhs` to `accumulate`; row `i` of `dst` starts
/// at `i · dst_stride`.
///
/// **Guarantee.** A row of `dst` depends on the row of `lhs`, on `rhs` and on what was in `dst`,
/// bit for bit: neither on the number of rows nor on its place among them. What a record
/// contributes to a private sum would else depend on who else was drawn.
///
/// `gemm` alone does not promise that. It has four ways to a product, and the shape decides which:
///
/// | shape | its way | here |
/// |---|---|---|
/// | at most 256 results, both sources contiguous along the inner dimension | sums in lanes | never: the rows are copied so that they are contiguous the other way |
/// | inner dimension of 1 or 2 | outer products | `thin_depth` |
/// | one row or one column | matrix times vector | `thin_column`; one row is worked on as two |
/// | few columns and a long inner dimension, along which both sources are contiguous | the last | `dots` |
/// | others | a chain of fused additions for each result, begun anew every so often along the inner dimension | at most `DEPTH` at a time, which is never split again |
///
/// The last way adds `a_k b_k` in the order of `k`, in whichever tile and lane a result lies. So do
/// our own kernels for few columns; columns that are aliased are copied first. The version of `gemm`
/// is pinned, and a test compares rows alone with rows in company over all ways.
///
/// # Errors
/// [`TensorError`] if shapes or number types do not fit, or the device fails.
pub fn product<T: Element>(
    dst: &mut [T],
    dst_stride: usize,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    accumulate: bool,
) -> Result<(), TensorError> {
    let (m, n, k) = (lhs.rows, rhs.columns, lhs.columns);
    same("inner dimension of a matrix product", k, rhs.rows)?;
    if m * n == 0 {
        return Ok(());
    }
    if dst_stride < n || (m - 1) * dst_stride + n > dst.len() {
        let got = format!("{} values in rows {dst_stride} apart", dst.len());
        return Err(Error::Msg(format!("result of a matrix product: expected [{m}, {n}], got {got}")).into());
    }
    let other: Vec<T>;
    let lhs = match hook::ask(|other| other.left_factor(m)) {
        Some(factor) => {
            other = (0..m * k).map(|at| lhs.at(at / k, at % k) * T::from_double(factor)).collect();
            Matrix::strided(&other, m, k, k)?
        }
        None => lhs,
    };
    if n == 1 {
        thin_column(dst, dst_stride, lhs, rhs, accumulate);
        return Ok(());
    }
    if k <= 2 {
        thin_depth(dst, dst_stride, lhs, rhs, accumulate);
        return Ok(());
    }
    if n <= DOTS && k >= LONG && lhs.has_contiguous_rows() && rhs.row_stride == 1 {
        dots(dst, dst_stride, lhs, rhs, accumulate);
        return Ok(());
    }
    let n_parts = k.div_ceil(DEPTH);
    for part in 0..n_parts {
        // The parts have nearly equal lengths, so that no length is 1 or 2.
        let range = part * k / n_parts..(part + 1) * k / n_parts;
        let (lhs, rhs) = (lhs.columns(range.clone()), rhs.rows(range));
        chain(dst, dst_stride, lhs, rhs, accumulate || part > 0);
    }
    Ok(())
}

/// A product of at least two columns and an inner dimension of 3 to `DEPTH`, by `gemm`'s chain of
/// additions.
fn chain<T: Element>(dst: &mut [T], dst_stride: usize, lhs: Matrix<'_, T>, rhs: Matrix<'_, T>, accumulate: bool) {
    /// Results up to which `gemm` sums in lanes.
    const FEW: usize = 256;
    if T::few_columns(dst, dst_stride, Stack { first: lhs, height: 1, stride: 0 }, rhs, accumulate) {
        return;
    }
    let (m, n, k) = (lhs.rows, rhs.columns, lhs.columns);
    let in_lanes = m * n <= FEW && lhs.column_stride == 1 && rhs.row_stride == 1;
    if m > 1 && !in_lanes {
        if !aliased::product(dst, dst_stride, lhs, rhs, accumulate) {
            call(dst, dst_stride, lhs, rhs, accumulate);
        }
        return;
    }
    let rows = m.max(2);
    let mut by_column = vec![T::ZERO; rows * k];
    for (depth, column) in by_column.chunks_exact_mut(rows).enumerate() {
        for (row, value) in column.iter_mut().take(m).enumerate() {
            *value = lhs.at(row, depth);
        }
    }
    let lhs = Matrix { values: &by_column, rows, columns: k, row_stride: 1, column_stride: rows };
    if m > 1 {
        return call(dst, dst_stride, lhs, rhs, accumulate);
    }
    let mut pair = vec![T::ZERO; 2 * n];
    pair[..n].copy_from_slice(&dst[..n]);
    call(&mut pair, n, lhs, rhs, accumulate);
    dst[..n].copy_from_slice(&pair[..n]);
}

/// One call of `gemm`. The destination has room for the result.
fn call<T: Element>(dst: &mut [T], dst_stride: usize, lhs: Matrix<'_, T>, rhs: Matrix<'_, T>, accumulate: bool) {
    #[expect(unsafe_code, reason = "gemm takes pointers")]
    // SAFETY: the sources are slices that were checked to hold their shapes when the matrices were
    // made, the destination was checked to hold the result, and its rows do not overlap; it is
    // borrowed mutably, so it overlaps neither source.
    unsafe {
        gemm::gemm(
            lhs.rows,
            rhs.columns,
            lhs.columns,
            dst.as_mut_ptr(),
            1,
            dst_stride.cast_signed(),
            accumulate,
            lhs.values.as_ptr(),
            lhs.column_stride.cast_signed(),
            lhs.row_stride.cast_signed(),
            rhs.values.as_ptr(),
            rhs.column_stride.cast_signed(),
            rhs.row_stride.cast_signed(),
            T::ONE,
            T::ONE,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// One column: each result is a product of two vectors.
fn thin_column<T: Element>(dst: &mut [T], dst_stride: usize, lhs: Matrix<'_, T>, rhs: Matrix<'_, T>, accumulate: bool) {
    let k = lhs.columns;
    let column: Vec<T> = (0..k).map(|depth| rhs.at(depth, 0)).collect();
    let add = |out: &mut T, value: T| *out = if accumulate { *out + value } else { value };
    if lhs.has_contiguous_rows() {
        vectorise(
            #[inline(always)]
            || {
                for (i, out) in dst.iter_mut().step_by(dst_stride).take(lhs.rows).enumerate() {
                    let row = &lhs.values[i * lhs.row_stride..][..k];
                    add(out, dot(row, &column));
                }
            },
        );
        return;
    }
    let mut sums = vec![T::ZERO; lhs.rows];
    vectorise(
        #[inline(always)]
        || {
            for (depth, &factor) in column.iter().enumerate() {
                let values = lhs.values[depth * lhs.column_stride..].iter().step_by(lhs.row_stride);
                for (sum, &value) in sums.iter_mut().zip(values) {
                    *sum += value * factor;
                }
            }
        },
    );
    dst.iter_mut().step_by(dst_stride).zip(sums).for_each(|(out, sum)| add(out, sum));
}

/// `dst = rowᵀ · rhs` or `dst += rowᵀ · rhs` for one row of factors: a sum over many rows of `rhs`,
/// which are not results of their own. Several rows are added at a time.
fn sum_rows<T: Element>(dst: &mut [T], factors: Matrix<'_, T>, rhs: Matrix<'_, T>, accumulate: bool) {
    let n = rhs.columns;
    if !accumulate {
        dst[..n].fill(T::ZERO);
    }
    vectorise(
        #[inline(always)]
        || {
            let dst = &mut dst[..n];
            let row = |depth: usize| &rhs.values[depth * rhs.row_stride..][..n];
            let mut depth = 0;
            while depth + 4 <= rhs.rows {
                let factors: [T; 4] = std::array::from_fn(|i| factors.at(0, depth + i));
                let rows = row(depth).iter().zip(row(depth + 1)).zip(row(depth + 2).iter().zip(row(depth + 3)));
                for (out, ((&a, &b), (&c, &d))) in dst.iter_mut().zip(rows) {
                    *out += (factors[0] * a + factors[1] * b) + (factors[2] * c + factors[3] * d);
                }
                depth += 4;
            }
            for depth in depth..rhs.rows {
                let factor = factors.at(0, depth);
                for (out, &a) in dst.iter_mut().zip(row(depth)) {
                    *out += factor * a;
                }
            }
        },
    );
}

/// An inner dimension of at most two.
fn thin_depth<T: Element>(dst: &mut [T], dst_stride: usize, lhs: Matrix<'_, T>, rhs: Matrix<'_, T>, accumulate: bool) {
    let n = rhs.columns;
    let row_of = |depth: usize| -> Vec<T> { (0..n).map(|j| rhs.at(depth, j)).collect() };
    let rows: Vec<Vec<T>> = (0..lhs.columns).map(row_of).collect();
    vectorise(
        #[inline(always)]
        || {
            for (i, out) in dst.chunks_mut(dst_stride).take(lhs.rows).enumerate() {
                let out = &mut out[..n];
                match rows.as_slice() {
                    [first] => {
                        let a = lhs.at(i, 0);
                        for (out, &b) in out.iter_mut().zip(first) {
                            *out = if accumulate { *out + a * b } else { a * b };
                        }
                    }
                    [first, second] => {
                        let (a, c) = (lhs.at(i, 0), lhs.at(i, 1));
                        for ((out, &b), &d) in out.iter_mut().zip(first).zip(second) {
                            let sum = a * b + c * d;
                            *out = if accumulate { *out + sum } else { sum };
                        }
                    }
                    _ if accumulate => {}
                    _ => out.fill(T::ZERO),
                }
            }
        },
    );
}

/// `dst = lhs · rhs`, or `dst += lhs · rhs`, each source read as it says.
///
/// # Errors
/// [`TensorError`] if shapes or number types do not fit, or the device fails.
pub fn matmul(
    dst: &Tensor,
    (lhs, lhs_operand): (&Tensor, Operand),
    (rhs, rhs_operand): (&Tensor, Operand),
    accumulate: bool,
) -> Result<(), TensorError> {
    Ok(ternary("matmul", dst, lhs, rhs, |operands| match operands {
        Operands::Cpu(dst, [lhs, rhs]) => for_float!(dtype(dst.0), "matmul", T => {
            let lhs = Matrix::new(lhs, lhs_operand)?;
            let rhs = Matrix::new(rhs, rhs_operand)?;
            let dst = destination::<T>(dst)?;
            same("elements of a matrix product", lhs.rows * rhs.columns, dst.len())?;
            same("inner dimension of a matrix product", lhs.columns, rhs.rows)?;
            if lhs.rows == 1 && (lhs_operand, rhs_operand) == (Operand::Transposed, Operand::Plain) {
                // A sum over records, not a record's own result.
                sum_rows(dst, lhs, rhs, accumulate);
                return Ok(());
            }
            Ok(product(dst, rhs.columns, lhs, rhs, accumulate)?)
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [lhs, rhs]) => cuda::matmul(dst, (lhs, lhs_operand), (rhs, rhs_operand), accumulate),
    })?)
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::*;

    fn values<T: Element>(n: usize, seed: u64) -> Vec<T> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        (0..n).map(|_| T::from_double(rng.random_range(-1.0..1.0))).collect()
    }

    /// The rows of a product of `m` rows, sources stored in the given way.
    fn rows<T: Element>(lhs: &[T], rhs: &[T], [m, n, k]: [usize; 3], [by_row, plain]: [bool; 2], add: bool) -> Vec<T> {
        let columns: Vec<T> = (0..k * m).map(|i| lhs[i % m * k + i / m]).collect();
        let lhs = if by_row {
            Matrix::strided(lhs, m, k, k).unwrap()
        } else {
            Matrix::strided(&columns, k, m, m).unwrap().transposed()
        };
        let rhs = if plain {
            Matrix::strided(rhs, k, n, n).unwrap()
        } else {
            Matrix::strided(rhs, n, k, k).unwrap().transposed()
        };
        let mut dst = vec![T::from_double(0.3); m * n];
        product(&mut dst, n, lhs, rhs, add).unwrap();
        dst
    }

    fn a_row_depends_on_itself_alone<T: Element>() {
        const M: usize = 300;
        for k in [1, 2, 3, 7, 20, 100, 511, 512, 513, 600, 1100] {
            for n in [1, 2, 3, 5, 8, 10, 17, 64, 100] {
                let (lhs, rhs) = (values::<T>(M * k, 1), values::<T>(n * k, 2));
                for stored in [[true, true], [true, false], [false, true], [false, false]] {
                    for add in [false, true] {
                        let whole = rows(&lhs, &rhs, [M, n, k], stored, add);
                        for m in [1, 2, 3, 5, 26, 27, 33, 65, 129, 257] {
                            for first in [0, 1, M - m] {
                                let some = rows(&lhs[first * k..(first + m) * k], &rhs, [m, n, k], stored, add);
                                let expected = &whole[first * n..(first + m) * n];
                                assert!(some == expected, "{m} of {M} rows from {first}, n {n}, k {k}, {stored:?}");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_of_a_product_depends_on_itself_alone() {
        a_row_depends_on_itself_alone::<f32>();
        a_row_depends_on_itself_alone::<f64>();
    }

    /// Kernels for few columns add in the same order as `gemm`.
    #[test]
    fn a_column_does_not_depend_on_the_number_of_columns() {
        let (m, n, k) = (40, 80, 300);
        let (lhs, rhs) = (values::<f32>(m * k, 3), values::<f32>(k * n, 4));
        let (lhs, rhs) = (Matrix::strided(&lhs, m, k, k).unwrap(), Matrix::strided(&rhs, k, n, n).unwrap());
        let mut whole = vec![0.0; m * n];
        product(&mut whole, n, lhs, rhs, false).unwrap();
        for range in [0..16, 3..35, 10..74] {
            let mut some = vec![0.0; m * range.len()];
            product(&mut some, range.len(), lhs, rhs.columns(range.clone()), false).unwrap();
            let mut rows = whole.chunks_exact(n).zip(some.chunks_exact(range.len()));
            assert!(rows.all(|(all, some)| all[range.clone()] == *some), "{range:?}");
        }
    }

    #[test]
    fn products_are_right_in_every_way() {
        for k in [1, 2, 3, 50, 700] {
            for n in [1, 2, 9] {
                for m in [1, 2, 40] {
                    let (lhs, rhs) = (values::<f64>(m * k, 1), values::<f64>(n * k, 2));
                    for stored in [[true, true], [true, false], [false, true], [false, false]] {
                        let got = rows(&lhs, &rhs, [m, n, k], stored, true);
                        for (place, value) in got.iter().enumerate() {
                            let (i, j) = (place / n, place % n);
                            let at = |d: usize| if stored[1] { rhs[d * n + j] } else { rhs[j * k + d] };
                            let exact = 0.3 + (0..k).map(|d| lhs[i * k + d] * at(d)).sum::<f64>();
                            assert!((value - exact).abs() < 1e-12, "{value} for {exact}: {m} {n} {k} {stored:?}");
                        }
                    }
                }
            }
        }
    }
}
