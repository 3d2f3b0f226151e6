"""Every fit of this process: what they cost together.

Folds, clones, candidates of a search and refits are fits of one process or of several. Which records
they share cannot be seen, so all are taken to be about the same ones. Fits of other processes are
not seen; a ledger file counts them.
"""

from __future__ import annotations

import json
import math
import threading
import warnings
from dataclasses import dataclass
from typing import Any

from fairdp._fairdp import estimator as _rust
from fairdp._leaks import CompositionWarning


@dataclass(frozen=True)
class _Fit:
    """The release of a fit."""

    statement: str
    epsilon: float
    delta: float
    has_ledger: bool


_fits: list[_Fit] = []
_lock = threading.Lock()


def record(statement: str, facts: dict[str, Any], has_ledger: bool) -> None:
    """Adds a fit."""
    with _lock:
        _fits.append(_Fit(statement, float(facts["epsilon"]), float(facts["delta"]), has_ledger))


def n_without_ledger() -> int:
    """Fits that no ledger file has."""
    with _lock:
        return sum(not fit.has_ledger for fit in _fits)


def warn(stacklevel: int) -> None:
    """Warns of earlier fits that no ledger file adds up; a fit without a ledger calls it."""
    n_before = n_without_ledger()
    if n_before > 0:
        fits = "1 fit" if n_before == 1 else f"{n_before} fits"
        message = (
            f"this process made {fits} before, each of which spent its ε: epsilon_ is about this one alone. total_epsilon_ "
            "composes all of them, but not those of other processes; ledger= adds up all fits on the same records"
        )
        warnings.warn(message, CompositionWarning, stacklevel=stacklevel + 1)


def epsilon(statement: str, delta: float) -> float:
    """ε at ``delta`` of every fit so far, and of this one, which another process may have made."""
    with _lock:
        statements = [fit.statement for fit in _fits]
    if statement not in statements:
        statements.append(statement)
    return _rust.total_epsilon([json.dumps(json.loads(text)["events"]) for text in statements], delta)


def n_fits() -> int:
    """All fits."""
    with _lock:
        return len(_fits)


def known() -> str:
    """A sentence for the statement on how settings were chosen."""
    with _lock:
        fits = list(_fits)
    unseen = "fits of other processes are not seen"
    if not fits:
        return f"this process made no fit before this one, and {unseen}"
    epsilon, delta = sum(fit.epsilon for fit in fits), sum(fit.delta for fit in fits)
    epsilon = math.ceil(epsilon * 1e3) / 1e3
    fit = "fit" if len(fits) == 1 else "fits"
    return (
        f"this process made {len(fits)} {fit} before this one, whose ε add up to {epsilon:.3f} (δ {delta:.1e}) if they were "
        f"about the same records, and {unseen}"
    )
