r"""How many runs: an exact draw from the laws that private selection is proved for.

A truncated negative binomial of shape η ≤ 1 has terms :math:`(1-\gamma)^k \prod_{i<k} (i+\eta)/(i+1)`, up to a factor:
a geometric proposal, kept with a probability that is a product of rational numbers, each tried on the way, so that the
steps in all are about as many as the runs. A larger shape is a sum of smaller
ones, drawn again where it is zero. A Poisson law is a sum of Poisson laws of mean at most one half, whose terms
:math:`\lambda^k/k!` are a geometric law's, kept with probability :math:`(2\lambda)^k/k!`. Every coin is a rational
number, decided exactly; the number of coins depends on nothing private.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from discreet import random
from discreet.accounting.selection import Runs, success

__all__ = ["check_runs", "draw_runs"]

_MOST_ATTEMPTS = 10_000  # of one draw: some seconds
_STEEP = -0.1  # shapes below it are drawn by stopping, which is given up rarely there


def check_runs(runs: Runs) -> None:
    """Refuse a law from which a draw would hardly end: before it is drawn again, it says none nearly always."""
    if 0 < runs.shape < math.inf:
        some = -math.expm1(runs.shape * math.log(success(runs.mean, runs.shape)))
        if 0 < some < 1 / _MOST_ATTEMPTS:
            raise ValueError(
                f"mean is {runs.mean!r}, for a law of shape {runs.shape:g} so near to one that a draw takes too long: "
                "use exactly 1, a larger mean, or law='logarithmic'."
            )


def draw_runs(runs: Runs, rng: random.Rng) -> int:
    """The number of runs to be made; never shown.

    >>> draw_runs(Runs(1.0, 0.0), random.as_rng(1))
    1
    """
    if math.isinf(runs.shape):
        pieces = math.ceil(2 * runs.mean)
        return sum(_small_poisson(Fraction(runs.mean) / pieces, rng) for _ in range(pieces))
    gamma = Fraction(success(runs.mean, runs.shape))
    if gamma == 1:
        return 1
    while (total := sum(_negative_binomial(gamma, shape, rng) for shape in _pieces(runs.shape))) == 0:
        pass
    return total


def _pieces(shape: float) -> Iterator[Fraction]:
    """Shapes of at most one that add up to it."""
    rest = Fraction(shape)
    while rest > 1:
        yield Fraction(1)
        rest -= 1
    yield rest


def _negative_binomial(gamma: Fraction, shape: Fraction, rng: random.Rng) -> int:
    """Of a positive shape of at most one; of a shape of at most zero, truncated: it has no terms at zero."""
    if shape == 1:
        return _failures(gamma, rng)
    attempt = _stopping if shape < _STEEP else _surviving
    while (k := attempt(gamma, shape, rng)) is None:
        pass
    return k


def _surviving(gamma: Fraction, shape: Fraction, rng: random.Rng) -> int | None:
    """A geometric law's k, given up at the first of its factors (i+η)/(i+1) that fails: most fail early."""
    k = 0 if shape > 0 else 1
    while not _coin(gamma, rng):
        if not _coin((k + shape) / (k + 1), rng):
            return None
        k += 1
    return k


def _stopping(gamma: Fraction, shape: Fraction, rng: random.Rng) -> int | None:
    """For negative η: stopping at k with chance -η/k gives the law at γ = 0; it is given up with chance γ a step."""
    k = 1
    while not _coin(-shape / k, rng):
        if _coin(gamma, rng):
            return None
        k += 1
    return k


def _failures(gamma: Fraction, rng: random.Rng) -> int:
    """Coins of probability gamma before the first success, a block at a time."""
    block, failed = min(4096, math.ceil(2 / gamma)), 0
    while True:
        heads = random.bernoulli(lambda digits: (gamma, gamma), block, rng)
        if heads.any():
            return failed + int(heads.argmax())
        failed += block


def _small_poisson(mean: Fraction, rng: random.Rng) -> int:
    while True:
        k = 0
        while rng.below(2):
            k += 1
        if all(_coin(2 * mean / i, rng) for i in range(1, k + 1)):
            return k


def _coin(chance: Fraction, rng: random.Rng) -> bool:
    return rng.below(chance.denominator) < chance.numerator
