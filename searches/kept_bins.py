"""Kept bins with random matrices beside simulation: bounds of delta from both sides, in both directions.

A case is one non-negative lower-triangular matrix of at most 6 bins and 3 passes, at three epsilons; in every second
case two bins share nearly all and others little. The ratio of 10⁷ runs is simulated; bounds must enclose what the
simulation cannot exclude, at seven standard errors (a false alarm once in 10¹¹).
"""

from __future__ import annotations

import math

import numpy as np

from discreet.accounting.neighbours import resolve
from discreet.accounting.pld.composition import PLD
from discreet.adjacency import Adjacency
from discreet.mechanisms.factorization import Strategy, kept_bins_event
from searches._progress import with_progress

__all__ = ["check", "main"]

_RUNS, _CHUNK = 10**7, 10**6
_EPSILONS = (0.1, 0.5, 1.5)


class Given(Strategy):
    """A matrix as it is."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.steps = self.memory = self.bands = len(matrix)
        self._matrix = matrix

    def matrix(self) -> np.ndarray:
        """As given."""
        return self._matrix

    def advance(self, step: int, draw: object, memory: object) -> object:
        """Nothing is drawn here."""
        raise NotImplementedError


def check(seed: int, runs: int = _RUNS) -> None:
    """One matrix; raises where a bound is wrong."""
    rng = np.random.default_rng(seed)
    bins, passes = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    size = bins * passes
    matrix = np.tril(rng.exponential(size=(size, size)) * (rng.random((size, size)) < rng.random()))
    matrix += np.diag(rng.uniform(0.2, 2.0, size))
    matrix *= rng.uniform(0.3, 1.0) ** np.subtract.outer(np.arange(size), np.arange(size)).clip(0)
    if seed % 2:  # little is shared but by two bins, however far apart
        one, other = (0, bins - 1) if rng.random() < 0.5 else np.sort(rng.choice(bins, 2, replace=False))
        matrix = np.eye(bins) + 0.05 * matrix[:bins, :bins] / matrix.max()
        matrix[one, one], matrix[other, one] = 0.05, 1.0
    noise = math.sqrt(kept_bins_event(Given(matrix), bins, 1.0).products[0]) * rng.uniform(0.5, 2.0)
    account = PLD(resolve(kept_bins_event(Given(matrix), bins, noise), Adjacency.ADD_REMOVE))
    moved = np.stack([matrix[:, i::bins].sum(axis=1) for i in range(bins)], axis=1) / noise
    root, half = np.linalg.cholesky(moved.T @ moved + 1e-13 * np.eye(bins)), (moved**2).sum(axis=0) / 2
    sums = np.zeros((2, 2, len(_EPSILONS)))  # direction, moment
    for _ in range(runs // min(runs, _CHUNK)):
        ratio = np.exp(rng.normal(size=(min(runs, _CHUNK), bins)) @ root.T - half).mean(axis=1)
        for place, epsilon in enumerate(_EPSILONS):
            for side, x in enumerate((ratio - math.exp(epsilon), 1 - math.exp(epsilon) * ratio)):
                x = np.maximum(x, 0)
                sums[side, :, place] += x.sum(), (x * x).sum()
    mean, square = sums[:, 0] / runs, sums[:, 1] / runs
    error = 7 * np.sqrt(np.maximum(square - mean**2, 0.0) / runs) + 50 / runs
    for place, epsilon in enumerate(_EPSILONS):
        low, high = account.delta_bounds(epsilon)
        least, most = (mean - error)[:, place].max(), (mean + error)[:, place].max()
        if not 0 <= low <= high or high < least or low > most:
            raise AssertionError(
                f"seed {seed}: epsilon {epsilon}: [{low:.6g}, {high:.6g}], simulated [{least}, {most}]"
            )


def main(size: int | None = None, seed: int = 0) -> None:
    """So many matrices, from the seed on."""
    count = 20 if size is None else size
    for number in with_progress("kept bins", range(seed, seed + count), every=10):
        check(number)
    print(f"kept bins: {count} matrices, every truth between its bounds")
