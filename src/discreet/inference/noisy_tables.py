"""Tests from one noisy table of counts: what they share. A record is in one cell, so the table costs one count.

The null law of a statistic, and the error of an effect, are simulated: tables of the noisy sizes are drawn from the
fitted law, noise is added, and the result is put through the very function that the released table goes through.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.inference.classical import largest_noise
from discreet.inference.hypothesis import NoisyTest, Outcome, conclude
from discreet.inference.simulation import Array, public_generator, simplex, tail_probability, toward

__all__ = ["TableTest", "draw_tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTest(NoisyTest):
    """A test of counts in groups (rows) and cells (columns); a group's size is private."""

    assumes: ClassVar[str] = "Independent records."

    null_effect: ClassVar[float | None] = (
        None  # what the effect is where the null hypothesis holds, if that is a number
    )

    _whole = True
    _fewest_drawn: ClassVar[int] = 1  # records that a group of a simulated table has at least

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Groups and cells."""

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        moved = Fraction(2 if self._replace else 1)
        return moved, moved, self.shape[0] * self.shape[1]

    @abstractmethod
    def statistic(self, counts: Array) -> Array:
        """What speaks against the null hypothesis, of tables on the last two axes."""

    @abstractmethod
    def null_law(self, counts: Array) -> Array:
        """The probabilities of the cells of each group that fit noisy counts best where the null hypothesis holds."""

    def textbook(self, counts: Array) -> tuple[Array, Array]:
        """The p-value of counts without noise, and where its law holds: nowhere, unless a test has one."""
        nowhere = np.zeros(counts.shape[:-2], bool)
        return np.ones(nowhere.shape), nowhere

    @property
    def _counts_are_exact(self) -> bool:
        """Whether the noise on every cell is zero, but for a probability of 2^-40."""
        return largest_noise(self.mechanism, self._moves[2]) == 0

    def effect(self, counts: Array) -> Array:
        """How far the table is from the null hypothesis: the statistic, unless a test says it in better units."""
        return self.statistic(counts)

    def infer(self, noisy: Array) -> Outcome:
        """The statistic against its simulated null law, and the effect with its simulated error."""
        statistic, sizes = self.statistic(noisy), np.maximum(np.rint(noisy.sum(-1)), self._fewest_drawn)
        law = self._caution * self.statistic(self._simulate(self.null_law(noisy), sizes))
        p_value = tail_probability(toward(statistic, self.alternative), toward(law, self.alternative))
        if self._counts_are_exact:
            known, holds = self.textbook(noisy)
            p_value = np.where(holds, known, p_value)
        effect, low, high = self._estimate(noisy, sizes)
        if self.null_effect is not None:  # an interval holds what the test does not refute: decision 554
            refuted = tail_probability(np.abs(statistic), np.abs(law)) <= 1 - self.confidence
            low = np.where(refuted, low, np.minimum(low, self.null_effect))
            high = np.where(refuted, high, np.maximum(high, self.null_effect))
        return conclude(Outcome(statistic, p_value, effect, low, high, self._large_enough(noisy)))

    def _large_enough(self, noisy: Array) -> Array:
        return np.asarray(self._enough(noisy.sum(-1), self.shape[1]).all(-1))

    def _estimate(self, noisy: Array, sizes: Array) -> tuple[Array, Array, Array]:
        """The effect, and on either side what its error stays within in tables that are drawn from the fitted one."""
        fit, effect = self._add_pseudo_records(simplex(noisy)), self.effect(noisy)
        drawn = self.effect(self._simulate(fit / fit.sum(-1, keepdims=True), sizes))
        error = np.abs(drawn - self.effect(fit)[..., None])
        reach = self._caution * np.quantile(error, self.confidence, axis=-1, method="higher")
        return effect, effect - reach, effect + reach

    @staticmethod
    def _add_pseudo_records(fit: Array) -> Array:
        """A record more in each group, evenly in its cells, and one by the shares of all groups: a cell that happens to
        be empty is not known to have no probability (Agresti and Caffo 2000).
        """
        pooled = fit.sum(-2, keepdims=True)
        return np.asarray(fit + pooled / pooled.sum(-1, keepdims=True) + 1 / fit.shape[-1])

    def _simulate(self, law: Array, sizes: Array) -> Array:
        """Noisy tables of these sizes and laws, with the runs on the axis before the last two."""
        generator = public_generator()
        return self.expose(draw_tables(law, sizes, self.simulations, generator), generator)


def draw_tables(law: Array, sizes: Array, runs: int, generator: np.random.Generator) -> Array:
    """Counts of records drawn from each group's law, with the runs on the axis before the last two."""
    shape = (*law.shape[:-2], runs, *law.shape[-2:])
    many = np.broadcast_to(sizes[..., None, :], shape[:-1]).astype(np.int64)
    return generator.multinomial(many, np.broadcast_to(law[..., None, :, :], shape)).astype(np.float64)
