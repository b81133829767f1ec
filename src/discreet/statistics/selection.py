"""The commonest part, and the k commonest, without the counts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Unpack

from discreet import events
from discreet.errors import whole
from discreet.mechanisms import Exponential, PermuteAndFlip
from discreet.mechanisms import TopK as Peeling
from discreet.mechanisms.parameters import store
from discreet.random import Rng
from discreet.release import Release
from discreet.statistics.asking import Asked, AskedWithoutDelta, ask, spell_out
from discreet.statistics.partition import Partition
from discreet.statistics.statistic import Statistic

__all__ = ["Mode", "TopK", "mode", "top_k"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice(Statistic):
    """A choice among public bins or categories by their counts."""

    bins: tuple[float, ...] | None = None
    categories: tuple[Hashable, ...] | None = None

    @property
    def parts(self) -> Partition:
        """The public bins or categories."""
        return Partition(self.bins, self.categories)

    @property
    @abstractmethod
    def mechanism(self) -> PermuteAndFlip | Exponential | Peeling:
        """The choice by counts, and its cost."""

    @property
    def event(self) -> events.Event:
        """The cost, known from public facts alone."""
        return self.mechanism.event

    def error(self, confidence: float = 0.95) -> float:
        """By how many records a chosen part may fall short of the commonest left, with at least this confidence."""
        return self.mechanism.error(confidence, size=len(self.parts))

    @property
    def stated_error(self) -> Any:
        """The error with 95 % confidence."""
        return self.error()

    def check(self, data: Any) -> None:
        """A column of numbers, or of what the categories are."""
        self.parts.check(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode(_Choice):
    """The public bin (as a pair of edges) or category that holds most records, chosen by noisy counts.

    Noise: permute-and-flip with ``epsilon=`` (report noisy max with exponential noise; never worse than the exponential
    mechanism), the exponential mechanism with ``rho=``. Guarantee: one record moves one count by 1, all in the same
    direction unless it is replaced, so the noise has scale 1/ε (2/ε under replace), whatever the number of parts.
    Records in no part are left out. Reference: McKenna and Sheldon (2020).

    >>> operation = Mode(categories=("red", "green", "blue"), epsilon=1.0)
    >>> round(operation.error(confidence=0.95), 2)
    4.09
    >>> operation.release(["red"] * 40 + ["blue"] * 60 + [None], rng=1).value
    'blue'
    """

    label = "mode"

    def __post_init__(self) -> None:
        self._check()
        if self.delta is not None:
            raise ValueError("delta is given, but choosing one part costs epsilon alone: leave delta out.")
        parts = Partition.of(self.bins, self.categories)
        store(self, bins=parts.bins, categories=parts.categories)
        _ = self.event

    @property
    def mechanism(self) -> PermuteAndFlip | Exponential:
        """The choice by counts, and its cost."""
        kind = Exponential if self.epsilon is None else PermuteAndFlip
        return kind(
            sensitivity=1.0, epsilon=self.budget.selection(), monotone=not self._replace, adjacency=self.adjacency
        )

    def draw(self, data: Any, rng: Rng) -> Any:
        """The label of the chosen part."""
        return self.parts.labels[self.mechanism.draw(self.parts.counts(data), rng)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK(_Choice):
    """The ``k`` commonest public bins or categories, in the order in which they were chosen: one after another.

    Each of the k choices is by the exponential mechanism among the parts that are left. The budget holds for all
    together: ``epsilon=`` alone is divided by k; with ``delta=``, or as ``rho=``, the k choices compose as what they
    are, of bounded range, and each gets more. Guarantee and reference: ``mechanisms.TopK``.

    >>> operation = TopK(k=2, categories="abcd", epsilon=1.0)
    >>> operation.release(list("a" * 5 + "b" * 80 + "c" * 120), rng=1).value
    ('c', 'b')
    """

    k: int

    label = "top k"

    def __post_init__(self) -> None:
        self._check()
        parts = Partition.of(self.bins, self.categories)
        store(self, k=whole("k", self.k, low=1, high=1 << 62), bins=parts.bins, categories=parts.categories)
        if self.k > len(parts):
            raise ValueError(f"k is {self.k}, but there are only {len(parts)} parts.")
        _ = self.event

    @property
    def mechanism(self) -> Peeling:
        """The choices by counts, and their cost."""
        each = self.budget.selection(self.k)
        return Peeling(
            k=self.k, sensitivity=1.0, epsilon=each * self.k, monotone=not self._replace, adjacency=self.adjacency
        )

    def draw(self, data: Any, rng: Rng) -> tuple[Any, ...]:
        """The labels of the chosen parts."""
        labels = self.parts.labels
        return tuple(labels[i] for i in self.mechanism.draw(self.parts.counts(data), rng))


@spell_out(AskedWithoutDelta, "mode")
def mode(
    values: Any,
    *,
    bins: Iterable[float] | None = None,
    categories: Iterable[Hashable] | None = None,
    **asked: Unpack[AskedWithoutDelta],
) -> Release[Any]:
    """The commonest public bin or category: see ``Mode``.

    >>> mode([3, 3, 3, 4] * 20, categories=range(10), epsilon=1.0, rng=1).value
    3
    """
    parts = Partition.of(bins, categories)
    return ask(Mode, values, asked, bins=parts.bins, categories=parts.categories)


@spell_out(Asked, "top k")
def top_k(
    values: Any,
    k: int,
    *,
    bins: Iterable[float] | None = None,
    categories: Iterable[Hashable] | None = None,
    **asked: Unpack[Asked],
) -> Release[tuple[Any, ...]]:
    """The k commonest public bins or categories: see ``TopK``.

    >>> top_k([3] * 300 + [4] * 150, k=2, categories=range(10), epsilon=1.0, rng=1).value
    (3, 4)
    """
    parts = Partition.of(bins, categories)
    return ask(TopK, values, asked, k=k, bins=parts.bins, categories=parts.categories)
