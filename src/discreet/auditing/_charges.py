"""Does the declared cost cover what was drawn?

For two neighbours only those steps cost anything in which the values to be noised differ: of disjoint groups, the one
that holds the record. Their events, taken together, must be covered by the declared one; samplers are taken off it
first, because replay gives a record the same coin on both sides and so looks at batches that are already drawn.

The noise itself is looked at too. Where a step declares Laplace or Gaussian noise of some scale, the size of what was
added has a known law, and noise that is too small shows in Fisher's statistic, with a false alarm of ``ALARM`` a run.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from discreet import events
from discreet.errors import DiscreetError, NotCertified
from discreet.events import Event

__all__ = ["ALARM", "covers_cost", "size_of_noise", "too_small"]

ALARM = 1e-12
_DELTAS = (1e-3, 1e-6, 1e-9)
_ROOM = 1 + 1e-9  # for rounding of the parameters
_MOST = 10_000  # choices of parallel parts
_RUNS = 10**6  # more than a search makes

# What grows with the cost of a leaf; all of it must be at least as large in what was declared.
_COST: dict[type[Event], Callable[[Any], tuple[float, ...]]] = {
    events.Laplace: lambda e: (1 / e.noise_multiplier,),
    events.Gaussian: lambda e: (1 / e.noise_multiplier,),
    events.DiscreteLaplace: lambda e: (e.sensitivity / e.scale,),
    events.Exponential: lambda e: (e.epsilon,),
    events.PureDP: lambda e: (e.epsilon,),
    events.ApproxDP: lambda e: (e.epsilon, e.delta),
    events.ZCDP: lambda e: (e.rho,),
    events.GDP: lambda e: (e.mu,),
}


def covers_cost(declared: Event, drawn: Iterable[Event], parts: int = 1) -> bool:
    """Whether ``declared`` costs at least as much as ``drawn`` together: leaf by leaf, or else by their price.

    Of parallel events only so many ``parts`` cover something: that of the one record in which the neighbours differ, or
    the two that a replaced record leaves and enters.

    >>> one = events.Laplace(noise_multiplier=1.0)
    >>> covers_cost(one, [one]), covers_cost(one, [one, one]), covers_cost(events.PureDP(epsilon=2.0), [one, one])
    (True, False, True)
    """
    try:
        given, wanted = _ways(declared, parts), _ways(events.Composed(events=tuple(drawn)), 1)
    except NotCertified:
        return False  # more choices than can be compared: what cannot be judged is not covered
    return all(any(_covers(way, cost) for way in given) for cost in wanted)


def _covers(given: Counter[Event], wanted: Counter[Event]) -> bool:
    if _matches_leaf_by_leaf(wanted, given.copy()):
        return True
    if all(isinstance(leaf, (events.Gaussian, events.GDP)) for leaf in (*wanted, *given)):
        return _square(wanted) <= _square(given) * _ROOM
    return bool(given) and _matches_by_price(wanted, given)


def _ways(event: Event, parts: int) -> list[Counter[Event]]:
    """The leaves with their counts, those inside samplers included, once for each choice of parallel parts."""
    ways: list[Counter[Event]] = [Counter()]
    for leaf, count in events.leaves(event).items():
        inside = _distinct(way for child in _children(leaf) for way in _ways(child, parts)) or [Counter({leaf: 1})]
        if isinstance(leaf, events.Selected):  # as many runs as were drawn, of whichever candidates
            inside = [Counter({each: n * _RUNS for way in inside for each, n in way.items()})]
        if isinstance(leaf, events.Parallel):
            inside = [sum(chosen, Counter()) for chosen in combinations_with_replacement(inside, parts)]
        if len(ways) * len(inside) > _MOST:
            raise NotCertified(f"there are more than {_MOST:,} choices of parallel parts.")
        ways = _distinct(
            way + Counter({each: n * count for each, n in more.items()}) for way in ways for more in inside
        )
    return ways


def _distinct(ways: Iterable[Counter[Event]]) -> list[Counter[Event]]:
    return list({frozenset(way.items()): way for way in ways}.values())


def _children(event: Event) -> Iterator[Event]:
    for f in dataclasses.fields(event):  # type: ignore[arg-type]
        value = getattr(event, f.name)
        yield from (part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Event))


def _matches_leaf_by_leaf(wanted: Counter[Event], given: Counter[Event]) -> bool:
    """Whether every wanted leaf finds one of its kind that costs at least as much and is not taken yet."""
    for leaf, count in sorted(wanted.items(), key=lambda item: _cost(item[0]), reverse=True):
        for other in sorted((g for g in given if _at_most(leaf, g)), key=_cost):
            taken = min(count, given[other])
            given[other] -= taken
            count -= taken
        if count:
            return False
    return True


def _cost(event: Event) -> tuple[float, ...]:
    return _COST[type(event)](event) if type(event) in _COST else ()


def _at_most(leaf: Event, other: Event) -> bool:
    if leaf == other:
        return True
    return (
        type(leaf) is type(other)
        and bool(_cost(leaf))
        and all(x <= y * _ROOM for x, y in zip(_cost(leaf), _cost(other), strict=True))
    )


def _square(counts: Counter[Event]) -> float:
    """Of the mu that Gaussian noises have together: their squares add up."""
    return sum(n * _cost(leaf)[0] ** 2 for leaf, n in counts.items())


def _matches_by_price(wanted: Counter[Event], given: Counter[Event]) -> bool:
    from discreet.accounting import epsilon, epsilon_bounds

    both = [*wanted, *given]
    adjacency = "replace" if any(str(getattr(e, "adjacency", "")) == "replace" for e in both) else "add-remove"
    spent, said = (events.Composed(events=tuple(e * n for e, n in counts.items() if n)) for counts in (wanted, given))
    try:
        return all(
            epsilon_bounds(spent, delta=delta, adjacency=adjacency)[0]
            <= epsilon(said, delta=delta, adjacency=adjacency) * (1 + 1e-6) + 1e-9
            for delta in _DELTAS
        )
    except DiscreetError:
        return False  # no theorem compares the two: what cannot be judged is not covered


# --- the noise itself ----------------------------------------------------------------------------------------------


def size_of_noise(event: Event | None, value: Any, output: Any, limit: Any) -> list[float]:
    """For each entry, the probability that noise of the declared law is at most as large as what was added.

    Rounded up, so that on honest noise these numbers lie above uniform ones.
    """
    law = _law(event, float(limit)) if limit > 0 else None
    if law is None or isinstance(value, Mapping) or np.shape(value) != np.shape(output):
        return []
    pairs = zip(np.ravel(np.asarray(value, object)), np.ravel(np.asarray(output, object)), strict=True)
    return [law(_gap(before, after)) for before, after in pairs]


def _gap(value: Any, output: Any) -> float:
    """How far apart the two are, and what rounding to a double may have hidden."""
    before, after = (Fraction(x.item() if isinstance(x, np.generic) else x) for x in (value, output))
    return float(abs(after - before)) + math.ulp(float(max(abs(before), abs(after))))


def _law(event: Event | None, limit: float) -> Callable[[float], float] | None:
    match event:
        case events.Laplace(noise_multiplier=multiplier):
            return lambda gap: -math.expm1(-gap / (multiplier * limit))
        case events.Gaussian(noise_multiplier=multiplier):
            return lambda gap: math.erf(gap / (multiplier * limit * math.sqrt(2)))
        case events.DiscreteLaplace(scale=scale):
            return lambda gap: 1 - 2 * math.exp(-(math.floor(gap) + 1) / scale) / (1 + math.exp(-1 / scale))
        case events.DiscreteGaussian(sigma=sigma):
            return lambda gap: _discrete_gaussian(sigma, math.floor(gap))
    return None


def _discrete_gaussian(sigma: float, most: int) -> float:
    """The mass within ``most`` of zero; for a large sigma, that of the continuous law one further out."""
    if sigma > 1e4:
        return math.erf((most + 1) / (sigma * math.sqrt(2)))
    mass = _masses(sigma)
    return float(mass[min(most, len(mass) - 1)])


@lru_cache(maxsize=64)
def _masses(sigma: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    weights = np.exp(-0.5 * (np.arange(math.ceil(12 * sigma) + 2) / sigma) ** 2)
    weights[1:] *= 2
    return np.asarray(np.cumsum(weights) / weights.sum())


def too_small(probabilities: list[float]) -> bool:
    """Whether noise is smaller than declared, by Fisher's statistic: -2·Σ ln p is χ² with 2n degrees, or smaller.

    >>> too_small([0.5, 0.1, 0.9]), too_small([1e-14])
    (False, True)
    """
    from scipy.special import gammaincc

    if not probabilities:
        return False
    total = -sum(math.log(max(p, 5e-324)) for p in probabilities)
    return bool(gammaincc(len(probabilities), total) < ALARM)
