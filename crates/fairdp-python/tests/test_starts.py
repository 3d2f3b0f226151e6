"""A fit that starts from a release."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairdp
from fairdp import FairDPClassifier, FairDPRegressor

pytestmark = pytest.mark.filterwarnings("ignore::fairdp.CompositionWarning", "ignore::fairdp.NotPrivateWarning")


def _records(seed: int, n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=n)


def _classifier(**given: Any) -> FairDPClassifier:
    usual: dict[str, Any] = {"bounds": (-1, 1), "classes": [0, 1], "random_state": 1}
    return FairDPClassifier(**{**usual, **given})


def test_a_classifier_goes_on_from_a_release(tmp_path: Path) -> None:
    (X, number), (later, outcome) = _records(1), _records(2)
    y, z = number > 0, outcome > 0
    before = _classifier(epsilon=2.0).fit(X, y.astype(int))
    before.save(tmp_path / "before")
    model = _classifier(epsilon=0.1, start_from=tmp_path / "before").fit(later, z.astype(int))
    anew = _classifier(epsilon=0.1).fit(later, z.astype(int))
    digest = hashlib.sha256(before.release_["statement.json"]).hexdigest()
    assert model.statement_["started_from"]["statement"] == digest and model.epsilon_ <= 0.1
    assert "started_from" not in anew.statement_
    assert model.score(later, z.astype(int)) > anew.score(later, z.astype(int))
    with pytest.raises(fairdp.FairDPError, match="start_from"):
        _classifier(bounds=(-2, 2), start_from=str(tmp_path / "before")).fit(later, z.astype(int))
    attacked = fairdp.audit(model, later, z.astype(int), seed=1)
    assert not attacked.refuted
    with pytest.raises(TypeError, match="start_from is a parameter of the estimator"):
        fairdp.audit(model, later, z.astype(int), start_from=tmp_path / "before")


def test_a_regressor_and_a_network_go_on_too(tmp_path: Path) -> None:
    (X, number), (later, outcome) = _records(1), _records(2)
    given: dict[str, Any] = {"bounds": (-1, 1), "random_state": 1}
    before = FairDPRegressor(epsilon=2.0, label_bounds=(-4, 4), **given).fit(X, number)
    before.save(tmp_path / "number")
    given |= {"epsilon": 0.1, "label_bounds": (-4, 4)}
    model = FairDPRegressor(start_from=tmp_path / "number", **given).fit(later, outcome)
    assert model.score(later, outcome) > FairDPRegressor(**given).fit(later, outcome).score(later, outcome)

    network: dict[str, Any] = {"model": "mlp", "hidden": [4], "method_options": {"steps": 30}}
    before = _classifier(epsilon=4.0, **network).fit(X, (number > 0).astype(int))
    before.save(tmp_path / "network")
    network["start_from"] = tmp_path / "network"
    model = _classifier(epsilon=0.2, **network).fit(later, (outcome > 0).astype(int))
    assert model.statement_["started_from"]["epsilon"] <= 4.0
    assert model.score(later, (outcome > 0).astype(int)) > 0.85
    with pytest.raises(fairdp.FairDPError, match="hidden layers = "):
        _classifier(start_from=tmp_path / "network").fit(later, (outcome > 0).astype(int))


def test_a_configuration_goes_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    lines = ["x,y"] + [f"{x:.3f},{'yes' if x > 0.5 else 'no'}" for x in rng.uniform(0, 1, 2000)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    config = {
        "version": 1,
        "table": {"files": [str(tmp_path / "t.csv")]},
        "label": {"column": "y", "classes": ["no", "yes"]},
        "privacy": {"epsilon": 1.0, "delta": 1e-5},
        "test": {"fraction": 0.2},
        "column": [{"name": "x", "kind": "number", "low": 0, "high": 1}],
    }
    fairdp.fit(config, out=tmp_path / "a", seed=1)
    plan = fairdp.plan(config, start_from=tmp_path / "a", no_data=True)
    assert plan["started_from"]["epsilon"] <= 1.0 and plan["epsilon"] == 1.0
    release = fairdp.fit(config, out=tmp_path / "b", seed=2, start_from=tmp_path / "a")
    assert release.statement["started_from"]["private"] is False
    attacked = fairdp.audit(config, start_from=tmp_path / "a", seed=1, canaries=30)
    assert not attacked.refuted
