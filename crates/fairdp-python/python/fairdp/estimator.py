"""A differentially private classifier for scikit-learn."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from fairdp import _parameters
from fairdp._answers import Answers
from fairdp._base import PrivateEstimator, python_names, refuse_missing_labels
from fairdp._fairdp import estimator as _rust
from fairdp._leaks import CompositionWarning, NotPrivateWarning, PrivacyLeakWarning, UnmatchedValuesWarning
from fairdp._table import Table, section
from fairdp._values import is_missing, shown, text, texts
from fairdp.tables import load

FairnessMode = Literal["none", "worst-group", "equalized-odds", "equal-opportunity", "demographic-parity"]

__all__ = [
    "CompositionWarning",
    "FairDPClassifier",
    "NotPrivateWarning",
    "PrivacyLeakWarning",
    "UnmatchedValuesWarning",
]


class FairDPClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
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
    images
        A mapping from column of images to their size, ``(height, width)`` or ``(height, width, channels)``; or to
        a mapping from ``"height"``, ``"width"``, ``"channels"`` and ``"resize"`` to values. An image is a path (of a
        PNG or JPEG file), the bytes of such a file, or an array of whole numbers from 0 to 255. ``"x*"`` is one image
        of the columns ``x0``, ``x1``, …, a pixel each.
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
    model, hidden, network
        ``"additive"`` (``"auto"``: one curve per number, one value per category), ``"mlp"`` with
        hidden layers of these widths, or ``"network"``: ``"zhao-cnn"`` or ``"esipova-cnn"`` on the pixels of one
        column of images.
    method, method_options
        ``"auto"``; ``"conditioned"``, ``"conditioned-adjusted"`` or ``"conditioned-fair"``, of which
        the latter two answer as ``decision="balanced"`` does; or a clipping method with
        ``sampling_rate``, ``steps``, ``learning_rate`` and ``settings``. With
        ``sampling={"by": "group", "rates": [...]}`` each group is drawn at its own public rate;
        ``"asc"`` needs it, and clips groups so that all have the same ε. ``"asc-by-loss"`` needs
        ``sampling={"by": "loss", "least": 0.1, "largest": 0.4}``: rates follow the noisy losses of groups.
    fairness, fairness_options
        ``"none"``, or thresholds by group: ``"worst-group"``, ``"equalized-odds"``,
        ``"equal-opportunity"``, ``"demographic-parity"``, with ``max_loss`` (0.02), ``max_gap`` (0) and
        ``smallest`` (1,000 records of each class). With more than two classes, ``class`` is the positive one,
        whose answers are compared. :meth:`predict` then needs
        ``sensitive_features``, unless no threshold moved, or ``one_threshold`` is true: all groups
        then have the same, where a decision may not depend on the group. With ``coins`` the values of a record toss
        a coin between thresholds of its group. ``price_list_`` says what each mode
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
    start_from
        The folder of a run, or of a release that was saved, whose model the training corrects: no ε of its
        records is spent again, and a smaller ``epsilon`` goes as far. Columns, bounds, categories and classes
        must be its own, and a network's ``hidden``. Methods by name begin anew.
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
        images: Mapping[str, Any] | None = None,
        formats: Mapping[str, str | Mapping[str, str]] | None = None,
        parts: Mapping[str, Sequence[Literal["year", "month", "weekday"]]] | None = None,
        missing: Literal["indicator"] | Mapping[str, float] | None = None,
        classes: Sequence[Any] | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        bands: Mapping[str, Sequence[float]] | None = None,
        bins: int | None = None,
        model: Literal["auto", "additive", "mlp", "network"] = "auto",
        hidden: Sequence[int] | None = None,
        network: Literal["zhao-cnn", "esipova-cnn"] | None = None,
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
        start_from: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.vectors = vectors
        self.images = images
        self.formats = formats
        self.parts = parts
        self.missing = missing
        self.classes = classes
        self.groups = groups
        self.bands = bands
        self.bins = bins
        self.model = model
        self.hidden = hidden
        self.network = network
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
        self.start_from = start_from
        self.n_jobs = n_jobs
        self.random_state = random_state

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """The class of each record. ``sensitive_features`` are needed where decisions depend on the
        group. Elsewhere they have no effect, and their length alone is checked.
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
        refuse_missing_labels(y)
        answers = self._answers(X, sensitive_features, for_decisions=True)[0]
        levels, positions = texts(column_or_1d(y, warn=True), "y")
        places = _rust.places("y", [text(value) for value in self.classes_], levels)
        found = np.array([-1 if place is None else place for place in places])
        return float(np.average(found[positions] == answers.astype(np.int64), weights=sample_weight))

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        return self._answers(X, None, for_decisions=False)[1]

    @property
    def price_list_(self) -> list[dict[str, Any]]:
        """What each notion of fairness would change, one entry a mode: thresholds, and accuracy, gaps
        and ratios on held-out records with intervals. Empty without groups, or with more than two
        classes and no ``class`` among the ``fairness_options`` of the fit.
        """
        self._check_fitted("price_list_")
        return list(self.fairness_.get("price_list", []))

    def with_fairness(
        self,
        mode: FairnessMode,
        *,
        max_loss: float = 0.02,
        max_gap: float = 0.0,
        one_threshold: bool = False,
        coins: bool = False,
    ) -> FairDPClassifier:
        """The same model with the decisions of another notion of fairness, from scores that it has
        released: at no further ε. With ``one_threshold`` all groups have the same; with ``coins`` the values of a
        record toss a coin between thresholds of its group. Its statement has the digests of both releases.
        """
        check_is_fitted(self)
        options: dict[str, Any] = {"max_loss": max_loss, "max_gap": max_gap, "one_threshold": one_threshold, "coins": coins}
        asked = {"fairness": mode, "fairness_options": {"one_threshold": one_threshold, "coins": coins}}
        _parameters.check({**self.get_params(deep=False), **asked})
        other = copy.copy(self)
        own = self.fairness_options or {}
        if "class" in own:
            options["class"] = own["class"]
        other.fairness, other.fairness_options = mode, options
        with python_names():
            limits = (float(max_loss), float(max_gap), bool(one_threshold), bool(coins))
            other.release_ = dict(_rust.with_fairness(self.release_, mode, *limits))
        other.statement_ = json.loads(other.release_["statement.json"])
        other.fairness_ = json.loads(other.release_["fairness.json"])
        return other

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> FairDPClassifier:
        """A fitted classifier of a release or a run, whoever made it: :meth:`save`, or the program.
        The release is checked as ``fairdp verify`` does.

        A release has its classes as texts: those that are all whole numbers, or all numbers, are
        numbers again, and ``True`` and ``False`` are truth values. Parameters that it does not have,
        such as ``bounds``, are those of a new classifier.
        """
        release = load(folder)
        model: FairDPClassifier = cls._loaded(release)
        model.classes_ = _typed(release.classes)
        return model

    def _target(self, y: np.ndarray, sensitive_features: Any) -> tuple[np.ndarray, np.ndarray]:
        check_classification_targets(y)
        if self.fairness != "none" and sensitive_features is None:
            raise ValueError(f"fairness = {self.fairness!r} needs sensitive_features in fit")
        return self._classes(y)

    def _end_fit(self, target: tuple[np.ndarray, np.ndarray]) -> None:
        self.classes_ = target[0]

    def _classes(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        classes, positions = np.unique(y, return_inverse=True)
        if self.classes is not None:
            declared = _sorted(list(self.classes))
            places = _rust.places("y", [text(value) for value in declared], [text(value) for value in classes])
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

    def _add_label(self, table: Table, target: tuple[np.ndarray, np.ndarray], name: Any) -> str:
        classes, positions = target
        name = table.free(str(name or "y"))
        names = [text(value) for value in classes]
        table.columns.append((name, (names, positions.astype(np.uint32))))
        entries: dict[str, Any] = {"column": name, "classes": names}
        if self.classes is None:
            entries["from"] = "data"
            table.leaks.append("the classes")
        return section("[label]", entries)

    def _factors(self, target: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, float] | None:
        if not isinstance(self.class_weight, Mapping):
            return None
        classes, positions = target
        factors = _class_factors(self.class_weight, classes)
        return factors[positions], float(factors.max())

    def _own_sections(self) -> list[str]:
        objective = "equal-classes" if self.class_weight == "balanced" else None
        hidden = None if self.hidden is None else [int(width) for width in self.hidden]
        try:
            method = section("[method]", {"name": self.method, **(self.method_options or {})})
        except TypeError as error:
            raise TypeError(f"method_options: {error}") from None
        # These methods make classes count equally, in the place of the default.
        is_balanced = self.decision == "accuracy" and self.method in ("conditioned-adjusted", "conditioned-fair")
        decision = None if is_balanced else self.decision
        model = {"kind": self.model, "hidden": hidden, "network": self.network, "decision": decision, "objective": objective}
        return [section("[model]", model), method]

    def _fairness(self) -> str | dict[str, Any]:
        options = self.fairness_options or {}
        if not options:
            return self.fairness
        kinds: dict[str, Callable[[Any], Any]] = {"smallest": int, "one_threshold": bool, "coins": bool, "class": text}
        return {"mode": self.fairness, **{name: kinds.get(name, float)(value) for name, value in options.items()}}

    def _answers(
        self, X: Any, sensitive_features: Any, *, for_decisions: bool, stacklevel: int = 2
    ) -> tuple[np.ndarray, np.ndarray]:
        with python_names():
            return Answers(self.release_, self._sensitive).of(
                self._columns(X), sensitive_features, for_decisions=for_decisions, stacklevel=stacklevel + 1
            )


def _class_factors(by_class: Mapping[Any, Any], classes: np.ndarray) -> np.ndarray:
    """The weight of each class; 1 for one that is not listed."""
    names, given = [text(value) for value in classes], list(by_class.items())
    factors = np.ones(len(classes))
    for (value, factor), place in zip(given, _rust.places("y", names, [text(value) for value, _ in given])):
        if place is None:
            raise ValueError(f"class_weight: there is no class {shown(value)}; there are {classes.tolist()}")
        if isinstance(factor, bool) or not isinstance(factor, (int, float, np.number)) or not 0 <= float(factor) < np.inf:
            raise ValueError(f"class_weight: {shown(value)} has {shown(factor)}, expected a finite number of at least 0")
        factors[place] = float(factor)
    if not factors.any():
        raise ValueError("class_weight: every weight is zero, expected one above 0")
    return factors


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
