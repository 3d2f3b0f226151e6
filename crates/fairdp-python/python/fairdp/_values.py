"""The text of a value, and the values of a column.

A record's text depends on its own value and on the declared type of its column, never on other
records. NumPy, pandas and polars do not keep to that: one missing value makes floating-point
numbers of a column of integers, of the categories of a categorical column, and of the ends of
intervals. So values are taken from where they were declared (`.cat.categories`, the column's own
type), one by one where need be.
"""

from __future__ import annotations

import math
import sys
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np

from fairdp._sparse import SparseColumn, sparse

MISSING = ""
"""The text of a missing value."""

_SECONDS = {
    "W": Decimal(604_800),
    "D": Decimal(86_400),
    "h": Decimal(3_600),
    "m": Decimal(60),
    **{unit: Decimal(1).scaleb(-exponent) for unit, exponent in (("s", 0), ("ms", 3), ("us", 6), ("ns", 9), ("ps", 12))},
}


def is_missing(value: Any) -> bool:
    """Whether it is ``None``, ``NaN``, ``NaT`` or pandas' ``NA``."""
    pandas = sys.modules.get("pandas")
    if value is None or (pandas is not None and (value is pandas.NA or value is pandas.NaT)):
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, (float, complex, np.floating, np.complexfloating)) and bool(value != value)


def text(value: Any) -> str:
    """A value as the library knows it.

    Whole numbers have no fraction, and texts no blanks around them. Midnight without a time zone is
    its date, and points in time with a zone are in UTC.
    """
    if is_missing(value):
        return MISSING
    if isinstance(value, (float, np.floating)):
        # Beyond, the digits would say more than the number does.
        is_whole = abs(float(value)) < 1e22 and float(value).is_integer()
        return str(int(value)) if is_whole else str(value)
    if isinstance(value, np.datetime64):
        return _instant(value)
    if isinstance(value, datetime):
        is_local = value.tzinfo is None
        naive = value if is_local else value.astimezone(timezone.utc).replace(tzinfo=None)
        instant = naive.to_datetime64() if hasattr(naive, "to_datetime64") else np.datetime64(naive)
        return _instant(instant, is_local)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (timedelta, np.timedelta64)):
        return _duration(value)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.Interval):
        left, right = "[(" if value.closed_left else "(", "])" if value.closed_right else ")"
        return f"{left[0]}{text(value.left)}, {text(value.right)}{right[0]}"
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace").strip()
    return str(value).strip()


def _instant(value: np.datetime64, is_local: bool = True) -> str:
    found = str(value if np.datetime_data(value)[0] not in ("Y", "M", "W", "D", "h", "m") else value.astype("M8[s]"))
    day, _, time = found.partition("T")
    if "." in time:
        time = time.rstrip("0").rstrip(".")
    if is_local:
        return day if time == "00:00:00" else f"{day} {time}"
    return f"{day} {time}+00:00"


def _duration(value: timedelta | np.timedelta64) -> str:
    as_numpy = value.to_timedelta64() if hasattr(value, "to_timedelta64") else np.timedelta64(value)
    unit, step = np.datetime_data(as_numpy)
    if unit not in _SECONDS:
        return str(as_numpy)
    seconds = _SECONDS[unit] * int(as_numpy.astype(np.int64)) * step
    return f"{seconds.normalize():f} s"


def kind(values: Any) -> str:
    """The kind of values by the type of a column: ``"bool"``, ``"number"``, ``"date"``, ``"time"``
    (durations, and times of a day), ``"text"``, ``"category"``, ``"vector"``, or ``"object"`` if the
    type does not tell.
    """
    dtype = values.dtype if hasattr(values, "dtype") else np.asarray(values).dtype
    name = str(dtype).lower()
    if isinstance(dtype, np.dtype):
        by_numpy = {"b": "bool", "M": "date", "m": "time", "U": "text", "S": "text"}
        return "number" if dtype.kind in "iuf" else by_numpy.get(dtype.kind, "object")
    if name.startswith("sparse"):
        return kind(np.zeros(0, dtype=dtype.subtype))
    for found, begins in (
        ("bool", ("bool",)),
        ("number", ("int", "uint", "float", "double", "halffloat", "decimal")),
        ("date", ("date", "timestamp")),
        ("time", ("time", "duration")),
        ("vector", ("list", "array", "fixed_size_list", "large_list")),
        ("text", ("str", "utf8", "large_string", "binary", "large_binary")),
        ("category", ("category", "categorical", "enum", "dictionary")),
    ):
        # pandas' intervals are no integers.
        if name.startswith(begins) and not name.startswith("interval"):
            return found
    return "object"


def cells(values: Any) -> np.ndarray:
    """A column's values in an array. No value depends on the others."""
    dtype = getattr(values, "dtype", None)
    if isinstance(values, np.ma.MaskedArray):
        return unmasked(values)
    if isinstance(values, SparseColumn):
        return values.dense()
    if isinstance(values, (list, tuple)):
        listed = np.empty(len(values), dtype=object)
        listed[:] = values
        return listed
    if dtype is None or isinstance(dtype, np.dtype):
        return np.asarray(values)
    if hasattr(values, "to_list") and type(values).__module__.startswith("polars"):
        return _of_polars(values)
    name = str(dtype).lower()
    if name.startswith("sparse"):
        return np.asarray(values)
    array: np.ndarray
    if getattr(dtype, "kind", "O") == "f":
        array = values.to_numpy(dtype=dtype.numpy_dtype, na_value=np.nan)
    else:
        array = np.empty(len(values), dtype=object)
        array[:] = list(values)
    return array


def unmasked(values: np.ma.MaskedArray[Any, Any]) -> np.ndarray:
    """A masked array's values, with ``NaN`` or ``None`` for those that are masked."""
    if values.dtype.kind in "fc":
        return np.asarray(values.filled(np.nan))
    if not np.ma.is_masked(values):
        return np.asarray(values.data)
    array = values.data.astype(object)
    array[np.ma.getmaskarray(values)] = None
    return array


def _of_polars(values: Any) -> np.ndarray:
    found = kind(values)
    name = str(values.dtype).lower()
    is_zoned = getattr(values.dtype, "time_zone", None) is not None
    if name.startswith("float") or (found in ("date", "time") and not is_zoned and not name.startswith("time")):
        return np.asarray(values.to_numpy())
    if found in ("bool", "number") and not name.startswith("decimal") and values.null_count() == 0:
        return np.asarray(values.to_numpy())
    array = np.empty(len(values), dtype=object)
    array[:] = values.to_list()
    return array


def texts(values: Any, name: str = "column") -> tuple[list[str], np.ndarray]:
    """The texts that occur, and each record's position among them; the first, empty one stands for
    a missing value.
    """
    categorical = getattr(values, "cat", values) if kind(values) == "category" else None
    if categorical is not None and hasattr(categorical, "codes"):
        levels, inner = texts(categorical.categories, name)
        place = np.concatenate([inner, [0]]).astype(np.uint32)
        return _occurring(levels, place[np.asarray(categorical.codes)])
    column = cells(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(f"`{name}` has the shape {column.shape}, expected one value per record")
    if column.dtype.kind == "O":
        return _by_text([_scalar_text(value, record, name) for record, value in enumerate(column)])
    found, inner = np.unique(column, return_inverse=True)
    # Not `tolist`: of a float32 its own shortest text, 0.1 and not 0.10000000149011612.
    levels, place = _by_text([text(value) for value in found])
    return _occurring(levels, place[inner.reshape(-1)])


def _by_text(every: list[str]) -> tuple[list[str], np.ndarray]:
    levels = [MISSING, *sorted(set(every) - {MISSING}, key=_order)]
    index = {level: place for place, level in enumerate(levels)}
    return levels, np.array([index[level] for level in every], dtype=np.uint32)


def _order(level: str) -> tuple[bool, float, str]:
    """Numbers by size, then texts."""
    try:
        number = float(level)
    except ValueError:
        number = math.inf
    return not math.isfinite(number), number if math.isfinite(number) else 0.0, level


def _occurring(levels: list[str], positions: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Without the levels that no record has, but for the first."""
    used = np.zeros(len(levels), dtype=bool)
    used[positions] = True
    used[0] = True
    place = np.cumsum(used) - 1
    return [level for level, is_used in zip(levels, used, strict=True) if is_used], place[positions].astype(np.uint32)


def _scalar_text(value: Any, record: int, name: str) -> str:
    if isinstance(value, (list, tuple, dict, set, np.ndarray)):
        raise TypeError(f"column `{name}`: record {record} is a {type(value).__name__}, expected one value")
    return text(value)


def numbers(values: Any, name: str, has_missing: bool = False) -> np.ndarray | SparseColumn:
    """Finite numbers in double precision; ``NaN`` for missing ones, where they are declared."""
    column = sparse(values)
    if column is not None and column.dtype.kind in "biuf":
        _refuse_not_finite(column.record_where(np.isnan), column.record_where(np.isinf), name, has_missing)
        return column
    array = cells(values)
    if kind(values) in ("date", "time"):
        raise TypeError(f"column `{name}` holds {values.dtype}; make numbers of it, or drop it")
    try:
        if array.dtype.kind == "O":
            array = np.array([np.nan if is_missing(value) else value for value in array], dtype=np.float64)
        found = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        record = next(record for record, value in enumerate(array) if not _is_number(value))
        raise TypeError(f"column `{name}`: record {record} is {shown(array[record])}, expected a number") from None
    missing, infinite = ([int(record) for record in np.flatnonzero(holds(found))[:1]] for holds in (np.isnan, np.isinf))
    _refuse_not_finite(next(iter(missing), None), next(iter(infinite), None), name, has_missing)
    return found


def handed_over(column: np.ndarray | SparseColumn) -> Any:
    """Numbers as the library takes them."""
    return column.handed_over() if isinstance(column, SparseColumn) else column


def _refuse_not_finite(missing: int | None, infinite: int | None, name: str, has_missing: bool) -> None:
    if infinite is not None:
        raise ValueError(
            f"Input X contains infinity: column `{name}`, record {infinite}; put a constant that is known without the "
            "records in its place, or drop the column"
        )
    if missing is not None and not has_missing:
        raise ValueError(
            f"Input X contains NaN: column `{name}`, record {missing} has no value, and nothing is declared for that; "
            f'declare missing="indicator", or missing={{{name!r}: a number}}'
        )


def components(values: Any, name: str, has_missing: bool = False) -> np.ndarray | SparseColumn:
    """The numbers of one place in the vectors: those that their shortest decimals have, as in a
    file.
    """
    dtype = getattr(values, "dtype", None)
    if isinstance(values, np.ndarray) and dtype == np.float32:
        values = values.astype(str).astype(np.float64)
    elif str(dtype).lower() in ("float", "float32", "float[pyarrow]"):
        values = np.asarray(values.to_numpy(), dtype=np.float32).astype(str).astype(np.float64)
    return numbers(values, name, has_missing)


def lists(values: Any, name: str) -> tuple[list[str], np.ndarray]:
    """Vectors as texts, one for each record; a missing one is empty."""
    array = np.asarray(values) if isinstance(values, np.ndarray) else cells(values)
    if array.dtype.kind == "O" and "float32" in str(getattr(values, "dtype", "")).lower():
        # polars makes doubles of them.
        single = [None if value is None else np.asarray(value, dtype=np.float32) for value in array]
        array = np.empty(len(single), dtype=object)
        array[:] = single
    written = [MISSING if value is None or is_missing(value) else _list(value, record, name) for record, value in enumerate(array)]
    return [MISSING, *written], np.arange(1, len(written) + 1, dtype=np.uint32)


def _list(value: Any, record: int, name: str) -> str:
    if isinstance(value, str):
        return value
    try:
        # Of single precision the shortest decimal, as in files.
        return "[" + ",".join(str(number) if isinstance(number, np.float32) else repr(float(number)) for number in value) + "]"
    except (TypeError, ValueError):
        raise TypeError(f"column `{name}`: record {record} is {shown(value)}, expected a list of numbers") from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def shown(value: Any) -> str:
    """A value for a message: one line, and not a hundred digits."""
    if isinstance(value, (bool, np.bool_)):
        return str(value)
    if isinstance(value, (int, float, np.integer, np.floating)):
        written = str(value)
        try:
            return written if len(written) <= 20 else f"{float(value):g}"
        except OverflowError:
            return f"a number of {len(written)} digits"
    written = repr(value)
    return written if len(written) <= 80 else f"{written[:80]}…"
