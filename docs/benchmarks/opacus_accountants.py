"""Opacus with its own accountants and with ours: calibration, and an epoch of its MNIST network.

    pip install torch==2.15 opacus==1.6.0 'crates/fairdp-python[opacus]'
    python docs/benchmarks/opacus_accountants.py DP_DATA_DIR/mnist

Prints Markdown. Times are the least of three; an epoch is one run.
"""

from __future__ import annotations

import gzip
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier
from torch import nn

import fairdp.opacus

# Target epsilon, delta, sampling rate, steps.
SETTINGS = [
    (1.0, 1e-5, 0.01, 1_000),
    (3.0, 1e-6, 256 / 36_178, 2_826),
    (8.0, 1e-5, 512 / 50_000, 9_766),
    (0.5, 1e-6, 0.001, 100_000),
]


def calibration() -> None:
    print("| target ε, δ | q | T | accountant | σ | its ε, certified | ms |\n|---|---|---|---|---|---|---|")
    for epsilon, delta, rate, steps in SETTINGS:
        for name in ("rdp", "prv", "fairdp"):
            seconds, sigma = [], float("nan")
            for _ in range(3):
                start = time.perf_counter()
                sigma = get_noise_multiplier(
                    target_epsilon=epsilon, target_delta=delta, sample_rate=rate, steps=steps,
                    accountant=name, epsilon_tolerance=1e-3,
                )
                seconds.append(time.perf_counter() - start)
            bound = fairdp.accounting.epsilon(
                noise_multiplier=sigma, sampling_rate=rate, steps=steps, delta=delta
            )
            print(
                f"| {epsilon:g}, {delta:g} | {rate:.4g} | {steps} | {name} | {sigma:.4f} | {bound.upper:.4f} "
                f"| {1e3 * min(seconds):.0f} |"
            )


def images(folder: Path) -> torch.utils.data.TensorDataset:
    def read(name: str, header: int) -> np.ndarray:
        return np.frombuffer(gzip.decompress((folder / name).read_bytes()), dtype=np.uint8)[header:]

    pixels = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28).astype(np.float32)
    labels = read("train-labels-idx1-ubyte.gz", 8).astype(np.int64)
    return torch.utils.data.TensorDataset(
        torch.from_numpy((pixels / 255 - 0.1307) / 0.3081), torch.from_numpy(labels)
    )


def epoch(folder: Path) -> None:
    torch.manual_seed(1)
    module = nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 32), nn.ReLU(), nn.Linear(32, 10),
    )
    loader = torch.utils.data.DataLoader(images(folder), batch_size=256)
    engine = PrivacyEngine(accountant="fairdp")
    module, optimizer, loader = engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), lr=0.5),
        data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0,
    )
    loss, right, seen, start = nn.CrossEntropyLoss(), 0, 0, time.perf_counter()
    for x, y in loader:
        optimizer.zero_grad()
        output = module(x)
        loss(output, y).backward()
        optimizer.step()
        right, seen = right + int((output.argmax(1) == y).sum()), seen + len(y)
    seconds = time.perf_counter() - start
    bound = engine.accountant.bound(1e-5)
    prv = create_accountant("prv")
    prv.history = engine.accountant.history
    print(
        f"\nAn epoch of Opacus's MNIST network: {len(engine.accountant)} steps in {seconds:.0f} s, "
        f"{100 * right / seen:.1f} % right while training; ε in [{bound.lower:.6f}, {bound.upper:.6f}], "
        f"Opacus PRV {prv.get_epsilon(1e-5):.6f}."
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    fairdp.opacus.register()
    calibration()
    epoch(Path(sys.argv[1]))
