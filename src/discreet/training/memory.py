"""How the C library's heap is used between steps; glibc's, and nothing elsewhere.

What a step frees the next one needs again, but a heap that was never asked for much returns it to the system and takes
it back page by page, which can cost a sixth of a small network's step. glibc learns how much to keep from the largest
block it has seen freed (``mallopt``, M_TRIM_THRESHOLD), so ``keep_freed_memory`` shows it one. The checks of the first
batches, on the other hand, need memory that no later step does, and ``return_freed_memory`` returns it.

Decision 76.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

from discreet.errors import extra

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["SMALL", "Room", "keep_freed_memory", "return_freed_memory", "side_by_side"]

Facts: TypeAlias = tuple[torch.Size, torch.dtype, torch.device]

SMALL = 1 << 12  # numbers: as many as are drawn in the time that starting a draw takes a few times over
LARGEST = 32 << 20  # bytes; glibc maps larger blocks one by one, and learns from those that are not


def keep_freed_memory() -> None:
    """Let the heap keep what a step frees: a block is asked for and freed, and none of its pages is touched."""
    torch.empty(LARGEST // 2, dtype=torch.uint8)


class Room:
    """Room for numbers of these shapes, again and again. Small ones of a kind lie side by side, to be filled as one;
    large ones outside the heap, where a step would rarely find such a hole.

    >>> one, two = Room([(torch.Size([2, 3]), torch.float32, torch.device("cpu"))] * 2).fresh()
    >>> one.shape, side_by_side([one, two]).shape
    (torch.Size([2, 3]), torch.Size([12]))
    """

    def __init__(self, facts: Sequence[Facts]) -> None:
        self._large = [(place, of) for place, of in enumerate(facts) if of[0].numel() > SMALL]
        small: dict[tuple[torch.dtype, torch.device], list[int]] = {}
        for place, (shape, dtype, device) in enumerate(facts):
            if shape.numel() <= SMALL:
                small.setdefault((dtype, device), []).append(place)
        # of each kind: the sizes, and which parameters' they are
        self._small = [(*kind, [facts[i][0].numel() for i in places], places) for kind, places in small.items()]
        self._shapes = [shape for shape, _, _ in facts]

    def fresh(self) -> list[Tensor]:
        """A new tensor of each shape, not yet filled."""
        found = {place: _large(*facts) for place, facts in self._large}
        for dtype, device, sizes, places in self._small:
            # no views in autograd's sense: what becomes a gradient may be detached in place
            parts = torch.unsafe_split_with_sizes(torch.empty(sum(sizes), dtype=dtype, device=device), sizes)
            for place, part in zip(places, parts, strict=True):
                shape = self._shapes[place]
                found[place] = part if len(shape) == 1 else part.view(shape).detach()
        return [found[place] for place in range(len(found))]


def _large(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> Tensor:
    size = shape.numel()
    if size * dtype.itemsize <= LARGEST // 2 or device.type != "cpu":
        return torch.empty(shape, dtype=dtype, device=device)
    return torch.empty(max(size, LARGEST // dtype.itemsize + 1), dtype=dtype, device=device)[:size].view(shape)


def side_by_side(parts: Sequence[Tensor]) -> Tensor | None:
    """One vector in the memory of all of them, where they lie side by side and in order, as ``Room`` lays them."""
    first = parts[0]
    memory, end = first.untyped_storage().data_ptr(), first.storage_offset()
    for part in parts:
        if part.untyped_storage().data_ptr() != memory or part.storage_offset() != end or not part.is_contiguous():
            return None
        end += part.numel()
    return first.as_strided((end - first.storage_offset(),), (1,))


def return_freed_memory() -> None:
    """Return free memory to the system, and before it the buffers that matrix products left behind."""
    for function in _returning():
        function(0)


@cache
def _returning() -> list[Any]:
    """MKL's and glibc's functions, found by name in what torch has loaded; none where it was built without them."""
    try:
        loaded = ctypes.CDLL(torch._C.__file__)
    except OSError:
        return []
    found = [getattr(loaded, name, None) for name in ("mkl_serv_free_buffers", "malloc_trim")]
    return [function for function in found if function is not None]
