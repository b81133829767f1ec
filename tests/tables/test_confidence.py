"""Columns of intervals hold the answer without noise in at least 95 of 100 groups, of any size, and of large ones in
hardly more.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import discreet as dp
from discreet.mechanisms.laplace import Laplace
from discreet.tables.confidence import reach

FALSE_ALARM = 1e-6
GROUPS = 600


def answers(size, **budget):
    """Groups of one size: the answers with intervals, and the truth."""
    rng = np.random.default_rng(size)
    x, y = 100 * rng.beta(0.5, 2.0, (GROUPS, size)), rng.uniform(0, 10, (GROUPS, size))
    frame = pl.DataFrame({"k": np.repeat(np.arange(GROUPS), size), "x": x.ravel(), "y": y.ravel()})
    schema = dp.Schema(k=dp.Categories(range(GROUPS)), x=dp.Bounded(0, 100), y=dp.Bounded(0, 10))
    asked = dp.table(frame, schema=schema, threads=1).group_by("k")
    asked = asked.count().sum("x").mean("x").variance("x").deviation("x").covariance("x", "y")
    truth = {
        "count": np.full(GROUPS, size),
        "x_sum": x.sum(1),
        "x_mean": x.mean(1),
        "x_variance": x.var(1),
        "x_deviation": x.std(1),
        "x_y_covariance": (x * y).mean(1) - x.mean(1) * y.mean(1),
    }
    return asked.release(errors=True, rng=size, **budget).value, truth


@pytest.mark.parametrize("budget", [{"epsilon": 6.0}, {"rho": 2.0}], ids=str)
@pytest.mark.parametrize("size", [1, 40, 400])
def test_intervals_cover(size, budget):
    """No fewer than 95 of 100, by a one-sided test; in large groups no wider than 98 of 100 need."""
    found, truth = answers(size, **budget)
    least = stats.binom.isf(1 - FALSE_ALARM, GROUPS, 0.95)
    for name, expected in truth.items():
        low, high = found[f"{name}_low"].to_numpy(), found[f"{name}_high"].to_numpy()
        held = int(((low - 1e-3 <= expected) & (expected <= high + 1e-3)).sum())
        assert held >= least, name
        if size == 400 and name != "count":  # whole noise holds more at its step
            assert held <= stats.binom.isf(FALSE_ALARM, GROUPS, 0.975), name


SAMPLES = {"VAR_SAMP(x)": "v", "STDDEV(x)": "s", "COVAR_SAMP(x, x)": "c"}


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
@pytest.mark.parametrize("rows", [2, 5, 20])
def test_intervals_of_samples_hold_what_n_may_be(rows, epsilon):
    """Values at both bounds, where n/(n - 1) matters most: 49 to 57 of 100 were held where n was taken as known."""
    groups = 1000
    one = np.arange(rows) % 2 * 10.0
    frame = pl.DataFrame({"k": np.repeat(np.arange(groups), rows), "x": np.tile(one, groups)})
    table = dp.table(frame, schema=dp.Schema(k=dp.Categories(range(groups)), x=dp.Bounded(0, 10)), threads=1)
    truth = {"v": one.var(ddof=1), "s": one.std(ddof=1), "c": one.var(ddof=1)}
    for sql, name in SAMPLES.items():
        found = table.sql(f"SELECT k, {sql} AS {name} FROM t GROUP BY k", epsilon, errors=True, rng=rows).value
        low, high = found[f"{name}_low"].to_numpy(), found[f"{name}_high"].to_numpy()
        held = int(((low - 0.02 <= truth[name]) & (truth[name] <= high + 0.02)).sum())
        assert held >= stats.binom.isf(1 - FALSE_ALARM, groups, 0.95), name
        answer = found[name].to_numpy()
        assert np.all((low <= answer + 1e-9) & (answer <= high + 1e-9))


@pytest.mark.parametrize(("size", "delta", "groups"), [(2, 1e-2, 20_000), (16, 1e-6, 2000), (40, 1e-6, 2000)])
def test_counts_of_private_groups_have_intervals(size, delta, groups):
    """Of groups that are shown: those of two rows are because of their noise alone, which no ±3 about it would hold."""
    frame = pl.DataFrame({"k": np.repeat(np.arange(groups), size)})
    table = dp.table(frame, schema=dp.Schema(k=dp.Unlisted()), threads=1)
    found = table.group_by("k").count().release(epsilon=1.0, delta=delta, errors=True, rng=size).value
    assert len(found) > 100
    held = int(found.select(((pl.col("count_low") <= size) & (size <= pl.col("count_high"))).sum()).item())
    assert held >= stats.binom.isf(1 - FALSE_ALARM, len(found), 0.95)
    around = int(((found["count"] - size).abs() <= 3).sum())  # what the count of a public group is given
    assert size > 2 or around < stats.binom.isf(1 - FALSE_ALARM, len(found), 0.95)
    assert found["count_low"].min() >= 1


def test_the_test_has_power():
    """Intervals of two thirds of the width would be found out."""
    found, truth = answers(400, epsilon=6.0)
    middle, half = found["x_mean"].to_numpy(), (found["x_mean_high"] - found["x_mean_low"]).to_numpy() / 3
    held = int((np.abs(middle - truth["x_mean"]) <= half).sum())
    assert held < stats.binom.isf(1 - FALSE_ALARM, GROUPS, 0.95)


def test_totals_have_the_noise_of_their_groups():
    """A total's interval is that of a sum of noises: at most a root of their number wider than one's."""
    frame = pl.DataFrame({"k": [0] * 9})
    table = dp.table(frame, schema=dp.Schema(k=dp.Categories(range(100))))
    lines = table.group_by("k").count().totals([]).release(epsilon=1.0, errors=True, rng=1).value
    widths = (lines["count_high"] - lines["count_low"]).to_list()
    assert widths[0] == 6
    assert widths[-1] == 60
    draws = np.random.default_rng(1).laplace(size=(20_000, 16)).sum(1)
    mechanism = Laplace(sensitivity=1.0, scale=1.0)
    outside = int((np.abs(draws) > reach(mechanism, np.array([16.0]))[0]).sum())
    assert outside <= stats.binom.isf(FALSE_ALARM, 20_000, 0.05)


def test_what_is_computed_of_answers_has_no_interval():
    """Only a column that is an answer as it is; a bias is stated apart."""
    table = dp.table(
        pl.DataFrame({"who": [1], "x": [1.0]}), schema={"x": dp.Bounded(0, 1)}, unit="who", max_rows_per_unit=2
    )
    query = "SELECT COUNT(*) AS n, SUM(x) / COUNT(*) AS share, MEDIAN(x) FROM t"
    assert table.sql(query, 1.0, errors=True).value.columns == ["n", "n_low", "n_high", "share", "x_median"]
    assert "at most 2 rows of each unit count" in (table.parse(query).explain(1.0).bias or "")


def test_explain_states_apart_what_bounds_caps_and_declarations_take_away():
    """A line for each column that is read, through derived ones too; from public facts alone, whatever the rows are."""
    schema = dp.Schema(
        x=dp.Bounded(0, 1_000_000),
        y=dp.Bounded(-1, 1, missing=0),
        z=dp.Bounded(0, 1),
        k=dp.Categories(["a", "b"]),
        day=dp.Dates("2023-01-01", "2023-12-31"),
    )
    held = {"who": [1], "x": [5.0], "y": [9.0], "z": [0.5], "k": ["a"], "day": ["2023-05-05"]}
    for rows in (pl.DataFrame(held), pl.DataFrame(held).clear()):
        table = dp.table(rows, schema=schema, unit="who", max_rows_per_unit=3)
        told = table.parse("SELECT k, AVG(x * y) FROM t WHERE day > '2023-02-01' GROUP BY k").explain(1.0)
        assert (told.bias or "").splitlines() == [
            "at most 3 rows of each unit count, so totals are too low if units have more: further rows are not counted",
            "x: values outside 0 to 1,000,000 count as the nearer end; an empty cell, or one that is not a number, "
            "does not count",
            "y: values outside -1 to 1 count as the nearer end; an empty cell, or one that is not a number, "
            "counts as 0",
            "k: a row with none of the declared values is in no group",
            "day: values outside 2023-01-01 to 2023-12-31, or that are not dates, are missing",
            "errors and intervals account for the noise alone, not for these biases",
        ]
        assert str(told).count("\nbias    ") == 6
    assert dp.table(rows, schema=schema).count().explain(1.0).bias is None


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ("k <> 'a'", ["k"]),
        ("NOT (k = 'a' OR rest LIKE 'c%')", ["k", "rest"]),
        ("k NOT IN ('a') AND k IS NOT NULL", ["k"]),
        ("k = 'a' AND NOT (NOT (rest = 'c'))", []),
        ("COALESCE(k, 'z') <> 'a'", []),  # decided where k is missing, too
        ("k IS NOT NULL AND NOT (x > 1)", []),
    ],
)
def test_explain_states_whom_a_negation_leaves_out(condition, columns):
    """SQL's <> and NOT suggest everybody else; a row with none of the declared values is not among them."""
    schema = dp.Schema(k=dp.Categories(["a", "b"]), rest=dp.Categories(["c", "d"], other="else"), x=dp.Bounded(0, 9))
    table = dp.table(pl.DataFrame({"k": ["a", "?"], "rest": ["c", "?"], "x": [1, 2]}), schema=schema)
    told = (table.parse(f"SELECT COUNT(*) FROM t WHERE {condition}").explain(1.0).bias or "").splitlines()
    said = "a row with none of the declared values is left out by <>, NOT IN and NOT, too"
    assert [line for line in told if "NOT" in line] == [f"{name}: {said}" for name in columns]


def test_a_group_that_a_negation_leaves_out_is_said_once():
    """By the key's own line, where there is one; ``other`` is a group that <> takes away."""
    schema = dp.Schema(k=dp.Categories(["a", "b"]), rest=dp.Categories(["c", "d"], other="else"))
    table = dp.table(pl.DataFrame({"k": ["a", "?"], "rest": ["c", "?"]}), schema=schema)
    for key, lines in (("k", ["in no group"]), ("rest", ["left out by <>"])):
        first = schema[key].values[0]
        told = table.parse(f"SELECT {key}, COUNT(*) FROM t WHERE {key} <> '{first}' GROUP BY {key}").explain(1.0)
        assert [part for part in ("in no group", "left out by <>") if part in (told.bias or "")] == lines


def test_explain_states_what_becomes_of_a_units_total():
    """No row is dropped there: what all of them add up to is cut."""
    table = dp.table(pl.DataFrame({"who": [1], "x": [1.0]}), schema={"x": dp.Bounded(0, 1)}, unit="who")
    told = (table.sum("x", unit_bounds=(0, 5)).explain(1.0).bias or "").splitlines()
    assert told[0] == "what x adds up to per unit counts as the nearer end if it lies outside 0 to 5"
    assert len(told) == 3


@pytest.mark.parametrize("budget", [{"epsilon": 6.0}, {"rho": 2.0}], ids=str)
def test_intervals_are_of_the_answer_after_clipping_and_caps(budget):
    """Values far outside of the bounds, units with more rows than count: the clipped answer is held, and no more."""
    groups, units = 400, 30
    rng = np.random.default_rng(8)
    values = rng.normal(5, 20, (groups, units))
    clipped = np.clip(values, 0, 10)
    held = {"k": np.repeat(np.arange(groups), 2 * units), "x": np.repeat(values.ravel(), 2)}
    frame = pl.DataFrame({**held, "who": np.repeat(np.arange(groups * units), 2)})  # each unit's two rows are equal
    schema = dp.Schema(k=dp.Categories(range(groups)), x=dp.Bounded(0, 10))
    table = dp.table(frame, schema=schema, unit="who", max_rows_per_unit=1, threads=1)
    found = table.group_by("k").sum("x").mean("x").release(errors=True, rng=5, **budget).value
    for name, truth in (("x_sum", clipped.sum(1)), ("x_mean", clipped.mean(1))):
        low, high = found[f"{name}_low"].to_numpy(), found[f"{name}_high"].to_numpy()
        inside = int(((low - 1e-3 <= truth) & (truth <= high + 1e-3)).sum())
        assert stats.binom.isf(1 - FALSE_ALARM, groups, 0.95) <= inside <= stats.binom.isf(FALSE_ALARM, groups, 0.97)
        plain = values.sum(1) * 2 if name == "x_sum" else values.mean(1)
        assert ((low <= plain) & (plain <= high)).mean() < 0.5  # a bias is no part of them
