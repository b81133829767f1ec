"""Filling one large array from several independent streams, on as many threads as the machine lends."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.random.source import LANES, Rng

__all__ = ["in_lanes"]

_SMALL = 1 << 14  # below this, starting threads costs more than it saves


def in_lanes(fill: Callable[[Any, Rng], None], out: NDArray[Any], rng: Rng) -> None:
    """``fill(part, source)`` for each of ``LANES`` parts of a flat array; a small one is filled in a single part.

    Which stream fills which part depends on the size alone, so a seeded result is the same on any machine.
    """
    if out.size < _SMALL:
        fill(out, rng)
        return
    parts, sources = np.array_split(out, LANES), rng.lanes()
    with ThreadPoolExecutor(max_workers=min(LANES, _threads())) as pool:
        list(pool.map(fill, parts, sources))


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
