"""Several tests: adjusted p-values of a table of tests, and a level that is spent over several looks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, overload

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.errors import choice, number, probability, whole
from discreet.inference.hypothesis import ReleasedTest
from discreet.inference.simulation import Array
from discreet.mechanisms.parameters import store
from discreet.random import RngLike
from discreet.release import Operation, charged

__all__ = ["AlphaSpending", "Look", "adjust"]

Method = Literal["holm", "benjamini-hochberg"]


class _Tested(Protocol):
    """What has a p-value."""

    @property
    def p_value(self) -> float: ...


@overload
def adjust(p_values: Mapping[str, _Tested], method: Method = "holm") -> dict[str, float]: ...
@overload
def adjust(p_values: Iterable[float], method: Method = "holm") -> Array: ...
def adjust(p_values: Any, method: Method = "holm") -> Any:
    """p-values of several tests, adjusted: those of at most α are rejected. Of released tests by name, by name too.

    "holm" keeps the probability of any false rejection at α, whatever the tests have to do with each other (Holm 1979).
    "benjamini-hochberg" keeps the expected share of false ones among the rejections, for independent or positively
    dependent tests (Benjamini and Hochberg 1995). Noise that is drawn for each test apart makes none of them dependent.

    >>> adjust([0.01, 0.04, 0.03]).tolist(), adjust([0.01, 0.04, 0.03], "benjamini-hochberg").tolist()
    ([0.03, 0.06, 0.06], [0.03, 0.04, 0.04])
    """
    if isinstance(p_values, Mapping):
        adjusted = adjust([test.p_value for test in p_values.values()], method)
        return dict(zip(p_values, adjusted.tolist(), strict=True))
    p = np.array([probability("p_values", each) for each in p_values])
    return choice("method", method, {"holm": _holm, "benjamini-hochberg": _benjamini_hochberg})(p)


def _holm(p: Array) -> Array:
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return _back(np.minimum(steps, 1.0), order)


def _benjamini_hochberg(p: Array) -> Array:
    order = np.argsort(p, kind="stable")
    steps = p[order] * len(p) / np.arange(1, len(p) + 1)
    return _back(np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0), order)


def _back(sorted_values: Array, order: Array) -> Array:
    out = np.empty_like(sorted_values)
    out[order] = sorted_values
    return out


@dataclass(frozen=True, slots=True)
class Look:
    """A look of a plan: its number, its level, and the test that was released at it."""

    number: int
    level: float
    answer: ReleasedTest

    @property
    def rejects(self) -> bool:
        """Whether the null hypothesis is rejected at this look."""
        return bool(self.answer.p_value <= self.level)


@dataclass(frozen=True, slots=True)
class _OneCharge:
    """A book whose charge has a key, under which it is charged once, by whatever process."""

    book: Any
    key: str

    @property
    def records_asked(self) -> bool:
        """As the book does."""
        return bool(getattr(self.book, "records_asked", False))

    def charge(self, event: Any, label: str = "", **told: Any) -> object:
        """Charge the book, once."""
        return self.book.charge(event, label=label, key=self.key, **told)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaSpending:
    r"""How a level α is spent over planned ``looks`` at one question: look k is a test at ``level(k)``.

    The levels of all looks add up to α, so that a false rejection at any of them has at most that probability,
    whatever the tests have to do with each other; ``look`` takes the next one, and counts them in a book. How early it
    is spent: "pocock", evenly but for a logarithm;
    "obrien-fleming", late; "even", α/K each. The privacy cost of each look is charged as ever: a book keeps ε, this
    keeps α. Reference: Lan and DeMets (1983), whose spending functions these are; the union bound stands in place of
    their joint law of the looks.

    >>> plan = AlphaSpending(alpha=0.05, looks=3, law="obrien-fleming")
    >>> [round(plan.level(k), 4) for k in (1, 2, 3)]
    [0.0007, 0.0157, 0.0336]
    """

    alpha: float = 0.05
    looks: int
    law: Literal["even", "pocock", "obrien-fleming"] = "even"

    def __post_init__(self) -> None:
        store(
            self,
            alpha=number("alpha", self.alpha, low=0, high=1, open_low=True, open_high=True),
            looks=whole("looks", self.looks, low=1),
        )
        choice("law", self.law, _SPENDING)

    def level(self, look: int) -> float:
        """The level of a look, from 1."""
        k = whole("look", look, low=1, high=self.looks)
        spent = choice("law", self.law, _SPENDING)
        return spent(self.alpha, k / self.looks) - spent(self.alpha, (k - 1) / self.looks)

    def look(self, test: Operation, data: Any, *, book: Any, question: str, rng: RngLike = None) -> Look:
        """The next look at a question: ``book`` counts the looks as it counts epsilon, and after the last refuses.

        Each look's charge has a key of the question and the look's number, so that two processes, or one that crashed
        and began again, never share a level; the history shows the level.
        """
        from discreet.ledger import AlreadyCharged  # a book that knows keys is a ledger's, which is an extra

        for k in range(1, self.looks + 1):
            once = _OneCharge(book, f"{question}: look {k}")
            if book.charged_under(once.key) is not None:
                continue
            label = f"{question}: look {k} of {self.looks}, level {self.level(k):.4g}"
            try:
                answer = charged(test, data, book=once, label=label, rng=rng)
            except AlreadyCharged:  # by someone else, in between
                continue
            assert isinstance(answer, ReleasedTest)
            return Look(k, self.level(k), answer)
        raise ValueError(
            f"All {self.looks} looks at {question!r} were taken, and their levels spent. Nothing was charged."
        )


def _obrien_fleming(alpha: float, share: float) -> float:
    return float(2 * ndtr(ndtri(alpha / 2) / math.sqrt(share))) if share > 0 else 0.0


_SPENDING: dict[str, Callable[[float, float], float]] = {
    "even": lambda alpha, share: alpha * share,
    "pocock": lambda alpha, share: alpha * math.log1p((math.e - 1) * share),
    "obrien-fleming": _obrien_fleming,
}
