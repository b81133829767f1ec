"""Tests hold their level, and the check sees one that forgets the noise.

The whole table is made by ``python -m experiments.inference_levels``; here is one design for each test. One whose level
is 5 % rejects more than LIMIT of RUNS true hypotheses with probability below FALSE_ALARM; seeds are fixed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import binom

from discreet.inference import TestOfTests, Welch
from discreet.inference.simulation import noise_like
from experiments.inference_levels import SHAPES, STUDIES, exact_level, level

RUNS, FALSE_ALARM = 600, 1e-6
LIMIT = binom.isf(FALSE_ALARM, RUNS, 0.05) / RUNS


@pytest.mark.parametrize("name", STUDIES)
def test_a_test_holds_its_level_where_noise_is_as_large_as_sampling(name):
    shape = SHAPES["skewed"]
    study = STUDIES[name]
    test = study.make(0.3, shape)
    rejected, held, _ = level(test, study, shape, RUNS)
    assert rejected <= LIMIT
    if study.effect is not None:
        assert held >= 1 - LIMIT


@pytest.mark.parametrize("budget", [{"epsilon": 0.3, "delta": 1e-6}, {"epsilon": None, "rho": 0.005}, {"rho": 4.0}])
@pytest.mark.parametrize("name", ["Welch", "TwoProportions"])
def test_a_test_holds_its_level_with_gaussian_noise(name, budget):
    """Continuous for means; for counts whole where its deviation is below 1."""
    shape, study = SHAPES["normal"], STUDIES[name]
    test = replace(study.make(1.0, shape), **{"epsilon": None, **budget})
    rejected, held, _ = level(test, study, shape, RUNS)
    assert rejected <= LIMIT
    assert held >= 1 - LIMIT


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_exact_test_has_exactly_its_level(epsilon):
    """Within what 20,000 runs tell, on both sides: at most, and not much less."""
    rejected, held, _ = exact_level(SHAPES["skewed"], epsilon, 20_000)
    low, high = binom.ppf([FALSE_ALARM, 1 - FALSE_ALARM], 20_000, 0.05) / 20_000
    assert low <= rejected <= high
    assert low <= 1 - held <= high


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetful(Welch):
    """Simulates its null law, and its errors, without the noise."""

    def expose(self, totals, generator):
        return totals

    def moments(self, noisy, centre=None):
        moments = Welch.moments(self, noisy, centre)
        return moments._replace(error=moments.variance / moments.size)


def test_a_test_that_forgets_the_noise_is_seen():
    """At this epsilon noise has about the size of sampling: it rejects far more than LIMIT."""
    shape, study = SHAPES["normal"], STUDIES["Welch"]
    forgetful = Forgetful(bounds=(0, 1), epsilon=0.2, simulations=99)
    rng = np.random.default_rng(1)
    exact = study.totals(forgetful, shape, RUNS, rng)
    noisy = exact + noise_like(forgetful.mechanism, exact.shape, rng)
    assert (forgetful.infer(noisy).p_value <= 0.05).mean() > 2 * LIMIT
    assert (Welch(bounds=(0, 1), epsilon=0.2, simulations=99).infer(noisy).p_value <= 0.05).mean() <= LIMIT


def test_the_test_of_tests_holds_its_level():
    """A public test whose p-values are uniform where the hypothesis is true."""
    test = TestOfTests(test=lambda rows: 1.0, dimension=1, parts=50, rejects_at=0.2, epsilon=1.0)
    rng = np.random.default_rng(2)
    jumps = rng.geometric(1 - np.exp(-1.0), (2, 300))
    noisy = rng.binomial(50, 0.2, 300) + jumps[0] - jumps[1] + rng.random(300) - 0.5
    rejected = np.mean([test.answer(float(z)).p_value <= 0.05 for z in noisy])
    assert rejected <= binom.isf(FALSE_ALARM, 300, 0.05) / 300
