"""Groups whose names are private: shown if they are large, hidden if they are one unit's, at the stated delta."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import polars as pl
import pytest

import discreet as dp
from discreet.mechanisms.thresholds import noise_tail
from discreet.tables.keys import KeySelection


@pytest.mark.parametrize(("rows", "groups"), [(1, 1), (2, 1), (2, 2), (5, 3), (6, 6)])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (5.0, 0.05)])
def test_the_threshold_is_the_least_that_hides_a_lone_unit(rows, groups, epsilon, delta):
    """Every way to divide a unit's rows among its groups is shown with probability at most delta;
    one less is too low.
    """
    selection = KeySelection(epsilon, delta, rows, groups)

    def shown(threshold):
        sizes = range(1, rows + 1)
        divisions = [d for j in range(1, groups + 1) for d in combinations_with_replacement(sizes, j) if sum(d) <= rows]
        return max(sum(noise_tail(selection.scale, threshold - count) for count in d) for d in divisions)

    assert shown(selection.threshold) <= delta
    assert selection.threshold == rows or shown(selection.threshold - 1) > delta * (1 - 1e-9)


def test_what_was_asked_is_not_exceeded():
    """The event is inside the request, by the basic account."""
    event = KeySelection(0.5, 1e-6, 3, 2).event
    assert event.epsilon <= 0.5
    assert event.delta <= 1e-6


def answer(frame, **options):
    table = dp.table(frame, schema=dp.Schema(name=dp.Unlisted(), x=dp.Bounded(0, 10)), **options)
    return table.group_by("name").count().mean("x").release(epsilon=4.0, delta=1e-8, rng=2)


def test_large_groups_are_shown_and_small_ones_are_not():
    """Counts come from the selection itself; names are sorted; NULL is nobody's name."""
    frame = pl.DataFrame(
        {"name": ["b"] * 500 + ["a"] * 400 + ["lone", "pair", "pair"] + [None] * 300, "x": [5.0] * 1203}
    )
    found = answer(frame)
    assert found.value["name"].to_list() == ["a", "b"]
    assert found.value["count"].to_list() == pytest.approx([400, 500], abs=15)
    assert found.value["x_mean"].to_list() == pytest.approx([5.0, 5.0], abs=0.5)
    assert dp.epsilon(found.event, delta=1e-8, accountant="basic") <= 4.0


def test_one_unit_with_many_rows_does_not_show_its_group():
    """Bounded contributions come before the threshold."""
    frame = pl.DataFrame(
        {
            "name": ["mine"] * 5000 + ["ours"] * 500,
            "x": [1.0] * 5500,
            "who": np.r_[np.zeros(5000), np.arange(1, 501)].astype(int),
        }
    )
    assert answer(frame, unit="who").value["name"].to_list() == ["ours"]
    assert answer(frame, unit="who", max_rows_per_unit=5, max_groups_per_unit=1).value["name"].to_list() == ["ours"]


def test_a_public_key_beside_a_private_one_makes_the_pair_private():
    """Only combinations that are large appear."""
    frame = pl.DataFrame({"name": ["a"] * 600 + ["b"] * 300, "k": [1] * 300 + [2] * 300 + [1] * 299 + [9]})
    table = dp.table(frame, schema=dp.Schema(name=dp.Unlisted(), k=dp.Categories([1, 2])))
    found = table.group_by("k", "name").count().release(epsilon=2.0, delta=1e-6, rng=1).value
    assert found.select("k", "name").rows() == [(1, "a"), (1, "b"), (2, "a")]


@pytest.mark.parametrize("delta", [1e-40, 1e-60, 1e-300])
def test_a_tiny_delta_has_a_threshold(delta):
    """Tails were bounded by 10^-40 at best, so that the search for a smaller one never came to an end."""
    found = KeySelection(epsilon=1.0, delta=delta)
    assert found.threshold == math.ceil(-math.log(delta * (1 + math.exp(-1.0))))
    with pytest.raises(ValueError, match="delta"):
        KeySelection(epsilon=1.0, delta=1e-301)
