"""Pairs made of pairs: what sampling, reversing and parallel composition do to them.

================================  ===========================================  =======================================
sampler                           theorem                                      adjacency
================================  ===========================================  =======================================
Poisson                           ``Sampled`` and its reverse                  add-remove
Poisson, Gaussian inside          ``replaced.ReplaceSampledGaussian``          replace, zero-out
truncated Poisson                 as Poisson, plus (1 + e^ε) times overflow    as Poisson
fixed size, without replacement   ``Symmetric(Sampled(...))``                  replace
balls in bins                     ``allocation.Allocation`` and its reverse    add-remove
shuffled                          one event a pass, no amplification           replace
================================  ===========================================  =======================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.accounting.arrays import Array, Interval
from discreet.accounting.pld.atoms import NOTHING
from discreet.accounting.pld.pairs import SMALLEST, Pair, Tails, reverse

__all__ = ["Reversed", "Sampled", "Supremum", "Symmetric"]


def _over(outer: Any, inside: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """What is attainable with a pair around another, of which ``inside`` is."""
    return (outer,) if inside[0] is outer.pair else tuple(replace(outer, pair=choice) for choice in inside)


@dataclass(frozen=True)
class Reversed(Pair):
    """The same two laws in the other order: the loss changes sign. For sampled pairs, whose Q is nowhere zero."""

    pair: Pair

    @property
    def support(self) -> Interval:
        """Mirror image."""
        return -self.pair.highest, -self.pair.lowest

    @property
    def atom(self) -> float:
        """Mirror image."""
        return self.pair.atom

    def tails(self, losses: Array) -> Tails:
        """Heads of the pair, under the other law and strictly below."""
        p, q = self.pair.heads(np.nextafter(-losses, -np.inf))
        return q, p

    def heads(self, losses: Array) -> Tails:
        """Tails of the pair, under the other law, the point included."""
        p, q = self.pair.tails(np.nextafter(-losses, -np.inf))
        return q, p

    @property
    def mirror(self) -> Pair:
        """The pair as it was."""
        return self.pair

    @property
    def attained(self) -> bool:
        """As the pair."""
        return self.pair.attained

    @property
    def attainable(self) -> tuple[Pair, ...]:
        """Around what is attainable inside; nothing where that was computed for the other direction."""
        return _over(self, self.pair.attainable) if self.attained else (NOTHING,)

    @property
    def raised(self) -> bool:
        """As the pair."""
        return self.pair.raised


@dataclass(frozen=True)
class Sampled(Pair):
    r"""(1-q)Q + qP against Q: the loss becomes log(1 - q + q·exp(L)).

    Dominates Poisson sampling at rate q when (P, Q) dominates the event for one removed record.
    """

    rate: float
    pair: Pair

    @property
    def mirror(self) -> Pair:
        """The two laws in the other order."""
        return Reversed(self)

    @property
    def attained(self) -> bool:
        """As the pair."""
        return self.pair.attained

    @property
    def attainable(self) -> tuple[Pair, ...]:
        """Around what is attainable inside."""
        return _over(self, self.pair.attainable)

    @property
    def raised(self) -> bool:
        """If the rate is the smallest there is, or as the pair."""
        return self.rate <= SMALLEST or self.pair.raised

    def log_moment_beyond(self, loss: float, c: Array) -> Array:
        """The sampled loss is at most L + log(q + (1-q)e^{-l}) where L > l; P' has density e^{L'} over Q, P has e^L."""
        inner = float(self._inner(np.array([loss]))[0])
        less = math.log(self.rate + (1 - self.rate) * math.exp(-max(inner, 0.0)))
        return (c + 1) * less + self.pair.log_moment_beyond(inner, c)

    @property
    def infinity(self) -> float:
        """Sampled with probability q."""
        return self.rate * self.pair.infinity

    @property
    def support(self) -> Interval:
        """Never below log(1-q)."""
        low = -math.inf if self.pair.infinity else self.pair.lowest  # where P may have nothing, Q loses everything
        low, high = self._outer(np.array([low, self.pair.highest])).tolist()
        return low, high

    @property
    def atom(self) -> float:
        """The atom, sampled."""
        return float(self._outer(np.array([self.pair.atom]))[0]) if self.pair.atom else 0.0

    def _outer(self, losses: Array) -> Array:
        with np.errstate(under="ignore"):
            small = np.log1p(self.rate * np.expm1(np.minimum(losses, 30.0)))
            return np.where(losses < 30, small, np.logaddexp(np.log1p(-self.rate), losses + math.log(self.rate)))

    def _inner(self, losses: Array) -> Array:
        """The inverse of the map; below log(1-q) it has none."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            x = np.expm1(np.minimum(losses, 30.0)) / self.rate
            beyond = losses - math.log(self.rate) + np.log1p(-(1 - self.rate) * np.exp(-np.maximum(losses, 30.0)))
            result = np.where(losses < 30, np.log1p(np.maximum(x, -1.0)), beyond)
        return np.where(x < -1, -np.inf, result)

    def _mix(self, p: Array, q: Array) -> Tails:
        return (1 - self.rate) * q + self.rate * p, q

    def tails(self, losses: Array) -> Tails:
        """Tails at the preimage; below log(1-q) everything."""
        p, q = self._mix(*self.pair.tails(self._inner(losses)))
        below = losses < np.log1p(-self.rate)
        return np.where(below, 1.0, p), np.where(below, 1.0, q)

    def heads(self, losses: Array) -> Tails:
        """Heads at the preimage; below log(1-q) nothing."""
        p, q = self._mix(*self.pair.heads(self._inner(losses)))
        below = losses < np.log1p(-self.rate)
        return np.where(below, 0.0, p), np.where(below, 0.0, q)


@dataclass(frozen=True)
class Symmetric(Pair):
    """The larger of a pair's profile and of its reverse's, when the pair dominates at all orders above one.

    Sampling a fixed number under replace: for orders at least one the profile is that of ``Sampled`` (Balle, Barthe
    and Gaboardi 2018, Theorem 9), and the roles of the two records can be exchanged, so orders below one follow by
    symmetry. What probability remains is put on loss zero. Using the sampled pair itself would be unsound under
    composition (Lebeda, Regehr, Kamath and Steinke 2024).
    """

    pair: Pair

    @property
    def symmetric(self) -> bool:
        """By construction."""
        return True

    @property
    def attained(self) -> bool:
        """As the pair."""
        return self.pair.attained

    @property
    def attainable(self) -> tuple[Pair, ...]:
        """Around what is attainable inside."""
        return _over(self, self.pair.attainable)

    @property
    def raised(self) -> bool:
        """As the pair."""
        return self.pair.raised

    def log_moment_beyond(self, loss: float, c: Array) -> Array:
        """Above zero the losses are the pair's."""
        return self.pair.log_moment_beyond(loss, c)

    @property
    def infinity(self) -> float:
        """As the pair's."""
        return self.pair.infinity

    @property
    def support(self) -> Interval:
        """Mirror image of the largest."""
        return -self.pair.highest, self.pair.highest

    def tails(self, losses: Array) -> Tails:
        """The pair's at and above zero, the complement of the mirrored below."""
        p, q = self.pair.tails(np.maximum(losses, 0.0))
        p_head, q_head = self.heads(np.minimum(losses, 0.0))
        return np.where(losses >= 0, p, 1 - p_head), np.where(losses >= 0, q, 1 - q_head)

    def heads(self, losses: Array) -> Tails:
        """The pair's tails mirrored below zero, the complement at and above."""
        q, p = self.pair.tails(np.nextafter(np.maximum(-losses, 0.0), -np.inf))
        p_tail, q_tail = self.pair.tails(np.maximum(losses, 0.0))
        below = losses < 0
        return np.where(below, p, 1 - p_tail), np.where(below, q, 1 - q_tail)


@dataclass(frozen=True)
class Supremum(Pair):
    """Pointwise largest profile of several pairs: parallel composition, where the neighbour chooses the part."""

    pairs: tuple[Pair, ...]

    @property
    def symmetric(self) -> bool:
        """If every part is."""
        return all(pair.symmetric for pair in self.pairs)

    @property
    def mirror(self) -> Pair:
        """Each part's."""
        return Supremum(tuple(reverse(part) for part in self.pairs))

    @property
    def attained(self) -> bool:
        """An envelope."""
        return False

    @property
    def attainable(self) -> tuple[Pair, ...]:
        """Every part's."""
        return tuple(choice for part in self.pairs for choice in part.attainable)

    @property
    def raised(self) -> bool:
        """If any part is."""
        return any(pair.raised for pair in self.pairs)

    @property
    def infinity(self) -> float:
        """The largest."""
        return max(pair.infinity for pair in self.pairs)

    @property
    def support(self) -> Interval:
        """The smallest."""
        return min(pair.lowest for pair in self.pairs), max(pair.highest for pair in self.pairs)

    def profile(self, losses: Array) -> Array:
        """The largest profile."""
        return np.asarray(np.max([pair.profile(losses) for pair in self.pairs], axis=0))
