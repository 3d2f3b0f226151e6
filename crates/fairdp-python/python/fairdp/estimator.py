"""A differentially private classifier for scikit-learn."""

from __future__ import annotations

import copy
import json
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fairdp import _columns, _composition, _fairdp, _parameters, _progress
from fairdp._answers import Answers, Reasons, check_length
from fairdp._card import Card
from fairdp._fairdp import FairDPError
from fairdp._fairdp import estimator as _rust
from fairdp._fairdp import tables as _tables
from fairdp._leaks import CompositionWarning, NotPrivateWarning, PrivacyLeakWarning, UnmatchedValuesWarning
from fairdp._table import Table, is_days, section
from fairdp._sparse import SparseColumn, matrix_columns
from fairdp._values import cells, is_missing, kind, shown, text, texts, unmasked
from fairdp.tables import Release, load, release_files

FairnessMode = Literal["none", "worst-group", "equalized-odds", "equal-opportunity", "demographic-parity"]

__all__ = [
    "CompositionWarning",
    "FairDPClassifier",
    "NotPrivateWarning",
    "PrivacyLeakWarning",
    "UnmatchedValuesWarning",
]


class FairDPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is (ε, δ)-differentially private in its records, with a statement that can
    be checked.

    Every call of :meth:`fit` spends ``epsilon`` anew: refits, clones, folds and candidates of a
    search are fits. ``ledger`` adds them up in a file, ``total_epsilon_`` those of this process.

    Parameters
    ----------
    epsilon, delta
        What the release may cost, of one record or of one unit. ``delta`` must be below one over
        the number of records. Unless given it is a power of ten, at most 1e-5 and half of one over
        that number.
    bounds
        The range of numbers: a pair for all columns, or a mapping from column to pair.
        ``"private"`` in the place of a pair pays for bounds within ``epsilon``. Values beyond a
        bound are set to it. Columns of an array are ``x0``, ``x1``, … A pair of dates makes a date of a
        column, whatever its type: ``{"day": ("2020-01-01", "2024-12-31")}``.
    categories
        A mapping from column to the list of its values; ``None`` in a list gives missing values a
        feature. Values that are not listed share a feature. A column of numbers that is named here
        is a category. A value is the same in every spelling: ``1``, ``1.0``, ``"1.0"``; in a list
        of truth values also ``True`` and ``1``.
    vectors
        A mapping from column of vectors, such as embeddings, to their largest Euclidean norm, or to a
        pair of bounds of their numbers; longer vectors are shortened. ``"x*"`` is one vector of the
        columns ``x0``, ``x1``, … Of lists in polars or Arrow, which need no entry, the norm is read
        from the records unless given.
    formats
        A mapping from column of texts to how its numbers are written, ``{"decimal": ",",
        "thousands": ".", "unit": "€"}`` or some of these, or to how its dates are: ``"day-first"``,
        ``"month-first"``, ``"epoch-seconds"``, ``"epoch-milliseconds"``, ``"iso"``. Such columns have
        declared bounds, or ``"private"`` ones. A sensitive feature in ``bands`` may have a format too.
    parts
        A mapping from column of dates to some of ``"year"``, ``"month"`` and ``"weekday"``: each has a
        feature for every value.
    missing
        What stands for a missing number (``NaN``, ``None``, ``NaT``, ``pandas.NA``, masked), beside an
        indicator: a mapping from column to number, or ``"indicator"`` for the lower bound in every
        column of numbers. Without it a missing number is refused.
    classes
        The classes. The last one in sorted order is the positive one of two.
    groups, bands
        Mappings from sensitive feature to the list of its groups, or to ascending edges between
        bands of a number. A feature of more than 100 values that is in neither is refused.
    bins
        Bins of every column of numbers; 16 unless given. Fewer bins are fewer features, and less
        noise. Where bounds are ``"private"``, the bins are released with them.
    model, hidden
        ``"additive"`` (``"auto"``: one curve per number, one value per category) or ``"mlp"`` with
        hidden layers of these widths.
    method, method_options
        ``"auto"``; ``"conditioned"``, ``"conditioned-adjusted"`` or ``"conditioned-fair"``, of which
        the latter two answer as ``decision="balanced"`` does; or a clipping method with
        ``sampling_rate``, ``steps``, ``learning_rate`` and ``settings``.
    fairness, fairness_options
        ``"none"``, or thresholds by group: ``"worst-group"``, ``"equalized-odds"``,
        ``"equal-opportunity"``, ``"demographic-parity"``, with ``max_loss`` (0.02), ``max_gap`` (0) and
        ``smallest`` (1,000 records of each class). :meth:`predict` then needs
        ``sensitive_features``, unless no threshold moved, or ``one_threshold`` is true: all groups
        then have the same, where a decision may not depend on the group. ``price_list_`` says what each mode
        would change, and :meth:`with_fairness` changes it.
    decision
        ``"accuracy"`` answers the most probable class, as scikit-learn's checks require of
        ``predict`` beside ``predict_proba``; ``"balanced"`` and ``"compromise"``, the default of the
        program ``fairdp``, answer rare classes more often.
    test_fraction
        Share of the records that are not trained on; ``fairness_`` is about them. They cost no
        more: each record is used once. 0 trains on all, for who has other test records.
    max_records_per_unit
        Records of one unit that are used, 1 unless given; only with ``units`` in :meth:`fit`.
    unit_rows, unit_target
        ``"first"``, or ``"mean"``: one record is the mean of all rows of a unit, at the noise of one
        record. Its class is that of the last row (``"last"``), the last class that any of its rows
        has (``"maximum"``), or there is a record for each class (``"each-class"``).
    class_weight
        ``"balanced"`` lets classes count equally in training, by their noisy counts; a mapping from
        class to weight multiplies those of the records. Probabilities are those of the population
        with ``"balanced"``, and of the weighted records with a mapping.
    max_weight
        The largest ``sample_weight``; larger ones are set to it. It is read from the records, and
        covered by no ε, unless given. Clipping methods by name and networks have no weights.
    ledger, total_epsilon
        A file, of the program's kind, in which all fits on the same records are entered before they
        release anything, and the ε that all may have together: that of the first fit unless given.
        A fit beyond it is refused. Clones and other processes share the file.
    n_jobs
        Threads, -1 for all cores. They change no bit of the model.
    random_state
        Makes the run repeatable **and not private**: whoever knows it can take the noise off. The
        statement says so, and :meth:`fit` warns. Ensembles such as ``BaggingClassifier`` set it.

    Attributes
    ----------
    classes_ : the classes, sorted.
    epsilon_ : what this fit spent, at most ``epsilon``.
    total_epsilon_ : ε of all fits of this process together, whatever records they had; with
        ``ledger``, of all fits in it. Fits of other processes without a ledger are not seen.
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
    >>> model = FairDPClassifier(epsilon=2.0, bounds=(-1, 1), classes=[0, 1]).fit(X, y)
    >>> model.epsilon_ <= 2.0, model.statement_["mark"], model.statement_["private"]
    (True, 'certified', True)
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        bounds: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        vectors: Mapping[str, Any] | None = None,
        formats: Mapping[str, str | Mapping[str, str]] | None = None,
        parts: Mapping[str, Sequence[Literal["year", "month", "weekday"]]] | None = None,
        missing: Literal["indicator"] | Mapping[str, float] | None = None,
        classes: Sequence[Any] | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        bands: Mapping[str, Sequence[float]] | None = None,
        bins: int | None = None,
        model: Literal["auto", "additive", "mlp"] = "auto",
        hidden: Sequence[int] | None = None,
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        fairness: FairnessMode = "none",
        fairness_options: Mapping[str, Any] | None = None,
        decision: Literal["accuracy", "compromise", "balanced"] = "accuracy",
        test_fraction: float = 0.2,
        max_records_per_unit: int | None = None,
        unit_rows: Literal["first", "mean"] = "first",
        unit_target: Literal["last", "maximum", "each-class"] | None = None,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        max_weight: float | None = None,
        ledger: str | os.PathLike[str] | None = None,
        total_epsilon: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.vectors = vectors
        self.formats = formats
        self.parts = parts
        self.missing = missing
        self.classes = classes
        self.groups = groups
        self.bands = bands
        self.bins = bins
        self.model = model
        self.hidden = hidden
        self.method = method
        self.method_options = method_options
        self.fairness = fairness
        self.fairness_options = fairness_options
        self.decision = decision
        self.test_fraction = test_fraction
        self.max_records_per_unit = max_records_per_unit
        self.unit_rows = unit_rows
        self.unit_target = unit_target
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.ledger = ledger
        self.total_epsilon = total_epsilon
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        sensitive_features: Any = None,
        units: Any = None,
        progress: Any = None,
    ) -> FairDPClassifier:
        """Trains on an array of numbers, or on a pandas or polars frame of numbers and texts.

        ``sample_weight`` says how much each record counts in training, up to ``max_weight``.
        ``sensitive_features`` are the groups that ``fairness_`` is about, ``units`` whose record
        each is. ``progress=True`` shows stages and steps; a function is called with the stage, the
        steps done and all steps. Ctrl-C ends the run; nothing is then released. After a refit that
        fails the model is what it was.
        """
        before = dict(vars(self))
        try:
            self._fit(X, y, sample_weight, sensitive_features, units, progress)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any, units: Any, progress: Any
    ) -> None:
        _parameters.check(self.get_params(deep=False))
        seed = _parameters.seed(self.random_state)
        told = _progress.callback(progress)
        name = getattr(y, "name", None)
        columns, y = self._inputs(X, y)
        check_classification_targets(y)
        if self.fairness != "none" and sensitive_features is None:
            raise ValueError(f"fairness = {self.fairness!r} needs sensitive_features in fit")
        classes, positions = self._classes(y)
        table = Table()
        self._declare(table, columns)
        label = self._add_label(table, classes, positions, name)
        sensitive = self._add_groups(table, sensitive_features, len(positions))
        unit = self._add_units(table, units, len(positions))
        weight = self._add_weights(table, sample_weight, classes, positions)
        self._warn(table, seed)
        delta = _tables.default_delta(len(positions)) if self.delta is None else float(self.delta)
        config = self._config(table, label, unit + weight, delta)
        ledger = None if self.ledger is None else Path(self.ledger)
        # 0700. It holds the run's folder until the release was read; records lie in it encoded, in
        # a file without a name.
        with tempfile.TemporaryDirectory(prefix="fairdp-") as folder:
            out = Path(folder) / "run"
            threads, known = self._threads(), _composition.known()
            try:
                with _python_names():
                    _rust.fit(config, table.columns, out, seed, threads, _fairdp.__file__, ledger, known, told)
            finally:
                _progress.end(told)
            release = release_files(out)
        self._sensitive, self._names = sensitive, [name for name, _ in columns]
        self._is_frame = _columns.library(X) != "numpy"
        self.classes_ = classes
        self.release_ = release
        self.statement_ = json.loads(release["statement.json"])
        self.fairness_ = json.loads(release["fairness.json"])
        _composition.record(release["statement.json"].decode(), self.statement_, ledger is not None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing is not None
        tags.input_tags.sparse = True
        return tags

    @property
    def epsilon_(self) -> float:
        """ε of this fit. Warns if a seed makes the fit not private."""
        self._check_fitted("epsilon_")
        if not self.statement_["private"]:
            message = f"epsilon_: not private, whatever it is: the noise follows from the seed {self.statement_['seed']}"
            warnings.warn(message, NotPrivateWarning, stacklevel=2)
        return float(self.statement_["epsilon"])

    @property
    def total_epsilon_(self) -> float:
        """ε of all fits of this process together at this one's δ, as if all were about the same
        records; with ``ledger``, of all fits that were in it when this one was entered. Other
        processes' fits without a ledger are not seen.
        """
        self._check_fitted("total_epsilon_")
        in_ledger = self.statement_["total_epsilon"]
        if in_ledger is not None:
            return float(in_ledger)
        return _composition.epsilon(self.release_["statement.json"].decode(), float(self.statement_["delta"]))

    def _check_fitted(self, name: str) -> None:
        if "statement_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no {name} before fit")

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        written: str = super().__repr__(N_CHAR_MAX=N_CHAR_MAX)
        is_private = self.random_state is None and vars(self).get("statement_", {}).get("private", True)
        return written if is_private else f"{written} (not private: seeded)"

    def _warn(self, table: Table, seed: int | None) -> None:
        """Warns of everything that a person should know before the fit."""
        if table.leaks:
            leaks = ", ".join(table.leaks[:8]) + (f" and {len(table.leaks) - 8} more" if len(table.leaks) > 8 else "")
            message = (
                f"taken from the records, and covered by no ε: {leaks}. The statement is conditional on them; declare them "
                "by bounds=, categories=, classes=, groups= and bands=, or pay for bounds by bounds=\"private\""
            )
            warnings.warn(message, PrivacyLeakWarning, stacklevel=4)
        if seed is not None:
            message = (
                f"random_state: not private, whatever epsilon_ says: who knows the seed {seed} can take the noise off. "
                "Ensembles and searches may have set it; random_state=None draws the noise from the operating system"
            )
            warnings.warn(message, NotPrivateWarning, stacklevel=4)
        for remark in table.remarks:
            warnings.warn(remark, UnmatchedValuesWarning, stacklevel=4)
        if self.ledger is None:
            _composition.warn(4)

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
        check_is_fitted(self)
        check_consistent_length(X, y, sample_weight)
        _refuse_missing_labels(y)
        answers = self._answers(X, sensitive_features, for_decisions=True)[0]
        levels, positions = texts(column_or_1d(y, warn=True), "y")
        places = _rust.places([text(value) for value in self.classes_], levels)
        found = np.array([-1 if place is None else place for place in places])
        return float(np.average(found[positions] == answers.astype(np.int64), weights=sample_weight))

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        return self._answers(X, None, for_decisions=False)[1]

    def explain(self, X: Any, most: int = 3, *, sensitive_features: Any = None) -> Reasons:
        """For each record the columns that moved its answer most, with what each adds to the
        log-odds of the answer: a negative number speaks against it.

        All columns together, with an intercept that is the same for every record, are the whole
        answer. Of more than two classes a number is the answer's score less the mean of the other
        classes' scores. A network is refused.
        """
        check_is_fitted(self)
        with _python_names():
            return Answers(self.release_, self._sensitive).reasons(self._columns(X), sensitive_features, most)

    @property
    def card_(self) -> Card:
        """The page about the model, as HTML; a notebook shows it."""
        self._check_fitted("card_")
        return Card(self.release_["card.html"].decode())

    @property
    def price_list_(self) -> list[dict[str, Any]]:
        """What each notion of fairness would change, one entry a mode: thresholds, and accuracy, gaps
        and ratios on held-out records with intervals. Empty without groups, or with more than two
        classes.
        """
        self._check_fitted("price_list_")
        return list(self.fairness_.get("price_list", []))

    def with_fairness(
        self, mode: FairnessMode, *, max_loss: float = 0.02, max_gap: float = 0.0, one_threshold: bool = False
    ) -> FairDPClassifier:
        """The same model with the decisions of another notion of fairness, from scores that it has
        released: at no further ε. With ``one_threshold`` all groups have the same. Its statement has the digests of both releases.
        """
        check_is_fitted(self)
        options = {"max_loss": max_loss, "max_gap": max_gap, "one_threshold": one_threshold}
        asked = {"fairness": mode, "fairness_options": {"one_threshold": one_threshold}}
        _parameters.check({**self.get_params(deep=False), **asked})
        other = copy.copy(self)
        other.fairness, other.fairness_options = mode, options
        with _python_names():
            limits = (float(max_loss), float(max_gap), bool(one_threshold))
            other.release_ = dict(_rust.with_fairness(self.release_, mode, *limits))
        other.statement_ = json.loads(other.release_["statement.json"])
        other.fairness_ = json.loads(other.release_["fairness.json"])
        return other

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the release to a folder that is new or empty, and checks it as ``fairdp verify``
        does.
        """
        check_is_fitted(self)
        Release(self.release_).save(folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> FairDPClassifier:
        """A fitted classifier of a release or a run, whoever made it: :meth:`save`, or the program.
        The release is checked as ``fairdp verify`` does.

        A release has its classes as texts: those that are all whole numbers, or all numbers, are
        numbers again, and ``True`` and ``False`` are truth values. Parameters that it does not have,
        such as ``bounds``, are those of a new classifier.
        """
        release = load(folder)
        statement, schema = release.statement, json.loads(release.files["pipeline.json"])["schema"]
        model = cls(float(statement["epsilon"]), float(statement["delta"]))
        names = [str(name) for name, column in schema["columns"] if column["kind"] != "dropped"]
        model._sensitive = [(group["column"], group["column"]) for group in schema["groups"]]
        model._names = names
        model._is_frame = names != [f"x{place}" for place in range(len(names))]
        model.n_features_in_ = len(names)
        if model._is_frame:
            model.feature_names_in_ = np.array(names, dtype=object)
        model.classes_ = _typed(release.classes)
        model.release_, model.statement_, model.fairness_ = release.files, statement, release.fairness
        return model

    def _inputs(self, X: Any, y: Any = None) -> tuple[list[tuple[str, Any]], Any]:
        """Columns by name, and the labels."""
        is_new = y is not None
        if is_new:
            _refuse_missing_labels(y)
        if _columns.library(X) == "numpy":
            if isinstance(X, np.ma.MaskedArray):
                X = unmasked(X)
            # Floating point, which scikit-learn makes of objects, may have lost what they are.
            given = np.asarray(X) if isinstance(X, (list, np.ndarray)) else None
            # Missing numbers are refused column by column, where none are declared.
            accepted: dict[str, Any] = {"accept_sparse": "csc", "ensure_all_finite": "allow-nan"}
            if is_new:
                X, y = validate_data(self, X, y, **accepted)
            else:
                X = validate_data(self, X, reset=False, **accepted)
            if hasattr(X, "tocsc"):
                return [(f"x{place}", column) for place, column in enumerate(matrix_columns(X))], y
            if given is not None and given.dtype.kind == "O" and given.shape == X.shape and _holds_integers(given):
                X = given
            return [(f"x{place}", X[:, place]) for place in range(X.shape[1])], y
        validate_data(self, X, reset=is_new, skip_check_array=True)
        if is_new:
            check_consistent_length(X, y)
            y = column_or_1d(y, warn=True)
        return [(str(name), X[name]) for name in X.columns], y

    def _classes(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        classes, positions = np.unique(y, return_inverse=True)
        if self.classes is not None:
            declared = _sorted(list(self.classes))
            places = _rust.places([text(value) for value in declared], [text(value) for value in classes])
            unknown = [value for value, place in zip(classes.tolist(), places) if place is None]
            if unknown:
                raise ValueError(f"classes: y has {shown(unknown[0])}, which is not among {declared.tolist()}")
            positions = np.array(places)[positions]
            classes = declared
        if len(classes) < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes; the data contains one class, {classes[0]!r}")
        names = [text(value) for value in classes]
        if len(_rust.distinct(names)) < len(names) or "" in names:
            raise ValueError(f"classes: {classes.tolist()} are not different values that are not empty")
        return classes, positions.reshape(-1)

    def _add_label(self, table: Table, classes: np.ndarray, positions: np.ndarray, name: Any) -> str:
        name = table.free(str(name or "y"))
        names = [text(value) for value in classes]
        table.columns.append((name, (names, positions.astype(np.uint32))))
        entries: dict[str, Any] = {"column": name, "classes": names}
        if self.classes is None:
            entries["from"] = "data"
            table.leaks.append("the classes")
        return section("[label]", entries)

    def _declare(self, table: Table, columns: list[tuple[str, Any]]) -> None:
        """A column is what it is declared to be, or what its own type says; never what its values
        look like.
        """
        categories = dict(self.categories or {})
        by_column = self.bounds if isinstance(self.bounds, Mapping) else None
        declared = self.missing if isinstance(self.missing, Mapping) else {}
        vectors = self._vectors(columns)
        formats, parts = dict(self.formats or {}), dict(self.parts or {})
        bands = dict(self.bands or {})
        of_inputs = {name: format for name, format in formats.items() if name not in bands}
        for name, known in (
            ("categories", categories),
            ("bounds", by_column or {}),
            ("missing", declared),
            ("formats", of_inputs),
            ("parts", parts),
        ):
            for column in known:
                if column not in vectors and column not in {column for column, _ in columns}:
                    raise ValueError(f"{name}: there is no column {column!r}; there are {[column for column, _ in columns]}")
        of_vector = {column: vector for vector, of_one in vectors.items() for column, _ in of_one}
        for parameter, known in (("formats", of_inputs), ("parts", parts)):
            for column in known:
                if column in categories or column in vectors or column in of_vector:
                    other = "categories" if column in categories else "vectors"
                    raise TypeError(f"{parameter}: column `{column}` is among the {other}")
        for name, values in columns:
            if name in of_vector:
                vector = of_vector[name]
                if vectors[vector][0][0] == name:
                    self._add_vector(table, vector, vectors[vector])
                continue
            found = kind(values)
            is_bounded = by_column is not None and name in by_column
            # scikit-learn has checked that an array holds numbers.
            is_of_array = isinstance(values, (np.ndarray, SparseColumn))
            is_numeric = found in ("bool", "number") or (found == "object" and is_of_array)
            missing = self.missing.get(name) if isinstance(self.missing, Mapping) else self.missing
            bounds = by_column.get(name) if by_column is not None else self.bounds
            format = formats.get(name)
            has_date = found == "date" or isinstance(format, str) or (is_bounded and is_days(bounds))
            if name not in categories and has_date:
                is_private = isinstance(bounds, str) and bounds == "private"
                if isinstance(format, str) and not is_bounded and not is_private:
                    raise ValueError(f"formats: `{name}` has no bounds; declare a pair of dates in bounds, or \"private\"")
                bounds = bounds if is_bounded or is_private else None
                of_texts = format if isinstance(format, str) else None
                table.add_date(name, values, bounds, self.bins, missing is not None, of_texts, parts.get(name))
                continue
            if name in parts:
                raise TypeError(f"parts: column `{name}` is no date: give it a pair of dates in bounds, or a format of dates")
            if isinstance(format, Mapping) and not is_numeric:
                table.add_number_of_texts(name, values, format, bounds, self.bins, missing)
                continue
            if is_bounded and (name in categories or not is_numeric):
                reason = "is among the categories" if name in categories else f"holds {values.dtype}"
                raise TypeError(f"bounds: column `{name}` {reason}, expected numbers; convert it, or leave it out of bounds")
            if name in categories:
                table.add_category(name, values, categories[name])
            elif found == "bool" and is_bounded:
                table.add_number(name, values, bounds, 1, missing)
            elif found == "bool":
                table.add_boolean(name, values, missing is not None)
            elif is_numeric:
                table.add_number(name, values, bounds, self.bins, missing)
            elif found == "time":
                raise TypeError(f"column `{name}` holds {values.dtype}; make numbers of it, or drop it")
            else:
                if found == "object":
                    _refuse_untyped(name, cells(values))
                table.add_category(name, values, None)

    def _vectors(self, columns: list[tuple[str, Any]]) -> dict[str, list[tuple[str, Any]]]:
        """The columns of each vector, by its name."""
        names = list(self.vectors or {})
        found: dict[str, list[tuple[str, Any]]] = {name: [] for name in names}
        for column, values in columns:
            by_prefix = next((name for name in names if name.endswith("*") and _is_part(column, name)), None)
            if by_prefix is not None:
                found[by_prefix].append((column, values))
            elif column in found or kind(values) == "vector":
                found[column] = [(column, values)]
        absent = next((name for name in names if not found[name]), None)
        if absent is not None:
            raise ValueError(f"vectors: there is no column {absent!r}; there are {[column for column, _ in columns]}")
        return found

    def _add_vector(self, table: Table, name: str, columns: list[tuple[str, Any]]) -> None:
        bound = (self.vectors or {}).get(name)
        has_missing = (self.missing.get(name) if isinstance(self.missing, Mapping) else self.missing) is not None
        if columns[0][0] == name:
            table.add_vector(name, columns[0][1], bound, has_missing)
        else:
            table.add_vector_of(name, columns, bound, has_missing)

    def _add_groups(self, table: Table, features: Any, n_records: int) -> list[tuple[str, str]]:
        groups, bands = dict(self.groups or {}), dict(self.bands or {})
        both = groups.keys() & bands.keys()
        if both:
            raise ValueError(f"groups and bands: {min(both)!r} is in both, expected in one")
        added = []
        for name, column in _columns.named(features, "sensitive_feature", "sensitive_features"):
            check_length(name, column, n_records)
            free = table.free(name)
            format = (self.formats or {}).get(name)
            table.add_group(free, column, groups.pop(name, None), bands.pop(name, None), format)
            added.append((name, free))
        for parameter, left in (("groups", groups), ("bands", bands)):
            if left:
                raise ValueError(f"{parameter}: there is no sensitive feature {next(iter(left))!r}")
        return added

    def _add_units(self, table: Table, units: Any, n_records: int) -> str:
        if units is None:
            if self.max_records_per_unit is not None:
                raise ValueError(f"max_records_per_unit = {self.max_records_per_unit}: expected units in fit with it")
            if self.unit_rows != "first":
                raise ValueError(f"unit_rows = {self.unit_rows!r}: expected units in fit with it")
            return ""
        column = _columns.vector(units, "units") if hasattr(units, "columns") else units
        check_length("units", column, n_records)
        name = table.free("unit")
        table.columns.append((name, texts(column, "units")))
        if self.unit_rows == "mean":
            return section("[unit]", {"column": name, "rows": "mean", "target": self.unit_target})
        return section("[unit]", {"column": name, "max_records": int(self.max_records_per_unit or 1)})

    def _add_weights(self, table: Table, sample_weight: Any, classes: np.ndarray, positions: np.ndarray) -> str:
        """Records' weights times those of their classes."""
        by_class = self.class_weight if isinstance(self.class_weight, Mapping) else None
        if sample_weight is None and by_class is None:
            if self.max_weight is not None:
                raise ValueError(f"max_weight = {self.max_weight}: expected sample_weight in fit with it")
            return ""
        high, source = 1.0, {}
        weights = np.ones(len(positions))
        if sample_weight is not None:
            weights = _weights(sample_weight, len(positions))
            if self.max_weight is None:
                high, source = float(weights.max()), {"from": "data"}
                table.leaks.append("the largest weight")
            else:
                high = float(self.max_weight)
        if by_class is not None:
            factors = _class_factors(by_class, classes)
            # Those beyond the largest count as it does, whatever their class.
            weights, high = np.minimum(weights, high) * factors[positions], high * float(factors.max())
        name = table.free("weight")
        table.columns.append((name, weights))
        return section("[weight]", {"column": name, "high": high, **source})

    def _config(self, table: Table, label: str, unit: str, delta: float) -> str:
        objective = "equal-classes" if self.class_weight == "balanced" else None
        hidden = None if self.hidden is None else [int(width) for width in self.hidden]
        total = None if self.total_epsilon is None else float(self.total_epsilon)
        try:
            method = section("[method]", {"name": self.method, **(self.method_options or {})})
        except TypeError as error:
            raise TypeError(f"method_options: {error}") from None
        # These methods make classes count equally, in the place of the default.
        is_balanced = self.decision == "accuracy" and self.method in ("conditioned-adjusted", "conditioned-fair")
        decision = None if is_balanced else self.decision
        parts = [
            section("version = 1", {"accept_uncovered": bool(table.leaks), "fairness": self._fairness()}),
            section("[table]", {"files": [], "missing": [""]}),
            label,
            section("[privacy]", {"epsilon": float(self.epsilon), "delta": delta, "total_epsilon": total}),
            section("[test]", {"fraction": float(self.test_fraction)}),
            unit,
            section("[model]", {"kind": self.model, "hidden": hidden, "decision": decision, "objective": objective}),
            method,
            *table.entries,
        ]
        return "\n".join(part for part in parts if part)

    def _fairness(self) -> str | dict[str, Any]:
        options = self.fairness_options or {}
        if not options:
            return self.fairness
        kinds = {"smallest": int, "one_threshold": bool}
        return {"mode": self.fairness, **{name: kinds.get(name, float)(value) for name, value in options.items()}}

    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        cores = os.cpu_count() or 1
        return int(self.n_jobs) if self.n_jobs > 0 else max(1, cores + 1 + int(self.n_jobs))

    def _answers(
        self, X: Any, sensitive_features: Any, *, for_decisions: bool, stacklevel: int = 2
    ) -> tuple[np.ndarray, np.ndarray]:
        with _python_names():
            return Answers(self.release_, self._sensitive).of(
                self._columns(X), sensitive_features, for_decisions=for_decisions, stacklevel=stacklevel + 1
            )

    def _columns(self, X: Any) -> list[tuple[str, Any]]:
        """Columns under the names that the model has for them."""
        columns, _ = self._inputs(X)
        if (_columns.library(X) != "numpy") != self._is_frame:
            # Only one of the two has names: columns go by their places, as in scikit-learn.
            columns = [(name, values) for name, (_, values) in zip(self._names, columns)]
        return columns


@contextmanager
def _python_names() -> Iterator[None]:
    """Refusals of the library name the parameters of Python."""
    try:
        yield
    except FairDPError as error:
        raise FairDPError(_parameters.renamed(str(error))) from None


def _is_part(column: str, name: str) -> bool:
    """Whether a column is one of those that an entry such as ``x*`` names."""
    return column.startswith(name[:-1]) and column[len(name) - 1 :].isdecimal()


def _weights(sample_weight: Any, n_records: int) -> np.ndarray:
    """Finite numbers of at least 0, one for each record."""
    weights = _columns.vector(sample_weight, "sample_weight")
    check_length("sample_weight", weights, n_records)
    try:
        weights = weights.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight holds {weights.dtype}, expected numbers of at least 0") from None
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong) > 0:
        value = weights[wrong[0]]
        raise ValueError(f"sample_weight: record {wrong[0]} has {value:g}, expected a finite number of at least 0")
    if not weights.any():
        raise ValueError("sample_weight: every weight is zero, expected one above 0")
    return weights


def _class_factors(by_class: Mapping[Any, Any], classes: np.ndarray) -> np.ndarray:
    """The weight of each class; 1 for one that is not listed."""
    names, given = [text(value) for value in classes], list(by_class.items())
    factors = np.ones(len(classes))
    for (value, factor), place in zip(given, _rust.places(names, [text(value) for value, _ in given])):
        if place is None:
            raise ValueError(f"class_weight: there is no class {shown(value)}; there are {classes.tolist()}")
        if isinstance(factor, bool) or not isinstance(factor, (int, float, np.number)) or not 0 <= float(factor) < np.inf:
            raise ValueError(f"class_weight: {shown(value)} has {shown(factor)}, expected a finite number of at least 0")
        factors[place] = float(factor)
    if not factors.any():
        raise ValueError("class_weight: every weight is zero, expected one above 0")
    return factors


def _refuse_missing_labels(y: Any) -> None:
    values = cells(y) if isinstance(y, (list, tuple)) or hasattr(y, "dtype") else np.asarray(y)
    if values.dtype.kind in "fc":
        missing = np.flatnonzero(np.isnan(values))
        record = int(missing[0]) if len(missing) else None
    elif values.dtype.kind in "OmM":
        record = next((record for record, value in enumerate(values.reshape(-1)) if is_missing(value)), None)
    else:
        record = None
    if record is not None:
        raise ValueError(f"Input y contains NaN: record {record} has no label; leave such records out")


def _refuse_untyped(name: str, values: np.ndarray) -> None:
    """An object column that is not declared is of texts: what else it holds could make it another
    kind of column, record by record.
    """
    for record, value in enumerate(values):
        if not (isinstance(value, (str, bytes)) or is_missing(value)):
            raise TypeError(
                f"column `{name}` holds {values.dtype}, and record {record} is {shown(value)}: nothing says what the column is; "
                "name it in categories=, or convert it to numbers"
            )


def _typed(classes: list[str]) -> np.ndarray:
    """Classes in the type that their texts have."""
    if set(classes) == {"False", "True"}:
        return np.array([text == "True" for text in classes])
    for to in (int, float):
        try:
            return np.array([to(text) for text in classes])
        except ValueError:
            pass
    return np.array(classes, dtype=object)


def _holds_integers(values: np.ndarray) -> bool:
    return any(isinstance(value, (int, np.integer)) for value in values.flat)


def _sorted(values: list[Any]) -> np.ndarray:
    """As scikit-learn sorts classes."""
    record = next((record for record, value in enumerate(values) if is_missing(value)), None)
    if record is not None:
        raise ValueError(f"classes: value {record} is missing, expected a class")
    try:
        found: np.ndarray = np.unique(np.asarray(values))
    except TypeError:
        raise ValueError(f"classes = {shown(values)}: expected values of one type") from None
    return found
