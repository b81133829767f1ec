"""Work in compiled code on several threads of our own, as many as torch has."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from discreet.errors import extra
from discreet.forks import here

with extra("torch"):
    import torch

__all__ = ["on_threads"]

FEWEST = 4
"""Threads that are worth it. After a parallel function torch's own threads spin for some milliseconds on the same
cores: of two threads one did the noise of 670,000 parameters in 2.4 ms, both together in 4.6."""


def on_threads(task: Callable[[int], None], count: int) -> None:
    """Do ``task(0)`` … ``task(count - 1)``, which run without Python's lock, on as many threads as torch uses.

    >>> done = []
    >>> on_threads(done.append, 4)
    >>> sorted(done)
    [0, 1, 2, 3]
    """
    threads = min(count, torch.get_num_threads())
    if threads < FEWEST:
        for i in range(count):
            task(i)
        return
    for _ in _pool(threads, here()).map(task, range(count)):  # raises what a task raised
        pass


@cache
def _pool(threads: int, process: object) -> ThreadPoolExecutor:
    """Kept from step to step; a forked child has none of its parent's threads and makes its own."""
    return ThreadPoolExecutor(threads, "discreet")
