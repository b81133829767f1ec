"""Answers are right: next to exact ones with negligible noise, unbiased, with the promised error, from every source."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet.datasets import data_folder
from discreet.tables import col

ROOT = Path(__file__).resolve().parents[2]
DATA = data_folder()
PUMS = DATA / "pums" / "FultonPUMS5full.csv.gz"
SHARP = {"epsilon": 1000.0, "rng": 1}  # noise small enough to compare answers with exact ones
SCHEMA = dp.Schema(educ=dp.Categories([1, 2, 3]), sex=dp.Categories(["f", "m"]), x=dp.Bounded(0, 100), id=dp.Unlisted())


def people(n=3000):
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "educ": rng.integers(1, 4, n),
            "sex": rng.choice(["f", "m"], n),
            "x": rng.gamma(4.0, 12.0, n),
            "id": np.arange(n),
        }
    )


def test_the_contract_runs_as_written(tmp_path):
    """The lines of the design."""

    class Book:
        charged = ()

        def charge(self, event, label="", *, unit="one record", reproducible=False):
            self.charged += ((event, label),)

    book = Book()
    frame = people().rename(columns={"x": "income", "id": "person_id"})
    frame.to_parquet(tmp_path / "people.parquet")
    people_ = dp.table(
        str(tmp_path / "people.parquet"),
        schema=dp.Schema(educ=dp.Categories(range(1, 17)), income=dp.Bounded(0, 200_000)),
        unit="person_id",
    )
    r = people_.group_by("educ").mean("income").release(epsilon=1.0, book=book)
    assert isinstance(r.value, pl.DataFrame)
    assert r.value["educ"].to_list() == list(range(1, 17))
    assert book.charged == ((r.event, "income_mean by educ"),)
    assert dp.epsilon(r.event, delta=0) <= 1.0
    s = people_.sql("SELECT educ, AVG(income) FROM people GROUP BY educ", epsilon=1.0)
    assert s.event == r.event
    assert not s.reproducible


# --- sources ---------------------------------------------------------------------------------------------------------


def sources(frame, folder):
    """The same rows in every form."""
    frame.to_parquet(folder / "a.parquet")
    frame.head(1000).to_parquet(folder / "part1.parquet")
    frame.tail(-1000).to_parquet(folder / "part2.parquet")
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_csv(folder / "a.tsv.gz", index=False, sep="\t")
    return {
        "parquet": folder / "a.parquet",
        "glob": str(folder / "part*.parquet"),
        "csv": str(folder / "a.csv"),
        "tsv": folder / "a.tsv.gz",
        "pandas": frame,
        "objects": frame.astype(object),
        "polars": pl.from_pandas(frame),
        "lazy": pl.from_pandas(frame).lazy(),
        "categorical": pl.from_pandas(frame).with_columns(pl.col("sex").cast(pl.Categorical)),
        "pyarrow": pa.Table.from_pandas(frame),
        "relation": duckdb.connect().from_arrow(pa.Table.from_pandas(frame)),
    }


def test_every_source_gives_the_same_answer(tmp_path):
    """Under one seed, with and without units, to the last bit; pandas for pandas, otherwise polars."""

    def ask(source, **unit):
        q = (
            dp.table(source, schema=SCHEMA, **unit)
            .filter(col("x") < 90)
            .group_by("sex", "educ")
            .mean("x")
            .count()
            .median("x")
        )
        return q.release(epsilon=1.0, rng=3).value

    frame = people()
    frame["id"] = frame["id"] // 2
    for unit in ({}, {"unit": "id"}):
        expected: dict = {}
        for name, source in sources(frame, tmp_path).items():
            found = ask(source, **unit)
            assert isinstance(found, pd.DataFrame if name in ("pandas", "objects") else pl.DataFrame)
            rows = found.to_dict("list") if isinstance(found, pd.DataFrame) else found.to_dict(as_series=False)
            # identifiers are text in files of text and in pandas, so other rows are kept than where they are numbers
            read = {"csv": "text", "tsv": "text", "pandas": "classes", "objects": "classes"}
            assert rows == expected.setdefault(read.get(name) if unit else None, rows), name


# --- aggregates ------------------------------------------------------------------------------------------------------


def test_every_aggregate_is_close_to_the_truth():
    """With hardly any noise the answers are those of pandas, on clipped values."""
    frame = people()
    frame.loc[::50, "x"] = np.nan
    clipped = frame.assign(x=frame.x.clip(0, 100))
    q = (
        dp.table(frame, schema=SCHEMA)
        .group_by("educ")
        .count()
        .count("x")
        .sum("x")
        .mean("x")
        .variance("x")
        .median("x", bins=4096)
        .quantile("x", 0.9, bins=4096)
        .histogram("x", [0, 20, 50, 100])
        .count_distinct("id")
    )
    found = q.release(**SHARP).value.set_index("educ")
    groups = clipped.groupby("educ").x
    assert (found["count"] == clipped.groupby("educ").size()).all()
    assert (found["x_count"] == groups.count()).all()
    assert (found["id_distinct"] == clipped.groupby("educ").id.nunique()).all()
    np.testing.assert_allclose(found["x_sum"], groups.sum(), atol=20)
    np.testing.assert_allclose(found["x_mean"], groups.mean(), atol=0.02)
    np.testing.assert_allclose(found["x_variance"], groups.var(ddof=0), rtol=0.01)
    np.testing.assert_allclose(found["x_median"], groups.median(), atol=0.3)
    np.testing.assert_allclose(found["x_q0.9"], groups.quantile(0.9), atol=0.6)
    for educ, counts in found["x_histogram"].items():
        assert counts == np.histogram(clipped[clipped.educ == educ].x.dropna(), [0, 20, 50, 100])[0].tolist()


def test_a_table_is_its_own_group():
    """Without group_by the answer has one row."""
    found = dp.table(people(), schema=SCHEMA).mean("x").count().release(**SHARP).value
    assert found["count"].tolist() == [3000]


def test_derived_columns_and_filters_follow_arithmetic():
    """Against the same computation in pandas; quotients by zero are missing."""
    frame = people()
    frame.loc[:10, "x"] = 0.0
    table = dp.table(frame, schema=SCHEMA).filter((col("educ") != 2) | (col("sex") == "f"))
    derived = table.derive(share=(1 / col("x")).clip(0, 1), tall=col("x") > 50, root=col("x").sqrt() + 1)
    found = derived.mean("share").sum("tall").mean("root").release(**SHARP).value
    kept = frame[(frame.educ != 2) | (frame.sex == "f")].assign(x=frame.x.clip(0, 100))
    assert found["share_mean"][0] == pytest.approx((1 / kept.x[kept.x > 0]).clip(0, 1).mean(), abs=1e-4)
    assert found["tall_sum"][0] == pytest.approx((kept.x > 50).sum(), abs=1)
    assert found["root_mean"][0] == pytest.approx((kept.x**0.5 + 1).mean(), abs=1e-3)


# --- error -----------------------------------------------------------------------------------------------------------


def pair_error(shares, sizes, epsilon):
    """Mean absolute error of the joint pair, to first order: E|(1-p)·a - p·b|/n for Laplace a, b of scale 1/ε."""
    worst = np.maximum(1 - shares, shares)
    least = np.minimum(1 - shares, shares)
    # E|c·a + d·b| for independent Laplace a, b of scale 1: (c² + cd + d²)/(c + d), and here c + d = 1
    return (worst**2 + worst * least + least**2) / (sizes * epsilon)


def test_the_mean_of_groups_has_the_error_of_the_joint_pair():
    """On synthetic incomes of 16 groups: as good as theory says,
    and well below what a noisy sum over a noisy count gives.
    """
    rng = np.random.default_rng(0)
    sizes = rng.integers(200, 3000, 16)
    educ = np.repeat(np.arange(1, 17), sizes)
    frame = pd.DataFrame({"educ": educ, "income": rng.gamma(2.0, 9_000 * np.log2(educ + 2))})
    truth = frame.assign(income=frame.income.clip(0, 200_000)).groupby("educ").income.mean().to_numpy()
    table = dp.table(frame, schema=dp.Schema(educ=dp.Categories(range(1, 17)), income=dp.Bounded(0, 200_000)))
    errors = np.array(
        [
            np.abs(table.group_by("educ").mean("income").release(epsilon=1.0, rng=seed).value["income_mean"] - truth)
            for seed in range(60)
        ]
    )
    expected = 200_000 * pair_error(truth / 200_000, sizes, 1.0)
    # an absolute value of Laplace noise has a deviation of about its mean: 60 runs of 16 groups
    spread = 6 * np.sqrt((expected**2).sum() / 60) / 16
    assert abs(errors.mean() - expected.mean()) < spread
    assert not abs(errors.mean() - 1.3 * expected.mean()) < spread


@pytest.mark.slow(sibling="test_the_mean_of_groups_has_the_error_of_the_joint_pair")
@pytest.mark.skipif(not PUMS.exists(), reason="the PUMS file is not here: set DISCREET_DATA to the folder of real data")
def test_mean_income_by_education_is_five_lines_and_precise():
    """Fulton County, ε = 1: mean absolute error over 200 runs at most $345."""
    people = dp.table(PUMS, schema=dp.Schema(educ=dp.Categories(range(1, 17)), income=dp.Bounded(0, 200_000)))
    query = people.group_by("educ").mean("income")
    frame = pd.read_csv(PUMS)
    truth = frame.assign(income=frame.income.clip(0, 200_000)).groupby("educ").income.mean().to_numpy()
    answers = np.array([query.release(epsilon=1.0, rng=seed).value["income_mean"].to_list() for seed in range(200)])
    assert np.abs(answers - truth).mean() <= 345


# --- cost ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "budget", [{"epsilon": 0.7}, {"epsilon": 0.7, "delta": 1e-6}, {"epsilon": 0.7, "delta": 1e-6, "noise": "gaussian"}]
)
def test_several_aggregates_cost_what_was_asked(budget):
    """One charge for all, never above the request."""
    q = dp.table(people(), schema=SCHEMA).group_by("educ").count().mean("x").median("x").histogram("x")
    assert dp.epsilon(q.operation(**budget).event, delta=budget.get("delta", 0)) <= 0.7


def test_rho_is_never_exceeded():
    from discreet.accounting.zcdp import rho

    q = dp.table(people(), schema=SCHEMA).group_by("educ").count().mean("x").median("x")
    assert 0.0999 < rho(q.operation(rho=0.1).event) <= 0.1


def test_many_aggregates_with_a_delta_use_gaussian_noise_and_few_use_laplace():
    """Whichever has the smaller deviation, from public facts."""
    others = {f"m{number}": dp.tables.col("x") + number for number in range(60)}
    q = dp.table(people(), schema=SCHEMA).derive(**others).group_by("educ")
    few, many = q.mean("x"), q
    for name in others:
        many = many.mean(name)
    kinds = [{type(leaf).__name__ for leaf in dp.events.leaves(q.operation(1.0, 1e-6).event)} for q in (few, many)]
    assert kinds == [{"Laplace"}, {"Gaussian"}]


def test_a_refused_charge_reads_nothing(monkeypatch):
    """The book comes first: the engine has planned the scan, and is never asked for a row."""

    class Full:
        def charge(self, event, label="", *, unit="one record", reproducible=False):
            raise dp.BudgetExceeded("no")

    def read(*asked):
        raise AssertionError("rows were read")

    q = dp.table(pd.DataFrame({"x": [0.5]}), schema=dp.Schema(x=dp.Bounded(0, 1))).mean("x")
    monkeypatch.setattr(q.rows.source.engine, "fetch", read)
    with pytest.raises(dp.BudgetExceeded):
        q.release(epsilon=1.0, book=Full())
    with pytest.raises(dp.DiscreetError, match="AssertionError"):
        q.release(epsilon=1.0)


def test_explain_shows_plan_cost_and_error_before_spending():
    """Without reading: the text is a function of public facts."""
    table = dp.table(people(), schema=SCHEMA, unit="id", max_rows_per_unit=2)
    q = table.filter(col("x") > 1).group_by("educ").mean("x").count()
    told = q.explain(epsilon=1.0)
    assert told.event == q.operation(epsilon=1.0).event
    for part in (
        "'id', of which at most 2 count",
        "by educ (3 public)",
        "1 filter",
        "Laplace(noise_multiplier=2)",
        "x_mean: ±",
        "at 1,000 rows",
        "count: ±",
    ):
        assert part in str(told)
    error = float(told.errors["count"].lstrip("±"))
    # of whole noise: a whole number
    assert error == math.ceil(2 * 2 / 1.0 * math.log(20 * 2 / (1 + math.exp(-1 / 4))) - 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: t.group_by("educ").release(epsilon=1.0), "no aggregate"),
        (lambda t: t.mean("x").release(), "exactly one of epsilon"),
        (lambda t: t.mean("x").release(epsilon=1.0, rho=1.0), "exactly one of epsilon"),
        (lambda t: t.mean("x").release(epsilon=-1.0), "epsilon is -1.0"),
        (lambda t: t.mean("x").release(epsilon=1.0, delta=1.5), "delta is 1.5"),
        (lambda t: t.mean("x").release(rho=1.0, delta=1e-6), "delta given with rho"),
        (lambda t: t.mean("x").release(epsilon=1.0, noise="gaussian"), "needs delta= or rho="),
        (lambda t: t.mean("x").release(epsilon=1.0, noise="cauchy"), "noise is 'cauchy'"),
        (lambda t: t.mean("sex"), "needs Bounded"),
        (lambda t: t.mean("height"), "'height' is not declared"),
        (lambda t: t.group_by("x"), "'x' is Bounded, but keys are"),
        (lambda t: t.group_by("educ", "educ"), "twice"),
        (lambda t: t.count_distinct("x"), "count_distinct needs"),
        (lambda t: t.quantile("x", 1.5), "q is 1.5"),
        (lambda t: t.histogram("x", [3, 2]), "edges that rise"),
        (lambda t: t.histogram("x", True), "bins is True"),
        (lambda t: t.median("x", bins=10**9), "bins is 1,000,000,000, but may be 1,048,576 at most"),
        (lambda t: t.histogram("x", [0, 1000]), "bins is 1000"),
        (lambda t: t.mean("x").mean("x"), "Two columns of the answer are called 'x_mean'"),
        (lambda t: t.select("educ").mean("x"), "left out by select"),
        (lambda t: t.group_by("id").count().release(epsilon=1.0), "which needs one"),
        (lambda t: t.group_by("id").count().release(rho=1.0), "delta is missing"),
        (lambda t: t.derive(x=col("x")), "There is a column 'x' already"),
        (lambda t: t.derive(z=3), "is no expression"),
        (lambda t: t.derive(z=1 / col("x")), r"end the expression with .clip\(low, high\)"),
        (lambda t: t.filter(col("x")), "A value stands where a condition"),
        (lambda t: t.filter(True), "takes conditions"),
        (lambda t: t.filter(col("sex") > 1), "'sex' is text"),
        (lambda t: t.filter(col("sex") == "x"), "'x' is not among the Categories of 'sex'"),
        (lambda t: t.filter(col("id") == 3), "'id' is Unlisted"),
        (lambda t: t.filter(col("x") == "f"), "not a column of text Categories"),
    ],
)
def test_what_makes_no_sense_is_refused_before_data_is_read(make, message):
    """Each with what to do instead."""
    with pytest.raises(ValueError, match=message):
        make(dp.table(people(10), schema=SCHEMA))


def test_python_logic_on_expressions_is_refused():
    """``and`` would silently drop a condition."""
    with pytest.raises(TypeError, match="write & for and"):
        (col("x") > 1) and (col("x") < 2)
