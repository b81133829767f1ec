"""Formulas near their zeros against mpmath: a small part of ``python -m searches small_arguments`` and ``adding``."""

from __future__ import annotations

import random

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import discreet as dp
from discreet import Ledger
from discreet import events as ev
from discreet.accounting.outward import product
from discreet.accounting.pld.bounded_range import BoundedRange
from searches import adding, small_arguments

FORMULAS, TREES, BLOCKS = 300, 48, 6


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_formula_is_wrong_or_loose_where_its_arguments_are_small(block):
    """Each seed is one formula at one point of 300 decades."""
    seeds = range(block * FORMULAS // BLOCKS, (block + 1) * FORMULAS // BLOCKS)
    assert len({small_arguments.check(seed) for seed in seeds}) > 5


@pytest.mark.parametrize("block", range(BLOCKS))
def test_adding_never_lowers_either_bound_and_every_question_has_an_answer(block):
    """Each seed is a tree, something added to it up to 10^36 times, and some questions at the ends of floats."""
    seeds = range(block * TREES // BLOCKS, (block + 1) * TREES // BLOCKS)
    tried = sum((adding.check(seed) for seed in seeds), start=adding.check(10_000 + block))
    assert tried["law of both bounds"] > 1


def test_a_loss_below_the_rounding_of_one_is_no_zero():
    """The threshold of a replaced record was that of a loss of zero, whose event says less than the supremum."""
    small_arguments.check(9924)


MANY_SMALL = [
    (300.0, 10**13, 1e-9, 1e-6),
    (10.0, 3 * 10**13, 3e-8, 1e-5),
    (2.0, 3 * 10**13, 1e-7, 1e-5),
    (100.0, 10**9, 3e-9, 1e-3),
]


@pytest.mark.parametrize(("noise", "count", "each", "delta"), MANY_SMALL)
def test_many_small_choices_beside_a_gaussian_cost_what_the_contour_integral_says(noise, count, each, delta):
    """3e13 choices of 3e-8 once lowered a Gaussian of 0.34 to 1e-13, in both bounds."""
    alone = ev.Gaussian(noise_multiplier=noise)
    both = alone + ev.Exponential(epsilon=each) * count
    low, high = dp.epsilon_bounds(both, delta)
    assert low >= dp.epsilon_bounds(alone, delta)[0]
    assert high >= dp.epsilon(alone, delta)
    with mpmath.workdps(60):
        truth = small_arguments._delta(BoundedRange(each), each, count, mpf(noise), mpf(high))
    # the envelope's delta at the bound is the delta, or less where a curve proves more
    assert float(truth) >= delta * (1 - 1e-6)
    assert dp.epsilon(both, delta, accountant="pld") == pytest.approx(high, rel=0.1)


def test_a_book_sells_no_plan_below_what_may_be_drawn_from_it():
    alone = ev.Gaussian(noise_multiplier=10.0)
    book = Ledger("sqlite://").open("b", epsilon=1e-6, delta=1e-4)
    with pytest.raises(dp.BudgetExceeded):
        book.plan(alone + ev.Exponential(epsilon=3e-8) * (3 * 10**13), "plan", delta=1e-5)


def test_a_series_that_is_cut_by_its_argument_is_found(monkeypatch):
    """Power: the branch that dropped the quantity itself is put back, and the search tells."""

    def old(self, z):
        x = (z + 0.5) * self.epsilon
        ratio = np.where(np.abs(x) < 1e-6, 1 - x, -np.expm1(-2 * x) / np.where(x == 0, 1, 2 * x))
        value = x - self.epsilon / 2 + np.log(ratio * self.epsilon / -np.expm1(-self.epsilon))
        return value, 64 * 2.0**-53 * (1 + np.abs(value) + np.abs(z) * self.epsilon)

    monkeypatch.setattr(BoundedRange, "log_mgf", old)
    with mpmath.workdps(400), pytest.raises(small_arguments.Violation, match="bounded range"):
        all(small_arguments.transforms(random.Random(seed)) is None for seed in range(300))


@pytest.mark.parametrize("factors", [(2.1e-158, 2.1e-158, 0.5), (5e-324, 1.7), (1e-300, 1e-10, 3.0)])
def test_a_product_is_not_rounded_down_where_floats_have_few_digits(factors):
    """A rho of 2e-316 was one part in 1e8 too low; times an order of 26,000 and 10^300 repetitions, that counts."""
    with mpmath.workdps(50):
        exact = mpmath.fprod(map(mpf, factors))
        assert exact <= mpf(product(*factors)) <= exact + mpf(5e-324)
