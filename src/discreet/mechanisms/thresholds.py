"""Whether a noisy whole number exceeds a threshold, which the noise alone does with a small probability only."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from discreet import random
from discreet.random.bounds import exp_bounds

__all__ = ["exceeding", "least_threshold", "noise_tail"]

K = TypeVar("K", bound=Hashable)


def exceeding(counts: Mapping[K, int], scale: float, threshold: int, rng: random.Rng) -> dict[K, int]:
    """The counts that exceed ``threshold`` once discrete Laplace noise of this scale is added, with that noise.

    In the order in which they are given: where that is private, sort them by name first, or the result.
    """
    noise = random.discrete_laplace(scale, len(counts), rng).tolist()
    noisy = {key: int(count) + extra for (key, count), extra in zip(counts.items(), noise, strict=True)}
    return {key: count for key, count in noisy.items() if count > threshold}


@lru_cache(maxsize=1024)
def least_threshold(scale: float, allowed: Fraction) -> int:
    """The least whole τ ≥ 0 that discrete Laplace noise of this scale exceeds with probability at most ``allowed``."""
    # Pr[N > τ] = e^{-(τ+1)/t} / (1 + e^{-1/t}): start below the solution, then step up until certified.
    tau = max(0, math.floor(-scale * math.log(2 * allowed)) - 2)
    while noise_tail(scale, tau) > allowed:
        tau += 1
    return tau


def noise_tail(scale: float, above: int) -> Fraction:
    """An upper bound of Pr[N > above] for discrete Laplace noise of this scale, and a whole number ≥ 0."""
    step = -1 / Fraction(scale)
    power = (above + 1) * step
    digits = 40 + min(math.ceil(-power / 3), 1_000)  # a tail of 10^-d takes d digits; no delta is below 10^-324
    return exp_bounds(power, digits)[1] / (1 + exp_bounds(step)[0])
