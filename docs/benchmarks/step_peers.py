"""One training step of PyTorch, Opacus or JAX on random records: milliseconds, as one line of JSON.

    python docs/benchmarks/step_peers.py --program torch|opacus|jax --model MODEL --batch N --steps K

`side_by_side.sh` runs it in turns with `cargo xtask bench step`, whose models these are. Opacus is
measured in every mode of per-sample gradients that the model allows, and its fastest one is given.
A step is forward, backward, clipping, noise and update; no program draws or loads a batch.
"""
import argparse
import json
import statistics
import sys
import time

THREADS = 2
CLIP_NORM = 1.0
NOISE_MULTIPLIER = 1.0
RATE = 0.01
MODELS = {  # shape of a record, classes (1: one logit)
    "lr": ((58,), 1),
    "mlp": ((98,), 1),
    "esipova-cnn": ((1, 28, 28), 10),
    "zhao-cnn": ((1, 28, 28), 10),
    "resnet18": ((1, 28, 28), 10),
}


def milliseconds(step, n_steps):
    """Median over steps, after three that are not counted."""
    times = []
    for number in range(n_steps + 3):
        start = time.perf_counter()
        step()
        if number >= 3:
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def torch_model(name):
    import torch.nn as nn

    class Residual(nn.Module):
        def __init__(self, n_in, n_out, stride):
            super().__init__()
            self.main = nn.Sequential(
                nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False), nn.GroupNorm(32, n_out), nn.ReLU(),
                nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False), nn.GroupNorm(32, n_out))
            self.short = nn.Identity()
            if stride > 1 or n_in != n_out:
                self.short = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.GroupNorm(32, n_out))

        def forward(self, x):
            return nn.functional.relu(self.main(x) + self.short(x))

    if name == "lr":
        return nn.Linear(58, 1)
    if name == "mlp":
        return nn.Sequential(nn.Linear(98, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    if name == "esipova-cnn":
        return nn.Sequential(nn.Conv2d(1, 32, 3), nn.Tanh(), nn.Conv2d(32, 16, 3), nn.Tanh(), nn.Flatten(),
                             nn.Linear(9216, 10))
    if name == "zhao-cnn":
        return nn.Sequential(nn.Conv2d(1, 64, 3), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(64, 64, 3), nn.ReLU(),
                             nn.MaxPool2d(3, 2), nn.Flatten(), nn.Linear(1024, 500), nn.ReLU(), nn.Linear(500, 500),
                             nn.ReLU(), nn.Linear(500, 10))
    blocks = [Residual(n_in, n_out, stride)
              for n_in, n_out, stride in [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2),
                                          (256, 256, 1), (256, 512, 2), (512, 512, 1)]]
    return nn.Sequential(nn.Conv2d(1, 64, 7, 2, 3, bias=False), nn.GroupNorm(32, 64), nn.ReLU(),
                         nn.MaxPool2d(3, 2, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def torch_step(name, batch, mode):
    """A step of PyTorch (`mode` None) or of Opacus in this mode."""
    import torch
    import torch.nn as nn

    torch.manual_seed(1)
    torch.set_num_threads(THREADS)
    shape, n_outputs = MODELS[name]
    model = torch_model(name)
    x = torch.randn(batch, *shape)
    if n_outputs == 1:
        y, loss = torch.randint(0, 2, (batch, 1)).float(), nn.BCEWithLogitsLoss()
    else:
        y, loss = torch.randint(0, n_outputs, (batch,)), nn.CrossEntropyLoss()
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    how = dict(noise_multiplier=NOISE_MULTIPLIER, max_grad_norm=CLIP_NORM, expected_batch_size=batch)
    if mode == "ghost":
        from opacus.grad_sample import GradSampleModuleFastGradientClipping
        from opacus.optimizers import DPOptimizerFastGradientClipping
        from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

        model = GradSampleModuleFastGradientClipping(model, max_grad_norm=CLIP_NORM, use_ghost_clipping=True)
        optimiser = DPOptimizerFastGradientClipping(optimiser, **how)
        loss = DPLossFastGradientClipping(model, optimiser, loss)
    elif mode is not None:
        from opacus.grad_sample.utils import wrap_model
        from opacus.optimizers import DPOptimizer

        model = wrap_model(model, mode)
        optimiser = DPOptimizer(optimiser, **how)

    def step():
        optimiser.zero_grad()
        loss(model(x), y).backward()
        optimiser.step()

    return step


def jax_model(name):
    """Initial parameters and the outputs of one record."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(1)

    def weights(*shape):
        bound = 1 / np.sqrt(np.prod(shape[1:]))
        return rng.uniform(-bound, bound, shape).astype("float32")

    def dense(n_in, n_out):
        return weights(n_out, n_in), np.zeros(n_out, "float32")

    def filters(n_in, n_out):
        return weights(n_out, n_in, 3, 3), np.zeros((n_out, 1, 1), "float32")

    def convolve(x, parameters):
        kernel, bias = parameters
        return jax.lax.conv_general_dilated(x[None], kernel, (1, 1), "VALID")[0] + bias

    def linear(x, parameters):
        return parameters[0] @ x + parameters[1]

    def pool(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3), (1, 2, 2), "VALID")

    if name == "lr":
        return [dense(58, 1)], lambda p, x: linear(x, p[0])
    if name == "mlp":
        def mlp(p, x):
            return linear(jnp.tanh(linear(jnp.tanh(linear(x, p[0])), p[1])), p[2])

        return [dense(98, 256), dense(256, 256), dense(256, 1)], mlp
    if name == "esipova-cnn":
        def esipova(p, x):
            return linear(jnp.tanh(convolve(jnp.tanh(convolve(x, p[0])), p[1])).ravel(), p[2])

        return [filters(1, 32), filters(32, 16), dense(9216, 10)], esipova
    if name == "zhao-cnn":
        def zhao(p, x):
            x = pool(jax.nn.relu(convolve(pool(jax.nn.relu(convolve(x, p[0]))), p[1]))).ravel()
            return linear(jax.nn.relu(linear(jax.nn.relu(linear(x, p[2])), p[3])), p[4])

        return [filters(1, 64), filters(64, 64), dense(1024, 500), dense(500, 500), dense(500, 10)], zhao
    return None


def jax_step(name, batch):
    """A private step: per-sample gradients by `vmap`, in one compiled function. None: no such model."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    model = jax_model(name)
    if model is None:
        return None
    parameters, outputs = model
    shape, n_outputs = MODELS[name]
    rng = np.random.default_rng(2)
    x = rng.standard_normal((batch, *shape)).astype("float32")
    y = rng.integers(0, max(n_outputs, 2), batch)

    def loss(parameters, x, y):
        z = outputs(parameters, x)
        return jax.nn.softplus(z[0]) - y * z[0] if n_outputs == 1 else jax.nn.logsumexp(z) - z[y]

    def private(parameters, key):
        leaves, tree = jax.tree_util.tree_flatten(jax.vmap(jax.grad(loss), (None, 0, 0))(parameters, x, y))
        norms = jnp.sqrt(sum(jnp.sum(leaf.reshape(batch, -1) ** 2, 1) for leaf in leaves))
        scales = jnp.minimum(1.0, CLIP_NORM / norms)
        std = NOISE_MULTIPLIER * CLIP_NORM
        sums = [jnp.tensordot(scales, leaf, 1) + std * jax.random.normal(key, leaf.shape[1:])
                for key, leaf in zip(jax.random.split(key, len(leaves)), leaves)]
        return jax.tree_util.tree_map(lambda p, g: p - RATE / batch * g, parameters,
                                      jax.tree_util.tree_unflatten(tree, sums))

    compiled = jax.jit(private)
    state = [parameters, jax.random.PRNGKey(3)]

    def step():
        state[1], key = jax.random.split(state[1])
        state[0] = jax.block_until_ready(compiled(state[0], key))

    return step


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--program", choices=["torch", "opacus", "jax"], required=True)
    arguments.add_argument("--model", choices=MODELS, required=True)
    arguments.add_argument("--batch", type=int, default=256)
    arguments.add_argument("--steps", type=int, default=20)
    options = arguments.parse_args()
    try:
        if options.program == "jax":
            step = jax_step(options.model, options.batch)
            steps = {"vmap": step} if step else {}
        else:
            modes = [None] if options.program == "torch" else ["ghost", "hooks", "ew"]
            steps = {mode or "plain": torch_step(options.model, options.batch, mode) for mode in modes}
    except ImportError as error:
        print(json.dumps({"skipped": str(error)}))
        return
    times = {}
    for mode, step in steps.items():
        try:
            times[mode] = milliseconds(step, options.steps)
        except (NotImplementedError, RuntimeError, ValueError) as error:
            print(f"{options.program} {mode}: {error}", file=sys.stderr)
    if not times:
        print(json.dumps({"skipped": "no such model"}))
        return
    mode = min(times, key=times.get)
    print(json.dumps({"ms_per_step": times[mode], "mode": mode}))


if __name__ == "__main__":
    main()
