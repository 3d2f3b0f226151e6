"""Clipping methods: norms and groups in; scales, a bound and every noisy count out.

A method never sees a gradient, so it clips gradients from anywhere. One step of DPSGD-F by hand:

>>> import numpy as np
>>> from fairdp import clipping
>>> method = clipping.method(
...     "dpsgd-f", clip_norm=1.0, groups=2, noise_multiplier=1.0, expected_batch_size=4)
>>> scales, bound, queries = method.clip([0.5, 3.0, 0.2, 8.0], groups=[0, 0, 1, 1])
>>> scales.shape, len(queries), bool((scales * [0.5, 3.0, 0.2, 8.0] <= bound).all())
((4,), 1, True)

Or from the per-sample gradients, NumPy arrays or whatever has DLPack (PyTorch, JAX), without a
copy:

>>> dpsgd = clipping.method("dpsgd", noise_multiplier=1.0, expected_batch_size=2)
>>> total, clipped = dpsgd.clip_and_sum(np.array([[3.0, 4.0], [0.3, 0.4]], dtype=np.float32))
>>> [round(float(value), 4) for value in total], clipped.bound
([0.9, 1.2], 1.0)
>>> clipping.NoiseSource().add_to(total, dpsgd.noise_multiplier * clipped.bound)

What must be charged for a step is known before the first one: `step_noise_multipliers`, or `event`.
Random bits are the operating system's; with a `seed`, which is for experiments, nothing is private,
and `is_private` says so. The noise is rounded exactly to a public grid, which floating point alone
is not.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from fairdp._fairdp import ClipError
from fairdp._fairdp import clipping as _rust
from fairdp._own import OwnMethod, Scales

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairdp.accounting import DpEvent

Clipped = _rust.Clipped
CountQuery = _rust.CountQuery
MethodEntry = _rust.MethodEntry
methods = _rust.methods

__all__ = [
    "ClipError",
    "Clipped",
    "CountQuery",
    "Method",
    "MethodEntry",
    "NoiseSource",
    "method",
    "method_of_config",
    "methods",
    "own_method",
]


def _array(values: Any) -> NDArray[Any]:
    """An array over the same memory, where there is memory to share."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__dlpack__"):
        return np.from_dlpack(values)
    return np.asarray(values)


def _groups(groups: Any) -> NDArray[np.int64] | None:
    if groups is None:
        return None
    array = _array(groups)
    if array.dtype.kind not in "iub" and array.size > 0:
        raise ClipError(f"groups are {array.dtype}, expected integers")
    return array.astype(np.int64, copy=False).reshape(-1)


class Method:
    """A clipping method with its state; threads may share it. Made by `method`, `method_of_config` and
    `own_method`.
    """

    def __init__(self, inner: _rust.Method | OwnMethod) -> None:
        self._inner = inner

    def clip(self, norms: Any, groups: Any = None) -> Clipped:
        """Scales for one Poisson batch; thresholds move on to the next step.

        An empty batch is a step of noise alone. A norm that is not finite gets scale 0 and counts
        nowhere.

        >>> plain = method("dpsgd", noise_multiplier=1, expected_batch_size=4)
        >>> plain.clip([float("nan"), 0.5]).scales.tolist()
        [0.0, 1.0]
        """
        values = _array(norms).astype(np.float64, copy=False)
        if values.ndim > 2 or (values.ndim == 2 and values.shape[1] != 1):
            raise ClipError(f"norms have the shape {values.shape}, expected one per record")
        values = values.reshape(-1)
        return self._inner.clip(values, self._groups_of(groups, len(values)))

    def clip_and_sum(self, gradients: Any, groups: Any = None) -> tuple[NDArray[np.float64], Clipped]:
        """Clips per-sample gradients `[batch, params]`, float32 or float64, and sums them in float64.

        The sum changes by at most the bound when one record is added or removed; it has no noise
        yet. Add the noise before a cast to float32, whose rounding may move a sum of 10,000 records
        by a thousandth of the bound.
        """
        array = _array(gradients)
        return self._inner.clip_and_sum(array, self._groups_of(groups, len(array)))

    def _groups_of(self, groups: Any, n_records: int) -> NDArray[np.int64] | None:
        if groups is None and self.needs_groups and self.groups > 1 and n_records > 0:
            raise ClipError(f"groups is None, but {self.name} needs the group of each record, from 0 to {self.groups - 1}")
        return _groups(groups)

    def scale_in_advance(self, norm: float, group: int = 0) -> float | None:
        """The scale that the next step gives to a record of that norm, or None where it depends on
        the batch.
        """
        return self._inner.scale_in_advance(norm, group)

    def recombine(self, clipped_sum: Any, plain_sum: Any) -> NDArray[np.float64]:
        """The sum with which methods train that keep one error of clipping alone, given the sum
        without clipping.
        """
        sums = (_array(values).astype(np.float64, copy=False).reshape(-1) for values in (clipped_sum, plain_sum))
        return self._inner.recombine(*sums)

    def state(self) -> str:
        """The state for a checkpoint, as JSON, without the random stream."""
        return self._inner.state()

    def restore(self, state: str) -> None:
        """Continues from a checkpoint of the same configuration.

        >>> one = method("adaptive", noise_multiplier=1, expected_batch_size=4)
        >>> _ = one.clip([0.5, 3.0])
        >>> other = method("adaptive", noise_multiplier=1, expected_batch_size=4)
        >>> other.restore(one.state())
        >>> other.state() == one.state()
        True
        """
        self._inner.restore(state)

    def event(self, sampling_rate: float) -> DpEvent:
        """A step's event on Poisson batches, counts included. Without a certificate, or noise, it
        is non-private.

        >>> by_group = method("dpsgd-f", groups=2, noise_multiplier=1, expected_batch_size=4)
        >>> print(by_group.event(0.01))
        Poisson-sampled (rate 0.01) joint Gaussian (noise multipliers 1, 10)
        """
        return self._inner.event(sampling_rate)

    @property
    def name(self) -> str:
        """Its name in the registry."""
        return self._inner.name

    @property
    def config(self) -> str:
        """Its configuration, as JSON."""
        return self._inner.config

    @property
    def groups(self) -> int:
        """Number of groups."""
        return self._inner.groups

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the gradient's noise over the bound."""
        return self._inner.noise_multiplier

    @property
    def expected_batch_size(self) -> float:
        """Expected size of a Poisson batch, the public divisor of every mean."""
        return self._inner.expected_batch_size

    @property
    def certified(self) -> bool:
        """Whether the bound is a proven sensitivity; if not, an epsilon is nominal."""
        return self._inner.certified

    @property
    def needs_groups(self) -> bool:
        """Whether group labels influence training."""
        return self._inner.needs_groups

    @property
    def needs_losses(self) -> bool:
        """Whether it asks for the losses of records. `fairdp.fit` trains with it; `clip` and
        `clip_and_sum`, which have none, are a ClipError.
        """
        return self._inner.needs_losses

    @property
    def coupling(self) -> str:
        """How the records of a batch act on each other: "none", "fairlens", "magnitude-only" or
        "direction-only".
        """
        return self._inner.coupling

    @property
    def is_private(self) -> bool:
        """Whether random bits are the operating system's."""
        return self._inner.is_private

    @property
    def queries(self) -> list[CountQuery]:
        """The count queries of every step, known before the first one."""
        return self._inner.queries

    @property
    def step_noise_multipliers(self) -> list[float]:
        """Noise multipliers of a step's queries: the gradient's, then the counts'."""
        return self._inner.step_noise_multipliers

    def __repr__(self) -> str:
        return repr(self._inner)


class NoiseSource:
    """Gaussian noise from a cryptographic stream, keyed by the operating system or, for
    experiments, a seed. A process that is forked from this one gets a key of its own at its first
    draw, here and in a `Method`; a seeded source repeats its noise there.

    >>> values = np.zeros(10_000)
    >>> NoiseSource().add_to(values, 2.0)
    >>> bool(1.8 < values.std() < 2.2)
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        self._inner = _rust.NoiseSource(seed)

    def add_to(self, values: Any, std: float) -> None:
        """Adds noise to a vector in place; what comes out are multiples of about std/256, whatever
        the values were.
        """
        if not isinstance(values, np.ndarray) and not hasattr(values, "__dlpack__"):
            # A copy would get the noise, and the values would stay as they are.
            raise TypeError(f"values is a {type(values).__name__}, expected an array or a tensor, which is changed in place")
        torch = sys.modules.get("torch")
        # Before NumPy 2.2 an array made by DLPack cannot be written to.
        is_tensor = torch is not None and isinstance(values, torch.Tensor)
        self._inner.add_to(values.detach().numpy() if is_tensor else _array(values), std)

    @property
    def is_private(self) -> bool:
        """Whether random bits are the operating system's."""
        return self._inner.is_private

    def __repr__(self) -> str:
        return repr(self._inner)


def method(
    name: str,
    *,
    noise_multiplier: float,
    expected_batch_size: float,
    groups: int = 1,
    clip_norm: float = 1.0,
    upper_bound: float | None = None,
    tolerance: float | None = None,
    rate: float | None = None,
    target: float | None = None,
    lower_bound: float | None = None,
    loss_bound: float | None = None,
    count_noise_multiplier: float | None = None,
    count_noise_times_gradient: float | None = None,
    fairlens_weights: Sequence[float] | None = None,
    seed: int | None = None,
) -> Method:
    """A method of the registry at its first step; what is left out is its paper's value.

    `clip_norm` is the clipping norm or the first threshold; `upper_bound` the Z of the global
    methods; `tolerance`, `rate` and `target` move the thresholds of adaptive ones, `lower_bound`
    holds them up. `loss_bound` is what `group-dro` clamps losses to. Counts get `count_noise_multiplier`, or `count_noise_times_gradient` (10) times
    the gradient's.

    >>> method("dpsdg", noise_multiplier=1, expected_batch_size=4)
    Traceback (most recent call last):
    fairdp.ClipError: method = dpsdg: expected one of dpsgd, ...
    """
    return Method(
        _rust.method(
            name,
            noise_multiplier=noise_multiplier,
            expected_batch_size=expected_batch_size,
            groups=groups,
            clip_norm=clip_norm,
            upper_bound=upper_bound,
            tolerance=tolerance,
            rate=rate,
            target=target,
            lower_bound=lower_bound,
            loss_bound=loss_bound,
            count_noise_multiplier=count_noise_multiplier,
            count_noise_times_gradient=count_noise_times_gradient,
            fairlens_weights=fairlens_weights,
            seed=seed,
        )
    )


def method_of_config(
    config: str,
    *,
    noise_multiplier: float,
    expected_batch_size: float,
    groups: int = 1,
    seed: int | None = None,
) -> Method:
    """Any cell of the grid of rules, threshold controllers and weights, from JSON such as
    `Method.config` gives.
    """
    return Method(
        _rust.method_of_config(
            config,
            noise_multiplier=noise_multiplier,
            expected_batch_size=expected_batch_size,
            groups=groups,
            seed=seed,
        )
    )


def own_method(
    scales: Scales,
    *,
    bound: float,
    noise_multiplier: float,
    expected_batch_size: float,
    groups: int = 1,
) -> Method:
    """A method of one's own: `scales(norms, groups)` gives a scale for each record.

    `bound` is declared before a norm is seen, and every scale is lowered until `scale · norm` is at
    most the bound: a wrong function can spoil a model, but not exceed its bound, and `n_capped` of
    an answer counts the records. The function is called with one record at a time, in arrays of
    length 1, so that it cannot mix records. It must not remember them either: nobody can check
    that, and epsilon is conditional on it.

    >>> def squared(norms, groups):
    ...     return np.minimum(1.0, (1.0 / norms) ** 2)
    >>> own = own_method(squared, bound=1.0, noise_multiplier=1.0, expected_batch_size=4)
    >>> own.clip([0.5, 2.0, float("nan")]).scales.tolist()
    [1.0, 0.25, 0.0]
    >>> def wrong(norms, groups):
    ...     return np.full(len(norms), 3.0)
    >>> clipped = own_method(wrong, bound=1.0, noise_multiplier=1.0, expected_batch_size=4).clip([0.25, 4.0])
    >>> bool(clipped.scales[1] * 4.0 <= 1.0), clipped.n_capped
    (True, 1)
    """
    return Method(OwnMethod(scales, bound, noise_multiplier, expected_batch_size, groups))
