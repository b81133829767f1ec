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
from discreet.random import RngLike
from discreet.release import ONE_RECORD, Book, Release, unit_name
from discreet.workloads.inference import Constraints, Monotone, check, infer
from discreet.workloads.selection import Noise, optimise
from discreet.workloads.strategy import Strategy, answers, counts
from discreet.workloads.workload import Floats, Workload

__all__ = ["Answers", "Query", "answer"]

_MOST_ROWS = 1 << 22


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
            raise ValueError(f"The other workload is over cells of shape {workload.shape}, but these are over "
                             f"{self.workload.shape}.")
        return Answers(workload, self.estimate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
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
    unit: str = ONE_RECORD
    mechanism: AdditiveMechanism | None = field(default=None, init=False)

    def __post_init__(self, epsilon: float | None, delta: float | None, rho: float | None,
                      adjacency: Adjacency | str) -> None:
        budget = Budget(epsilon, delta, rho)
        noise: Noise = "gaussian" if budget.gaussian else "laplace"
        strategy = self.strategy.suited(noise) if self.strategy is not None else optimise(self.workload, noise=noise)
        if strategy.shape != self.workload.shape:
            raise ValueError(f"The strategy is over cells of shape {strategy.shape}, but the workload is over "
                             f"{self.workload.shape}.")
        if strategy.rows > _MOST_ROWS:
            raise ValueError(f"{strategy.name} measures {strategy.rows:,} values, but at most {_MOST_ROWS:,} are allowed. "
                             "Choose a smaller strategy: optimise(workload) finds one.")
        check(self.constraints, strategy.shape)
        unit_name(self.unit)
        object.__setattr__(self, "strategy", strategy)
        object.__setattr__(self, "mechanism", budget.additive(
            strategy.sensitivity(budget.norm, Adjacency(adjacency)), strategy.rows, adjacency=Adjacency(adjacency)))

    @property
    def _parts(self) -> tuple[Strategy, AdditiveMechanism]:
        assert self.strategy is not None
        assert self.mechanism is not None
        return self.strategy, self.mechanism

    @property
    def event(self) -> Event:
        """The cost."""
        return self._parts[1].event

    @property
    def variance(self) -> float:
        """The variance of the noise on one measurement."""
        return self._parts[1].deviation ** 2

    @property
    def total_squared_error(self) -> float:
        """The expected squared error, summed over all queries, of least squares without constraints."""
        return self._parts[0].trace(self.workload) * self.variance

    @property
    def rmse(self) -> float:
        """The root of the mean, over queries, of the expected squared error."""
        return math.sqrt(self.total_squared_error / self.workload.queries)

    def deviation(self, query: Any) -> float:
        """The standard deviation of the answer to one query, given as its weights on the cells."""
        weights = np.asarray(query, np.float64).reshape(self.workload.shape)
        return math.sqrt(float((weights * self._parts[0].covariance(weights)).sum()) * self.variance)

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

    def release(self, histogram: Any, rng: RngLike = None) -> Release[Answers]:
        """Measure and infer. The histogram holds whole counts in the workload's shape; see ``counts`` for the rest."""
        strategy, mechanism = self._parts
        noisy = mechanism.release(answers(strategy, counts(histogram, strategy.shape)), rng)
        estimate = infer(strategy, noisy.value, self.constraints, self.workload)
        return Release(Answers(self.workload, estimate), self.event, reproducible=noisy.reproducible)


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
    book: Book | None = None,
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
    query = Query(workload=workload, strategy=strategy, epsilon=epsilon, delta=delta, rho=rho, adjacency=adjacency,
                  constraints=Constraints(nonnegative=nonnegative, monotone=monotone, total=total), unit=unit)
    if book is not None:
        book.charge(query.event, label=label, unit=query.unit)
    release = query.release(histogram, rng)
    return Release(release.value, release.event, reproducible=release.reproducible, label=label)
