"""Functions of one number, in one table: where each lies, its value, what an engine computes, and what may come out.

A kind that is not in the table does not exist: ``number_function`` refuses it by name, and no branch answers for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from discreet.errors import extra
from discreet.tables.intervals import WHOLE, Interval
from discreet.tables.scope import Scope

with extra("tables"):
    import narwhals as nw

__all__ = ["FUNCTIONS", "NumberFunction", "number_function"]


@dataclass(frozen=True)
class NumberFunction:
    """One function, said once for each use that is made of it."""

    bounds: Callable[[Interval], Interval]  # what has no value is missing, and lies nowhere
    value: Callable[[float], float | None]
    compile: Callable[[Scope, nw.Expr, Interval], nw.Expr]  # of a value that lies in an interval
    domain: Literal["values", "whole", "unknown"]  # of few values: theirs; any whole number; or engines round it apart


def number_function(name: str) -> NumberFunction:
    """The function of this name.

    >>> number_function("abs").bounds((-3.0, 2.0)), number_function("sqrt").bounds((-1.0, 9.0))
    ((0.0, 3.0), (0.0, 3.0))
    >>> number_function("exp")
    Traceback (most recent call last):
    ...
    ValueError: 'exp' is no function of a number: there are abs, floor, trunc, round, rint, sqrt, log.
    """
    if name not in FUNCTIONS:
        raise ValueError(f"{name!r} is no function of a number: there are {', '.join(FUNCTIONS)}.")
    return FUNCTIONS[name]


# --- magnitude, root, logarithm --------------------------------------------------------------------------------------


def _abs_bounds(inner: Interval) -> Interval:
    low, high = inner
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _sqrt(scope: Scope, value: nw.Expr, inner: Interval) -> nw.Expr:
    if inner[0] >= 0:
        return value.abs().sqrt()  # the magnitude changes nothing, but is never negative, whatever was rounded
    value = scope.let(value)
    return nw.when(value >= 0.0).then(nw.when(value >= 0.0).then(value).otherwise(0.0).sqrt())


def _log_bounds(inner: Interval) -> Interval:
    low, high = inner
    return (math.log(low) if low > 0 else -math.inf), (math.log(high) if high > 0 else math.inf)


def _log(scope: Scope, value: nw.Expr, inner: Interval) -> nw.Expr:
    value = scope.let(value)
    return nw.when(value > 0.0).then(nw.when(value > 0.0).then(value).otherwise(1.0).log())


# --- whole numbers near by -------------------------------------------------------------------------------------------


def _half_away(value: float) -> float:
    floor = math.floor(abs(value))
    return math.copysign(floor + (abs(value) - floor >= 0.5), value)


def _rounding(near: Callable[[float], float], compile: Callable[[Scope, nw.Expr, Interval], nw.Expr]) -> NumberFunction:
    def value(number: float) -> float:
        # floats again: products of whole numbers have no end, and none of floats is beyond infinity; of zeros one
        return float(near(number)) + 0.0 if abs(number) < WHOLE else number

    return NumberFunction(lambda inner: (value(inner[0]), value(inner[1])), value, compile, "whole")


def _floor(scope: Scope, value: nw.Expr, inner: Interval) -> nw.Expr:
    if max(-inner[0], inner[1]) < WHOLE:
        return value.floor().cast(nw.Float64)
    # within what every engine's whole numbers hold; beyond it nothing is left to cut
    value = scope.let(value)
    small = nw.when(value.abs() < WHOLE).then(value).otherwise(0.0)
    return nw.when(value.abs() < WHOLE).then(small.floor().cast(nw.Float64)).otherwise(value)


def _by_magnitude(near: Callable[[nw.Expr, nw.Expr], nw.Expr]) -> Callable[[Scope, nw.Expr, Interval], nw.Expr]:
    """A rounding by floors and exact differences of magnitudes, which every engine computes alike; ``near`` is what
    becomes of a magnitude's floor and what is left above it."""

    def compile(scope: Scope, value: nw.Expr, inner: Interval) -> nw.Expr:
        value = scope.let(value)
        size = scope.let(value.abs())
        floor = scope.let(nw.when(size < WHOLE).then(size).otherwise(0.0).floor().cast(nw.Float64))
        whole = scope.let(near(floor, size - floor))
        signed = nw.when(value < 0.0).then(0.0 - whole).otherwise(whole) if inner[0] < 0 else whole
        return nw.when(size < WHOLE).then(signed).otherwise(value)

    return compile


def _above_half(floor: nw.Expr, rest: nw.Expr) -> nw.Expr:
    return nw.when(rest >= 0.5).then(floor + 1.0).otherwise(floor)


def _even_half(floor: nw.Expr, rest: nw.Expr) -> nw.Expr:
    odd = floor - (floor / 2.0).floor().cast(nw.Float64) * 2.0 == 1.0
    return nw.when((rest > 0.5) | ((rest == 0.5) & odd)).then(floor + 1.0).otherwise(floor)


FUNCTIONS: Mapping[str, NumberFunction] = {
    "abs": NumberFunction(_abs_bounds, lambda value: float(abs(value)), lambda _, value, __: value.abs(), "values"),
    "floor": _rounding(math.floor, _floor),
    "trunc": _rounding(math.trunc, _by_magnitude(lambda floor, _: floor)),
    "round": _rounding(_half_away, _by_magnitude(_above_half)),  # SQL's ROUND
    "rint": _rounding(round, _by_magnitude(_even_half)),  # halves to the even one, as SQL's CAST of a double
    "sqrt": NumberFunction(
        lambda inner: (0.0, math.sqrt(max(inner[1], 0.0))),
        lambda value: math.sqrt(value) if value >= 0 else None,
        _sqrt,
        "values",
    ),
    "log": NumberFunction(_log_bounds, lambda value: math.log(value) if value > 0 else None, _log, "unknown"),
}
