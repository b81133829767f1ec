r"""Linear queries with weights from 0 to 1, answered in whole numbers: what a score may safely be made of.

A score in floating point rounds by an amount that grows with the data, so its true sensitivity is larger than the
formula's. Here answers are whole multiples of 2^-30: weights are rounded to that once, publicly, and the sums are
exact however large the counts are. One record more or less then moves an answer by a weight, at most 1; so does one
record replaced by another, since weights w, w' in [0, 1] differ by at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import whole
from discreet.random import RngLike, as_rng
from discreet.workloads import AllRanges, Answers, Explicit, Identity, Marginals, Prefix, Product, Workload
from discreet.workloads.matrices import whole_product
from discreet.workloads.workload import Floats

__all__ = ["UNIT", "SyntheticCounts", "UnitQueries"]

BITS = 30
UNIT = 1 << BITS
"""The whole number that stands for 1."""

_COUNTING = (Identity, Prefix, AllRanges, Marginals)  # weights are 0 and 1; of their subclasses nothing is known
_DENSE = 1 << 25  # weights that are written out for a workload whose weights are not known by its kind
_SMALL = 2.0**31  # up to this many records sums stay below 2^62


@dataclass(frozen=True, eq=False)
class UnitQueries:
    """A workload whose weights lie in [0, 1]; any other is refused.

    >>> UnitQueries(Prefix(3)).exact(np.array([1, 0, 2])) // UNIT
    array([1, 1, 3])
    """

    workload: Workload

    def __post_init__(self) -> None:
        if not isinstance(self.workload, Workload):
            raise ValueError(f"workload is a {type(self.workload).__name__}, but must be one of discreet.workloads.")
        if self.rows is not None and not (self.rows.min() >= 0 and self.rows.max() <= UNIT):
            raise ValueError("The workload has weights outside [0, 1], but each record counts for at most 1: scale it.")

    @cached_property
    def rows(self) -> Floats | None:
        """The weights in units of 2^-30, written out; none where they are known to be 0 and 1."""
        w = self.workload
        if type(w) in _COUNTING or (type(w) is Product and all(type(f) in _COUNTING for f in w.factors)):
            return None
        return np.asarray(np.rint(dense(w) * UNIT))

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """Every answer on whole counts, in units of 2^-30: as int64 where that holds it, otherwise as Python's."""
        small = float(np.abs(x.astype(np.float64)).sum()) < _SMALL
        if self.rows is not None:
            found = whole_product(self.rows, x.reshape(-1))
            return found.astype(np.int64) if small else found
        return np.asarray(self.workload.apply(x if small else x.astype(object)) * UNIT)

    def near(self, x: Floats) -> NDArray[np.int64]:
        """Every answer on public doubles of at most 2^31 in sum, rounded to that unit."""
        return np.asarray(np.rint(self.workload.apply(x) * float(UNIT)), np.int64)


def dense(workload: Workload) -> Floats:
    """The weights of every query as rows; refused where they are too many to write out."""
    if isinstance(workload, Explicit):
        return workload.rows
    if workload.queries * workload.size > _DENSE:
        raise ValueError(
            f"The workload has {workload.queries:,} queries over {workload.size:,} cells, too many weights to write "
            f"out; at most {_DENSE:,} are."
        )
    return np.stack([workload.row(i).reshape(-1) for i in range(workload.queries)])


@dataclass(frozen=True, eq=False)
class SyntheticCounts(Answers):
    """A published histogram: ``estimate`` has what each cell holds, and every query may be answered from it, free."""

    def sample(self, n: int, rng: RngLike = None) -> NDArray[np.int64]:
        """``n`` records, each a cell's number, drawn with the shares of the cells.

        >>> SyntheticCounts(Identity(3), np.array([0.0, 5.0, 0.0])).sample(4).tolist()
        [1, 1, 1, 1]
        """
        sums = np.cumsum(self.estimate.reshape(-1))
        places = as_rng(rng).words(whole("n", n)) * (float(sums[-1]) * 2.0**-64)
        last = int(np.flatnonzero(self.estimate.reshape(-1))[-1])  # a place rounded up to the total is the last cell's
        return np.minimum(np.searchsorted(sums, places, side="right"), last)
