"""How the C library's heap is used between steps; glibc's, and nothing elsewhere.

What a step frees the next one needs again, but a heap that was never asked for much returns it to the system and takes
it back page by page, which can cost a sixth of a small network's step. glibc learns how much to keep from the largest
block it has seen freed (``mallopt``, M_TRIM_THRESHOLD), so ``keep_freed_memory`` shows it one. The checks of the first
batches, on the other hand, need memory that no later step does, and ``return_freed_memory`` returns it.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from discreet.errors import extra

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["buffer", "keep_freed_memory", "return_freed_memory"]

LARGEST = 32 << 20  # bytes; glibc maps larger blocks one by one, and learns from those that are not


def keep_freed_memory() -> None:
    """Let the heap keep what a step frees: a block is asked for and freed, and none of its pages is touched."""
    torch.empty(LARGEST // 2, dtype=torch.uint8)


def buffer(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Room for numbers. If there are many it is outside the heap, where a step would rarely find such a hole."""
    size = shape.numel()
    if size * dtype.itemsize <= LARGEST // 2 or device.type != "cpu":
        return torch.empty(shape, dtype=dtype, device=device)
    return torch.empty(max(size, LARGEST // dtype.itemsize + 1), dtype=dtype, device=device)[:size].view(shape)


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
