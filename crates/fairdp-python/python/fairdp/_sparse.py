"""Columns of which most values are the same number, without a dense copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class SparseColumn:
    """``n`` numbers: ``values`` at ``rows``, ascending, and ``fill`` everywhere else."""

    n: int
    fill: float
    rows: np.ndarray
    values: np.ndarray

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its values."""
        return self.values.dtype

    def __len__(self) -> int:
        return self.n

    def _every(self) -> np.ndarray:
        """Each different value at least once."""
        return self.values if len(self.values) == self.n else np.append(self.values, self.fill)

    def min(self) -> float:
        """The smallest number."""
        return float(np.nanmin(self._every()))

    def max(self) -> float:
        """The largest number."""
        return float(np.nanmax(self._every()))

    def record_where(self, holds: Any) -> int | None:
        """The first record whose number has a property."""
        found = np.flatnonzero(holds(self.values))
        records = [int(self.rows[found[0]])] if len(found) else []
        if len(self.rows) < self.n and bool(holds(np.asarray([self.fill]))[0]):
            others = np.setdiff1d(np.arange(min(self.n, len(self.rows) + 1)), self.rows)
            records.append(int(others[0]))
        return min(records, default=None)

    def dense(self) -> np.ndarray:
        """All numbers."""
        found = np.full(self.n, self.fill, dtype=np.result_type(self.values, type(self.fill)))
        found[self.rows] = self.values
        return found

    def handed_over(self) -> tuple[int, float, np.ndarray, np.ndarray]:
        """As the library takes it."""
        return self.n, float(self.fill), self.rows.astype(np.uint32), self.values.astype(np.float64)


def sparse(values: Any) -> SparseColumn | None:
    """A sparse pandas column, or one that is sparse already; ``None`` for others."""
    if isinstance(values, SparseColumn):
        return values
    dtype = getattr(values, "dtype", None)
    if dtype is None or not str(dtype).lower().startswith("sparse"):
        return None
    array = getattr(values, "array", values)
    rows = array.sp_index.to_int_index().indices
    return SparseColumn(len(array), array.fill_value, np.asarray(rows), np.asarray(array.sp_values))


def matrix_columns(matrix: Any) -> list[SparseColumn]:
    """The columns of a matrix or an array of ``scipy.sparse``."""
    by_column = matrix.tocsc(copy=True)
    by_column.sum_duplicates()
    ends = by_column.indptr
    n, zero = by_column.shape[0], by_column.dtype.type(0)
    parts = (slice(start, end) for start, end in zip(ends[:-1], ends[1:]))
    return [SparseColumn(n, zero, by_column.indices[part], by_column.data[part]) for part in parts]
