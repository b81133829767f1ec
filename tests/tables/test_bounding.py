"""Contributions: at most so many rows and groups of a unit, chosen evenly,
whatever the order and whoever else is there.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import discreet as dp
from discreet.encoding.duckdb import DuckDB
from discreet.random import seeded
from discreet.tables import bounding
from discreet.tables.bounding import ContributionLimit, Field, SecretKey, bound
from discreet.tables.fixed_point import FINE
from discreet.tables.passes import ScanPass
from tests.tables import frames

FALSE_ALARM = 1e-9


def kept(frame, fields, *, rows=1, groups=None, key=1, text=False):
    """What stays of an Arrow frame with columns unit_ and the fields."""
    relation = frames.CONNECTION.from_arrow(frame.to_arrow())
    limit = ContributionLimit("unit_", rows, rows if groups is None else groups)
    found = bound(DuckDB(), relation, fields, ["k0"], "text" if text else "integer", limit, SecretKey.draw(seeded(key)))
    return sorted(found.fetchall(), key=repr)


PACKED = [Field("k0", size=5), Field("v0", size=2**30 + 1)]
WIDE = [Field("k0", size=5), Field("v0")]  # without a size, a field is carried whole


def crowd(units, rows, seed=0):
    rng = np.random.default_rng(seed)
    n = units * rows
    return pl.DataFrame(
        {"unit_": np.repeat(np.arange(units), rows), "k0": rng.integers(0, 5, n), "v0": rng.integers(0, 2**30 + 1, n)}
    )


@pytest.mark.parametrize("fields", [PACKED, WIDE], ids=["packed", "carried whole"])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_each_unit_keeps_its_share_and_only_rows_of_its_own(fields, rows):
    """What stays was there, whole, and as many as allowed."""
    frame = crowd(300, 4)
    found = kept(frame, fields, rows=rows)
    assert len(found) == 300 * min(rows, 4)
    assert set(found) <= set(frame.select("k0", "v0").rows())
    if rows >= 4:
        assert found == sorted(frame.select("k0", "v0").rows(), key=repr)


@pytest.mark.parametrize("fields", [PACKED, WIDE], ids=["packed", "carried whole"])
def test_the_choice_depends_neither_on_order_nor_on_other_units(fields):
    """Shuffled rows give the same; without a unit, the others' rows are as before."""
    frame = crowd(200, 5)
    found = kept(frame, fields, rows=2)
    assert kept(frame.sample(fraction=1.0, shuffle=True, seed=3), fields, rows=2) == found
    fewer = kept(frame.filter(pl.col("unit_") != 17), fields, rows=2)
    assert len(found) == len(fewer) + 2
    assert set(fewer) <= set(found)


def test_missing_fields_and_units_survive_the_packing():
    """NULL is packed and unpacked as NULL; rows without an identifier are one unit together."""
    frame = pl.DataFrame({"unit_": [1, None, None, 2], "k0": [None, 4, 4, 0], "v0": [3, None, None, 2**30]})
    assert kept(frame, PACKED) == sorted([(None, 3), (4, None), (0, 2**30)], key=repr)


def test_a_unit_appears_in_few_groups():
    """At most two groups of five, with all the rows it may have there."""
    frame = crowd(300, 40)
    for fields in (PACKED, WIDE):
        found = kept(frame.with_columns(v0=pl.col("unit_")), fields, rows=40, groups=2)
        groups: dict = {}
        for group, unit in found:
            groups.setdefault(unit, set()).add(group)
        assert set(map(len, groups.values())) == {2}


def shares(units, key, fields, text=False):
    """How often each of five rows of equal units is the one that stays."""
    frame = pl.DataFrame(
        {
            "unit_": np.repeat(np.arange(units), 5),
            "k0": np.tile([0, 0, 0, 1, 4], units),
            "v0": np.tile([0, 1, 7, 7, 2**30], units),
        }
    )
    if text:
        frame = frame.with_columns(pl.format("person {}", "unit_").alias("unit_"))
    found = kept(frame, fields, key=key, text=text)
    return [found.count(row) for row in [(0, 0), (0, 1), (0, 7), (1, 7), (4, 2**30)]]


@pytest.mark.parametrize(
    ("fields", "text"), [(PACKED, False), (WIDE, False), (PACKED, True)], ids=["packed", "whole", "text"]
)
@pytest.mark.parametrize("key", [1, 2, 3])
def test_every_row_of_a_unit_is_equally_likely_to_stay(key, fields, text, monkeypatch):
    """Rows that differ in one bit or in all: even shares, for each of several keys;
    a single round would be found out.
    """
    assert stats.chisquare(shares(6000, key, fields, text)).pvalue > FALSE_ALARM
    monkeypatch.setattr(bounding, "ROUNDS", 1)
    assert fields is WIDE or stats.chisquare(shares(6000, key, fields, text)).pvalue < FALSE_ALARM


@pytest.mark.parametrize(
    ("kind", "values"),
    [("integer", [2**60, 2**60 + 1, 2**60 + 7, -(2**62), 3]), ("number", [0.25, 0.5, 0.75, -1e9, 7.125])],
)
def test_values_that_only_their_last_bits_tell_apart_are_chosen_evenly(kind, values):
    """Whole numbers beyond 2^53, and fractions: each is hashed by all of its bits,
    or the smallest would always stay.
    """
    frame = pl.DataFrame({"unit_": np.repeat(np.arange(3000), 5), "v0": values * 3000})
    found = [value for (value,) in kept(frame, [Field("v0", kind=kind)])]
    assert stats.chisquare([found.count(value) for value in values]).pvalue > FALSE_ALARM


def test_another_key_chooses_other_rows():
    """The key is drawn afresh for each release."""
    assert kept(crowd(50, 5), PACKED, key=1) != kept(crowd(50, 5), PACKED, key=2)
    assert "1" not in repr(SecretKey.draw(seeded(1)))


@pytest.mark.parametrize("room", [21, 31])
def test_every_bit_of_the_hash_is_a_fair_coin(room):
    """Of the rows of one unit, which differ by one: each bit is set in half of them,
    and none beyond the room there is.
    """
    engine, key = DuckDB(), SecretKey.draw(seeded(4))
    frame = pl.DataFrame({"p": np.arange(6000), "unit_": np.full(6000, 12345)})
    word = bounding._unit_word(engine, "integer", key)
    relation = engine.project(frames.CONNECTION.from_arrow(frame.to_arrow()), ["p", word])
    low, high = stats.binom.ppf([FALSE_ALARM, 1 - FALSE_ALARM], 6000, 0.5)
    for which in (0, 1):
        found = np.array(bounding._with_hash(engine, relation, ["p"], key, which, room).fetchall())[:, 1]
        assert 0 <= found.min() <= found.max() < 2**room
        assert all(low <= (found >> bit & 1).sum() <= high for bit in range(room))


# --- the plan --------------------------------------------------------------------------------------------------------


def test_the_scan_is_one_group_by_without_windows_or_joins():
    """The generated query: a plain aggregate for rows, one min per unit for units. The benchmark measures it."""
    plain = frames.table([]).group_by("educ").mean("x")
    unit = frames.table([], unit="unit").group_by("educ").mean("x")
    for query in (plain, unit):
        plan = query.rows.plan(ScanPass(sums=(("x", FINE),)))
        assert "OVER (" not in plan.upper()
        assert "JOIN" not in plan.upper()
        assert "ORDER BY" not in plan.upper()
        assert plan.upper().count("GROUP BY") == (2 if query is unit else 1)
    assert "min(" in unit.rows.plan(ScanPass(sums=(("x", FINE),)))
    assert "md5" not in unit.rows.plan(ScanPass(sums=(("x", FINE),)))


def test_one_row_a_unit_unless_more_are_declared():
    """Three rows of one person count once, and up to three times if that is declared and paid for."""
    rows = [(7, (1, "a", 10.0, "p", 5.0, 3))] * 3
    tables = {m: frames.table(rows, unit="unit", max_rows_per_unit=m) for m in (1, 2, 3, 9)}
    answers = {m: table.count().release(epsilon=1000.0, rng=1).value["count"][0] for m, table in tables.items()}
    assert answers == {1: 1, 2: 2, 3: 3, 9: 3}
    errors = {m: float(table.count().explain(epsilon=1.0).errors["count"][1:]) for m, table in tables.items()}
    assert errors[3] == pytest.approx(3 * errors[1], rel=1e-3)
    assert dp.epsilon(tables[3].median("x").operation(epsilon=1.0).event, delta=0) <= 1.0


def test_one_group_is_said_in_the_singular():
    limits = [ContributionLimit("who", 3, groups, groups) for groups in (1, 2)]
    assert [limit.describe().rpartition(", ")[2] for limit in limits] == ["in at most 1 group", "in at most 2 groups"]
