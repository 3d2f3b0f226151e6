"""Under Opacus: the accountant by name, and every clipping method in hooks and ghost mode."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")

from fairdp import accounting, clipping
from fairdp.opacus import Accountant, FairDPOptimizer, make_private, register
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier
from opacus.utils.batch_memory_manager import BatchMemoryManager

register()

METHODS = [entry.name for entry in clipping.methods()]
NOT_BY_GRADIENTS = ("fairlens", "group-dro")
COUPLED = ("fairlens", "magnitude-only", "direction-only")


def private(method, mode="hooks", seed=7, noise_multiplier=1.0, n=64, batch=16, settings=None):
    """Module, optimizer, loss and loader for a small network on data that never changes."""
    torch.manual_seed(1)
    x = torch.randn(n, 5)
    y = (x[:, 0] > 0).long()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y, y), batch_size=batch)
    module = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = opacus.PrivacyEngine(accountant="fairdp")
        made = make_private(
            engine,
            module=module,
            optimizer=torch.optim.SGD(module.parameters(), lr=0.5),
            data_loader=loader,
            method=method,
            noise_multiplier=noise_multiplier,
            groups=2,
            settings=settings,
            grad_sample_mode=mode,
            seed=seed,
        )
    loss = made[2] if mode == "ghost" else torch.nn.CrossEntropyLoss()
    return engine, made[0], made[1], loss, made[-1]


def train(module, optimizer, loss, loader, steps=None):
    for step, (x, y, group) in enumerate(loader):
        if step == steps:
            break
        optimizer.zero_grad()
        optimizer.set_groups(group)
        loss(module(x), y).backward()
        optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def test_steps_one_by_one_are_one_block_and_len_counts_them():
    one_by_one, block = create_accountant("fairdp"), create_accountant("fairdp")
    for _ in range(500):
        one_by_one.step(noise_multiplier=1.1, sample_rate=0.02)
    block.history = [(1.1, 0.02, 500)]
    assert one_by_one.history == block.history and len(one_by_one) == len(block) == 500
    other = create_accountant("fairdp")
    other.load_state_dict(one_by_one.state_dict())
    assert other.get_epsilon(1e-6) == block.get_epsilon(1e-6)
    asked = accounting.epsilon(noise_multiplier=1.1, sampling_rate=0.02, steps=500, delta=1e-6)
    assert block.get_epsilon(1e-6) == asked.upper


def test_it_is_below_rdp_and_within_the_bracket_of_prv():
    ours, rdp = Accountant(), create_accountant("rdp")
    ours.history = rdp.history = [(1.0, 0.01, 1000)]
    assert ours.get_epsilon(1e-5) < rdp.get_epsilon(1e-5)


def test_a_step_without_noise_costs_everything():
    accountant = Accountant()
    accountant.step(noise_multiplier=0.0, sample_rate=0.1)
    assert accountant.get_epsilon(1e-5) == math.inf


def test_noise_for_a_target():
    question = dict(target_epsilon=2.0, target_delta=1e-5, sample_rate=0.01, steps=1000)
    ours = get_noise_multiplier(**question, accountant="fairdp", epsilon_tolerance=1e-4)
    assert ours < get_noise_multiplier(**question, accountant="rdp", epsilon_tolerance=1e-4)
    assert Accountant.mechanism() == "fairdp"


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_and_is_accounted(method, mode):
    if method in NOT_BY_GRADIENTS:
        with pytest.raises(ValueError, match=f"{method}.*an optimizer sees gradients only"):
            private(method, mode)
        return
    if method in COUPLED and mode == "ghost":
        with pytest.raises(ValueError, match="hooks"):
            private(method, mode)
        return
    engine, module, optimizer, loss, loader = private(method, mode)
    before = torch.cat([p.detach().reshape(-1).clone() for p in module.parameters()])
    after = train(module, optimizer, loss, loader)
    assert torch.isfinite(after).all() and not torch.equal(before, after)
    assert len(engine.accountant) == len(loader)
    if optimizer.method.certified:
        total = accounting.Accountant.pld()
        total.compose(optimizer.method.event(1 / len(loader)), len(loader))
        assert engine.get_epsilon(1e-5) == pytest.approx(total.epsilon(1e-5).upper, rel=1e-6)
    else:
        assert engine.get_epsilon(1e-5) == math.inf


@pytest.mark.parametrize("method", [name for name in METHODS if name not in (*COUPLED, *NOT_BY_GRADIENTS)])
def test_ghost_is_hooks(method):
    runs = []
    for mode in ("hooks", "ghost"):
        _, module, optimizer, loss, loader = private(method, mode)
        torch.manual_seed(3)
        runs.append(train(module, optimizer, loss, loader).numpy())
    np.testing.assert_allclose(*runs, rtol=2e-3, atol=2e-3)


def test_without_noise_dpsgd_is_opacus_own():
    _, module, optimizer, loss, loader = private("dpsgd", noise_multiplier=0.0)
    torch.manual_seed(3)
    ours = train(module, optimizer, loss, loader).numpy()
    _, module, optimizer, loss, loader = private("dpsgd", noise_multiplier=0.0)
    theirs = opacus.optimizers.DPOptimizer(
        optimizer.original_optimizer, noise_multiplier=0.0, max_grad_norm=1.0, expected_batch_size=16
    )
    theirs.set_groups = lambda groups: None
    torch.manual_seed(3)
    np.testing.assert_allclose(ours, train(module, theirs, loss, loader).numpy(), atol=1e-5)


def test_a_batch_in_parts_is_the_whole_batch():
    runs = []
    for parts in (False, True):
        _, module, optimizer, loss, loader = private("adaptive", n=64, batch=32)
        torch.manual_seed(3)
        if parts:
            with BatchMemoryManager(
                data_loader=loader, max_physical_batch_size=10, optimizer=optimizer
            ) as smaller:
                runs.append(train(module, optimizer, loss, smaller).numpy())
        else:
            runs.append(train(module, optimizer, loss, loader).numpy())
    np.testing.assert_allclose(*runs, atol=1e-4)


def test_what_depends_on_the_counts_takes_no_parts():
    _, module, optimizer, loss, loader = private("dpsgd-f", n=64, batch=32)
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=4, optimizer=optimizer) as smaller:
        with pytest.raises(ValueError, match="in parts"):
            train(module, optimizer, loss, smaller)


def test_refusals_name_what_is_wrong():
    _, module, optimizer, loss, loader = private("dpsgd-f")
    x, y, group = next(iter(loader))
    loss(module(x), y).backward()
    with pytest.raises(ValueError, match="needs groups"):
        optimizer.step()
    optimizer.set_groups(group[:-1])
    with pytest.raises(ValueError, match="groups has"):
        optimizer.step()
    with pytest.raises(ValueError, match="noise_multiplier is 0.1"):
        optimizer.noise_multiplier = 0.1
    with pytest.raises(ValueError, match="ew"):
        private("dpsgd", "ew")


def test_a_gradient_that_is_not_finite_never_reaches_the_parameters():
    for mode in ("hooks", "ghost"):
        _, module, optimizer, loss, loader = private("dpsgd", mode)
        x, y, group = next(iter(loader))
        x[0, 0] = math.inf
        optimizer.set_groups(group)
        loss(module(x), y).backward()
        if mode == "ghost":
            with pytest.raises(ValueError, match="not finite"):
                optimizer.step()
        else:
            optimizer.step()
        assert all(torch.isfinite(p).all() for p in module.parameters())


def test_counts_of_a_batch_without_a_step_are_not_made_twice():
    _, module, optimizer, loss, loader = private("adaptive", "ghost")
    for step, (x, y, group) in enumerate(loader):
        optimizer.set_groups(group)
        if step == 0:
            loss(module(x), y).backward()
        else:
            with pytest.raises(RuntimeError, match="not charged"):
                loss(module(x), y).backward()
            break


def test_a_seed_is_said_to_be_no_privacy():
    with pytest.warns(UserWarning, match="nothing is private"):
        module = torch.nn.Linear(2, 2)
        _, optimizer, _ = make_private(
            opacus.PrivacyEngine(accountant="fairdp"),
            module=module,
            optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(8, 2)), batch_size=4),
            method="dpsgd",
            noise_multiplier=1.0,
            seed=1,
        )
    assert not optimizer.is_private
    assert private("dpsgd", seed=None)[2].is_private


def test_thresholds_are_in_the_state():
    _, module, optimizer, loss, loader = private("adaptive")
    train(module, optimizer, loss, loader, steps=2)
    state = optimizer.state_dict()
    _, _, other, _, _ = private("adaptive")
    assert other.method.state() != optimizer.method.state()
    other.load_state_dict(state)
    assert other.method.state() == optimizer.method.state()


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
@pytest.mark.parametrize("method", ["dpsgd", "dpsgd-f"])
def test_a_batch_may_be_empty(method, mode):
    _, module, optimizer, loss, loader = private(method, mode, n=32, batch=1)
    sizes = []
    for x, y, group in loader:
        sizes.append(len(x))
        optimizer.zero_grad()
        optimizer.set_groups(group)
        loss(module(x), y).backward()
        optimizer.step()
    assert 0 in sizes and all(torch.isfinite(p).all() for p in module.parameters())


def test_groups_of_a_batch_that_was_given_up_are_forgotten():
    _, module, optimizer, loss, loader = private("dpsgd-f", n=64, batch=32)
    (x, y, group), (other_x, other_y, other) = list(loader)[:2]
    optimizer.set_groups(group)
    loss(module(x), y).backward()
    optimizer.zero_grad()
    optimizer.set_groups(other)
    loss(module(other_x), other_y).backward()
    assert [found.tolist() for found in optimizer._groups] == [other.tolist()]


@pytest.mark.parametrize(("name", "expected"), [("max_grad_norm", "clip_norm"), ("clipping", "clipping is of no effect")])
def test_arguments_of_opacus_without_effect_are_refused(name, expected):
    module = torch.nn.Linear(5, 2)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(8, 5)), batch_size=4)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    settings = {"module": module, "optimizer": optimizer, "data_loader": loader, name: 2.0}
    with pytest.raises(TypeError, match=expected):
        make_private(opacus.PrivacyEngine(accountant="fairdp"), method="dpsgd", noise_multiplier=1.0, **settings)
