#!/usr/bin/env python3
"""By how much one record moves the clipped sum: Opacus, jax_privacy and this workspace under the
same attacks.

    pip install torch opacus jax jax-privacy
    cargo run --release -p xtask -- replay --known --json > known.json
    python docs/benchmarks/sensitivity.py --known known.json

An attack is a batch, parameters, and a record. The sum of clipped gradients is formed with the
record and without it, by each library's own code for private training, noise set aside. A ratio is
the change of the sum over the clipping norm; the proof of DP-SGD allows 1. Where products may
differ in their last bits, attacks place copies of a record at a discontinuity and try several such
places: the largest ratio counts.
"""
import argparse
import functools
import json
import os
import warnings

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.filterwarnings("ignore")

import jax
import jax.numpy as jnp
import jax_privacy
import numpy as np
import opacus
import torch
from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

torch.set_num_threads(2)


class MeanOverPositions(torch.nn.Module):
    def forward(self, x):
        return x.mean(dim=1)


def torch_model(layers, parameters):
    modules, at = [], 0
    for layer in layers:
        if layer == "relu":
            modules.append(torch.nn.ReLU())
        elif layer == "mean":
            modules.append(MeanOverPositions())
        else:
            linear = torch.nn.Linear(*layer)
            with torch.no_grad():
                linear.weight.copy_(torch.from_numpy(parameters[at]))
                linear.bias.copy_(torch.from_numpy(parameters[at + 1]))
            modules.append(linear)
            at += 2
    return torch.nn.Sequential(*modules)


def summed(model):
    parts = [p.summed_grad.detach().double().numpy().ravel() for p in model.parameters()]
    return np.concatenate(parts)


def without_noise(optimizer, model, x, clip_norm):
    return optimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=0.0,
        max_grad_norm=clip_norm,
        expected_batch_size=len(x),
        loss_reduction="sum",
    )


def opacus_hooks(layers, parameters, x, y, clip_norm):
    model = GradSampleModule(torch_model(layers, parameters), loss_reduction="sum")
    optimizer = without_noise(DPOptimizer, model, x, clip_norm)
    torch.nn.CrossEntropyLoss(reduction="sum")(model(torch.from_numpy(x)), torch.from_numpy(y)).backward()
    optimizer.clip_and_accumulate()
    return summed(model)


def opacus_ghost(layers, parameters, x, y, clip_norm):
    model = GradSampleModuleFastGradientClipping(
        torch_model(layers, parameters), max_grad_norm=clip_norm, use_ghost_clipping=True, loss_reduction="sum"
    )
    optimizer = without_noise(DPOptimizerFastGradientClipping, model, x, clip_norm)
    criterion = DPLossFastGradientClipping(
        model, optimizer, torch.nn.CrossEntropyLoss(reduction="sum"), loss_reduction="sum"
    )
    criterion(model(torch.from_numpy(x)), torch.from_numpy(y)).backward()
    optimizer.accumulate()
    return summed(model)


def jax_loss(layers, parameters, x, y):
    at = 0
    for layer in layers:
        if layer == "relu":
            x = jax.nn.relu(x)
        elif layer == "mean":
            x = x.mean(axis=1)
        else:
            x = x @ parameters[at].T + parameters[at + 1]
            at += 2
    return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], axis=1).sum()


@functools.cache
def jax_sum(layers, clip_norm):
    sum_of = jax_privacy.clipped_grad(
        lambda parameters, x, y: jax_loss(layers, parameters, x, y), l2_clip_norm=clip_norm, batch_argnums=(1, 2)
    )
    return jax.jit(sum_of)


def by_jax_privacy(layers, parameters, x, y, clip_norm):
    sum_of = jax_sum(tuple(layers), clip_norm)
    parts = sum_of([jnp.asarray(p) for p in parameters], jnp.asarray(x), jnp.asarray(y))
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


LIBRARIES = {
    f"Opacus {opacus.__version__}, hooks": opacus_hooks,
    f"Opacus {opacus.__version__}, ghost": opacus_ghost,
    f"jax_privacy {jax_privacy.__version__ if hasattr(jax_privacy, '__version__') else '2.0.0'}": by_jax_privacy,
}


def initial(layers, rng):
    """PyTorch's default initialisation."""
    parameters = []
    for layer in layers:
        if isinstance(layer, tuple):
            inputs, outputs = layer
            k = 1 / np.sqrt(inputs)
            parameters += [rng.uniform(-k, k, (outputs, inputs)).astype(np.float32)]
            parameters += [rng.uniform(-k, k, outputs).astype(np.float32)]
    return parameters


def kink(n_inputs, width, n):
    """Copies of a record whose hidden units are at 0, up to the rounding of a product. Libraries
    change their way to a product at different numbers of rows: this one, at which ours once did,
    and those of torch.
    """
    layers = [(n_inputs, width), "relu", (width, 2)]
    rng = np.random.default_rng(1)
    for n in (2, 5, 16, n):
        for _ in range(12):
            parameters = initial(layers, rng)
            row = rng.uniform(-1.15, 1.15, n_inputs).astype(np.float32)
            at = (parameters[0].astype(np.float64) @ row).astype(np.float32)
            for _ in range(rng.integers(3)):
                at = np.nextafter(at, rng.choice([-np.inf, np.inf], width).astype(np.float32))
            parameters[1] = -at
            yield layers, parameters, np.tile(row, (n, 1)), np.zeros(n, dtype=np.int64), 1e-3


def cancelling(size):
    layers = [(8, 8), "mean", (8, 2)]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        first = rng.uniform(-size, size, (1, 1, 8)).astype(np.float32)
        x = np.concatenate([first, -first], axis=1)
        yield layers, initial(layers, rng), x, np.zeros(1, dtype=np.int64), 1.0


def beside_nan(n):
    layers = [(8, 8), "mean", (8, 2)]
    rng = np.random.default_rng(1)
    first = rng.uniform(-1e7, 1e7, (1, 1, 8)).astype(np.float32)
    x = np.tile(np.concatenate([first, -first], axis=1), (n, 1, 1))
    x[-1] = np.nan
    yield layers, initial(layers, rng), x, np.zeros(n, dtype=np.int64), 1.0


def one_feature(value):
    layers = [(8, 8), "mean", (8, 2)]
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (4, 2, 8)).astype(np.float32)
    x[-1, 0, 0] = value
    yield layers, initial(layers, rng), x, np.zeros(4, dtype=np.int64), 1.0


def stagnating(n):
    """The bias alone decides. Half of the records lift the sum over a power of two, the others are
    just above half a unit in the last place there. The record is one of the first half, and comes
    first.
    """
    layers = [(1, 2)]
    clip_norm = 1 / 1024
    n_large = n // 2 + 1
    for excess in (0.02, 0.05, 0.09):
        # A gradient of ±p in both biases: norm p √2.
        unit = clip_norm / np.sqrt(2) * (n_large - 1) * 2.0**-24 * (1 + excess)
        p = np.full(n, unit)
        p[:n_large] = 0.5
        x = (np.log(p / (1 - p)) / 1e6).astype(np.float32)[:, None]
        parameters = [np.array([[0.0], [1e6]], dtype=np.float32), np.zeros(2, dtype=np.float32)]
        yield layers, parameters, x, np.zeros(n, dtype=np.int64), clip_norm


# Name, batches, the record that goes, the step of ours that it stands beside.
ATTACKS = [
    ("MLP 100-10-2, up to 26 copies at a kink", lambda: kink(100, 10, 26), -1, "dpsgd, MLP 100-10-2, 26 copies at a kink"),
    ("MLP 600-10-2, up to 65 copies at a kink", lambda: kink(600, 10, 65), -1, "dpsgd, MLP 600-10-2, 65 copies at a kink"),
    ("MLP 20-1-2, up to 257 copies at a kink", lambda: kink(20, 1, 257), -1, "dpsgd, MLP 20-1-2, 257 copies at a kink"),
    ("two positions that cancel at 1e8", lambda: cancelling(1e8), 0, "dpsgd, two positions that cancel at 1e8"),
    ("two positions that cancel at 1e12", lambda: cancelling(1e12), 0, "dpsgd, two positions that cancel at 1e12"),
    ("two positions that cancel at 1e20", lambda: cancelling(1e20), 0, "dpsgd, two positions that cancel at 1e20"),
    ("a NaN beside 50 copies that cancel", lambda: beside_nan(51), -1, "dpsgd, a NaN beside 50 copies that cancel"),
    ("one infinite feature", lambda: one_feature(np.inf), -1, "dpsgd, one infinite feature of a sequence"),
    ("one feature of 3e38", lambda: one_feature(3e38), -1, "dpsgd, one feature of 3e38 of a sequence"),
    ("20,000 records by their biases", lambda: stagnating(20_000), 0, "dpsgd, logistic, 20,000 records by their biases"),
    ("100,000 records by their biases", lambda: stagnating(100_000), 0, "dpsgd, logistic, 100,000 records by their biases"),
]


def ratio(library, attack, record):
    worst = 0.0
    for layers, parameters, x, y, clip_norm in attack():
        keep = np.arange(len(x)) != (record % len(x))
        with_record = library(layers, parameters, x, y, clip_norm)
        if keep.any():
            without = library(layers, parameters, x[keep], y[keep], clip_norm)
        else:
            # An empty batch adds nothing.
            without = np.zeros_like(with_record)
        if not np.isfinite(with_record).all() or not np.isfinite(without).all():
            return float("inf")
        worst = max(worst, float(np.linalg.norm(with_record - without)) / clip_norm)
    return worst


def show(value):
    if value is None:
        return "–"
    if not np.isfinite(value):
        return "**not a number**"
    # Rounding of the last bit of one clipped gradient is not what is looked for.
    text = f"{value:.6f}" if value < 10 else f"{value:.3g}"
    return f"**{text}**" if value > 1 + 1e-6 else text


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--known", help="output of `cargo xtask replay --known --json`")
    known = arguments.parse_args().known
    ours = {}
    if known:
        with open(known) as lines:
            ours = {step["step"]: step["after"] for step in map(json.loads, lines)}
    print("| attack | " + " | ".join(LIBRARIES) + " | this workspace |")
    print("|---|" + "---|" * (len(LIBRARIES) + 1))
    for name, attack, record, step in ATTACKS:
        cells = []
        for library in LIBRARIES.values():
            try:
                cells.append(show(ratio(library, attack, record)))
            except Exception as error:  # noqa: BLE001 - a library that refuses says so in its cell
                cells.append(f"refused: {type(error).__name__}")
        print(f"| {name} | " + " | ".join(cells) + f" | {show(ours.get(step))} |", flush=True)


main()
