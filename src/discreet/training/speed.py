"""What concerns the time and memory of a run, and never its guarantee: what users say of it, and threads of our own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

from discreet.errors import extra, whole
from discreet.forks import here

with extra("torch"):
    import torch

__all__ = ["Speed", "check_speed", "on_threads"]

FEWEST = 4
"""Threads that are worth it. After a parallel function torch's own threads spin for some milliseconds on the same
cores: of two threads one did the noise of 670,000 parameters in 2.4 ms, both together in 4.6."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How a run is carried out.

    ``max_physical_batch_size``
        Large batches come in pieces of at most so many rows: the loop calls ``step`` for every piece, and the optimiser
        moves when a batch is complete.
    ``secure``
        Noise from the cryptographic generator. Without it a faster one, keyed by the same entropy, whose state could be
        found from enough raw noise, which nobody outside sees (``discreet.random.fast``).

    >>> Speed(max_physical_batch_size=64).secure
    True
    """

    max_physical_batch_size: int | None = None
    secure: bool = True

    def __post_init__(self) -> None:
        if self.max_physical_batch_size is not None:
            whole("max_physical_batch_size", self.max_physical_batch_size, low=1)
        if not isinstance(self.secure, bool):
            raise ValueError(f"secure is {self.secure!r}, but must be True or False.")


def check_speed(speed: object) -> Speed:
    """What a ``speed=`` argument means, or the reason it means nothing."""
    if speed is None or isinstance(speed, Speed):
        return speed or Speed()
    raise ValueError(f"speed is {speed!r}, but must be a Speed, such as training.Speed(max_physical_batch_size=64).")


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
