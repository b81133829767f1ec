"""Before anything is spent: the power of a test, the number of records, or the epsilon, that a wished power needs.

Everything is simulated from public facts and suppositions; no record is read. A test takes its whole way from totals to
p-value, noise and all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from discreet.errors import number, positive, whole
from discreet.inference.hypothesis import QUICK, NoisyTest
from discreet.inference.means import OneSample
from discreet.inference.proportions import Proportion

__all__ = ["epsilon_needed", "power", "sample_size"]

_MOST_RECORDS = 10**9
_LEAST_EPSILON, _MOST_EPSILON = 1e-4, 100.0


def power(
    test: NoisyTest | Proportion,
    *,
    n: int | None = None,
    effect: float,
    sd: float | None = None,
    alpha: float = 0.05,
    runs: int = 2_000,
) -> float:
    """How often ``test`` rejects at the level ``alpha`` where ``n`` records have this ``effect``.

    ``effect`` is how far the truth is off the null hypothesis, in the units of the test's own effect; ``sd``, for
    means, a supposed standard deviation of a record (that of a uniform one, if it is left out). Groups are of equal
    size. For a proportion it is exact; otherwise
    ``runs`` simulations give it to about 0.01.

    >>> from discreet.inference.means import Welch
    >>> 0.4 < power(Welch(bounds=(0, 30), epsilon=1.0), n=2000, effect=0.5, sd=5.0) < 0.6
    True
    """
    alpha = number("alpha", alpha, low=0, high=1, open_low=True, open_high=True)
    if isinstance(test, (Proportion, OneSample)) and test.n is not None:
        n = test.n if n is None else whole("n", n, low=1)
        test = replace(test, n=n)
    if isinstance(test, Proportion):
        return test.power(effect=effect, alpha=alpha)
    if not isinstance(test, NoisyTest):
        raise ValueError(f"test is a {type(test).__name__}, but must be a test of means, tables or survival.")
    size = whole("n", n, low=1)
    return replace(test, simulations=QUICK).power(size, effect, sd=sd, alpha=alpha, runs=whole("runs", runs, low=1))


def sample_size(
    test: NoisyTest | Proportion,
    *,
    effect: float,
    power: float = 0.8,
    sd: float | None = None,
    alpha: float = 0.05,
    runs: int = 2_000,
) -> int:
    """The number of records with which ``test`` sees ``effect`` with probability ``power``, to about 2 in 100.

    >>> from discreet.inference.proportions import Proportion
    >>> sample_size(Proportion(n=1, null=0.5, adjacency="replace", epsilon=1.0), effect=0.05)
    792
    """
    seen = _power_of(power, alpha, effect, sd, runs)
    low, high = 0, 16
    while seen(test, high) < power:
        low, high = high, 2 * high
        if high > _MOST_RECORDS:
            raise ValueError(f"effect is {effect!r}, but not even {_MOST_RECORDS:g} records would give that power.")
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if seen(test, middle) >= power else (middle, high)
    return high


def epsilon_needed(
    test: NoisyTest | Proportion,
    *,
    n: int,
    effect: float,
    power: float = 0.8,
    sd: float | None = None,
    alpha: float = 0.05,
    runs: int = 2_000,
) -> float:
    """The epsilon with which ``test`` sees ``effect`` in n records with probability ``power``, to about 2 in 100.

    >>> from discreet.inference.proportions import Proportion
    >>> test = Proportion(n=1000, null=0.5, adjacency="replace", epsilon=1.0)
    >>> round(epsilon_needed(test, n=1000, effect=0.05), 2)
    0.17
    """
    if test.epsilon is None:
        raise ValueError("The test is asked for by rho, but epsilon is what is looked for: make it with epsilon=.")
    seen = _power_of(power, alpha, effect, sd, runs)
    low, high = _LEAST_EPSILON, _MOST_EPSILON
    if seen(replace(test, epsilon=high), n) < power:
        raise ValueError(f"n is {n}, but even without noise so many records show the effect less often than {power:g}.")
    while high / low > 1.01:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if seen(replace(test, epsilon=middle), n) >= power else (middle, high)
    return high


def _power_of(wished: float, alpha: float, effect: float, sd: float | None, runs: int) -> Callable[[Any, int], float]:
    number("power", wished, low=0, high=1, open_low=True, open_high=True)
    if sd is not None:
        positive("sd", sd)
    return lambda test, n: power(test, n=n, effect=effect, sd=sd, alpha=alpha, runs=runs)
