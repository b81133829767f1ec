"""Pearson's correlation of two bounded columns, from nine noisy totals for the price of a count."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from discreet.errors import number
from discreet.inference.classical import pearson, unnoticeable
from discreet.inference.columns import NUMBERS, check_columns, read_columns
from discreet.inference.group_means import HIDDEN
from discreet.inference.hypothesis import (
    FEWEST,
    AskedOfTest,
    NoisyTest,
    Outcome,
    ReleasedTest,
    ask_test,
    conclude,
    spell_test,
)
from discreet.inference.simulation import Array, public_generator, tail_probability, toward
from discreet.mechanisms.parameters import store
from discreet.random import exact_sum
from discreet.statistics.bounded import Bounds, check_bounds, positions

__all__ = ["Correlation", "correlation"]

_STEPS = 1 << 15  # of a place: products of two such quadratics fit in 64 bits
_NEAREST = 1 - 1e-9  # to a correlation of 1, where Fisher's transform ends


class _Products(NamedTuple):
    """Sizes, means, and mean squares and products about the means, of two columns in units of their bounds."""

    size: Array
    mean: Array
    squares: Array
    product: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation(NoisyTest):
    r"""Whether two columns, side by side, are uncorrelated; ``bounds`` has a pair for each.

    With t and u the places of a record's entries between their bounds, the nine products of (1-t)², 2t(1-t), t² with
    the same of u are not negative and add up to 1: one record moves their totals by 1 in L1. They hold all second
    moments. The statistic is the covariance over its standard error where both are independent, that of the noise
    included, against its simulated law; the effect is the correlation, with an interval by Fisher's transform, whose
    error is simulated at the noisy correlation. Places are rounded to multiples of 2^-15. A record with a missing entry
    is left out. Reference: Pearson (1896); Fisher (1921).

    >>> test = Correlation(bounds=((0, 10), (0, 10)), epsilon=1.0)
    >>> x = np.arange(2000) % 11
    >>> answer = test.release((x, (x + 3 * (np.arange(2000) % 2)) / 2), rng=1)
    >>> answer.p_value < 0.001, answer.effect > 0.8
    (True, True)
    """

    bounds: tuple[Bounds, Bounds]

    label = "correlation"
    effect_name = "correlation"
    assumes: ClassVar[str] = "Independent records; the interval supposes joint normality."

    _fewest_records: ClassVar[int] = 10

    def __post_init__(self) -> None:
        self._check_test()
        if not isinstance(self.bounds, (tuple, list)) or len(self.bounds) != 2:
            raise ValueError("bounds must be two pairs (low, high), one for each column.")
        first, second = (check_bounds(pair) for pair in self.bounds)
        store(self, bounds=(first, second))
        _ = self.mechanism

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        moved = Fraction(2 if self._replace else 1)
        return moved, moved, 9

    def check(self, data: Any) -> None:
        """Two columns of numbers."""
        check_columns(data, (NUMBERS, NUMBERS), ("x", "y"))

    def totals(self, values: Any) -> Array:
        """The exact totals. Private."""
        places = [
            positions(part, pair, _STEPS)
            for part, pair in zip(read_columns(values, (NUMBERS, NUMBERS)), self.bounds, strict=True)
        ]
        kept = (places[0] >= 0) & (places[1] >= 0)
        first, second = (_quadratics(part[kept]) for part in places)
        out = np.empty((3, 3), object)
        for i in range(3):
            for j in range(3):
                out[i, j] = exact_sum(first[i] * second[j]) / Fraction(_STEPS) ** 4
        return out

    def _products(self, noisy: Array) -> _Products:
        size = np.maximum(noisy.sum((-1, -2)), 1.0)
        margins = np.stack([noisy.sum(-1), noisy.sum(-2)], axis=-2)
        mean = np.clip((margins[..., 1] / 2 + margins[..., 2]) / size[..., None], 0.0, 1.0)
        line, parabola = _about(mean)
        hidden = HIDDEN * self._noise_on_squares(mean)
        squares = np.maximum((margins * parabola).sum(-1), hidden) / size[..., None]
        product = np.einsum("...i,...ij,...j->...", line[..., 0, :], noisy, line[..., 1, :]) / size
        return _Products(size, mean, squares, product)

    def _statistic(self, found: _Products) -> Array:
        """The mean product over its standard error under independence."""
        line, _ = _about(found.mean)
        noise = self.mechanism.deviation**2 * (line**2).sum(-1).prod(-1)
        error = np.sqrt(found.squares.prod(-1) / found.size + noise / found.size**2)
        return np.asarray(found.product / np.maximum(error, 1e-300))

    def infer(self, noisy: Array) -> Outcome:
        """A studentised covariance against its simulated law."""
        found = self._products(noisy)
        statistic, effect = self._statistic(found), _correlation(found)
        law = self._caution * self._statistic(self._products(self._simulate(found, np.zeros_like(effect))))
        p_value = tail_probability(toward(statistic, self.alternative), toward(law, self.alternative))
        around = _correlation(self._products(self._simulate(found, effect)))
        error = np.abs(np.arctanh(around) - np.arctanh(effect)[..., None])
        reach = self._caution * np.quantile(error, self.confidence, axis=-1, method="higher")
        low, high = np.tanh(np.arctanh(effect) - reach), np.tanh(np.arctanh(effect) + reach)
        known = self._spreads_are_known(found)
        low, high = np.where(known, low, -1.0), np.where(known, high, 1.0)
        products = np.sqrt(found.size * found.squares.prod(-1))[..., None]
        quiet = unnoticeable(self.mechanism, 9, found.size[..., None] * found.squares, products)
        exact = pearson(effect, found.size, self.alternative, self.confidence)
        simulated = (statistic, p_value, low, high)
        statistic, p_value, low, high = (np.where(quiet, *each) for each in zip(exact, simulated, strict=True))
        return conclude(Outcome(statistic, p_value, effect, low, high, self._enough(found.size, 9)))

    def _spreads_are_known(self, found: _Products) -> Array:
        """Whether both variances are far enough above their noise to be divided by; else the interval is everything."""
        squares = found.size[..., None] * found.squares
        return np.asarray((squares >= FEWEST * self._noise_on_squares(found.mean)).all(-1))

    def _noise_on_squares(self, mean: Array) -> Array:
        """The deviation of the noise on the sum of squares about a mean: of three totals, each of three cells."""
        _, parabola = _about(mean)
        return np.asarray(self.mechanism.deviation * np.sqrt(3 * (parabola**2).sum(-1)))

    def _simulate(self, found: _Products, correlation: Array) -> Array:
        """Noisy totals of normal records: their sums of squares and products are Wishart's, by Bartlett's triangle."""
        generator, runs = public_generator(), self.simulations
        shape = (*correlation.shape, runs)
        size, r = (np.broadcast_to(part[..., None], shape) for part in (found.size, correlation))
        free = np.maximum(size - 1, 2.0)
        a, c = np.sqrt(generator.chisquare(free)), np.sqrt(generator.chisquare(free - 1))
        b, left = generator.standard_normal(shape), np.sqrt(1 - r**2)
        xx, xy, yy = a**2, a * (r * a + left * b), (r * a + left * b) ** 2 + (left * c) ** 2
        deviation = np.sqrt(found.squares)[..., None, :]
        mean = found.mean[..., None, :] + deviation * generator.standard_normal((*shape, 2)) / np.sqrt(size)[..., None]
        sums = (
            size,
            mean[..., 0],
            mean[..., 1],
            *(
                part / size * scale
                for part, scale in (
                    (xx, deviation[..., 0] ** 2),
                    (yy, deviation[..., 1] ** 2),
                    (xy, deviation.prod(-1)),
                )
            ),
        )
        return self.expose(_nine(*sums), generator)

    def suppose(self, n: int, effect: float, sd: float | None, runs: int, generator: np.random.Generator) -> Array:
        """Normal records in the middle of the bounds, of the deviation of a uniform record."""
        r = number("effect", effect, low=-1, high=1)
        z = generator.standard_normal((2, runs, min(n, 10_000)))
        x, y = z[0], r * z[0] + np.sqrt(1 - r**2) * z[1]
        x, y = (np.clip(0.5 + part / np.sqrt(12), 0, 1) for part in (x, y))
        parts = [np.stack([(1 - t) ** 2, 2 * t * (1 - t), t**2]) for t in (x, y)]
        return np.asarray(np.einsum("irn,jrn->rij", *parts) * (n / z.shape[-1]))

    @property
    def largest_effect(self) -> float:
        """A correlation of ½."""
        return self._toward(0.5)


def _quadratics(k: Array) -> tuple[Array, Array, Array]:
    return (_STEPS - k) ** 2, 2 * k * (_STEPS - k), k**2


def _about(mean: Array) -> tuple[Array, Array]:
    """The weights of t - m and of (t - m)² on (1-t)², 2t(1-t), t²."""
    line = np.stack([-mean, 0.5 - mean, 1 - mean], axis=-1)
    return line, np.stack([mean**2, mean**2 - mean, (1 - mean) ** 2], axis=-1)


def _correlation(found: _Products) -> Array:
    error = np.sqrt(np.maximum(found.squares.prod(-1), 1e-300))
    return np.asarray(np.clip(found.product / error, -_NEAREST, _NEAREST))


def _nine(size: Array, x: Array, y: Array, xx: Array, yy: Array, xy: Array) -> Array:
    """The nine totals of records with these means, and mean squares and products about them; moments of the third and
    fourth order are those of independent parts: no statistic here asks for them.
    """
    square_x, square_y = xx + x**2, yy + y**2
    first = np.stack([1 - 2 * x + square_x, 2 * (x - square_x), square_x], axis=-1)
    second = np.stack([1 - 2 * y + square_y, 2 * (y - square_y), square_y], axis=-1)
    totals = first[..., :, None] * second[..., None, :]
    # xy moves the product of (t - x) and (u - y), and none of the margins
    tilt = np.array([-0.5, 0.0, 0.5])
    return np.asarray(size[..., None, None] * (totals + xy[..., None, None] * np.outer(tilt, tilt) * 4))


@spell_test("correlation")
def correlation(x: Any, y: Any, bounds: tuple[Bounds, Bounds], **asked: Unpack[AskedOfTest]) -> ReleasedTest:
    """Whether two columns are uncorrelated: see ``Correlation``.

    >>> correlation([0, 1] * 500, [0, 0, 1, 1] * 250, bounds=((0, 1), (0, 1)), epsilon=1.0, rng=1).p_value > 0.01
    True
    """
    return ask_test(Correlation, (x, y), asked, bounds=bounds)
