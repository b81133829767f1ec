r"""What is proved of each kind of leaf, and what follows from it.

A kind of event is priced by what is stated of it in one place: ``register(kind, Facts(...))``. The kinds of the library
are registered in :mod:`discreet.accounting.leaves`, one file a family. Views ask the functions here, and only fold.

What is not stated is derived, where a theorem allows it, and otherwise refused:

==========  =======================================================================================================
pure        from ``approximate`` at delta zero; what is free in one currency is free in all
rho         from ``mu`` (:math:`\mu^2/2`), else from ``pure`` (:math:`\min(\epsilon^2/2, \epsilon)`): Bun and Steinke
            (2016)
pair        from ``mu`` (a shift of a Gaussian, by definition), else randomized response, which dominates all that is
            ``pure`` or ``approximate`` (Kairouz, Oh and Viswanath 2015)
curve       from the stated pair, else the line :math:`\rho\alpha`, else from the derived pair
mu          never: a central limit theorem is not a guarantee
==========  =======================================================================================================

A new kind is one class and one registration, here of something that is exactly as private as one Gaussian::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Correlated(Event):
        mu: float
        adjacency: Adjacency = Adjacency.ADD_REMOVE

    register(Correlated, Facts(mu=lambda event, adjacency: event.mu))

Decision 120.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, TypeVar, cast

import numpy as np

from discreet.accounting.arrays import Array
from discreet.accounting.outward import check_bound, product, times
from discreet.accounting.parts import Leaf, Resolved
from discreet.accounting.pld.atoms import binary, too_large
from discreet.accounting.pld.pairs import SMALLEST, GaussianShift, Pair
from discreet.adjacency import Adjacency
from discreet.errors import UnsupportedEvent
from discreet.events import Event, NonPrivate

__all__ = [
    "Facts",
    "approximate_of",
    "costs_nothing",
    "facts_of",
    "mu_of",
    "own_delta",
    "pair_of",
    "pure_of",
    "quotient_of",
    "refusal_of",
    "register",
    "rho_of",
    "scale_parameter",
    "stated_mu",
    "within",
]

LARGEST = 1e5  # losses beyond this count as infinite
LARGEST_MU = 400.0

T = TypeVar("T")
Fact = Callable[[Any, Adjacency], T | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is proved of one kind of leaf: functions of the event and of the adjacency it is priced for.

    A fact that is left out, or is None of an event, is not proved. Nothing needs to be tight; everything must hold.

    ``pure``
        Epsilon at delta zero; infinite where there is none.
    ``quotient``
        Two parameters, numerator and denominator, whose quotient is that epsilon: a book reads them as decimals.
    ``approximate``
        An epsilon and the delta it needs, where that is all that is known.
    ``mu``, ``rho``
        Gaussian DP and zero-concentrated DP; a leaf with a ``mu`` *is* Gaussian.
    ``mu_bound``
        A mu that holds of what is not Gaussian.
    ``curve``
        Rényi divergences at an array of orders, its third argument.
    ``pair``
        Dominating pair for a removed record, or, under replace, for either record.
    ``enlarged``
        Of the event and a number k: the event that holds of the same mechanism for data sets k changes apart.
    ``restated``
        For wrappers. Of the event, a count, the adjacency asked for and a group's size: what is to be priced instead.
        Left out, an event has an ``adjacency`` of its own, and is restated by ``enlarged``.
    ``envelope``
        Whether the pair is worse than every mechanism it stands for: other accounts may be below the numerical one.
    ``hopeless``
        Whether nothing is protected at all.
    """

    pure: Fact[float] | None = None
    quotient: Fact[tuple[float, float]] | None = None
    approximate: Fact[tuple[float, float]] | None = None
    mu: Fact[float] | None = None
    mu_bound: Fact[float] | None = None
    rho: Fact[float] | None = None
    curve: Callable[[Any, Adjacency, Array], Array | None] | None = None
    pair: Fact[Pair] | None = None
    enlarged: Callable[[Any, int], Event | None] | None = None
    restated: Callable[[Any, int, Adjacency, int], Resolved] | None = None
    envelope: bool = False
    hopeless: bool = False


_STATED: dict[type[Event], Facts] = {}


def register(kind: type[Event], facts: Facts) -> None:
    """State what is proved of a kind of event, once: a price that was stored must stay what it was."""
    if _STATED.setdefault(kind, facts) is not facts:
        raise ValueError(f"kind is {kind.tag}, but facts are registered for it already.")


def scale_parameter(event: Event, parameter: str, factor: int) -> Event:
    """An event with a parameter so many times as large; where that is beyond floats, nothing is left to guarantee."""
    value = times(getattr(event, parameter), factor)
    return replace(event, **{parameter: value}) if value < math.inf else NonPrivate()  # type: ignore[type-var]


def facts_of(event: Event) -> Facts:
    """What is stated of an event's kind; never of a kind it was derived from, which may do less."""
    try:
        return _STATED[type(event)]
    except KeyError:
        raise UnsupportedEvent(
            f"No accountant can price {event.tag}: no facts are registered for it (discreet.accounting.facts.register)."
        ) from None


def refusal_of(accountant: str, event: Event, reason: str) -> UnsupportedEvent:
    """The refusal of an accountant that has no theorem for a leaf."""
    return UnsupportedEvent(f"The {accountant} accountant cannot price {event.tag}: {reason}.")


def _checked_fact(fact: Fact[T] | None, leaf: Leaf) -> T | None:
    """What is stated, if it can be a price: a number below zero, or none at all, is refused here and reaches no sum."""
    found = None if fact is None else fact(leaf.event, leaf.adjacency)
    for value in found if isinstance(found, tuple) else (found,):
        if isinstance(value, Real):  # NumPy's numbers, too; a whole number may be beyond floats
            check_bound(cast("float", value))
    return found


# --- one number a leaf -----------------------------------------------------------------------------------------------


def pure_of(leaf: Leaf) -> float:
    """Epsilon at delta zero, or infinity."""
    facts = facts_of(leaf.event)
    if (epsilon := _checked_fact(facts.pure, leaf)) is not None:
        return epsilon
    if (both := _checked_fact(facts.approximate, leaf)) is not None:
        return both[0] if both[1] == 0 else math.inf
    return 0.0 if 0.0 in (_checked_fact(facts.mu, leaf), _checked_fact(facts.rho, leaf)) else math.inf


def costs_nothing(leaf: Leaf) -> bool:
    """Whether a leaf says nothing about the data."""
    return pure_of(leaf) == 0


def quotient_of(leaf: Leaf) -> tuple[float, float] | None:
    """The pure epsilon as a quotient of two parameters, where it is one."""
    return _checked_fact(facts_of(leaf.event).quotient, leaf)


def approximate_of(leaf: Leaf) -> tuple[float, float] | None:
    """The epsilon and delta of a leaf of which nothing else is known."""
    return _checked_fact(facts_of(leaf.event).approximate, leaf)


def own_delta(leaf: Leaf) -> float:
    """The delta a leaf brings with it."""
    both = approximate_of(leaf)
    return 0.0 if both is None else both[1]


def stated_mu(leaf: Leaf) -> float | None:
    """The exact mu of a Gaussian leaf, None of any other."""
    return _checked_fact(facts_of(leaf.event).mu, leaf)


def mu_of(leaf: Leaf) -> float:
    """The mu of one leaf, infinite where all is lost."""
    facts = facts_of(leaf.event)
    if facts.hopeless:
        return math.inf
    if (mu := stated_mu(leaf)) is None and (mu := _checked_fact(facts.mu_bound, leaf)) is None:
        raise refusal_of("gdp", leaf.event, "it is not Gaussian, and a central limit theorem is not a guarantee")
    return mu


def rho_of(leaf: Leaf) -> float:
    """The smallest proved rho of one leaf."""
    if (rho := _checked_fact(facts_of(leaf.event).rho, leaf)) is not None:
        return rho
    if (mu := stated_mu(leaf)) is not None:
        return half_square(mu)
    epsilon = pure_of(leaf)
    if epsilon < math.inf:
        # the exact supremum over orders for randomized response is below both of these
        return min(half_square(epsilon), epsilon)
    raise refusal_of("zcdp", leaf.event, "no rho is proved for it")


def half_square(value: float) -> float:
    """x²/2, rounded up where squares vanish."""
    return product(value, value, 0.5)


# --- curves and pairs ------------------------------------------------------------------------------------------------


def stated_curve(leaf: Leaf, orders: Array) -> Array | None:
    """Rényi divergences that are stated, or follow from a rho where no pair says more. None: ask the pair."""
    facts = facts_of(leaf.event)
    curve = None if facts.curve is None else facts.curve(leaf.event, leaf.adjacency, orders)
    if curve is not None:
        check_bound(float(np.min(curve)))
    known = _checked_fact(facts.rho, leaf) is not None or stated_mu(leaf) is not None
    return rho_of(leaf) * orders if curve is None and facts.pair is None and known else curve


def pair_of(leaf: Leaf) -> Pair:
    """The dominating pair of a leaf, for a removed record (or, under replace, for either record)."""
    if (pair := _checked_fact(facts_of(leaf.event).pair, leaf)) is not None:
        return pair
    if (mu := stated_mu(leaf)) is not None:
        return within(mu, LARGEST_MU, GaussianShift)
    epsilon, delta = approximate_of(leaf) or (_checked_fact(facts_of(leaf.event).pure, leaf), 0.0)
    if epsilon is not None and epsilon < math.inf:
        return within(epsilon, LARGEST, lambda value: binary(value, delta))
    raise UnsupportedEvent(
        f"The pld accountant cannot price {leaf.event.tag}: it has no dominating pair. Use accountant='rdp'."
    )


def computable(value: float) -> float:
    """Parameters too small for double precision to compute with are rounded up, which is the safe side."""
    return max(value, SMALLEST)


def within(value: float, largest: float, pair: Callable[[float], Pair]) -> Pair:
    """A pair at a parameter rounded up: to what can be computed with, and beyond that to an infinite loss."""
    return pair(computable(value)) if value <= largest else too_large()
