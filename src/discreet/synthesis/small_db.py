r"""SmallDB: a data set of a few records, chosen by the exponential mechanism from all of them.

Decision 362.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field
from itertools import chain, combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adjacency import Adjacency
from discreet.errors import number, whole
from discreet.events import Event
from discreet.mechanisms import Exponential
from discreet.mechanisms.budget import Budget
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.random import Rng
from discreet.synthesis.linear_queries import UNIT, SyntheticCounts, UnitQueries, dense
from discreet.workloads import Workload
from discreet.workloads.strategy import check_histogram, counts

__all__ = ["MOST_CANDIDATES", "SmallDB", "records_for"]

MOST_CANDIDATES = 1 << 20
_MOST_COUNTS = 1 << 27  # candidates × cells, and
_MOST_ANSWERS = 1 << 31  # candidates × queries: some ten seconds
_CHUNK = 1 << 13


def records_for(queries: int, alpha: float) -> int:
    r"""How many records suffice for every query of some data set to be within ``alpha``: ⌊ln(2|Q|)/2α²⌋ + 1.

    Draw m records of the data set at random. By Hoeffding, a share is more than α off with probability at most
    2 exp(-2mα²); with this m the sum over all queries is below 1, so that some m records are good for all of them.

    >>> records_for(2, 0.5), records_for(100, 0.1)
    (3, 265)
    """
    alpha = number("alpha", alpha, low=0, high=1, open_low=True)
    return math.floor(math.log(2 * queries) / (2 * alpha**2)) + 1


def _log10_multisets(cells: int, m: int) -> float:
    """The logarithm of the number of multisets of m from so many cells; of a smaller one where both are beyond 10⁶."""
    fewer = min(m, cells - 1, 10**6)
    steps = np.arange(1, fewer + 1)
    return float(np.log10((float(cells + m - 1 - fewer) + steps) / steps).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallDB(Mechanism[SyntheticCounts]):
    r"""Publishes m records y on which every query of ``workload`` has nearly the share it has on the n private ones x.

    All multisets of m = ⌊ln(2|Q|)/2α²⌋ + 1 records (``records_for``) are scored, and one is chosen by the exponential
    mechanism, sampled exactly. Queries are the workload's, with weights in [0, 1]; q(y) is the mean over y:

    .. math:: u(x, y) = -\max_q \Bigl| \sum_{i=1}^{n} \bigl(q(x_i) - q(y)\bigr) \Bigr|

    Guarantee: the sensitivity of u is 1, under add-remove and under replace. A record r more adds the term q(r) - q(y),
    which lies in [-1, 1], to every sum; a record r replaced by s moves every sum by q(s) - q(r), in [-1, 1]; a maximum
    of absolute values moves by no more than its arguments. The sum over the records that *are* there is used, so n
    needs not be known, and neighbours may differ in it. Scores are computed in whole numbers, without rounding.

    Error, for a declared ``n``: with probability 1 - β the chosen records have, on every query,

    .. math:: |q(x) - q(y)| \le \alpha + \frac{2}{\epsilon n} \ln\frac{|T|}{\beta}, \qquad |T| = \binom{|X| + m - 1}{m}.

    Where n is not known, the records and their shares are published just the same; only the theorem, and counts in
    place of shares, need it. A wrong ``n`` makes the theorem wrong, never the guarantee.

    All candidates are enumerated: above 2^20 of them (fewer, where cells or queries are many) it is refused with their
    number, when it is built. Reference: Blum, Ligett and Roth (2008); Dwork and Roth (2014), Section 4.1.

    >>> from discreet.workloads import Prefix
    >>> small = SmallDB(workload=Prefix(4), alpha=0.3, epsilon=1.0, n=1000)
    >>> small.records, small.candidates, round(small.error(0.95), 3)     # in shares, before anything is read
    (12, 455, 0.318)
    >>> release = small.release([500, 300, 150, 50], rng=1)
    >>> float(release.value.estimate.sum())                                 # 12 records stand for 1000
    1000.0
    """

    workload: Workload
    alpha: float
    epsilon: InitVar[float | None] = None
    delta: InitVar[float | None] = None
    rho: InitVar[float | None] = None
    n: int | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    mechanism: Exponential = field(init=False)

    label = "small data set"

    def __post_init__(self, epsilon: float | None, delta: float | None, rho: float | None) -> None:
        adjacency = Adjacency(self.adjacency)
        UnitQueries(self.workload)
        if self.n is not None:
            whole("n", self.n, low=1, high=1 << 62)
        m, cells, queries = self.records, self.workload.size, self.workload.queries
        digits = _log10_multisets(cells, m)  # the number itself may be too long to be written
        most = min(MOST_CANDIDATES, _MOST_COUNTS // cells, _MOST_ANSWERS // queries)
        if digits > 18 or self.candidates > most or m > MOST_CANDIDATES:  # the last where there is one cell
            raise ValueError(
                f"There are {f'10^{digits:.1f}' if digits > 18 else f'{self.candidates:,}'} data sets of {m:,} records "
                f"over {cells:,} cells, to be scored on {queries:,} queries each, but at most {most:,} of them are "
                "enumerated. Raise alpha, merge cells, or take MWEM."
            )
        scale = float(m * UNIT)  # scores are whole multiples of 1/scale
        chooser = Exponential(sensitivity=scale, epsilon=Budget(epsilon, delta, rho).selection(), adjacency=adjacency)
        store(self, alpha=float(self.alpha), adjacency=adjacency, mechanism=chooser)

    @property
    def records(self) -> int:
        """m, the number of records that are published."""
        return records_for(self.workload.queries, self.alpha)

    @property
    def candidates(self) -> int:
        """|T|, the number of multisets of m records."""
        m = self.records
        return math.comb(self.workload.size + m - 1, m)

    @property
    def event(self) -> Event:
        """The cost."""
        return self.mechanism.event

    def error(self, confidence: float = 0.95, *, n: int | None = None) -> float:
        """The theorem: what |q(x) - q(y)|, a difference of shares, stays within for all queries, for a declared n."""
        n = self.n if n is None else whole("n", n, low=1)
        if n is None:
            raise ValueError("n is not declared, but the theorem is about a known number of records: give n=.")
        below_best = self.mechanism.error(confidence, size=self.candidates) / (self.records * UNIT)
        return self.alpha + below_best / n + 2 / UNIT  # the last for weights that were rounded

    @property
    def stated_error(self) -> float | None:
        """The theorem's error of an answer in records, with 95 % confidence; none where n is not declared."""
        return None if self.n is None else self.error() * self.n

    def check(self, data: Any) -> None:
        """A histogram over the workload's cells."""
        check_histogram(data, self.workload.shape)

    def draw(self, data: Any, rng: Rng) -> SyntheticCounts:
        """The chosen records as a histogram of the workload's shape, that sums to ``n``, or else to 1."""
        chosen = self.mechanism.draw(self.scores(data), rng)
        found = self._histograms([next(islice(self._bars(), chosen, None))]).reshape(self.workload.shape)
        return SyntheticCounts(self.workload, found * ((1 if self.n is None else self.n) / self.records))

    def scores(self, data: Any) -> NDArray[Any]:
        """u of every candidate, times m·2^30: private."""
        x, m = counts(data, self.workload.shape), self.records
        exact = UnitQueries(self.workload).exact(x).astype(object) * m
        n = sum(int(v) for v in x.reshape(-1))
        most = max(abs(n) * m * UNIT, max(abs(int(v)) for v in exact))
        kind: Any = np.int64 if most < 1 << 61 else object
        rows, target = np.rint(dense(self.workload) * UNIT), exact.astype(kind)
        found = []
        for block in self._blocks():
            held = (block @ rows.T).astype(np.int64).astype(kind)  # whole doubles below 2^53: exact
            found.append(-np.abs(target - held * n).max(axis=1))
        return np.concatenate(found)

    def _bars(self) -> Iterator[tuple[int, ...]]:
        """Every candidate, as the places of the bars that part m stars into cells."""
        return combinations(range(self.records + self.workload.size - 1), self.workload.size - 1)

    def _histograms(self, bars: list[tuple[int, ...]]) -> NDArray[np.float64]:
        """The stars between the bars."""
        cells = self.workload.size
        inner = np.fromiter(chain.from_iterable(bars), np.float64).reshape(len(bars), cells - 1)
        return np.diff(inner, axis=1, prepend=-1.0, append=self.records + cells - 1.0) - 1

    def _blocks(self) -> Iterator[NDArray[np.float64]]:
        """The candidates as histograms, some at a time."""
        every = self._bars()
        while part := list(islice(every, _CHUNK)):
            yield self._histograms(part)
