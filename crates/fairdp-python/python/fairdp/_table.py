"""A table as the library takes it: columns of numbers or texts, and the configuration that declares
them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from fairdp import _images
from fairdp._fairdp import estimator as _rust
from fairdp._values import MISSING, cells, components, handed_over, is_missing, kind, lists, numbers, shown, text, texts

MOST_GROUPS = 100
"""Groups that are taken from the records: of more, each has few."""
_LARGEST = float(np.finfo(np.float32).max)


@dataclass
class Table:
    """Columns, what is declared of them, and what the records say to the person who has them."""

    columns: list[tuple[str, Any]] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def free(self, name: str) -> str:
        """The name, or one like it that no column has."""
        taken = {column for column, _ in self.columns}
        while name in taken:
            name += "_"
        return name

    def add_number(self, name: str, values: Any, bounds: Any, bins: int | None, missing: Any = None) -> None:
        """A number with declared bounds, with ``"private"`` ones, or with bounds of the records;
        ``missing`` is what stands for a missing value, ``"indicator"`` for the lower bound.
        """
        found = numbers(values, name, missing is not None)
        entry: dict[str, Any] = {"name": name, "kind": "number"}
        source: dict[str, Any] = {}
        if isinstance(bounds, str):
            if bounds != "private":
                raise ValueError(f'bounds of `{name}` are {bounds!r}, expected "private" or a pair of numbers')
            entry["bounds"] = bounds
        elif bounds is None:
            low, high = _range(found, name)
            refuse_merged(values, name, low, high)
            # A constant has no range; any will do.
            entry |= {"low": low, "high": high if high > low else low + max(1.0, abs(low))}
            source = {"from": "data"}
            self.leaks.append(f"bounds of `{name}`")
        else:
            low, high = pair(bounds, name)
            entry |= {"low": low, "high": high}
        if bins is not None and not isinstance(bounds, str):
            entry["bins"] = bins
        if missing is not None:
            # Where bounds are released it is set to the lower one.
            least = entry.get("low", -_LARGEST)
            entry["missing"] = least if isinstance(missing, str) else float(missing)
        self.columns.append((name, handed_over(found)))
        self.entries.append(section("[[column]]", {**entry, **source}))

    def add_number_of_texts(
        self, name: str, values: Any, format: Mapping[str, str], bounds: Any, bins: int | None, missing: Any
    ) -> None:
        """A number that is written in a format, with declared bounds or ``"private"`` ones."""
        found, positions = texts(values, name)
        entry: dict[str, Any] = {"name": name, "kind": "number"}
        if isinstance(bounds, str) and bounds == "private":
            least, bins = -_LARGEST, None
            entry["bounds"] = bounds
        elif bounds is None:
            raise ValueError(f"formats: `{name}` has no bounds; declare a pair of numbers in bounds, or \"private\"")
        else:
            least, high = pair(bounds, name)
            entry |= {"low": least, "high": high}
        missing = least if isinstance(missing, str) else missing
        self.columns.append((name, (found, positions)))
        self.entries.append(section("[[column]]", {**entry, "bins": bins, "missing": missing, **format}))

    def add_date(
        self,
        name: str,
        values: Any,
        bounds: Any,
        bins: int | None,
        has_missing: bool,
        format: str | None = None,
        parts: Iterable[str] | None = None,
    ) -> None:
        """Days within declared bounds, within ``"private"`` ones, or within those of the records."""
        found, positions = texts(values, name)
        source: dict[str, Any] = {}
        range_of: dict[str, Any]
        if isinstance(bounds, str) and bounds == "private":
            range_of = {"bounds": bounds}
        elif bounds is None:
            low, high = _days(found[1:], name)
            range_of, source = {"low": low, "high": high, "bins": bins}, {"from": "data"}
            self.leaks.append(f"bounds of `{name}`")
        else:
            low, high = _pair_of_days(bounds, name)
            range_of = {"low": low, "high": high, "bins": bins}
        entry = {"name": name, "kind": "date", **range_of, "missing": has_missing or None, "format": format}
        entry["parts"] = None if parts is None else list(parts)
        self.columns.append((name, (found, positions)))
        self.entries.append(section("[[column]]", {**entry, **source}))

    def add_vector(self, name: str, values: Any, bound: Any, has_missing: bool) -> None:
        """Vectors of a largest norm, or with numbers of a declared range."""
        found, positions = lists(values, name)
        vectors = [re.split(r"[,;\s]+", vector.strip("[] \n")) for vector in found if vector]
        if not vectors:
            raise ValueError(f"column `{name}` has no vector; drop it")
        self.columns.append((name, (found, positions)))
        norms = (float(np.linalg.norm(np.array(vector, dtype=np.float64))) for vector in vectors) if bound is None else ()
        self._declare_vector(name, len(vectors[0]), bound, norms, has_missing)

    def add_vector_of(self, name: str, parts: Sequence[tuple[str, Any]], bound: Any, has_missing: bool) -> None:
        """The same of columns that have one number of each vector; ``name`` ends in ``*``."""
        found = [(part, components(values, part, has_missing)) for part, values in parts]
        self.columns += [(part, handed_over(numbers)) for part, numbers in found]
        norms: Iterable[float] = ()
        if bound is None:
            norms = np.sqrt(sum(cells(numbers) ** 2 for _, numbers in found)).tolist()
        self._declare_vector(name, len(found), bound, norms, has_missing)

    def _declare_vector(self, name: str, length: int, bound: Any, norms: Iterable[float], has_missing: bool) -> None:
        entry: dict[str, Any] = {"name": name, "kind": "vector", "length": length, "missing": has_missing or None}
        if bound is None:
            # A vector of another kind of number is refused when it is read.
            norm = max((norm for norm in norms if 0 < norm < np.inf), default=1.0)
            entry |= {"norm": norm, "from": "data"}
            self.leaks.append(f"norm of `{name}`")
        elif isinstance(bound, (int, float, np.number)) and not isinstance(bound, bool):
            entry["norm"] = float(bound)
        else:
            low, high = pair(bound, name)
            entry |= {"low": low, "high": high}
        self.entries.append(section("[[column]]", entry))

    def add_image(
        self, name: str, columns: Sequence[tuple[str, Any]], declared: Mapping[str, Any], has_missing: bool
    ) -> None:
        """Images of a declared size, in one column or in one for each pixel."""
        self.columns.append((name, _images.of(name, columns, declared)))
        self.entries.append(section("[[column]]", {"name": name, "kind": "image", **declared, "missing": has_missing or None}))

    def add_boolean(self, name: str, values: Any, has_missing: bool) -> None:
        """A truth value: one feature."""
        self.columns.append((name, handed_over(numbers(values, name, has_missing))))
        entry = {"name": name, "kind": "boolean", "missing": True if has_missing else None}
        self.entries.append(section("[[column]]", entry))

    def add_category(self, name: str, column: Any, values: Sequence[Any] | None) -> None:
        """One of a list of values; all others share a feature."""
        found, positions = texts(column, name)
        entry: dict[str, Any] = {"name": name, "kind": "category", "other": True, **self._values(name, found, positions, values)}
        if values is not None:
            self._remark_unmatched(name, column, values, (found, positions))
        self.columns.append((name, (found, positions)))
        self.entries.append(section("[[column]]", entry))

    def add_group(self, name: str, column: Any, values: Sequence[Any] | None, bands: Any, format: Any = None) -> None:
        """A sensitive feature: one group per value, or bands of a number, which may have a format."""
        if bands is not None:
            edges = _edges(bands, name)
            if format is not None and not is_numeric(column):
                self.columns.append((name, texts(column, name)))
                self.entries.append(section("[[group]]", {"column": name, "edges": edges, **format}))
                return
            self.columns.append((name, handed_over(numbers(column, name))))
            self.entries.append(section("[[group]]", {"column": name, "edges": edges}))
            return
        found, positions = texts(column, name)
        n_groups = len(found) - 1
        if values is None and n_groups > MOST_GROUPS:
            raise ValueError(
                f"sensitive_features: `{name}` has {n_groups} values, expected at most {MOST_GROUPS}: every group would be "
                f"named in the release; make bands of numbers by bands={{{name!r}: [edge, …]}}, or list its groups in groups="
            )
        entry = {"column": name, **self._values(name, found, positions, values)}
        self.columns.append((name, (found, positions)))
        self.entries.append(section("[[group]]", entry))

    def _values(self, name: str, found: list[str], positions: np.ndarray, values: Sequence[Any] | None) -> dict[str, Any]:
        if values is None:
            self.leaks.append(f"values of `{name}`")
            return {"values": _rust.distinct(found[1:]), "missing": bool((positions == 0).any()), "from": "data"}
        given = listed(values, f"values of `{name}`")
        present = [value for value in given if not is_missing(value)]
        return {"values": [text(value) for value in present], "missing": len(present) < len(given)}

    def _remark_unmatched(
        self, name: str, column: Any, values: Sequence[Any], found: tuple[list[str], np.ndarray]
    ) -> None:
        """Says which declared values no record has, where records have others in their place."""
        levels, positions = found
        declared = [text(value) for value in values if not is_missing(value)]
        places = _rust.places(name, declared, levels[1:])
        counts = np.bincount(positions, minlength=len(levels))[1:]
        met = {place for place in places if place is not None}
        unmatched = [index for index, place in enumerate(places) if place is None]
        absent = [value for place, value in enumerate(declared) if place not in met]
        n_unmatched = int(sum(counts[index] for index in unmatched))
        if n_unmatched > 0 and absent:
            example = max(unmatched, key=lambda index: counts[index])
            self.remarks.append(
                f"column `{name}`: {n_unmatched:,} of {int(counts.sum()):,} values are none of those declared, such as "
                f"{levels[1 + example]!r}, and no record has {_some(absent)}"
            )
        array = cells(column)
        if array.dtype.kind == "f":
            lost = [value for value in values if isinstance(value, (int, np.integer)) and not _holds(array.dtype, int(value))]
            if lost:
                self.remarks.append(f"column `{name}`: {array.dtype} cannot hold the declared {_some(map(str, lost))}")


def _range(found: Any, name: str) -> tuple[float, float]:
    present = found if not isinstance(found, np.ndarray) else found[~np.isnan(found)]
    if len(present) == 0:
        raise ValueError(f"column `{name}` has no number; drop it")
    return float(present.min()), float(present.max())


def is_numeric(values: Any) -> bool:
    """Whether a column's type is that of numbers: they have no format."""
    return kind(values) in ("bool", "number")


def is_days(bounds: Any) -> bool:
    """Whether bounds are two dates."""
    if isinstance(bounds, (str, bytes)) or not isinstance(bounds, Sequence) or len(bounds) != 2:
        return False
    return all(isinstance(bound, (str, date, np.datetime64)) for bound in bounds)


def _pair_of_days(bounds: Any, name: str) -> tuple[str, str]:
    if not is_days(bounds):
        raise ValueError(f"bounds of `{name}` are {shown(bounds)}, expected a pair of dates, such as ('2020-01-01', '2024-12-31')")
    low, high = (bound if isinstance(bound, str) else text(bound) for bound in bounds)
    return low, high


def _days(found: Sequence[str], name: str) -> tuple[str, str]:
    """The first day, and the one after the last: a point in time is within it."""
    try:
        days = np.array([moment[:10] for moment in found], dtype="datetime64[D]")
    except ValueError:
        raise ValueError(f"bounds of `{name}`: its values have no ISO dates; declare bounds, or drop it") from None
    if len(days) == 0:
        raise ValueError(f"column `{name}` has no date; drop it")
    return str(days.min()), str(days.max() + 1)


def _holds(dtype: np.dtype[Any], value: int) -> bool:
    try:
        return int(dtype.type(value)) == value
    except OverflowError:
        return False


def _some(values: Iterable[str]) -> str:
    every = [repr(value) for value in values]
    return ", ".join(every[:3]) + (f" and {len(every) - 3:,} more" if len(every) > 3 else "")


def listed(values: Any, name: str) -> list[Any]:
    """A list that a person declared."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} are {shown(values)}, expected a list of values")
    return list(values)


def pair(bounds: Any, name: str) -> tuple[float, float]:
    """Two numbers, the lower one first, that single precision has."""
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError, OverflowError):
        expected = 'a pair of numbers, "private", or a mapping from column to one of these'
        raise ValueError(f"bounds of `{name}` are {shown(bounds)}, expected {expected}") from None
    if not -_LARGEST <= low < high <= _LARGEST:
        given = f"({shown(low)}, {shown(high)})"
        raise ValueError(f"bounds of `{name}` are {given}, expected two numbers, the lower one first, from -3.4e38 to 3.4e38")
    return low, high


def refuse_merged(values: Any, name: str, low: float, high: float) -> None:
    """Refuses different numbers that single precision takes for one."""
    with np.errstate(over="ignore"):
        if np.float32(low) < np.float32(high):
            return
    array = cells(values)
    present = array if array.dtype.kind != "O" else [value for value in array if not is_missing(value)]
    is_one = bool(min(present) == max(present))
    # A number of this size was rounded to the next that the type has.
    was_rounded = array.dtype.kind == "f" and abs(low) >= 1 / np.finfo(array.dtype).eps
    if low == high and is_one and not was_rounded:
        return
    raise ValueError(
        f"column `{name}`: single precision cannot tell its numbers apart, which are about {shown(low)}; subtract a "
        "constant that is known without the records, or drop the column"
    )


def _edges(bands: Any, name: str) -> list[float]:
    try:
        edges = [float(edge) for edge in bands]
    except (TypeError, ValueError, OverflowError):
        edges = []
    ascends = all(low < high for low, high in zip(edges, edges[1:]))
    if isinstance(bands, str) or not edges or not ascends or not np.isfinite(edges).all():
        raise ValueError(f"bands of `{name}` are {shown(bands)}, expected one or more finite edges in ascending order")
    return edges


def section(head: str, entries: Mapping[str, Any]) -> str:
    """A section of a configuration; entries of ``None`` are left out."""
    lines = [f"{key} = {toml(value)}" for key, value in entries.items() if value is not None]
    return "\n".join([head, *lines]) + "\n"


def toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml(str(key))} = {toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, Iterable):
        return "[" + ", ".join(toml(inner) for inner in value) + "]"
    raise TypeError(f"{shown(value)} is no number, no text, no list and no mapping")
