"""Columns that hold nothing, or one thing, or too much: modelled as said, or refused before the charge."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet.schema import Bounded, Categories, Dates, Schema, Unlisted
from discreet.synthesis import TableSynthesizer
from tests.operations.contract import Log, SpyBook

SIZE = 3000


def drawn(data, schema, **facts):
    return TableSynthesizer(5.0, 1e-9, **facts).fit(data, schema=schema, rng=1).sample(400, rng=2)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (Bounded(0, 9), [None] * SIZE),
        (Bounded(0, 9, whole=True), [None] * SIZE),
        (Dates("2024-01-01", "2024-12-31"), [None] * SIZE),
        (Bounded(0, 9), [float("nan")] * SIZE),
    ],
)
def test_a_column_of_missing_values_is_drawn_missing(column, values):
    """But for what noise leaves in its other cells, a few rows in a hundred."""
    kind = pl.Date if isinstance(column, Dates) else pl.Float64
    frame = pl.DataFrame({"a": pl.Series(values, dtype=kind), "b": ["x", "y"] * (SIZE // 2)})
    rows = drawn(frame, Schema(a=column, b=Categories(["x", "y"])))
    assert rows["a"].null_count() > 0.9 * len(rows)
    assert (rows["b"] == "x").mean() == pytest.approx(0.5, abs=0.05)


def test_missing_categories_are_the_other_one_or_not_counted():
    table = {"a": ["p", None] * (SIZE // 2), "b": ["x", "y"] * (SIZE // 2)}
    listed = drawn(table, Schema(a=Categories(["p"], other="?"), b=Categories(["x", "y"])))
    assert (listed["a"] == "?").mean() == pytest.approx(0.5, abs=0.05)
    left_out = TableSynthesizer(5.0, 1e-9).fit(
        table, schema=Schema(a=Categories(["p"]), b=Categories(["x", "y"])), rng=1
    )
    assert left_out.model_.total == pytest.approx(SIZE / 2, rel=0.05)
    assert left_out.count({"b": "y"}) < 0.05 * SIZE  # every "y" was in a row that does not count


def test_one_category_is_constant():
    rows = drawn({"a": ["p"] * SIZE, "b": [3] * SIZE}, Schema(a=Categories(["p"]), b=Categories([3])))
    assert set(rows["a"]) == {"p"}
    assert set(rows["b"]) == {3}
    assert len(rows["a"]) == 400


def test_numbers_out_of_bounds_count_as_the_bounds():
    rows = drawn({"a": [1e9, -np.inf] * (SIZE // 2)}, Schema(a=Bounded(0, 50, missing=0, whole=True)))
    assert np.isin(rows["a"], [0, 50]).mean() > 0.95


@pytest.mark.parametrize(
    ("make", "data", "facts", "said"),
    [
        (lambda: Schema(a=Categories(range(2000))), {"a": [1]}, {"max_cells": 1000}, "more than max_cells=1,000 cells"),
        (lambda: Schema(a=Bounded(1, 1)), {"a": [1]}, {}, "low must be below high"),
        (lambda: Schema(a=Bounded(2, 1)), {"a": [1]}, {}, "low must be below high"),
        (lambda: Schema(a=Bounded(0.2, 0.8)), {"a": [1]}, {"whole": ["a"]}, "no whole number lies between its bounds"),
        (lambda: Schema(a=Bounded(0, float("inf"))), {"a": [1]}, {}, "high is inf"),
        (lambda: Schema(a=Unlisted()), {"a": [1]}, {}, "no bounded or categorical column"),
        (lambda: Schema(a=Bounded(0, 9), b=Bounded(0, 9)), {"b": [1]}, {}, "'a' is declared, but the data does not"),
        (
            lambda: Schema(a=Categories(["p"])),
            {"a": ["p"]},
            {"structural_zeros": {("a",): [("p",)]}},
            "nothing possible",
        ),
    ],
)
def test_what_holds_nothing_or_too_much_is_refused_before_the_charge(make, data, facts, said):
    log = Log()
    with pytest.raises(ValueError, match=said):
        TableSynthesizer(1.0, 1e-9, **facts).fit(data, schema=make(), book=SpyBook(log), rng=1)
    assert "charge" not in log


# --- whatever the frame ----------------------------------------------------------------------------------------------

ODD = ["'a,b'", '"q"', "line\nbreak", "ünï", "NA", "nan", "None", " sp ", "1"]
SCHEMA = Schema(
    age=Bounded(18, 90, whole=True),
    active=Categories([False, True]),
    text=Categories(ODD),
    when=Dates("2024-01-01", "2024-12-31"),
    price=Bounded(0, 1000),
    same=Categories([7]),
)


def odd_frame():
    draw = np.random.default_rng(0)
    price = np.round(np.exp(draw.normal(3, 1, SIZE)), 2).clip(0, 1000)
    return pd.DataFrame(
        {
            "price": np.where(draw.random(SIZE) < 0.3, np.nan, price),
            "age": pd.array(np.where(draw.random(SIZE) < 0.2, None, draw.integers(18, 90, SIZE)), dtype="Int64"),
            "text": draw.choice(ODD, SIZE),
            "active": draw.random(SIZE) < 0.3,
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(draw.integers(0, 366, SIZE), unit="D"),
            "same": 7,
        }
    )


def test_the_same_rows_come_back_from_every_kind_of_frame(tmp_path):
    """In the data's order, with missing shares, booleans, days, and texts that need quotes or look like others."""
    frame = odd_frame()
    frame.to_csv(tmp_path / "a.csv", index=False)
    pl.from_pandas(frame).write_parquet(tmp_path / "a.parquet")
    synth = TableSynthesizer(5.0, 1e-9, workload=2)
    every = {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "arrow": pl.from_pandas(frame).to_arrow(),
        "csv": tmp_path / "a.csv",
        "parquet": tmp_path / "a.parquet",
    }
    rows = {kind: synth.fit(data, schema=SCHEMA, rng=1).sample(1000, rng=2) for kind, data in every.items()}
    plain = {kind: found if isinstance(found, pl.DataFrame) else pl.DataFrame(found) for kind, found in rows.items()}
    first = plain["polars"]
    assert first.columns == list(frame.columns)
    assert first.dtypes == [pl.Float64, pl.Int64, pl.String, pl.Boolean, pl.Date, pl.Int64]
    assert first["age"].null_count() == pytest.approx(200, abs=30)
    assert first["price"].null_count() == pytest.approx(300, abs=30)
    assert set(first["text"]) == set(ODD)
    for kind in ("arrow", "csv", "parquet", "pandas"):
        found = plain[kind].with_columns(pl.col("when").cast(pl.Date), pl.col("price").fill_nan(None))
        assert found.equals(first), kind
    first.write_csv(tmp_path / "drawn.csv")
    again = pl.read_csv(tmp_path / "drawn.csv", try_parse_dates=True, schema_overrides={"text": pl.String})
    assert again.equals(first)
