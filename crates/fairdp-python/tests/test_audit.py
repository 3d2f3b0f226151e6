"""Attacks on runs of estimators and of configurations."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fairdp
from fairdp import FairDPClassifier, _fairdp


def _records(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (n, 6))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


def _model() -> FairDPClassifier:
    return FairDPClassifier(epsilon=4.0, delta=1e-5, bounds=(-1.0, 1.0))


def test_an_honest_estimator_stands_and_a_fault_is_refuted() -> None:
    X, y = _records()
    attacked = fairdp.audit(_model, X, y, seed=1)
    assert not attacked.refuted and 0.5 < attacked.epsilon_found < 4.0
    assert repr(attacked).startswith("Audit(stands: at least ") and "| white box: all |" in str(attacked)
    planted = fairdp.audit(_model(), X, y, seed=1, plant="noise")
    assert planted.refuted and planted.report["plant"] == "noise"
    assert not hasattr(_model(), "release_")


def test_what_cannot_be_attacked_is_refused() -> None:
    X, y = _records(100)
    with pytest.raises(TypeError, match="expected an estimator of fairdp"):
        fairdp.audit(lambda: object(), X, y)
    with pytest.raises(TypeError, match="expected neither X nor y"):
        fairdp.audit("fairdp.toml", X, y)
    with pytest.raises(fairdp.FairDPError, match="--plant = other"):
        fairdp.audit(_model(), X, y, plant="other")


def test_bounds_of_scores() -> None:
    rng = np.random.default_rng(2)
    present = np.arange(1000) % 2 == 0
    scores = rng.normal(size=1000) + np.where(present, 0.5, -0.5)
    found = json.loads(_fairdp.audit.bounds(scores.tolist(), present.tolist(), 1.0, 1.0, 1, 1e-5, 0.05))
    assert 3.0 < found["bounds"]["gaussian"] < found["claim"]["epsilon"] < 4.4
    assert not found["refuted"]
    with pytest.raises(ValueError, match="sampling_rate"):
        _fairdp.audit.bounds([0.0], [True], 1.0, 2.0, 1, 1e-5, 0.05)
