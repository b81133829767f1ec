r"""Numbers as whole steps of a public power-of-two grid, so that an engine's sums are exact and bounded by
construction.

A column with bounds [L, U] gets the finest step g = 2^e for which (U - L)/g does not exceed ``steps``. A value x
becomes

.. math:: k(x) = \lfloor (\mathrm{clip}(x, L, U) - L) \cdot 2^{-e} + \tfrac12 \rfloor .

*Sensitivity, rounding included.* Clipping, subtracting a constant, scaling by a power of two, adding a constant, floor:
each is monotone in IEEE double arithmetic, whatever it rounds. So 0 = k(L) ≤ k(x) ≤ k(U) = K for every x, and K is
computed here by the same operations. One row adds a whole number of at most K to a sum of k, and exactly K to the
pair (Σk, Σ(K - k)). Nothing else about floating point enters the proof, and every engine that follows IEEE gives the
same k.

*Overflow.* K ≤ 2^30. DuckDB adds in 128 bits: 2^97 rows would fit. Spark adds the upper and lower halves of k apart,
each below 2^15: 2^48 rows fit. Neither can be reached, so no sum overflows, and no limit on rows has to be declared.

*Bias.* Each row is read with an error of at most g/2, below 2^-30 of the range: for whole-number bounds up to 2^30
apart, whole numbers are read exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from discreet.schema import Bounded

__all__ = ["COARSE", "FINE", "FixedPoint"]

FINE = 1 << 30
COARSE = 1 << 15  # for squares: k² stays below 2^30


@dataclass(frozen=True)
class FixedPoint:
    """The grid of a bounded column.

    >>> grid = FixedPoint(Bounded(0, 200_000))
    >>> grid.scale, grid.top, grid.steps_of(150_000.5)
    (4096.0, 819200000, 614402048)
    """

    bounds: Bounded
    steps: int = FINE

    @cached_property
    def scale(self) -> float:
        """Steps in a unit, 2^-e."""
        exponent = math.floor(math.log2(self.steps)) - math.frexp(self.bounds.high - self.bounds.low)[1]
        finer = 2.0 ** (exponent + 1)
        return finer if (self.bounds.high - self.bounds.low) * finer <= self.steps else 2.0**exponent

    @cached_property
    def top(self) -> int:
        """K, the number of steps from the lower to the upper bound."""
        return self.steps_of(self.bounds.high)

    def steps_of(self, value: float) -> int:
        """k(x), as the engines compute it."""
        clipped = max(min(value, self.bounds.high), self.bounds.low)
        return math.floor((clipped - self.bounds.low) * self.scale + 0.5)

    @property
    def low(self) -> Fraction:
        """The value of zero steps."""
        return Fraction(self.bounds.low)

    @property
    def step(self) -> Fraction:
        """The size of a step."""
        return 1 / Fraction(self.scale)

    @property
    def largest(self) -> Fraction:
        """The largest magnitude that a row can add to a sum of values."""
        return max(abs(self.low), abs(self.low + self.top * self.step))
