"""Several tests: adjusted p-values beside statsmodels', levels that add up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from statsmodels.stats.multitest import multipletests

from discreet.inference import AlphaSpending, adjust


@pytest.mark.parametrize(("mine", "theirs"), [("holm", "holm"), ("benjamini-hochberg", "fdr_bh")])
def test_adjusted_p_values_are_statsmodels(mine, theirs):
    p = np.random.default_rng(1).random(30) ** 3
    np.testing.assert_allclose(adjust(p, mine), multipletests(p, method=theirs)[1])


@pytest.mark.parametrize("law", ["even", "pocock", "obrien-fleming"])
def test_the_levels_of_all_looks_add_up_to_alpha(law):
    plan = AlphaSpending(alpha=0.05, looks=5, law=law)
    levels = [plan.level(k) for k in range(1, 6)]
    assert sum(levels) == pytest.approx(0.05)
    assert min(levels) > 0


def test_late_spending_is_that_of_o_brien_and_fleming():
    plan = AlphaSpending(alpha=0.05, looks=2, law="obrien-fleming")
    assert plan.level(1) == pytest.approx(2 * norm.sf(norm.isf(0.025) / np.sqrt(0.5)))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: adjust([0.1, 1.5]), "p_values"),
        (lambda: adjust([0.1], "bonferroni"), "method"),
        (lambda: AlphaSpending(looks=3, law="late"), "law"),
        (lambda: AlphaSpending(looks=3).level(4), "look"),
    ],
)
def test_public_mistakes_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()
