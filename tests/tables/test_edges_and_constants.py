"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet.tables import bounding, col
from discreet.tables.bounding import Field
from tests.frozen import unfrozen

FRAME = pd.DataFrame(
    {
        "a": [0.0, 2.5, 5.0, 7.5, 10.0, None],
        "c": [1.0, 1.5, 2.0, 3.0, 9.0, None],
        "n": [1, 2, 2, 3, 9, 3],
        "t": ["x", "y", "y", "z", "w", None],
        "who": [1, 1, 1, 2, 2, 3],
    }
)
SCHEMA = dp.Schema(
    a=dp.Bounded(0, 10),
    c=dp.Categories([1, 2, 3]),
    n=dp.Categories([1, 2, 3]),
    t=dp.Categories(["x", "y", "z"]),
)


@cache  # not when the file is imported: what forks afterwards would wait for DuckDB's threads for ever
def everybody():
    return dp.table(FRAME, schema=SCHEMA)


def answers(query, column):
    return query.release(epsilon=200.0, rng=1).value[column].tolist()


def test_nothing_that_was_stated_can_be_changed_afterwards():
    # what a scan adds up; what reads a SELECT, and is gone before there is a question
    assert unfrozen("tables") == {"Stats", "Measures", "Select"}


def test_groups_are_the_declared_ones_of_numbers_and_texts_and_nothing_between():
    assert answers(everybody().group_by("c").count(), "count") == [1, 1, 1]  # 1.5 is no category
    assert answers(everybody().group_by("n").count(), "count") == [1, 2, 2]
    assert answers(everybody().group_by("t").count(), "count") == [1, 2, 1]
    assert answers(everybody().group_by("n").count("a"), "a_count") == [1, 2, 1]  # one of two has a value


def test_bounding_units_of_one_row_changes_no_group():
    units = dp.table(FRAME.assign(who=range(6)), schema=SCHEMA, unit="who", max_rows_per_unit=2)
    assert answers(units.group_by("n").count(), "count") == [1, 2, 2]
    assert answers(units.group_by("n", "t").count(), "count") == [1, 0, 0, 0, 2, 0, 0, 0, 1]


@pytest.mark.parametrize("edges", [[2, 4, 6, 8], [2, 4, 7, 8], [0, 3, 5], [4, 6], [1, 2.5]], ids=str)
def test_what_is_below_the_first_edge_or_above_the_last_lies_in_no_bin(edges):
    """As in NumPy and in ``statistics.histogram``: it was counted in the bins at the ends."""
    assert (
        answers(everybody().histogram("a", edges), "a_histogram")[0]
        == np.histogram(FRAME.a.dropna(), edges)[0].tolist()
    )
    assert sum(answers(everybody().histogram("a", 2), "a_histogram")[0]) == 5


@pytest.mark.parametrize(("rows", "groups", "kept"), [(1, None, 3), (2, 1, 5), (2, 2, 5), (3, 1, 5), (9, 9, 6)])
def test_a_unit_keeps_so_many_rows_of_so_many_groups(rows, groups, kept):
    table = dp.table(FRAME, schema=SCHEMA, unit="who", max_rows_per_unit=rows, max_groups_per_unit=groups)
    assert answers(table.count(), "count") == [{1: 3, 2: 5}.get(rows, 6)]
    by_group = answers(table.group_by("n").count(), "count")
    assert sum(by_group) <= kept
    assert groups != 1 or 0 in by_group[:2]  # the first unit has rows in both


def test_sums_are_exact_beyond_the_whole_numbers_of_doubles():
    huge = dp.table(pd.DataFrame({"a": [2.0**60, 1.0]}), schema=dp.Schema(a=dp.Bounded(0, 2.0**60)))
    assert answers(huge.sum("a"), "a_sum")[0] == pytest.approx(2.0**60, rel=1e-2)


def test_a_field_has_bits_for_its_values_and_one_more_for_none():
    assert [Field("f", size=8, nullable=nullable).bits for nullable in (False, True)] == [3, 4]
    assert [Field("f", size=1, nullable=nullable).bits for nullable in (False, True)] == [0, 1]
    assert Field("f").bits > 63


def test_the_stated_error_of_a_histogram_is_that_of_one_count():
    query = everybody().histogram("a", 4)
    stated = query.explain(epsilon=0.5).errors["a_histogram"]
    assert stated == f"±{dp.mechanisms.DiscreteLaplace(epsilon=0.5).error(0.95):.4g} in each of 4 bins"


def test_different_values_are_counted_of_categories_and_not_of_numbers():
    assert answers(everybody().count_distinct("t"), "t_distinct") == [3]
    with pytest.raises(ValueError, match="needs Categories or Unlisted"):
        everybody().count_distinct("a").operation(epsilon=1.0)


def test_medians_and_variances_are_near_what_they_are_of():
    assert answers(everybody().median("a", bins=4), "a_median") == [pytest.approx(5.0, abs=1.3)]
    assert answers(everybody().variance("a"), "a_variance") == [pytest.approx(12.5, abs=2)]
    assert "half a bin of 2.5" in everybody().median("a", bins=4).explain(epsilon=1.0).errors["a_median"]


def test_what_is_not_declared_is_gathered_under_its_own_name():
    schema = dp.Schema(n=dp.Categories([1, 2], other=0), t=dp.Categories(["x", "y"], other="rest"))
    table = dp.table(FRAME[["n", "t"]], schema=schema)
    assert sorted(answers(table.group_by("n").count(), "count")) == [1, 2, 3]
    assert sorted(answers(table.group_by("t").count(), "count")) == [1, 2, 3]


@pytest.mark.parametrize(("rows", "epsilon"), [(1, 2.0), (2, 1.0)])
def test_a_choice_by_one_row_is_of_bounded_range_and_by_two_is_not(rows, epsilon):
    """A range of ε costs ε²/8, a pure ε costs ε²/2."""
    table = dp.table(FRAME, schema=SCHEMA, unit="who", max_rows_per_unit=rows)
    event = table.median("a", bins=4).operation(rho=0.5).event
    assert event.epsilon == pytest.approx(epsilon, rel=1e-4)


@pytest.mark.parametrize(("rows", "epsilon"), [(1, 2.0), (2, 1.0)])
def test_several_choices_by_one_row_are_of_bounded_range_and_by_two_are_not(rows, epsilon):
    """Three quantiles are two choices, each of half of the price: as above."""
    table = dp.table(FRAME, schema=SCHEMA, unit="who", max_rows_per_unit=rows)
    event = table.quantiles("a", (0.25, 0.5, 0.75), bins=4).operation(rho=1.0).event
    assert event.count == 2
    assert event.event.epsilon == pytest.approx(epsilon, rel=1e-4)


def test_a_date_before_the_first_or_after_the_last_is_missing():
    days = pd.to_datetime(["2019-12-31", "2020-01-01", "2020-12-31", "2021-01-01"])
    table = dp.table(pd.DataFrame({"day": days}), schema=dp.Schema(day=dp.Dates("2020-01-01", "2020-12-31")))
    assert answers(table.filter(~col("day").is_missing()).count(), "count") == [2]


def test_a_choice_is_made_with_an_epsilon_of_2_to_the_minus_30_at_least():
    with pytest.raises(ValueError, match="A median or quantile takes at least epsilon = "):
        everybody().median("a", bins=4).operation(epsilon=2.0**-31)


def test_the_hash_of_a_narrow_row_has_31_bits(monkeypatch):
    """Fewer would tie rows of a unit, and a tie is not broken at random."""
    rooms, hashed = [], bounding._with_hash
    monkeypatch.setattr(bounding, "_with_hash", lambda *of, room=31: rooms.append(room) or hashed(*of, room=room))
    units = dp.table(FRAME, schema=SCHEMA, unit="who", max_rows_per_unit=1)
    assert len(answers(units.group_by("n").count(), "count")) == 3
    assert rooms == [31]


def test_identifiers_that_are_doubles_count_by_their_whole_part_below_2_to_the_52():
    assert bounding._floor("d", "v") == f"CAST(CASE WHEN abs(d) < {2**52} THEN floor(v) END AS BIGINT)"
