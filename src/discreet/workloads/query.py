"""Answering a workload: what it costs and how wrong it will be are known before the histogram is read."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adjacency import Adjacency
from discreet.errors import number
from discreet.events import Event
from discreet.mechanisms import Gaussian
from discreet.mechanisms.budget import AdditiveMechanism, Budget
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.random import Rng, RngLike
from discreet.release import ONE_RECORD, Chargeable, Release, charged
from discreet.workloads.constrained_inference import Constraints, Monotone, check
from discreet.workloads.measurement import Measure, infer
from discreet.workloads.selection import Noise, optimise
from discreet.workloads.strategy import Strategy
from discreet.workloads.workload import Floats, Workload

__all__ = ["Answers", "Query", "answer"]


@dataclass(frozen=True, eq=False)
class Answers:
    """Noisy answers to a workload, all from one ``estimate`` of the histogram, so that their sums agree.

    ``numpy.asarray`` gives every answer in the order of the workload; ``to`` answers other queries, at no further cost.
    """

    workload: Workload
    estimate: Floats

    def __len__(self) -> int:
        return self.workload.queries

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.workload.apply(self.estimate), dtype=dtype)

    def to(self, workload: Workload) -> Answers:
        """Answers to another workload over the same cells: post-processing."""
        if workload.shape != self.workload.shape:
            raise ValueError(
                f"The other workload is over cells of shape {workload.shape}, but these are over {self.workload.shape}."
            )
        return Answers(workload, self.estimate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Mechanism[Answers]):
    r"""Measures ``strategy`` on a histogram with noise and infers the answers to ``workload`` by least squares.

    Ask for ``epsilon=`` (Laplace noise), ``epsilon=`` and ``delta=``, or ``rho=`` (Gaussian). One record (or ``unit``,
    on the caller's word) is one count in one cell. Without a strategy, the optimised one for the noise is taken.

    Guarantee: that of the mechanism at the strategy's sensitivity, rounding included (proof in ``workloads.strategy``).
    Error: unbiased without constraints; expected total squared error tr(WᵀW (AᵀA)⁻¹) × the noise's variance.
    Reference: Li, Miklau, Hay, McGregor and Rastogi (2015), the matrix mechanism.

    >>> from discreet.workloads import AllRanges
    >>> query = Query(workload=AllRanges(64), rho=0.5)
    >>> round(query.rmse, 2), query.event == query.mechanism.event
    (2.3, True)
    >>> len(query.release(np.zeros(64, int), rng=1).value)
    2080
    """

    workload: Workload
    strategy: Strategy | None = None
    epsilon: InitVar[float | None] = None
    delta: InitVar[float | None] = None
    rho: InitVar[float | None] = None
    adjacency: InitVar[Adjacency | str] = Adjacency.ADD_REMOVE
    constraints: Constraints | None = None
    measure: Measure = field(init=False)

    label = "workload"

    def __post_init__(
        self, epsilon: float | None, delta: float | None, rho: float | None, adjacency: Adjacency | str
    ) -> None:
        noise: Noise = "gaussian" if Budget(epsilon, delta, rho).gaussian else "laplace"
        strategy = self.strategy.for_noise(noise) if self.strategy is not None else optimise(self.workload, noise=noise)
        if strategy.shape != self.workload.shape:
            raise ValueError(
                f"The strategy is over cells of shape {strategy.shape}, but the workload is over {self.workload.shape}."
            )
        check(self.constraints, strategy.shape)
        store(
            self,
            strategy=strategy,
            measure=Measure(strategy=strategy, epsilon=epsilon, delta=delta, rho=rho, adjacency=adjacency),
        )

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The noise on the measurements."""
        return self.measure.mechanism

    @property
    def event(self) -> Event:
        """The cost."""
        return self.measure.event

    @property
    def variance(self) -> float:
        """The variance of the noise on one measurement."""
        return self.measure.variance

    @property
    def total_squared_error(self) -> float:
        """The expected squared error, summed over all queries, of least squares without constraints."""
        return self.measure.strategy.trace(self.workload) * self.variance

    @property
    def rmse(self) -> float:
        """The root of the mean, over queries, of the expected squared error."""
        return math.sqrt(self.total_squared_error / self.workload.queries)

    def deviation(self, query: Any) -> float:
        """The standard deviation of the answer to one query, given as its weights on the cells."""
        weights = np.asarray(query, np.float64).reshape(self.workload.shape)
        return math.sqrt(float((weights * self.measure.strategy.covariance(weights)).sum()) * self.variance)

    def error(self, confidence: float = 0.95, *, query: Any = None) -> float:
        """What the error of a query stays within, with this confidence: a given one, or one of the workload at random.

        A normal quantile for a given query under Gaussian noise; otherwise Gauss's inequality, which holds for every
        symmetric unimodal error, and sums of Laplace noise and mixtures over queries have one.
        """
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        spread = self.rmse if query is None else self.deviation(query)
        if query is not None and isinstance(self.mechanism, Gaussian):
            return spread * NormalDist().inv_cdf((1 + confidence) / 2)
        return spread * (math.sqrt(3) * confidence if confidence < 2 / 3 else 2 / (3 * math.sqrt(1 - confidence)))

    def check(self, data: Any) -> None:
        """A histogram over the workload's cells."""
        self.measure.check(data)

    def draw(self, data: Any, rng: Rng) -> Answers:
        """Measure and infer. The histogram holds whole counts in the workload's shape; see ``counts`` for the rest."""
        return Answers(self.workload, infer(self.measure.draw(data, rng), self.workload, self.constraints))


def answer(
    workload: Workload,
    histogram: Any,
    *,
    strategy: Strategy | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    nonnegative: bool = False,
    monotone: Monotone | None = None,
    total: float | None = None,
    unit: str = ONE_RECORD,
    book: Chargeable | None = None,
    label: str = "workload",
    rng: RngLike = None,
) -> Release[Answers]:
    """Consistent private answers to every query of a workload, for one charge.

    ``epsilon`` alone gives pure DP by Laplace noise; with ``delta``, or by ``rho``, the noise is Gaussian. The
    book is charged before the histogram is read. ``unit`` says whom a count of the histogram is all of.

    >>> from discreet.workloads import Prefix
    >>> release = answer(Prefix(4), [10, 0, 3, 5], epsilon=1.0, nonnegative=True, rng=1)
    >>> bool((np.diff(np.asarray(release.value)) >= 0).all())
    True
    """
    query = Query(
        workload=workload,
        strategy=strategy,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        adjacency=adjacency,
        constraints=Constraints(nonnegative=nonnegative, monotone=monotone, total=total),
        unit=unit,
    )
    return charged(query, histogram, book=book, label=label, rng=rng)
