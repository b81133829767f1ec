"""Tests hold their level, and the check sees one that forgets the noise.

The whole table is made by ``python -m experiments.inference_levels``; here is one design for each test. One whose level
is 5 % rejects more than LIMIT of RUNS true hypotheses with probability below FALSE_ALARM; seeds are fixed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import binom

from discreet.inference import MannWhitney, OneSample, TestOfTests, TwoProportions, Welch
from discreet.inference.mean_tests import NO_INTERVAL
from experiments.inference_levels import SHAPES, STUDIES, exact_level, level, triples

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


@pytest.mark.parametrize("name", STUDIES)
def test_a_test_that_forgets_the_noise_is_seen(name):
    """One that takes totals with the noise of ε = 0.1 for those of ε = 20 rejects 16 to 100 %; the test itself 5 %."""
    shape, study, runs = SHAPES["normal"], STUDIES[name], RUNS // 2
    test, rng = study.make(0.1, shape), np.random.default_rng(1)
    noisy = test.expose(study.totals(test, shape, runs, rng), rng)
    limit = binom.isf(FALSE_ALARM, runs, 0.05) / runs
    assert (test.infer(noisy).p_value <= 0.05).mean() <= limit
    assert (replace(test, epsilon=20.0).infer(noisy).p_value <= 0.05).mean() > limit


def test_the_test_of_tests_holds_its_level():
    """A public test whose p-values are uniform where the hypothesis is true."""
    test = TestOfTests(test=lambda rows: 1.0, dimension=1, parts=50, rejects_at=0.2, epsilon=1.0)
    rng = np.random.default_rng(2)
    jumps = rng.geometric(1 - np.exp(-1.0), (2, 300))
    noisy = rng.binomial(50, 0.2, 300) + jumps[0] - jumps[1] + rng.random(300) - 0.5
    rejected = np.mean([test.answer(float(z)).p_value <= 0.05 for z in noisy])
    assert rejected <= binom.isf(FALSE_ALARM, 300, 0.05) / 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Confident(Welch):
    """Takes a variance that its noise hides for what it seems to be."""

    def moments(self, noisy, centre=None):
        moments = Welch.moments(self, noisy, centre)
        c = np.clip(moments.mean if centre is None else centre, 0.0, 1.0)
        squares = noisy[..., 0] * c**2 + noisy[..., 1] * (c**2 - c) + noisy[..., 2] * (1 - c) ** 2
        variance = np.maximum(squares, 0.0) / np.maximum(moments.size - (centre is None), 1.0)
        error = moments.error + (variance - moments.variance) / moments.size
        return moments._replace(variance=variance, error=error)


def narrow(rng, runs):
    """Two groups whose records lie as close together, beside their bounds, as the noise on their variance at ε = 10."""
    values = np.clip(0.5 + 0.006 * rng.standard_normal((runs, 2, 400)), 0, 1)
    return np.stack([((1 - values) ** 2).sum(-1), (2 * values * (1 - values)).sum(-1), (values**2).sum(-1)], axis=-1)


@pytest.mark.parametrize(("kind", "holds"), [(Welch, True), (Confident, False)])
def test_a_variance_that_noise_hides_is_not_taken_for_nothing(kind, holds):
    """It was: a true hypothesis was rejected in 9 % at a level of 5 %, and that is seen."""
    test, rng = kind(bounds=(0, 1), epsilon=10.0, simulations=19), np.random.default_rng(3)
    p_values = test.infer(test.expose(narrow(rng, 2 * RUNS), rng)).p_value
    limit = binom.isf(FALSE_ALARM if holds else 1e-3, 2 * RUNS, 0.05) / (2 * RUNS)
    assert ((p_values <= 0.05).mean() <= limit) == holds


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_a_one_sided_test_of_ranks_holds_its_level_where_sizes_are_noisy(alternative):
    """A group of 30 beside one of 240, all in one bin: the side on which the size looks too small was 7 %."""
    test = MannWhitney(bins=tuple(range(9)), epsilon=1.0, alternative=alternative, simulations=19)
    rng, runs = np.random.default_rng(4), 4_000
    exact = np.zeros((runs, 2, 8))
    exact[:, 0, 0], exact[:, 1, 0] = 30, 240
    rejected = (test.infer(test.expose(exact, rng)).p_value <= 0.05).mean()
    assert rejected <= binom.isf(FALSE_ALARM, runs, 0.05) / runs


def test_an_interval_holds_where_a_cell_happens_to_be_empty():
    """Groups of 5 and of 40, of which half are 1: 88 % of intervals held without a record more in each group."""
    test, rng, runs = TwoProportions(epsilon=10.0, simulations=199), np.random.default_rng(5), 1_000
    ones = rng.binomial([5, 40], 0.5, (runs, 2))
    exact = np.stack([np.array([5, 40]) - ones, ones], axis=-1).astype(float)
    outcome = test.infer(test.expose(exact, rng))
    held = ((outcome.low <= 0) & (outcome.high >= 0)).mean()
    assert held >= 1 - binom.isf(FALSE_ALARM, runs, 0.05) / runs


@pytest.mark.parametrize(("sizes", "share"), [((30, 1000), 0.1), ((12, 5000), 0.3)])
def test_an_interval_holds_what_its_test_does_not_refute(sizes, share):
    """Groups of very different sizes: 92 % of intervals held the truth, although no more than 5 % of tests rejected."""
    test, rng, runs = TwoProportions(epsilon=10.0, simulations=99), np.random.default_rng(6), 1_000
    ones = rng.binomial(sizes, share, (runs, 2))
    exact = np.stack([np.array(sizes) - ones, ones], axis=-1).astype(float)
    outcome = test.infer(test.expose(exact, rng))
    holds = (outcome.low <= 0) & (outcome.high >= 0)
    assert holds[outcome.p_value > 0.05].all()
    assert holds.mean() >= 1 - binom.isf(1e-3, runs, 0.05) / runs


def rare(rng, size):
    """Nine in ten are at a bound, the others anywhere up to it."""
    return np.where(rng.random(size) < 0.1, np.clip(rng.gamma(2, 0.15, size), 0, 1), 0.0)


@pytest.mark.parametrize("n", [30, 100])
def test_of_records_that_are_nearly_all_at_a_bound_nothing_is_said(n):
    """18 % of true hypotheses were rejected at ε = 100, of 30 records; 9 % of 100: of the mean few records decide."""
    shape = SHAPES["normal"]._replace(draw=rare, n=n)
    test = STUDIES["OneSample"].make(100.0, shape)
    rejected, _, refused = level(test, STUDIES["OneSample"], shape, 2 * RUNS)
    assert rejected <= binom.isf(FALSE_ALARM, 2 * RUNS, 0.05) / (2 * RUNS)
    assert refused > 0.9


def test_a_great_many_records_at_a_bound_refute_a_mean_far_from_it():
    """All at the bound says nothing of a mean that 5 records could have, and everything of one that 500 would need."""
    few, many = (OneSample(bounds=(0, 1), null=null, epsilon=100.0, simulations=199) for null in (0.01, 0.5))
    assert few.release([0.0] * 500, rng=1).p_value == 1
    assert many.release([0.0] * 25, rng=1).p_value < 0.01
    answer = many.release([0.0] * 1_000, rng=1)
    assert answer.p_value < 0.01
    assert answer.interval == (-np.inf, np.inf)  # it may be of 3 records that happened not to be drawn
    assert answer.note == NO_INTERVAL


def test_an_interval_of_records_that_are_nearly_all_at_a_bound_is_open():
    """Beside a null hypothesis far away, which they do refute, intervals held the truth in 90 %."""
    rng, runs = np.random.default_rng(8), 2 * RUNS
    test = OneSample(bounds=(0, 1), null=0.5, epsilon=100.0, simulations=19)
    outcome = test.infer(test.expose(triples(rare(rng, (runs, 1, 100))), rng))
    assert (outcome.p_value < 0.1).all()
    held = (outcome.low <= 0.03) & (outcome.high >= 0.03)
    assert held.mean() >= 1 - binom.isf(FALSE_ALARM, runs, 0.05) / runs
    assert np.isinf(outcome.high).mean() > 0.9


@pytest.mark.parametrize("shape", ["normal", "skewed"])
def test_a_test_of_a_public_number_of_records_holds_its_level(shape):
    shape = SHAPES[shape]
    test = replace(STUDIES["OneSample"].make(0.3, shape), adjacency="replace", n=shape.n)
    rejected, held, _ = level(test, STUDIES["OneSample of n"], shape, 2 * RUNS)
    limit = binom.isf(FALSE_ALARM, 2 * RUNS, 0.05) / (2 * RUNS)
    assert rejected <= limit
    assert held >= 1 - limit
