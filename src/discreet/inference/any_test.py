"""Any other test, made private: the test of tests, by subsample and aggregate.

Records are dealt to parts, the public test runs on each part, and the number of parts where it rejects is tested with
the most powerful private binomial test. It needs several times the data of a test that is made for its question.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from discreet.errors import number, whole
from discreet.inference.hypothesis import HypothesisTest
from discreet.inference.proportions import CountTest, Proportion
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_rows, rows
from discreet.random import Rng
from discreet.random.tap import coins

__all__ = ["TestOfTests"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOfTests(CountTest):
    r"""A p-value of a public ``test`` that takes rows of ``dimension`` numbers and returns its own p-value.

    Each record joins one of ``parts`` at random, by itself. Where the null hypothesis holds, the test rejects a part at
    the level ``rejects_at`` with at most that probability, independently; so the number of rejections is no larger than
    Binomial(parts, rejects_at), which the uniformly most powerful binomial test refutes. A test that fails, or returns
    no number, does not reject. Guarantee: a record is in one part, so it moves the number by at most 1.
    The test must keep nothing from one call to the next, as a random generator outside of it does: a record would reach
    other parts by it.
    The level holds if the test's holds for parts of random size, some of them small. Missing entries of a row reach the
    test as NaN. Reference: Kazan, Shi, Groce and Bray (2023), "The Test of Tests".

    >>> from scipy.stats import ttest_1samp
    >>> private = TestOfTests(test=lambda x: ttest_1samp(x[:, 0], 0.0).pvalue, dimension=1, parts=40, epsilon=1.0)
    >>> x = np.random.default_rng(0).normal(0.5, 1.0, (2000, 1))
    >>> private.release(x, rng=1).p_value < 0.001
    True
    """

    __test__ = False  # no test of pytest's

    test: Callable[[Any], float]
    dimension: int
    parts: int
    rejects_at: float = 0.2

    label = "test of tests"
    assumes: ClassVar[str] = "Independent records; the public test holds its level in a part."

    def __post_init__(self) -> None:
        self._check_test()
        if self._replace:
            raise ValueError(
                "The test of tests is for adjacency='add-remove': read the event's epsilon with adjacency='replace' if "
                "you need that."
            )
        store(
            self,
            dimension=whole("dimension", self.dimension, low=1),
            parts=whole("parts", self.parts, low=1),
            rejects_at=number("rejects_at", self.rejects_at, low=0, high=1, open_low=True, open_high=True),
        )

    def check(self, data: Any) -> None:
        """Rows of the declared width."""
        check_rows(data, self.dimension)

    def draw(self, data: Any, rng: Rng) -> HypothesisTest:
        """Deal, test each part, add noise to the number of rejections."""
        table = rows(data, self.dimension)
        part = coins([row.tobytes() for row in table], rng) % np.uint64(self.parts)  # even to a part in 2^32 and more
        rejections = sum(self._rejects(table[part == np.uint64(k)]) for k in range(self.parts))
        return self.answer(self.mechanism.draw(rejections, rng))

    def _rejects(self, part: Any) -> bool:
        """Whether the public test rejects. It is a user's code: however it fails, its part does not reject."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                p_value = float(self.test(part))
        except Exception:  # a failure that depends on records is no rejection, and is not shown
            return False
        return not math.isnan(p_value) and p_value <= self.rejects_at

    def answer(self, noisy: float) -> HypothesisTest:
        """What a noisy number of rejections says; the effect is the share of parts where the test rejects."""
        binomial = Proportion(
            n=self.parts,
            null=self.rejects_at,
            alternative="greater",
            confidence=self.confidence,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency="replace",  # type: ignore[arg-type]
        )
        return replace(binomial.answer(noisy), assumes=self.assumes, effect_name="share of parts that reject")
