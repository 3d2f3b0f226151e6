"""A differentially private regressor for scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from fairdp._answers import Answers
from fairdp._base import PrivateEstimator, python_names
from fairdp._fairdp import FairDPError
from fairdp._table import Table, section
from fairdp._values import shown
from fairdp.tables import load

__all__ = ["FairDPRegressor"]


class FairDPRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Predicts a number, (ε, δ)-differentially private in its records, with a statement that can be
    checked.

    Every call of :meth:`fit` spends ``epsilon`` anew, as with :class:`~fairdp.FairDPClassifier`, whose
    parameters of the same names mean the same.

    Parameters
    ----------
    label_bounds
        The range of the number that is predicted: a pair. Labels beyond it are set to the nearer end,
        and predictions are within it. It is read from the records, and covered by no ε, unless given.
        Noise grows with it.
    method
        ``"auto"`` or ``"conditioned"``.
    fairness
        ``"none"``, or ``"mean-error"``: the released mean error of each group is taken off its predictions, at
        no further ε. Where that moved anything, :meth:`predict` needs ``sensitive_features``.
    unit_rows, unit_target
        As of the classifier. The number of a mean is that of the unit's last row (``"last"``), the largest
        (``"maximum"``), or the mean of its rows' (``"mean"``).
    epsilon, delta, bounds, categories, vectors, images, formats, parts, missing, groups, bands, bins,
    test_fraction, max_records_per_unit, max_weight, ledger, total_epsilon, start_from, n_jobs, random_state
        As of the classifier.

    Attributes
    ----------
    label_bounds_ : the range of labels and predictions.
    epsilon_ : what this fit spent, at most ``epsilon``.
    total_epsilon_ : ε of all fits of this process together; with ``ledger``, of all fits in it.
    statement_ : the privacy statement.
    fairness_ : under ``numbers``, R², mean absolute error, root mean squared error and mean error of all
        held-out records and by group, with intervals, within ε.
    release_ : the files of the release by name, as bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from fairdp import FairDPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4000, 2))
    >>> y = 3 * X[:, 0] + rng.normal(size=4000)
    >>> model = FairDPRegressor(epsilon=2.0, bounds=(-1, 1), label_bounds=(-6, 6)).fit(X, y)
    >>> model.epsilon_ <= 2.0, model.statement_["mark"]
    (True, 'certified')
    >>> bool(model.score(X, y) > 0.65)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        label_bounds: Sequence[float] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        vectors: Mapping[str, Any] | None = None,
        images: Mapping[str, Any] | None = None,
        formats: Mapping[str, str | Mapping[str, str]] | None = None,
        parts: Mapping[str, Sequence[Literal["year", "month", "weekday"]]] | None = None,
        missing: Literal["indicator"] | Mapping[str, float] | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        bands: Mapping[str, Sequence[float]] | None = None,
        bins: int | None = None,
        method: Literal["auto", "conditioned"] = "auto",
        fairness: Literal["none", "mean-error"] = "none",
        test_fraction: float = 0.2,
        max_records_per_unit: int | None = None,
        unit_rows: Literal["first", "mean"] = "first",
        unit_target: Literal["last", "maximum", "mean"] | None = None,
        max_weight: float | None = None,
        ledger: str | os.PathLike[str] | None = None,
        total_epsilon: float | None = None,
        start_from: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.categories = categories
        self.vectors = vectors
        self.images = images
        self.formats = formats
        self.parts = parts
        self.missing = missing
        self.groups = groups
        self.bands = bands
        self.bins = bins
        self.method = method
        self.fairness = fairness
        self.test_fraction = test_fraction
        self.max_records_per_unit = max_records_per_unit
        self.unit_rows = unit_rows
        self.unit_target = unit_target
        self.max_weight = max_weight
        self.ledger = ledger
        self.total_epsilon = total_epsilon
        self.start_from = start_from
        self.n_jobs = n_jobs
        self.random_state = random_state

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """The number of each record, within ``label_bounds_``. ``sensitive_features`` are needed where
        ``fairness`` moved predictions, and not used otherwise."""
        check_is_fitted(self)
        with python_names():
            return Answers(self.release_, self._sensitive).numbers(self._columns(X), sensitive_features, stacklevel=2)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """R² of the predictions."""
        found = self.predict(X, sensitive_features=sensitive_features)
        return float(r2_score(y, found, sample_weight=sample_weight))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> FairDPRegressor:
        """A fitted regressor of a release or a run, whoever made it: :meth:`save`, or the program. The
        release is checked as ``fairdp verify`` does. Parameters that it does not have, such as
        ``bounds``, are those of a new regressor.
        """
        release = load(folder)
        found = Answers(release.files).range
        if found is None:
            raise FairDPError("load: the release predicts classes; expected one that predicts a number")
        model: FairDPRegressor = cls._loaded(release)
        model.label_bounds_ = found
        return model

    def _target(self, y: np.ndarray, sensitive_features: Any) -> tuple[np.ndarray, tuple[float, float]]:
        if self.fairness != "none" and sensitive_features is None:
            raise ValueError(f"fairness = {self.fairness!r} needs sensitive_features in fit")
        if y is None:
            raise ValueError("FairDPRegressor requires y to be passed, but the target y is None")
        try:
            numbers = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"Unknown label type: y holds {np.asarray(y).dtype}, expected numbers") from None
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if len(wrong):
            raise ValueError(f"Input y contains NaN or infinity: record {wrong[0]} has {numbers[wrong[0]]:g}")
        if len(numbers) < 2:
            raise ValueError(f"n_samples = {len(numbers)}: expected at least 2 records")
        if self.label_bounds is None:
            low, high = float(numbers.min()), float(numbers.max())
            # One value alone has no range of its own.
            return numbers, (low, high) if low < high else (low - 0.5, high + 0.5)
        low, high = _pair(self.label_bounds)
        return numbers, (low, high)

    def _add_label(self, table: Table, target: tuple[np.ndarray, tuple[float, float]], name: Any) -> str:
        numbers, (low, high) = target
        name = table.free(str(name or "y"))
        table.columns.append((name, numbers))
        entries: dict[str, Any] = {"column": name, "kind": "number", "low": low, "high": high}
        if self.label_bounds is None:
            entries["from"] = "data"
            table.leaks.append("the bounds of the label")
        return section("[label]", entries)

    def _end_fit(self, target: tuple[np.ndarray, tuple[float, float]]) -> None:
        self.label_bounds_ = target[1]

    def _fairness(self) -> str:
        return self.fairness

    def _own_sections(self) -> list[str]:
        return [section("[method]", {"name": self.method})]


def _pair(bounds: Any) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"label_bounds = {shown(bounds)}: expected a pair of numbers") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"label_bounds = {shown(bounds)}: expected two finite numbers, the lower first")
    return low, high
