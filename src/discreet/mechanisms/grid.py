r"""Real-valued releases on a power-of-two grid, and why they cost exactly what the continuous mechanism costs.

Let g = 2^e be the grid step, fixed by the noise scale alone, and let the scale be m·g for a whole m of 45 bits.
A release of value v does three things.

1. v is rounded to the nearest multiple of g. A change of at most Δ becomes a change of at most Δ + d·g in L1
   (Δ + √d·g in L2) over d entries, because each entry moves by at most g/2 on either side. This *widened*
   sensitivity is the one the event states.
2. A continuous noise sample X of scale m·g is added in principle, and floor((v + X)/g) is kept in practice. Since v/g
   is whole, floor((v + X)/g) = v/g + floor(X/g), and floor(X/g) is sampled exactly (``random.laplace_cells``,
   ``random.gaussian_cells``). The integer v/g + floor(X/g) is therefore *post-processing of the continuous
   mechanism* on the rounded value: the event is the continuous Laplace or Gaussian one, for any d, with no discrete
   correction.
3. The middle of that cell, (n + ½)·g, is rounded to a double. For |X| < 2^52·g both terms are exact doubles and one
   IEEE addition rounds their exact sum; a larger X takes a path through exact fractions. Either way the output is a
   function of the integer n alone.

So no bit of the output depends on v except through n: the attacks of Mironov (2012), Jin et al. (2021) and Haney et
al. (2022) have nothing to look at. An output too large for a double is the largest of its sign, again a function of n.

Decision 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import number
from discreet.mechanisms.values import LARGEST, exact_number, numbers

__all__ = [
    "DEFAULT_MAX_SIZE",
    "Grid",
    "above",
    "below",
    "check_entries",
    "double_root_above",
    "floor_log2",
    "in_range",
    "power",
    "root_above",
    "wide",
]

DEFAULT_MAX_SIZE = 1 << 20  # entries; paying for so many widens a scale of 1/epsilon by 6e-8/epsilon
_BITS = 44  # grid steps in a scale: fine enough that the widening is negligible, coarse enough for exact doubles
_EXACT = 1 << 52  # n + ½ is an exact double below this


@dataclass(frozen=True, slots=True)
class Grid:
    """A noise scale of ``steps`` grid steps of size 2^``exponent``."""

    steps: int
    exponent: int

    @staticmethod
    @lru_cache(maxsize=1024)
    def inside(scale: float) -> Grid:
        """The largest scale on a grid that does not exceed ``scale``."""
        exact = Fraction(scale)
        exponent = floor_log2(exact) - _BITS
        return Grid(math.floor(exact / power(exponent)), exponent)

    @classmethod
    def paying(cls, sensitivity: Fraction, multiplier: Fraction, growth: Fraction) -> Grid:
        """The smallest scale that is ``multiplier`` times the sensitivity widened by ``growth`` grid steps."""
        first = floor_log2(sensitivity * multiplier) - _BITS
        for exponent in (first, first + 1, first + 2):  # paying for the rounding may carry into the next power of two
            steps = math.ceil(multiplier * (sensitivity / power(exponent) + growth))
            if steps.bit_length() <= _BITS + 1:
                return cls(steps, exponent)
        raise ValueError(
            "max_size is too large for this epsilon: rounding every entry would cost more than the noise "
            "hides. Declare a smaller max_size."
        )

    @property
    def step(self) -> Fraction:
        """The size of a grid step."""
        return power(self.exponent)

    @property
    def scale(self) -> Fraction:
        """The noise scale."""
        return self.steps * self.step

    def place(self, value: Any, max_size: int) -> Any:
        """``value`` on the grid: an array of doubles, or, for a scalar or exact entries, of fractions."""
        array = _numbers(value)
        check_entries(array.shape, max_size)
        if array.dtype == object:
            return _each(lambda x: round(x / self.step) * self.step, array)
        step = float(self.step)
        fine = np.abs(array) < step * _EXACT  # a larger double is a multiple of the step already
        return np.where(fine, np.rint(np.where(fine, array, 0.0) / step) * step, array)

    def add(self, placed: Any, cells: NDArray[np.int64]) -> Any:
        """The middles of the cells that lie ``cells`` steps above ``placed``, as doubles."""
        if placed.dtype == object:
            sums = [_finite(v + self._middle(n)) for v, n in zip(placed.flat, cells.flat, strict=True)]
            return np.array(sums).reshape(placed.shape) if placed.ndim else sums[0]
        with np.errstate(over="ignore"):
            out = placed + (cells + 0.5) * float(self.step)
        for i in np.flatnonzero(np.abs(cells) >= _EXACT - 1):
            out.flat[i] = _finite(Fraction(float(placed.flat[i])) + self._middle(cells.flat[i]))
        return np.clip(out, -float(LARGEST), float(LARGEST))

    def _middle(self, cell: Any) -> Fraction:
        return (int(cell) + Fraction(1, 2)) * self.step


def check_entries(shape: tuple[int, ...], max_size: int) -> None:
    """Refuse more entries than were declared."""
    if (size := math.prod(shape)) > max_size:
        raise ValueError(f"value has {size} entries, but at most max_size={max_size} were declared.")


def _finite(x: Fraction) -> float:
    return float(max(-LARGEST, min(x, LARGEST)))


def _numbers(value: Any) -> NDArray[Any]:
    """Finite numbers as doubles where that loses nothing, as fractions where it might."""
    array = numbers(value)
    if array.dtype == object or array.ndim == 0 or wide(array):
        return _each(exact_number, array.astype(object))
    return array.astype(np.float64)


def wide(array: NDArray[Any]) -> bool:
    """Whether some integer would be rounded on its way to a double."""
    return array.dtype.kind in "iu" and bool(((array > 2**53) | (array < -(2**53))).any())


def _each(function: Callable[[Any], Fraction], array: NDArray[Any]) -> NDArray[Any]:
    out = np.empty(array.shape, object)
    out.reshape(-1)[:] = [function(x) for x in array.reshape(-1)]
    return out


def power(exponent: int) -> Fraction:
    """2^exponent, exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def floor_log2(x: Fraction) -> int:
    """The largest whole e with 2^e ≤ x, for positive x."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if power(guess) <= x else guess - 1


def below(x: Fraction) -> float:
    """The largest double that is not above x."""
    nearest = float(x)
    return nearest if Fraction(nearest) <= x else math.nextafter(nearest, 0.0)


def above(x: Fraction) -> float:
    """The smallest double that is not below x, for positive x."""
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def root_above(x: int) -> Fraction:
    """A rational a little above √x."""
    return Fraction(math.isqrt((x << 64) - 1) + 1, 1 << 32) if x > 1 else Fraction(1)


def double_root_above(square: Fraction) -> float:
    """The smallest double whose square is at least this, for positive x, or the one after it."""
    half = floor_log2(square) // 2
    scaled = square / power(2 * half)  # in [1, 4), whatever the size
    root = math.sqrt(scaled)
    return math.ldexp(root if Fraction(root) ** 2 >= scaled else math.nextafter(root, math.inf), half)


def in_range(name: str, value: object) -> float:
    """A scale or sensitivity whose grid stays inside the range of doubles."""
    return number(name, value, low=2.0**-900, high=2.0**900)
