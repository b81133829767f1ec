"""Randomized response: every record noises itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import events, random
from discreet.errors import number, positive, whole
from discreet.mechanisms.canonical import canonical
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_container, element_type, entries, holds_numbers, is_fractional, readable
from discreet.random.bounds import Interval, exp_bounds
from discreet.random.tap import draw_output

__all__ = ["RandomizedResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(Mechanism[NDArray[np.int64]]):
    r"""Reports each record's category truthfully with odds e^ε to 1 against each of the other categories.

    Law: truth with probability :math:`e^\epsilon/(e^\epsilon + k - 1)`, otherwise a uniform lie; the coin is decided
    exactly (one 64-bit word, more where it is too close), never against a rounded probability.

    A record that is none of the categories 0 … k-1 (another number, text, ``None``) reports any of them with the same
    probability 1/k, which lies between that of a lie and that of the truth.

    Guarantee: epsilon-DP for each record against everyone, under *replace*: one report a record reveals how many
    there are. Reference: Warner (1965); Kairouz, Oh and Viswanath (2014).

    >>> mechanism = RandomizedResponse(epsilon=1.0, categories=3)
    >>> mechanism.release([0, 1, 2, 1], rng=1).value.shape
    (4,)
    >>> [round(float(x), 3) for x in mechanism.estimate([0, 0, 0, 1])]
    [1.477, 0.105, -0.582]
    """

    epsilon: float
    categories: int = 2

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=number("epsilon", positive("epsilon", self.epsilon), low=0, high=100),
            categories=whole("categories", self.categories, low=2),
        )

    @property
    def event(self) -> events.RandomizedResponse:
        """The cost to each record."""
        return events.RandomizedResponse(epsilon=self.epsilon, categories=self.categories)

    @property
    def truth(self) -> float:
        """The probability of a truthful report."""
        return 1 / (1 + (self.categories - 1) * math.exp(-self.epsilon))

    def _truth_bounds(self, digits: int) -> Interval:
        low, high = exp_bounds(Fraction(-self.epsilon), digits)
        return 1 / (1 + (self.categories - 1) * high), 1 / (1 + (self.categories - 1) * low)

    def error(self, confidence: float = 0.95, *, size: int) -> float:
        """What a category's estimated share stays within, with this confidence, for ``size`` reports (Hoeffding)."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        lie = (1 - self.truth) / (self.categories - 1)
        return math.sqrt(math.log(2 / (1 - confidence)) / (2 * whole("size", size, low=1))) / (self.truth - lie)

    def check(self, data: Any) -> None:
        """Refuse what publicly lists no records, or none of whole numbers."""
        check_container(data, "records")
        if not holds_numbers(data) or is_fractional(data):
            raise ValueError(
                f"records has dtype {element_type(data)}, but must be whole numbers: encode categories first."
            )
        if getattr(data, "ndim", 1) == 0:
            raise ValueError("records has no dimensions, but must have one entry per record.")

    def draw(self, data: ArrayLike, rng: random.Rng) -> NDArray[np.int64]:
        """One report for each record: an entry of a list, or of an array of whole numbers of any shape."""
        coded = self._codes(data)
        return draw_output(self, coded, "hamming", 1, lambda: self._report(coded, rng))

    def _codes(self, records: Any) -> NDArray[np.int64]:
        """The category of each record, -1 for none."""
        records = readable(records)
        if isinstance(records, np.ndarray) and records.dtype != object:
            array = records
            known = (array >= 0) & (array < self.categories)
            return np.where(known, np.where(known, array, 0).astype(np.int64), -1)
        forms = [canonical(x) for x in entries(records)]
        return np.array([x if type(x) is int and 0 <= x < self.categories else -1 for x in forms], np.int64)

    def _report(self, records: NDArray[np.int64], source: random.Rng) -> NDArray[np.int64]:
        honest = random.bernoulli(self._truth_bounds, records.size, source).reshape(records.shape)
        shift = source.generator.integers(1, self.categories, size=records.shape)  # unbiased, by rejection
        anything = source.generator.integers(0, self.categories, size=records.shape)
        return np.where(records < 0, anything, np.where(honest, records, (records + shift) % self.categories))

    def estimate(self, reports: ArrayLike) -> Any:
        """Unbiased shares of the categories among the records, from reports: post-processing, free."""
        shares = np.bincount(np.asarray(reports).reshape(-1), minlength=self.categories) / np.asarray(reports).size
        lie = (1 - self.truth) / (self.categories - 1)
        return (shares - lie) / (self.truth - lie)
