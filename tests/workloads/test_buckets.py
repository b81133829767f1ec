"""Buckets as wide as suits the data: what one record moves is what is paid for, and it pays where records are few."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import epsilon
from discreet.random import seeded
from discreet.workloads import Adaptive, AllRanges, Identity, Prefix, Product, adaptive, answer

CELLS = 300  # no multiple of a width
KINDS = [Prefix, AllRanges, Identity]
OPERATIONS = {kind: Adaptive(workload=kind(CELLS), epsilon=50.0) for kind in KINDS}  # hardly any noise to hide behind


@settings(max_examples=60)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32),
    cell=st.integers(0, CELLS - 1),
    largest=st.sampled_from([0, 1, 3, 10**6, 2**60]),
)
def test_no_record_moves_a_score_by_more_than_the_sensitivity(kind, seed, cell, largest):
    """Of any width, in histograms of any size, wherever the record is."""
    operation = OPERATIONS[kind]
    x = np.random.default_rng(seed).integers(0, largest + 1, CELLS)
    y = x.copy()
    y[cell] += 1
    for place in range(len(operation.widths)):
        assert abs(operation.score(x, place) - operation.score(y, place)) <= operation.reach(place)
    moved = [
        abs(one - other)
        for one, other in zip(operation.scores_of_widths(x), operation.scores_of_widths(y), strict=True)
    ]
    assert max(moved) <= operation.choice.sensitivity


@pytest.mark.parametrize("kind", KINDS)
def test_some_record_moves_it_by_nearly_as_much(kind):
    """One more record in the last cell of a bucket that has many there already: the sensitivity is no overestimate."""
    operation = OPERATIONS[kind]
    widest = operation.widths[-1]
    x = np.zeros(CELLS, int)
    x[widest - 1] = 10**6
    y = x.copy()
    y[widest - 1] += 1
    moved = operation.score(y, -1) - operation.score(x, -1)
    assert moved >= 0.99 * operation.reach(-1)
    assert operation.scores_of_widths(x)[-1] - operation.scores_of_widths(y)[-1] >= 0.99 * operation.choice.sensitivity


@pytest.mark.parametrize("kind", KINDS)
def test_few_records_are_looked_at_coarsely_and_spikes_finely(kind):
    """A flat histogram takes the widest buckets; the bias of one with tall single cells leaves no width but one."""
    operation = Adaptive(workload=kind(256), epsilon=1.0)
    flat, tall = np.full(256, 2), np.zeros(256, int)
    tall[5::7] = 10_000
    scores = lambda x: [operation.score(x, place) for place in range(len(operation.widths))]  # noqa: E731
    assert np.argmin(scores(flat)) == len(operation.widths) - 1
    assert np.argmin(scores(tall)) == 0


def test_it_is_better_than_the_optimised_strategy_where_records_are_few():
    """500 records over 512 cells at ε = 0.1: the mean squared error of cells falls, summed over four runs each.

    With 60 other seeds it fell by factors between 1.3 and 27: a fault is not alarmed by chance, nor one overlooked that
    leaves the width at one, where the error is 1.3 times as large.
    """
    w, rng = Identity(512), seeded(3)
    x = np.random.default_rng(3).multinomial(500, np.full(512, 1 / 512))

    def wrong(release):
        return float(np.mean((release.value.estimate - x) ** 2))

    plain = sum(wrong(answer(w, x, epsilon=0.1, nonnegative=True, rng=rng)) for _ in range(4))
    assert sum(wrong(adaptive(w, x, epsilon=0.1, rng=rng)) for _ in range(4)) < plain


def test_answers_cover_every_cell_and_are_not_negative():
    """Also where the last bucket is short, and where there is one cell only."""
    for n in (1, 5, 65, 129, 200):
        found = adaptive(Identity(n), np.arange(n), epsilon=1.0, rng=n).value.estimate
        assert found.shape == (n,)
        assert found.min() >= 0


def test_parts_of_the_budget_add_up_to_it():
    """The choice, and whichever width is measured, cost no more than what is stated, and hardly less."""
    for kind in KINDS:
        operation = Adaptive(workload=kind(1024 if kind is Identity else 256), epsilon=0.1)
        assert operation.widths == ((1, 4, 16) if kind is Identity else (1, 4))
        for query in operation.queries:
            spent = epsilon(operation.choice.event + query.event, delta=0)
            assert 0.1 * (1 - 1e-9) <= spent <= epsilon(operation.event, delta=0) == 0.1


def test_other_workloads_are_refused():
    for workload in (Product((Prefix(4), Prefix(4))), Identity((3, 4))):
        with pytest.raises(ValueError, match="cells in a row"):
            Adaptive(workload=workload, epsilon=1.0)
    with pytest.raises(ValueError, match="epsilon"):
        Adaptive(workload=Prefix(4), epsilon=0.0)
