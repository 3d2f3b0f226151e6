"""Answers of a released model for columns in memory."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairdp import _columns, _images
from fairdp._fairdp import FairDPError
from fairdp._fairdp import estimator as _rust
from fairdp._leaks import UnmatchedValuesWarning
from fairdp._sparse import sparse
from fairdp._table import is_numeric
from fairdp._values import components, handed_over, kind, lists, numbers, shown, texts

Reasons = list[list[tuple[str, float]]]


class Answers:
    """A model from the files of its release.

    ``sensitive`` are the sensitive features, each with the name of its column in the release.
    """

    def __init__(self, release: Mapping[str, bytes], sensitive: Sequence[tuple[str, str]] | None = None) -> None:
        pipeline = release["pipeline.json"]
        self._model = _rust.Model(pipeline, release["model.safetensors"])
        self._schema = json.loads(pipeline)["schema"]
        groups = [group["column"] for group in self._schema["groups"]]
        self._sensitive = list(sensitive) if sensitive is not None else [(name, name) for name in groups]

    @property
    def inputs(self) -> list[str]:
        """Names of the columns that it reads."""
        return [name for name, column in self._schema["columns"] if column["kind"] != "dropped"]

    @property
    def classes(self) -> list[str]:
        """The classes, in the order of the probabilities."""
        return self._model.classes()

    def of(
        self, columns: Sequence[tuple[str, Any]], sensitive_features: Any, *, for_decisions: bool, stacklevel: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The class of each record, as a position, and the probabilities of all. Warns of values that
        the model does not know.
        """
        table = self._table(columns, sensitive_features, for_decisions)
        classes, probabilities, remarks = self._model.answers(table)
        for remark in remarks:
            warnings.warn(remark, UnmatchedValuesWarning, stacklevel=stacklevel + 1)
        return classes, probabilities

    @property
    def range(self) -> tuple[float, float] | None:
        """The range of the number that it predicts; none of classes."""
        number = self._schema["label"].get("number")
        return None if number is None else (float(number["low"]), float(number["high"]))

    def numbers(self, columns: Sequence[tuple[str, Any]], sensitive_features: Any, *, stacklevel: int) -> np.ndarray:
        """The number of each record. Warns of values that the model does not know."""
        numbers, remarks = self._model.numbers(self._table(columns, sensitive_features, for_decisions=True))
        for remark in remarks:
            warnings.warn(remark, UnmatchedValuesWarning, stacklevel=stacklevel + 1)
        return numbers

    def reasons(self, columns: Sequence[tuple[str, Any]], sensitive_features: Any, most: int) -> Reasons:
        """For each record the columns that moved its answer most, with sign."""
        if not self._model.is_additive():
            raise FairDPError("explain: expected an additive model: in a network what a column does depends on the others")
        n_columns = len(self.inputs)
        if isinstance(most, bool) or not isinstance(most, (int, np.integer)) or not 1 <= most <= n_columns:
            raise ValueError(f"most = {shown(most)}: expected a whole number from 1 to {n_columns}, the columns of the model")
        return self._model.reasons(self._table(columns, sensitive_features, for_decisions=True), int(most))

    def _table(
        self, columns: Sequence[tuple[str, Any]], sensitive_features: Any, for_decisions: bool
    ) -> list[tuple[str, Any]]:
        inputs = dict(self._schema["columns"])
        vectors = [name for name, column in inputs.items() if column["kind"] == "vector"]
        table: list[tuple[str, Any]] = []
        for name, column in inputs.items():
            images = _columns.of_input(columns, name) if column["kind"] == "image" else []
            if images:
                table.append((name, _images.of(name, images, column)))
        for name, values in columns:
            column = inputs.get(name, {})
            if column:
                table += [(name, found) for found in _handed_over(name, values, column)]
            elif any(_columns.is_part(name, vector) for vector in vectors):
                table.append((name, handed_over(components(values, name, True))))
        n_records = len(columns[0][1])
        if self._model.needs_groups():
            table += self._groups(sensitive_features, n_records, for_decisions)
        elif sensitive_features is not None:
            for name, group in _columns.named(sensitive_features, "sensitive_feature", "sensitive_features"):
                check_length(name, group, n_records)
        return table

    def _groups(self, features: Any, n_records: int, for_decisions: bool) -> list[tuple[str, Any]]:
        """Columns of the sensitive features."""
        given = dict(_columns.named(features, "sensitive_feature", "sensitive_features"))
        names = {*given, *(name for name, _ in self._sensitive)}
        if len(given) == len(self._sensitive) == 1 and "sensitive_feature_0" in names:
            # Only one of the two has a name.
            given = {self._sensitive[0][0]: next(iter(given.values()))}
        table: list[tuple[str, Any]] = []
        for (name, stored), group in zip(self._sensitive, (entry["groups"] for entry in self._schema["groups"])):
            is_banded = group["by"] == "bands"
            has_format = is_banded and "format" in group
            if name in given:
                check_length(name, given[name], n_records)
                is_text = not is_banded or (has_format and not is_numeric(given[name]))
                table.append((stored, texts(given[name], name) if is_text else handed_over(numbers(given[name], name))))
            elif for_decisions:
                found = ", ".join(f"`{other}`" for other in given) or "none"
                raise ValueError(f"sensitive_features: decisions depend on `{name}`, which is not given; given are {found}")
            elif is_banded:
                # Probabilities do not depend on it.
                table.append((stored, np.zeros(n_records)))
            else:
                table.append((stored, ([group["values"][0]], np.zeros(n_records, dtype=np.uint32))))
        return table


def _handed_over(name: str, values: Any, column: Mapping[str, Any]) -> list[Any]:
    """The values of a declared column; none of one that is not used, or of images."""
    declared, is_text = column["kind"], kind(values) in ("text", "object", "category")
    if declared in ("dropped", "image"):
        return []
    if declared == "vector":
        return [lists(values, name)]
    if declared == "number" and not (is_text and "format" in column):
        return [handed_over(numbers(values, name, column["missing"] is not None))]
    if declared == "boolean" and sparse(values) is not None:
        return [handed_over(numbers(values, name, column["missing"]))]
    return [texts(values, name)]


def check_length(name: str, column: Any, n_records: int) -> None:
    """One value per record."""
    if len(column) != n_records:
        raise ValueError(f"`{name}` holds {len(column)} values, expected {n_records} (one for each record)")
