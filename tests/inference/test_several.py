"""Several tests: adjusted p-values beside statsmodels', levels that add up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from statsmodels.stats.multitest import multipletests

import discreet as dp
from discreet import inference
from discreet.inference import AlphaSpending, OneSample, adjust


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


def test_tests_by_name_are_adjusted_by_name():
    answers = {
        "stay": inference.welch([9.0, 8.0] * 300, [7.0, 6.0] * 300, bounds=(0, 30), epsilon=1.0, rng=1),
        "cost": inference.welch([9.0, 8.0] * 300, [9.0, 8.0] * 300, bounds=(0, 30), epsilon=1.0, rng=2),
    }
    adjusted = adjust(answers)
    assert list(adjusted) == ["stay", "cost"]
    assert adjusted["stay"] == 2 * answers["stay"].p_value


def test_looks_share_a_level_on_a_book_that_counts_them(tmp_path):
    """A look is taken once, also by a second process; a refused one spends no level; after the last there is none."""
    plan, test = AlphaSpending(looks=2, law="obrien-fleming"), OneSample(bounds=(0, 1), null=0.5, epsilon=0.4)
    address = f"sqlite:///{tmp_path / 'budget.db'}"
    book = dp.Ledger(address).open("trial", epsilon=1.0)
    first = plan.look(test, [0.9] * 400, book=book, question="efficacy", rng=1)
    assert (first.number, first.level, first.rejects) == (1, plan.level(1), True)
    again = dp.Ledger(address).open("trial", epsilon=1.0)
    with pytest.raises(dp.BudgetExceeded):
        plan.look(OneSample(bounds=(0, 1), epsilon=0.9), [0.9], book=again, question="efficacy", rng=1)
    second = plan.look(test, [0.5] * 400, book=again, question="efficacy", rng=1)
    assert (second.number, second.rejects) == (2, second.answer.p_value <= plan.level(2))
    with pytest.raises(ValueError, match="All 2 looks"):
        plan.look(test, [0.5] * 400, book=book, question="efficacy", rng=1)
    assert [entry.label for entry in book.entries() if entry.label] == [
        f"efficacy: look {k} of 2, level {plan.level(k):.4g}" for k in (1, 2)
    ]
    assert plan.look(OneSample(bounds=(0, 1), epsilon=0.1), [0.5], book=book, question="harm", rng=1).number == 1


def test_a_look_that_someone_else_takes_in_between_is_left_to_them():
    """The number of a look is the book's word, not what was read before."""
    plan, test = AlphaSpending(looks=2), OneSample(bounds=(0, 1), null=0.5, epsilon=0.1)
    book = dp.Ledger("sqlite://").open("trial", epsilon=1.0)
    plan.look(test, [0.5] * 300, book=book, question="efficacy", rng=1)

    class Late:
        """Sees nothing of what was charged."""

        charged_under = staticmethod(lambda key: None)
        charge = staticmethod(book.charge)

    assert plan.look(test, [0.5] * 300, book=Late(), question="efficacy", rng=1).number == 2
