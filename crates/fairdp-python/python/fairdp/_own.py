"""A clipping method of one's own: a function from norms and groups to scales, held to its bound."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from fairdp._fairdp import ClipError
from fairdp._fairdp import clipping as _rust

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairdp.accounting import DpEvent

Scales = Callable[[Any, Any], Any]


class OwnMethod:
    """What the compiled `Method` is for the registry's methods.

    The function is called with one record at a time, so that no record can change another one's scale.
    """

    def __init__(self, scales: Scales, bound: float, noise_multiplier: float, expected_batch_size: float, groups: int) -> None:
        if not callable(scales):
            raise TypeError(f"scales is a {type(scales).__name__}, expected a function of norms and groups")
        for name, value in (("bound", bound), ("expected_batch_size", expected_batch_size)):
            if not (math.isfinite(value) and value > 0):
                raise ClipError(f"{name} = {value}: expected a finite number above 0")
        if not (math.isfinite(noise_multiplier) and noise_multiplier >= 0):
            raise ClipError(f"noise_multiplier = {noise_multiplier}: expected a finite number of at least 0")
        if groups < 1:
            raise ClipError(f"groups = {groups}: expected at least 1")
        self._scales, self._bound = scales, float(bound)
        self.noise_multiplier, self.expected_batch_size = float(noise_multiplier), float(expected_batch_size)
        self.groups = int(groups)
        self.name = str(getattr(scales, "__name__", type(scales).__name__))
        self.certified, self.needs_losses, self.is_private, self.coupling = True, False, True, "none"
        self.needs_groups = self.groups > 1
        self.queries: list[_rust.CountQuery] = []
        self.step_noise_multipliers = [self.noise_multiplier]

    @property
    def config(self) -> str:
        return json.dumps({"own": self.name, "bound": self._bound})

    def _scale(self, norm: float, group: int) -> float:
        if not math.isfinite(norm):
            return 0.0
        found = np.asarray(self._scales(np.array([norm]), np.array([group])), dtype=np.float64).reshape(-1)
        if len(found) != 1:
            raise ClipError(f"{self.name} gives {len(found)} scales for one record, expected one for each norm")
        return float(found[0])

    def clip(self, norms: NDArray[np.float64], groups: NDArray[np.int64] | None = None) -> _rust.Clipped:
        groups = np.zeros(len(norms), dtype=np.int64) if groups is None else groups
        if len(groups) != len(norms):
            raise ClipError(f"length of norms = {len(norms)}: expected {len(groups)}, the length of groups")
        scales = np.array([self._scale(*record) for record in zip(norms.tolist(), groups.tolist())], dtype=np.float64)
        return _rust.capped(scales, np.ascontiguousarray(norms), np.ascontiguousarray(groups), self._bound, self.groups)

    def clip_and_sum(
        self, gradients: NDArray[Any], groups: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float64], _rust.Clipped]:
        rows = gradients.astype(np.float64, copy=False)
        clipped = self.clip(np.sqrt(np.square(rows).sum(axis=1)), groups)
        used = clipped.scales > 0
        total: NDArray[np.float64] = (clipped.scales[used, None] * rows[used]).sum(axis=0)
        return total, clipped

    def scale_in_advance(self, norm: float, group: int = 0) -> float | None:
        return float(self.clip(np.array([norm]), np.array([group])).scales[0])

    def recombine(self, clipped_sum: NDArray[np.float64], plain_sum: NDArray[np.float64]) -> NDArray[np.float64]:
        return clipped_sum

    def state(self) -> str:
        return "null"

    def restore(self, state: str) -> None:
        if state != "null":
            raise ClipError("state: its form differs from the method's")

    def event(self, sampling_rate: float) -> DpEvent:
        from fairdp.accounting import DpEvent

        if self.noise_multiplier == 0:
            return DpEvent.non_private()
        return DpEvent.gaussian(self.noise_multiplier).poisson_sampled(sampling_rate)

    def __repr__(self) -> str:
        return f"<Method: {self.name} (the user's own), {self.groups} groups, noise multiplier {self.noise_multiplier}>"
