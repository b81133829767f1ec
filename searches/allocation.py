"""Random allocation beside simulation: random noise, bins and passes; both bounds of delta in both directions.

One case is one (noise, bins, passes, epsilon). Neighbours' mean ratios are simulated, and the certified lower and upper
bounds must enclose what the simulation cannot exclude, at seven standard errors of a sample whose terms are bounded by
one (the false-alarm rate of a case is below 1e-9; Bernstein's correction covers small deltas).
"""

from __future__ import annotations

import math
import random

import numpy as np

from discreet import events as ev
from discreet.accounting.neighbours import resolve
from discreet.accounting.pld.composition import PLD
from discreet.adjacency import Adjacency

__all__ = ["check", "main"]

_DRAWS = 20_000
_LOG_ALARM = math.log(2 / 1e-9)


def _error(sample: np.ndarray) -> float:
    """Maurer and Pontil's empirical Bernstein bound for values in [0, 1]."""
    n = len(sample)
    return math.sqrt(2 * float(sample.var(ddof=1)) * _LOG_ALARM / n) + 7 * _LOG_ALARM / (3 * (n - 1))


def check(seed: int) -> None:
    """One case; raises where a bound is wrong."""
    rng = random.Random(seed)
    sigma, bins, passes = 10 ** rng.uniform(-0.5, 0.8), int(10 ** rng.uniform(0.31, 2.3)), rng.choice((1, 1, 2, 5))
    epsilon = 10 ** rng.uniform(-1.5, 1.0)
    event = ev.BallsInBins(bins=bins, event=ev.Gaussian(noise_multiplier=sigma)) * passes
    low, high = PLD(resolve(event, Adjacency.ADD_REMOVE)).delta_bounds(epsilon)
    draws = np.random.default_rng(seed)
    losses = {"removed": np.zeros(_DRAWS), "added": np.zeros(_DRAWS)}
    for _ in range(passes):
        for direction, loss in losses.items():
            z = draws.normal(size=(_DRAWS, bins))
            if direction == "removed":
                z[:, 0] += 1 / sigma  # the record is in the first bin, by symmetry
            ratio = np.log(np.exp(z / sigma - 0.5 / sigma**2).mean(axis=1))
            loss += ratio if direction == "removed" else -ratio
    deltas = [np.maximum(-np.expm1(epsilon - loss), 0.0) for loss in losses.values()]
    least = max(float(sample.mean()) - _error(sample) for sample in deltas)
    most = max(float(sample.mean()) + _error(sample) for sample in deltas)
    if not low <= high or high < least or low > most:
        raise AssertionError(
            f"seed {seed}: {event} at epsilon {epsilon:.6g}: [{low:.6g}, {high:.6g}], "
            f"simulated [{least:.6g}, {most:.6g}]"
        )


def main(size: int | None = None, seed: int = 0) -> None:
    """So many cases, from the seed on."""
    count = 10_000 if size is None else size
    for number in range(seed, seed + count):
        check(number)
    print(f"allocation: {count} cases, every truth between its bounds")
