"""Random allocation beside simulation: random noise, bins, passes and company; both bounds of delta, both directions.

A seed is one (noise, bins), whose law is computed once and asked often: one pass, several, and one beside a Gaussian or
a Laplace release, each at four epsilons, which are twelve cases. Neighbours' losses are simulated, and the certified
lower and upper bounds must enclose what the simulation cannot exclude: Maurer and Pontil's empirical Bernstein bound
for values in [0, 1], with a false-alarm rate of 1e-9 a case. Every 64th seed is compared with itself at more noise,
more bins and more passes: the lower bound of what costs less is never above the upper bound of what costs more.
"""

from __future__ import annotations

import math
import random

import numpy as np

from discreet import events as ev
from discreet.accounting.neighbours import resolve
from discreet.accounting.pld.composition import PLD
from discreet.adjacency import Adjacency
from searches._progress import with_progress

__all__ = ["check", "main"]

_NORMALS = 400_000  # a direction and pass: what a seed may draw
_LOG_ALARM = math.log(2 / 1e-9)
_CASES = 12


def _error(sample: np.ndarray) -> float:
    n = len(sample)
    return math.sqrt(2 * float(sample.var(ddof=1)) * _LOG_ALARM / n) + 7 * _LOG_ALARM / (3 * (n - 1))


def _losses(sigma: float, bins: int, removed: bool, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Of one pass; the record is in the first bin, by symmetry."""
    z = rng.standard_normal((draws, bins), dtype=np.float32).astype(float)
    z[:, 0] += removed / sigma
    ratio = np.log(np.exp(z / sigma - 0.5 / sigma**2).mean(axis=1))
    return ratio if removed else -ratio


def _beside(company: ev.Event | None, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Losses of what is released beside it: a shift by one of noise that is symmetric."""
    match company:
        case None:
            return np.zeros(draws)
        case ev.Gaussian(noise_multiplier=z):
            return rng.normal(0.5 / z**2, 1 / z, draws)
        case ev.Laplace(noise_multiplier=b):
            x = rng.laplace(1.0, b, draws)
            return (np.abs(x) - np.abs(x - 1)) / b
        case _:
            raise ValueError(f"{company} is not simulated.")


def _bounds(event: ev.Event, epsilon: float) -> tuple[float, float]:
    return PLD(resolve(event, Adjacency.ADD_REMOVE)).delta_bounds(epsilon)


def check(seed: int) -> None:
    """Twelve cases; raises where a bound is wrong."""
    rng, draws = random.Random(seed), np.random.default_rng(seed)
    sigma, bins, passes = 10 ** rng.uniform(-0.5, 0.8), int(10 ** rng.uniform(0.31, 2.3)), rng.choice((2, 3, 5))
    one = ev.BallsInBins(bins=bins, event=ev.Gaussian(noise_multiplier=sigma))
    company = rng.choice((ev.Gaussian, ev.Laplace))(noise_multiplier=10 ** rng.uniform(-0.2, 1.0))
    count = max(1000, _NORMALS // bins)
    for event, times, other in ((one, 1, None), (one * passes, passes, None), (one + company, 1, company)):
        account = PLD(resolve(event, Adjacency.ADD_REMOVE))
        sides = [
            sum(_losses(sigma, bins, removed, count, draws) for _ in range(times)) + _beside(other, count, draws)
            for removed in (True, False)
        ]
        for epsilon in (10 ** rng.uniform(-2, 1), *np.quantile(np.abs(sides[0]), [0.3, 0.8, 0.97]).tolist()):
            low, high = account.delta_bounds(epsilon)
            deltas = [np.maximum(-np.expm1(epsilon - loss), 0.0) for loss in sides]
            least = max(float(sample.mean()) - _error(sample) for sample in deltas)
            most = max(float(sample.mean()) + _error(sample) for sample in deltas)
            if not low <= high or high < least or low > most:
                raise AssertionError(
                    f"seed {seed}: {event} at epsilon {epsilon:.6g}: [{low:.6g}, {high:.6g}], "
                    f"simulated [{least:.6g}, {most:.6g}]"
                )
    if seed % 64 == 0:
        _check_order(seed, sigma, bins, passes, rng.uniform(0.05, 2.0))


def _check_order(seed: int, sigma: float, bins: int, passes: int, epsilon: float) -> None:
    def price(noise: float, count: int, times: int) -> tuple[float, float]:
        return _bounds(ev.BallsInBins(bins=count, event=ev.Gaussian(noise_multiplier=noise)) * times, epsilon)

    dear = price(sigma, bins, passes)[1]
    cheap = [price(1.02 * sigma, bins, passes)[0], price(sigma, bins + 1, passes)[0], price(sigma, bins, passes - 1)[0]]
    if max(cheap) > dear:
        raise AssertionError(f"seed {seed}: noise {sigma}, {bins} bins, {passes} passes: {cheap} above {dear}")


def main(size: int | None = None, seed: int = 0) -> None:
    """So many cases, from the seed on."""
    seeds = -(-(10_000 if size is None else size) // _CASES)
    for number in with_progress("allocation", range(seed, seed + seeds), every=25):
        check(number)
    print(f"allocation: {seeds * _CASES} cases, every truth between its bounds")
