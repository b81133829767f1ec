"""What tests of means share: a contrast of noisy means against its simulated law, and its interval."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from discreet.errors import number
from discreet.inference.classical import student
from discreet.inference.group_means import GroupMeans, Moments
from discreet.inference.hypothesis import Outcome, conclude
from discreet.inference.simulation import Array, public_generator, tail_probability, toward
from discreet.mechanisms.parameters import store
from discreet.statistics.bounded import Bounds

__all__ = ["NO_INTERVAL", "MeanTest"]

NO_INTERVAL = "Nearly all records are at a bound, and those away from it are too few for an interval of a mean."


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanTest(GroupMeans):
    """Whether a contrast of means is ``null``: of one mean, unless a test says which."""

    null: float = 0.0

    def __post_init__(self) -> None:
        GroupMeans.__post_init__(self)
        low, high = self._possible
        store(self, null=number("null", self.null, low=low, high=high))  # beyond, no records could have it

    def infer(self, noisy: Array) -> Outcome:
        """A studentised mean, against its simulated law."""
        return self._against((self.null - self._origin) / self.width, np.ones(1), self.design.triples(noisy))

    @property
    @abstractmethod
    def _origin(self) -> float:
        """What the contrast is worth where all records are at the lower bound."""

    @property
    def _possible(self) -> Bounds:
        """What the effect can be."""
        return self.record_bounds

    def _centre(self, triples: Array, null: float) -> Array:
        """The mean of each group under the null hypothesis."""
        return np.full(triples.shape[:-1], null)

    def _against(self, null: float, contrast: Array, triples: Array) -> Outcome:
        """The outcome for a contrast of means. The standard error is that under the null hypothesis: a score test."""
        centre = self._centre(triples, null)
        moments = self.moments(triples, centre)
        statistic = _studentise(moments, contrast, null)
        law = self.simulate(moments._replace(mean=np.clip(centre, 0.0, 1.0)), self.simulations, public_generator())
        simulated = self._caution * _studentise(self.moments(law, self._centre(law, null)), contrast, null)
        p_value = tail_probability(toward(statistic, self.alternative), toward(simulated, self.alternative))
        quantile = np.quantile(np.abs(simulated), self.confidence, axis=-1, method="higher")
        low, high = self._interval(triples, quantile, contrast)
        effect = (moments.mean * contrast).sum(-1)
        outcome = Outcome(statistic, p_value, effect, low, high, self._are_enough(triples, np.clip(centre, 0.0, 1.0)))
        outcome = self._without_noise(null, contrast, triples, outcome)
        effect, low, high = (self._origin + self.width * end for end in outcome[2:5])
        bounded = self._are_enough(triples, self._own_means(triples))
        low, high = np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)
        # where nothing is known it may be anything that the bounds allow, and is nothing else
        effect = np.where(outcome.enough, effect, np.clip(effect, *self._possible))
        return conclude(outcome._replace(effect=effect, low=low, high=high))

    def caveat(self, noisy: Array) -> str:
        """That there is no interval, or that a small group has to be near to normal itself."""
        triples = self.design.triples(noisy)
        bounded = bool(self._are_enough(triples, self._own_means(triples)))
        return GroupMeans.caveat(self, noisy) if bounded else NO_INTERVAL

    def _own_means(self, triples: Array) -> Array:
        return np.clip(self.moments(triples).mean, 0.0, 1.0)

    def _without_noise(self, null: float, contrast: Array, triples: Array, simulated: Outcome) -> Outcome:
        """Student's test where the noise is lost in the sampling error, and what was simulated elsewhere."""
        moments, quiet = self.moments(triples), self._is_quiet(triples)
        if not quiet.any():
            return simulated
        effect, errors = (moments.mean * contrast).sum(-1), moments.variance / moments.size * contrast**2
        statistic, p_value, reach = student(effect, null, errors, moments.size, self.alternative, self.confidence)
        exact = (statistic, p_value, effect, effect - reach, effect + reach, simulated.enough)
        return Outcome(*(np.where(quiet, *each) for each in zip(exact, simulated, strict=True)))

    def _interval(self, triples: Array, quantile: Array, contrast: Array) -> tuple[Array, Array]:
        """The contrasts that the quantile of the studentised mean does not refute; of two groups, by their intervals'
        ends (Zou and Donner 2008)."""
        low, high = self._fieller(triples, quantile[..., None])
        mean = self.moments(triples).mean
        first, second = np.where(contrast > 0, low, -high), np.where(contrast > 0, high, -low)
        effect = (mean * contrast).sum(-1)
        below = np.sqrt(((mean * contrast - first) ** 2).sum(-1))
        above = np.sqrt(((second - mean * contrast) ** 2).sum(-1))
        return effect - below, effect + above

    def _fieller(self, triples: Array, quantile: Array) -> tuple[Array, Array]:
        """The means m with (S - m·n)² ≤ q² (n·variance + V(m)), V(m) the variance of the noise on S - m·n: the roots of
        a quadratic (Fieller 1954), whose noise has its size at m, not at the noisy mean.
        """
        moments, noise = self.moments(triples), self.design.covariances
        reach = (quantile * self.mechanism.deviation) ** 2
        a = moments.size**2 - noise.one * reach
        b = 2 * (moments.size**2 * moments.mean - noise.one_t * reach)
        c = (moments.size * moments.mean) ** 2 - quantile**2 * moments.size * moments.variance - noise.t * reach
        root = np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(a > 0, (b - root) / (2 * a), -np.inf), np.where(a > 0, (b + root) / (2 * a), np.inf)

    def _supposed_means(self, effect: float) -> Array:
        low, high = self.record_bounds
        mean = number("null + effect", self.null + effect, low=low, high=high)
        return np.array([(mean - low) / self.width])

    @property
    def largest_effect(self) -> float:
        """How far the bounds let the mean be from ``null``."""
        ends = dict(zip(("less", "greater"), np.subtract(self.record_bounds, self.null), strict=True))
        return float(ends[self.alternative] if self.alternative in ends else max(ends.values(), key=abs))


def _studentise(moments: Moments, contrast: Array, null: float) -> Array:
    effect = (moments.mean * contrast).sum(-1)
    return np.asarray((effect - null) / np.sqrt((moments.error * contrast**2).sum(-1)))
