r"""Discounted sums of masses on a lattice, from any point on: what delta is made of, at the cost of a look-up.

From point i on, with :math:`r = e^{-c h}` and :math:`s = e^{-h}` for a lattice of step h,

.. math:: D_i = \sum_k m_{i+k}\, r^k, \qquad L_i = \sum_k m_{i+k}\, r^k (1 - s^k).

Blocks of some hundred points are summed once. What lies d points ahead adds :math:`r^d D_{i+d}` to the first and
:math:`r^d (s^d L_{i+d} + (1 - s^d) D_{i+d})` to the second, where all factors are positive: nothing cancels, however
small the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.accounting.arrays import Array, Interval

__all__ = ["Discounted"]

_BLOCK = 512


@dataclass(frozen=True)
class Discounted:
    """Masses on a lattice of step ``step``, discounted by exp(-c·distance)."""

    masses: Array
    c: float
    step: float

    @cached_property
    def _factors(self) -> tuple[Array, Array, Array]:
        """r^k, 1 - s^k and their product, up to the length of a block."""
        distance = self.step * np.arange(_BLOCK + 1)
        decay, loss = np.exp(-self.c * distance), -np.expm1(-distance)
        return decay, loss, decay * loss

    @cached_property
    def _blocks(self) -> Array:
        """D and L at the start of each block, and zeros behind the last."""
        decay, _, both = self._factors
        padded = np.append(self.masses, np.zeros(-len(self.masses) % _BLOCK)).reshape(-1, _BLOCK)
        sums = np.zeros((len(padded) + 1, 2))
        sums[:-1] = padded @ np.column_stack([decay[:-1], both[:-1]])
        for block in range(len(padded) - 1, -1, -1):
            sums[block] += self._carried(sums[block + 1], _BLOCK)
        return sums

    def _carried(self, sums: Array, distance: int) -> Interval:
        """What D and L at a point add to those ``distance`` points before."""
        decay, loss = float(self._factors[0][distance]), float(self._factors[1][distance])
        ahead, lost = float(sums[0]), float(sums[1])
        return decay * ahead, decay * ((1 - loss) * lost + loss * ahead)

    def sums(self, start: int) -> Interval:
        """D and L from a point on.

        >>> each = Discounted(np.ones(3000), c=np.log(2), step=1.0)
        >>> [round(x, 6) for x in each.sums(1000)]  # 1/(1 - 1/2), and that less 1/(1 - 1/(2e))
        [2.0, 0.7746]
        """
        block = start // _BLOCK + 1
        inside = self.masses[start : block * _BLOCK]
        decay, _, both = self._factors
        ahead, lost = self._carried(self._blocks[block], block * _BLOCK - start)
        return float(inside @ decay[: len(inside)]) + ahead, float(inside @ both[: len(inside)]) + lost

    @cached_property
    def rounding(self) -> float:
        """What either sum may be wrong by, in units of 2^-53.

        A dot product errs by its length, carrying and the factors by less than six units a block: j blocks ahead by 6j
        of what is discounted by exp(-c·j·block), so by less than 6 for each block within 1/c.
        """
        blocks = 1 + min(1 / (self.c * self.step), len(self.masses)) / _BLOCK
        return (16 + _BLOCK + 6 * blocks) * float(np.abs(self.masses).sum())
