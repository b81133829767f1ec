r"""In which steps one record may take part, and how far it can then move what noise is added to.

A record that takes part in the steps of a set π with contributions of norm at most 1 moves C·x by at most

.. math:: \max_\pi \Big(\sum_{i,l \in \pi} |X_{il}|\Big)^{1/2}, \qquad X = C^\top C,

in l2, whatever its contributions are and however they were chosen after earlier noisy sums (Choquette-Choo et al. 2023,
Theorem 2.1 of "Multi-epoch matrix factorization"; adaptivity: Denisov et al. 2022, Theorem 2.1). Where the entries of X
that meet on π are not negative this is attained. What cannot be maximised exactly is bounded from above. Every value is
rounded up by more than its additions can lose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.errors import whole
from discreet.mechanisms.factorization import toeplitz
from discreet.mechanisms.factorization.toeplitz import Floats

__all__ = ["Bound", "Pattern", "best_sum", "bound", "matrix_sensitivity", "shifted_sum", "toeplitz_sensitivity"]

_UP = 1 + 1e-9  # sums of at most 10^6 terms that are not negative lose less
_DENSE = 1024  # steps up to which a dense bound is tried beside another


class Bound(NamedTuple):
    """A sensitivity: exact (up to its rounding up), or an upper bound."""

    value: float
    exact: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """A record takes part in at most ``participations`` of ``steps`` steps, any two ``separation`` or more apart.

    With ``regular`` they are exactly ``separation`` apart: an order of batches that is the same in every pass. Without
    it any such set of steps may happen (b-min-separation).

    >>> Pattern.passes(10, 4)
    Pattern(steps=10, separation=4, participations=3, regular=True)
    """

    steps: int
    separation: int
    participations: int
    regular: bool = False

    def __post_init__(self) -> None:
        whole("steps", self.steps, low=1)
        whole("separation", self.separation, low=1)
        most = math.ceil(self.steps / self.separation)
        object.__setattr__(self, "participations", min(whole("participations", self.participations, low=1), most))

    @classmethod
    def single(cls, steps: int) -> Pattern:
        """Once in the whole run."""
        return cls(steps, max(steps, 1), 1, regular=True)

    @classmethod
    def passes(cls, steps: int, length: int) -> Pattern:
        """Once in each pass of ``length`` steps, always at the same place of it."""
        return cls(steps, length, math.ceil(steps / length), regular=True)

    def check(self, steps: int) -> None:
        """Refuse a matrix of other than so many steps, in which a record may be more often."""
        if self.steps != steps:
            raise ValueError(f"The pattern is for {self.steps} steps, but the matrix has {steps}.")


def toeplitz_sensitivity(c: Floats, pattern: Pattern) -> Bound:
    """The sensitivity of T(c).

    Exact for one participation; where bands do not reach from one participation to the next, so that columns are
    orthogonal and the first ones longest; and where c falls and is not negative: then the earliest, closest pattern is
    worst (Kalinin and Lampert 2024, Theorem 2). Otherwise the same for the smallest falling series above \\|c\\|.
    """
    pattern.check(len(c))
    k, b = pattern.participations, pattern.separation
    if k == 1:
        return bound(float(c @ c), True)
    squares = np.cumsum(c * c)  # column i of n has norm² squares[n - 1 - i]
    if len(np.trim_zeros(c, "b")) <= b:
        return bound(float(squares[len(c) - 1 - b * np.arange(k)].sum()), True)
    if (c >= 0).all() and (np.diff(c) <= 0).all():
        return bound(float((shifted_sum(c, pattern) ** 2).sum()), True)
    falling = np.maximum.accumulate(np.abs(c)[::-1])[::-1]
    above = bound(float((shifted_sum(falling, pattern) ** 2).sum()), False)
    return above if len(c) > _DENSE else min(above, matrix_sensitivity(toeplitz.matrix(c), pattern))


def shifted_sum(c: Floats, pattern: Pattern) -> Floats:
    """T(c) times the indicator of the steps 0, b, 2b, ...: columns b apart, added up."""
    total = np.zeros(len(c))
    for start in range(0, pattern.participations * pattern.separation, pattern.separation):
        total[start:] += c[: len(c) - start]
    return total


def matrix_sensitivity(c: Floats, pattern: Pattern) -> Bound:
    """The sensitivity of any C, with a column per step.

    Regular patterns are tried one by one. For others, columns that are orthogonal at the separation are added up
    exactly (Choquette-Choo et al. 2023, "(Amplified) banded matrix factorization", Algorithm 3); what is left is
    bounded by the worst pattern of the worst patterns of each row of \\|X\\|.
    """
    pattern.check(c.shape[1])
    gram = c.T @ c
    x, b, k = np.abs(gram), pattern.separation, pattern.participations
    diagonal = x.diagonal().copy()
    if k == 1:
        return bound(float(diagonal.max()), True)
    apart = np.abs(np.subtract.outer(np.arange(len(x)), np.arange(len(x))))
    far = apart >= b
    if not x[far].any():
        return bound(best_sum(diagonal, pattern), True)
    diagonal += k * len(c) * 2.0**-52 * diagonal.max()  # what the products off the diagonal may have lost
    if pattern.regular:
        together = far & (apart % b == 0)
        sums = diagonal + (x * together).sum(axis=1)
        return bound(best_sum(sums, pattern), bool((gram[together] >= 0).all()))
    rows = _best_sums(np.where(far, x, 0.0), Pattern(pattern.steps, b, k - 1))
    return bound(best_sum(diagonal + rows, pattern), False)


def best_sum(values: Floats, pattern: Pattern) -> float:
    """The largest sum over steps that are far enough apart, few enough, or regular."""
    if pattern.regular:
        return max(
            float(values[start :: pattern.separation].sum()) for start in range(min(pattern.separation, len(values)))
        )
    return float(_best_sums(values[None, :], pattern)[0])


def _best_sums(rows: Floats, pattern: Pattern) -> Floats:
    """For each row its largest sum over at most k entries, b or more apart: F[i, k] = max(x_i + F[i+b, k-1],
    F[i+1, k])."""
    count, n = rows.shape
    b, best = pattern.separation, np.zeros((n + pattern.separation, count))
    for _ in range(pattern.participations):
        before, best = best, np.zeros_like(best)
        for i in range(n - 1, -1, -1):
            best[i] = np.maximum(rows[:, i] + before[i + b], best[i + 1])
    found: Floats = best[0]
    return found


def bound(square: float, exact: bool) -> Bound:
    """A sensitivity from its square, rounded up."""
    return Bound(math.sqrt(square) * _UP, exact)
