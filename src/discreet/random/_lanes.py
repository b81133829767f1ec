"""Filling one large array from several independent streams, on as many threads as the machine lends."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.random.source import LANES, Rng

__all__ = ["Team", "in_lanes"]

Team: TypeAlias = Callable[[Callable[[int], None], int], None]
"""Who does ``task(0)`` … ``task(count - 1)``, in any order: ``team(task, count)``."""

_SMALL = 1 << 14  # below this, starting threads costs more than it saves


def in_lanes(
    fill: Callable[[Any, Rng], None], out: NDArray[Any], rng: Rng, *, small: int = _SMALL, team: Team | None = None
) -> None:
    """``fill(part, source)`` for each of ``LANES`` parts of a flat array; a small one is filled in a single part.

    Which stream fills which part depends on the size alone, so a seeded result is the same on any machine.
    """
    if out.size < small:
        fill(out, rng)
        return
    parts, sources = np.array_split(out, LANES), rng.lanes()
    (team or _threads_of_our_own)(lambda lane: fill(parts[lane], sources[lane]), LANES)


def _threads_of_our_own(task: Callable[[int], None], count: int) -> None:
    with ThreadPoolExecutor(max_workers=min(count, _threads())) as pool:
        list(pool.map(task, range(count)))


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
