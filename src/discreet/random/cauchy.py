"""One exact Cauchy sample on the integers, for noise whose scale is itself private."""

from __future__ import annotations

from fractions import Fraction

from discreet.errors import whole
from discreet.random.bounds import Interval, uniform_below
from discreet.random.source import RngLike, as_rng

__all__ = ["cauchy_cell"]


def cauchy_cell(scale: int, rng: RngLike = None) -> int:
    r"""The floor of a continuous Cauchy sample of whole scale m, with density :math:`\propto 1/(1 + (x/m)^2)`.

    Proposals: strip 0 is [0, m), strip k ≥ 1 is [2^(k-1)·m, 2^k·m), taken with probability 2^-(k+1), uniform within.
    A proposal y is accepted with probability 2^(2k-2)/(1 + (y/m)²), half of 1/(1 + (y/m)²) in strip 0: a rational
    function of a lazily drawn uniform, compared exactly.

    >>> isinstance(cauchy_cell(1000, rng=1), int)
    True
    """
    source, m = as_rng(rng), whole("scale", scale, low=1)
    while True:
        k = 0
        while source.below(2):
            k += 1
        first = m << (k - 1) if k else 0
        y = first + source.below(first or m)
        front = Fraction(1, 2) if k == 0 else Fraction(4 ** (k - 1))

        def accept(_: int, inside: Interval, y: int = y, front: Fraction = front) -> Interval:
            near, far = (front / (1 + ((y + u) / m) ** 2) for u in inside)
            return far, near

        if uniform_below(accept, source):
            return -y - 1 if source.below(2) else y
