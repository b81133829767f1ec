"""A sum's outcomes on the whole lattice of :mod:`discreet.accounting.allocation_lattice`, contracted in one step.

A row of the lattice ends where the next, with points twice as far apart, begins. Outcomes that lie between points are
contracted across that boundary as anywhere else: rows contracted one by one would leave out mass at every row's ends.
"""

from __future__ import annotations

import numpy as np

from discreet.accounting.arrays import Array
from discreet.accounting.contraction import contract

__all__ = ["LatticeCells"]


class LatticeCells:
    """What lies at each point of a lattice, and on its left and right with first moments around it, in units."""

    def __init__(self, rows: int, columns: int, start: int) -> None:
        self.start = start
        self.at, self.left, self.left_moment, self.right, self.right_moment = np.zeros((5, rows, columns))
        even = [columns - (((start >> r) + columns) & 1) for r in range(rows)]
        self.ends = np.array([*even[:-1], columns])  # the first column of a row that is the next row's to hold
        self.firsts = np.array(
            [0, *(((start >> r) + end) // 2 - (start >> (r + 1)) for r, end in enumerate(even[:-1]))]
        )

    def place(self, r: int, masses: Array, first: int = 0, share: float = 0.0) -> None:
        """Masses of one row, from column ``first`` on, each so much of a column to the right."""
        masses, first = masses[max(0, -first) :], max(0, first)
        stay = max(0, int(self.ends[r]) - first)
        if share:
            self._place_between(r, masses[:stay], first, share)
        else:
            self.at[r, first : first + len(masses[:stay])] += masses[:stay]
        if r + 1 < len(self.at) and len(masses) > stay:
            skipped = first + stay - int(self.ends[r])
            moved = np.append(np.zeros(skipped), masses[stay:])
            after = int(self.firsts[r + 1])
            if share:
                self._place_between(r + 1, moved[::2], after, share / 2)
            else:
                self.at[r + 1, after : after + len(moved[::2])] += moved[::2][: self.at.shape[1] - after]
            self._place_between(r + 1, moved[1::2], after, (1 + share) / 2)

    def _place_between(self, r: int, masses: Array, first: int, share: float) -> None:
        """As shares of the points around each. Coarse outcomes among the finer points of another row are left out."""
        skipped = max(0, int(self.firsts[r]) - first)
        first, masses = first + skipped, masses[skipped : int(self.ends[r]) - first]
        if not len(masses):
            return
        last, width = first + len(masses), 2.0**r
        moment = width * share * (1 - share) * masses
        self.right[r, first:last] += (1 - share) * masses
        self.right_moment[r, first:last] += moment
        inside = min(last + 1, int(self.ends[r]))
        self.left[r, first + 1 : inside] += share * masses[: inside - first - 1]
        self.left_moment[r, first + 1 : inside] += moment[: inside - first - 1]
        if last == self.ends[r] and r + 1 < len(self.at):
            self.left[r + 1, self.firsts[r + 1]] += share * masses[-1]
            self.left_moment[r + 1, self.firsts[r + 1]] += moment[-1]

    def contract(self) -> Array:
        """The rows of a law below all that was placed."""
        rows, columns = self.at.shape
        inside = (np.arange(columns) >= self.firsts[:, None]) & (np.arange(columns) < self.ends[:, None])
        numbers = np.array(
            [2.0**r * ((self.start >> r) - self.start / 2.0**r + np.arange(columns)) for r in range(rows)]
        )
        parts = (self.at, self.left, self.left_moment, self.right, self.right_moment)
        result = np.where(inside, 0.0, self.at)  # coarse outcomes among the finer points of another row
        result[inside] = contract(numbers[inside], *(part[inside] for part in parts))
        return result
