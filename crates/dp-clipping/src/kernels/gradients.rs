//! Per-sample gradients in memory.

use std::ops::Range;

use ndarray::{ArrayView2, Axis};

use super::GradientFloat;
use crate::ClipError;

/// Per-sample gradients `[batch, params]`, borrowed row by row; each row is contiguous.
///
/// ```
/// use dp_clipping::kernels::Gradients;
/// let gradients = Gradients::from_slice(&[3.0_f32, 4.0, 0.0, 1.0], 2)?;
/// assert_eq!((gradients.n_records(), gradients.n_params()), (2, 2));
/// assert_eq!(gradients.row(1), Some(&[0.0, 1.0][..]));
/// assert_eq!(gradients.row(2), None);
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
#[derive(Clone)]
pub struct Gradients<'a, T> {
    rows: Vec<&'a [T]>,
    n_params: usize,
}

/// Without the gradients, which are private.
impl<T> std::fmt::Debug for Gradients<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (n_records, n_params) = (self.rows.len(), self.n_params);
        f.debug_struct("Gradients").field("n_records", &n_records).field("n_params", &n_params).finish_non_exhaustive()
    }
}

impl<'a, T: GradientFloat> Gradients<'a, T> {
    /// Gradients in one row-major slice; no rows if it is empty.
    ///
    /// # Errors
    /// [`ClipError::InvalidParameter`] if `n_params` is 0 or does not divide the length.
    pub fn from_slice(data: &'a [T], n_params: usize) -> Result<Self, ClipError> {
        if n_params == 0 {
            return Err(ClipError::invalid("n_params", 0, "at least 1"));
        }
        if !data.len().is_multiple_of(n_params) {
            let expected = format!("a multiple of n_params, {n_params}");
            return Err(ClipError::invalid("length of gradients", data.len(), expected));
        }
        Ok(Self { rows: data.chunks_exact(n_params).collect(), n_params })
    }

    /// Gradients whose rows lie apart in memory.
    ///
    /// # Errors
    /// [`ClipError::InvalidParameter`] if a row does not have `n_params` entries.
    pub fn from_rows(rows: impl IntoIterator<Item = &'a [T]>, n_params: usize) -> Result<Self, ClipError> {
        let rows: Vec<&[T]> = rows.into_iter().collect();
        match rows.iter().find(|row| row.len() != n_params) {
            Some(row) => Err(ClipError::invalid("length of a row", row.len(), format!("n_params, {n_params}"))),
            None => Ok(Self { rows, n_params }),
        }
    }

    /// Gradients in an ndarray view whose rows are contiguous; a view of some columns of a larger
    /// array is fine.
    ///
    /// # Errors
    /// [`ClipError::NotRowMajor`] if a row is not contiguous.
    ///
    /// ```
    /// use dp_clipping::kernels::{Gradients, KernelExecution, norms};
    /// use dp_clipping::ndarray;
    /// let array = ndarray::array![[3.0, 4.0, 9.0], [0.0, 1.0, 9.0]];
    /// let gradients = Gradients::from_view(array.slice(ndarray::s![.., ..2]))?;
    /// assert_eq!(norms(&gradients, &KernelExecution::default()), [5.0, 1.0]);
    /// # Ok::<(), dp_clipping::ClipError>(())
    /// ```
    pub fn from_view(view: impl Into<ArrayView2<'a, T>>) -> Result<Self, ClipError> {
        let view = view.into();
        let n_params = view.ncols();
        let rows: Option<Vec<&[T]>> =
            (0..view.nrows()).map(|row| view.index_axis_move(Axis(0), row).to_slice()).collect();
        rows.map(|rows| Self { rows, n_params }).ok_or(ClipError::NotRowMajor)
    }

    /// The same records restricted to some parameters, for example one layer's.
    ///
    /// # Errors
    /// [`ClipError::InvalidParameter`] if the range is not within the parameters.
    pub fn columns(&self, range: Range<usize>) -> Result<Self, ClipError> {
        if range.start > range.end || range.end > self.n_params {
            let expected = format!("an increasing range within 0..{}", self.n_params);
            return Err(ClipError::invalid("columns", format!("{range:?}"), expected));
        }
        Ok(Self { rows: self.rows.iter().map(|row| &row[range.clone()]).collect(), n_params: range.len() })
    }

    /// Number of records.
    pub fn n_records(&self) -> usize {
        self.rows.len()
    }

    /// Number of parameters.
    pub fn n_params(&self) -> usize {
        self.n_params
    }

    /// Gradient of one record; `None` if there is no such record.
    pub fn row(&self, record: usize) -> Option<&'a [T]> {
        self.rows.get(record).copied()
    }

    pub(super) fn rows(&self) -> &[&'a [T]] {
        &self.rows
    }
}
