"""What the estimators have in common: a table of columns, one fit within ε, a release."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fairdp import _columns, _composition, _fairdp, _images, _parameters, _progress
from fairdp._answers import Answers, Reasons, check_length
from fairdp._card import Card
from fairdp._fairdp import FairDPError
from fairdp._fairdp import estimator as _rust
from fairdp._fairdp import tables as _tables
from fairdp._leaks import NotPrivateWarning, PrivacyLeakWarning, UnmatchedValuesWarning
from fairdp._sparse import SparseColumn, matrix_columns
from fairdp._table import Table, is_days, section
from fairdp._values import cells, is_missing, kind, shown, texts, unmasked
from fairdp.tables import Release, release_files


class Configured(NamedTuple):
    """Records with their declaration, and the configuration of a run on them."""

    declared: Table
    config: str
    target: Any
    sensitive: list[tuple[str, str]]
    names: list[str]


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fit is one release. A class of its own says what its label is."""

    _sensitive: list[tuple[str, str]]
    _names: list[str]
    _is_frame: bool
    epsilon: float
    delta: float | None
    bounds: Any
    categories: Mapping[str, Any] | None
    vectors: Mapping[str, Any] | None
    images: Mapping[str, Any] | None
    formats: Mapping[str, Any] | None
    parts: Mapping[str, Any] | None
    missing: Any
    groups: Mapping[str, Any] | None
    bands: Mapping[str, Any] | None
    bins: int | None
    method: str
    test_fraction: float
    max_records_per_unit: int | None
    unit_rows: str
    unit_target: str | None = None
    max_weight: float | None
    ledger: str | os.PathLike[str] | None
    total_epsilon: float | None
    start_from: str | os.PathLike[str] | None
    n_jobs: int | None
    random_state: Any
    release_: dict[str, bytes]
    statement_: dict[str, Any]
    fairness_: dict[str, Any]

    def _target(self, y: np.ndarray, sensitive_features: Any) -> Any:
        """The labels as the other methods take them; refuses those of another kind."""
        raise NotImplementedError

    def _add_label(self, table: Table, target: Any, name: Any) -> str:
        """Adds the label's column, and returns its entry."""
        raise NotImplementedError

    def _factors(self, target: Any) -> tuple[np.ndarray, float] | None:
        """What the weight of each record is multiplied by, and the largest factor."""
        return None

    def _end_fit(self, target: Any) -> None:
        """Sets the attributes that are of the label."""

    def _own_sections(self) -> list[str]:
        """Entries of the model and of its training."""
        raise NotImplementedError

    def _fairness(self) -> str | dict[str, Any]:
        return "none"

    def __init__(self, epsilon: float = 1.0, delta: float | None = None) -> None:
        self.epsilon = epsilon
        self.delta = delta

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        sensitive_features: Any = None,
        units: Any = None,
        progress: Any = None,
    ) -> Any:
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
        seed = _parameters.seed(self.random_state)
        told = _progress.callback(progress)
        table = self._configured(X, y, sample_weight, sensitive_features, units)
        self._warn(table.declared, seed)
        ledger = None if self.ledger is None else Path(self.ledger)
        start = None if self.start_from is None else Path(self.start_from)
        # 0700. It holds the run's folder until the release was read; records lie in it encoded, in
        # a file without a name.
        with tempfile.TemporaryDirectory(prefix="fairdp-") as folder:
            out = Path(folder) / "run"
            threads, known = self._threads(), _composition.known()
            try:
                with python_names():
                    columns = table.declared.columns
                    program = _fairdp.__file__
                    _rust.fit(table.config, columns, out, seed, threads, program, ledger, start, known, told)
            finally:
                _progress.end(told)
            release = release_files(out)
        self._sensitive, self._names = table.sensitive, table.names
        self._is_frame = _columns.library(X) != "numpy"
        self._end_fit(table.target)
        self.release_ = release
        self.statement_ = json.loads(release["statement.json"])
        self.fairness_ = json.loads(release["fairness.json"])
        answer = self.fairness_.get("answers_one_class")
        if answer is not None:
            warnings.warn(f"the model answers {answer!r} for nearly everyone", stacklevel=3)
        _composition.record(release["statement.json"].decode(), self.statement_, ledger is not None)

    def _configured(
        self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None, units: Any = None
    ) -> Configured:
        """The records with their declaration and the configuration, before anything is trained."""
        _parameters.check(self.get_params(deep=False))
        name = getattr(y, "name", None)
        columns, y = self._inputs(X, y)
        target = self._target(y, sensitive_features)
        table = Table()
        self._declare(table, columns)
        label = self._add_label(table, target, name)
        sensitive = self._add_groups(table, sensitive_features, len(y))
        unit = self._add_units(table, units, len(y))
        weight = self._add_weights(table, sample_weight, self._factors(target), len(y))
        delta = _tables.default_delta(len(y)) if self.delta is None else float(self.delta)
        config = self._config(table, label, unit + weight, delta)
        return Configured(table, config, target, sensitive, [name for name, _ in columns])

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

    def explain(self, X: Any, most: int = 3, *, sensitive_features: Any = None) -> Reasons:
        """For each record the columns that moved its answer most, with what each adds to the
        log-odds of the answer, or to the number that is predicted: a negative number speaks against it.

        All columns together, with an intercept that is the same for every record, are the whole
        answer. Of more than two classes a number is the answer's score less the mean of the other
        classes' scores. A network is refused.
        """
        check_is_fitted(self)
        with python_names():
            return Answers(self.release_, self._sensitive).reasons(self._columns(X), sensitive_features, most)

    @property
    def card_(self) -> Card:
        """The page about the model, as HTML; a notebook shows it."""
        self._check_fitted("card_")
        return Card(self.release_["card.html"].decode())

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the release to a folder that is new or empty, and checks it as ``fairdp verify``
        does.
        """
        check_is_fitted(self)
        Release(self.release_).save(folder)

    def _inputs(self, X: Any, y: Any = None) -> tuple[list[tuple[str, Any]], Any]:
        """Columns by name, and the labels."""
        is_new = y is not None
        if is_new:
            refuse_missing_labels(y)
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

    def _declare(self, table: Table, columns: list[tuple[str, Any]]) -> None:
        """A column is what it is declared to be, or what its own type says; never what its values
        look like.
        """
        categories = dict(self.categories or {})
        by_column = self.bounds if isinstance(self.bounds, Mapping) else None
        declared = self.missing if isinstance(self.missing, Mapping) else {}
        vectors, images = self._vectors(columns), self._image_columns(columns)
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
                if column not in {**vectors, **images} and column not in {column for column, _ in columns}:
                    raise ValueError(f"{name}: there is no column {column!r}; there are {[column for column, _ in columns]}")
        of_vector = {column: vector for vector, of_one in vectors.items() for column, _ in of_one}
        of_image = {column: image for image, of_one in images.items() for column, _ in of_one}
        for parameter, known in (("formats", of_inputs), ("parts", parts)):
            for column in known:
                if column in categories or column in vectors or column in of_vector:
                    other = "categories" if column in categories else "vectors"
                    raise TypeError(f"{parameter}: column `{column}` is among the {other}")
        used: dict[str, Any] = {"formats": of_inputs, "parts": parts, "bounds": by_column or {}, "categories": categories}
        for parameter, others in {**used, "vectors": {**vectors, **of_vector}}.items():
            for column in others:
                if column in images or column in of_image:
                    raise TypeError(f"{parameter}: column `{column}` is among the images")
        for name, values in columns:
            if name in of_image:
                image = of_image[name]
                if images[image][0][0] == name:
                    self._add_image(table, image, images[image])
                continue
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
            missing = self._missing_of(name)
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
            by_prefix = next((name for name in names if _columns.is_part(column, name)), None)
            if by_prefix is not None:
                found[by_prefix].append((column, values))
            elif column in found or (kind(values) == "vector" and column not in (self.images or {})):
                found[column] = [(column, values)]
        return _present("vectors", found, columns)

    def _missing_of(self, name: str) -> Any:
        """What is declared for missing values of a column."""
        return self.missing.get(name) if isinstance(self.missing, Mapping) else self.missing

    def _image_columns(self, columns: list[tuple[str, Any]]) -> dict[str, list[tuple[str, Any]]]:
        """The columns of each image, by its name."""
        return _present("images", {name: _columns.of_input(columns, name) for name in self.images or {}}, columns)

    def _add_image(self, table: Table, name: str, columns: list[tuple[str, Any]]) -> None:
        declared = _images.declared(name, (self.images or {})[name])
        table.add_image(name, columns, declared, self._missing_of(name) is not None)

    def _add_vector(self, table: Table, name: str, columns: list[tuple[str, Any]]) -> None:
        bound = (self.vectors or {}).get(name)
        has_missing = self._missing_of(name) is not None
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

    def _add_weights(
        self, table: Table, sample_weight: Any, factors: tuple[np.ndarray, float] | None, n_records: int
    ) -> str:
        """Records' weights times the factors of their labels."""
        if sample_weight is None and factors is None:
            if self.max_weight is not None:
                raise ValueError(f"max_weight = {self.max_weight}: expected sample_weight in fit with it")
            return ""
        high, source = 1.0, {}
        weights = np.ones(n_records)
        if sample_weight is not None:
            weights = _weights(sample_weight, n_records)
            if self.max_weight is None:
                high, source = float(weights.max()), {"from": "data"}
                table.leaks.append("the largest weight")
            else:
                high = float(self.max_weight)
                beyond = int((weights > high).sum())
                if beyond > 0:
                    message = f"sample_weight: {beyond} of {n_records} are beyond max_weight = {high:g}, and count as it does"
                    warnings.warn(message, stacklevel=5)
        if factors is not None:
            # Those beyond the largest count as it does, whatever their class.
            weights, high = np.minimum(weights, high) * factors[0], high * factors[1]
        name = table.free("weight")
        table.columns.append((name, weights))
        return section("[weight]", {"column": name, "high": high, **source})

    def _config(self, table: Table, label: str, unit: str, delta: float) -> str:
        total = None if self.total_epsilon is None else float(self.total_epsilon)
        parts = [
            section("version = 1", {"accept_uncovered": bool(table.leaks), "fairness": self._fairness()}),
            section("[table]", {"files": [], "missing": [""]}),
            label,
            section("[privacy]", {"epsilon": float(self.epsilon), "delta": delta, "total_epsilon": total}),
            section("[test]", {"fraction": float(self.test_fraction)}),
            unit,
            *self._own_sections(),
            *table.entries,
        ]
        return "\n".join(part for part in parts if part)

    @classmethod
    def _loaded(cls, release: Release) -> Any:
        """A fitted estimator of a release, but for what is of its label."""
        statement, schema = release.statement, json.loads(release.files["pipeline.json"])["schema"]
        model = cls(float(statement["epsilon"]), float(statement["delta"]))
        names = _names(schema)
        model._sensitive = [(group["column"], group["column"]) for group in schema["groups"]]
        model._names = names
        model._is_frame = names != [f"x{place}" for place in range(len(names))]
        model.n_features_in_ = len(names)
        if model._is_frame:
            model.feature_names_in_ = np.array(names, dtype=object)
        model.release_, model.statement_, model.fairness_ = release.files, statement, release.fairness
        return model

    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        cores = os.cpu_count() or 1
        return int(self.n_jobs) if self.n_jobs > 0 else max(1, cores + 1 + int(self.n_jobs))


    def _columns(self, X: Any) -> list[tuple[str, Any]]:
        """Columns under the names that the model has for them."""
        columns, _ = self._inputs(X)
        if (_columns.library(X) != "numpy") != self._is_frame:
            # Only one of the two has names: columns go by their places, as in scikit-learn.
            columns = [(name, values) for name, (_, values) in zip(self._names, columns)]
        return columns


@contextmanager
def python_names() -> Iterator[None]:
    """Refusals of the library name the parameters of Python."""
    try:
        yield
    except FairDPError as error:
        raise FairDPError(_parameters.renamed(str(error))) from None


def _names(schema: Mapping[str, Any]) -> list[str]:
    """The columns that a model reads, one by one where several make one input."""
    names = []
    for name, column in schema["columns"]:
        if name.endswith("*") and column["kind"] in ("vector", "image"):
            n_parts = column["length"] if column["kind"] == "vector" else column["height"] * column["width"] * column["channels"]
            names += [f"{name[:-1]}{place}" for place in range(n_parts)]
        elif column["kind"] != "dropped":
            names.append(str(name))
    return names


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


def refuse_missing_labels(y: Any) -> None:
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


def _present(
    parameter: str, found: dict[str, list[tuple[str, Any]]], columns: list[tuple[str, Any]]
) -> dict[str, list[tuple[str, Any]]]:
    """The columns of each input that a parameter declares, each of which must have some."""
    absent = next((name for name, of_one in found.items() if not of_one), None)
    if absent is not None:
        raise ValueError(f"{parameter}: there is no column {absent!r}; there are {[column for column, _ in columns]}")
    return found


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


def _holds_integers(values: np.ndarray) -> bool:
    return any(isinstance(value, (int, np.integer)) for value in values.flat)
