"""Processes that share a training: each draws, and clips, the records of its rank."""

from __future__ import annotations

from typing import Any, Callable, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP

_T = TypeVar("_T")


class Processes:
    """How many processes share the training, and which one this is.

    Record `i` is of the process `i mod size`: a public number decides it. Norms and groups of a batch
    go to rank 0, where the method takes its step once. The sums of all processes are added, rank 0
    adds the noise once, and everybody gets the noisy sum.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @classmethod
    def of(cls, module: torch.nn.Module) -> Processes:
        """Those that share this module, one for a module that is not wrapped."""
        if isinstance(module, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)):
            raise ValueError(
                f"module is {type(module).__name__}, which averages gradients before they are clipped; expected Opacus's "
                "DifferentiallyPrivateDistributedDataParallel, or a module of one process"
            )
        distributed = torch.distributed
        is_shared = distributed.is_available() and distributed.is_initialized()
        size = distributed.get_world_size() if is_shared else 1
        if not isinstance(module, DPDDP):
            if size > 1:
                raise ValueError(
                    f"{size} processes share the training, expected a module in Opacus's "
                    "DifferentiallyPrivateDistributedDataParallel, which gives all of them the same parameters"
                )
            return cls()
        return cls(distributed.get_rank(), size)

    def records(self, n_records: int) -> NDArray[np.int64]:
        """The records of this process."""
        return np.arange(self.rank, n_records, self.size, dtype=np.int64)

    def gathered(self, part: tuple[NDArray[Any], ...]) -> list[tuple[NDArray[Any], ...]]:
        """The parts of all processes, by rank."""
        if self.size == 1:
            return [part]
        parts: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(parts, part)
        return parts

    def once(self, work: Callable[[], _T]) -> _T:
        """What rank 0 does; its failure is everybody's."""
        if self.size == 1:
            return work()
        answer: list[Any] = [None, None]
        if self.rank == 0:
            try:
                answer[0] = work()
            except Exception as error:
                answer[1] = error
        torch.distributed.broadcast_object_list(answer, src=0)
        if answer[1] is not None:
            raise answer[1]
        done: _T = answer[0]
        return done

    def total(self, values: NDArray[np.float64], device: torch.device) -> NDArray[np.float64]:
        """The sum over all processes."""
        if self.size == 1:
            return values
        total = torch.from_numpy(values).to(device)
        torch.distributed.all_reduce(total)
        summed: NDArray[np.float64] = total.cpu().numpy()
        return summed
