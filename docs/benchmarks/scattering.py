"""Kymatio's scattering transform beside ours, in turns: images a second.

    python docs/benchmarks/scattering.py [--rounds N]

Needs kymatio 0.3 and numpy; with torch, Kymatio's torch backend is measured as well. Ours is
`cargo bench -p scattering --bench scattering`, which the script starts; build it before. Images are
28 x 28, J = 2, 8 angles, order 2, two threads each.
"""
import argparse
import json
import os
import pathlib
import subprocess
import time

os.environ.setdefault("OMP_NUM_THREADS", "2")
import numpy as np
import scipy.special

if not hasattr(scipy.special, "sph_harm"):  # removed from SciPy 1.17; Kymatio's 3-D part imports it
    scipy.special.sph_harm = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = 500
PIXELS = ((np.arange(IMAGES * 28 * 28, dtype=np.int64) * 7919) % 256 / 255.0).astype(np.float32).reshape(IMAGES, 28, 28)


def rate(transform):
    transform()
    best = 0.0
    for _ in range(3):
        start = time.perf_counter()
        transform()
        best = max(best, IMAGES / (time.perf_counter() - start))
    return best


def numpy_backend():
    from kymatio.numpy import Scattering2D

    transform = Scattering2D(J=2, shape=(28, 28))
    return rate(lambda: transform(PIXELS))


def torch_backend():
    try:
        import torch
    except ImportError:
        return None
    from kymatio.torch import Scattering2D

    torch.set_num_threads(2)
    transform, pixels = Scattering2D(J=2, shape=(28, 28)), torch.tensor(PIXELS)
    with torch.no_grad():
        return rate(lambda: transform(pixels))


def ours():
    name = "scattering/1x28x28-J2/threads-2"
    command = ["cargo", "bench", "-q", "-p", "scattering", "--bench", "scattering", "--", name]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    folder = target / "criterion" / "scattering_1x28x28-J2" / "threads-2" / "new"
    nanoseconds = json.loads((folder / "estimates.json").read_text())["median"]["point_estimate"]
    return IMAGES / (nanoseconds * 1e-9)


parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=2)
rounds = parser.parse_args().rounds
print("| round | ours | Kymatio, NumPy | Kymatio, torch | ours / the faster |\n|---|---|---|---|---|")
for number in range(1, rounds + 1):
    figures = [ours(), numpy_backend(), torch_backend()]
    ratio = figures[0] / max(figure for figure in figures[1:] if figure)
    cells = ["–" if figure is None else f"{figure:,.0f}" for figure in figures]
    print(f"| {number} | {' | '.join(cells)} | {ratio:.1f} |", flush=True)
