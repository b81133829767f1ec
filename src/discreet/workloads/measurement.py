r"""Select, measure, infer as three calls, so that a loop can measure several times and infer from everything at once.

``measure`` reads a histogram through one strategy and is paid for; ``infer`` is post-processing of any number of
measurements. Each tells the variance v of the noise on its values, and together they are weighted least squares,

.. math:: \min_x \sum_k \lVert A_k x - y_k \rVert^2 / v_k,

the unbiased estimate of least variance for Gaussian noise (and the best linear one for any).

>>> from discreet.workloads import AllRanges, hierarchy, identity
>>> cells, tree = (measure(s, np.arange(8), rho=0.5, rng=1).value for s in (identity(8), hierarchy(8)))
>>> infer([cells, tree]).shape
(8,)
>>> together = Joint([cells, tree])
>>> together.deviation(AllRanges(8).row(3)) < cells.deviation(AllRanges(8).row(3))
True

Decision 134.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, cg

from discreet.adjacency import Adjacency
from discreet.events import Event
from discreet.mechanisms.budget import AdditiveMechanism, Budget
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.random import Rng, RngLike
from discreet.release import ONE_RECORD, Chargeable, Release, charged
from discreet.workloads.constrained_inference import Constraints, constrained_inference
from discreet.workloads.matrices import Matrix, all_queries
from discreet.workloads.strategy import MOST_ROWS, Measured, Strategy, answers, check_histogram, counts
from discreet.workloads.workload import DENSE_LIMIT, Floats, Workload

__all__ = ["Joint", "Measure", "Measurement", "infer", "measure"]

_PRECISE = 1e-12  # relative to the right-hand side: far below any noise


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy answers ``values`` to ``strategy``, each with noise of this ``variance``. May be published."""

    strategy: Strategy
    values: Floats = field(repr=False)
    variance: float = 1.0

    def deviation(self, query: ArrayLike) -> float:
        """The standard deviation of the answer to a query (weights on the cells), by least squares from it alone."""
        return Joint([self]).deviation(query)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure(Mechanism[Measurement]):
    """Answers a strategy on a histogram with noise: a measurement, from which much can be inferred.

    ``epsilon=`` gives Laplace noise; ``epsilon=`` and ``delta=``, or ``rho=``, Gaussian. One record (or ``unit``, on
    the caller's word) is one count in one cell.

    Guarantee: that of the mechanism at the strategy's sensitivity, rounding included (proof in ``workloads.strategy``).

    >>> from discreet.workloads import identity
    >>> Measure(strategy=identity(4), epsilon=50.0).release([3, 0, 1, 2], rng=1).value.values.round() + 0
    array([3., 0., 1., 2.])
    """

    strategy: Strategy
    epsilon: InitVar[float | None] = None
    delta: InitVar[float | None] = None
    rho: InitVar[float | None] = None
    adjacency: InitVar[Adjacency | str] = Adjacency.ADD_REMOVE
    mechanism: AdditiveMechanism = field(init=False)

    label = "measurement"

    def __post_init__(
        self, epsilon: float | None, delta: float | None, rho: float | None, adjacency: Adjacency | str
    ) -> None:
        budget, relation = Budget(epsilon, delta, rho), Adjacency(adjacency)
        strategy = self.strategy.for_noise("gaussian" if budget.gaussian else "laplace")
        if strategy.rows > MOST_ROWS:
            raise ValueError(
                f"{strategy.name} measures {strategy.rows:,} values, but at most {MOST_ROWS:,} are allowed. "
                "Choose a smaller strategy: optimise(workload) finds one."
            )
        sensitivity = strategy.sensitivity(budget.norm, relation)
        store(self, strategy=strategy, mechanism=budget.additive(sensitivity, strategy.rows, adjacency=relation))

    @property
    def event(self) -> Event:
        """The cost."""
        return self.mechanism.event

    @property
    def stated_error(self) -> Any:
        """The error of one measured value, with 95 % confidence."""
        return self.mechanism.stated_error

    @property
    def variance(self) -> float:
        """The variance of the noise on one value."""
        return self.mechanism.deviation**2

    def check(self, data: Any) -> None:
        """A histogram over the strategy's cells."""
        check_histogram(data, self.strategy.shape)

    def draw(self, data: Any, rng: Rng) -> Measurement:
        """The noisy answers. The histogram holds whole counts in the strategy's shape; see ``counts`` for the rest."""
        exact = answers(self.strategy, counts(data, self.strategy.shape))
        return Measurement(self.strategy, self.mechanism.draw(exact, rng), self.variance)


def measure(
    what: Strategy | Workload | ArrayLike,
    histogram: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    unit: str = ONE_RECORD,
    book: Chargeable | None = None,
    label: str = "measurement",
    rng: RngLike = None,
) -> Release[Measurement]:
    """Measure a strategy, all queries of a workload, or rows of weights on the cells, for one charge: see ``Measure``.

    >>> measure([[1, 1, 0], [0, 1, 1]], [5, 0, 2], epsilon=50.0, rng=1).value.values.round()
    array([5., 2.])
    """
    strategy = (
        what
        if isinstance(what, Strategy)
        else (all_queries(what) if isinstance(what, Workload) else Matrix(np.atleast_2d(np.asarray(what, np.float64))))
    )
    operation = Measure(strategy=strategy, epsilon=epsilon, delta=delta, rho=rho, adjacency=adjacency, unit=unit)
    return charged(operation, histogram, book=book, label=label, rng=rng)


class Joint(Measured):
    """Several measurements as one: their maps below each other, each divided by the standard deviation of its noise.

    A direction in which nothing was measured is left at zero: the estimate is the shortest of the best.
    """

    name = "joint"

    def __init__(self, measurements: Sequence[Measurement]) -> None:
        if not measurements:
            raise ValueError("measurements is empty, but inference needs at least one.")
        self.shape = measurements[0].strategy.shape
        for other in measurements[1:]:
            if other.strategy.shape != self.shape:
                raise ValueError(
                    f"A measurement is over cells of shape {other.strategy.shape}, but another over {self.shape}."
                )
        self.parts = tuple(measurements)

    @cached_property
    def values(self) -> Floats:
        """All values, divided by the standard deviation of their noise, which is of unit variance then."""
        return np.concatenate([part.values.reshape(-1) / math.sqrt(part.variance) for part in self.parts])

    def adjoint(self, y: Floats) -> Floats:
        """Σ Aₖᵀ yₖ/√vₖ."""
        total, place = np.zeros(self.shape), 0
        for part in self.parts:
            rows = part.strategy.rows
            total = total + part.strategy.adjoint(y[place : place + rows]).reshape(self.shape) / math.sqrt(
                part.variance
            )
            place += rows
        return total

    def gram_apply(self, v: Floats) -> Floats:
        """Σ AₖᵀAₖ v/vₖ."""
        return np.asarray(sum(part.strategy.gram_apply(v) / part.variance for part in self.parts))

    def covariance(self, v: Floats) -> Floats:
        """(Σ AₖᵀAₖ/vₖ)⁺ v: in the strategy's own way if there is but one, otherwise by conjugate gradients."""
        if len({id(part.strategy) for part in self.parts}) == 1:
            return self.parts[0].strategy.covariance(v) / sum(1 / part.variance for part in self.parts)
        columns = v.reshape(math.prod(self.shape), -1).T
        return np.stack([self._solve(column) for column in columns], axis=1).reshape(v.shape)

    def _solve(self, column: Floats) -> Floats:
        size = column.size

        def gram(x: Floats) -> Floats:
            return self.gram_apply(x.reshape(self.shape)).reshape(-1)

        found, failed = cg(
            LinearOperator((size, size), matvec=gram, dtype=np.float64), column, rtol=_PRECISE, maxiter=10 * size
        )
        if not failed:
            return np.asarray(found)
        if size > DENSE_LIMIT:
            raise ValueError(
                f"The measurements do not determine {size} cells well enough to infer them jointly: measure "
                "the identity too."
            )
        return np.asarray(self._dense @ column)

    @cached_property
    def _dense(self) -> Floats:
        size = math.prod(self.shape)
        gram = self.gram_apply(np.eye(size).reshape(*self.shape, size)).reshape(size, size)
        return np.linalg.pinv(gram, rcond=1e-10, hermitian=True)

    def deviation(self, query: ArrayLike) -> float:
        """The standard deviation of a query's answer, √(qᵀ(Σ AₖᵀAₖ/vₖ)⁺q), if the measurements determine it."""
        weights = np.asarray(query, np.float64).reshape(self.shape)
        return math.sqrt(float((weights * self.covariance(weights)).sum()))


def infer(
    measurements: Measurement | Sequence[Measurement],
    workload: Workload | None = None,
    constraints: Constraints | None = None,
) -> Floats:
    """The histogram that fits all measurements best and satisfies the constraints: post-processing, free.

    Constraints are met in the norm of the workload's answers, so that its error does not grow; without one in that of
    the measurements (see ``workloads.constrained_inference``). ``workload.apply`` of the result gives consistent
    answers.
    """
    parts = [measurements] if isinstance(measurements, Measurement) else list(measurements)
    if len(parts) == 1:
        return constrained_inference(parts[0].strategy, parts[0].values, constraints, workload)
    joint = Joint(parts)
    return constrained_inference(joint, joint.values, constraints, workload)
