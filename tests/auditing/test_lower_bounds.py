"""Empirical lower bounds: correct coverage, and refusals."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.auditing import clopper_pearson, epsilon_lower_bound, mu_lower_bound


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (10, 10), (3, 10), (500, 100_000)])
def test_clopper_pearson_inverts_the_binomial(hits, trials):
    low, high = clopper_pearson(hits, trials, alarm=1e-3)
    assert low == 0 or stats.binom.sf(hits - 1, trials, low) == pytest.approx(1e-3, rel=1e-6)
    assert high == 1 or stats.binom.cdf(hits, trials, high) == pytest.approx(1e-3, rel=1e-6)


def test_bounds_hold_at_their_confidence_and_are_near_the_truth():
    rng, above = np.random.default_rng(0), 0
    for _ in range(300):
        hits = tuple(int(rng.binomial(10_000, p)) for p in (0.5, 0.5 / math.e))
        lower = epsilon_lower_bound(hits, 10_000, alarm=0.05)
        above += lower > 1.0
        assert lower > 0.8
    assert above <= 30  # 5 % of 300, with a false alarm below 1e-4


def test_nothing_is_claimed_from_nothing():
    assert epsilon_lower_bound((0, 0), 1000) == 0.0
    assert epsilon_lower_bound((1000, 1000), 1000) == 0.0
    assert epsilon_lower_bound((10, 0), 1000, delta=0.5) == 0.0
    assert mu_lower_bound((500, 500), 1000) == 0.0


def test_a_complement_or_the_other_direction_is_as_good():
    values = {round(epsilon_lower_bound(hits, 1000), 9) for hits in ((900, 500), (500, 900), (100, 500), (500, 100))}
    assert len(values) == 1


def test_bad_counts_are_named():
    with pytest.raises(ValueError, match="hits is 11"):
        clopper_pearson(11, 10, alarm=0.1)
    with pytest.raises(ValueError, match="alarm"):
        clopper_pearson(1, 10, alarm=0.0)
