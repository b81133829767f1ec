r"""Does a sequence model remember a secret? Canaries are put into its training data, and looked for in the model.

A *canary* is a sentence with a secret drawn at random from a known space R, say "the code is 2 8 1 7". To a model that
knows nothing of it, the secret is one of R like all others: its rank among R by the model's loss is uniform, and its

.. math:: \text{exposure} = \log_2 |R| - \log_2 \text{rank}

exceeds x with probability at most :math:`2^{-x}`: an exposure of :math:`\log_2 |R|` is a secret that ranks first. The
*extraction check* goes on from the prefix alone, and sees whether the secret comes out.

Reference: Carlini, Liu, Erlingsson, Kos and Song (2019), "The secret sharer".
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from discreet.errors import whole

__all__ = ["Exposure", "exposure", "extract"]

Token = TypeVar("Token", bound=Hashable)
_AT_ONCE = 4096


@dataclass(frozen=True)
class Exposure:
    """A canary's rank among the secrets it was drawn from."""

    rank: int
    of: int

    @property
    def bits(self) -> float:
        """log2 |R| - log2 rank."""
        return math.log2(self.of) - math.log2(self.rank)

    @property
    def chance(self) -> float:
        """How often a model that knows nothing of the secret shows this exposure, or a larger one."""
        return self.rank / self.of


def exposure(
    losses: Callable[[Sequence[Token]], Iterable[float]], canary: Token, candidates: Iterable[Token]
) -> Exposure:
    """The exposure of ``canary`` among ``candidates``, the space that it was drawn from, itself included or not.

    ``losses`` gives the model's loss of each of some sequences; it is asked for a few thousand at a time. Ties count
    against the model: a model that gives everything the same loss exposes nothing.

    >>> exposure(lambda texts: [abs(int(text) - 42) for text in texts], "42", map(str, range(1000)))
    Exposure(rank=1, of=1000)
    """
    own = float(next(iter(losses([canary]))))
    better, total, part = 0, 0, list[Token]()
    for candidate in (*(c for c in candidates if c != canary), None):
        if candidate is not None:
            part.append(candidate)
        if part and (candidate is None or len(part) == _AT_ONCE):
            found = np.asarray(list(losses(part)), np.float64)
            better += int((found <= own).sum())
            total += len(part)
            part.clear()
    return Exposure(rank=better + 1, of=total + 1)


def extract(
    following: Callable[[Sequence[Token]], dict[Token, float]],
    prefix: Sequence[Token],
    length: int,
    *,
    most: int = 10_000,
) -> list[Token] | None:
    """The likeliest continuation of ``prefix`` by ``length`` tokens, found exactly; None after ``most`` steps.

    ``following(tokens)`` gives the log-probability of each token that may come next. The search goes on from the
    likeliest beginning first (Dijkstra's algorithm), so the first one that is long enough is the likeliest of all.

    >>> extract(lambda tokens: {"a": -0.1, "b": -2.0}, ["x"], 3)
    ['a', 'a', 'a']
    """
    length = whole("length", length, low=1)
    waiting: list[tuple[float, int, list[Token]]] = [(0.0, 0, [])]
    made = 0
    for _ in range(most):
        if not waiting:
            return None
        cost, _, found = heapq.heappop(waiting)
        if len(found) == length:
            return found
        for token, log in following([*prefix, *found]).items():
            made += 1  # breaks ties, and keeps tokens from being compared
            heapq.heappush(waiting, (cost - log, made, [*found, token]))
    return None
