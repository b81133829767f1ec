"""The optimal clipping threshold for a mean: records without bounds, clipped where noise and bias balance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet import events
from discreet.errors import number, positive, whole
from discreet.mechanisms.grid import in_range
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import rows
from discreet.random import Rng
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out
from discreet.statistics.means import Mean
from discreet.statistics.statistic import Statistic
from discreet.statistics.vectors import MOST_DIMENSIONS, VectorMean

__all__ = ["BoundedVarianceMean", "bounded_variance_mean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedVarianceMean(Statistic):
    r"""The mean of a population in which E‖x - centre‖² ≤ ``sd``², from records clipped to distance τ of ``centre``.

    Clipping biases the mean by at most E(‖x‖ - τ)₊ ≤ σ²/4τ, because (y - τ)₊ ≤ y²/4τ: equality at y = 2τ. The noise has
    mean squared length c·τ². So

    .. math:: E\|\hat\mu - \mu\|^2 \le \frac{\sigma^2}{n} + \frac{\sigma^4}{16\tau^2} + c\,\tau^2,

    least at the optimal clipping threshold, τ = σ/(16c)^¼. With n public and Laplace noise c = 8/(nε)², hence
    τ = σ√(nε)/128^¼ and σ²/n + √2·σ²/(nε). (The lecture's τ = σ√(nε)/2 gives σ²/n + 2.25·σ²/(nε): pass it as
    ``clip=``.) In ``dimension`` d the noise is Gaussian and c grows like d, so τ shrinks like d^-¼: σ√(nε)/d^¼ up to a
    constant. (In the lecture d^¼ stands under the root.)

    ``n`` is the public number of records under ``adjacency="replace"``. Otherwise it is a rough public number, which
    sets τ and nothing else: a wrong one costs accuracy, never privacy; the noise is that of the pair of ``Mean``, c is
    its worst case, and the bound holds to first order in 1/(nε).

    Guarantee: that of ``Mean`` with bounds centre ± τ, or of ``VectorMean`` with norm τ; σ may be wrong.
    Reference: bias bound and constant derived here; the method is folklore, see Kamath, Singhal and Ullman (2020).

    >>> operation = BoundedVarianceMean(sd=1.0, n=1000, epsilon=1.0, adjacency="replace")
    >>> round(operation.tau, 3), round(operation.mse(), 6)
    (9.402, 0.002414)
    """

    sd: float
    n: int
    centre: float | tuple[float, ...] = 0.0
    dimension: int | None = None
    clip: float | None = None

    label = "bounded-variance mean"

    def __post_init__(self) -> None:
        self._check()
        store(
            self,
            sd=in_range("sd", self.sd),
            n=whole("n", self.n, low=1, high=1 << 62),
            clip=None if self.clip is None else in_range("clip", self.clip),
        )
        if self.dimension is None:
            store(self, centre=number("centre", self.centre, low=-(2.0**800), high=2.0**800))
        else:
            dimension = whole("dimension", self.dimension, low=1, high=MOST_DIMENSIONS)
            ends = np.broadcast_to(np.asarray(self.centre, float), (dimension,))
            store(self, centre=tuple(number("centre", c, low=-(2.0**800), high=2.0**800) for c in ends))
        _ = self.inner

    def _mean_clipped_at(self, tau: float) -> Mean | VectorMean:
        n = self.n if self._replace else None
        budget: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "adjacency": self.adjacency,
            "n": n,
        }
        if self.dimension is not None:
            return VectorMean(dimension=self.dimension, norm=tau, **budget)
        assert isinstance(self.centre, float)
        return Mean(bounds=(self.centre - tau, self.centre + tau), **budget)

    @property
    def tau(self) -> float:
        """Where records are clipped: σ/(16c)^¼, or ``clip``."""
        return self.sd / (16 * self._unit_noise) ** 0.25 if self.clip is None else self.clip

    @property
    def _unit_noise(self) -> float:
        """c: the mean squared length of the noise at τ = 1."""
        unit = self._mean_clipped_at(1.0) if self.dimension is not None else None
        if isinstance(unit, VectorMean):
            return unit.rmse(n=self.n) ** 2
        place = Mean(
            bounds=(0, 1),
            n=self.n if self._replace else None,
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            adjacency=self.adjacency,
        )
        return (2 * place.mechanism.deviation / (1 if self._replace else self.n)) ** 2

    @property
    def inner(self) -> Mean | VectorMean:
        """The mean of the clipped records."""
        return self._mean_clipped_at(self.tau)

    @property
    def event(self) -> events.Event:
        """The cost, known from public facts alone."""
        return self.inner.event

    def mse(self) -> float:
        """A bound on the mean squared error against the mean of the population: σ²/n + σ⁴/16τ² + c·τ²."""
        return self.sd**2 / self.n + (self.sd**2 / (4 * self.tau)) ** 2 + self._unit_noise * self.tau**2

    def error(self, confidence: float = 0.95) -> float:
        """What noise and bias together stay within, with this confidence; sampling comes on top."""
        n = None if self._replace else self.n
        return self.sd**2 / (4 * self.tau) + self.inner.error(confidence, n=n)

    @property
    def stated_error(self) -> Any:
        """The error with 95 % confidence."""
        return self.error()

    def check(self, data: Any) -> None:
        """As the mean of the clipped records."""
        self.inner.check(data)

    def draw(self, data: Any, rng: Rng) -> Any:
        """The noisy mean of the clipped records: a float, or an array of ``dimension`` entries."""
        inner = self.inner
        if not isinstance(inner, VectorMean):
            return inner.draw(data, rng)
        with np.errstate(over="ignore"):  # a row beyond the largest double is missing, like any row that is not finite
            return inner.draw(rows(data, inner.dimension) - np.array(self.centre), rng) + np.array(self.centre)


@spell_out(Asked, "bounded-variance mean")
def bounded_variance_mean(
    values: Any,
    sd: float,
    n: int,
    *,
    centre: float | tuple[float, ...] = 0.0,
    dimension: int | None = None,
    **asked: Unpack[Asked],
) -> Release[Any]:
    """The mean of records of bounded spread, clipped automatically: see ``BoundedVarianceMean``.

    >>> round(bounded_variance_mean([1.0, -1.0, 0.5, 0.5] * 2500, sd=1.0, n=10_000, epsilon=1.0, rng=1).value, 1)
    0.2
    """
    return ask(BoundedVarianceMean, values, asked, sd=positive("sd", sd), n=n, centre=centre, dimension=dimension)
