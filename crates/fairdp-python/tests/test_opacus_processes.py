"""Several processes share a training under Opacus: it is the training of one."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")

from fairdp.opacus import make_private, register
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP

CASES = [("dpsgd", "hooks"), ("dpsgd-f", "hooks"), ("adaptive", "ghost"), ("adaptive", "hooks")]


def made(method, mode, is_shared, batch=32, seed=3):
    register()
    torch.manual_seed(1)
    x = torch.randn(32, 5)
    y = (x[:, 0] > 0).long()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y, y), batch_size=batch)
    module = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    module = DPDDP(module) if is_shared else module
    engine = opacus.PrivacyEngine(accountant="fairdp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module, optimizer, loss, loader = make_private(
            engine,
            module=module,
            optimizer=torch.optim.SGD(module.parameters(), lr=0.5),
            data_loader=loader,
            criterion=torch.nn.CrossEntropyLoss(),
            method=method,
            noise_multiplier=1.0,
            groups=2,
            grad_sample_mode=mode,
            seed=seed,
        )
    return engine, module, optimizer, loss, loader


def train(engine, module, optimizer, loss, loader, passes):
    sizes = []
    for _ in range(passes):
        for x, y, group in loader:
            sizes.append(len(x))
            optimizer.zero_grad()
            optimizer.set_groups(group)
            loss(module(x), y).backward()
            optimizer.step()
    parameters = torch.cat([p.detach().reshape(-1) for p in module.parameters()]).numpy()
    return parameters, sizes, engine.get_epsilon(1e-5), optimizer.method.state()


def process(rank: int, folder: str) -> None:
    """What each of two processes does: every case, and a run on samples."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    try:
        with pytest.raises(ValueError, match="2 processes share the training"):
            made("dpsgd", "hooks", is_shared=False)
        answers = {}
        for method, mode in CASES:
            parameters, sizes, epsilon, state = train(*made(method, mode, is_shared=True), passes=3)
            assert sizes == [16] * 3
            answers[f"{method} {mode}"] = [parameters, epsilon, state]
        sampled = made("dpsgd", "hooks", is_shared=True, batch=2)
        assert {record % 2 for batch in sampled[-1].batch_sampler for record in batch} == {rank}
        parameters, sizes, epsilon, state = train(*sampled, passes=2)
        # A batch without a record of this process is a step all the same.
        assert len(sizes) == 32 and 0 in sizes
        answers["sampled"] = [parameters, epsilon, state]
        assert any("same program" in condition for condition in sampled[0].accountant.given)
        with pytest.raises(RuntimeError, match="2 processes would have different numbers of parts"):
            sampled[2].signal_skip_step(True)
        np.save(Path(folder) / f"{rank}.npy", np.array(answers, dtype=object), allow_pickle=True)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch without torch.distributed")
def test_two_processes_train_as_one(tmp_path):
    torch.multiprocessing.spawn(process, args=(str(tmp_path),), nprocs=2)
    first, second = (np.load(tmp_path / f"{rank}.npy", allow_pickle=True).item() for rank in (0, 1))
    for name, (parameters, epsilon, state) in first.items():
        # Noise and counts are made once: all processes have the same model, to the last bit.
        np.testing.assert_array_equal(parameters, second[name][0])
        assert (epsilon, state) == (second[name][1], second[name][2])
    for method, mode in CASES:
        parameters, sizes, epsilon, state = train(*made(method, mode, is_shared=False), passes=3)
        assert sizes == [32] * 3
        np.testing.assert_allclose(first[f"{method} {mode}"][0], parameters, rtol=1e-4, atol=1e-4)
        assert first[f"{method} {mode}"][1:] == [epsilon, state]
