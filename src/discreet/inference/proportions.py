r"""A proportion, tested as well as any private test can: the uniformly most powerful binomial test.

Every (epsilon, delta)-private test of a binomial sample is post-processing of the number of successes with Tulap
noise, so that number is what is released, and whatever is asked of the proportion later costs nothing more.

Decision 551.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Unpack

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, xlog1py, xlogy

from discreet import events
from discreet.errors import choice, number
from discreet.inference.hypothesis import (
    Alternative,
    AskedOfExactTest,
    HypothesisTest,
    ReleasedTest,
    ask_test,
    released,
    warn_of_no_power,
)
from discreet.inference.simulation import Array
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_column, check_size, column
from discreet.mechanisms.tulap import Tulap
from discreet.random import Rng, RngLike
from discreet.statistics.asking import spell_out
from discreet.statistics.statistic import Statistic, public_size

__all__ = ["CountTest", "Proportion", "proportion"]

_TAIL = 33.0  # 2·exp(-33) is below 1e-14


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTest(Statistic):
    """A test of one number that a record moves by at most 1, to which Tulap noise is added."""

    confidence: float = 0.95

    def _check_test(self) -> None:
        self._check()
        if self.rho is not None:
            raise ValueError("rho is given, but Tulap noise is optimal for epsilon, with or without delta: give that.")
        store(self, confidence=number("confidence", self.confidence, low=0, high=1, open_low=True, open_high=True))
        _ = self.mechanism

    @property
    def mechanism(self) -> Tulap:
        """The noise on the number, and its cost."""
        assert self.epsilon is not None
        return Tulap(epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency)

    @property
    def event(self) -> events.Event:
        """The cost."""
        return self.mechanism.event

    def prepare(self, data: Any = None, rng: RngLike = None) -> Any:
        """Refuse what public facts can tell, and return what reads."""
        run = Statistic.prepare(self, data, rng)
        return lambda: released(run())


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion(CountTest):
    r"""Whether the proportion of ones among ``n`` records is ``null``; n is public (``adjacency="replace"``).

    With X successes and Tulap noise N the test rejects for large Z = X + N, and

    .. math:: p(z, \theta) = \Pr_\theta[X + N \ge z] = \sum_x \Pr_\theta[X = x]\, F_N(x - z)

    is its p-value against larger proportions. Guarantee: exact, and uniformly most powerful among all tests of this
    epsilon and delta. Two sides: the probability that Z is as far from n·null as it is, exact too. The interval leaves
    half of the risk on either side, by inverting p(z, θ), which grows with θ: exact coverage.
    A record that is not 1 (or true) is no success, also a missing one. Reference: Awan and Slavković (2018), Theorem
    5.2; for two sides and intervals, Awan and Slavković (2020).

    >>> test = Proportion(null=0.5, n=1000, adjacency="replace", epsilon=1.0)
    >>> answer = test.release([1] * 560 + [0] * 440, rng=1)
    >>> answer.p_value < 0.001, answer.interval[0] < 0.56 < answer.interval[1]
    (True, True)
    >>> round(test.power(effect=0.05), 2)
    0.88
    """

    n: int | None = None
    null: float = 0.5
    alternative: Alternative = "two-sided"

    label = "proportion"
    assumes: ClassVar[str] = "Independent records of one proportion; the test is exact."

    def __post_init__(self) -> None:
        self._check_test()
        choice("alternative", self.alternative, dict.fromkeys(("two-sided", "greater", "less")))
        store(self, n=public_size(self.n, True), null=number("null", self.null, low=0, high=1))
        if not self._replace:
            raise ValueError("adjacency must be 'replace': the test is optimal for a public number of records, n=.")

    def check(self, data: Any) -> None:
        """A column of the public size."""
        check_column(data)
        check_size(data, self.n)

    def prepare(self, data: Any = None, rng: RngLike = None) -> Any:
        """Refuse what public facts can tell, warn of a test that can show nothing, and return what reads."""
        run = CountTest.prepare(self, data, rng)
        warn_of_no_power(_most_power(self), 0.05)
        return run

    def draw(self, data: Any, rng: Rng) -> HypothesisTest:
        """Successes, noise, answer."""
        return self.answer(self.mechanism.draw(int((column(data) == 1).sum()), rng))

    def answer(self, noisy: float) -> HypothesisTest:
        """What a noisy number of successes says."""
        size = self._size
        return HypothesisTest(
            noisy,
            float(self.p_values(np.array([noisy]))[0]),
            float(np.clip(noisy / size, 0.0, 1.0)),
            self._interval(noisy),
            self.confidence,
            self.assumes,
            effect_name="proportion",
            alternative=self.alternative,
        )

    @property
    def _size(self) -> int:
        assert self.n is not None
        return self.n

    def p_values(self, noisy: Array) -> Array:
        """The p-values of noisy numbers of successes."""
        middle = self._size * self.null
        far = np.abs(noisy - middle)
        sides = {
            "greater": lambda: self._above(noisy, self.null),
            "less": lambda: 1 - self._above(noisy, self.null),
            "two-sided": lambda: self._above(middle + far, self.null) + 1 - self._above(middle - far, self.null),
        }
        return np.clip(choice("alternative", self.alternative, sides)(), 0.0, 1.0)

    def _above(self, noisy: Array, proportion: float) -> Array:
        """The probability that successes and noise exceed each of these, at a supposed proportion."""
        x, mass = _binomial(self._size, proportion)
        noise = self.mechanism
        return np.array([float(mass @ noise.cdf(x - z)) for z in noisy])

    def _interval(self, noisy: float) -> tuple[float, float]:
        tail, z = (1 - self.confidence) / 2, np.array([noisy])

        def end(level: float) -> float:
            beyond = [float(self._above(z, edge)[0]) - level for edge in (0.0, 1.0)]
            if beyond[0] >= 0 or beyond[1] <= 0:
                return 0.0 if beyond[0] >= 0 else 1.0
            return float(brentq(lambda p: float(self._above(z, p)[0]) - level, 0.0, 1.0, xtol=1e-10))

        return end(tail), end(1 - tail)

    def power(self, *, effect: float, alpha: float = 0.05) -> float:
        """How often the test rejects at ``alpha`` if the proportion is ``null + effect``: exactly."""
        truth = number("null + effect", self.null + effect, low=0, high=1)
        middle = self._size * self.null

        def critical(level: float) -> float:
            reach = self._size + 2 + self.mechanism.error(1 - 1e-9)
            return float(brentq(lambda z: float(self._above(np.array([z]), self.null)[0]) - level, -reach, 2 * reach))

        def far(distance: float) -> float:
            up, down = self._above(np.array([middle + distance, middle - distance]), self.null)
            return float(up + 1 - down) - alpha

        if self.alternative == "two-sided":
            distance = float(brentq(far, 0.0, 3 * (self._size + 2 + self.mechanism.error(1 - 1e-9))))
            up, down = self._above(np.array([middle + distance, middle - distance]), truth)
            return float(up + 1 - down)
        one_sided = {
            "greater": lambda: float(self._above(np.array([critical(alpha)]), truth)[0]),
            "less": lambda: 1 - float(self._above(np.array([critical(1 - alpha)]), truth)[0]),
        }
        return choice("alternative", self.alternative, one_sided)()


def _binomial(n: int, p: float) -> tuple[Array, Array]:
    """The numbers of successes but for a mass below 1e-14 (Bernstein's inequality), and their probabilities."""
    reach = _TAIL / 3 + math.sqrt(_TAIL**2 / 9 + 2 * _TAIL * n * p * (1 - p))
    x = np.arange(max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach)) + 1)
    mass = np.exp(gammaln(n + 1) - gammaln(x + 1) - gammaln(n - x + 1) + xlogy(x, p) + xlog1py(n - x, -p))
    return x, mass / mass.sum()


@lru_cache(maxsize=256)
def _most_power(test: Proportion) -> float:
    """The power against a proportion of 0 or of 1."""
    return max(test.power(effect=end - test.null) for end in (0.0, 1.0))


@spell_out(AskedOfExactTest, "proportion", {"alternative": "two-sided", "confidence": 0.95})
def proportion(values: Any, n: int, *, null: float = 0.5, **asked: Unpack[AskedOfExactTest]) -> ReleasedTest:
    """Whether the proportion of ones among n records is ``null``: see ``Proportion``; n is public.

    >>> proportion([1, 0, 1, 1] * 100, n=400, null=0.5, epsilon=1.0, rng=1).p_value < 0.001
    True
    """
    given: dict[str, Any] = {"adjacency": "replace", **asked}
    return ask_test(Proportion, values, given, n=n, null=null)
