"""Work of our own on torch's threads.

After a parallel function torch's worker threads spin for some milliseconds, ready for the next one. Threads of our own
would share the cores with them: noise for a small network then takes twice the time it takes on one core. So the
lanes of the noise run where torch's loops run, in its OpenMP team, found by name in the library that is loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from discreet.errors import extra

with extra("torch"):
    import torch

__all__ = ["torch_threads"]

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def torch_threads(task: Callable[[int], None], count: int) -> None:
    """Do ``task(0)`` … ``task(count - 1)`` on torch's threads; on this one where torch has no OpenMP.

    >>> done = []
    >>> torch_threads(done.append, 4)
    >>> sorted(done)
    [0, 1, 2, 3]
    """
    left, failures = iter(range(count)), list[BaseException]()

    def work(_: Any) -> None:
        try:
            for i in left:
                task(i)
        except BaseException as failure:  # must not travel through C; raised again below
            failures.append(failure)

    parallel = _parallel()
    if parallel is None:
        work(None)
    else:
        parallel(_BODY(work), None, torch.get_num_threads(), 0)
    if failures:
        raise failures[0]


@cache
def _parallel() -> Any:
    """``GOMP_parallel(function, data, threads, flags)`` of the OpenMP runtime that torch itself uses, GNU's or
    LLVM's."""
    try:
        return ctypes.CDLL(torch._C.__file__).GOMP_parallel
    except (AttributeError, OSError):
        return None
