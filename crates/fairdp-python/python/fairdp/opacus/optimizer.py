"""A step of a clipping method, once for each batch."""

from __future__ import annotations

import math
from typing import Any, Callable, Mapping, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _check_processed_flag, _mark_as_processed

from fairdp import clipping
from fairdp.opacus.batches import PoissonBatches
from fairdp.opacus.ghost import GhostHooks
from fairdp.opacus.processes import Processes
from fairdp.opacus.watch import Watch


class FairDPOptimizer(DPOptimizer):  # type: ignore[misc,unused-ignore]
    """A step of a clipping method: scales and count queries by `method`, noise exact on a public
    grid.

    A batch goes through groups (`set_groups`, if `method.needs_groups`), one backward pass and one
    step, each once. `zero_grad` gives up a batch without a step, and a new pass through the loader
    gives up one in parts: their groups, sums and counts are forgotten. What is done twice is a
    RuntimeError.

    `noise_multiplier` is that of all queries of a step together, `(Σ σ_j⁻²)^(-1/2)`, which is what
    any accountant must be told: one Gaussian mechanism with it has the trade-off curve of the joint
    one. It is 0 where nothing is certified. Norms and sums are formed in float64, except in ghost
    mode: there the norms are Opacus's, and a layer's sum is formed, in the gradients' precision.
    Batches in parts (`BatchMemoryManager`) are for methods whose scales do not depend on the
    batch's counts, and for one process.

    Of several processes each calls everything that the others call, as `torch.distributed` asks.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        *,
        method: clipping.Method,
        expected_batch_size: int,
        loss_reduction: str = "mean",
        seed: int | None = None,
        processes: Processes | None = None,
    ) -> None:
        if method.coupling == "fairlens":
            raise ValueError(
                "method is fairlens, whose regularisers need second derivatives of the batch's losses; "
                "an optimizer sees gradients only"
            )
        if method.needs_losses:
            raise ValueError(f"method is {method.name}, whose weights follow the losses of records; an optimizer sees gradients only")
        self.method = method
        self._processes = processes or Processes()
        self._noise = clipping.NoiseSource(seed)
        # Added by `make_private`.
        self._watch: Watch | None = None
        self._sampler: PoissonBatches | None = None
        self._owns_loss = False
        # The batch so far: groups that wait for their gradients; norms and groups of the parts that
        # have scales; whether the part at hand has; the method before its counts, until they are
        # charged; the number of terms that went backward.
        self._groups: list[NDArray[np.int64]] = []
        self._parts: list[tuple[NDArray[np.float64], NDArray[np.int64]]] = []
        self._is_clipped = False
        self._before_counts: str | None = None
        self._n_terms: int | None = None
        self._draws_ahead = False
        super().__init__(
            optimizer,
            noise_multiplier=_together(method),
            max_grad_norm=1.0,  # the first batch says its own
            expected_batch_size=expected_batch_size,
            loss_reduction=loss_reduction,
        )

    @property
    def is_private(self) -> bool:
        """Whether batches, their counts and the noise come from the operating system, not from a
        seed. Without a loader of `make_private`, where batches come from is not known: False.
        """
        batches = self._sampler is not None and self._sampler.is_private
        return bool(batches and self.method.is_private and self._noise.is_private)

    @property
    def noise_multiplier(self) -> float:
        """The noise multiplier of a step. It follows from the method and cannot be set."""
        return _together(self.method)

    @noise_multiplier.setter
    def noise_multiplier(self, value: float) -> None:
        if value != _together(self.method):
            raise ValueError(
                f"noise_multiplier is {value}, but the method adds noise of {_together(self.method)}: make another method"
            )

    @property
    def accumulated_iterations(self) -> int:
        """One batch a step."""
        return 1

    def set_groups(self, groups: Any) -> None:
        """The group of each record of the next batch, or part of one, from 0: after `zero_grad`,
        which forgets those of a batch that was given up, and before the backward pass.
        """
        found = clipping._groups(groups)
        if found is None:
            raise ValueError("groups is None, expected the group of each record")
        if self._groups:
            _twice("set_groups was called twice for one batch")
        self._groups.append(found)

    def zero_grad(self, set_to_none: bool = False) -> None:
        """As Opacus's; a batch, or a part of one, that had no step is given up."""
        if self._is_clipped:
            self._forget_batch()
        self._groups.clear()
        self._n_terms = None
        if self._watch is not None:
            self._watch.give_up()
        super().zero_grad(set_to_none)

    def signal_skip_step(self, do_skip: bool = True) -> None:
        """As Opacus's, for `BatchMemoryManager`: whether the next part has parts after it."""
        if self._draws_ahead:
            raise RuntimeError(
                "the loader has workers, which draw batches ahead: which part a signal belongs to is not known; expected "
                "fairdp.opacus.BatchMemoryManager, or num_workers=0"
            )
        self._signal(do_skip)

    def _signal(self, do_skip: bool) -> None:
        if self._processes.size > 1:
            raise RuntimeError(
                f"{self._processes.size} processes would have different numbers of parts; expected batches that are not in "
                "parts, or one process"
            )
        if self._step_skip_queue:
            _twice("a part of a batch was left without its step, and another was drawn")
        self._step_skip_queue.append(do_skip)

    def _begin_pass(self) -> None:
        """A new pass through the loader: what the last one left is abandoned."""
        self._forget_batch()
        self._step_skip_queue.clear()
        self._groups.clear()
        self._n_terms = None
        if self._watch is not None:
            self._watch.forget()
        for p in self.params:
            p.grad_sample = None

    def _begin_draw(self) -> None:
        if self._is_last_step_skipped or True in self._step_skip_queue:
            _twice("a batch was drawn while the parts of the one before were not all stepped")

    def _forget_batch(self) -> None:
        if self._before_counts is not None:
            # The counts were seen by nobody: they are not charged.
            self.method.restore(self._before_counts)
        self._before_counts = None
        self._parts = []
        self._is_clipped = False
        self._is_last_step_skipped = False
        for p in self.params:
            p.summed_grad = None

    def _run_backward(self, terms: torch.Tensor) -> None:
        """The backward pass of a batch's terms."""
        if self._is_clipped or self._n_terms is not None:
            _twice(
                "a backward pass was not followed by a step: the counts of its batch are not charged, and its sum is not "
                "released"
            )
        if self._watch is None:
            raise RuntimeError("the loss belongs to no module: expected the loss that make_private gave")
        self._watch.check_parameters(self.params)
        self._watch.check_graph([terms])
        self._watch.in_loss = True
        try:
            self._backward(terms)
        finally:
            self._watch.in_loss = False

    def _backward(self, terms: torch.Tensor) -> None:
        terms.sum().backward()  # type: ignore[no-untyped-call,unused-ignore]
        self._n_terms = len(terms)

    def scales(self, norms: torch.Tensor) -> torch.Tensor:
        """Scales for the records of a batch, or part of one, with these gradient norms."""
        values = norms.detach().double().cpu().numpy().reshape(-1)
        if self.method.needs_groups and not self._groups:
            raise ValueError(f"{self.method.name} needs groups: call set_groups between zero_grad and the backward pass")
        groups = self._groups.pop() if self._groups else np.zeros(len(values), dtype=np.int64)
        if len(groups) != len(values):
            raise ValueError(f"groups has {len(groups)} entries, but the batch has {len(values)} records")
        is_last = not self._check_skip_next_step(pop_next=False)
        parts = [*self._parts, (values, groups)]
        before = self.method.state()
        if is_last and not self._parts:
            scales, bound = self._clip(values, groups)
        else:
            scales = self._in_advance(values, groups)
            if is_last:
                bound = self.method.clip(*(np.concatenate(part) for part in zip(*parts))).bound
        self._parts = parts
        if is_last:
            self._before_counts = before
            self.max_grad_norm = bound
        self._is_clipped = True
        return torch.from_numpy(scales).to(norms.device)

    def _clip(self, norms: NDArray[np.float64], groups: NDArray[np.int64]) -> tuple[NDArray[np.float64], float]:
        """The method's step on the batch of all processes: the scales of this one's records, and the
        bound.
        """
        parts = self._processes.gathered((norms, groups))

        def step() -> tuple[NDArray[np.float64], float, str]:
            clipped = self.method.clip(*(np.concatenate(part) for part in zip(*parts)))
            return clipped.scales, clipped.bound, self.method.state()

        scales, bound, state = self._processes.once(step)
        if self._processes.rank > 0:
            self.method.restore(state)
        first = sum(len(part[0]) for part in parts[: self._processes.rank])
        return scales[first : first + len(norms)], bound

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

    def _add_to_sum(self, name: str, totals: list[torch.Tensor]) -> None:
        """Adds the sums of a part, or starts with the sums of a batch's first part."""
        for p, total in zip(self.params, totals):
            setattr(p, name, total if len(self._parts) == 1 else getattr(p, name) + total)

    def clip_and_accumulate(self) -> None:
        """Scales the per-sample gradients and adds them up, in float64, in `p.summed_grad`."""
        self._check_ready()
        flat = []
        for p in self.params:
            samples = getattr(p, "grad_sample", None)
            if samples is None:
                raise RuntimeError(
                    "a parameter has no gradients by record: a step comes once, after a backward pass through the whole "
                    "module; a forward pass without its backward pass is given up by zero_grad"
                )
            if isinstance(samples, list):
                _twice("two batches were accumulated for one step")
            _check_processed_flag(samples)
            flat.append(samples.detach())
        n_records = len(flat[0])
        for p, gradients in zip(self.params, flat):
            if len(gradients) != n_records or (self._n_terms or n_records) != n_records:
                raise ValueError(
                    f"a parameter has the gradients of {len(gradients)} records, another one, or the loss, those of "
                    f"{self._n_terms or n_records}; expected the records in the first dimension of every layer's input"
                )
        # A record with a gradient that is not finite has scale 0: its entries may not reach the
        # sum, as 0 · ∞ would.
        squares = torch.zeros(n_records, dtype=torch.float64, device=flat[0].device)
        for p, gradients in zip(self.params, flat):
            # Not -1: a batch without records has a norm for none.
            squares += gradients.reshape(n_records, p.numel()).double().square().sum(dim=1).to(squares.device)
        scales = self.scales(squares.sqrt())
        used = scales > 0
        kept = [gradients[used.to(gradients.device)].double() for gradients in flat]
        weights = scales[used]
        if self.method.coupling != "none":
            self._add_to_sum("plain_grad", [part.sum(dim=0) for part in kept])
        self._add_to_sum("summed_grad", [torch.einsum("i,i...", weights.to(part.device), part) for part in kept])
        for p in self.params:
            _mark_as_processed(p.grad_sample)

    def _check_ready(self) -> None:
        """Raises unless there was one backward pass that may be stepped."""
        if self._is_clipped:
            _twice("the batch is in the sum already: clip_and_accumulate is a part of step")
        if self._watch is not None:
            self._watch.check_parameters(self.params)
            if self._watch.violation is not None:
                raise RuntimeError(f"the batch cannot be stepped: {self._watch.violation}")
        if self._owns_loss and self._n_terms is None:
            raise RuntimeError(
                "no backward pass of the loss that make_private gave since the last step: expected one "
                "loss(module(x), y).backward() for each step"
            )

    def pre_step(self, closure: Callable[[], float] | None = None) -> bool | None:
        """Clips; after a batch's last part, charges and adds noise. True if a step is to be taken."""
        self.clip_and_accumulate()
        is_part = self._check_skip_next_step()
        if not is_part:
            # Charged first: what fails later has seen the counts.
            if self.step_hook:
                self.step_hook(self)
            self._before_counts = None
            self.add_noise()
            self.scale_grad()
            self._parts = []
        self._is_last_step_skipped = is_part
        self._is_clipped = False
        self._groups.clear()
        self._n_terms = None
        if self._watch is not None:
            self._watch.forget()
        return not is_part

    def add_noise(self) -> None:
        """Adds the step's noise to the sum and leaves it in `p.grad`."""
        values = self._joined("summed_grad")
        if self.method.coupling != "none":
            # Analyses of one error of clipping: nothing is certified, and noise would hide the
            # error.
            values = self.method.recombine(values, self._joined("plain_grad"))
        elif self.method.noise_multiplier > 0:
            values = self._processes.once(lambda: self._noisy(values))
        start = 0
        for p in self.params:
            part = torch.from_numpy(values[start : start + p.numel()])
            p.grad = part.to(device=p.device, dtype=p.dtype).view_as(p)
            start += p.numel()

    def _joined(self, name: str) -> NDArray[np.float64]:
        parts = [getattr(p, name).double().cpu().numpy().reshape(-1) for p in self.params]
        return self._processes.total(np.concatenate(parts), self.params[0].device)

    def _noisy(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        self._noise.add_to(values, self.method.noise_multiplier * self.max_grad_norm)
        return values

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's, with the method's thresholds."""
        return {**super().state_dict(), "clipping_method": self.method.state()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues where `state_dict` was taken."""
        inner = dict(state_dict)
        self.method.restore(inner.pop("clipping_method"))
        super().load_state_dict(inner)


class GhostOptimizer(FairDPOptimizer):
    """The same where Opacus knows norms alone: scales are made in the backward pass, and a step
    adds the layers' scaled sums.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, *, method: clipping.Method, **settings: Any) -> None:
        # First what no mode has.
        super().__init__(optimizer, method=method, **settings)
        if method.coupling != "none":
            raise ValueError(f"{method.name} needs every record's gradient: use grad_sample_mode='hooks'")
        self._hooks: GhostHooks | None = None
        self._sums: dict[torch.Tensor, torch.Tensor] | None = None

    def _backward(self, terms: torch.Tensor) -> None:
        if self._hooks is None:
            raise RuntimeError("the loss belongs to no module: expected the loss that make_private gave")
        norms, uses = self._hooks.run(terms)
        scales = self.scales(norms)
        self._n_terms = len(terms)
        self._sums = self._hooks.weighted_sums(uses, scales)

    def clip_and_accumulate(self) -> None:
        """Adds the sums of the backward pass up in `p.summed_grad`."""
        sums, self._sums = self._sums, None
        if sums is None:
            raise RuntimeError(
                "no backward pass of the loss that make_private gave since the last step: expected one "
                "loss(module(x), y).backward() for each step"
            )
        self._is_clipped = False
        self._check_ready()
        self._is_clipped = True
        for total in sums.values():
            if not bool(torch.isfinite(total).all()):
                raise ValueError(
                    "the gradient of a record is not finite: it cannot be left out of a layer's sum, and would show in "
                    "every parameter; expected finite losses, or grad_sample_mode='hooks'"
                )
        self._add_to_sum("summed_grad", [sums[p] for p in self.params])

    def _forget_batch(self) -> None:
        super()._forget_batch()
        self._sums = None


def _twice(what: str) -> NoReturn:
    raise RuntimeError(
        f"{what}; expected groups, a backward pass and a step once for each batch, and zero_grad where one is given up"
    )


def _together(method: clipping.Method) -> float:
    multipliers = method.step_noise_multipliers
    if not method.certified or min(multipliers) == 0:
        return 0.0
    return 1.0 / math.sqrt(sum(1.0 / multiplier**2 for multiplier in multipliers))
