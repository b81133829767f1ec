"""Amounts: what has been charged, in every currency a filter counts in.

One vector serves as the price of an event and as the running total of a book. Sums are exact (fractions, and integers
that count units of 1e-15), so that a total does not depend on the order of its entries, never drifts below the truth,
and can be recomputed to the last digit by whoever verifies the chain.

Numbers are read as the shortest decimal that names them: ``0.1`` is one tenth, not the binary fraction nearest to it.
Ten charges of 0.1 are then exactly 1. A parameter and its decimal differ by at most one part in 2⁵³, so a book of
limit ε proves ε(1 + 2⁻⁵³) for the binary values: less than the rounding of printing ε itself.

Decision 22.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

__all__ = ["NOTHING", "ORDERS", "UNIT", "Amounts", "exact", "units"]

UNIT = 10**15

# Rényi orders, fixed once for every book: alpha - 1 grows by about a factor √2 from 1/4 to 4096, integers where that
# is close enough, because sampled mechanisms have closed forms there.
ORDERS: tuple[float, ...] = (
    1.25, 1.35, 1.5, 1.7, 2.0, 2.4, 3.0, 4.0, 5.0, 7.0, 9.0, 12.0, 17.0, 24.0, 33.0, 46.0, 65.0, 92.0, 129.0, 182.0,
    257.0, 363.0, 513.0, 725.0, 1025.0, 1449.0, 2049.0, 2897.0, 4097.0,
)  # fmt: skip

Number = Fraction | int | float  # the only float is infinity

_WIDEST = 1 << 192  # denominators beyond this are rounded up to 1e-18, so that totals stay small


def exact(value: float) -> Number:
    """The shortest decimal that names ``value``, as a fraction; infinity stays infinity.

    >>> exact(0.1) * 10
    Fraction(1, 1)
    """
    return value if value == math.inf else Fraction(Decimal(repr(float(value))))


def units(value: float | Fraction) -> Number:
    """``value`` in units of 1e-15, rounded up; infinity stays infinity, and what is not a number is refused.

    >>> units(0.5), units(float("inf"))
    (500000000000000, inf)
    """
    return math.inf if value > 1e6 else math.ceil(Fraction(value) * UNIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """A point in the space the filters watch.

    ``planned_epsilon``, ``planned_delta``
        Set aside for what was declared before any answer was seen, priced by the tight account.
    ``delta``
        Probability with which charged events may fail outright (the delta of approximate DP).
    ``pure``
        Sum of epsilons: of pure events, and of others as they were quoted.
    ``quoted``
        Sum of the deltas at which events that are not pure have the epsilons in ``pure``.
    ``mu2``
        Sum of squared Gaussian-DP parameters, in units of 1e-15.
    ``renyi``
        Sum of Rényi divergences at each of ``ORDERS``, in units of 1e-15.
    """

    planned_epsilon: Number = Fraction(0)
    planned_delta: Number = Fraction(0)
    delta: Number = Fraction(0)
    pure: Number = Fraction(0)
    quoted: Number = Fraction(0)
    mu2: Number = 0
    renyi: tuple[Number, ...] = (0,) * len(ORDERS)

    def __post_init__(self) -> None:
        """No price and no total is below zero, or not a number: what would lower a total cannot be written down."""
        for name in _SCALARS:
            if (value := getattr(self, name)).__class__ is not int or value < 0:
                _refuse_below_zero(name, value)
        if len(self.renyi) != len(ORDERS):
            raise ValueError(f"renyi has {len(self.renyi)} entries, but must have {len(ORDERS)}, one per order.")
        for value in self.renyi:
            if value.__class__ is not int or value < 0:  # a call for each would take most of the time of a replay
                _refuse_below_zero("renyi", value)

    @property
    def adaptive(self) -> bool:
        """Whether anything was charged outside a plan."""
        return bool(self.delta or self.pure or self.mu2 or any(self.renyi))

    @property
    def planned(self) -> bool:
        """Whether anything was set aside for a plan."""
        return bool(self.planned_epsilon or self.planned_delta)

    def __add__(self, other: Amounts) -> Amounts:  # written out: a history is replayed by it
        return Amounts(
            planned_epsilon=_plus(self.planned_epsilon, other.planned_epsilon),
            planned_delta=_plus(self.planned_delta, other.planned_delta),
            delta=_plus(self.delta, other.delta),
            pure=_plus(self.pure, other.pure),
            quoted=_plus(self.quoted, other.quoted),
            mu2=self.mu2 + other.mu2,
            renyi=tuple(map(operator.add, self.renyi, other.renyi)),
        )

    def __mul__(self, count: int) -> Amounts:
        if count == 0:
            return NOTHING  # not infinity times zero
        return Amounts(
            planned_epsilon=self.planned_epsilon * count,
            planned_delta=self.planned_delta * count,
            delta=self.delta * count,
            pure=self.pure * count,
            quoted=self.quoted * count,
            mu2=self.mu2 * count,
            renyi=tuple(value * count for value in self.renyi),
        )

    def join(self, other: Amounts) -> Amounts:
        """The larger in every currency: what a record costs if it may be in either of two disjoint parts."""
        return self._merge(other, max)

    def above(self, other: Amounts) -> Amounts:
        """What must be added to ``other`` to reach ``self``, which is nowhere smaller."""
        return self._merge(other, lambda a, b: 0 if a == b else a - b)

    def _merge(self, other: Amounts, merge: Callable[[Any, Any], Number]) -> Amounts:
        return Amounts(
            planned_epsilon=merge(self.planned_epsilon, other.planned_epsilon),
            planned_delta=merge(self.planned_delta, other.planned_delta),
            delta=merge(self.delta, other.delta),
            pure=merge(self.pure, other.pure),
            quoted=merge(self.quoted, other.quoted),
            mu2=merge(self.mu2, other.mu2),
            renyi=tuple(map(merge, self.renyi, other.renyi)),
        )

    def to_json(self) -> str:
        """Canonical JSON: fractions and integers as text, infinity as ``inf``; without ``quoted`` where there is none,
        as entries from before there were quotes.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "quoted" or self.quoted}
        values["renyi"] = " ".join(map(str, self.renyi))
        return json.dumps({name: str(value) for name, value in values.items()}, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Amounts:
        """The amounts a JSON text describes."""
        return _parse(text)


_SCALARS = tuple(f.name for f in fields(Amounts) if f.name != "renyi")


def _refuse_below_zero(name: str, value: Number) -> None:
    if value.__class__ is Fraction and value.numerator >= 0:
        return
    if not value >= 0 or (isinstance(value, float) and value != math.inf):
        raise ValueError(f"{name} is {value}, but must be zero, a fraction or whole number above it, or infinity.")


NOTHING = Amounts()


@lru_cache(maxsize=256)  # a history is mostly the same few prices
def _parse(text: str) -> Amounts:
    data = json.loads(text)
    renyi = tuple(map(_parse_units, data.pop("renyi").split(" ")))
    mu2 = _parse_units(data.pop("mu2"))
    return Amounts(renyi=renyi, mu2=mu2, **{name: _parse_exact(value) for name, value in data.items()})


def _plus(a: Number, b: Number) -> Number:
    return a if not b else b if not a else _narrow(a + b)


def _narrow(value: Number) -> Number:
    if isinstance(value, Fraction) and value.denominator > _WIDEST:
        return Fraction(math.ceil(value * 10**18), 10**18)
    return value


def _parse_units(text: str) -> Number:
    return math.inf if text == "inf" else int(text)


def _parse_exact(text: str) -> Number:
    return math.inf if text == "inf" else Fraction(text)
