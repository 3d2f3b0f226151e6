"""One's own tables in files, as the program ``fairdp`` has them: configurations, runs and releases.

A run made here is one that the program verifies, continues and predicts from, and the other way
round. Every function and its keywords have the names that the program's commands and options have;
the same configuration and seed give the same model, bit for bit.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from fairdp import _columns, _composition, _fairdp, _progress
from fairdp._answers import Answers, Reasons
from fairdp._card import Card
from fairdp._fairdp import FairDPError
from fairdp._fairdp import estimator as _estimator
from fairdp._fairdp import tables as _rust
from fairdp._leaks import NotPrivateWarning, UnmatchedValuesWarning
from fairdp._table import toml

__all__ = ["Exported", "Release", "export", "fit", "init", "keygen", "load", "plan", "predict", "sign", "verify"]

PathLike = str | os.PathLike[str]


class Exported(NamedTuple):
    """A release in a form that others ask for."""

    text: str
    missing: list[str]
    """What only a person can say and ``[card]`` does not: fields with what they ask for."""


class Release:
    """A model with its statement, as it may be published.

    Attributes
    ----------
    classes : the classes, as texts, in the order of the probabilities.
    statement : the privacy statement: what is protected, what is not, and every noisy release.
    statement_text : the same as text.
    fairness : rates by group on records that were held out, with intervals.
    card : the page about the model, as HTML; a notebook shows it.
    files : the files of the release by name, as bytes.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.statement: dict[str, Any] = json.loads(self.files["statement.json"])
        self.statement_text = self.files["statement.md"].decode()
        self.fairness: dict[str, Any] = json.loads(self.files["fairness.json"])
        self.card = Card(self.files["card.html"].decode())
        self._answers = Answers(self.files)
        self.classes = self._answers.classes

    @property
    def epsilon(self) -> float:
        """ε of everything in the release."""
        return float(self.statement["epsilon"])

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """The class of each record of a frame, or of a mapping from column to values, as text; of a
        release that predicts a number, that number.

        ``sensitive_features`` are needed where decisions depend on the group.
        """
        if self._answers.range is not None:
            return self._answers.numbers(_named(X), sensitive_features, stacklevel=2)
        found, _ = self._answers.of(_named(X), sensitive_features, for_decisions=True, stacklevel=2)
        answers: np.ndarray = np.array(self.classes, dtype=object)[found]
        return answers

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of ``classes``."""
        if self._answers.range is not None:
            raise FairDPError("predict_proba: the release predicts a number, which has no classes")
        return self._answers.of(_named(X), None, for_decisions=False, stacklevel=2)[1]

    def explain(self, X: Any, most: int = 3, *, sensitive_features: Any = None) -> Reasons:
        """For each record the columns that moved its answer most, with what each adds to the
        log-odds of the answer: a negative number speaks against it.

        All columns together, with an intercept that is the same for every record, are the whole
        answer. Of more than two classes a number is the answer's score less the mean of the other
        classes' scores. A network is refused.
        """
        return self._answers.reasons(_named(X), sensitive_features, most)

    def save(self, folder: PathLike) -> None:
        """Writes the release to a folder that is new or empty, and checks it as ``fairdp verify``
        does.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise FileExistsError(f"`{path}` is not empty: give another folder")
        for name, data in self.files.items():
            (path / name).write_bytes(data)
        verify(path)

    def __repr__(self) -> str:
        statement = self.statement
        private = statement["mark"] if statement["private"] else "not private: seeded"
        return f"<fairdp.Release: {statement['model']}; epsilon {self.epsilon:.4g} at delta {statement['delta']:g}, {private}>"

    def _repr_html_(self) -> str:
        return self.card._repr_html_()


def init(
    table: PathLike | Sequence[PathLike],
    label: str,
    *,
    positive: str | None = None,
    groups: Sequence[str] = (),
    group_as_input: bool = False,
    unit: str | None = None,
    max_records_per_unit: int | None = None,
    weight: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    test_fraction: float | None = None,
    model: str | None = None,
    method: str | None = None,
    encoding: str | None = None,
    vectors: Mapping[str, PathLike | Sequence[PathLike]] | None = None,
    accept_uncovered: bool = False,
) -> str:
    """A configuration for a table in files, as text: one entry per column. What it read from the
    table is marked ``from = "data"``, which no ε covers.

    ``vectors`` are columns in files of NumPy, such as ``{"embedding": "embeddings.npy"}``: a file for
    each of the table's, with a row for each of its rows.
    """
    return _rust.init(
        _paths(table),
        label,
        positive=positive,
        groups=list(groups),
        group_as_input=group_as_input,
        unit=unit,
        max_records_per_unit=max_records_per_unit,
        weight=weight,
        epsilon=epsilon,
        delta=delta,
        test_fraction=test_fraction,
        model=model,
        method=method,
        encoding=encoding,
        vectors=_vectors(vectors),
        accept_uncovered=accept_uncovered,
    )


def fit(
    config: PathLike | Mapping[str, Any] | None = None,
    *,
    out: PathLike,
    seed: int | None = None,
    threads: int | None = None,
    ledger: PathLike | None = None,
    start_from: PathLike | None = None,
    resume: bool = False,
    reference: bool = False,
    keep_encoded: bool = False,
    progress: Any = None,
    **declared: Any,
) -> Release:
    """Trains on the table of a configuration, and leaves the run in the folder ``out``.

    ``config`` is a file, or a mapping of the same form. Without one the keywords of :func:`init`
    declare the table, ``table`` and ``label`` at least: ranges, values and classes are then read
    from it, and refused unless ``accept_uncovered=True``, whose statement is conditional on them.

    ``start_from`` is a run or a release whose model the training corrects, as the program's ``--from``.

    All cores are used; ``threads`` change no bit of the result. ``progress=True`` shows the run's
    stages and steps; a function is called with the stage, the steps done and all steps. Ctrl-C ends
    the run, and ``resume=True`` continues one that was ended. Values of the table that the
    configuration does not foresee are warned of: such a warning is as private as the records.
    """
    if config is None and not declared:
        raise TypeError("fit needs config, or table= and label= as in init")
    if config is not None and declared:
        raise TypeError(f"fit: {min(declared)} is a keyword of init, expected without config")
    told = _progress.callback(progress)
    if seed is not None:
        message = f"seed: not private, whatever ε says: who knows the seed {seed} can take the noise off"
        warnings.warn(message, NotPrivateWarning, stacklevel=2)
    if ledger is None:
        _composition.warn(2)
    with _configuration(config if config is not None else init(**declared)) as path:
        try:
            remarks = _rust.fit(
                path,
                Path(out),
                program=_fairdp.__file__,
                n_threads=_threads(threads),
                # A first fit is as the program's.
                known=_composition.known() if _composition.n_fits() > 0 else None,
                seed=seed,
                ledger=None if ledger is None else Path(ledger),
                start_from=None if start_from is None else Path(start_from),
                resume=resume,
                reference=reference,
                keep_encoded=keep_encoded,
                progress=told,
            )
        finally:
            _progress.end(told)
    for remark in remarks:
        warnings.warn(remark, UnmatchedValuesWarning, stacklevel=2)
    release = load(out)
    _composition.record(release.files["statement.json"].decode(), release.statement, ledger is not None)
    return release


def plan(
    config: PathLike | Mapping[str, Any],
    *,
    out: PathLike | None = None,
    ledger: PathLike | None = None,
    start_from: PathLike | None = None,
    threads: int | None = None,
    no_data: bool = False,
    progress: Any = None,
) -> dict[str, Any]:
    """Every release that :func:`fit` would make, with its share of the budget and its noise. Reads
    the table, unless ``no_data``; draws and writes nothing; refuses what the fit would refuse.
    """
    told = _progress.callback(progress)
    with _configuration(config) as path:
        try:
            found = _rust.plan(
                path,
                n_threads=_threads(threads),
                out=None if out is None else Path(out),
                ledger=None if ledger is None else Path(ledger),
                start_from=None if start_from is None else Path(start_from),
                no_data=no_data,
                progress=told,
            )
        finally:
            _progress.end(told)
    answer: dict[str, Any] = json.loads(found)
    return answer


def load(folder: PathLike) -> Release:
    """The release in a folder, or of a run, after the checks of :func:`verify`."""
    verify(folder)
    return Release(release_files(folder))


def verify(folder: PathLike, *, public_key: PathLike | None = None) -> dict[str, Any]:
    """Checks a run or a release: digests, chain, and ε again by other accountants. Returns the
    statement; raises ``FairDPError`` with every problem.

    Digests detect changes, not authors. With the file of a public key the release must be signed by
    its owner.
    """
    key = None if public_key is None else Path(public_key)
    statement: dict[str, Any] = json.loads(_estimator.verify(Path(folder), key))
    return statement


def keygen(out: PathLike) -> tuple[Path, Path]:
    """Makes a pair of keys in the files ``out.key``, which signs, and ``out.pub``, for those who verify.

    Both are files of minisign. The secret key has no password, and only its owner may read it.
    """
    secret, public = _rust.keygen(Path(out))
    return secret, public


def sign(folder: PathLike, *, key: PathLike) -> Path:
    """Signs a run's release, or a release, after the checks of :func:`verify`, in place of a signature
    that it has. Returns the signature's file. A key with a password asks for it on the terminal.
    """
    return _rust.sign(Path(folder), Path(key))


def export(form: Literal["registry", "model-card"], folder: PathLike) -> Exported:
    """A release that holds as an entry of the DP Deployments Registry (YAML), or as a model card of
    Hugging Face (Markdown with a YAML header).

    Every fact is the statement's, the figures' or the configuration's ``[card]``. What is missing is
    named, in the text too, and never invented.
    """
    forms = {"registry": _rust.registry_entry, "model-card": _rust.model_card}
    if form not in forms:
        raise ValueError(f"form = {form!r}: expected one of {', '.join(forms)}")
    return Exported(*forms[form](Path(folder)))


def predict(
    folder: PathLike,
    table: PathLike | Sequence[PathLike],
    *,
    out: PathLike,
    keep: Sequence[str] = (),
    explain: int = 0,
    strict: bool = False,
    encoding: str | None = None,
    vectors: Mapping[str, PathLike | Sequence[PathLike]] | None = None,
) -> dict[str, Any]:
    """Writes the answers for a table in files to ``out``, CSV or Parquet, row by row.

    ``keep`` are columns of the table to carry through; ``explain`` is how many of the columns that
    moved each answer most are named. Warns of values that the model does not know; ``strict``
    refuses them. ``encoding`` is that of text files, such as ``latin1``, where it is neither UTF-8 nor
    UTF-16. ``vectors`` are columns in files of NumPy, as in :func:`init`. Returns counts of rows and of such values.
    """
    found: dict[str, Any] = json.loads(
        _rust.predict(
            Path(folder),
            _paths(table),
            Path(out),
            keep=list(keep),
            explain=explain,
            strict=strict,
            encoding=encoding,
            vectors=_vectors(vectors),
        )
    )
    for remark in found["remarks"]:
        warnings.warn(remark, UnmatchedValuesWarning, stacklevel=2)
    return found


def release_files(folder: PathLike) -> dict[str, bytes]:
    """The files of a release, or of a run's release, by name."""
    path = Path(folder)
    release = path / "release" if (path / "release").is_dir() else path
    return {file.name: file.read_bytes() for file in sorted(release.iterdir())}


def _paths(table: PathLike | Sequence[PathLike]) -> list[str]:
    tables = [table] if isinstance(table, (str, os.PathLike)) else table
    return [os.fspath(path) for path in tables]


def _vectors(vectors: Mapping[str, PathLike | Sequence[PathLike]] | None) -> dict[str, list[str]]:
    return {column: _paths(files) for column, files in (vectors or {}).items()}


def _named(X: Any) -> list[tuple[str, Any]]:
    if isinstance(X, Mapping):
        columns = [(str(name), values) for name, values in X.items()]
    elif _columns.library(X) != "numpy" and hasattr(X, "columns"):
        columns = [(str(name), X[name]) for name in X.columns]
    else:
        raise TypeError(f"X is {type(X).__name__}: expected a pandas or polars frame, or a mapping from column to values")
    if not columns:
        raise ValueError("X has no column")
    return columns


def _threads(threads: int | None) -> int:
    if threads is None:
        return os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1024:
        raise ValueError(f"threads = {threads!r}: expected a whole number from 1 to 1024")
    return threads


@contextmanager
def _configuration(config: Any) -> Iterator[Path]:
    """The file of a configuration, which a mapping or a text needs for the time of a call."""
    if isinstance(config, os.PathLike) or (isinstance(config, str) and "\n" not in config):
        yield Path(config)
        return
    text = config if isinstance(config, str) else _text(config)
    with tempfile.TemporaryDirectory(prefix="fairdp-") as folder:
        path = Path(folder) / "fairdp.toml"
        path.write_text(text, "utf-8")
        yield path


def _text(config: Any) -> str:
    """A mapping as TOML; the files that it names are those of the working folder."""
    if not isinstance(config, Mapping):
        raise TypeError(f"config is {type(config).__name__}: expected a file or a mapping")
    entries = {key: dict(value) if isinstance(value, Mapping) else value for key, value in config.items()}
    for part in ("table", "test"):
        section = entries.get(part)
        if isinstance(section, dict) and isinstance(section.get("files"), Iterable):
            section["files"] = [os.path.abspath(path) for path in _paths(section["files"])]
        if isinstance(section, dict) and isinstance(section.get("vectors"), Mapping):
            files = _vectors(section["vectors"])
            section["vectors"] = {column: [os.path.abspath(path) for path in paths] for column, paths in files.items()}
    return "".join(f"{key} = {toml(value)}\n" for key, value in entries.items())
