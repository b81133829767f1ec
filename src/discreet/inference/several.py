"""Several tests: adjusted p-values of a table of tests, and a level that is spent over several looks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.errors import choice, number, probability, whole
from discreet.inference.simulation import Array
from discreet.mechanisms.parameters import store

__all__ = ["AlphaSpending", "adjust"]


def adjust(p_values: Iterable[float], method: Literal["holm", "benjamini-hochberg"] = "holm") -> Array:
    """p-values of several tests, adjusted: those of at most α are rejected.

    "holm" keeps the probability of any false rejection at α, whatever the tests have to do with each other (Holm 1979).
    "benjamini-hochberg" keeps the expected share of false ones among the rejections, for independent or positively
    dependent tests (Benjamini and Hochberg 1995). Noise that is drawn for each test apart makes none of them dependent.

    >>> adjust([0.01, 0.04, 0.03]).tolist(), adjust([0.01, 0.04, 0.03], "benjamini-hochberg").tolist()
    ([0.03, 0.06, 0.06], [0.03, 0.04, 0.04])
    """
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaSpending:
    r"""How a level α is spent over planned ``looks`` at one question: look k is a test at ``level(k)``.

    The levels of all looks add up to α, so that a false rejection at any of them has at most that probability,
    whatever the tests have to do with each other. How early it is spent: "pocock", evenly but for a logarithm;
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


def _obrien_fleming(alpha: float, share: float) -> float:
    return float(2 * ndtr(ndtri(alpha / 2) / math.sqrt(share))) if share > 0 else 0.0


_SPENDING: dict[str, Callable[[float, float], float]] = {
    "even": lambda alpha, share: alpha * share,
    "pocock": lambda alpha, share: alpha * math.log1p((math.e - 1) * share),
    "obrien-fleming": _obrien_fleming,
}
