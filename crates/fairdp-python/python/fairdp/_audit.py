"""`fairdp.audit`: attacks on a run, beside what its statement will claim."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairdp import _fairdp, _progress
from fairdp.tables import _configuration, _threads

_rust = _fairdp.audit


class Audit:
    """What an audit found. It is computed from the records, and not private.

    ``report`` is the whole of it, in the form of ``fairdp audit --json``; printed, it is the tables.
    """

    def __init__(self, found: tuple[str, str]) -> None:
        self.report: dict[str, Any] = json.loads(found[0])
        self._text = found[1]

    @property
    def refuted(self) -> bool:
        """Whether a claim does not hold. Of sound runs that happens to one in twenty at most."""
        return bool(self.report["refuted"])

    @property
    def epsilon_found(self) -> float:
        """The largest lower bound on epsilon of the gradients, with 95 % confidence."""
        bounds = self.report["white_box"]["bounds"]
        return float(max(bounds["gaussian"], bounds["f_dp"], bounds["one_run"]))

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        verdict = "refuted" if self.refuted else "stands"
        claimed = self.report["white_box"]["claim"]["epsilon"]
        return f"Audit({verdict}: at least {self.epsilon_found:.2f} of {claimed:.2f} found)"

    def _repr_markdown_(self) -> str:
        return self._text


def audit(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    canaries: int = 1000,
    repeats: int | None = None,
    plant: str | None = None,
    start_from: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    threads: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Any = None,
    **fit: Any,
) -> Audit:
    """Attacks a run: trains as a fit does, with canaries, and releases nothing.

    ``model`` is an estimator of this package or a function that makes one, with the records ``X``
    and ``y`` and what else its ``fit`` takes; or a configuration, as for :func:`fairdp.fit`.

    ``canaries`` enter the gradients, each by a fair coin, at most as many as there are weights;
    ``repeats`` are the repetitions of every other release, as many as find half of the noise unless
    given. ``plant`` puts a fault in, to see that it is found: ``"noise"``, ``"uncharged"``,
    ``"group-rate"`` or, with ``"asc"`` and ``"asc-by-loss"``, ``"group-threshold"``. ``start_from`` is
    the release that a run of a configuration starts from, as of :func:`fairdp.fit`; an estimator has its own. ``out`` is a folder to make, whose private part gets the report.
    """
    options = {
        "canaries": canaries,
        "repeats": repeats,
        "plant": plant,
        "start_from": None if start_from is None else Path(start_from),
        "seed": seed,
        "threads": _threads(threads),
        "out": None if out is None else Path(out),
    }
    told = _progress.callback(progress)
    try:
        if isinstance(model, (str, os.PathLike, Mapping)):
            if X is not None or y is not None or fit:
                raise TypeError("audit: a configuration has its records, expected neither X nor y")
            with _configuration(model) as path:
                return Audit(_rust.of_files(path, options, told))
        from fairdp._base import python_names

        estimator = model if hasattr(model, "_configured") else model()
        if not hasattr(estimator, "_configured"):
            raise TypeError(f"model is {type(estimator).__name__}: expected an estimator of fairdp, or a configuration")
        if start_from is not None:
            raise TypeError("audit: start_from is a parameter of the estimator, expected with a configuration")
        configured = estimator._configured(X, y, **fit)
        options["start_from"] = None if estimator.start_from is None else Path(estimator.start_from)
        with python_names():
            return Audit(_rust.of_columns(configured.config, configured.declared.columns, options, told))
    finally:
        _progress.end(told)
