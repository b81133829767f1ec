"""Stated errors are what is measured: counts have the error of whole noise, quantiles that of their ranks,
however heaped.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

import discreet as dp
from discreet import events
from discreet.auditing import replay
from discreet.tables.aggregates import Mean, Variance
from discreet.tables.binned import Histogram

FALSE_ALARM = 1e-9
GROUPS = 10_000


def noise(epsilon, make=lambda t: t.count(), **budget):
    """The noise on the counts of groups without rows, and what was stated of it."""
    schema = dp.Schema(k=dp.Categories(range(GROUPS)), x=dp.Bounded(0, 1, whole=True))
    query = make(dp.table(pl.DataFrame({"k": [0], "x": [0]}).clear(), schema=schema).group_by("k"))
    (name,) = query.explain(epsilon, **budget).errors
    stated = float(query.explain(epsilon, **budget).errors[name].lstrip("±"))
    return (
        query.release(epsilon, rng=5, **budget).value[name].to_numpy(),
        stated,
        query.operation(epsilon, **budget).event,
    )


@pytest.mark.parametrize(("epsilon", "expected", "rounded"), [(1.0, 0.851, 0.970), (3.0, 0.100, 0.235)])
def test_a_count_has_the_error_of_the_geometric_mechanism(epsilon, expected, rounded):
    """0.851 at ε = 1 and 0.100 at ε = 3; rounded Laplace noise, at the same price, would be told apart."""
    p = math.exp(-epsilon)
    assert 2 * p / (1 - p * p) == pytest.approx(expected, abs=5e-4)
    for make in (lambda t: t.count(), lambda t: t.count("x"), lambda t: t.sum("x")):
        found, stated, event = noise(epsilon, make)
        spread = stats.norm.isf(FALSE_ALARM / 2) * np.abs(found).std() / math.sqrt(GROUPS)
        assert abs(np.abs(found).mean() - expected) < spread
        assert not abs(np.abs(found).mean() - rounded) < spread
        assert (np.abs(found) > stated).sum() <= stats.binom.isf(FALSE_ALARM, GROUPS, 0.05)
        assert event == events.DiscreteLaplace(scale=event.scale, sensitivity=1)
        assert dp.epsilon(event, delta=0) == pytest.approx(epsilon, rel=1e-9)
        assert dp.epsilon(event, delta=0) <= epsilon


def test_a_sum_of_fractions_keeps_continuous_noise_and_of_whole_numbers_has_whole_noise(tmp_path):
    """By the type that a file declares, or the schema, the bounds, and what missing counts as: public facts."""
    frame = pl.DataFrame({"whole": [1, 2], "half": [0.5, 2.0], "told": [1.0, 2.0]})
    frame.write_parquet(tmp_path / "t.parquet")
    kinds = {"whole": dp.Bounded(0, 10), "half": dp.Bounded(0, 10), "told": dp.Bounded(0, 10, whole=True)}
    for source, of_type in ((tmp_path / "t.parquet", "DiscreteLaplace"), (frame, "Laplace")):
        table = dp.table(source, schema=dp.Schema(kinds)).derive(big=dp.tables.col("half") > 1)
        names = ("whole", "half", "told", "big")
        leaves = {name: type(table.sum(name).operation(1.0).event).__name__ for name in names}
        assert leaves == {"whole": of_type, "half": "Laplace", "told": "DiscreteLaplace", "big": "DiscreteLaplace"}
    for declared in (dp.Bounded(0, 10.5), dp.Bounded(0, 10, missing=0.5), dp.Bounded(0, 2.0**31)):
        event = dp.table(tmp_path / "t.parquet", schema=dp.Schema(whole=declared)).sum("whole").operation(1.0).event
        assert isinstance(event, events.Laplace)
    found = table.sum("told").sum("big").release(epsilon=1e4, rng=1).value
    assert found.row(0) == (3.0, 1.0)


def test_whole_gaussian_noise_where_rounding_would_show():
    """Below a deviation of one the discrete law is used, for the same rho."""
    from discreet.accounting.zcdp import rho

    for budget in (0.1, 8.0):
        found, stated, event = noise(None, rho=budget)
        assert budget * 0.999 < rho(event) <= budget
        assert (np.abs(found) > stated).sum() <= stats.binom.isf(FALSE_ALARM, GROUPS, 0.05)
    assert np.abs(found).mean() < 0.001  # at deviation 1/4, rounded Gaussian noise would give 0.046


# --- quantiles -------------------------------------------------------------------------------------------------------

COPIES = 60
RNG = np.random.default_rng(4)
DATA = {
    "heaped": np.concatenate([np.full(821, 8.0), RNG.uniform(0, 8, 400), RNG.uniform(9, 1e5, 421)]),
    "all in one place": np.full(300, 1e5),
    "two places": np.repeat([0.0, 1e5], [100, 101]),
    "whole numbers": RNG.integers(0, 5, 500).astype(float),
    "spread": RNG.uniform(0, 1e5, 500),
    "one record": np.array([5.0]),
    "empty": np.array([]),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("q", [0.5, pytest.param(0.9, marks=pytest.mark.slow)])
def test_the_stated_error_of_a_quantile_is_kept(name, q):
    """In ranks, with the confidence that was stated, also where records are heaped: groups with the same records."""
    values = DATA[name]
    frame = pl.DataFrame({"k": np.repeat(np.arange(COPIES), values.size), "x": np.tile(values, COPIES)})
    table = dp.table(frame, schema=dp.Schema(k=dp.Categories(range(COPIES)), x=dp.Bounded(0, 1e5)))
    query = table.group_by("k").quantile("x", q)
    (told,) = query.explain(epsilon=1.0).errors.values()
    stated, width = float(told.split()[5]), 1e5 / 1024
    answers = query.release(epsilon=1.0, rng=3).value.to_numpy()[:, 1]
    low, high = answers - width / 2 - 1e-6, answers + width / 2 + 1e-6
    below, up_to = np.searchsorted(np.sort(values), low), np.searchsorted(np.sort(values), high, side="right")
    missed = np.maximum(0, np.maximum(below - q * values.size, q * values.size - up_to))
    assert (missed > stated).sum() <= stats.binom.isf(FALSE_ALARM, COPIES, 0.05)
    if name == "heaped" and q == 0.5:  # the median's bin is the one answer whose rank is not off by hundreds
        assert (np.abs(answers - 8) <= width).all()


def test_quantiles_of_units_with_several_rows_pass_replay():
    """A unit's rows move a score as far as its rows are many, and no further."""
    schema = dp.Schema(x=dp.Bounded(0, 10))

    def operation(units):
        frame = pl.DataFrame(
            {"u": np.repeat(units, 3), "x": np.tile([8.0, 8.0, 1.0], len(units))},
            schema={"u": pl.Int64, "x": pl.Float64},
        )
        table = dp.table(frame, schema=schema, unit="u", max_rows_per_unit=2)
        return table.quantile("x", 0.9, bins=16).release(epsilon=1.0).value.to_dicts()

    assert replay(operation, list(range(5)), list(range(4))).error is None
    table = dp.table(pl.DataFrame({"u": [1], "x": [1.0]}), schema=schema, unit="u", max_rows_per_unit=2)
    assert dp.epsilon(table.median("x").operation(epsilon=1.0).event, delta=0) <= 1.0
    with pytest.raises(ValueError, match="A median or quantile takes at least epsilon = "):
        table.median("x").operation(epsilon=1e-10)
    with pytest.raises(ValueError, match="takes at most epsilon = 2048, but its share of the budget is 500000"):
        table.median("x").count().operation(epsilon=1e6)


@pytest.mark.parametrize("name", ["heaped", "two places", "spread", "empty"])
def test_the_stated_error_of_several_quantiles_is_kept(name):
    """Also where a heap is split between them; and they rise."""
    values, shares, copies = DATA[name], (0.1, 0.25, 0.5, 0.75, 0.9), 20
    frame = pl.DataFrame({"k": np.repeat(np.arange(copies), values.size), "x": np.tile(values, copies)})
    table = dp.table(frame, schema=dp.Schema(k=dp.Categories(range(copies)), x=dp.Bounded(0, 1e5)))
    query = table.group_by("k").quantiles("x", shares)
    stated = float(query.explain(epsilon=10.0).errors["x_quantiles"].split()[6])
    answers, width = np.array(query.release(epsilon=10.0, rng=3).value["x_quantiles"].to_list()), 1e5 / 1024
    assert (np.diff(answers, axis=1) >= 0).all()
    below, up_to = (np.searchsorted(np.sort(values), answers + side * width / 2 + side * 1e-6) for side in (-1, 1))
    wanted = np.array(shares) * values.size
    missed = np.maximum(0, np.maximum(below - wanted, wanted - up_to)).max(axis=1)
    assert (missed > stated).sum() <= stats.binom.isf(FALSE_ALARM, copies, 0.05)


def test_quantiles_of_one_column_are_paid_for_together():
    """Asked for one by one or as a list, of one column they are one nested choice; of another, their own."""
    schema = dp.Schema(x=dp.Bounded(0, 10), y=dp.Bounded(0, 10))
    table = dp.table(pl.DataFrame({"x": np.linspace(0, 10, 500), "y": np.linspace(0, 10, 500)}), schema=schema)
    apart = table.quantile("x", 0.25).median("x").quantile("x", 0.75)
    assert apart.operation(epsilon=1.0).event == table.quantiles("x").operation(epsilon=1.0).event
    assert apart.operation(epsilon=1.0).event == dp.events.Exponential(epsilon=0.5 * (1 - 2.0**-50)) * 2
    found = apart.quantiles("x", [0.25, 0.9]).median("y").release(epsilon=1e3, rng=1).value.to_dicts()[0]
    assert found["x_quantiles"][0] == found["x_q0.25"]
    assert [round(found[name]) for name in ("x_q0.25", "x_median", "y_median")] == [2, 5, 5]
    twice = table.count().count(name="again").operation(epsilon=1.0)
    assert twice.event == table.count().operation(epsilon=1.0).event
    assert len({*twice.release(rng=1).value.row(0)}) == 1


def test_several_quantiles_of_units_with_several_rows_pass_replay():
    """A unit's rows may be on either side of a choice: what it pays on a level adds up to one choice."""
    schema = dp.Schema(x=dp.Bounded(0, 10))

    def operation(units):
        frame = pl.DataFrame(
            {"u": np.repeat(units, 3), "x": np.tile([9.0, 5.0, 1.0], len(units))},
            schema={"u": pl.Int64, "x": pl.Float64},
        )
        table = dp.table(frame, schema=schema, unit="u", max_rows_per_unit=3)
        return table.quantiles("x", [0.1, 0.5, 0.9], bins=16).release(epsilon=1.0)

    assert replay(operation, list(range(5)), list(range(4))).error is None
    assert replay(operation, [], [7]).error is None
    assert dp.epsilon(operation([1]).event, delta=0) <= 1.0


# --- what explain() prints -------------------------------------------------------------------------------------------

LOG = math.log(20)  # of 1/(1 - 0.95)


def by_rows(one, most):
    return ", ".join(f"±{min(one / n, most):.4g} at {n:,} rows" for n in (100, 1_000, 10_000))


@pytest.mark.parametrize("m", [1, 3])
def test_the_printed_errors_are_the_theorems(m):
    """At ε = 1/2, for units of one and of three rows: Laplace noise of scale 2m·Δ, a choice among a hundred bins."""
    schema = dp.Schema(x=dp.Bounded(0, 10), y=dp.Bounded(-100.5, 5), name=dp.Unlisted())
    frame = pl.DataFrame({"u": [1], "x": [1.5], "y": [2.5], "name": ["a"]})
    table = dp.table(frame, schema=schema, unit="u", max_rows_per_unit=m)
    # the least whole number that suffices
    count = math.ceil(2 * m * math.log(20 * 2 / (1 + math.exp(-1 / (2 * m)))) - 1)
    wanted = {
        "count": f"±{count}",
        "x_sum": f"±{20 * m * LOG:.4g}",
        "y_sum": f"±{201 * m * LOG:.4g}",
        "x_mean": by_rows(20 * m * LOG, 10),
        "y_mean": by_rows(211 * m * LOG, 105.5),
        "x_variance": by_rows(200 * m * LOG, 25),
        "x_median": f"rank off by at most {2 * m * math.log(2000):.4g} rows, and half a bin of 0.1",
        "x_q0.9": f"rank off by at most {3.6 * m * math.log(2000):.4g} rows, and half a bin of 0.1",
        "x_histogram": f"±{count} in each of 5 bins",
        "name_distinct": f"±{count}",
    }
    queries = [
        table.count(),
        table.sum("x"),
        table.sum("y"),
        table.mean("x"),
        table.mean("y"),
        table.variance("x"),
        table.median("x", bins=100),
        table.quantile("x", 0.9, bins=100),
        table.histogram("x", 5),
        table.count_distinct("name"),
    ]
    told = {name: error for query in queries for name, error in query.explain(epsilon=0.5).errors.items()}
    assert told == wanted


def test_a_group_that_noise_has_emptied_is_answered_with_the_middle():
    """No positive part, zero included: the middle of the bounds, half of the largest variance;
    otherwise what the parts say.
    """
    rows = dp.table(pl.DataFrame({"x": [1.5]}), schema=dp.Schema(x=dp.Bounded(2, 10))).count().rows
    nothing, signs = [[-3.0, -1.0], [0.0, 0.0]], [[-3.0, 1.0], [5.0, -5.0], [5.0, -1.0], [-1.0, 5.0]]
    assert Mean("x").estimate(rows, np.array([*nothing, *signs, [1.0, 3.0]])).tolist() == [6, 6, 2, 10, 10, 2, 4]
    parts = np.array([[-3.0, 0.0, -1.0], [0.0, 0.0, 0.0], [2.0, 2.0, 1.0], [1.0, 0.0, 1.0], [4.0, 0.0, 0.0]])
    assert Variance("x").estimate(rows, parts) == pytest.approx([8, 8, (2 / 5 - 9 / 25) * 64, 16, 0])


def test_a_million_bins_are_the_most():
    table = dp.table(pl.DataFrame({"x": [1.5]}), schema=dp.Schema(x=dp.Bounded(0, 1)))
    assert Histogram("x", 2**20).entries(table.count().rows) == 2**20
    with pytest.raises(ValueError, match=r"bins is 1,048,577, but may be 1,048,576 at most"):
        table.histogram("x", 2**20 + 1).operation(epsilon=1.0)
