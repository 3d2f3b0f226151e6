"""Losses by record: terms that each depend on one record, over a public divisor."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any, Callable, NoReturn

import torch

if TYPE_CHECKING:
    from fairdp.opacus.optimizer import FairDPOptimizer

# With reduction "mean", these divide by the sum of the weights.
_WEIGHTED_MEANS = (torch.nn.CrossEntropyLoss, torch.nn.NLLLoss)


def is_known(criterion: Any) -> bool:
    """Whether it is a loss of PyTorch, of which each term depends on one record."""
    return bool(type(criterion).__module__ == torch.nn.modules.loss.__name__)


class RecordLoss:
    """A criterion whose terms are by record, as `make_private` returns it.

    Call it like the criterion: `loss(module(x), y).backward()`. A record's term is the criterion's
    without reduction: its mean over the record's own entries (its sum, with reduction "sum"), those
    with `ignore_index` left out. The sum of the terms' clipped gradients is divided by the expected
    batch size with "mean", which is public, also where PyTorch divides by what the batch holds.

    A criterion that is not PyTorch's has to give one term for each record, or take
    `reduction="none"`. That its terms do not mix records cannot be seen: epsilon is conditional on
    it.
    """

    def __init__(self, criterion: Any, optimizer: FairDPOptimizer, loss_reduction: str) -> None:
        reduction = getattr(criterion, "reduction", loss_reduction)
        if reduction != loss_reduction:
            raise ValueError(f"criterion has the reduction {reduction!r}, expected {loss_reduction!r}, the loss_reduction")
        if isinstance(criterion, _WEIGHTED_MEANS) and criterion.weight is not None and reduction == "mean":
            raise ValueError(
                f"{type(criterion).__name__} has class weights and reduction 'mean': its divisor, the sum of the batch's "
                "weights, depends on every record; expected reduction='sum' with loss_reduction='sum', and a learning "
                "rate divided by a public number"
            )
        self._criterion, self._options = _by_term(criterion)
        self._optimizer = optimizer
        self._reduction = loss_reduction

    def __call__(self, *inputs: Any, shape: tuple[int, ...] | None = None, **named: Any) -> BatchLoss:
        """The loss of a batch. `shape` is Opacus's, `[records, positions, ...]`, where the criterion is
        given all positions of all records in one dimension.
        """
        terms = self._criterion(*inputs, **named, **self._options)
        if not isinstance(terms, torch.Tensor) or terms.dim() == 0:
            what = "a number" if isinstance(terms, torch.Tensor) else type(terms).__name__
            raise ValueError(f"criterion gives {what}, expected a tensor with one term for each record")
        self._check_places(terms)
        target = named.get("target", inputs[1] if len(inputs) > 1 else None)
        if shape is not None:
            if terms.shape != (shape[0] * shape[1],):
                raise ValueError(f"shape is {tuple(shape)}, but the criterion gives terms of shape {list(terms.shape)}")
            terms = terms.reshape(shape[0], shape[1])
            target = target.reshape(shape[0], shape[1]) if isinstance(target, torch.Tensor) else None
        return BatchLoss(self._by_record(terms, target), self._optimizer, self._reduction)

    def _check_places(self, terms: torch.Tensor) -> None:
        if not isinstance(self._criterion, (torch.nn.BCELoss, torch.nn.BCEWithLogitsLoss)):
            return
        for name in ("weight", "pos_weight"):
            weight = getattr(self._criterion, name, None)
            if weight is not None and weight.dim() >= terms.dim() and weight.shape[0] > 1:
                raise ValueError(
                    f"criterion has a {name} of shape {list(weight.shape)}, a value for each place in the batch: where a "
                    "record stands depends on the others; expected weights of a record's outputs"
                )

    def _by_record(self, terms: torch.Tensor, target: Any) -> torch.Tensor:
        if terms.dim() == 1:
            return terms
        entries = terms.flatten(start_dim=1)
        if self._reduction == "sum":
            return entries.sum(dim=1)
        ignored = getattr(self._criterion, "ignore_index", None)
        if ignored is None or not isinstance(target, torch.Tensor) or target.shape != terms.shape:
            return entries.mean(dim=1)
        n_kept: torch.Tensor = (target.flatten(start_dim=1) != ignored).sum(dim=1).clamp(min=1)
        return entries.sum(dim=1) / n_kept

    def __repr__(self) -> str:
        return f"<RecordLoss: {self._criterion}>"


def _by_term(criterion: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The criterion without reduction, and what to call it with."""
    if hasattr(criterion, "reduction") and not inspect.isroutine(criterion):
        unreduced = copy.copy(criterion)
        unreduced.reduction = "none"
        return unreduced, {}
    try:
        takes_reduction = "reduction" in inspect.signature(criterion).parameters
    except (TypeError, ValueError):
        takes_reduction = False
    return criterion, {"reduction": "none"} if takes_reduction else {}


def _no_arithmetic(*_: Any) -> NoReturn:
    raise TypeError(
        "a loss by record takes no arithmetic: a term without a record is not clipped, and a factor may depend on the "
        "batch; expected weight decay in the optimizer (weight_decay=), factors in the learning rate, and what belongs "
        "to a record in the criterion, as one term for each record"
    )


class BatchLoss:
    """The loss of one batch. It can go backward and be read, and nothing can be added to it.

    A term without a record (`loss + penalty`) would not be clipped, and a factor that was computed
    from the batch would make every term depend on every record.
    """

    # NumPy's numbers leave the arithmetic to this class.
    __array_ufunc__ = None

    def __init__(self, terms: torch.Tensor, optimizer: FairDPOptimizer, reduction: str) -> None:
        self._terms, self._optimizer, self._reduction = terms, optimizer, reduction

    def backward(self) -> None:
        """The backward pass of the batch, from which each record's gradient is clipped."""
        self._optimizer._run_backward(self._terms)

    def detach(self) -> torch.Tensor:
        """The value, as the criterion's reduction gives it. It is not private."""
        terms = self._terms.detach()
        return terms.mean() if self._reduction == "mean" else terms.sum()

    def item(self) -> float:
        """The value as a number. It is not private."""
        return float(self.detach())

    def __float__(self) -> float:
        return self.item()

    def __repr__(self) -> str:
        return f"<BatchLoss: {len(self._terms)} records (not private)>"

    __add__ = __radd__ = __iadd__ = __sub__ = __rsub__ = __isub__ = _no_arithmetic
    __mul__ = __rmul__ = __imul__ = __truediv__ = __rtruediv__ = __itruediv__ = _no_arithmetic
    __neg__ = __pos__ = __abs__ = __pow__ = __rpow__ = __ipow__ = __matmul__ = __rmatmul__ = _no_arithmetic
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _no_arithmetic

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:
        """Refuses `tensor + loss` and `torch.add(loss, tensor)`."""
        _no_arithmetic()
