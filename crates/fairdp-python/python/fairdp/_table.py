"""A table as the library takes it: columns of numbers or texts, and the configuration that declares
them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairdp import _columns

MISSING = ""


def text(value: Any) -> str:
    """A value as the library knows it: whole numbers without a fraction, texts without blanks
    around them.
    """
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def texts(column: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The texts that occur, and each record's position among them; an empty one stands for a
    missing value.

    A record's text depends on its own value alone: 1 and True are equal, and have two texts.
    """
    missing = _columns.is_missing(column)
    positions = np.zeros(len(column), dtype=np.uint32)
    if missing.all():
        return [MISSING], positions
    present = column[~missing]
    if present.dtype.kind == "O":
        present = np.array([text(value) for value in present], dtype=object)
    found, inner = _columns.levels(present, "column")
    positions[~missing] = inner + 1
    # Of a float32 its own shortest text: 0.1, not 0.10000000149011612.
    values = found if found.dtype.kind == "f" else found.tolist()
    return [MISSING, *map(text, values)], positions


def numbers(column: np.ndarray, name: str) -> np.ndarray:
    """Finite numbers."""
    values = np.ascontiguousarray(column, dtype=np.float64)
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        kind = "NaN" if np.isnan(values[row]) else "infinity"
        raise ValueError(
            f"Input X contains {kind}: column `{name}`, record {row}; put a constant that is known without the records "
            "in its place, or drop the column"
        )
    return values


@dataclass
class Table:
    """Columns and what is declared of them."""

    columns: list[tuple[str, Any]] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)

    def free(self, name: str) -> str:
        """The name, or one like it that no column has."""
        taken = {column for column, _ in self.columns}
        while name in taken:
            name += "_"
        return name

    def add_number(self, name: str, values: np.ndarray, bounds: Any, bins: Any) -> None:
        """A number with declared bounds, with ``"private"`` ones, or with those of the records."""
        entry: dict[str, Any] = {"name": name, "kind": "number"}
        source: dict[str, Any] = {}
        if isinstance(bounds, str):
            entry["bounds"] = bounds
        elif bounds is None:
            low, high = float(values.min()), float(values.max())
            # A constant has no range; any will do.
            entry |= {"low": low, "high": high if high > low else low + max(1.0, abs(low))}
            source = {"from": "data"}
            self.leaks.append(f"bounds of `{name}`")
        else:
            try:
                low, high = (float(bound) for bound in bounds)
            except (TypeError, ValueError):
                expected = 'a pair of numbers, "private", or a mapping from column to one of these'
                raise ValueError(f"bounds of `{name}` are {bounds!r}, expected {expected}") from None
            entry |= {"low": low, "high": high}
        if bins is not None and not isinstance(bounds, str):
            entry["bins"] = int(bins)
        self.columns.append((name, values))
        self.entries.append(section("[[column]]", {**entry, **source}))

    def add_category(self, name: str, column: np.ndarray, values: Sequence[Any] | None) -> None:
        """One of a list of texts; all others share a feature."""
        found, positions = texts(column)
        entry: dict[str, Any] = {"name": name, "kind": "category", "other": True, **self._values(name, found, positions, values)}
        self.columns.append((name, (found, positions)))
        self.entries.append(section("[[column]]", entry))

    def add_group(self, name: str, column: np.ndarray, values: Sequence[Any] | None) -> None:
        """A sensitive feature."""
        found, positions = texts(column)
        entry = {"column": name, **self._values(name, found, positions, values)}
        self.columns.append((name, (found, positions)))
        self.entries.append(section("[[group]]", entry))

    def _values(self, name: str, found: list[str], positions: np.ndarray, values: Sequence[Any] | None) -> dict[str, Any]:
        if values is None:
            self.leaks.append(f"values of `{name}`")
            listed = [value for value in dict.fromkeys(found) if value != MISSING]
            is_missing = np.array([value == MISSING for value in found])
            return {"values": listed, "missing": bool(is_missing[positions].any()), "from": "data"}
        if isinstance(values, (str, bytes)):
            raise TypeError(f"values of `{name}` are {values!r}, expected a list of values")
        given = [value for value in values if not _columns.is_missing(np.array([value], dtype=object))[0]]
        return {"values": [text(value) for value in given], "missing": len(given) < len(values)}


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
    raise TypeError(f"{value!r} is of no kind that a configuration has")
