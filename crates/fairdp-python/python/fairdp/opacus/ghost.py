"""Ghost clipping without a second backward pass: the sum of the hooked layers' scaled gradients.

Opacus computes norms from each layer's inputs and output gradients. Its second backward pass then
sums whatever the graph holds, also a gradient that no layer's norm has seen. Here the sum is made
of the same inputs and output gradients as the norms (book-keeping, Bu et al. 2023), so that nothing
beside the layers reaches it.
"""

from __future__ import annotations

from typing import Any

import torch
from opacus.grad_sample import GradSampleHooksFastGradientClipping, GradSampleModuleFastGradientClipping
from opacus.grad_sample.functorch import ft_compute_per_sample_gradient

# A layer, its inputs and the gradients of its outputs, records first.
_Use = tuple[torch.nn.Module, list[torch.Tensor], torch.Tensor]


class GhostHooks(GradSampleHooksFastGradientClipping):  # type: ignore[misc,unused-ignore]
    """Opacus's hooks, which keep what they saw while `uses` is a list."""

    uses: list[_Use] | None = None

    def rearrange_grad_samples(self, *, module: torch.nn.Module, **settings: Any) -> Any:
        activations, backprops = super().rearrange_grad_samples(module=module, **settings)
        if self.uses is not None:
            self.uses.append((module, activations, backprops))
        return activations, backprops

    def run(self, terms: torch.Tensor) -> tuple[torch.Tensor, list[_Use]]:
        """The backward pass of terms by record: the norm of each record's gradient, and what the
        layers saw.
        """
        if len(terms) == 0:
            # Opacus has no norms of embeddings for none.
            return terms.detach(), []
        for p in self.trainable_parameters:
            p._norm_sample = None
        self.uses = []
        try:
            terms.sum().backward()  # type: ignore[no-untyped-call,unused-ignore]
            uses = self.uses
        finally:
            self.uses = None
            for p in self.trainable_parameters:
                # It was of every record, and without noise.
                p.grad = None
        n_uses: dict[torch.Tensor, int] = {}
        for layer, _, _ in uses:
            for p in layer.parameters():
                n_uses[p] = n_uses.get(p, 0) + 1
        for layer, _, _ in uses:
            if type(layer) in self.NORM_SAMPLERS and any(n_uses[p] > 1 for p in layer.parameters()):
                raise ValueError(
                    f"a parameter of {layer} is used more than once in a forward pass: ghost mode has no norm for it; "
                    "expected grad_sample_mode='hooks'"
                )
        for name, p in self._module.named_parameters():
            if p.requires_grad and p._norm_sample is None:
                raise ValueError(f"the backward pass gave {name} no gradient: its layer took no part in the loss")
        lengths = {len(p._norm_sample) for p in self.trainable_parameters}
        if lengths != {len(terms)}:
            raise ValueError(
                f"the layers saw {sorted(lengths)} records, but the loss has {len(terms)} terms; expected the records "
                "in the first dimension of every layer's input, or in the second with batch_first=False"
            )
        return self.get_norm_sample(), uses

    def weighted_sums(self, uses: list[_Use], scales: torch.Tensor) -> dict[torch.Tensor, torch.Tensor]:
        """`Σ s_i g_i` of every parameter, in float64."""
        sums = {p: torch.zeros(p.shape, dtype=torch.float64, device=p.device) for p in self.trainable_parameters}
        for layer, activations, backprops in uses:
            # Later steps of a packed sequence have fewer records.
            weights = scales[: len(backprops)].to(device=backprops.device, dtype=backprops.dtype)
            weighted = backprops * weights.reshape(-1, *(1 for _ in backprops.shape[1:]))
            for p, total in self._layer_sums(layer, activations, weighted).items():
                if p.requires_grad:
                    sums[p] += total
        return sums

    def _layer_sums(
        self, layer: torch.nn.Module, activations: list[torch.Tensor], backprops: torch.Tensor
    ) -> dict[torch.Tensor, torch.Tensor]:
        if type(layer) is torch.nn.Linear:
            sums = {layer.weight: torch.einsum("n...i,n...j->ij", backprops, activations[0].to(backprops.dtype))}
            if layer.bias is not None:
                sums[layer.bias] = backprops.reshape(-1, backprops.shape[-1]).sum(0)
            return sums
        if type(layer) is torch.nn.Embedding:
            total = torch.zeros(layer.weight.shape, device=backprops.device, dtype=backprops.dtype)
            total.index_add_(0, activations[0].reshape(-1), backprops.reshape(-1, layer.embedding_dim))
            if layer.padding_idx is not None:
                total[layer.padding_idx] = 0
            return {layer.weight: total}
        sampler = self.GRAD_SAMPLERS.get(type(layer), ft_compute_per_sample_gradient)
        return {p: samples.sum(0) for p, samples in sampler(layer, activations, backprops).items()}


class GhostModule(GhostHooks, GradSampleModuleFastGradientClipping):  # type: ignore[misc,unused-ignore]
    """The same around a module."""
