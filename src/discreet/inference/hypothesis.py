"""What every test has in common: it states what it costs, reads once, and answers with a p-value and an effect.

A test is an additive statistic: ``totals`` reads, ``mechanism`` adds the noise, and ``infer`` turns noisy totals, of
one data set or of many at once, into p-values and intervals. A release goes through ``infer`` and so do power and the
measurement of levels: what is measured is what is used.

Decision 552.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from discreet.errors import choice, number, whole
from discreet.inference.simulation import Array, noise_like, public_generator
from discreet.mechanisms.parameters import store
from discreet.random import RngLike
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out
from discreet.statistics.statistic import AdditiveStatistic

__all__ = [
    "Alternative",
    "AskedOfExactTest",
    "AskedOfTest",
    "HypothesisTest",
    "NoisyTest",
    "Outcome",
    "ReleasedTest",
    "ask_test",
    "conclude",
    "spell_test",
]

Alternative = Literal["two-sided", "greater", "less"]

_SIDES = ("two-sided", "greater", "less")
SIMULATIONS = 9_999  # so that a p-value is known to 0.002 at 0.05
QUICK = 399  # of power: one in twenty of them and one is twenty
NOT_ENOUGH = (
    "The noise on the number of records is too large beside it, or those that the answer rests on (of a mean, those "
    "away from a bound) are too few: nothing can be concluded, and p is 1."
)
FEWEST = 5.0  # deviations of its noise that a noisy number of records has to have before anything is divided by it
_SMALLEST_POWER = 2.0  # times the level, below which a test is no better than a coin


class AskedOfExactTest(Asked, total=False):
    """What a test takes beside the facts of its data."""

    alternative: Alternative
    confidence: float


class AskedOfTest(AskedOfExactTest, total=False):
    """The same of one whose null law is simulated."""

    simulations: int
    n_expected: int | None


class Outcome(NamedTuple):
    """Statistics, p-values, effects and their intervals, of one data set or of many, and whether there is enough."""

    statistic: Array
    p_value: Array
    effect: Array
    low: Array
    high: Array
    enough: Array


@dataclass(frozen=True, slots=True)
class HypothesisTest:
    """The answer of a test: all of it is post-processing of noisy totals.

    ``effect``, which ``effect_name`` names, is what the interval is of, on both sides of it also where the test is
    one-sided; ``assumes`` what the p-value stands on; ``note`` says why there is none, or why to be careful; ``bias``
    by how much clipping may have moved the effect, which the interval does not hold. ``alternative`` is empty where a
    test knows no side, and ``least_p_value`` what its simulated draws can say at least: a p-value that is equal to it
    is an upper bound.

    >>> answer = HypothesisTest(9.0, 1e-4, 1.5, (1.0, 2.0), 0.95, "independent records", least_p_value=1e-4)
    >>> f"p {answer.p_relation} {answer.p_value:g}"
    'p ≤ 0.0001'
    """

    statistic: float
    p_value: float
    effect: float
    interval: tuple[float, float]
    confidence: float
    assumes: str
    note: str = ""
    bias: float = 0.0
    effect_name: str = "effect"
    alternative: str = ""
    least_p_value: float = 0.0

    @property
    def p_relation(self) -> str:
        """How the true p-value stands to the one that is given: ≤ where the draws can say no less."""
        return "≤" if self.p_value == self.least_p_value else "="

    @property
    def difference(self) -> float:
        """The effect, where it is a difference."""
        return self.effect


@dataclass(frozen=True, slots=True)
class ReleasedTest(Release[HypothesisTest]):
    """A release whose value's parts are its own: ``t.p_value``, ``t.difference``, ``t.interval``, ``t.event``."""

    def __getattr__(self, name: str) -> Any:
        if name in _PARTS:
            return getattr(self.value, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


_PARTS = frozenset({*(part.name for part in fields(HypothesisTest)), "difference", "p_relation"})


def released(answer: Release[Any]) -> ReleasedTest:
    """A release of a test, with the parts of its value."""
    return ReleasedTest(**{part.name: getattr(answer, part.name) for part in fields(Release)})


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTest(AdditiveStatistic):
    """A test of totals to which noise is added together.

    ``simulations`` decides how finely a null law is known, and nothing else. ``n_expected``, if it is given, is a
    public guess of the number of records: where even the largest effect that the bounds allow would then be seen too
    rarely, a warning says so before anything is paid.
    """

    alternative: Alternative = "two-sided"
    confidence: float = 0.95
    simulations: int = SIMULATIONS
    n_expected: int | None = None

    assumes: ClassVar[str] = ""
    effect_name: ClassVar[str]
    has_sides: ClassVar[bool] = True  # whether its statistic has a direction, and a one-sided test a meaning

    # By how much a simulated null law is widened, since what is unknown in it was itself read off noisy totals: 5 % is
    # then 4.6 % where that does not matter (decision 550).
    _caution: ClassVar[float] = 1.02
    _fewest_records: ClassVar[int] = 2  # in a group, beyond what its noise asks for

    def _check_test(self) -> None:
        self._check()
        choice("alternative", self.alternative, dict.fromkeys(_SIDES if self.has_sides else _SIDES[:1]))
        store(
            self,
            confidence=number("confidence", self.confidence, low=0, high=1, open_low=True, open_high=True),
            simulations=whole("simulations", self.simulations, low=19, high=1_000_000),
            n_expected=None if self.n_expected is None else whole("n_expected", self.n_expected, low=1),
        )

    @abstractmethod
    def infer(self, noisy: Array) -> Outcome:
        """What noisy totals say, with any number of data sets on the leading axes."""

    @abstractmethod
    def suppose(self, n: int, effect: float, sd: float | None, runs: int, generator: np.random.Generator) -> Array:
        """The exact totals of ``runs`` simulated data sets of ``n`` records under an alternative."""

    @property
    def largest_effect(self) -> float:
        """The largest effect that public facts allow."""
        raise ValueError(f"{type(self).__name__} has no largest effect: leave n_expected out, and ask power().")

    @property
    def _expected(self) -> int | None:
        """How many records there are, as far as that is public."""
        return self.n_expected

    def _toward(self, effect: float) -> float:
        """An effect on the side of the alternative."""
        return choice("alternative", self.alternative, {"less": -effect, "greater": effect, "two-sided": effect})

    def expose(self, totals: Array, generator: np.random.Generator) -> Array:
        """Simulated totals with the mechanism's noise, from a public stream."""
        return np.asarray(totals + noise_like(self.mechanism, totals.shape, generator))

    def power(self, n: int, effect: float, *, sd: float | None = None, alpha: float = 0.05, runs: int = 2_000) -> float:
        """How often the test would reject at ``alpha`` where the truth is ``effect`` off the null hypothesis: by
        simulation, from public facts alone.
        """
        generator, rejections = public_generator(), []
        for part in np.array_split(np.arange(runs), max(1, runs // 100)):
            totals = self.suppose(n, effect, sd, len(part), generator)
            rejections.append(self.infer(self.expose(totals, generator)).p_value <= alpha)
        return float(np.concatenate(rejections).mean())

    def prepare(self, data: Any = None, rng: RngLike = None) -> Any:
        """Refuse what public facts can tell, warn of a test that can show nothing, and return what reads."""
        run = AdditiveStatistic.prepare(self, data, rng)
        if self._expected is not None:
            quick = replace(self, simulations=min(self.simulations, QUICK))
            warn_of_no_power(quick.power(self._expected, self.largest_effect, runs=200), 0.05)
        return lambda: released(run())

    def answer(self, noisy: Any) -> HypothesisTest:
        """The test's answer."""
        *shown, enough = (float(part) for part in self.infer(np.asarray(noisy, np.float64)))
        statistic, p_value, effect, low, high = shown
        note = self.caveat(np.asarray(noisy, np.float64)) if enough else NOT_ENOUGH
        return HypothesisTest(
            statistic,
            p_value,
            effect,
            (low, high),
            self.confidence,
            self.assumes,
            note=note,
            effect_name=self.effect_name,
            alternative=self.alternative if self.has_sides else "",
            least_p_value=1 / (1 + self.simulations),
        )

    def caveat(self, noisy: Array) -> str:
        """What noisy totals say of how far the answer can be relied on; nothing, as a rule."""
        return ""

    def _enough(self, sizes: Array, cells: int) -> Array:
        """Whether noisy numbers of records, sums of so many cells, are far enough above their noise."""
        return np.asarray(sizes >= self._fewest_records + FEWEST * self.mechanism.deviation * math.sqrt(cells))


def warn_of_no_power(power: float, alpha: float) -> None:
    """Say before the charge that a test could show next to nothing."""
    if power < _SMALLEST_POWER * alpha:
        warnings.warn(
            f"Even the largest effect would be seen with probability {power:.2f} at a level of {alpha:g}: this budget "
            "is too small for this test. Ask power() what suffices.",
            stacklevel=2,
        )


def conclude(outcome: Outcome) -> Outcome:
    """An outcome that says nothing where there is not enough."""
    enough = outcome.enough
    return outcome._replace(
        p_value=np.where(enough, outcome.p_value, 1.0),
        low=np.where(enough, outcome.low, -math.inf),
        high=np.where(enough, outcome.high, math.inf),
    )


spell_test = partial(
    spell_out,
    AskedOfTest,
    further={"alternative": "two-sided", "confidence": 0.95, "simulations": SIMULATIONS, "n_expected": None},
)
"""Shows the keywords of a test's function, whose label it is given."""


def ask_test(kind: Any, values: Any, asked: Any, **facts: Any) -> ReleasedTest:
    """Make the test from its facts and what was asked; charge the book, then read."""
    answer = ask(kind, values, asked, **facts)
    assert isinstance(answer, ReleasedTest)
    return answer
