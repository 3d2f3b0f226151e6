"""The certified accountant behind Opacus's interface, and the conditions of its epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Iterable, Mapping

from opacus.accountants import IAccountant
from opacus.accountants.registry import register_accountant

from fairdp.accounting import Accountant as _Pld
from fairdp.accounting import DpEvent, EpsilonBound

# Conditions on a model and a loop in PyTorch that nobody can check.
MODULE = (
    "no record changes what the module computes for another one, by rounding, padding or a known seed "
    "of its dropout included"
)
BATCHES = "every batch is one that the loader drew"
# Without a criterion, or with one that PyTorch does not have.
LOSS = "each term of the loss depends on one record alone, and their divisor on none"
# With a function of the user's own for a method.
OWN = (
    "the clipping function {!r}, which is the user's own, gives scales by what it is given, without a memory (its bound is "
    "held by a cap on every scale)"
)
# With several processes.
PROCESSES = "the processes run the same program on the same data set, and trust each other"
# The condition on an optimizer that Opacus made.
OPACUS = "Opacus's own optimizer, sampler and noise do what its documentation says"


@dataclass(frozen=True)
class ConditionalBound:
    """Epsilon at `delta`, a bound where what is `given` holds."""

    lower: float | None
    upper: float
    delta: float
    how: str
    given: tuple[str, ...]
    mark: str = "conditional"

    def __float__(self) -> float:
        return self.upper

    def __str__(self) -> str:
        lower = "" if self.lower is None else f", at least {self.lower:.4f}"
        return (
            f"epsilon at most {self.upper:.4f} ({self.mark}){lower}, at delta {self.delta:g}, by {self.how}, "
            f"given that {'; '.join(self.given)}"
        )


class Accountant(IAccountant):  # type: ignore[misc,unused-ignore]
    """Opacus's interface to the certified accountant: epsilon is the upper end of a bracket, by
    PLD.

    Neighbours differ by one added or removed record and batches are Poisson samples, as Opacus
    assumes. `given` names what epsilon is conditional on once a module was made private with this
    accountant; checkpoints keep it.
    """

    history: list[tuple[float, float, int]]
    given: tuple[str, ...]

    def __init__(self) -> None:
        self.history = []
        self.given = ()

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """One optimizer step. Steps that are alike in a row are one entry of the history."""
        steps = 1
        if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
            steps += self.history.pop()[2]
        self.history.append((noise_multiplier, sample_rate, steps))

    def assume(self, conditions: Iterable[str]) -> None:
        """Makes epsilon conditional on these too."""
        self.given = tuple(dict.fromkeys((*self.given, *conditions)))

    def bound(self, delta: float) -> EpsilonBound | ConditionalBound:
        """The bracket: `lower`, `upper`, `mark` and how it was found; `given`, if the mark is
        "conditional".

        >>> from fairdp.opacus import Accountant
        >>> accountant = Accountant()
        >>> accountant.step(noise_multiplier=1.0, sample_rate=1.0)
        >>> print(accountant.bound(1e-5))
        epsilon at most 4.3772 (certified), at least 4.3771, at delta 1e-5, by closed form
        >>> accountant.assume(["each term of the loss depends on one record alone"])
        >>> accountant.bound(1e-5).mark, accountant.bound(1e-5).given
        ('conditional', ('each term of the loss depends on one record alone',))
        """
        accountant = _Pld.pld()
        for noise_multiplier, sample_rate, steps in self.history:
            event = DpEvent.gaussian(noise_multiplier).poisson_sampled(sample_rate)
            accountant.compose(event, steps)
        found = accountant.epsilon(delta)
        if not self.given:
            return found
        mark = "conditional" if found.mark == "certified" else found.mark
        return ConditionalBound(found.lower, found.upper, found.delta, found.how, self.given, mark)

    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
        """The epsilon spent so far at this delta: an upper bound if what is `given` holds, infinity
        where steps had no noise.
        """
        if any(noise_multiplier == 0 for noise_multiplier, _, _ in self.history):
            return math.inf
        return self.bound(delta).upper

    def get_optimizer_hook_fn(self, sample_rate: float) -> Any:
        """The hook that Opacus's optimizer calls at every step."""
        self.assume([MODULE, BATCHES, LOSS, OPACUS])
        return super().get_optimizer_hook_fn(sample_rate)

    def hook_of(self, sample_rate: float, conditions: Iterable[str]) -> Any:
        """The hook that this package's optimizer calls at every step."""
        self.assume(conditions)
        return super().get_optimizer_hook_fn(sample_rate)

    def state_dict(self, destination: Any = None) -> Any:
        """Opacus's state, with the conditions of epsilon."""
        state = super().state_dict(destination)
        state["given"] = list(self.given)
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues where `state_dict` was taken. Conditions of both are kept."""
        super().load_state_dict(state_dict)
        self.assume(state_dict.get("given", [MODULE, BATCHES, LOSS]))

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
