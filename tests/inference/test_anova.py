"""Analysis of variance, beside statsmodels'."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.oneway import anova_oneway

from discreet.inference import Anova, anova

RNG = np.random.default_rng(8)
GROUPS = [RNG.normal(mean, deviation, 90) for mean, deviation in ((5.0, 1.0), (5.2, 1.5), (5.4, 1.2))]


def test_without_noise_it_is_welch_s_analysis():
    theirs = anova_oneway(GROUPS, use_var="unequal")
    mine = anova(*GROUPS, bounds=(0, 10), epsilon=1e6, rng=1)
    assert mine.p_value == pytest.approx(theirs.pvalue, abs=0.02)
    means = np.array([group.mean() for group in GROUPS])
    within = np.mean([group.var(ddof=1) / len(group) for group in GROUPS])
    assert mine.effect == pytest.approx(np.sqrt(max(0.0, means.var() - within)), abs=0.02)


def test_groups_that_differ_are_seen_and_equal_ones_are_not():
    apart = [group + shift for group, shift in zip(GROUPS * 5, np.linspace(0, 2, 15), strict=True)]
    assert anova(*apart, bounds=(0, 10), epsilon=1.0, rng=1).p_value < 0.001
    same = RNG.normal(5, 1, (3, 300))
    assert anova(*same, bounds=(0, 10), epsilon=1.0, rng=1).p_value > 0.01


@pytest.mark.parametrize(
    ("options", "said"), [({"groups": (1,)}, "two groups"), ({"groups": (1, 2), "alternative": "less"}, "alternative")]
)
def test_public_mistakes_are_named(options, said):
    with pytest.raises(ValueError, match=said):
        Anova(bounds=(0, 1), epsilon=1.0, **options)


def test_a_list_of_samples_is_refused_with_the_way_to_give_them():
    with pytest.raises(ValueError, match=r"one by one: anova\(a, b, bounds=...\)"):
        anova([[1.0, 2.0], [2.0, 3.0]], bounds=(0, 5), epsilon=1.0)
