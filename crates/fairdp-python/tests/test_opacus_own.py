"""A clipping function of one's own under Opacus, held to its bound."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")

from fairdp import ClipError, clipping
from fairdp.opacus import make_private, register

register()


def hard(norms, groups):
    return np.minimum(1.0, 1.0 / np.maximum(norms, 1e-12))


def wrong(norms, groups):
    return 1e6 + 0 * norms


def run(method, mode="hooks", noise_multiplier=0.0, settings=None, seed=3):
    torch.manual_seed(1)
    x = torch.randn(32, 5)
    y = (x[:, 0] > 0).long()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
    module = torch.nn.Linear(5, 2)
    engine = opacus.PrivacyEngine(accountant="fairdp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module, optimizer, loss, loader = make_private(
            engine,
            module=module,
            optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
            data_loader=loader,
            criterion=torch.nn.CrossEntropyLoss(),
            method=method,
            noise_multiplier=noise_multiplier,
            settings=settings,
            grad_sample_mode=mode,
            seed=seed,
        )
    moved = []
    for x, y in loader:
        optimizer.zero_grad()
        loss(module(x), y).backward()
        optimizer.step()
        moved.append(sum(p.grad.square().sum() for p in module.parameters()).sqrt().item() * optimizer.expected_batch_size)
    return engine, optimizer, torch.cat([p.detach().reshape(-1) for p in module.parameters()]).numpy(), moved


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_it_trains_as_the_method_of_the_registry_does(mode):
    _, _, ours, _ = run(hard, mode, settings={"bound": 1.0})
    _, _, theirs, _ = run("dpsgd", mode)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_wrong_function_is_held_by_the_cap(mode):
    engine, optimizer, after, moved = run(wrong, mode, settings={"bound": 0.5})
    # No record adds more than 0.5: a batch of 32 at most moves the sum by 16.
    assert np.isfinite(after).all() and all(0 < length <= 16 for length in moved)
    assert optimizer.max_grad_norm == 0.5


def test_epsilon_is_conditional_on_the_function():
    engine, optimizer, _, _ = run(hard, noise_multiplier=1.0, settings={"bound": 1.0})
    bound = engine.accountant.bound(1e-5)
    assert bound.mark == "conditional" and any("'hard'" in condition for condition in bound.given)
    assert 0 < bound.upper < float("inf")


def test_it_sees_one_record_at_a_time():
    seen = []

    def largest(norms, groups):
        seen.append(len(norms))
        return 1.0 / norms.max() + 0 * norms

    method = clipping.own_method(largest, bound=1.0, noise_multiplier=1.0, expected_batch_size=4, groups=2)
    together = method.clip([0.5, 2.0], groups=[0, 1]).scales
    assert seen == [1, 1] and together.tolist() == [method.clip([norm], groups=[0]).scales[0] for norm in (0.5, 2.0)]
    total, clipped = method.clip_and_sum(np.array([[3.0, 4.0], [np.nan, 0.0]]), groups=[0, 0])
    assert clipped.n_non_finite == 1 and np.linalg.norm(total) == pytest.approx(1.0, rel=1e-5)


def test_what_does_not_fit_is_refused():
    with pytest.raises(TypeError, match="no bound"):
        run(hard)
    with pytest.raises(TypeError, match="clip_norm"):
        run(hard, settings={"bound": 1.0, "clip_norm": 1.0})
    with pytest.raises(ClipError, match="bound = -1"):
        run(hard, settings={"bound": -1.0})
    method = clipping.own_method(lambda norms, groups: [1.0, 1.0], bound=1.0, noise_multiplier=1, expected_batch_size=4)
    with pytest.raises(ClipError, match="gives 2 scales for one record"):
        method.clip([0.5])
    with pytest.raises(ClipError, match="GroupOutOfRange|group"):
        clipping.own_method(hard, bound=1.0, noise_multiplier=1, expected_batch_size=4, groups=2).clip([0.5], groups=[2])
