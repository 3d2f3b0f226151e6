"""Attacks on runs of Opacus."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")

import fairdp.opacus  # noqa: E402


def _trained(sigma: float, fault: float | None = None) -> dict[str, Any]:
    torch.manual_seed(3)
    X = torch.randn(600, 20)
    y = (X[:, 0] > 0).long()
    model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=120)
    model, optimizer, loader = opacus.PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=sigma, max_grad_norm=1.0
    )
    with fairdp.opacus.audit(optimizer, loader, seed=1) as attack:
        if fault is not None:
            # What is charged is the multiplier that the attack was told.
            optimizer.noise_multiplier = fault * sigma
        for _ in range(6):
            for features, labels in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(features), labels).backward()
                optimizer.step()
    return attack.report()


def test_an_honest_run_stands_and_half_of_the_noise_is_refuted() -> None:
    honest = _trained(1.0)
    assert not honest["refuted"] and honest["bounds"]["gaussian"] > 0.5 * honest["claim"]["epsilon"], honest
    assert _trained(1.0, 0.5)["refuted"]


def test_what_is_not_private_is_refused() -> None:
    model = torch.nn.Linear(20, 2)
    with pytest.raises(TypeError, match="make_private"):
        fairdp.opacus.audit(torch.optim.SGD(model.parameters(), lr=0.1), [1, 2])
