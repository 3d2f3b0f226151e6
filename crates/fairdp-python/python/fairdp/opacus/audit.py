"""An attack on a run of Opacus: canaries in the sums of its steps."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any

import torch

from fairdp import _fairdp

_rust = _fairdp.audit


class Attack:
    """Canaries in the sums of an optimizer's steps, from `__enter__` to `__exit__`.

    Each canary has a weight of the model for itself and is in the run or not, by a fair coin. A step
    draws those that are in at the run's sampling rate, and adds the bound on a gradient along their
    weights before Opacus adds its noise. What Opacus releases is compared with the sum without them.
    The model that is trained meanwhile is not for release.
    """

    def __init__(self, optimizer: Any, sample_rate: float, canaries: int, delta: float, seed: int | None) -> None:
        self._optimizer, self._rate, self._delta = optimizer, float(sample_rate), delta
        if not 0.0 < self._rate <= 1.0:
            raise ValueError(f"sample_rate = {sample_rate!r}: expected a number above 0, at most 1")
        if getattr(optimizer, "max_grad_norm", None) is None or not hasattr(optimizer, "add_noise"):
            raise TypeError(f"optimizer is {type(optimizer).__name__}: expected one that PrivacyEngine.make_private made")
        self._bound, self._sigma = float(optimizer.max_grad_norm), float(optimizer.noise_multiplier)
        self._random = torch.Generator().manual_seed(torch.seed() if seed is None else seed)
        sizes = [parameter.numel() for parameter in optimizer.params]
        total = sum(sizes)
        n = min(canaries, total)
        if n < 8:
            raise ValueError(f"canaries = {canaries!r}: expected at least 8, and as many weights")
        weights = torch.randperm(total, generator=self._random)[:n].sort().values
        self._signs = self._coins(n).double() * 2 - 1
        self._present = self._coins(n)
        self._scores = torch.zeros(n, dtype=torch.float64)
        self._steps = 0
        # By parameter: which canaries are on its weights, and where.
        self._places: list[tuple[torch.Tensor, torch.Tensor]] = []
        start = 0
        for size in sizes:
            here = ((weights >= start) & (weights < start + size)).nonzero().flatten()
            self._places.append((here, weights[here] - start))
            start += size

    def _coins(self, n: int) -> torch.Tensor:
        return torch.randint(0, 2, (n,), generator=self._random).bool()

    def __enter__(self) -> Attack:
        self._add_noise = self._optimizer.add_noise
        self._optimizer.add_noise = self._watched
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        del self._optimizer.add_noise

    def _watched(self) -> None:
        drawn = self._present & (torch.rand(len(self._present), generator=self._random) < self._rate)
        added = self._bound * self._signs * drawn
        known = torch.empty_like(self._scores)
        for parameter, (canaries, places) in zip(self._optimizer.params, self._places):
            parameter.summed_grad = parameter.summed_grad.contiguous()
            flat = parameter.summed_grad.view(-1)
            on_device = places.to(flat.device)
            known[canaries] = flat[on_device].double().cpu()
            flat[on_device] += added[canaries].to(flat)
        self._add_noise()
        shift = 1.0 / self._sigma
        for parameter, (canaries, places) in zip(self._optimizer.params, self._places):
            noisy = parameter.grad.reshape(-1)[places.to(parameter.device)].double().cpu()
            projection = self._signs[canaries] * (noisy - known[canaries]) / (self._sigma * self._bound)
            ratio = shift * projection - 0.5 * shift * shift
            score = ratio if self._rate >= 1.0 else torch.log1p(self._rate * torch.expm1(ratio))
            self._scores[canaries] += score
        self._steps += 1

    def report(self, confidence: float = 0.95) -> dict[str, Any]:
        """The claim for the steps so far, the bounds, and whether one of them refutes the claim."""
        if self._steps == 0:
            raise RuntimeError("no step was taken: train between `with` and report()")
        found: dict[str, Any] = json.loads(
            _rust.bounds(
                self._scores.tolist(),
                self._present.tolist(),
                self._sigma,
                self._rate,
                self._steps,
                self._delta,
                1.0 - confidence,
            )
        )
        return found


def audit(
    optimizer: Any, data_loader: Any, *, canaries: int = 1000, delta: float = 1e-5, seed: int | None = None
) -> Attack:
    """Attacks the run of an optimizer and a loader that `PrivacyEngine.make_private` made:

    >>> with fairdp.opacus.audit(optimizer, data_loader) as attack:  # doctest: +SKIP
    ...     train(model, optimizer, data_loader)
    >>> attack.report()["bounds"]["gaussian"]  # doctest: +SKIP
    """
    rate = getattr(data_loader, "sample_rate", None)
    if rate is None:
        rate = 1.0 / len(data_loader)
    return Attack(optimizer, rate, canaries, delta, seed)
