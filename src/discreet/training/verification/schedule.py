"""Which batches of a run are verified: the first ones, and one drawn at random out of each of a sequence of stretches.

Stretches grow, so that the cost stays a small share of a run; none is longer than ``LONGEST``, so that a model which
begins to mix records at some step is met again before long, and no step is known beforehand to be unwatched.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Schedule"]

FIRST = 2  # batches that are always verified
TOGETHER = 8
SHORTEST, GROWTH, LONGEST = 4, 3, 64  # steps of a stretch


class Schedule:
    """Which batches are verified: the first ones, then one drawn at random out of each stretch of steps."""

    def __init__(self, draw: Callable[[int], int] | None) -> None:
        self._draw = draw
        self._seen = self._verified = 0
        self._start, self._length, self._at = FIRST, SHORTEST, -1

    @property
    def claims(self) -> tuple[int, ...]:
        """Of how many records of a batch each claim is: one alone, or some together, so that many rows are looked
        at."""
        if self._verified <= FIRST:
            return ((TOGETHER,), (1,))[self._verified - 1]
        assert self._draw is not None
        return (self._draw(2) * (TOGETHER - 1) + 1,)

    def next(self, records: int) -> bool:
        """Whether the next batch is verified; one of a single record never is, and the next takes its turn."""
        step, self._seen = self._seen, self._seen + 1
        if self._verified < FIRST:
            self._verified += records > 1
            return records > 1
        if step >= self._start + self._length or self._at < 0:
            if self._at >= 0:
                self._start, self._length = self._start + self._length, min(GROWTH * self._length, LONGEST)
            assert self._draw is not None
            self._start = max(self._start, step)
            self._at = self._start + self._draw(self._length)
        if step < self._at or records < 2:
            return False
        self._at = self._start + self._length  # had its turn
        self._verified += 1
        return True
