"""Rates of binary decisions by group, with intervals, under the names of Fairlearn.

Labels, predictions, groups and weights may be NumPy arrays, lists, pandas or polars; a frame comes
back as pandas if pandas came in, as polars if polars did, and otherwise as a dictionary of arrays.

>>> from fairdp import metrics
>>> y_true, y_pred = [1, 0, 1, 1, 0, 0], [1, 0, 0, 1, 1, 0]
>>> sex = ["f", "f", "f", "m", "m", "m"]
>>> float(metrics.demographic_parity_difference(y_true, y_pred, sensitive_features=sex))
0.3333333333333333
>>> table = metrics.frame(
...     y_true, y_pred, sensitive_features={"sex": sex}, metrics=["true_positive_rate"])
>>> table.by_group
{'sex': array(['f', 'm'], dtype='<U1'), 'true_positive_rate': array([0.5, 1. ])}
>>> table.difference()
{'true_positive_rate': 0.5}

Where a rate has no records in its denominator it is 0, as in Fairlearn, unless
``empty="undefined"`` is given: it then is ``nan``, and so is every comparison of groups that it is
part of. A group without any record, or without weight, has no rates (``nan``) and is left out of
comparisons. Undefined ratios (0 to 0) are ``nan``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any, Literal

import numpy as np

from fairdp import _columns
from fairdp._fairdp import metrics as _rust

__all__ = [
    "METRICS",
    "MetricFrame",
    "accuracy",
    "balanced_accuracy",
    "count",
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "f1",
    "false_negative_rate",
    "false_positive_rate",
    "frame",
    "precision",
    "selection_rate",
    "true_negative_rate",
    "true_positive_rate",
]

METRICS = (
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "true_negative_rate",
    "false_negative_rate",
    "accuracy",
    "balanced_accuracy",
    "precision",
    "f1",
)
"""The rates that a frame can hold, besides ``count``."""

_COLUMNS = ("count", "metric", "statistic", "value", "low", "high", "interval", "n_undefined")

Empty = Literal["zero", "undefined"]
Method = Literal["between_groups", "to_overall"]


class MetricFrame:
    """Rates over all records and by group, for every level of the control features; made by
    :func:`frame`.
    """

    def __init__(
        self,
        records: _rust.Records,
        names: Sequence[str],
        kind: str,
        sensitive: Sequence[tuple[str, np.ndarray]],
        control: Sequence[tuple[str, np.ndarray]],
        weighted: bool,
    ) -> None:
        self._records = records
        self._kind = kind
        self._sensitive = list(sensitive)
        self._control = list(control)
        self._weighted = weighted
        self._frames = {name: records.counts() if name == "count" else records.frame(name) for name in names}

    @property
    def overall(self) -> Any:
        """The rates over all records: a row, or one row per level of the control features."""
        return self._per_stratum(lambda name, frame: self._counts(name, frame, False) or frame.overall())

    @property
    def by_group(self) -> Any:
        """The rates of every group; several sensitive features make their intersections."""
        columns = {
            name: _numbers(value for stratum in self._counts(name, frame, True) or frame.by_group() for value in stratum)
            for name, frame in self._frames.items()
        }
        return _columns.frame(self._kind, self._keys(self._control + self._sensitive), columns)

    def group_min(self) -> Any:
        """The least value over groups."""
        return self._per_stratum(lambda name, frame: self._extreme(name, frame, min) or frame.group_min())

    def group_max(self) -> Any:
        """The greatest value over groups."""
        return self._per_stratum(lambda name, frame: self._extreme(name, frame, max) or frame.group_max())

    def difference(self, method: Method = "between_groups") -> Any:
        """The greatest difference between two groups, or of a group to all records
        (``method="to_overall"``).
        """
        return self._per_stratum(lambda _, frame: frame.difference(method), rates_only=True)

    def ratio(self, method: Method = "between_groups") -> Any:
        """The least ratio of two groups' values, or of a group's and that of all records."""
        return self._per_stratum(lambda _, frame: frame.ratio(method), rates_only=True)

    def intervals(
        self, level: float = 0.95, n_resamples: int | None = None, random_state: int | None = None
    ) -> Any:
        """An interval of every number: one row per metric and statistic.

        The columns are the control and sensitive features (empty where a row is about all groups),
        ``metric``, ``statistic`` (``overall``, ``group``, ``difference``, ``ratio``), ``value``,
        ``low``, ``high``, ``interval`` and ``n_undefined``. ``interval`` says what kind it is:

        - ``exact``: Clopper's and Pearson's, of shares of records and F1 without weights;
        - ``approximate``: of balanced accuracy, by a test of the mean of two shares, and of
          weighted records, by their effective number;
        - ``pairs``: of the greatest difference and the least ratio, which hold for all pairs of
          groups together. Groups that are alike have 0 and 1 in theirs.

        A figure of fewer than two records is unknown, and its group's interval is from 0 to 1.
        ``n_undefined`` counts such groups in a comparison: a difference may then be up to 1, and a
        ratio down to 0. Groups without a record are left out. Nothing is resampled:
        ``n_resamples`` and ``random_state`` change nothing, and giving them is deprecated.
        """
        if n_resamples is not None or random_state is not None:
            note = "intervals: n_resamples and random_state change nothing, since intervals are no longer resampled"
            warnings.warn(note, DeprecationWarning, stacklevel=2)
        rows: list[dict[str, Any]] = []
        features = [name for name, _ in self._sensitive]
        for name, frame in self._frames.items():
            if name == "count":
                continue
            kind = "exact" if name != "balanced_accuracy" and not self._weighted else "approximate"
            differences, ratios = frame.difference("between_groups"), frame.ratio("between_groups")
            strata = zip(
                _levels(self._control), frame.overall(), frame.by_group(), differences, ratios,
                self._records.intervals(name, level), strict=True,
            )
            for control, overall, groups, difference, ratio, ends in strata:
                entry = dict(zip((name for name, _ in self._control), control, strict=True))
                statistics = [("overall", None, overall, ends[0], kind, 0)]
                for group, value, own in zip(_levels(self._sensitive), groups, ends[1], strict=True):
                    statistics.append(("group", group, value, own, kind, 0))
                for statistic, value, (own, n_undefined, is_known) in (
                    ("difference", difference, ends[2]), ("ratio", ratio, ends[3]),
                ):
                    statistics.append((statistic, None, value if is_known else None, own, "pairs", n_undefined))
                for statistic, group, value, (low, high), interval, n_undefined in statistics:
                    keys = {**entry, **dict(zip(features, group or [None] * len(features), strict=True))}
                    found = {"value": _number(value), "low": low, "high": high}
                    found |= {"interval": interval, "n_undefined": n_undefined}
                    rows.append({**keys, "metric": name, "statistic": statistic, **found})
        labels = {name for name, _ in self._control + self._sensitive}
        columns = {
            name: np.array([row[name] for row in rows], dtype=object if name in labels else None)
            for name in (rows[0] if rows else {})
        }
        return _columns.frame(self._kind, [], columns)

    def _keys(self, features: list[tuple[str, np.ndarray]]) -> list[tuple[str, np.ndarray]]:
        combinations = list(_levels(features))
        return [
            (name, _column([combination[place] for combination in combinations], found.dtype))
            for place, (name, found) in enumerate(features)
        ]

    def _per_stratum(self, of: Any, rates_only: bool = False) -> Any:
        frames = {name: frame for name, frame in self._frames.items() if not (rates_only and name == "count")}
        values = {name: _numbers(of(name, frame)) for name, frame in frames.items()}
        if self._control:
            return _columns.frame(self._kind, self._keys(self._control), values)
        return _columns.row(self._kind, {name: value.item() for name, value in values.items()})

    @staticmethod
    def _counts(name: str, frame: _rust.Frame, by_group: bool) -> Any:
        if name != "count":
            return None
        counts = frame.n_records()
        return counts if by_group else [sum(stratum) for stratum in counts]

    @staticmethod
    def _extreme(name: str, frame: _rust.Frame, of: Any) -> Any:
        return [of(stratum) for stratum in frame.n_records()] if name == "count" else None


def frame(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    control_features: Any = None,
    metrics: Sequence[str] | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    empty: Empty = "zero",
) -> MetricFrame:
    """Rates over all records and by group.

    ``metrics`` are names of :data:`METRICS` and ``count``; all of them unless given. Every label
    that is not ``pos_label`` is negative; it is 1 where labels are 0 and 1 or -1 and 1, and must be
    given otherwise.
    """
    names = [*METRICS, "count"] if metrics is None else list(metrics)
    for name in names:
        if name not in METRICS and name != "count":
            raise ValueError(f"metrics: {name!r} is unknown; expected some of {', '.join(METRICS)}, count")
    kind = _columns.library(sensitive_features, y_true, y_pred)
    sensitive = _encoded(sensitive_features, "sensitive_feature", "sensitive_features")
    control = _encoded(control_features, "control_feature", "control_features")
    records = _records(y_true, y_pred, sensitive, control, sample_weight, pos_label, empty)
    taken = {*METRICS, *_COLUMNS}
    for name, _, _ in [*control, *sensitive]:
        if name in taken:
            raise ValueError(f"feature `{name}`: expected a name of its own, which no column of a result has")
        taken.add(name)
    found = [[(name, levels) for name, levels, _ in features] for features in (sensitive, control)]
    return MetricFrame(records, names, kind, found[0], found[1], weighted=sample_weight is not None)


def count(y_true: Any, y_pred: Any) -> int:
    """The number of records."""
    n, found = len(_columns.vector(y_true, "y_true")), len(_columns.vector(y_pred, "y_pred"))
    if n != found:
        raise ValueError(f"`y_pred` holds {found} values, expected {n} (one for each of `y_true`)")
    return n


def selection_rate(
    y_true: Any, y_pred: Any, *, pos_label: Any = None, sample_weight: Any = None, empty: Empty = "zero"
) -> float:
    """Share of the records that are predicted positive; labels play no part."""
    return _rate("selection_rate", y_pred, y_pred, pos_label, sample_weight, empty)


def true_positive_rate(
    y_true: Any, y_pred: Any, *, pos_label: Any = None, sample_weight: Any = None, empty: Empty = "zero"
) -> float:
    """Share of the positive records that are predicted positive: recall."""
    return _rate("true_positive_rate", y_true, y_pred, pos_label, sample_weight, empty)


def false_positive_rate(
    y_true: Any, y_pred: Any, *, pos_label: Any = None, sample_weight: Any = None, empty: Empty = "zero"
) -> float:
    """Share of the negative records that are predicted positive."""
    return _rate("false_positive_rate", y_true, y_pred, pos_label, sample_weight, empty)


def true_negative_rate(
    y_true: Any, y_pred: Any, *, pos_label: Any = None, sample_weight: Any = None, empty: Empty = "zero"
) -> float:
    """Share of the negative records that are predicted negative."""
    return _rate("true_negative_rate", y_true, y_pred, pos_label, sample_weight, empty)


def false_negative_rate(
    y_true: Any, y_pred: Any, *, pos_label: Any = None, sample_weight: Any = None, empty: Empty = "zero"
) -> float:
    """Share of the positive records that are predicted negative."""
    return _rate("false_negative_rate", y_true, y_pred, pos_label, sample_weight, empty)


def accuracy(
    y_true: Any, y_pred: Any, *, pos_label: Any = None, sample_weight: Any = None, empty: Empty = "zero"
) -> float:
    """Share of the records that are predicted right."""
    return _rate("accuracy", y_true, y_pred, pos_label, sample_weight, empty)


def balanced_accuracy(
    y_true: Any, y_pred: Any, *, pos_label: Any = None, sample_weight: Any = None, empty: Empty = "zero"
) -> float:
    """Mean of the two classes' recalls. Without records of a class it is the other one's recall, as
    scikit-learn's, and ``nan`` with ``empty="undefined"``; in a frame too.
    """
    return _rate("balanced_accuracy", y_true, y_pred, pos_label, sample_weight, empty)


def precision(
    y_true: Any, y_pred: Any, *, pos_label: Any = None, sample_weight: Any = None, empty: Empty = "zero"
) -> float:
    """Share of the records predicted positive that are."""
    return _rate("precision", y_true, y_pred, pos_label, sample_weight, empty)


def f1(
    y_true: Any, y_pred: Any, *, pos_label: Any = None, sample_weight: Any = None, empty: Empty = "zero"
) -> float:
    """Harmonic mean of precision and recall."""
    return _rate("f1", y_true, y_pred, pos_label, sample_weight, empty)


def demographic_parity_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    method: Method = "between_groups",
    sample_weight: Any = None,
    pos_label: Any = None,
    empty: Empty = "zero",
) -> float:
    """Greatest difference of the groups' selection rates; labels play no part."""
    return _compared("difference", ["selection_rate"], y_pred, y_pred, sensitive_features, method, sample_weight, pos_label, empty)[0]


def demographic_parity_ratio(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    method: Method = "between_groups",
    sample_weight: Any = None,
    pos_label: Any = None,
    empty: Empty = "zero",
) -> float:
    """Least ratio of the groups' selection rates."""
    return _compared("ratio", ["selection_rate"], y_pred, y_pred, sensitive_features, method, sample_weight, pos_label, empty)[0]


def equalized_odds_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    method: Method = "between_groups",
    sample_weight: Any = None,
    agg: Literal["worst_case", "mean"] = "worst_case",
    pos_label: Any = None,
    empty: Empty = "zero",
) -> float:
    """The greater of the true-positive and the false-positive rates' differences, or their mean."""
    values = _compared("difference", _ODDS, y_true, y_pred, sensitive_features, method, sample_weight, pos_label, empty)
    return _aggregated(values, agg, max)


def equalized_odds_ratio(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    method: Method = "between_groups",
    sample_weight: Any = None,
    agg: Literal["worst_case", "mean"] = "worst_case",
    pos_label: Any = None,
    empty: Empty = "zero",
) -> float:
    """The lesser of the true-positive and the false-positive rates' ratios, or their mean; ``nan``
    if either is, unless the lesser one is 0.
    """
    values = _compared("ratio", _ODDS, y_true, y_pred, sensitive_features, method, sample_weight, pos_label, empty)
    # No ratio is below 0.
    return 0.0 if agg == "worst_case" and 0.0 in values else _aggregated(values, agg, min)


def equal_opportunity_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    method: Method = "between_groups",
    sample_weight: Any = None,
    pos_label: Any = None,
    empty: Empty = "zero",
) -> float:
    """Greatest difference of the groups' true-positive rates."""
    return _compared("difference", _ODDS[:1], y_true, y_pred, sensitive_features, method, sample_weight, pos_label, empty)[0]


def equal_opportunity_ratio(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    method: Method = "between_groups",
    sample_weight: Any = None,
    pos_label: Any = None,
    empty: Empty = "zero",
) -> float:
    """Least ratio of the groups' true-positive rates."""
    return _compared("ratio", _ODDS[:1], y_true, y_pred, sensitive_features, method, sample_weight, pos_label, empty)[0]


_ODDS = ["true_positive_rate", "false_positive_rate"]


def _rate(name: str, y_true: Any, y_pred: Any, pos_label: Any, sample_weight: Any, empty: str) -> float:
    records = _records(y_true, y_pred, [], [], sample_weight, pos_label, empty)
    return _number(records.rate(name))


def _compared(
    how: str,
    names: list[str],
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    method: str,
    sample_weight: Any,
    pos_label: Any,
    empty: str,
) -> list[float]:
    sensitive = _encoded(sensitive_features, "sensitive_feature", "sensitive_features")
    records = _records(y_true, y_pred, sensitive, [], sample_weight, pos_label, empty)
    frames = [records.frame(name) for name in names]
    return [_number((frame.difference(method) if how == "difference" else frame.ratio(method))[0]) for frame in frames]


def _aggregated(values: list[float], agg: str, worst: Any) -> float:
    if agg not in ("worst_case", "mean"):
        raise ValueError(f'agg = {agg!r}: expected "worst_case" or "mean"')
    if any(np.isnan(values)):
        return float("nan")
    return float(worst(values) if agg == "worst_case" else sum(values) / 2)


def _encoded(features: Any, base_name: str, name: str) -> list[tuple[str, np.ndarray, np.ndarray]]:
    return [
        (column_name, *_columns.levels(column, column_name))
        for column_name, column in _columns.columns(features, base_name, name)
    ]


def _records(
    y_true: Any,
    y_pred: Any,
    sensitive: list[tuple[str, np.ndarray, np.ndarray]],
    control: list[tuple[str, np.ndarray, np.ndarray]],
    sample_weight: Any,
    pos_label: Any,
    empty: str,
) -> _rust.Records:
    if empty not in ("zero", "undefined"):
        raise ValueError(f'empty = {empty!r}: expected "zero" or "undefined"')
    labels, predictions = _columns.vector(y_true, "y_true"), _columns.vector(y_pred, "y_pred")
    if len(labels) == 0:
        raise ValueError("`y_true` holds 0 values, expected at least 1")
    for feature, _, positions in [*sensitive, *control]:
        if len(positions) != len(labels):
            raise ValueError(f"`{feature}` holds {len(positions)} values, expected {len(labels)} (one for each of `y_true`)")
    positive = _positive(labels, predictions, pos_label)
    weights = None
    if sample_weight is not None:
        weights = np.ascontiguousarray(_columns.vector(sample_weight, "sample_weight"), dtype=np.float64)
    return _rust.Records(
        np.asarray(labels == positive, dtype=bool),
        np.asarray(predictions == positive, dtype=bool),
        weights,
        [(name, positions, len(found)) for name, found, positions in sensitive],
        [(name, positions, len(found)) for name, found, positions in control],
        empty == "zero",
    )


def _positive(labels: np.ndarray, predictions: np.ndarray, pos_label: Any) -> Any:
    for name, values in (("y_true", labels), ("y_pred", predictions)):
        missing = _columns.is_missing(values)
        if missing.any():
            raise ValueError(f"`{name}[{int(np.flatnonzero(missing)[0])}]` is missing")
    found = {*np.unique(labels).tolist(), *np.unique(predictions).tolist()}
    if len(found) > 2:
        raise ValueError(f"labels and predictions have {len(found)} values, expected at most 2: rates are of binary decisions")
    if pos_label is not None:
        if len(found) == 2 and pos_label not in found:
            raise ValueError(f"pos_label = {pos_label!r}: expected one of the labels, {sorted(found, key=str)}")
        return pos_label
    if found <= {0, 1} or found <= {-1, 1}:
        return 1
    raise ValueError("pos_label = None: expected the positive label, where labels are neither 0 and 1 nor -1 and 1")


def _levels(features: Sequence[tuple[str, np.ndarray]]) -> Any:
    return product(*(found.tolist() for _, found in features))


def _column(values: list[Any], dtype: Any) -> np.ndarray:
    column = np.empty(len(values), dtype=dtype)
    column[:] = values
    return column


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _numbers(values: Any) -> np.ndarray:
    return np.array([float("nan") if value is None else value for value in values])
