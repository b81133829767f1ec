r"""Laws of sums of independent positive numbers, from above and from below in convex order.

A law X is below Y in convex order when E f(X) ≤ E f(Y) for every convex f. Two operations move a law to other points:
a *spread* splits the mass at x between a point on its left and one on its right so that the mean stays, which can only
raise E f; a *contraction* merges masses at their common mean, which can only lower it (Jensen). Both orders survive the
addition of independent terms, because E f(x + Z) is convex in x. So a sum whose terms and partial sums are spread onto
a lattice bounds E f of the true sum from above for all convex f at once, and one that is contracted from below.

The lattice is that of floating-point numbers with a few bits: ``resolution`` points a unit apart from the offset on,
half as many again two units apart, four, and so on (:class:`Blocks`). It is fine where the sum lives and coarse where a
single large term decides, so it spans ratios from 1e-20 to 1e20 in some dozens of blocks. Adding two laws is a
convolution a block; an outcome that falls off a block's fine points is spread, or contracted, onto the next block's.

Where the masses are wrong they are wrong to one side: every mass of an upper law is at least, and every mass of a lower
law at most, what exact arithmetic would give. Convex functions that are not negative, as are those a delta is made of,
then keep their order. What is left out altogether is counted (``Blocks.lost``, ``Blocks.lost_mean``).

References: Shaked and Shanthikumar (2007), Section 3.A, for the order; Brent, Percival and Zimmermann (2007), Theorem
5.1, for the error of a convolution by Fourier transforms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy import fft

from discreet.accounting.allocation_balance import balance, moments
from discreet.accounting.allocation_cells import LatticeCells
from discreet.accounting.allocation_chernoff import lower_tail
from discreet.accounting.arrays import Array
from discreet.accounting.contraction import contract
from discreet.errors import NotCertified

__all__ = ["Blocks", "power"]

Moments: TypeAlias = tuple[np.longdouble, np.longdouble]

_UNIT = 2.0**-53
_MOST_ROWS = 400
_RARE = 1e-10  # of the mean: what one term this large has, to which all others may be added by their mean
_LITTLE = 1e-12  # of a row, which is added at the mean
_FEW = 8  # columns of a row that are merged at one point before they are halved


@dataclass(frozen=True)
class Blocks:
    """Masses at ``unit·2^r·(start//2^r + k)``, in row r and column k of ``masses``: a row's points are twice as far
    apart as those of the row before.

    ``above`` says which side the law is on; ``exact`` takes convolutions as plain sums, whose errors are relative, in
    place of transforms, whose errors are relative to a whole row. Mass below ``cut`` at either end is left out.
    """

    unit: float
    start: int
    masses: Array
    above: bool
    exact: bool
    cut: float
    mean: float
    lost: float = 0.0
    lost_mean: float = 0.0
    known: Moments | None = None  # mass and first moment, where the masses were made to have them

    @cached_property
    def _numbers(self) -> Array:
        """Where the masses are, in units and in the rows' shape."""
        rows, columns = self.masses.shape
        widths = 2.0 ** np.arange(rows)
        firsts = np.array([float((self.start >> r) << r) for r in range(rows)])
        return np.asarray(firsts[:, None] + widths[:, None] * np.arange(columns))

    @property
    def _occupied(self) -> tuple[Array, Array, Array]:
        """Numbers of the points that have mass, their masses and rows, in increasing order."""
        rows, columns = np.nonzero(self.masses > 0)
        numbers = self._numbers[rows, columns]
        order = np.argsort(numbers, kind="stable")
        return numbers[order], self.masses[rows, columns][order], rows[order]

    def atoms(self) -> tuple[Array, Array]:
        """The points that have mass, in increasing order, and their masses."""
        numbers, masses, _ = self._occupied
        points, index = np.unique(numbers, return_inverse=True)
        return self.unit * points, np.bincount(index, weights=masses)

    def __add__(self, other: Blocks) -> Blocks:
        """The law of the sum of two independent numbers."""
        unit = max(self.unit, other.unit)
        x = self._with_unit(unit)
        y = x if other is self else other._with_unit(unit)
        rows = max(len(x.masses), len(y.masses))
        a, b = _with_rows(x.masses, rows), _with_rows(y.masses, rows)
        if x is y:
            below, small = x._below(a, x._shares)
            sums, merged = self._convolve(a, a + 2 * below), [(2 * a, *small)]
        else:
            below_x, small_x = x._below(a, y._shares)
            below_y, small_y = y._below(b, x._shares)
            sums = self._convolve(a, b + below_y) + self._convolve(b, below_x)
            merged = [(a, *small_y), (b, *small_x)]
        total = replace(
            self,
            unit=unit,
            start=x.start + y.start,
            masses=self._gather(sums, x.start, y.start)
            if self.above
            else _contract_sums(sums, merged, x.start, y.start),
            mean=x.mean + y.mean,
            known=None,
            lost=x.lost + y.lost,
            lost_mean=x.lost_mean + x.lost * y.mean + y.lost_mean + y.lost * x.mean,
        )
        if self.above and not self.exact:
            laws = [(law._numbers, law.masses) for law in ((x,) if x is y else (x, y))]
            total = replace(total, masses=np.minimum(total.masses, lower_tail(laws, total._numbers)))
        (mass_x, moment_x), (mass_y, moment_y) = x._moments, y._moments
        return total.balanced(mass_x * mass_y, mass_x * moment_y + moment_x * mass_y)._trimmed()

    @property
    def _shares(self) -> list[float]:
        """Of the mean, what each row and those after it have."""
        weights = (self.masses * self._numbers).sum(axis=1)[::-1]
        return [float(share) for share in self.unit * np.cumsum(weights)[::-1] / self.mean]

    def balanced(self, mass: np.longdouble, moment: np.longdouble) -> Blocks:
        """The law with that mass and first moment."""
        masses = balance(self._numbers, self.masses, mass, moment / self.unit)
        return replace(self, masses=masses, known=None if masses is self.masses else (mass, moment))

    @property
    def _moments(self) -> Moments:
        """Mass and first moment."""
        if self.known is not None:
            return self.known
        mass, moment = moments(self._numbers, self.masses)
        return mass, moment * self.unit

    def _below(self, rows: Array, shares: list[float]) -> tuple[Array, tuple[Array, Array]]:
        """All mass of the rows before each, on its points; and what is merged at one point, as masses and columns.

        The law of what is small against a row's spacing cannot be contracted onto its few first points: it is merged at
        its mean, wherever that is; and so is everything where what it is added to has little of the mean there and in
        all later rows: ``shares``.
        """
        result, (mass, weight) = np.zeros_like(rows), (np.zeros(len(rows)), np.zeros(len(rows)))
        for r in range(1, len(rows)):
            row = result[r - 1] + rows[r - 1]
            first = self.start >> (r - 1)
            if self.above:
                halved, at = self._halved(row, first), 0
            else:
                few, halved = _merge_few(row, first) if r < len(shares) and shares[r] > _RARE else (row, row[:0])
                mass[r] = mass[r - 1] + few.sum()
                weight[r] = weight[r - 1] / 2 + (few @ (first + np.arange(len(few)))) / 2
                at = (first + len(few)) // 2 - (self.start >> r)
            result[r, at : at + len(halved)] = halved
        columns = weight / np.where(mass > 0, mass, 1.0) - [self.start >> r for r in range(len(rows))]
        return result, (mass, np.maximum(columns, 0.0))

    def _convolve(self, a: Array, b: Array) -> Array:
        """Row by row: sums of two terms of which the one in the higher row is in row r, on that row's points."""
        columns = a.shape[1]
        if self.exact:
            result = np.array([_convolve_exactly(x, y) for x, y in zip(a, b, strict=True)])
            relative = 2 * _UNIT * (columns + 8)
            return np.asarray(result * (1 + relative if self.above else 1 - relative))
        size = 2 * columns
        result = fft.irfft(fft.rfft(a, size) * fft.rfft(b, size), size)
        norms = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))[:, None]
        error = 13 * _UNIT * (math.log2(size) + 2) * norms
        result = np.maximum(result + error if self.above else result - error, 0.0)
        return np.where(_support(a, b), result, 0.0)

    def _gather(self, sums: Array, *starts: int) -> Array:
        """The rows of a sum: what is beyond a row's end moves to the next."""
        rows, columns = len(sums), sums.shape[1] // 2
        start = sum(starts)
        result = np.zeros((rows + 1, columns))
        for r in range(rows):
            carry = (start >> r) - sum(each >> r for each in starts)
            row = sums[r, carry:]
            stay = columns - (((start >> r) + columns) & 1)
            result[r, :stay] += row[:stay]
            moved = self._halved(row[stay:], 0)[: columns // 2 + 1]
            first = ((start >> r) + stay) // 2 - (start >> (r + 1))
            result[r + 1, first : first + len(moved)] += moved[: columns - first]
        return result

    def _halved(self, masses: Array, first: int) -> Array:
        """On points twice as far apart; ``first`` is the number of the first point, which may be odd."""
        masses = np.append(0.0, masses) if first & 1 else masses
        masses = np.append(masses, 0.0) if len(masses) & 1 else masses
        return _spread(masses)[: self.masses.shape[1]]

    def _with_unit(self, unit: float) -> Blocks:
        law = self
        while law.unit < unit:
            rows = _with_rows(law.masses, max(2, len(law.masses)))[1:].copy()
            if self.above:
                halved = law._halved(law.masses[0], law.start)
                rows[0, : len(halved)] += halved
            else:
                rows = _contract_first(law.masses[0], rows, law.start)
            law = replace(law, unit=2 * law.unit, start=law.start >> 1, masses=rows, known=None)
        return law

    def _trimmed(self) -> Blocks:
        """Without the ends where next to nothing lies; the start moves up, so that fine points are where mass is."""
        law = self._without_top()._without_bottom()._on_finest_rows()
        if len(law.masses) > _MOST_ROWS:
            raise NotCertified(f"a sum of ratios spans more than {_MOST_ROWS} octaves.")
        return law

    def _without_top(self) -> Blocks:
        totals = self.masses.sum(axis=1)
        weights = self.unit * (self.masses * self._numbers).sum(axis=1)
        beyond = np.cumsum(weights[::-1])[::-1]
        rows = max(1, int((beyond > self.cut * self.mean).sum()))
        return self._without(self.masses[:rows], float(totals[rows:].sum()), float(weights[rows:].sum()))

    def _without_bottom(self) -> Blocks:
        numbers, masses, rows = self._occupied
        if not len(masses):
            raise NotCertified("nothing of a sum of ratios is left.")
        first = min(int(np.searchsorted(np.cumsum(masses), self.cut)), len(masses) - 1)
        base, places = int(rows[first:].min()), self._numbers
        start = max(int(numbers[first]), self.start) >> base  # a coarse row begins before the start
        fresh, lost = np.zeros_like(self.masses[base:]), float(self.masses[:base].sum())
        lost_mean = self.unit * float((self.masses[:base] * places[:base]).sum())
        for r, row in enumerate(self.masses[base:]):
            origin, kept = start >> r, -(-start >> r)  # the row's first point, and the first not before the start
            gone = min(kept - (self.start >> (base + r)), len(row))
            lost += float(row[:gone].sum())
            lost_mean += self.unit * float(row[:gone] @ places[base + r, :gone])
            fresh[r, kept - origin : kept - origin + len(row) - gone] = row[gone:]
        return replace(self._without(fresh, lost, lost_mean), unit=self.unit * 2.0**base, start=start)

    def _on_finest_rows(self) -> Blocks:
        """The same law, with what a row has among the points of the row before it there."""
        masses, columns = self.masses.copy(), self.masses.shape[1]
        for r in range(len(masses) - 1, 0, -1):
            odd = (self.start >> (r - 1)) & 1
            stop = (columns - (((self.start >> (r - 1)) + columns) & 1) + odd) // 2
            masses[r - 1, odd : 2 * stop - odd : 2] += masses[r, odd:stop]
            masses[r, odd:stop] = 0.0
        return replace(self, masses=masses)

    def _without(self, masses: Array, lost: float, lost_mean: float) -> Blocks:
        known = self.known
        if known is not None and self.above:  # from below, what is left out may lie at the mean instead
            known = known[0] - lost, known[1] - lost_mean
        return replace(
            self,
            known=known,
            masses=masses,
            lost=self.lost + lost * (1 + 1e-12),
            lost_mean=self.lost_mean + lost_mean * (1 + 1e-12),
        )


def power(law: Blocks, count: int) -> Blocks:
    """The law of the sum of ``count`` independent copies, by doubling."""
    total: Blocks | None = None
    while True:
        if count & 1:
            total = law if total is None else total + law
        count >>= 1
        if not count:
            assert total is not None
            return total
        law = law + law


def _support(a: Array, b: Array) -> Array:
    """Where the convolution of two rows can have mass: from the sum of their first points to that of their last."""
    first, last = (a > 0).argmax(axis=1) + (b > 0).argmax(axis=1), 2 * a.shape[1] - 2
    last = last - (a > 0)[:, ::-1].argmax(axis=1) - (b > 0)[:, ::-1].argmax(axis=1)
    columns = np.arange(2 * a.shape[1])
    return np.asarray((columns >= first[:, None]) & (columns <= last[:, None]))


def _with_rows(masses: Array, rows: int) -> Array:
    return masses if len(masses) == rows else np.vstack([masses, np.zeros((rows - len(masses), masses.shape[1]))])


def _convolve_exactly(a: Array, b: Array) -> Array:
    """Both without the zeros at their ends, into a row of twice the length."""
    result = np.zeros(2 * len(a))
    (left,), (right,) = a.nonzero(), b.nonzero()
    if len(left) and len(right):
        first, second = a[left[0] : left[-1] + 1], b[right[0] : right[-1] + 1]
        start = left[0] + right[0]
        result[start : start + len(first) + len(second) - 1] = np.convolve(first, second)
    return result


def _spread(masses: Array) -> Array:
    """From points one apart to points two apart: what lies between two of them goes to both."""
    half = masses[1::2] / 2
    result = np.append(masses[::2], 0.0)
    result[:-1] += half
    result[1:] += half
    return result


def _merge_few(row: Array, first: int) -> tuple[Array, Array]:
    """The masses of the first columns, which are merged at one point, and all others on points two apart.

    ``_FEW`` are merged, or more where the law lies on so few points that a contraction of the others leaves some out:
    whichever leaves out less mass, and less variance against the square of a row's length.
    """
    choices = []
    for count in (_FEW, 4 * _FEW, 16 * _FEW):
        count += (first + count) & 1  # so that the first of the others is at one of the next row's points
        few, lent = row[:count].copy(), min(row[count - 1], row[count + 1] / 2)
        few[-1] -= lent
        others, columns = _contract(row[count:], lent), np.arange(count)
        mean = (few @ columns) / max(float(few.sum()), 1e-300)
        left_out = 1 - (few.sum() + others.sum()) / max(float(row.sum()), 1e-300)
        choices.append((left_out + few @ (columns - mean) ** 2 / len(row) ** 2, count, few, others))
        if left_out <= _LITTLE:
            break
    return min(choices, key=lambda choice: choice[:2])[2:]


def _contract(masses: Array, lent: float) -> Array:
    """From points one apart to points two apart, which the first is one of: half of an odd point's mass is for either
    neighbour; ``lent`` is what there is before the first point to balance the second.
    """
    masses = np.append(masses, 0.0) if len(masses) & 1 else masses
    half = masses[1::2] / 2
    even, left, right = np.append(masses[::2], 0.0), np.append(lent, half), np.append(half, 0.0)
    return contract(np.arange(len(even), dtype=float), even, left, left / 2, right, right / 2)


def _contract_sums(sums: Array, merged: list[tuple[Array, Array, Array]], *starts: int) -> Array:
    """The rows of a sum from below: outcomes on each row's points, and rows times a mass that is merged at one column,
    of which there need be no whole number.
    """
    cells = LatticeCells(len(sums) + 1, sums.shape[1] // 2, sum(starts))
    for r, row in enumerate(sums):
        carry = (sum(starts) >> r) - sum(each >> r for each in starts)
        cells.place(r, row[carry:])
        for rows, masses, columns in merged:
            if masses[r] > 0:
                whole = math.floor(columns[r])
                cells.place(r, masses[r] * rows[r], whole - carry, float(columns[r]) - whole)
    return cells.contract()


def _contract_first(first: Array, others: Array, start: int) -> Array:
    """The other rows with the first one on their points."""
    cells = LatticeCells(len(others), others.shape[1], start >> 1)
    for r, row in enumerate(others):
        cells.place(r, row)
    odd = start & 1
    cells.place(0, first[odd::2], odd)
    cells.place(0, first[1 - odd :: 2], 0, 0.5)
    return cells.contract()
