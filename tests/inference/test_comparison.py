"""Tests of a table's columns by its schema."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import discreet as dp
from discreet import inference
from discreet.inference import ColumnComparison, compare
from discreet.schema import Bounded, Categories, Declaration, Schema

FACTS = Schema(
    arm=Categories(["new", "old"]),
    ward=Categories(["a", "b", "c"]),
    cured=Categories(["no", "yes"]),
    days=Bounded(0, 30),
    cost=Bounded(0, 100),
)
RNG = np.random.default_rng(2)
ARM = RNG.integers(0, 2, 1200)
ROWS = {
    "arm": ["new" if x == 0 else "old" for x in ARM],
    "ward": ["abc"[x] for x in RNG.integers(0, 3, 1200)],
    "cured": ["yes" if x else "no" for x in RNG.random(1200) < 0.6 - 0.3 * ARM],
    "days": 7 + 3 * ARM + RNG.normal(0, 2, 1200),
    "cost": 40 + RNG.normal(0, 9, 1200),
}


@pytest.mark.parametrize(
    ("by", "of", "kind"),
    [("arm", "days", "Welch"), ("ward", "days", "Anova"), ("arm", "ward", "Independence"), ("days", "cost", "Correl")],
)
def test_the_kinds_of_the_columns_choose_the_test(by, of, kind):
    answer = compare(ROWS, by, of, schema=FACTS, epsilon=1.0, rng=1)
    assert answer.label.lower().startswith({"Anova": "analysis"}.get(kind, kind.lower()))
    assert answer.label.endswith(f"{by}, {of}")


@pytest.mark.parametrize("test", ["welch", "mann-whitney", "kolmogorov-smirnov", "anova"])
def test_every_test_of_two_groups_sees_the_difference(test):
    assert compare(ROWS, "arm", "days", schema=FACTS, test=test, epsilon=1.0, rng=1).p_value < 0.001


def test_the_first_label_is_compared_with_the_second_and_the_second_is_a_success():
    assert compare(ROWS, "arm", "days", schema=FACTS, epsilon=1.0, rng=1).difference < -2
    cured = compare(ROWS, "arm", "cured", schema=FACTS, test="two-proportions", epsilon=1.0, rng=1)
    assert 0.1 < cured.difference < 0.5
    lives = compare(ROWS, "arm", "days", "cured", schema=FACTS, test="log-rank", epsilon=1.0, rng=1)
    assert lives.p_value < 0.001


@pytest.mark.parametrize(
    ("labels", "entries"),
    [([1, 0], [1, 0]), ([True, False], [True, False]), (["1", "0"], ["1", "0"]), (["no", "yes"], ["yes", "no"])],
)
def test_one_is_a_success_and_an_event_wherever_it_stands(labels, entries):
    """Of [1, 0] the zeros were counted: the difference had the other sign, and those who left had the events."""
    facts = Schema(arm=Categories(["new", "old"]), seen=Categories(labels), days=Bounded(0, 30))
    seen = np.array(ROWS["cured"]) == "yes"
    rows = {"arm": ROWS["arm"], "seen": [entries[0] if x else entries[1] for x in seen], "days": ROWS["days"]}
    shares = compare(rows, "arm", "seen", schema=facts, test="two-proportions", epsilon=1.0, rng=1)
    assert 0.1 < shares.difference < 0.5
    assert shares.effect_name == f"difference of shares of {entries[0]}, new less old"
    usual = compare(ROWS, "arm", "days", "cured", schema=FACTS, test="log-rank", epsilon=1.0, rng=1)
    lives = compare(rows, "arm", "days", "seen", schema=facts, test="log-rank", epsilon=1.0, rng=1)
    assert lives.value == usual.value
    assert lives.effect_name == "logarithm of the hazard ratio, new over old"


def test_a_unit_counts_once_and_is_who_is_charged_for():
    """Every row three times, of one patient each: the answer is that of the rows once."""
    frame = pl.DataFrame(ROWS).with_columns(patient=pl.arange(0, 1200))
    declared = Declaration(FACTS, unit="patient")
    ledger = dp.Ledger("sqlite://")
    book = ledger.open("study", epsilon=5.0, unit="patient")
    three = compare(pl.concat([frame] * 3), "arm", "days", schema=declared, epsilon=1.0, book=book, rng=1)
    assert three.value == compare(frame, "arm", "days", schema=declared, epsilon=1.0, rng=1).value
    assert three.unit == "patient"
    with pytest.raises(dp.UnitMismatch):
        compare(ROWS, "arm", "days", schema=FACTS, epsilon=1.0, book=book)


def test_a_warning_comes_before_the_charge():
    asked = ColumnComparison(
        Declaration(FACTS), inference.Welch(bounds=(0, 30), n_expected=20, epsilon=0.01), ("arm", "days")
    )
    with pytest.warns(UserWarning, match="too small"):
        asked.prepare(ROWS)


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (("days", "arm"), {}, "other order"),
        (("ward", "days"), {"test": "welch"}, "exactly 2 categories"),
        (("arm", "ward"), {"test": "mann-whitney"}, "needs numbers"),
        (("arm", "days"), {"test": "z"}, "test is 'z'"),
        (("arm", "age"), {}, "age"),
        (("arm", "days"), {"test": "log-rank"}, "three columns"),
        (("arm", "days", "cured"), {}, "leave it out"),
    ],
)
def test_public_mistakes_are_named(columns, options, said):
    with pytest.raises(ValueError, match=said):
        compare(ROWS, *columns, schema=FACTS, epsilon=1.0, **options)


def test_a_table_compares_its_own_columns(tmp_path):
    """The same answer as of the file it was opened from; of a unit one row, and the unit is charged."""
    facts = Schema(arm=Categories(["new", "old"]), days=Bounded(0, 30))
    rows = pl.DataFrame({"who": list(range(1200)), "arm": ["new", "old"] * 600, "days": [7, 9] * 600})
    rows.write_csv(tmp_path / "visits.csv")
    for source in (rows, str(tmp_path / "visits.csv")):
        visits = dp.table(source, schema=facts, unit="who")
        answer = visits.compare("arm", "days", epsilon=1.0, rng=1)
        usual = compare(source, "arm", "days", schema=Declaration(facts, unit="who"), epsilon=1.0, rng=1)
        assert (answer.value, answer.event, answer.unit) == (usual.value, usual.event, "who")
        assert visits.compare("arm", "days", test="mann-whitney", epsilon=1.0, rng=1).p_value < 0.001
        with pytest.raises(ValueError, match="not declared"):
            visits.compare("arm", "hours", epsilon=1.0)
        with pytest.raises(ValueError, match="filtered"):
            visits.filter(dp.tables.col("days") > 3).compare("arm", "days", epsilon=1.0)


def test_rows_without_an_order_are_not_compared():
    """Of a unit the first row counts, and a relation of DuckDB has none that is its own."""
    duckdb = pytest.importorskip("duckdb")
    facts = Schema(arm=Categories(["new", "old"]), days=Bounded(0, 30))
    relation = duckdb.connect().sql("SELECT 1 AS who, 'new' AS arm, 7 AS days")
    with pytest.raises(ValueError, match="no order"):
        dp.table(relation, schema=facts, unit="who").compare("arm", "days", epsilon=1.0)


def test_one_column_is_tested_against_a_value():
    """The mean of days is 8.5, and so is about their median."""
    answer = compare(ROWS, "days", schema=FACTS, test="one-sample", null=8.0, epsilon=1.0, rng=1)
    assert answer.label == "one-sample test: days"
    assert answer.interval[0] < 8.5 < answer.interval[1]
    assert answer.p_value < 0.01
    median = dp.table(pl.DataFrame(ROWS), schema=FACTS).compare("days", test="quantile", null=9.0, epsilon=1.0, rng=1)
    assert median.interval[0] <= 8.5 <= median.interval[1]


def test_two_columns_of_numbers_are_paired_within_the_bounds_of_both():
    rows = {"days": [10.0, 12.0] * 400, "cost": [40.0, 44.0] * 400}
    answer = compare(rows, "cost", "days", schema=FACTS, test="paired", epsilon=1.0, rng=1)
    assert answer.interval[0] < 31 < answer.interval[1]
    assert answer.p_value < 0.001


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (("days",), {}, "There is one column"),
        (("days",), {"test": "welch"}, "takes two columns"),
        (("arm", "days"), {"test": "one-sample"}, "takes one column"),
        (("arm", "days"), {"test": "anova", "null": 1.0}, "has one null hypothesis only"),
        (("arm",), {"test": "one-sample"}, "needs numbers"),
        (("days",), {"test": "one-sample", "n": 1200, "adjacency": "replace"}, "number is private"),
        (("days",), {"test": "one-sample", "null": 31.0}, "null"),
    ],
)
def test_a_test_of_other_columns_than_it_takes_is_refused_before_the_charge(columns, options, said):
    book = dp.Ledger("sqlite://").open("study", epsilon=1.0)
    with pytest.raises(ValueError, match=said):
        compare(ROWS, *columns, schema=FACTS, epsilon=0.5, book=book, **options)
    assert book.spent().epsilon == 0
