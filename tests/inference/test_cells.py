"""Differences and ratios of released numbers hold the truth as often as their parts do."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, laplace, norm

import discreet as dp
from discreet.inference import difference, ratio

RUNS, FALSE_ALARM = 40_000, 1e-6
LOWEST = binom.ppf(FALSE_ALARM, RUNS, 0.95) / RUNS


@pytest.mark.parametrize("law", [laplace, norm])
@pytest.mark.parametrize("scales", [(1.0, 1.0), (1.0, 0.4), (1.0, 3.0), (1.0, 20.0)])
def test_intervals_cover(law, scales):
    """Two numbers with noise of different scales; half-widths of which a fifth is missing would be seen."""
    rng, truth = np.random.default_rng(2), (30.0, 100.0)
    parts = []
    for value, scale in zip(truth, scales, strict=True):
        seen = value + law(scale=scale).rvs(RUNS, random_state=rng)
        half = law(scale=scale).isf(0.025)
        parts.append((seen, seen - half, seen + half))
    (middle, low, high), (_, least, most) = difference(*parts), ratio(*parts)
    assert ((low <= -70) & (high >= -70)).mean() >= LOWEST
    assert ((least <= 0.3) & (most >= 0.3)).mean() >= LOWEST
    short = 0.8 * (high - middle)
    assert (np.abs(middle + 70) <= short).mean() < LOWEST


def test_cells_of_a_table_are_compared():
    rows = pd.DataFrame({"sex": ["f", "m"] * 2000, "ill": [0, 1, 1, 1] * 1000})
    people = dp.table(rows, schema=dp.Schema(sex=dp.Categories(["f", "m"]), ill=dp.Bounded(0, 1)))
    seen = people.group_by("sex").sum("ill").release(epsilon=0.5, rng=1, errors=True).value
    f, m = (tuple(seen.loc[k, ["ill_sum", "ill_sum_low", "ill_sum_high"]]) for k in (0, 1))
    value, low, high = difference(m, f)
    assert low <= 1000 <= high
    assert value == pytest.approx(m[0] - f[0])
    _, low, high = ratio(m, f)
    assert low <= 2 <= high


def test_a_ratio_by_what_may_be_zero_says_nothing():
    assert ratio((5.0, 4.0, 6.0), (1.0, -1.0, 3.0))[1:] == (-math.inf, math.inf)
    assert math.isnan(ratio((5.0, 4.0, 6.0), (0.0, -1.0, 1.0))[0])


def test_a_negative_first_number_mirrors_the_interval():
    value, low, high = ratio((40.0, 30.0, 44.0), (80.0, 72.0, 88.0))
    assert ratio((-40.0, -44.0, -30.0), (80.0, 72.0, 88.0)) == pytest.approx((-value, -high, -low))


@pytest.mark.parametrize("given", [(1.0, 2.0), (1.0, 2.0, 3.0)])
def test_what_is_no_interval_is_refused(given):
    with pytest.raises(ValueError, match="first"):
        difference(given, (1.0, 0.0, 2.0))
