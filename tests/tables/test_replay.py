"""Record and replay on hostile neighbours: every aggregate, every kind of key, every bound on contributions."""

from __future__ import annotations

import csv
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.auditing import ReplayError, replay
from discreet.auditing.strategies import neighbours
from discreet.tables import col
from tests.tables import frames

EXAMPLES = int(os.environ.get("DISCREET_EXAMPLES", "5"))  # raise it to look harder
brief = settings(max_examples=EXAMPLES)

QUESTIONS = {
    "count": lambda t: t.group_by("educ").count(),
    "count of a column": lambda t: t.group_by("educ").count("x"),
    "sum": lambda t: t.group_by("educ").sum("y"),
    "mean": lambda t: t.group_by("educ").mean("x"),
    "variance": lambda t: t.group_by("educ").variance("x"),
    "median": lambda t: t.group_by("educ").quantile("x", 0.5, bins=8),
    "high quantile": lambda t: t.quantile("y", 0.9, bins=5),
    "histogram": lambda t: t.group_by("city").histogram("y", 3),
    "histogram at edges": lambda t: t.histogram("x", [0, 1, 9.5, 10]),
    "distinct": lambda t: t.group_by("city").count_distinct("name"),
    "distinct categories": lambda t: t.count_distinct("code"),
    "several": lambda t: t.group_by("city", "educ").count().mean("x").sum("x").variance("y"),
    "sparse keys": lambda t: t.group_by("code").mean("y").count(),
    "filtered": lambda t: t.filter((col("x") > 1) & ~(col("city") == "a"), col("y") / col("x") < 50).mean("y"),
    "derived": lambda t: (
        t.derive(z=(col("x") / col("y")).clip(-1, 1), w=col("x").log().clip(0, 1)).group_by("educ").mean("z").sum("w")
    ),
    "everything": lambda t: t.count(),
}


def answer(question, records, *, budget=None, **options):
    """The release: replay compares its frame, and its cost with what was drawn."""
    return question(frames.table(records, **options)).release(**(budget or {"epsilon": 1.0}))


@pytest.mark.parametrize("name", QUESTIONS)
@brief
@given(pair=neighbours(st.tuples(frames.units, frames.rows)))
def test_every_aggregate_passes_when_a_row_is_protected(name, pair):
    """One row more or less moves what is noised within the declared sensitivity, and nothing else."""
    replay(lambda records: answer(QUESTIONS[name], records), *pair)


# Records are units here, each with all of its rows; identifiers are made distinct, so that a neighbour differs by one
# unit.
people = neighbours(st.tuples(frames.units, st.lists(frames.rows, min_size=1, max_size=4)), max_size=4)


def separated(pair):
    """Neighbours as lists of rows, where equal identifiers belong to one unit that both sides share or one lacks."""
    longer, shorter = sorted(pair, key=len, reverse=True)
    extra = next((i for i, record in enumerate(longer) if i >= len(shorter) or record != shorter[i]), None)
    lone = 77  # the unit that only one side has
    renamed = [(lone if i == extra else unit, rows) for i, (unit, rows) in enumerate(longer)]
    rest = [record for i, record in enumerate(renamed) if i != extra]
    sides = [[(unit, row) for unit, rows in side for row in rows] for side in (renamed, rest)]
    return sides if len(pair[0]) > len(pair[1]) else sides[::-1]


BOUNDS = [{"max_rows_per_unit": 1}, {"max_rows_per_unit": 2}, {"max_rows_per_unit": 3, "max_groups_per_unit": 1}]


@pytest.mark.parametrize("name", QUESTIONS)
@settings(max_examples=2 * EXAMPLES)
@given(pair=people, bounds=st.sampled_from(BOUNDS), order=st.randoms(use_true_random=False))
def test_every_aggregate_passes_when_a_unit_is_protected(name, bounds, pair, order):
    """All rows of one unit more or less, in any order of rows, stay within the bounded contribution."""
    first, second = separated(pair)
    order.shuffle(first)
    replay(lambda records: answer(QUESTIONS[name], records, unit="unit", **bounds), first, second)


@pytest.mark.parametrize("bounds", [{}, *({"unit": "unit"} | bounds for bounds in BOUNDS)], ids=str)
@brief
@given(pair=people)
def test_private_keys_pass(bounds, pair):
    """Groups that only one side has are hidden by the threshold; counts are compared as if they were zero there."""
    first, second = separated(pair)
    if not bounds:  # a row is protected: neighbours differ by one
        second = first[1:]
    budget = {"epsilon": 1.0, "delta": 0.3}
    question = lambda t: t.group_by("name", "city").count().mean("x").median("y", bins=4)  # noqa: E731
    replay(lambda records: answer(question, records, budget=budget, **bounds), first, second)


fields = st.one_of(
    st.sampled_from(
        [
            "1",
            "2.5",
            "nan",
            "1e400",
            '"',
            '""',
            '"a',
            'a"b',
            "a\nb",
            "\r",
            "\r\n",
            "\\",
            '\\"',
            "\0",
            "#",
            "'",
            ";",
            "\t",
            "\ufeff",
            "NULL",
            "a",
            "b",
            "",
            "1,5",
        ]
    ),
    st.text(max_size=5),
)


@settings(max_examples=4 * EXAMPLES)
@given(pair=neighbours(st.tuples(fields, fields), max_size=6))
def test_text_files_pass(tmp_path_factory, pair):
    """Whatever a field holds, a row that is written by the rules changes nothing but itself."""
    schema = dp.Schema(x=dp.Bounded(0, 10), k=dp.Categories(["a", "b"], other="rest"))
    paths = [tmp_path_factory.getbasetemp() / f"{side}.csv" for side in ("data", "neighbour")]
    for path, records in zip(paths, pair, strict=True):
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("x", "k"), *records])
    replay(
        lambda path: dp.table(path, schema=schema, threads=1).group_by("k").count().sum("x").release(epsilon=1.0),
        *paths,
    )


@brief
@given(pair=neighbours(st.tuples(frames.units, frames.rows)))
def test_gaussian_noise_passes(pair):
    """The same sensitivities hold in L2."""
    replay(lambda records: answer(QUESTIONS["several"], records, budget={"rho": 0.5}), *pair)


def test_replay_has_power_here(monkeypatch):
    """If contributions were not bounded, replay would say so."""
    from discreet.tables import passes

    row = (1, "a", 10.0, "p", 5.0, 3)
    one, none = [(7, row)] * 3, []
    replay(lambda records: answer(QUESTIONS["count"], records, unit="unit"), one, none)
    monkeypatch.setattr(
        passes, "bound", lambda engine, frame, fields, *rest: engine.project(frame, [f.name for f in fields])
    )
    with pytest.raises(ReplayError, match="differs by 3"):
        replay(lambda records: answer(QUESTIONS["count"], records, unit="unit"), one, none)


def test_a_unit_with_a_row_in_each_of_two_groups_pays_for_both_choices_together():
    """Each group's median is chosen at the price of two rows in it; one row in each costs half of that twice."""
    rest = [(0, (1, None, None, "p", 0.0, None))]
    more = [(77, (place, "a", 10.0, "p", 0.0, 0)) for place in (0, 1)]
    ask = lambda records: answer(QUESTIONS["median"], records, unit="unit", max_rows_per_unit=2)  # noqa: E731
    replay(ask, rest, more + rest)
    replay(ask, more + rest, rest)
