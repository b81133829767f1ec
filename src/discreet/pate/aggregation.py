r"""What may be shown of the teachers' votes: the class of the largest noisy count.

An aggregator is an operation on vote counts, an array of shape (queries, classes). A record more or less moves the
votes of one teacher: in every query one count falls by one and another rises by one, so √2 in L2 and 2 in L1. The noisy
counts are one Gaussian or Laplace release, and their largest is post-processing:

====================  ============================================================  ================================
aggregator            an answer                                                     cost of a query
====================  ============================================================  ================================
``LNMax``             argmax of n_j + Lap(scale)                                    Laplace(scale/2)
``GNMax``             argmax of n_j + N(0, σ²)                                      Gaussian(σ/√2)
``ConfidentGNMax``    as GNMax, if max n_j + N(0, σ₁²) ≥ T; otherwise none          Gaussian(σ₁), and Gaussian(σ/√2)
                                                                                    where it answers
``InteractiveGNMax``  as GNMax, if max (n_j − M·p_j) + N(0, σ₁²) ≥ T; otherwise     the same
                      the student's own class if it is sure of it, or none
====================  ============================================================  ================================

All of it is stated for add-remove. Under replace a record may leave one teacher and enter another, so everything
doubles and every multiplier halves; that is what accountants make of these events when they are asked for replace.

Reference: Papernot et al. (2017), "Semi-supervised knowledge transfer for deep learning from private training data";
Papernot et al. (2018), "Scalable private learning with PATE".
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.errors import whole
from discreet.mechanisms import Gaussian, Laplace
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_readable
from discreet.mechanisms.values import finite
from discreet.release import Chargeable, pay
from discreet.sessions import PaidOnce, one_at_a_time

__all__ = [
    "NONE",
    "SOFT_UNIT",
    "Aggregator",
    "GNMax",
    "LNMax",
    "VoteAnswers",
    "VotingSession",
    "check_counts",
    "gaussian_votes",
]

NONE = -1  # the label of a query that has no answer
SOFT_UNIT = 2.0**-20  # of which shares of a vote are whole multiples, so that sums of them are exact
_CLASSES = 1 << 12  # the most that are paid for
_ROOT_TWO = math.nextafter(math.sqrt(2), 2)


class VoteAnswers(NamedTuple):
    """One entry per query: its label (-1: none), whether it was put to the test, whether the teachers answered it."""

    labels: NDArray[np.int64]
    tested: NDArray[np.bool_]
    answered: NDArray[np.bool_]


@lru_cache(maxsize=256)
def gaussian_votes(sigma: float, unit: str) -> Gaussian:
    """The noise on a query's counts, of which one vote moves: one count falls by one, another rises by one."""
    return Gaussian(sensitivity=_ROOT_TWO, sigma=sigma, max_size=_CLASSES, unit=unit)


@lru_cache(maxsize=256)
def _laplace_votes(scale: float, unit: str) -> Laplace:
    return Laplace(sensitivity=2.0, scale=scale, max_size=_CLASSES, unit=unit)


def check_counts(counts: Any, queries: int) -> None:
    """Refuse what is publicly no array of votes for at most so many queries. The number of queries is public."""
    check_readable(counts, "counts")
    shape: tuple[int, ...] = getattr(counts, "shape", ())
    kind = getattr(getattr(counts, "dtype", None), "kind", "")
    if len(shape) != 2 or kind not in "iuf" or not kind:
        raise ValueError("counts must be an array of numbers, of shape (queries, classes): votes for each class.")
    if shape[0] > queries or not 2 <= shape[1] <= _CLASSES:
        raise ValueError(
            f"counts has shape {shape}, but this aggregator answers up to queries={queries}, of 2 to {_CLASSES} "
            "classes."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregator(Mechanism[VoteAnswers]):
    """Base of the aggregators: ``queries`` is how many may be asked, and is what the event counts.

    ``release(counts)`` answers all of them for that event. ``start(book=…)`` gives a session, which asks one query at a
    time and charges a book for each before it looks at the votes.
    """

    queries: int = 1

    @property
    @abstractmethod
    def answer(self) -> Mechanism[Any]:
        """The noise of one answer."""

    @abstractmethod
    def put(self, session: VotingSession, votes: Any) -> int:
        """The label of one query, -1 for none; what it draws, it draws through the session."""

    @property
    def event(self) -> events.Event:
        """The cost of all queries."""
        return self.answer.event * self.queries

    @property
    def most_answers(self) -> int:
        """How many queries the teachers answer at most."""
        return self.queries

    def check(self, data: Any) -> None:
        """Refuse what is publicly no array of votes."""
        check_counts(data, self.queries)

    def check_query(self, votes: Any) -> None:
        """Refuse what is publicly no array of votes for one query, before it is charged for."""
        check_counts(np.asarray(votes)[None], 1)

    def start(
        self, rng: random.RngLike = None, book: Chargeable | None = None, label: str = "teachers' answer"
    ) -> VotingSession:
        """A session of queries; ``book`` is charged for each test and each answer before it is made."""
        return VotingSession(self, random.as_rng(rng), book, label)

    def each(self, data: Any) -> list[Any]:
        """What ``put`` looks at, for each query."""
        return list(finite(np.asarray(data)))

    def draw(self, data: Any, rng: random.Rng) -> VoteAnswers:
        """A label per query; once every answer is used up, the rest has none and costs nothing."""
        session = self.start(rng)
        for votes in self.each(data):
            session.ask(votes)
        return session.answers()


class VotingSession(PaidOnce):
    """Queries one at a time; what is asked next may depend on what was answered.

    >>> session = GNMax(sigma=2.0, queries=2).start(rng=1)
    >>> session.ask(np.array([100, 20, 0])), session.left
    (0, 1)
    """

    def __init__(self, aggregator: Aggregator, rng: random.Rng, book: Chargeable | None, label: str) -> None:
        super().__init__()
        self._aggregator, self._rng, self._book, self._label = aggregator, rng, book, label
        self._told: list[tuple[int, bool, bool]] = []
        self._tests = self._answers = 0
        self.reproducible = rng.reproducible

    @property
    def left(self) -> int:
        """How many more queries may be put."""
        return self._aggregator.queries - len(self._told)

    @property
    def over(self) -> bool:
        """Whether every answer was given."""
        return self._answers >= self._aggregator.most_answers

    @one_at_a_time
    def ask(self, votes: Any) -> int:
        """The label of one query, by its counts (``InteractiveGNMax``: and the student's shares); -1 if it has none."""
        if not self.left:
            raise ValueError(f"The session is over: its {self._aggregator.queries} queries were asked.")
        self._aggregator.check_query(votes)
        before = self._tests, self._answers
        label = NONE if self.over else self._aggregator.put(self, votes)
        self._told.append((label, self._tests > before[0], self._answers > before[1]))
        return label

    def answers(self) -> VoteAnswers:
        """All that was said so far."""
        table = np.array(self._told, np.int64).reshape(-1, 3)
        return VoteAnswers(table[:, 0], table[:, 1].astype(bool), table[:, 2].astype(bool))

    def test(self, mechanism: Mechanism[Any], value: float, threshold: float) -> bool:
        """Whether a noisy value reaches the threshold; charged first. For ``put``, inside ``ask``."""
        self._refuse_outside()
        pay(mechanism, self._book, self._label, reproducible=self.reproducible)
        self._tests += 1
        return bool(mechanism.draw(value, self._rng) >= threshold)

    def answer(self, mechanism: Mechanism[Any], counts: Any) -> int:
        """The largest of the noisy counts; charged first. For ``put``, inside ``ask``."""
        self._refuse_outside()
        pay(mechanism, self._book, self._label, reproducible=self.reproducible)
        self._answers += 1
        return int(np.argmax(mechanism.draw(np.asarray(counts, np.float64), self._rng)))

    def _refuse_outside(self) -> None:
        if not self._answering:
            raise ValueError("A session draws inside ask, which counts the query. Nothing was charged. Call ask.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LNMax(Aggregator):
    """The class of the largest count with Laplace noise of this ``scale`` (1/γ in the paper).

    Guarantee: that of Laplace noise on counts whose L1 change is 2: pure, 2/scale a query.
    Reference: Papernot et al. (2017), Section 2.1.

    >>> LNMax(scale=20.0, queries=100).release(np.array([[200, 30, 20], [10, 235, 5]]), rng=1).value.labels.tolist()
    [0, 1]
    """

    scale: float

    def __post_init__(self) -> None:
        store(self, queries=whole("queries", self.queries, low=1), scale=self.answer.scale)

    @property
    def answer(self) -> Laplace:
        """The noise of one answer."""
        return _laplace_votes(self.scale, self.unit)

    def put(self, session: VotingSession, votes: Any) -> int:
        """Always an answer."""
        return session.answer(self.answer, votes)


@dataclass(frozen=True, slots=True, kw_only=True)
class GNMax(Aggregator):
    """The class of the largest count with Gaussian noise of standard deviation ``sigma``.

    Guarantee: that of Gaussian noise on counts whose L2 change is √2: Gaussian(σ/√2) a query.
    Reference: Papernot et al. (2018), Proposition 8.

    >>> GNMax(sigma=40.0, queries=286).event.event.noise_multiplier * 2**0.5
    39.99999...
    """

    sigma: float

    def __post_init__(self) -> None:
        store(self, queries=whole("queries", self.queries, low=1), sigma=self.answer.sigma)

    @property
    def answer(self) -> Gaussian:
        """The noise of one answer."""
        return gaussian_votes(self.sigma, self.unit)

    def put(self, session: VotingSession, votes: Any) -> int:
        """Always an answer."""
        return session.answer(self.answer, votes)
