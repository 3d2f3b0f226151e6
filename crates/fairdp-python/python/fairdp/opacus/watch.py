"""A watch on the parameters in forward passes, and on passes that are abandoned.

Gradients are clipped by layer: Opacus hooks a layer and computes each record's gradient from its
inputs and output gradients. A parameter that is used elsewhere (`F.linear(h, emb.weight)`, a term
in the loss, a weight norm) has a gradient that no layer has seen. Such a use is found in autograd's
graph: every edge to a parameter must come from a node that was made while a layer that owns the
parameter ran.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator

import torch
from opacus.grad_sample import GradSampleHooks
from opacus.layers.dp_rnn import DPGRU, DPLSTM, DPRNN
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils.parametrize import ParametrizationList
from torch.utils._pytree import tree_leaves

_STALE = "a backward pass of a batch that was stepped or given up; expected one for each forward pass"


class Watch:
    """The forward passes of a module that Opacus has hooked.

    With `owns_loss`, a backward pass has to come from a `RecordLoss`, which announces it by
    `in_loss`, and the graph is checked from there; otherwise from the module's outputs.
    """

    def __init__(self, hooks: GradSampleHooks, params: list[torch.Tensor], *, owns_loss: bool) -> None:
        self._module = hooks._module
        self._owns_loss = owns_loss
        self.in_loss = False
        self.names = {p: name for name, p in self._module.named_parameters() if p.requires_grad}
        layers = [m for m in hooks.iterate_submodules(self._module) if type(m) not in (DPRNN, DPLSTM, DPGRU)]
        self._owners: dict[torch.Tensor, list[torch.nn.Module]] = {p: [] for p in self.names}
        for layer in layers:
            # A layer without its own sampler is one function, children included.
            for p in layer.parameters(recurse=type(layer) not in hooks.GRAD_SAMPLERS):
                if p in self._owners:
                    self._owners[p].append(layer)
        for name, m in self._module.named_modules():
            if isinstance(m, ParametrizationList) and m in layers:
                raise ValueError(f"{name} computes a parameter from others, and has no input by record: Opacus cannot clip it")
        for p, name in self.names.items():
            if not self._owners[p]:
                raise ValueError(f"{name} belongs to no layer of which Opacus has per-record gradients")
        self._layers = layers
        self._norms = [m for m in self._module.modules() if isinstance(m, _BatchNorm)]
        # A node's number tells when it was made.
        self._clock = torch.zeros((), requires_grad=True)
        self._calls: dict[torch.nn.Module, list[tuple[int, int]]] = {}
        self._running: list[tuple[torch.nn.Module, int]] = []
        self._versions: dict[torch.Tensor, int] = {}
        self._generation, self._since = 0, self._now()
        self._is_given_up = False
        self.violation: str | None = None
        self._check_module()
        self.check_parameters(params)
        # In this order where the module is itself a layer.
        self._module.register_forward_pre_hook(self._begin)
        for layer in layers:
            layer.register_forward_pre_hook(self._enter)
            layer.register_forward_hook(self._leave)
        self._module.register_forward_hook(self._end)

    def check_parameters(self, params: list[torch.Tensor]) -> None:
        """Raises ValueError unless these, the optimizer's, are the hooked layers' and all that is
        trained.
        """
        self._check_trained()
        trained = set(params)
        for p, name in self.names.items():
            if p not in trained:
                raise ValueError(f"{name} needs a gradient, but the optimizer has it not: freeze it before make_private")
        for p in params:
            if p not in self.names:
                raise ValueError(
                    f"the optimizer has a parameter of shape {list(p.shape)} that is no parameter of the module: its "
                    "gradient is not clipped; expected the parameters that it had when make_private was called"
                )

    def _check_trained(self) -> None:
        current = {p: name for name, p in self._module.named_parameters() if p.requires_grad}
        for p, name in current.items():
            if p not in self.names:
                raise ValueError(
                    f"{name} needs a gradient now and did not when make_private was called (it was frozen, or is new): "
                    "its layer is not clipped; expected make_private after the last change of the module"
                )
            if not hasattr(p, "_forward_counter"):
                raise ValueError("the module is a copy of one that was made private, and is not clipped: train the other")
        for p, name in self.names.items():
            if p not in current:
                raise ValueError(f"{name} was trainable when make_private was called, and is frozen or gone now")

    def check_graph(self, tensors: Iterable[torch.Tensor]) -> None:
        """Raises ValueError if one of the tensors uses a parameter outside the layers that own it,
        RuntimeError if it comes from passes that were forgotten.
        """
        for node, p in _edges_to_parameters(tensors):
            if p in self.names and not self._is_inside(node, p):
                if node is not None and node._sequence_nr() < self._since:
                    raise RuntimeError(_STALE)
                where = "an output" if node is None else node.name()
                raise ValueError(
                    f"{self.names[p]} is used outside the layer that owns it (by {where}), and that gradient is not "
                    "clipped; expected uses by calls of the layer alone (tied weights: the same module twice, in hooks "
                    "mode; weight decay: in the optimizer)"
                )

    def give_up(self) -> None:
        """Passes that have not been backwards are abandoned, if another one follows."""
        self._is_given_up = True
        self.violation = None

    def forget(self) -> None:
        """Forgets all passes so far; a backward pass of theirs is refused."""
        self._generation += 1
        self._since = self._now()
        self._is_given_up = False
        self.violation = None
        self._calls.clear()
        self._running.clear()
        for layer in self._layers:
            for name in ("activations", "max_batch_len"):
                if hasattr(layer, name):
                    delattr(layer, name)
        for p in self.names:
            p._forward_counter = 0
            if hasattr(p, "_current_grad_sample"):
                del p._current_grad_sample

    def _check_module(self) -> None:
        for norm in self._norms:
            if norm.training or norm.running_mean is None:
                raise ValueError(f"{norm} mixes the records of a batch; expected eval() for it, or a GroupNorm")
        for name, m in self._module.named_modules():
            if getattr(m, "_compiled_call_impl", None) is not None:
                raise ValueError(f"module {name or type(m).__name__} is compiled: its layers' hooks would not run")

    def _is_watched(self) -> bool:
        # As Opacus: a pass in evaluation mode has no per-record gradients.
        return bool(self._module.training and torch.is_grad_enabled())

    def _begin(self, module: torch.nn.Module, inputs: Any) -> None:
        if not self._is_watched():
            return
        if self._is_given_up:
            self.forget()
        self._running.clear()
        self._check_module()
        self._check_trained()
        self._versions = {p: p._version for p in self.names}

    def _end(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        if not self._is_watched():
            return
        for p, version in self._versions.items():
            if p._version != version:
                raise ValueError(f"the forward pass changes {self.names[p]} in place (as max_norm does), without noise")
        tensors = [leaf for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor)]
        if not tensors:
            raise TypeError(f"the module gives {type(output).__name__}, expected tensors, or tuples or dicts of them")
        if not self._owns_loss:
            self.check_graph(tensors)
        for tensor in tensors:
            if tensor.requires_grad:
                tensor.register_hook(_Backward(self, self._generation))  # type: ignore[no-untyped-call,unused-ignore]

    def _enter(self, layer: torch.nn.Module, inputs: Any) -> None:
        if torch.is_grad_enabled():
            self._running.append((layer, self._now()))

    def _leave(self, layer: torch.nn.Module, inputs: Any, output: Any) -> None:
        while self._running and torch.is_grad_enabled():
            entered, start = self._running.pop()
            if entered is layer:
                self._calls.setdefault(layer, []).append((start, self._now()))
                return

    def _now(self) -> int:
        with torch.enable_grad():
            made: Any = (self._clock * 1).grad_fn
            return int(made._sequence_nr())

    def _is_inside(self, node: Any, p: torch.Tensor) -> bool:
        if node is None:
            return False
        made = node._sequence_nr()
        return any(start < made < end for layer in self._owners[p] for start, end in self._calls.get(layer, ()))

    def _on_backward(self, generation: int) -> None:
        if generation != self._generation:
            self._refuse(_STALE)
        if self._owns_loss and not self.in_loss:
            self._refuse(
                "a backward pass that is not of the loss that make_private gave: what it adds is not clipped by record; "
                "expected loss(module(x), y).backward()"
            )

    def _refuse(self, violation: str) -> None:
        self.violation = violation
        raise RuntimeError(violation)


class _Backward:
    """The hook of an output: its backward pass comes once, and in time."""

    def __init__(self, watch: Watch, generation: int) -> None:
        self._watch, self._generation, self._is_done = watch, generation, False

    def __call__(self, gradient: torch.Tensor) -> None:
        self._watch._on_backward(self._generation)
        if self._is_done:
            self._watch._refuse("a second backward pass of one forward pass; expected one for each forward pass")
        self._is_done = True


def _edges_to_parameters(tensors: Iterable[torch.Tensor]) -> Iterator[tuple[Any, torch.Tensor]]:
    """Every leaf that the tensors depend on, and the node that uses it (None: the tensor itself)."""
    nodes: list[Any] = []
    for tensor in tensors:
        if tensor.grad_fn is not None:
            nodes.append(tensor.grad_fn)
        elif tensor.requires_grad:
            yield None, tensor
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        for following, _ in node.next_functions:
            if following is None:
                continue
            if type(following).__name__ == "AccumulateGrad":
                yield node, following.variable
            elif following not in seen:
                seen.add(following)
                nodes.append(following)
