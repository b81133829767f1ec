"""Records between their public bounds; how each is read, by itself, is told in ``mechanisms.records``.

Decisions 51 and 103.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import number
from discreet.random import exact_sum
from discreet.schema import Bounded

__all__ = ["BITS", "Bounds", "check_bounds", "exact_total", "positions", "present"]

Bounds = tuple[float, float]

BITS = 30  # of a record's place between its bounds: squares and products of two such numbers fit in 64 bits
_WIDEST = 2.0**900  # so that differences and scales stay inside the range of doubles


def check_bounds(bounds: object, name: str = "bounds") -> Bounds:
    """Public bounds as two doubles, the lower first; a schema's ``Bounded`` is such a pair.

    Its ``whole`` changes no number of an array: there it says which medians and quantiles there may be.

    >>> check_bounds((0, 200_000)), check_bounds(Bounded(0, 120))
    ((0.0, 200000.0), (0.0, 120.0))
    """
    if isinstance(bounds, Bounded):
        if bounds.auto:
            raise ValueError(f"{name} is {bounds!r}, which tables find, but an array needs numbers: (low, high).")
        if bounds.missing != "drop":
            raise ValueError(
                f"{name} is {bounds!r}, but a missing number of an array does not count: missing= is for tables. Write "
                f"{name}=({bounds.low!r}, {bounds.high!r})."
            )
        bounds = (bounds.low, bounds.high)
    if not isinstance(bounds, Sequence) or isinstance(bounds, (str, bytes)) or len(bounds) != 2:
        raise ValueError(f"{name} is {bounds!r}, but must be a pair (low, high) of public numbers.")
    low, high = (number(name, end, low=-_WIDEST, high=_WIDEST) for end in bounds)
    if Fraction(low) != bounds[0] or Fraction(high) != bounds[1]:
        raise ValueError(
            f"{name} is {tuple(bounds)!r}, but both ends must be doubles exactly: {(low, high)!r} would do."
        )
    if not high - low >= 1 / _WIDEST:
        raise ValueError(f"{name} is {tuple(bounds)!r}, but the lower end must come first and differ from the upper.")
    return low + 0.0, high + 0.0


def present(array: NDArray[Any]) -> NDArray[Any]:
    """The records that are not missing."""
    return array[~np.isnan(array)] if array.dtype.kind == "f" else array


def exact_total(array: NDArray[Any], bounds: Bounds) -> tuple[Fraction, int]:
    """The sum of the present records, each moved to the nearest bound if beyond it, unrounded; and their number."""
    here = present(array)
    if here.dtype.kind == "f":
        return exact_sum(np.clip(here.astype(np.float64), *bounds)), here.size
    least, most = math.ceil(bounds[0]), math.floor(bounds[1])  # an integer is below the bound iff it is below this
    low, high = here < least, here > most
    beyond = int(low.sum()) * Fraction(bounds[0]) + int(high.sum()) * Fraction(bounds[1])
    return exact_sum(here[~(low | high)]) + beyond, here.size


def positions(array: NDArray[Any], bounds: Bounds, steps: int = 1 << BITS) -> NDArray[np.int64]:
    """Where each record lies between its bounds, rounded to a whole number of ``steps``-ths; -1 if it is missing."""
    low, high = bounds
    missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)
    x = np.clip(np.where(missing, low, array.astype(np.float64)), low, high)
    # Subtraction and division round monotonically, so the quotient stays in [0, 1].
    return np.where(missing, -1, np.rint((x - low) / (high - low) * steps)).astype(np.int64)
