r"""Exact discrete noise, and exact roundings of continuous noise: integers whose law is the stated one, bit for bit.

``discrete_laplace``, ``discrete_gaussian``
    mass proportional to exp(-\|x\|/scale), exp(-x²/2σ²) on the integers (Canonne, Kamath and Steinke 2020).
``laplace_cells``, ``gaussian_cells``
    the integer part (floor) of a continuous Laplace or Gaussian sample of whole scale: what a grid release adds
    (Karney 2016 samples the continuous normal in the same way: integer part, then a lazily drawn fraction).

All four come from one compiled rejection loop (``_kernel``) whose every accept/reject is certified: float arithmetic
decides only where it provably can, and the rest, one proposal in about 2^39, is decided here with integers of any
size. Scales whose numerator exceeds 53 bits run wholly in Python integers.

The one value that is not representable: a sample beyond ±2^62 raises ``OverflowError``, rather than wrapping. At the
scales the compiled loop serves this has probability below 2^-700, less than any positive float.

Decision 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import positive, whole
from discreet.random._kernel import GAUSSIAN, LAPLACE, WIDEST, draw_magnitudes, exp_table
from discreet.random.bounds import Interval, exp_bounds, uniform_below
from discreet.random.source import Rng, RngLike, as_rng, in_lanes

__all__ = ["Integers", "discrete_gaussian", "discrete_laplace", "gaussian_cells", "laplace_cell", "laplace_cells"]

Integers = NDArray[np.int64]
Size = int | tuple[int, ...]

_LIMIT = 1 << 62


# Upper bounds of ln 2 and √(2 ln 2), in units of the scale: the narrowest strips for which p never exceeds one.
_STRIP = {LAPLACE: Fraction(6932, 10_000), GAUSSIAN: Fraction(11_775, 10_000)}


@dataclass(frozen=True, slots=True)
class _Law:
    """Mass proportional to exp(-y/scale) or exp(-y²/2scale²) at y ≥ 0, divided by ``divisor``, with a random sign."""

    kind: int
    cells: bool
    scale: Fraction
    divisor: int = 1

    @property
    def strip(self) -> int:
        return math.ceil(self.scale * _STRIP[self.kind])

    def probability(self, k: int, y: int, digits: int, inside: Interval) -> Interval:
        """Bounds on the acceptance probability; decreasing in the inner uniform, so its ends give the bounds."""
        near, far = (self._exponent(y + u if self.cells and self.kind == GAUSSIAN else Fraction(y)) for u in inside)
        return exp_bounds(-far, digits)[0] * 2**k, exp_bounds(-near, digits)[1] * 2**k

    def _exponent(self, y: Fraction) -> Fraction:
        return y / self.scale if self.kind == LAPLACE else (y / self.scale) ** 2 / 2

    def settle(self, rng: Rng, k: int, j: int, sign: int, *seen: int) -> int | None:
        """The sample a candidate becomes, or none if it is refused. ``seen`` are the words drawn for it already."""
        y = k * self.strip + j
        word, inner = (*seen, None, None)[:2]
        if not uniform_below(lambda digits, u: self.probability(k, y, digits, u), rng, word=word, inner=inner):
            return None
        y //= self.divisor
        if self.cells:
            return -y - 1 if sign else y
        return None if sign and not y else (-y if sign else y)

    def one(self, rng: Rng) -> int:
        """A sample by Python integers alone."""
        while True:
            k = 0
            while rng.below(2):
                k += 1
            sample = self.settle(rng, k, rng.below(self.strip), rng.below(2))
            if sample is not None:
                return sample

    def fill(self, out: Integers, rng: Rng) -> None:
        """Samples for every entry of a flat array."""
        if self.strip.bit_length() > WIDEST or self.divisor >= _LIMIT:
            out[:] = [_check_range(self.one(rng)) for _ in range(out.size)]
            return
        pending, done = np.zeros(6, np.uint64), 0
        while True:
            with rng.lock:
                done = draw_magnitudes(
                    out,
                    done,
                    self.kind,
                    self.cells,
                    self.strip,
                    float(self.scale),
                    self.divisor,
                    *rng.address,
                    exp_table(),
                    pending,
                )
            if done == out.size:
                return
            k, j, sign, word, inner, drawn = (int(x) for x in pending)
            sample = self.settle(rng, k, j, sign, *(word, inner)[:drawn])
            if sample is not None:
                out[done] = _check_range(sample)
                done += 1


def _check_range(sample: int) -> int:
    if abs(sample) >= _LIMIT:
        raise OverflowError("A noise sample exceeded 2^62 grid steps; the scale is too large for 64-bit integers.")
    return sample


def _sample(law: _Law, size: Size | None, rng: RngLike) -> Integers:
    shape = (1,) if size is None else size
    out: Integers = np.empty(shape, np.int64)
    in_lanes(law.fill, out.reshape(-1), as_rng(rng))
    return out


def _rational(name: str, value: Any) -> Fraction:
    if isinstance(value, Fraction) and value > 0:
        return value
    return Fraction(value) if isinstance(value, int) and value > 0 else Fraction(positive(name, value))


def discrete_laplace(scale: float | Fraction, size: Size | None = None, rng: RngLike = None) -> Integers:
    r"""Integers with mass :math:`\tanh(1/2t)\,e^{-|x|/t}`, exactly, for any rational scale t (a float is one).

    With t = p/q, the integer part of a geometric variable of ratio exp(-1/p) divided by q has ratio exp(-q/p).
    Reference: Canonne, Kamath and Steinke (2020), Algorithm 2.

    >>> discrete_laplace(2.5, size=5, rng=1).shape
    (5,)
    """
    t = _rational("scale", scale)
    return _sample(_laplace_law(t), size, rng)


def _laplace_law(t: Fraction) -> _Law:
    return _Law(LAPLACE, cells=False, scale=Fraction(t.numerator), divisor=t.denominator)


def discrete_gaussian(sigma: float | Fraction, size: Size | None = None, rng: RngLike = None) -> Integers:
    r"""Integers with mass proportional to :math:`e^{-x^2/2\sigma^2}`, exactly, for any rational sigma.

    Sigma is the law's parameter; for sigma below about 0.3 the standard deviation is visibly smaller.
    Reference: Canonne, Kamath and Steinke (2020), Definition 1.

    >>> discrete_gaussian(10, size=3, rng=1).dtype
    dtype('int64')
    """
    s = _rational("sigma", sigma)
    return _sample(_Law(GAUSSIAN, cells=False, scale=s), size, rng)


def laplace_cells(scale: int, size: Size | None = None, rng: RngLike = None) -> Integers:
    r"""The floor of a continuous Laplace sample of whole scale m: :math:`\Pr[n] \propto e^{-n/m}` for n ≥ 0.

    The floor of an exponential variable is geometric, and with a minus sign floor(-x) = -floor(x) - 1; so the law is
    symmetric about -1/2.

    >>> laplace_cells(1 << 44, size=2, rng=1).dtype
    dtype('int64')
    """
    m = whole("scale", scale, low=1)
    return _sample(_Law(LAPLACE, cells=True, scale=Fraction(m)), size, rng)


def laplace_cell(scale: int, rng: RngLike = None) -> int:
    """One sample of the law of ``laplace_cells``, of any length: for noise whose scale is itself private.

    >>> isinstance(laplace_cell(10**100, rng=1), int)
    True
    """
    return _Law(LAPLACE, cells=True, scale=Fraction(whole("scale", scale, low=1))).one(as_rng(rng))


def gaussian_cells(sigma: int, size: Size | None = None, rng: RngLike = None) -> Integers:
    r"""The floor of a continuous Gaussian sample of whole standard deviation m, symmetric about -1/2.

    Reference: Karney (2016), "Sampling exactly from the normal distribution", Algorithm N, with dyadic proposals.

    >>> gaussian_cells(1 << 44, size=(2, 3), rng=1).shape
    (2, 3)
    """
    m = whole("sigma", sigma, low=1)
    return _sample(_Law(GAUSSIAN, cells=True, scale=Fraction(m)), size, rng)
