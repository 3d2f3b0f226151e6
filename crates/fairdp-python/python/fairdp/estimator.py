"""A differentially private classifier for scikit-learn."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fairdp import _columns, _fairdp
from fairdp._fairdp import estimator as _rust
from fairdp._leaks import PrivacyLeakWarning
from fairdp._table import Table, numbers, section, text, texts

__all__ = ["FairDPClassifier", "PrivacyLeakWarning"]

Progress = Callable[[str, int, int], object]
_FAIRNESS = ("none", "worst-group", "equalized-odds")


class FairDPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is (ε, δ)-differentially private in its records, with a statement that can
    be checked.

    Every call of :meth:`fit` spends ``epsilon`` anew: a search over parameters by cross-validation
    spends it once per fit.

    Parameters
    ----------
    epsilon, delta
        What the release may cost, of one record or of one unit. ``delta`` must be below one over
        the number of records.
    bounds
        The range of numbers: a pair for all columns, or a mapping from column to pair.
        ``"private"`` in the place of a pair pays for bounds within ``epsilon``. Values beyond a
        bound are set to it. Columns of an array are ``x0``, ``x1``, …
    categories
        A mapping from column to the list of its values; ``None`` in a list gives missing values a
        feature. Values that are not listed share a feature. A column of numbers that is named here
        is a category.
    classes
        The classes. The last one in sorted order is the positive one of two.
    groups
        A mapping from sensitive feature to the list of its groups.
    bins
        Bins of every column of numbers; 16 unless given. Fewer bins are fewer features, and less
        noise. Where bounds are ``"private"``, the bins are released with them.
    model, hidden
        ``"additive"`` (``"auto"``: one curve per number, one value per category) or ``"mlp"`` with
        hidden layers of these widths.
    method, method_options
        ``"auto"``, or a clipping method with ``sampling_rate``, ``steps``, ``learning_rate`` and
        ``settings``.
    fairness
        ``"none"``, or thresholds by group: ``"worst-group"``, ``"equalized-odds"``. :meth:`predict`
        then needs ``sensitive_features``.
    decision
        ``"accuracy"`` answers the most probable class, as scikit-learn does; ``"balanced"`` and
        ``"compromise"`` answer rare classes more often.
    test_fraction
        Share of the records that are not trained on; ``fairness_`` is about them. They cost no
        more: each record is used once.
    max_records_per_unit
        Records of one unit that are used, where ``units`` are given to :meth:`fit`.
    n_jobs
        Threads, -1 for all cores. They change no bit of the model.
    random_state
        Makes the run repeatable **and not private**: whoever knows it can take the noise off. The
        statement says so.

    Attributes
    ----------
    classes_ : the classes, sorted.
    epsilon_ : what was spent, at most ``epsilon``.
    statement_ : the privacy statement: what is protected, what is not, and every noisy release.
    fairness_ : rates by group on records that were held out, with intervals, within ε.
    release_ : the files of the release by name, as bytes: weights, ONNX graph, statement, card.

    Examples
    --------
    >>> import numpy as np
    >>> from fairdp import FairDPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] + 0.2 * rng.normal(size=2000) > 0).astype(int)
    >>> model = FairDPClassifier(epsilon=2.0, bounds=(-1, 1), classes=[0, 1], random_state=0)
    >>> model = model.fit(X, y)
    >>> model.epsilon_ <= 2.0, model.statement_["mark"], model.statement_["private"]
    (True, 'certified', False)
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        classes: Sequence[Any] | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        bins: int | None = None,
        model: Literal["auto", "additive", "mlp"] = "auto",
        hidden: Sequence[int] | None = None,
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        fairness: Literal["none", "worst-group", "equalized-odds"] = "none",
        decision: Literal["accuracy", "compromise", "balanced"] = "accuracy",
        test_fraction: float = 0.1,
        max_records_per_unit: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.groups = groups
        self.bins = bins
        self.model = model
        self.hidden = hidden
        self.method = method
        self.method_options = method_options
        self.fairness = fairness
        self.decision = decision
        self.test_fraction = test_fraction
        self.max_records_per_unit = max_records_per_unit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        units: Any = None,
        progress: Progress | None = None,
    ) -> FairDPClassifier:
        """Trains on an array of numbers, or on a pandas or polars frame of numbers and texts.

        ``sensitive_features`` are the groups that ``fairness_`` is about, ``units`` whose record
        each is. ``progress`` is called with the stage, the steps done and all steps. Ctrl-C ends
        the run; nothing is then released.
        """
        name = getattr(y, "name", None)
        columns, y = self._inputs(X, y)
        check_classification_targets(y)
        self._check_choices(sensitive_features)
        classes, positions = self._classes(y)
        table = Table()
        self._declare(table, columns)
        label = self._add_label(table, classes, positions, name)
        sensitive = self._add_groups(table, sensitive_features, len(positions))
        unit = self._add_units(table, units, len(positions))
        if table.leaks:
            shown = ", ".join(table.leaks[:8]) + (f" and {len(table.leaks) - 8} more" if len(table.leaks) > 8 else "")
            message = (
                f"taken from the records, and covered by no ε: {shown}. The statement is conditional on them; declare them "
                "by bounds=, categories=, classes= and groups=, or pay for bounds by bounds=\"private\""
            )
            warnings.warn(message, PrivacyLeakWarning, stacklevel=2)
        config = self._config(table, label, unit)
        # 0700. It holds the run's folder until the release was read; records lie in it encoded, in
        # a file without a name.
        with tempfile.TemporaryDirectory(prefix="fairdp-") as folder:
            out = Path(folder) / "run"
            _rust.fit(config, table.columns, out, self._seed(), self._threads(), _fairdp.__file__, progress)
            self.release_ = {path.name: path.read_bytes() for path in sorted((out / "release").iterdir())}
        self._sensitive, self._names = sensitive, [name for name, _ in columns]
        self._is_frame = _columns.library(X) != "numpy"
        self.classes_ = classes
        self.statement_ = json.loads(self.release_["statement.json"])
        self.fairness_ = json.loads(self.release_["fairness.json"])
        self.epsilon_ = float(self.statement_["epsilon"])
        return self

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """The class of each record. ``sensitive_features`` are needed where decisions depend on the
        group.
        """
        check_is_fitted(self)
        answers: np.ndarray = self.classes_[self._answers(X, sensitive_features, for_decisions=True)[0]]
        return answers

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """The share of records with the right class. ``sensitive_features`` are needed as for
        :meth:`predict`.
        """
        answers = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, answers, sample_weight=sample_weight))

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        return self._answers(X, None, for_decisions=False)[1]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the release to a folder that is new or empty, and checks it as ``fairdp verify``
        does.
        """
        check_is_fitted(self)
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise FileExistsError(f"`{path}` is not empty: give another folder")
        for name, data in self.release_.items():
            (path / name).write_bytes(data)
        _rust.verify(path)

    def _inputs(self, X: Any, y: Any = None) -> tuple[list[tuple[str, np.ndarray]], Any]:
        """Columns by name, and the labels."""
        is_new = y is not None
        if _columns.library(X) == "numpy":
            if is_new:
                X, y = validate_data(self, X, y)
            else:
                X = validate_data(self, X, reset=False)
            return [(f"x{place}", X[:, place]) for place in range(X.shape[1])], y
        validate_data(self, X, reset=is_new, skip_check_array=True)
        if is_new:
            check_consistent_length(X, y)
            y = column_or_1d(y, warn=True)
        return [(str(name), X[name]) for name in X.columns], y

    def _check_choices(self, sensitive_features: Any) -> None:
        if self.fairness not in _FAIRNESS:
            raise ValueError(f"fairness = {self.fairness!r}: expected one of {', '.join(_FAIRNESS)}")
        if self.fairness != "none" and sensitive_features is None:
            raise ValueError(f"fairness = {self.fairness!r} needs sensitive_features in fit")
        if isinstance(self.classes, (str, bytes)):
            raise TypeError(f"classes = {self.classes!r}: expected a list of classes")
        if self.hidden is not None and np.ndim(self.hidden) != 1:
            raise ValueError(f"hidden = {self.hidden!r}: expected a list of widths")

    def _classes(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        classes, positions = np.unique(y, return_inverse=True)
        if self.classes is not None:
            declared = np.unique(np.asarray(self.classes))
            unknown = sorted(set(classes.tolist()) - set(declared.tolist()), key=str)
            if unknown:
                raise ValueError(f"classes: y has {unknown[0]!r}, which is not among {declared.tolist()}")
            positions = np.searchsorted(declared, classes)[positions]
            classes = declared
        if len(classes) < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes; the data contains one class, {classes[0]!r}")
        names = [text(value) for value in classes.tolist()]
        if len(set(names)) < len(names) or "" in names:
            raise ValueError(f"classes: {classes.tolist()} do not have different texts that are not empty")
        return classes, positions.reshape(-1)

    def _add_label(self, table: Table, classes: np.ndarray, positions: np.ndarray, name: Any) -> str:
        name = table.free(str(name or "y"))
        names = [text(value) for value in classes.tolist()]
        table.columns.append((name, (names, positions.astype(np.uint32))))
        entries: dict[str, Any] = {"column": name, "classes": names}
        if self.classes is None:
            entries["from"] = "data"
            table.leaks.append("the classes")
        return section("[label]", entries)

    def _declare(self, table: Table, columns: list[tuple[str, Any]]) -> None:
        categories = dict(self.categories or {})
        by_column = self.bounds if isinstance(self.bounds, Mapping) else None
        for name, known in (("categories", categories), ("bounds", by_column or {})):
            for column in known:
                if column not in {column for column, _ in columns}:
                    raise ValueError(f"{name}: there is no column {column!r}; there are {[column for column, _ in columns]}")
        for name, values in columns:
            column = _columns.vector(values, name)
            dtype = getattr(values, "dtype", column.dtype)
            is_bounded = by_column is not None and name in by_column
            is_numeric = column.dtype.kind == "b" or is_number(values, column)
            if is_bounded and (name in categories or not is_numeric):
                kind = "is among the categories" if name in categories else f"holds {dtype}"
                raise TypeError(f"bounds: column `{name}` {kind}, expected numbers; convert it, or leave it out of bounds")
            if name in categories:
                table.add_category(name, column, categories[name])
            elif column.dtype.kind == "b":
                table.add_number(name, column.astype(np.float64), (0.0, 1.0), 1)
            elif is_number(values, column):
                bounds = by_column.get(name) if by_column is not None else self.bounds
                table.add_number(name, numbers(to_numbers(values), name), bounds, self.bins)
            elif column.dtype.kind in "mM" or str(dtype).lower().startswith(("datetime", "timedelta")):
                raise TypeError(f"column `{name}` holds {dtype}; make numbers of it, or drop it")
            else:
                table.add_category(name, column, None)

    def _add_groups(self, table: Table, features: Any, n_records: int) -> list[tuple[str, str]]:
        groups = dict(self.groups or {})
        added = []
        for name, column in _columns.columns(features, "sensitive_feature", "sensitive_features"):
            check_length(name, column, n_records)
            free = table.free(name)
            table.add_group(free, column, groups.pop(name, None))
            added.append((name, free))
        if groups:
            raise ValueError(f"groups: there is no sensitive feature {next(iter(groups))!r}")
        return added

    def _add_units(self, table: Table, units: Any, n_records: int) -> str:
        if units is None:
            return ""
        column = _columns.vector(units, "units")
        check_length("units", column, n_records)
        name = table.free("unit")
        table.columns.append((name, texts(column)))
        return section("[unit]", {"column": name, "max_records": int(self.max_records_per_unit)})

    def _config(self, table: Table, label: str, unit: str) -> str:
        hidden = None if self.hidden is None else [int(width) for width in self.hidden]
        parts = [
            section("version = 1", {"accept_uncovered": bool(table.leaks), "fairness": str(self.fairness)}),
            section("[table]", {"files": [], "missing": [""]}),
            label,
            section("[privacy]", {"epsilon": float(self.epsilon), "delta": float(self.delta)}),
            section("[test]", {"fraction": float(self.test_fraction)}),
            unit,
            section("[model]", {"kind": str(self.model), "hidden": hidden, "decision": str(self.decision)}),
            section("[method]", {"name": str(self.method), **(self.method_options or {})}),
            *table.entries,
        ]
        return "\n".join(part for part in parts if part)

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _threads(self) -> int:
        cores = os.cpu_count() or 1
        if self.n_jobs is None:
            return 1
        if self.n_jobs == 0:
            raise ValueError("n_jobs = 0: expected a number of threads, or -1 for all cores")
        return int(self.n_jobs) if self.n_jobs > 0 else max(1, cores + 1 + int(self.n_jobs))

    def _answers(self, X: Any, sensitive_features: Any, *, for_decisions: bool) -> tuple[np.ndarray, np.ndarray]:
        columns, _ = self._inputs(X)
        if (_columns.library(X) != "numpy") != self._is_frame:
            # Only one of the two has names: columns go by their places, as in scikit-learn.
            columns = [(name, values) for name, (_, values) in zip(self._names, columns)]
        model = _rust.Model(self.release_["pipeline.json"], self.release_["model.safetensors"])
        schema = json.loads(self.release_["pipeline.json"])["schema"]
        kinds = {name: column["kind"] for name, column in schema["columns"]}
        table: list[tuple[str, Any]] = []
        for name, values in columns:
            column = _columns.vector(values, name)
            if kinds.get(name) == "category":
                table.append((name, texts(column)))
            elif kinds.get(name) == "number":
                table.append((name, numbers(to_numbers(values), name)))
        n_records = len(columns[0][1])
        if model.needs_groups():
            given = dict(_columns.columns(sensitive_features, "sensitive_feature", "sensitive_features"))
            names = {*given, *(name for name, _ in self._sensitive)}
            if len(given) == len(self._sensitive) == 1 and "sensitive_feature_0" in names:
                # Only one of the two has a name.
                given = {self._sensitive[0][0]: next(iter(given.values()))}
            for place, (name, stored) in enumerate(self._sensitive):
                if name in given:
                    check_length(name, given[name], n_records)
                    table.append((stored, texts(given[name])))
                elif for_decisions:
                    found = ", ".join(f"`{other}`" for other in given) or "none"
                    raise ValueError(f"sensitive_features: decisions depend on `{name}`, which is not given; given are {found}")
                else:
                    # Probabilities do not depend on it.
                    group = schema["groups"][place]["groups"]["values"][0]
                    table.append((stored, ([group], np.zeros(n_records, dtype=np.uint32))))
        return model.answers(table)


def is_number(values: Any, column: np.ndarray) -> bool:
    """Whether a column holds numbers; a frame's own type decides, for missing numbers make objects
    of an array.
    """
    kind = str(getattr(values, "dtype", "")).lower()
    if column.dtype.kind in "iuf":
        return kind != "category"
    return kind.startswith(("int", "uint", "float", "decimal"))


def to_numbers(values: Any) -> np.ndarray:
    """Numbers with ``NaN`` where one is missing."""
    if _columns.library(values) == "pandas":
        converted: np.ndarray = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return converted
    return np.asarray(values, dtype=np.float64)


def check_length(name: str, column: Any, n_records: int) -> None:
    """One value per record."""
    if len(column) != n_records:
        raise ValueError(f"`{name}` holds {len(column)} values, expected {n_records} (one for each record)")
