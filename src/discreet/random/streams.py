"""Named streams: one source for each purpose and place of an adaptive run.

A run draws for four purposes. *Public* choices (an initial guess, an order that anyone may know) protect nobody.
*Sampling* decides which records a step sees, and must stay secret. *Noise* is what is added. *Chance* is what users'
code draws by itself where it is given private records (dropout, augmentation), and is as secret. Each purpose has
streams of its own, one for each index (a step, a round and a candidate, ...), so that drawing more or less in one place
moves nothing elsewhere: a run resumes from the number of steps alone, and record-and-replay, which forces noisy outputs
instead of drawing them, stays in step with the run it repeats.

Without a seed sampling, noise and chance come from the system's source. Public streams are keyed by it, once, and
replay forces that key like any other output, so that both of its runs make the same public choices.

Decision 126.
"""

from __future__ import annotations

import numpy as np

from discreet.errors import whole
from discreet.random.source import Rng, RngLike, as_rng, system
from discreet.random.tap import draw_output, heard

__all__ = ["Streams"]

_PUBLIC, _SAMPLING, _NOISE, _CHANCE = range(4)
_LARGEST = 2**32 - 1  # an index is one word of a key: a larger one would be two, and could be another index


class Streams:
    """The sources of one run, from what an ``rng=`` argument says.

    >>> run = Streams(7)
    >>> run.noise(3).word() == Streams(7).noise(3).word() != run.sampling(3).word()
    True
    >>> run.reproducible, Streams(None).reproducible
    (True, False)
    """

    __slots__ = ("_root", "_seeded")

    def __init__(self, rng: RngLike = None) -> None:
        source = as_rng(rng)
        self._seeded = source.reproducible
        self._root: int | None = source.word() if self._seeded else None

    @property
    def reproducible(self) -> bool:
        """Whether a seed was given, so that what is drawn can be drawn again by who knows it."""
        return self._seeded

    def public(self, *index: int) -> Rng:
        """A source for choices that anyone may know; never for noise."""
        return _child(self._known_root(), _PUBLIC, index)

    def sampling(self, *index: int) -> Rng:
        """A source for the choice of records."""
        return _child(self._root, _SAMPLING, index) if self._seeded else system()

    def noise(self, *index: int) -> Rng:
        """A source for noise."""
        return _child(self._root, _NOISE, index) if self._seeded else system()

    def chance(self, *index: int) -> Rng:
        """A source for what users' code draws by itself. Where replay listens, both of its runs have the same."""
        if self._seeded or heard() is not None:
            return _child(self._known_root(), _CHANCE, index)
        return system()

    def _known_root(self) -> int:
        if self._root is None:
            self._root = draw_output("key of public choices", 0, "l1", 0, system().word)
        return self._root


def _child(root: int | None, purpose: int, index: tuple[int, ...]) -> Rng:
    if any(whole("index", place) > _LARGEST for place in index):
        raise ValueError(f"index is {index!r}, but no part of it may exceed {_LARGEST}.")
    return Rng(np.random.SeedSequence(root, spawn_key=(purpose, *index)))
