"""What `fairdp.opacus.audit` finds of the claim of a tutorial model of Opacus.

    python opacus-audit.py MNIST_FOLDER [CANARIES] [SEED]

The network is that of Opacus's MNIST example (two convolutions, two dense layers, 26,010 weights), trained on the
first 10,000 images: noise multiplier 1, sampling rate .02, 500 steps. A second run has half of the noise, which the
attack is not told, and must be refuted. Needs torch, opacus and fairdp; the folder has the IDX files, packed or not.
"""

import gzip
import sys
import time
from pathlib import Path

import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import fairdp.opacus

RECORDS, RATE, STEPS, SIGMA = 10_000, 0.02, 500, 1.0


def idx(folder, name, skip):
    path = next(Path(folder).glob(name + "*"))
    data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    return np.frombuffer(data, np.uint8, offset=skip).copy()


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 32), nn.ReLU(), nn.Linear(32, 10),
    )


def run(images, labels, canaries, seed, fault=1.0, attacked=True):
    torch.manual_seed(seed)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(images, labels), batch_size=int(RATE * RECORDS))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=SIGMA, max_grad_norm=1.0
    )
    attack = fairdp.opacus.audit(optimizer, loader, canaries=canaries, seed=seed)
    optimizer.noise_multiplier = fault * SIGMA
    start, steps = time.process_time(), 0
    if attacked:
        attack.__enter__()
    while steps < STEPS:
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            steps += 1
            if steps == STEPS:
                break
    seconds = time.process_time() - start
    if attacked:
        attack.__exit__(None, None, None)
    return attack, seconds


def main():
    folder = sys.argv[1]
    canaries = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    images = torch.tensor(idx(folder, "train-images", 16).reshape(-1, 1, 28, 28)[:RECORDS]).float() / 255
    labels = torch.tensor(idx(folder, "train-labels", 8)[:RECORDS]).long()
    plain = run(images, labels, canaries, seed, attacked=False)[1]
    for name, fault in [("as it is", 1.0), ("half of the noise", 0.5)]:
        attack, seconds = run(images, labels, canaries, seed, fault)
        report = attack.report()
        bounds = report["bounds"]
        print(
            f"{name}: claimed {report['claim']['epsilon']:.2f}, found {bounds['gaussian']:.2f} (normal scores), "
            f"{max(bounds['one_run'], bounds['f_dp']):.2f} (no assumption), refuted: {report['refuted']}, "
            f"{seconds / plain:.2f} times the processor time"
        )


main()
