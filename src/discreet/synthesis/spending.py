r"""What a fit measures, and the filter that every measurement passes.

All noise is Gaussian. A measurement at ρ has noise multiplier 1/√(2ρ); which ones are made, and at which ρ, may depend
on earlier noisy answers, as long as Σρ stays within the budget: then all of them together cost no more than one
Gaussian release with multiplier 1/√(2 Σρ) (Smith and Thakurta 2022, fully adaptive composition for Gaussian
differential privacy). ``Spending`` refuses the measurement that would pass it, so no course of a fit can cost more than
its event.

Sensitivities, in L2, for one record more or less, and for one exchanged for another:

==================  ================================================  =================================================
measured            add-remove                                        replace
==================  ================================================  =================================================
counts of numbers   1: one part of a depth by one                     √2: two parts by one each
residual of R       √Π d(d - 1): ``counting.whole_residual``          ``counting.difference_square``
k errors            √k: ‖M_c(D) - M_c(model)‖₁ moves by at most one   2√k: it moves by at most two
                    for each c, since the model is made of noisy
                    counts, its total included
==================  ================================================  =================================================

Counts and residuals are whole numbers, errors are multiples of 2^-10 below 2^42: all are computed without rounding, so
that the sensitivities hold for what is computed and not for what was meant.

A unit of several rows, whose whole weights add up to at most ``one`` (a power of two), moves counts in units of 1/one
by no more than a record: its change is the mean, by weight, of the changes of records that lie where its rows lie,
less what is missing of ``one``, and norms are convex. Of an exchange the two ends are such means, and the distance of
two means is at most the largest distance of two of their terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.adjacency import Adjacency, changed_records
from discreet.errors import BudgetExceeded
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.grid import double_root_above
from discreet.random import Streams
from discreet.synthesis.counting import (
    Codes,
    Columns,
    WeightedCodes,
    counts,
    difference_square,
    project_residual,
    whole_residual,
    whole_weight,
)

__all__ = ["Spending", "error_of"]

Floats = NDArray[np.float64]
FINEST = 1024  # model counts are compared in steps of 1/FINEST of a record


@dataclass
class Spending:
    """A budget of zCDP, spent by Gaussian noise; ``part`` says which part of a run's it is, if it is one."""

    rho: float
    adjacency: Adjacency
    streams: Streams
    spent: float = 0.0
    draws: int = field(default=0, repr=False)
    part: tuple[int, ...] = ()

    @property
    def left(self) -> float:
        """What may still be spent."""
        return self.rho - self.spent

    def take(self, rho: float) -> Spending:
        """A part of what is left, with noise of its own."""
        self._pay(rho)
        return Spending(rho, self.adjacency, self.streams, part=(*self.part, self.draws))

    def counts(self, exact: NDArray[np.int64], rho: float, one: int = 1) -> Floats:
        """Noisy counts of cells, of which a record, of weight ``one``, is in one at most."""
        return self._noisy(exact, Fraction((2 if self._replaced else 1) * one**2), rho) / one

    def deviation(self, rho: float) -> float:
        """The standard deviation of the noise on such a count."""
        return math.sqrt((2 if self._replaced else 1) / (2 * rho))

    def residual(
        self, codes: Codes | WeightedCodes, columns: Columns, sizes: Sequence[int], rho: float
    ) -> tuple[Floats, float]:
        """The noisy residual of a set of columns, and the standard deviation of the noise on each cell's count."""
        shape, one = tuple(sizes[i] for i in columns), whole_weight(codes)
        square = difference_square(shape)[self._replaced]
        noisy = self._noisy(whole_residual(counts(codes, columns, sizes)), Fraction(square * one**2), rho)
        return project_residual(noisy / one), math.sqrt(square / (2 * rho)) / math.prod(shape)

    def errors(self, exact: Sequence[float], rho: float) -> Floats:
        """Noisy L1 errors of a model whose own counts are public."""
        return self._noisy(np.array(exact), Fraction((4 if self._replaced else 1) * len(exact)), rho)

    @property
    def _replaced(self) -> bool:
        return changed_records(self.adjacency) == 2

    def _pay(self, rho: float) -> None:
        if not rho > 0 or self.spent + rho > self.rho * (1 + 2.0**-44):  # so far does summing up round
            raise BudgetExceeded("A measurement would cost more than the fit was charged. This is a bug.")
        self.spent += rho
        self.draws += 1

    def _noisy(self, exact: NDArray[np.float64] | NDArray[np.int64], square: Fraction, rho: float) -> Floats:
        self._pay(rho)
        mechanism = Gaussian(
            sensitivity=double_root_above(square),
            rho=rho * (1 - 2.0**-40),
            max_size=max(exact.size, 1),
            adjacency=self.adjacency,
        )
        values = exact if exact.ndim else exact.reshape(1)
        return np.asarray(mechanism.draw(values, self.streams.noise(*self.part, self.draws))).reshape(exact.shape)


def error_of(codes: Codes | WeightedCodes, columns: Columns, sizes: Sequence[int], model: Floats) -> float:
    """‖M_c(D) - model‖₁, exactly: the model's counts are rounded to multiples of 1/FINEST first.

    Every term is such a multiple, and their sum stays below 2^53 of them for up to 2^42 records; of weighted rows,
    multiples of 1/(FINEST one) and 2^42/one units.
    """
    steps, one = np.rint(model * FINEST).astype(np.int64), whole_weight(codes)
    return float(np.abs(counts(codes, columns, sizes) * FINEST - steps * one).sum()) / (FINEST * one)
