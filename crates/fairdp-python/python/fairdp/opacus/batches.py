"""Poisson batches from the operating system's random bits, and batches in parts."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any, Iterator

import numpy as np
from opacus.utils import batch_memory_manager as _theirs
from opacus.utils.uniform_sampler import UniformWithReplacementSampler

if TYPE_CHECKING:
    from fairdp.opacus.optimizer import FairDPOptimizer
    from fairdp.opacus.processes import Processes


class PoissonBatches(UniformWithReplacementSampler):  # type: ignore[misc,unused-ignore]
    """Every record is in a batch with probability `sample_rate`, rounded down to a multiple of
    2⁻⁶⁴. Of several processes each draws among the records of its rank.

    The bits are the operating system's, which `torch.manual_seed` does not fix; with a `seed` they
    follow from it. Each pass is announced to the optimizer, which forgets what was abandoned.
    """

    def __init__(
        self,
        like: Any,
        optimizer: FairDPOptimizer,
        *,
        seed: int | None,
        draws_ahead: bool,
        processes: Processes,
    ) -> None:
        # Opacus's sampler of several processes knows both numbers.
        self._records = processes.records(getattr(like, "total_size", like.num_samples))
        steps = like.steps if hasattr(like, "steps") else like.num_batches
        super().__init__(num_samples=len(self._records), sample_rate=like.sample_rate, steps=steps)
        self.is_private = seed is None
        self._optimizer = optimizer
        self._bytes = os.urandom if seed is None else np.random.default_rng(seed).bytes
        self._draws_ahead = draws_ahead

    def __iter__(self) -> Iterator[list[int]]:
        self._optimizer._begin_pass()
        for _ in range(self.steps):
            if not self._draws_ahead:
                self._optimizer._begin_draw()
            yield self._draw()

    def _draw(self) -> list[int]:
        bits = np.frombuffer(self._bytes(8 * self.num_samples), dtype=np.uint64)
        threshold = int(self.sample_rate * 2**64)
        if threshold >= 2**64:
            return list(self._records.tolist())
        drawn: list[int] = self._records[bits < np.uint64(threshold)].tolist()
        return drawn


class BatchMemoryManager(_theirs.BatchMemoryManager):  # type: ignore[misc,unused-ignore]
    """Opacus's, for loaders with workers too: a part tells the optimizer whether it is the last of
    its batch when the loop gets it, not when it is drawn ahead.
    """

    def __enter__(self) -> _Parts:
        return _Parts(self.data_loader, self.max_physical_batch_size, self.optimizer)

    def __exit__(self, *_: object) -> None:
        self.optimizer._begin_pass()


class _Parts:
    """The parts of a loader's batches."""

    def __init__(self, data_loader: Any, max_batch_size: int, optimizer: FairDPOptimizer) -> None:
        self._loader, self._max_batch_size, self._optimizer = data_loader, max_batch_size, optimizer

    def __iter__(self) -> Iterator[Any]:
        flags = _Flags()
        for part in self._split(flags):
            self._optimizer._signal(flags.queue.popleft())
            yield part

    def __len__(self) -> int:
        return len(self._split(_Flags()))

    def _split(self, flags: _Flags) -> Any:
        return _theirs.wrap_data_loader(
            data_loader=self._loader, max_batch_size=self._max_batch_size, optimizer=flags
        )


class _Flags:
    """Whether each part that was drawn has parts after it."""

    def __init__(self) -> None:
        self.queue: deque[bool] = deque()

    def signal_skip_step(self, do_skip: bool = True) -> None:
        self.queue.append(do_skip)
