"""Opacus with this package's accountant and its clipping methods.

Once `register()` was called, Opacus takes the accountant by name:

>>> import fairdp.opacus
>>> fairdp.opacus.register()
>>> from opacus.accountants import create_accountant
>>> from opacus.accountants.utils import get_noise_multiplier
>>> accountant = create_accountant("fairdp")  # PrivacyEngine(accountant="fairdp") does the same
>>> for _ in range(1000):
...     accountant.step(noise_multiplier=1.0, sample_rate=0.01)
>>> len(accountant), round(accountant.get_epsilon(delta=1e-5), 4)
(1000, 1.8282)
>>> round(get_noise_multiplier(
...     target_epsilon=3.0, target_delta=1e-5, sample_rate=0.01, steps=1000,
...     accountant="fairdp"), 2)
0.81

`make_private` is Opacus's with a clipping method of `fairdp.clipping`; `FairDPOptimizer` is what it
makes. FairLens is refused: its regularisers need second derivatives of the batch's losses, and an
optimizer sees gradients only. The analyses of one error of clipping (`magnitude-only`,
`direction-only`) work in hooks mode alone, since they need every record's gradient.

Epsilon holds if no record changes the gradient of another one. PyTorch computes them together, so
where a hidden unit is at zero up to rounding one record can switch others.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from opacus import PrivacyEngine
from opacus.accountants import IAccountant
from opacus.accountants.registry import register_accountant
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _check_processed_flag, _mark_as_processed

from fairdp import clipping
from fairdp.accounting import Accountant as _Pld
from fairdp.accounting import DpEvent, EpsilonBound

__all__ = ["Accountant", "FairDPOptimizer", "make_private", "register"]


class Accountant(IAccountant):  # type: ignore[misc,unused-ignore]
    """Opacus's interface to the certified accountant: epsilon is the upper end of a bracket, by
    PLD.

    Neighbours differ by one added or removed record and batches are Poisson samples, as Opacus
    assumes.
    """

    history: list[tuple[float, float, int]]

    def __init__(self) -> None:
        self.history = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """One optimizer step. Steps that are alike in a row are one entry of the history."""
        steps = 1
        if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
            steps += self.history.pop()[2]
        self.history.append((noise_multiplier, sample_rate, steps))

    def bound(self, delta: float) -> EpsilonBound:
        """The bracket: `lower`, `upper` and how it was found.

        >>> from fairdp.opacus import Accountant
        >>> accountant = Accountant()
        >>> accountant.step(noise_multiplier=1.0, sample_rate=1.0)
        >>> print(accountant.bound(1e-5))
        epsilon at most 4.3772 (certified), at least 4.3771, at delta 1e-5, by closed form
        """
        accountant = _Pld.pld()
        for noise_multiplier, sample_rate, steps in self.history:
            event = DpEvent.gaussian(noise_multiplier).poisson_sampled(sample_rate)
            accountant.compose(event, steps)
        return accountant.epsilon(delta)

    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
        """The epsilon spent so far at this delta: an upper bound, infinity where steps had no
        noise.
        """
        if any(noise_multiplier == 0 for noise_multiplier, _, _ in self.history):
            return math.inf
        return self.bound(delta).upper

    def __len__(self) -> int:
        """Number of steps."""
        return sum(steps for _, _, steps in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """The name by which Opacus finds it."""
        return "fairdp"


def register() -> None:
    """Makes the accountant known to Opacus as "fairdp"; again is allowed."""
    register_accountant("fairdp", Accountant, force=True)


class FairDPOptimizer(DPOptimizer):  # type: ignore[misc,unused-ignore]
    """A step of a clipping method: scales and count queries by `method`, noise exact on a public
    grid.

    Give the groups of a batch to `set_groups` between `zero_grad` and its backward pass, if
    `method.needs_groups`.
    `noise_multiplier` is that of all queries of a step together, `(Σ σ_j⁻²)^(-1/2)`, which is what
    any accountant must be told: one Gaussian mechanism with it has the trade-off curve of the joint
    one. It is 0 where nothing is certified. Norms and sums are formed in float64, except in ghost
    mode: there they are Opacus's, in the gradients' precision. Batches in parts
    (`BatchMemoryManager`) are for methods whose scales do not depend on the batch's counts.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        *,
        method: clipping.Method,
        expected_batch_size: int,
        loss_reduction: str = "mean",
        seed: int | None = None,
    ) -> None:
        if method.coupling == "fairlens":
            raise ValueError(
                "method is fairlens, whose regularisers need second derivatives of the batch's losses; "
                "an optimizer sees gradients only"
            )
        self.method = method
        self._noise = clipping.NoiseSource(seed)
        self._groups: list[NDArray[np.int64]] = []
        self._parts: list[tuple[NDArray[np.float64], NDArray[np.int64]]] = []
        super().__init__(
            optimizer,
            noise_multiplier=_together(method),
            max_grad_norm=1.0,  # the first batch says its own
            expected_batch_size=expected_batch_size,
            loss_reduction=loss_reduction,
        )

    @property
    def is_private(self) -> bool:
        """Whether batches' counts and sums have noise from the operating system, not from a seed."""
        return bool(self.method.is_private and self._noise.is_private)

    @property
    def noise_multiplier(self) -> float:
        """What an accountant is told of a step. It follows from the method and cannot be set."""
        return _together(self.method)

    @noise_multiplier.setter
    def noise_multiplier(self, value: float) -> None:
        if value != _together(self.method):
            raise ValueError(
                f"noise_multiplier is {value}, but the method adds noise of {_together(self.method)}: make another method"
            )

    def set_groups(self, groups: Any) -> None:
        """The group of each record of the next batch, or part of one, from 0: after `zero_grad`,
        which forgets those of a batch that was given up, and before the backward pass.
        """
        found = clipping._groups(groups)
        if found is None:
            raise ValueError("groups is None, expected the group of each record")
        self._groups.append(found)

    def zero_grad(self, set_to_none: bool = False) -> None:
        """As Opacus's; groups of a batch that was given up are forgotten."""
        if not self._is_last_step_skipped:
            self._groups.clear()
        super().zero_grad(set_to_none)

    def scales(self, norms: torch.Tensor) -> torch.Tensor:
        """Scales for the records of a batch, or part of one, with these gradient norms."""
        values = norms.detach().double().cpu().numpy().reshape(-1)
        if self.method.needs_groups and not self._groups:
            raise ValueError(f"{self.method.name} needs groups: call set_groups between zero_grad and the backward pass")
        groups = self._groups.pop(0) if self._groups else np.zeros(len(values), dtype=np.int64)
        if len(groups) != len(values):
            raise ValueError(f"groups has {len(groups)} entries, but the batch has {len(values)} records")
        is_last = not self._check_skip_next_step(pop_next=False)
        if is_last and not self._parts:
            clipped = self.method.clip(values, groups)
            scales = clipped.scales
        else:
            scales = self._in_advance(values, groups)
            self._parts.append((values, groups))
            if is_last:
                clipped = self.method.clip(*(np.concatenate(parts) for parts in zip(*self._parts)))
                self._parts = []
        if is_last:
            self.max_grad_norm = clipped.bound
        return torch.from_numpy(scales).to(norms.device)

    def _in_advance(self, norms: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
        scales = []
        for norm, group in zip(norms.tolist(), groups.tolist()):
            scale = self.method.scale_in_advance(norm, group)
            if scale is None:
                raise ValueError(
                    f"{self.method.name} cannot take a batch in parts: its scales depend on the counts of the whole batch"
                )
            scales.append(scale)
        return np.array(scales)

    def clip_and_accumulate(self) -> None:
        """Scales the per-sample gradients and adds them up, in float64, in `p.summed_grad`."""
        for p in self.params:
            _check_processed_flag(p.grad_sample)
        flat = [self._get_flat_grad_sample(p).detach() for p in self.params]
        n_records = len(flat[0])
        # A record with a gradient that is not finite has scale 0: its entries may not reach the
        # sum, as 0 · ∞ would.
        squares = torch.zeros(n_records, dtype=torch.float64, device=flat[0].device)
        for p, gradients in zip(self.params, flat):
            # Not -1: a batch without records has a norm for none.
            squares += gradients.reshape(n_records, p.numel()).double().square().sum(dim=1).to(squares.device)
        scales = self.scales(squares.sqrt())
        used = scales > 0
        for p, gradients in zip(self.params, flat):
            kept, weights = gradients[used.to(gradients.device)].double(), scales[used].to(gradients.device)
            total = torch.einsum("i,i...", weights, kept)
            if self.method.coupling != "none":
                plain = kept.sum(dim=0)
                p.plain_grad = plain if p.summed_grad is None else p.plain_grad + plain
            p.summed_grad = total if p.summed_grad is None else p.summed_grad + total
            _mark_as_processed(p.grad_sample)

    def add_noise(self) -> None:
        """Adds the step's noise to the sum and leaves it in `p.grad`."""
        values = self._joined("summed_grad")
        if self.method.coupling != "none":
            # Analyses of one error of clipping: nothing is certified, and noise would hide the
            # error.
            values = self.method.recombine(values, self._joined("plain_grad"))
        elif self.method.noise_multiplier > 0:
            self._noise.add_to(values, self.method.noise_multiplier * self.max_grad_norm)
        start = 0
        for p in self.params:
            part = torch.from_numpy(values[start : start + p.numel()])
            p.grad = part.to(device=p.device, dtype=p.dtype).view_as(p)
            start += p.numel()

    def _joined(self, name: str) -> NDArray[np.float64]:
        parts = [getattr(p, name).double().cpu().numpy().reshape(-1) for p in self.params]
        return np.concatenate(parts)

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's, with the method's thresholds."""
        return {**super().state_dict(), "clipping_method": self.method.state()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues where `state_dict` was taken."""
        inner = dict(state_dict)
        self.method.restore(inner.pop("clipping_method"))
        super().load_state_dict(inner)


class _GhostOptimizer(FairDPOptimizer):
    """The same where Opacus knows norms alone: weights out, and `p.grad` is the clipped sum after
    the second pass.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, *, method: clipping.Method, **settings: Any) -> None:
        if method.coupling != "none":
            raise ValueError(f"{method.name} needs every record's gradient: use grad_sample_mode='hooks'")
        super().__init__(optimizer, method=method, **settings)
        self._is_open = False

    def scales(self, norms: torch.Tensor) -> torch.Tensor:
        """Scales for the records of a batch. Its counts are released here and charged in `step`."""
        if self._is_open:
            raise RuntimeError(
                "a backward pass was not followed by a step: the counts of its batch are not charged; expected "
                "optimizer.step() after each loss.backward() in ghost mode"
            )
        is_last = not self._check_skip_next_step(pop_next=False)
        scales = super().scales(norms)
        self._is_open = is_last
        return scales

    def zero_grad(self, set_to_none: bool = False) -> None:
        """As Opacus's, which calls it between the two passes: groups are still needed then."""
        DPOptimizer.zero_grad(self, set_to_none)

    def pre_step(self, *args: Any, **kwargs: Any) -> bool | None:
        """As Opacus's; a step that is taken is charged."""
        is_taken: bool | None = super().pre_step(*args, **kwargs)
        if is_taken:
            self._is_open = False
        return is_taken

    @property
    def accumulated_iterations(self) -> int:
        return 1

    @property
    def grad_samples(self) -> list[torch.Tensor]:
        return [p.grad for p in self.params]

    def clip_and_accumulate(self) -> None:
        for p in self.params:
            total = p.grad.detach().double()
            if not bool(torch.isfinite(total).all()):
                raise ValueError(
                    "the gradient of a record is not finite: it cannot be left out of a sum that is made in the backward "
                    "pass, and would show in every parameter; expected finite losses, or grad_sample_mode='hooks'"
                )
            p.summed_grad = total if p.summed_grad is None else p.summed_grad + total


# What Opacus's own `make_private` is given.
_TAKEN = frozenset({"batch_first", "criterion", "poisson_sampling", "rand_on_empty", "wrap_model"})


def make_private(
    engine: PrivacyEngine,
    *,
    module: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    data_loader: torch.utils.data.DataLoader[Any],
    method: str,
    noise_multiplier: float,
    groups: int = 1,
    settings: Mapping[str, Any] | None = None,
    grad_sample_mode: str = "hooks",
    loss_reduction: str = "mean",
    seed: int | None = None,
    **kwargs: Any,
) -> tuple[Any, ...]:
    """`engine.make_private` with a method of `fairdp.clipping`: module, optimizer and loader; in
    ghost mode also the loss.

    `settings` are those of `clipping.method`, `groups` the number of groups, `noise_multiplier`
    that of the gradient; counts and their noise are in the engine's ledger too. Batches are Poisson
    samples and there is one process. A `seed`, which is for experiments, makes noise repeatable and
    nothing private: a warning says so, and `is_private` of the optimizer is False. FairLens is a
    ValueError: see the module's documentation. Of Opacus's other arguments those are taken that have
    an effect: `batch_first`, `criterion`, `poisson_sampling`, `rand_on_empty` and `wrap_model`.
    """
    if grad_sample_mode not in ("hooks", "ghost"):
        raise ValueError(f"grad_sample_mode is {grad_sample_mode!r}, expected 'hooks' or 'ghost'")
    if "max_grad_norm" in kwargs:
        raise TypeError("max_grad_norm: the bound is the method's, expected settings={'clip_norm': ...}")
    unknown = sorted(kwargs.keys() - _TAKEN)
    if unknown:
        raise TypeError(f"{unknown[0]} is of no effect here, expected some of {', '.join(sorted(_TAKEN))}")
    if not kwargs.get("poisson_sampling", True):
        raise ValueError("poisson_sampling is False, but what is charged is the cost of Poisson batches")
    if isinstance(module, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)):
        raise ValueError(f"module is {type(module).__name__}, expected a module of one process")
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
        raise ValueError(f"{distributed.get_world_size()} processes share the training, expected one")
    if seed is not None:
        warnings.warn(f"seed is {seed}: noise is repeatable, and nothing is private whatever epsilon says", stacklevel=2)
    seeds = [None, None] if seed is None else np.random.SeedSequence(seed).generate_state(2, np.uint64).tolist()
    wrapped, theirs, *loss, loader = engine.make_private(
        module=module,
        optimizer=optimizer,
        data_loader=data_loader,
        noise_multiplier=noise_multiplier,
        max_grad_norm=1.0,
        grad_sample_mode=grad_sample_mode,
        loss_reduction=loss_reduction,
        **kwargs,
    )
    ours: Callable[..., FairDPOptimizer] = _GhostOptimizer if grad_sample_mode == "ghost" else FairDPOptimizer
    private = ours(
        theirs.original_optimizer,
        method=clipping.method(
            method,
            noise_multiplier=noise_multiplier,
            expected_batch_size=theirs.expected_batch_size,
            groups=groups,
            seed=seeds[0],
            **(settings or {}),
        ),
        expected_batch_size=theirs.expected_batch_size,
        loss_reduction=loss_reduction,
        seed=seeds[1],
    )
    private.attach_step_hook(engine.accountant.get_optimizer_hook_fn(sample_rate=1 / len(loader)))
    for criterion in loss:
        criterion.optimizer = private
        wrapped.get_clipping_coef = lambda: private.scales(wrapped.get_norm_sample())
    return (wrapped, private, *loss, loader)


def _together(method: clipping.Method) -> float:
    multipliers = method.step_noise_multipliers
    if not method.certified or min(multipliers) == 0:
        return 0.0
    return 1.0 / math.sqrt(sum(1.0 / multiplier**2 for multiplier in multipliers))
