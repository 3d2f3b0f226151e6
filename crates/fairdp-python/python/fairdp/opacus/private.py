"""Opacus's `make_private` with a clipping method of this package."""

from __future__ import annotations

import types
import warnings
from typing import Any, Callable, Mapping

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.grad_sample.gsm_base import AbstractGradSampleModule

from fairdp import clipping
from fairdp.opacus.accountant import BATCHES, LOSS, MODULE, OWN, PROCESSES, Accountant
from fairdp.opacus.batches import PoissonBatches
from fairdp.opacus.ghost import GhostHooks, GhostModule
from fairdp.opacus.loss import RecordLoss, is_known
from fairdp.opacus.optimizer import FairDPOptimizer, GhostOptimizer
from fairdp.opacus.processes import Processes
from fairdp.opacus.watch import Watch

# Arguments of Opacus's `make_private`.
_TAKEN = frozenset({"batch_first", "criterion", "poisson_sampling", "rand_on_empty", "wrap_model"})


def make_private(
    engine: PrivacyEngine,
    *,
    module: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    data_loader: torch.utils.data.DataLoader[Any],
    method: str | Callable[[Any, Any], Any],
    noise_multiplier: float,
    groups: int = 1,
    settings: Mapping[str, Any] | None = None,
    grad_sample_mode: str = "hooks",
    loss_reduction: str = "mean",
    seed: int | None = None,
    **kwargs: Any,
) -> tuple[Any, ...]:
    """`engine.make_private` with a method of `fairdp.clipping`: module, optimizer and loader; with a
    criterion, or in ghost mode, module, optimizer, loss and loader.

    `settings` are those of `clipping.method`, `groups` the number of groups, `noise_multiplier`
    that of the gradient; counts and their noise are in the engine's ledger too. Batches are Poisson
    samples, drawn from the operating system's random bits. A `seed`, which is for experiments,
    makes batches and noise repeatable and nothing private: a warning says so, and `is_private` of
    the optimizer is False.

    `method` may be a function of one's own, from norms and groups to scales, with
    `settings={"bound": ...}`: see `clipping.own_method`. It is held to that bound, and epsilon is
    conditional on its having no memory.

    Several processes share a training if the module is in Opacus's
    `DifferentiallyPrivateDistributedDataParallel` in each of them. All of them have the whole data
    set, and a process draws among the records of its rank. Counts and noise are made once, by rank 0.

    With a `criterion`, the loss is a `RecordLoss`; ghost mode has `CrossEntropyLoss` without one.
    In hooks mode without one, any loss may be used, and epsilon is conditional on its terms: a
    warning and `Accountant.given` say so. There, a term that is added to the loss and does not go
    through the module's layers, such as a penalty on weights, has no effect.

    Of Opacus's other arguments those are taken that have an effect: `batch_first`, `criterion` and
    `wrap_model`; `poisson_sampling` and `rand_on_empty` have one sound value. The module is
    refused if it uses a parameter outside its layer, trains one that the optimizer has not, mixes
    the records of a batch, or is compiled. FairLens is a ValueError: see the package's
    documentation.
    """
    if grad_sample_mode not in ("hooks", "ghost"):
        raise ValueError(f"grad_sample_mode is {grad_sample_mode!r}, expected 'hooks' or 'ghost'")
    if "max_grad_norm" in kwargs:
        raise TypeError("max_grad_norm: the bound is the method's, expected settings={'clip_norm': ...}")
    unknown = sorted(kwargs.keys() - _TAKEN)
    if unknown:
        raise TypeError(f"{unknown[0]} is of no effect here, expected some of {', '.join(sorted(_TAKEN))}")
    if not kwargs.pop("poisson_sampling", True):
        raise ValueError("poisson_sampling is False, but what is charged is the cost of Poisson batches")
    if kwargs.pop("rand_on_empty", False):
        raise ValueError(
            "rand_on_empty is True: an empty batch would become a made-up record, and one real record in its place moves "
            "the sum by twice the bound; expected False, since an empty batch is a step of noise"
        )
    if loss_reduction not in ("mean", "sum"):
        raise ValueError(f"loss_reduction is {loss_reduction!r}, expected 'mean' or 'sum'")
    _check_module(module)
    processes = Processes.of(module)
    if seed is not None:
        warnings.warn(
            f"seed is {seed}: batches and noise are repeatable, and nothing is private whatever epsilon says", stacklevel=2
        )
    # Each process draws among its own records: rank 0 as a process alone would.
    entropy = seed if seed is None or processes.rank == 0 else [seed, processes.rank]
    seeds = [None] * 3 if seed is None else np.random.SeedSequence(entropy).generate_state(3, np.uint64).tolist()

    is_ghost = grad_sample_mode == "ghost"
    criterion = kwargs.pop("criterion", None)
    if criterion is None and is_ghost:
        criterion = torch.nn.CrossEntropyLoss(reduction=loss_reduction)
    owns_loss = criterion is not None
    # A loss by record goes backward as the sum of its terms, so that no gradient depends on how
    # many records the batch has.
    backward_reduction = "sum" if owns_loss else loss_reduction
    given = engine.accountant.given if isinstance(engine.accountant, Accountant) else ()
    wrapped, theirs, *_, loader = engine.make_private(
        module=module,
        optimizer=optimizer,
        criterion=types.SimpleNamespace(reduction=backward_reduction),
        data_loader=data_loader,
        noise_multiplier=noise_multiplier,
        max_grad_norm=1.0,
        grad_sample_mode=grad_sample_mode,
        loss_reduction=backward_reduction,
        **kwargs,
    )
    try:
        private, loss = _made(
            wrapped,
            theirs,
            criterion,
            is_ghost=is_ghost,
            loss_reduction=loss_reduction,
            seed=seeds[1],
            processes=processes,
            method=_method(
                method,
                seeds[0],
                noise_multiplier=noise_multiplier,
                # Opacus's is the share of a process.
                expected_batch_size=theirs.expected_batch_size * processes.size,
                groups=groups,
                **(settings or {}),
            ),
        )
    except Exception:
        # The module is the caller's: it keeps no hooks of what came to nothing.
        wrapped.cleanup()
        raise
    private._draws_ahead = loader.num_workers > 0
    private._sampler = PoissonBatches(loader.batch_sampler, private, seed=seeds[2], draws_ahead=private._draws_ahead, processes=processes)
    # A loader refuses another sampler once it is made; nothing was drawn from this one.
    object.__setattr__(loader, "batch_sampler", private._sampler)

    conditions = [MODULE, BATCHES]
    if not isinstance(method, str):
        conditions.append(OWN.format(private.method.name))
    if processes.size > 1:
        conditions.append(PROCESSES)
    if not owns_loss or not is_known(criterion):
        conditions.append(LOSS)
        warnings.warn(f"epsilon is conditional: {LOSS}; a criterion of PyTorch, given as criterion=, sees to it", stacklevel=2)
    rate = 1 / len(loader)
    if isinstance(engine.accountant, Accountant):
        engine.accountant.given = given
        private.attach_step_hook(engine.accountant.hook_of(rate, conditions))
    else:
        private.attach_step_hook(engine.accountant.get_optimizer_hook_fn(sample_rate=rate))
    return (wrapped, private, *loss, loader)


def _made(
    wrapped: Any,
    theirs: Any,
    criterion: Any,
    *,
    is_ghost: bool,
    method: clipping.Method,
    loss_reduction: str,
    seed: int | None,
    processes: Processes,
) -> tuple[FairDPOptimizer, list[RecordLoss]]:
    """The optimizer and, with a criterion, the loss, in place of Opacus's optimizer."""
    ours: type[FairDPOptimizer] = GhostOptimizer if is_ghost else FairDPOptimizer
    private = ours(
        theirs.original_optimizer,
        method=method,
        expected_batch_size=theirs.expected_batch_size * processes.size,
        loss_reduction=loss_reduction,
        seed=seed,
        processes=processes,
    )
    loss = [] if criterion is None else [RecordLoss(criterion, private, loss_reduction)]
    private._owns_loss = criterion is not None
    private._watch = Watch(wrapped, private.params, owns_loss=private._owns_loss)
    if isinstance(private, GhostOptimizer):
        # The hooks that Opacus has made call what their object's class has.
        wrapped.__class__ = GhostModule if isinstance(wrapped, AbstractGradSampleModule) else GhostHooks
        private._hooks = wrapped
    return private, loss


def _method(method: str | Callable[[Any, Any], Any], seed: int | None, **settings: Any) -> clipping.Method:
    if isinstance(method, str):
        return clipping.method(method, seed=seed, **settings)
    unknown = sorted(settings.keys() - {"noise_multiplier", "expected_batch_size", "groups", "bound"})
    if unknown or "bound" not in settings:
        found = unknown[0] if unknown else "no bound"
        raise TypeError(f"settings has {found}, expected settings={{'bound': ...}} alone for a function of one's own")
    return clipping.own_method(method, **settings)


def _check_module(module: torch.nn.Module) -> None:
    if isinstance(module, AbstractGradSampleModule) or hasattr(module, "autograd_grad_sample_hooks"):
        raise ValueError("module was made private before, expected the plain module (`to_standard_module()` gives it)")
    if hasattr(module, "_orig_mod"):
        raise ValueError("module is compiled: its layers' hooks would not run; expected the module that was compiled")
