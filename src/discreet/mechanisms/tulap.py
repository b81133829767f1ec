r"""The Tulap mechanism: the one noise on a count that loses nothing to any other private test of a proportion.

Discrete Laplace noise plus an independent uniform number in (-½, ½): the uniform part is a coin that a randomised test
throws, made public. The law is cut at ±t if there is a delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import number, positive
from discreet.mechanisms.grid import check_entries
from discreet.mechanisms.integers import integers
from discreet.mechanisms.mechanism import Mechanism, usual_error
from discreet.mechanisms.parameters import spent_delta, store
from discreet.mechanisms.values import check_numbers
from discreet.random.tap import draw_output

__all__ = ["Tulap"]

_BITS = 53  # of the uniform part
_CUT = 2.0**-30  # the place of the cut is rounded outward to a multiple of this, which costs less than delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Tulap(Mechanism[Any]):
    r"""Adds Tulap noise to one whole number that a record moves by at most 1.

    Law: discrete Laplace of scale 1/epsilon plus a uniform number in (-½, ½), given that the sum lies in [-t, t]; with
    ``delta`` t leaves the mass delta in (t-1, t], without it t is infinite. All of it is sampled exactly: the noise in
    whole multiples of 2^-54, and the cut by comparing integers.

    Guarantee: without delta the answer is post-processing of the discrete Laplace mechanism. With it: given the uniform
    part, neighbours' answers have masses in the ratio e^epsilon at most, except for the mass beyond the neighbour's
    cut, which is that of (t-1, t], at most delta. Reference: Awan and Slavković (2018), Definition 4.1, Theorem 6.1.

    >>> mechanism = Tulap(epsilon=1.0)
    >>> round(float(mechanism.cdf(0.0)), 3), round(mechanism.error(confidence=0.95), 2)
    (0.5, 3.0)
    >>> 30 < mechanism.release(42, rng=1).value < 54
    True
    """

    epsilon: float
    delta: float | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        delta = None if self.delta is None else number("delta", self.delta, low=0, high=1, open_high=True) or None
        store(self, epsilon=positive("epsilon", self.epsilon), delta=delta, adjacency=self.adjacency)
        if self._scale > 2**50:  # as for discrete Laplace noise, which is part of it
            raise ValueError(f"epsilon is {self.epsilon:g}, but must be at least 2^-50: noise has to fit in 64 bits.")
        if delta is not None and delta > self.epsilon:
            raise ValueError(f"delta is {delta:g}, but must be at most epsilon, {self.epsilon:g}.")

    @property
    def event(self) -> events.Event:
        """The cost."""
        if self.delta is None:
            return events.DiscreteLaplace(scale=self._scale, sensitivity=1, adjacency=self.adjacency)
        return events.ApproxDP(epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency)

    @property
    def _scale(self) -> float:
        return (1 + 2.0**-40) / self.epsilon

    @property
    def cut(self) -> float:
        """Where the law ends, t; infinite without delta."""
        if self.delta is None:
            return math.inf
        b, delta = math.exp(-1 / self._scale), spent_delta(self.delta)
        # The law that is not cut has the mass delta·b / (1 - b + 2·delta·b) beyond t, and beyond j + ½ - f, with f from
        # 0 to 1, the mass b^j (b + f(1 - b)) / (1 + b): its logarithm, because b may be no double above zero.
        log_tail = math.log(delta) - 1 / self._scale - math.log1p((2 * delta - 1) * b) + math.log1p(b)
        j = max(0, math.ceil(-log_tail * self._scale) - 1)
        f = (math.exp(log_tail + j / self._scale) - b) / (1 - b)
        return math.ceil((j + 0.5 - min(1.0, max(0.0, f)) + _CUT) / _CUT) * _CUT

    def cdf(self, x: ArrayLike) -> NDArray[np.float64]:
        """The distribution function of the noise."""
        whole = _cdf(np.asarray(x, np.float64), self._scale)
        if self.delta is None:
            return whole
        tail = float(_cdf(np.asarray(-self.cut), self._scale))
        return np.clip((whole - tail) / (1 - 2 * tail), 0.0, 1.0)

    def error(self, confidence: float = 0.95) -> float:
        """What the noise stays within, with this confidence."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        low, high = 0.0, min(self.cut, 1 + self._scale * math.log(4 / (1 - confidence)))
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if 1 - 2 * self.cdf(-middle) < confidence else (low, middle)
        return high

    @property
    def stated_error(self) -> float:
        """The error with 95 % confidence."""
        return usual_error(self)

    def check(self, data: Any) -> None:
        """Refuse what is publicly no whole number, or more than one."""
        check_entries(check_numbers(data, whole=True), 1)

    def draw(self, data: Any, rng: random.Rng) -> Any:
        """The noisy number: a float, or an array of one."""
        exact = integers(data, 1)
        return draw_output(self, exact, "l1", 1, lambda: self._add(exact, rng))

    def _add(self, exact: NDArray[Any], rng: random.Rng) -> Any:
        noisy = [float(int(x) + self._noise(rng)) for x in exact.reshape(-1)]
        return np.array(noisy).reshape(exact.shape) if exact.ndim else noisy[0]

    def _noise(self, rng: random.Rng) -> Fraction:
        unit = 1 << (_BITS + 1)
        limit = math.inf if self.delta is None else int(Fraction(self.cut) * unit)
        while True:  # each turn ends it with probability (1 - b)/(1 - b + 2·delta·b), a third or more: delta ≤ epsilon
            jump = int(random.discrete_laplace(self._scale, rng=rng)[0])
            noise = jump * unit + 2 * (rng.word() >> (64 - _BITS)) + 1 - unit // 2
            if abs(noise) <= limit:
                return Fraction(noise, unit)


def _cdf(x: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """The distribution function of the law that is not cut: linear between half-integers."""
    b = np.exp(-1 / scale)
    near = np.rint(-np.abs(x))
    below = b**-near / (1 + b) * (b + (-np.abs(x) - near + 0.5) * (1 - b))
    return np.asarray(np.where(x > 0, 1 - below, below))
