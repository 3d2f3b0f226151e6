"""Arrays, pandas and polars in; the same kind of frame out. Neither pandas nor polars is imported
here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def library(*values: Any) -> str:
    """The first of ``pandas`` and ``polars`` that one of the values belongs to, else ``numpy``."""
    for value in values:
        for name in ("pandas", "polars"):
            module = sys.modules.get(name)
            if module is not None and isinstance(value, (module.DataFrame, module.Series)):
                return name
    return "numpy"


def vector(values: Any, name: str) -> np.ndarray:
    """One value per record. Points in time are rounded down to microseconds, which have texts."""
    array = _array(values)
    if array.dtype.kind in "mM":
        array = array.astype(f"{array.dtype.kind}8[us]")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"`{name}` has the shape {array.shape}, expected one value per record")
    return array


def _array(values: Any) -> np.ndarray:
    """As NumPy makes it, but for whole numbers with missing ones: floating point would round them."""
    kind = library(values)
    if kind != "numpy" and str(getattr(values, "dtype", "")).lower().startswith(("int", "uint")):
        if kind == "pandas" and values.isna().any():
            return np.asarray(values.to_numpy(dtype=object))
        if kind == "polars" and values.null_count() > 0:
            return np.array(values.to_list(), dtype=object)
    return np.asarray(values)


def is_missing(array: np.ndarray) -> np.ndarray:
    """Whether each value is ``None``, ``NaN`` or ``NaT``."""
    if array.dtype.kind in "fcmM":
        missing: np.ndarray = np.isnan(array) if array.dtype.kind in "fc" else np.isnat(array)
        return missing
    if array.dtype.kind != "O":
        return np.zeros(array.shape, dtype=bool)
    return np.array([value is None or value is _pandas_na() or value != value for value in array], dtype=bool)


def _pandas_na() -> Any:
    pandas = sys.modules.get("pandas")
    return pandas.NA if pandas is not None else None


def named(values: Any, base_name: str, name: str) -> list[tuple[str, Any]]:
    """Named columns of a frame, a mapping, a series or an array; unnamed ones are ``base_name``
    with their number.
    """
    if values is None:
        return []
    if isinstance(values, Mapping):
        return [(str(key), column) for key, column in values.items()]
    if library(values) != "numpy" and hasattr(values, "columns"):
        return [(str(column), values[column]) for column in values.columns]
    if library(values) != "numpy":
        return [(str(values.name or f"{base_name}_0"), values)]
    if hasattr(values, "categories") and hasattr(values, "codes"):
        return [(f"{base_name}_0", values)]
    array = np.asarray(values, dtype=object if isinstance(values, list) else None)
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2:
        raise ValueError(f"`{name}` has the shape {array.shape}, expected one column or several")
    return [(f"{base_name}_{number}", array[:, number]) for number in range(array.shape[1])]


def is_part(column: str, name: str) -> bool:
    """Whether a column is one of those that an entry such as ``x*`` names."""
    return name.endswith("*") and column.startswith(name[:-1]) and column[len(name) - 1 :].isdecimal()


def of_input(columns: Sequence[tuple[str, Any]], name: str) -> list[tuple[str, Any]]:
    """The columns that one entry is about: that of its name, or those of ``x*`` by their numbers."""
    parts = [(column, values) for column, values in columns if is_part(column, name)]
    return sorted(parts, key=lambda part: int(part[0][len(name) - 1 :])) or [found for found in columns if found[0] == name]


def columns(values: Any, base_name: str, name: str) -> list[tuple[str, np.ndarray]]:
    """The same, in arrays."""
    return [(column, vector(found, column)) for column, found in named(values, base_name, name)]


def levels(column: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, sorted, and each record's position among them."""
    if is_missing(column).any():
        row = int(np.flatnonzero(is_missing(column))[0])
        raise ValueError(f"`{name}`: record {row} has no value; make missing values a group of their own, or leave them out")
    try:
        found, positions = np.unique(column, return_inverse=True)
    except TypeError:
        # Values of different types have no order; that of their texts is as good.
        found = np.array(sorted(set(column.tolist()), key=lambda value: (type(value).__name__, str(value))), dtype=object)
        index = {value: position for position, value in enumerate(found)}
        positions = np.array([index[value] for value in column.tolist()])
    return found, positions.reshape(-1).astype(np.int64)


def frame(kind: str, keys: Sequence[tuple[str, Any]], values: Mapping[str, Any]) -> Any:
    """Key columns and values: a pandas frame indexed by the keys, a polars frame, or a dictionary
    of arrays.
    """
    if kind == "pandas":
        import pandas

        if not keys:
            return pandas.DataFrame(dict(values))
        if len(keys) == 1:
            index: Any = pandas.Index(keys[0][1], name=keys[0][0])
        else:
            index = pandas.MultiIndex.from_arrays([column for _, column in keys], names=[name for name, _ in keys])
        return pandas.DataFrame(dict(values), index=index)
    whole = {**dict(keys), **values}
    if kind == "polars":
        import polars

        return polars.DataFrame({name: _plain(column) for name, column in whole.items()})
    return {name: np.asarray(column) for name, column in whole.items()}


def row(kind: str, values: Mapping[str, Any]) -> Any:
    """One value per name: a pandas series, a polars frame of one row, or a dictionary."""
    if kind == "pandas":
        import pandas

        return pandas.Series(dict(values))
    if kind == "polars":
        import polars

        return polars.DataFrame({name: [value] for name, value in values.items()})
    return dict(values)


def _plain(column: Any) -> Any:
    array = np.asarray(column)
    return array.tolist() if array.dtype.kind == "O" else array
