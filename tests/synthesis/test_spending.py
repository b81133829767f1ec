"""Sensitivities against neighbouring tables, and the filter."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from discreet.accounting import epsilon
from discreet.adjacency import Adjacency
from discreet.errors import BudgetExceeded
from discreet.mechanisms.budget import Budget
from discreet.random import Streams
from discreet.random.tap import listening
from discreet.synthesis.counting import (
    closure,
    counts,
    difference_square,
    project_residual,
    reconstruct_counts,
    share_of_cells,
    whole_residual,
)
from discreet.synthesis.evidence import Evidence
from discreet.synthesis.spending import Spending, error_of

SIZES = (2, 3, 4)
RNG = np.random.default_rng(0)
CODES = np.array([RNG.integers(0, d, 40) for d in SIZES], np.int32)


class Steps:
    """Hears what is about to be noised."""

    def __init__(self):
        self.seen = []

    def draw_output(self, what, value, norm, limit, draw, event, once):
        self.seen.append((np.array(value, float), float(limit), norm, what.event))
        return draw()

    def coins(self, keys):
        raise AssertionError

    def elsewhere(self):
        raise AssertionError


def cell(columns, record):
    return whole_residual(counts(np.array(record, np.int32)[:, None], columns, SIZES)).astype(float)


@pytest.mark.parametrize("columns", [(0,), (2,), (0, 1), (1, 2), (0, 1, 2)], ids=str)
def test_a_record_moves_a_residual_by_exactly_the_stated_sensitivity(columns):
    records = list(product(*map(range, SIZES)))
    added, exchanged = difference_square(tuple(SIZES[i] for i in columns))
    tables = [cell(columns, record) for record in records]
    assert max(float((t**2).sum()) for t in tables) == added
    assert max(float(((s - t) ** 2).sum()) for s in tables for t in tables) == exchanged


def test_the_total_moves_by_one_also_where_an_exchanged_record_stops_counting():
    assert difference_square(()) == (1, 1)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_errors_of_k_candidates_move_by_the_root_of_k_and_no_more(adjacency):
    sets = closure([(0, 1, 2)])[1:]
    models = {c: RNG.uniform(0, 5, tuple(SIZES[i] for i in c)) for c in sets}

    def errors(codes):
        return np.array([error_of(codes, c, SIZES, models[c]) for c in sets])

    heard = Steps()
    with listening(heard):
        Spending(1.0, Adjacency(adjacency), Streams(1)).errors(errors(CODES), 0.5)
    (_, limit, norm, _), here = heard.seen[0], errors(CODES)
    moved = []
    for record in product(*map(range, SIZES)):
        one = np.array(record, np.int32)[:, None]
        other = np.concatenate([CODES if adjacency == "add-remove" else CODES[:, 1:], one], axis=1)
        moved.append(float(np.linalg.norm(errors(other) - here)))
    assert norm == "l2"
    assert 1.0 < max(moved) <= limit <= (1 if adjacency == "add-remove" else 2) * math.sqrt(len(sets)) * (1 + 1e-9)


def test_errors_are_exact_multiples_of_a_step():
    model = RNG.uniform(0, 1e6, (3, 4))
    found = error_of(CODES, (1, 2), SIZES, model)
    assert found * 1024 == round(found * 1024)


def test_a_measurement_beyond_the_budget_is_refused_and_draws_nothing():
    heard = Steps()
    spending = Spending(1.0, Adjacency.ADD_REMOVE, Streams(1))
    with listening(heard):
        spending.residual(CODES, (0,), SIZES, 0.75)
        with pytest.raises(BudgetExceeded, match="bug"):
            spending.residual(CODES, (1,), SIZES, 0.2501)
        with pytest.raises(BudgetExceeded):
            spending.residual(CODES, (1,), SIZES, 0.0)
    assert len(heard.seen) == 1


def test_what_is_drawn_costs_together_what_was_budgeted():
    budget, heard = Budget(epsilon=1.0, delta=1e-9), Steps()
    rho = 1 / (2 * budget.noise_multiplier**2)
    spending = Spending(rho, Adjacency.ADD_REMOVE, Streams(1))
    with listening(heard):
        for columns in closure([(0, 1, 2)]):
            spending.residual(CODES, columns, SIZES, rho / 8)
    every = sum((event for *_, event in heard.seen[1:]), start=heard.seen[0][3])
    assert 0.999 < epsilon(every, delta=1e-9) <= 1.0


def test_residuals_of_all_subsets_give_the_counts_back():
    every = {c: project_residual(whole_residual(counts(CODES, c, SIZES)).astype(float)) for c in closure([(0, 1, 2)])}
    np.testing.assert_allclose(reconstruct_counts((0, 1, 2), SIZES, every), counts(CODES, (0, 1, 2), SIZES), atol=1e-9)


def test_a_cell_has_the_variance_that_is_stated():
    """400 tables of 24 cells; the mean square is within 10 %, a false alarm below 1e-9; 0.8 of it is rejected."""
    spending, squares = Spending(1e9, Adjacency.ADD_REMOVE, Streams(5)), []
    exact = counts(CODES, (0, 1, 2), SIZES)
    for _ in range(400):
        evidence = Evidence(SIZES)
        evidence.measure(CODES, {c: 0.01 * (1 + len(c)) for c in closure([(0, 1, 2)])}, spending)
        target = evidence.targets()[-1]
        squares.append(((target.counts - exact) ** 2).mean())
    assert target.columns == (0, 1, 2)
    assert np.mean(squares) == pytest.approx(target.variance, rel=0.1)
    assert np.mean(squares) != pytest.approx(0.8 * target.variance, rel=0.1)


def test_two_measurements_are_worth_the_sum_of_their_precisions():
    spending, evidence = Spending(10.0, Adjacency.ADD_REMOVE, Streams(1)), Evidence(SIZES, total=40)
    evidence.measure(CODES, {(0,): 1.0}, spending)
    once = evidence.precisions[(0,)]
    evidence.measure(CODES, {(0,): 1.0}, spending)
    assert evidence.precisions[(0,)] == pytest.approx(2 * once)
    assert once == pytest.approx(2.0 / float(share_of_cells((2,))))
