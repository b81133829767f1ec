r"""Ranges and histograms that follow the data: first choose, privately, how coarse to look; then measure.

A histogram is cut in buckets of w neighbouring cells, whose totals are measured; within a bucket counts are taken to be
alike. Wide buckets need less noise, narrow ones have less bias, and which matters depends on the data. Let P x be x
with each bucket evened out and N(w) the (public) root-mean-square error that noise leaves in the answers. The error of
a width is

.. math:: u(w) = \sqrt{N(w)^2 + b(w)^2}, \qquad b(w)^2 \ge \frac{1}{q} \lVert W(x - Px) \rVert^2,

over the q queries W. b is a norm of x - P x, so one record moves u by no more than the norm that it has itself. With
c the running sums of x - P x, which are zero at the end of every bucket, and n cells:

====================  ===================  =========================
workload              b²                   a record's square, at most
====================  ===================  =========================
``Prefix``            Σ c² / n             (w - 1)(2w - 1) / 6wn
``AllRanges``         2 Σ c² / n           twice that
``Identity``          Σ (x - P x)² / n     (1 - 1/w) / n
====================  ===================  =========================

(The first: a record at an end of its bucket adds 0, 1/w, …, (w - 1)/w to the running sums there; one inside, less.)
That is a small part of a count, and the smaller the narrower buckets are: of single cells nothing is known that is not
public, of buckets of four little. So widths are compared in units of what a record moves the two of them by,

.. math:: s(w) = \max_v \frac{u(w) - u(v)}{\Delta(w) + \Delta(v)},

which one record moves by at most one (Raskhodnikova and Smith 2016), and permute-and-flip chooses the least of 1, 4,
16, … up to a 64th of the cells for a 25th of the budget: all that is lost where nothing is gained, but for a bad draw.

*Arithmetic.* u is computed in whole numbers, as ⌊2¹⁶ u⌋ by an integer root, and s as ⌊2²⁰ s⌋, so scores have no
rounding to pay for but that of the sensitivities, upwards.

Reference: Li, Hay, Miklau and Wang (2014) choose buckets of any width by noisy costs of each; here all have one width.

Decisions 330 and 331.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events
from discreet.errors import positive
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.mechanisms.permute_and_flip import PermuteAndFlip
from discreet.random import Rng, RngLike
from discreet.release import ONE_RECORD, Chargeable, Release, charged
from discreet.workloads.constrained_inference import Constraints
from discreet.workloads.query import Answers, Query
from discreet.workloads.ranges import AllRanges, Prefix
from discreet.workloads.strategy import check_histogram, counts
from discreet.workloads.workload import Identity, Workload

__all__ = ["Adaptive", "adaptive"]

CHOOSING = 0.04  # the share of the budget for the choice of a width
FINEST = 64  # buckets at least, so that a record moves the error of a width by little
_KEPT = 0.75  # about what is left of the noise's error when counts must not be negative
_PLACES, _UNIT = 16, 1 << 20  # binary places of an error; what a record moves a comparison by, at most
_HIGHEST = 1 << 52
_INSIDE = 1 - 2.0**-50  # parts, rounding included, add up to no more than the whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive(Mechanism[Answers]):
    """Answers ``Prefix``, ``AllRanges`` or ``Identity`` over cells in a row from buckets whose width it chooses.

    Guarantee: ``epsilon``-DP for add-remove: a choice, and what is left for what was chosen, both pure.
    Estimates are not negative. The error depends on the data, so none is stated.

    >>> operation = Adaptive(workload=AllRanges(1024), epsilon=0.1)
    >>> operation.widths, str(operation.event)
    ((1, 4, 16), 'PureDP(epsilon=0.1)')
    >>> len(operation.release(np.ones(1024, int), rng=1).value)
    524800
    """

    workload: Workload
    epsilon: float
    choice: PermuteAndFlip = field(init=False)
    queries: tuple[Query, ...] = field(init=False, repr=False)

    label = "adaptive workload"

    def __post_init__(self) -> None:
        if not isinstance(self.workload, (Prefix, AllRanges, Identity)) or len(self.workload.shape) != 1:
            raise ValueError(
                "workload must be Prefix, AllRanges or Identity over cells in a row: others are answered by answer()."
            )
        epsilon = positive("epsilon", self.epsilon)
        facts = Constraints(nonnegative=True)
        coarse = [type(self.workload)(-(-self.workload.size // width)) for width in self.widths]
        rest = epsilon * (1 - CHOOSING) * _INSIDE
        store(
            self,
            epsilon=epsilon,
            queries=tuple(Query(workload=w, epsilon=rest, constraints=facts) for w in coarse),
            choice=PermuteAndFlip(sensitivity=float(_UNIT), epsilon=epsilon * CHOOSING * _INSIDE),
        )

    @property
    def widths(self) -> tuple[int, ...]:
        """Those it chooses from."""
        most = max(self.workload.size // FINEST, 1)
        return tuple(1 << place for place in range(0, most.bit_length(), 2))

    @property
    def event(self) -> events.Event:
        """The choice, and all that is left, whatever that is spent on."""
        return events.PureDP(epsilon=self.epsilon)

    def check(self, data: Any) -> None:
        """A histogram over the workload's cells."""
        check_histogram(data, self.workload.shape)

    def draw(self, data: Any, rng: Rng) -> Answers:
        """Choose, measure, even out. The histogram holds whole counts; see ``counts`` for the rest."""
        x = counts(data, self.workload.shape)
        place = self.choice.draw([float(score) for score in self.scores_of_widths(x)], rng)
        width, query = self.widths[place], self.queries[place]
        starts = np.arange(0, x.size, width)
        found = query.draw(np.add.reduceat(x.astype(object), starts), rng).estimate
        sizes = np.diff(np.append(starts, x.size))
        return Answers(self.workload, np.repeat(found / sizes, sizes))

    def scores_of_widths(self, x: NDArray[Any]) -> list[int]:
        """-⌊2²⁰ s⌋ of each width: private, and moved by one record by at most the choice's sensitivity."""
        errors = [self.score(x, place) for place in range(len(self.widths))]
        moved = [self.reach(place) for place in range(len(self.widths))]

        def worst(one: int) -> int:
            others = [other for other in range(len(errors)) if other != one]
            gaps = [(errors[one] - errors[other]) * _UNIT // (moved[one] + moved[other]) for other in others]
            return max(-_HIGHEST, min(_HIGHEST, max(gaps, default=0)))

        return [-worst(place) for place in range(len(errors))]

    def reach(self, place: int) -> int:
        """What one record moves the score of a width by, at most; that of single cells by nothing."""
        return 0 if self.widths[place] == 1 else _above(self._squared_sensitivity(self.widths[place]))

    def score(self, x: NDArray[Any], place: int) -> int:
        """⌊2¹⁶ u⌋ of a width: private, and moved by one record by at most ``reach``."""
        width = self.widths[place]
        noise = _KEPT * self.queries[place].rmse / (width if isinstance(self.workload, Identity) else 1)
        square = Fraction(noise) ** 2 + self._factor * self._bias(x.astype(object), width)
        return min(math.isqrt(math.floor(square * (1 << 2 * _PLACES))), _HIGHEST)

    @property
    def _factor(self) -> Fraction:
        return Fraction(2 if isinstance(self.workload, AllRanges) else 1, self.workload.size)

    def _bias(self, x: NDArray[Any], width: int) -> Fraction:
        """Σ c², or Σ (x - P x)² for cells, exactly; the last bucket may be shorter."""
        full = x.size - x.size % width
        parts = [x[:full].reshape(-1, width), x[full:].reshape(1, -1)]
        return sum((self._uneven(part) for part in parts if part.size), Fraction(0))

    def _uneven(self, buckets: NDArray[Any]) -> Fraction:
        width = buckets.shape[1]
        apart = width * buckets - buckets.sum(axis=1, keepdims=True)
        if not isinstance(self.workload, Identity):
            apart = np.cumsum(apart, axis=1)
        return Fraction(int((apart * apart).sum()), width * width)

    def _squared_sensitivity(self, width: int) -> Fraction:
        """The square of what one record moves u by, at most."""
        if isinstance(self.workload, Identity):
            return self._factor * Fraction(width - 1, width)
        return self._factor * Fraction((width - 1) * (2 * width - 1), 6 * width)


def _above(square: Fraction) -> int:
    """2¹⁶ times a root, rounded up: what floors of numbers that far apart differ by, at most."""
    return math.isqrt(math.floor(square * (1 << 2 * _PLACES))) + 1


def adaptive(
    workload: Workload,
    histogram: Any,
    *,
    epsilon: float,
    unit: str = ONE_RECORD,
    book: Chargeable | None = None,
    label: str = "adaptive workload",
    rng: RngLike = None,
) -> Release[Answers]:
    """Private answers to ranges, prefixes or cells, from buckets as wide as suits the data: see ``Adaptive``.

    It pays where records are few for the budget, or where counts change slowly; where nothing is gained it is as good
    as ``answer``, but for a 25th of the budget.

    >>> release = adaptive(Prefix(256), np.arange(256), epsilon=1.0, rng=1)
    >>> bool((np.diff(np.asarray(release.value)) >= 0).all())
    True
    """
    return charged(Adaptive(workload=workload, epsilon=epsilon, unit=unit), histogram, book=book, label=label, rng=rng)
