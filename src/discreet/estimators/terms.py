r"""One feature's part in an additive regression: what it may look like, how it is measured, what is learnt of it.

*Prior.* A part f of an ordered feature is a straight line and a smoother: f = Φc, with Φ orthonormal functions of the
bins (the constant, the line, then ever faster cosines) and independent c of variance

.. math:: v (\ell,\; a m / 3,\; b m / 2^2,\; b m / 3^2, \dots)

for m bins: a for the line, b for what bends, ℓ for the level, of which an intercept has most. A nominal feature has a
number of variance a·v in each bin.

*Measurement.* The bins' sums h of residuals are needed, but not all alike: noise that is equal in all bins drowns the
line, whose coefficient is one number. So Ah is measured, with the columns of A of norm at most 1 (a record is in one
bin, so that is the sensitivity, whatever A is): its rows are the first r functions of Φ, with the r, or A = I, for
which the error that is expected under the prior is least. It follows from public facts and from noisy counts that are
paid for.

*Learning.* Given noisy sums y = ANf + noise, with N the counts, f is the posterior mean, averaged over a few a and b by
their marginal likelihoods: a feature that does not matter is switched off, one that is straight is a line.

References: choosing A for a workload: Li, Miklau, Hay, McGregor and Rastogi (2015), the matrix mechanism; averaging
over models: MacKay (1992).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.estimators.sums import COARSE, cut

__all__ = ["Term"]

VARIANCE = 0.1  # of a part, on targets in [-1, 1]: they are rarely spread further
BENT = 0.02  # of it, for what is no straight line, when the strategy is chosen
LEVEL = 0.003  # the least variance of a feature's mean, of which the intercept has most
MISSING = 0.1  # of it, for the bin of missing values
LINES, BENDS, WHITES = (0.0, 0.03, 0.3, 1.0, 3.0), (0.0, 0.03, 0.3, 1.0), (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
MOST = 64  # functions of an ordered feature: what bends faster is noise
RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 45, MOST)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Term:
    """A feature of ``bins`` bins and one of missing values; ``bent`` and ``variance`` are relative to the defaults."""

    bins: int
    nominal: bool
    l1: bool  # whether columns of a strategy have an L1 norm of at most 1, and not L2
    bent: float = 1.0
    variance: float = 1.0

    @property
    def functions(self) -> Array:
        """Φ: a column a function; the last is the bin of missing values."""
        return np.eye(self.bins + 1) if self.nominal else _functions(self.bins)

    def strategy(self, counts: Array, noise: float, level: float) -> Array:
        """The A for which the expected squared error of the part is least, with entries that are whole parts."""
        prior = self._variances(1.0, BENT, level)
        return min(self._strategies(), key=lambda A: self._expected_error(A, counts, prior, noise))

    def learn(self, strategy: Array, counts: Array, measured: Array, noise: float, level: float) -> Array:
        """The posterior mean of the part in each bin."""
        used = strategy.any(axis=1)
        known = (strategy[used] * counts) @ self.functions
        likelihoods, parts = [], []
        for variances in self._priors(level):
            seen = known * np.sqrt(variances) / noise
            values, vectors = _spectrum(seen)
            turned = vectors.T @ (measured[used] / noise)
            likelihoods.append(-(float(turned @ (turned / values)) + float(np.log(values).sum())) / 2)
            parts.append(self.functions @ (np.sqrt(variances) * (seen.T @ (vectors @ (turned / values)))))
        weights = np.exp(np.array(likelihoods) - max(likelihoods))
        return np.asarray(weights @ np.array(parts) / weights.sum())

    def _priors(self, level: float) -> Iterator[Array]:
        if self.nominal:
            yield from (self._variances(white, 0.0, level) for white in WHITES)
        else:
            yield from (self._variances(line, bend, level) for line in LINES for bend in BENDS)

    def _variances(self, line: float, bend: float, level: float) -> Array:
        """The prior variance of each function's coefficient."""
        most = VARIANCE * self.variance
        if self.nominal:
            return np.full(self.bins + 1, most * line)
        order = np.arange(self.functions.shape[1] - 1)
        variances = most * self.bent * bend * self.bins / np.maximum(order, 1) ** 2
        variances[:2] = (max(LEVEL, level) * self.bins, most * line * self.bins / 3)[: len(order)]
        return np.append(variances, most * MISSING)

    def _strategies(self) -> Iterator[Array]:
        if self.nominal or self.bins <= MOST:
            yield np.eye(self.bins + 1)
        if self.nominal:
            return
        for rank in RANKS:
            if rank < self.functions.shape[1]:
                rows = np.zeros((self.bins + 1, self.bins + 1))
                rows[:rank] = self.functions[:, :rank].T
                norms = np.abs(rows).sum(axis=0) if self.l1 else np.sqrt((rows * rows).sum(axis=0))
                rows /= norms.max() * (1 + 2.0**-40)
                rows[-1, -1] = 1.0  # what is missing is in no other row
                yield cut(rows, COARSE) / COARSE  # towards zero: no norm grows

    def _expected_error(self, strategy: Array, counts: Array, variances: Array, noise: float) -> float:
        """Σ N·(what is not known of f) squared, under the prior."""
        rows = strategy[strategy.any(axis=1)]
        known = (rows * counts) @ self.functions
        seen = known * np.sqrt(variances) / noise
        values, vectors = _spectrum(seen)
        left = vectors @ ((vectors.T @ seen) / values[:, None])
        weight = self.functions.T @ (counts[:, None] * self.functions) * np.sqrt(np.outer(variances, variances))
        return float(np.trace(weight) - np.sum((seen @ weight) * left))


def _spectrum(seen: Array) -> tuple[Array, Array]:
    """Eigenvalues, none below one, and eigenvectors of I + SSᵀ: what is solved with them is never singular."""
    values, vectors = np.linalg.eigh(seen @ seen.T)
    return 1.0 + np.maximum(values, 0.0), vectors


@lru_cache(maxsize=64)
def _functions(bins: int) -> Array:
    """The constant, the line and cosines on the middles of bins, made orthonormal; then the bin of missing values."""
    middles = (np.arange(bins) + 0.5) / bins
    raw = [np.ones(bins), 2 * middles - 1, *(np.cos(math.pi * order * middles) for order in range(2, MOST))]
    smooth = np.linalg.qr(np.stack(raw[: min(bins, MOST)], axis=1))[0]
    functions = np.zeros((bins + 1, smooth.shape[1] + 1))
    functions[:-1, :-1], functions[-1, -1] = smooth, 1.0
    functions.flags.writeable = False
    return functions
