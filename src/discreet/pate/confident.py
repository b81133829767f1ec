"""Aggregators that answer only where it pays: where the teachers agree, or where the student is wrong.

A noisy test comes first. One vote moves the largest count, and the largest lead over a public prediction, by at most
one: Gaussian(σ₁) a test. How many tests pass depends on the data, so the number of answers is declared (``answers``),
and nothing more is asked once they are given; with a book, a session charges each test and each answer as it comes,
which the book's filter is for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from discreet import events
from discreet.errors import number, probability, whole
from discreet.mechanisms import Gaussian
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import double
from discreet.mechanisms.values import check_numbers, finite, flat, numbers
from discreet.pate.aggregation import NONE, SOFT_UNIT, Aggregator, VotingSession, check_counts, gaussian_votes

__all__ = ["ConfidentGNMax", "InteractiveGNMax", "Tested"]


@lru_cache(maxsize=256)
def _gaussian_test(sigma: float, unit: str) -> Gaussian:
    return Gaussian(sensitivity=1.0, sigma=sigma, max_size=1, unit=unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested(Aggregator):
    """Base of the aggregators that test before they answer.

    ``threshold`` and ``sigma_threshold`` are T and σ₁ of the test, ``sigma`` is σ of an answer; up to ``queries`` are
    tested, and up to ``answers`` of them answered (every one, unless that is said).
    """

    sigma: float
    threshold: float
    sigma_threshold: float
    answers: int | None = None

    def __post_init__(self) -> None:
        store(
            self,
            queries=whole("queries", self.queries, low=1),
            answers=None if self.answers is None else whole("answers", self.answers, low=1),
            threshold=number("threshold", self.threshold, low=-1e9, high=1e9),
        )
        store(self, sigma=self.answer.sigma, sigma_threshold=self.test.sigma)

    @property
    def answer(self) -> Gaussian:
        """The noise of one answer."""
        return gaussian_votes(self.sigma, self.unit)

    @property
    def test(self) -> Gaussian:
        """The noise of one test."""
        return _gaussian_test(self.sigma_threshold, self.unit)

    @property
    def most_answers(self) -> int:
        """How many queries the teachers answer at most."""
        return self.queries if self.answers is None else min(self.answers, self.queries)

    @property
    def event(self) -> events.Event:
        """The cost of testing every query and of giving every answer."""
        return self.test.event * self.queries + self.answer.event * self.most_answers


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidentGNMax(Tested):
    """GNMax for queries on which the teachers agree: the largest count, with noise, must reach ``threshold``.

    Guarantee: Gaussian(σ₁) for each of ``queries``, and Gaussian(σ/√2) for each of ``answers``.
    Reference: Papernot et al. (2018), Algorithm 1.

    >>> votes = ConfidentGNMax(sigma=4.0, threshold=150.0, sigma_threshold=10.0, queries=2)
    >>> votes.release(np.array([[90, 80, 80], [10, 235, 5]]), rng=1).value.labels.tolist()
    [-1, 1]
    """

    def put(self, session: VotingSession, votes: Any) -> int:
        """An answer, if the test is passed."""
        if not session.test(self.test, float(np.max(votes)), self.threshold):
            return NONE
        return session.answer(self.answer, votes)


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractiveGNMax(Tested):
    """GNMax for queries on which ``n_teachers`` teachers contradict what the student already says.

    The votes of a query come with the student's probabilities p, which are public: ``release((counts, shares))``. Where
    the largest n_j − M·p_j, with noise, reaches ``threshold``, the teachers answer; elsewhere the student is told its
    own class, if it gives it at least ``confidence``.

    Guarantee: as ``ConfidentGNMax``, whatever the student says.
    Reference: Papernot et al. (2018), Algorithm 2.
    """

    n_teachers: int
    confidence: float = 0.9

    def __post_init__(self) -> None:
        Tested.__post_init__(self)
        store(
            self,
            n_teachers=whole("n_teachers", self.n_teachers, low=1),
            confidence=probability("confidence", self.confidence),
        )

    def check(self, data: Any) -> None:
        """Refuse what is publicly no pair of votes and shares."""
        if not isinstance(data, tuple) or len(data) != 2:
            raise ValueError("data must be the pair (counts, the student's probabilities).")
        counts, shares = data
        check_counts(counts, self.queries)
        shape = check_numbers(shares, "The student's probabilities")
        if shape != counts.shape or not all(math.isfinite(double(x)) for x in flat(shares, len(shape))):
            raise ValueError(f"The student's probabilities must be finite numbers of the counts' shape {counts.shape}.")

    def check_query(self, votes: Any) -> None:
        """Refuse what is publicly no pair of votes and shares for one query."""
        if not isinstance(votes, tuple) or len(votes) != 2:
            raise ValueError("votes must be the pair (counts, the student's probabilities).")
        self.check(tuple(np.asarray(part)[None] for part in votes))

    def each(self, data: Any) -> list[Any]:
        """The counts of a query with the student's probabilities for it."""
        return list(zip(finite(np.asarray(data[0])), numbers(data[1]), strict=True))

    def put(self, session: VotingSession, votes: Any) -> int:
        """The teachers' answer where they contradict the student; its own class where it is sure."""
        counts, shares = finite(np.asarray(votes[0])), numbers(votes[1]).astype(np.float64)
        expected = np.round(self.n_teachers * np.clip(shares, 0, 1) / SOFT_UNIT) * SOFT_UNIT  # subtracted exactly
        if session.test(self.test, float(np.max(counts - expected)), self.threshold):
            return session.answer(self.answer, counts)
        return int(np.argmax(shares)) if np.max(shares) >= self.confidence else NONE
