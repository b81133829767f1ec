"""Totals of what adds up by one number a leaf: pure epsilons, rho, and mu in squares."""

from __future__ import annotations

import math

from discreet import events as ev
from discreet.accounting.facts import facts_of, mu_of, pure_of, rho_of
from discreet.accounting.neighbours import resolve
from discreet.accounting.outward import root, times
from discreet.accounting.parts import Part, Resolved, each_leaf, fold
from discreet.adjacency import Adjacency

__all__ = ["hopeless", "mu_sum", "pure_epsilon", "pure_sum", "rho_sum"]


def pure_epsilon(event: ev.Event, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> float:
    """Sum of the pure epsilons of all leaves; infinity if one of them is not pure.

    >>> pure_epsilon(ev.Laplace(noise_multiplier=2.0) * 4)
    2.0
    """
    return pure_sum(resolve(event, Adjacency(adjacency)))


def pure_sum(resolved: Resolved) -> float:
    """The same for a resolved event; a truncated sampler is not pure."""
    return math.inf if resolved.slack else fold(resolved.parts, pure_of, lambda a, b: a + b, times, max, 0.0)


def rho_sum(parts: tuple[Part, ...]) -> float:
    """Total rho."""
    return fold(parts, rho_of, lambda a, b: a + b, times, max, 0.0)


def mu_sum(parts: tuple[Part, ...]) -> float:
    """Total mu: squares add up."""
    return fold(parts, mu_of, math.hypot, lambda mu, n: mu * root(n), max, 0.0)


def hopeless(resolved: Resolved) -> bool:
    """Whether something was published without protection."""
    return any(facts_of(leaf.event).hopeless for leaf in each_leaf(resolved.parts))
