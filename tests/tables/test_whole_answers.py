"""What can only be a whole number is one, as plain DuckDB's types say; the ends of its interval are too."""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pytest

from discreet import Bounded, Categories, Dates, Schema, Unlisted, table

ROWS = pl.DataFrame(
    {"age": [30, 41, 52] * 500, "flag": [0, 1, 1] * 500, "share": [0.25, 0.5, 1.0] * 500, "sex": ["f", "m", "f"] * 500}
).with_columns(day=pl.date(2024, 1, pl.col("age") - 29))
SCHEMA = Schema(
    age=Bounded(0, 99, whole=True),
    flag=Categories([0, 1]),
    share=Bounded(0, 1),
    sex=Categories(["f", "m"]),
    day=Dates("2024-01-01", "2024-01-31"),
)
SHOWN = [
    "SUM(age)",
    "SUM(flag)",
    "SUM(CASE WHEN age > 40 THEN 1 ELSE 0 END)",
    "SUM(CASE WHEN age > 40 THEN age END)",
    "SUM(age * 2)",
    "SUM(ABS(age - 50))",
    "SUM(LEAST(age, 35))",
    "SUM(CAST(share AS INTEGER))",
    "SUM(age // 7)",
    "SUM(month(day))",
    "SUM(date_diff('day', DATE '2024-01-01', day))",
    "SUM(LENGTH(sex))",
    "SUM(share)",
    "SUM(age / 2)",
    "SUM(age + share)",
    "AVG(age)",
]
COMPUTED = [
    "COUNT(*) * 2",
    "-COUNT(*)",
    "COUNT(*) // 7",
    "COUNT(*) % 7",
    "CASE WHEN COUNT(*) > 9 THEN COUNT(*) ELSE 0 END",
    "CASE WHEN COUNT(*) > 900 THEN COUNT(*) END",
    "CASE WHEN COUNT(*) > 10000 THEN COUNT(*) END",
    "NULLIF(COUNT(*), 0)",
    "COALESCE(SUM(age), 0) + COUNT(*)",
    "GREATEST(COUNT(*), SUM(flag))",
    "CAST(AVG(age) AS INTEGER)",
    "SUM(COUNT(*)) OVER ()",
    "1",
    "COUNT(*) / 2",
    "COUNT(*) + 0.5",
    "SUM(age) / COUNT(*)",
    "COUNT(*) > 5",
    "'all'",
]


def is_whole(kind: Any) -> bool:
    return str(kind) in ("TINYINT", "INTEGER", "BIGINT", "HUGEINT")


@pytest.mark.parametrize("what", SHOWN)
def test_a_sum_has_the_type_of_plain_duckdbs(what: str) -> None:
    people, query = ROWS, f"SELECT {what} AS s FROM people"  # noqa: F841
    answer, truth = table(ROWS, schema=SCHEMA).sql(query, epsilon=1e6, errors=True).value, duckdb.sql(query)
    assert [kind.is_integer() for kind in answer.schema.dtypes()] == [is_whole(truth.types[0])] * 3
    assert answer["s"][0] == pytest.approx(float(truth.fetchall()[0][0]), rel=1e-6)
    assert answer["s_low"][0] <= answer["s"][0] <= answer["s_high"][0]


@pytest.mark.parametrize("pandas", [False, True])
@pytest.mark.parametrize("what", COMPUTED)
def test_what_is_computed_of_whole_answers_is_whole(what: str, pandas: bool) -> None:
    people, query = ROWS, f"SELECT sex, {what} AS s, COUNT(*) AS n FROM people GROUP BY sex ORDER BY sex"  # noqa: F841
    rows = ROWS.to_pandas() if pandas else ROWS
    answer, truth = table(rows, schema=SCHEMA).sql(query, epsilon=1e6).value, duckdb.sql(query)
    shown = pl.from_pandas(answer) if pandas else answer
    expected = [row[1] for row in truth.fetchall()]
    assert shown["s"].dtype.is_integer() == is_whole(truth.types[1])
    for value, other in zip(shown["s"].to_list(), expected, strict=True):
        exact = isinstance(other, (str, bool, type(None)))
        assert value == (other if exact else pytest.approx(float(other), rel=1e-4))


def test_intervals_are_rounded_outward() -> None:
    """Of noise that is no whole number: the ends are whole, and as far apart at least."""
    asked = table(ROWS, schema=SCHEMA).sql("SELECT SUM(age // 7) AS s FROM people", epsilon=0.01, errors=True, rng=3)
    (s, low, high), error = asked.value.row(0), float(str((asked.error or {})["s"]).removeprefix("±"))
    assert all(isinstance(value, int) for value in (s, low, high))
    assert s - low >= error - 1
    assert high - s >= error - 1
    assert high - low >= 2 * error * (1 - 1e-3)


@pytest.mark.parametrize("pandas", [False, True])
def test_a_truth_value_stays_one_in_an_answer_without_rows(pandas: bool) -> None:
    rows = ROWS.with_columns(minor=pl.col("age") < 18)
    opened = table(rows.to_pandas() if pandas else rows, schema=Schema(minor=Categories([False, True])))
    answer = opened.sql("SELECT minor, COUNT(*) AS n FROM t GROUP BY minor HAVING COUNT(*) > 10000", epsilon=1e6).value
    assert list(map(str, answer.dtypes)) == (["bool", "int64"] if pandas else ["Boolean", "Int64"])


@pytest.mark.parametrize(("low", "high", "bins"), [(0, 99, 1024), (20, 60, 41), (20, 60, 16), (-7, 60_000, 1024)])
def test_quantiles_of_whole_numbers_are_whole_and_inside_the_bounds(low, high, bins):
    asked = table(ROWS, schema=Schema(age=Bounded(low, high, whole=True))).quantile("age", 0.5, bins=bins)
    wide = -(-(high - low + 1) // bins)
    answers = [asked.release(epsilon=epsilon, rng=seed).value.item() for epsilon in (1e-3, 100) for seed in range(20)]
    assert all(answer.is_integer() and low <= answer <= high for answer in answers)
    assert all(abs(answer - 41) <= wide / 2 for answer in answers[20:])  # at epsilon = 100 the right bin
    said = asked.explain(epsilon=1).errors["age_median"]
    assert ("half a bin" in said) == (wide > 1)


def test_quantiles_of_what_is_not_whole_keep_their_decimals():
    asked = table(ROWS, schema=Schema(age=Bounded(0, 99), share=Bounded(0, 1)))
    assert not asked.median("age").release(epsilon=100, rng=1).value.item().is_integer()
    assert not asked.median("share").release(epsilon=100, rng=1).value.item().is_integer()


@pytest.mark.parametrize("answers", ["polars", "pandas"])
@pytest.mark.parametrize("cut", ["LIMIT 5 OFFSET 9", "HAVING COUNT(*) < -1e9"])
def test_an_answer_without_rows_keeps_its_types(answers, cut):
    """Those of the same answer with rows, intervals included."""
    people = table(ROWS if answers == "polars" else ROWS.to_pandas(), schema=SCHEMA)
    query = "SELECT sex, AVG(age), COUNT(*), COUNT(*) > 3 AS many, QUANTILE_CONT(age, [0.1, 0.9]) FROM t GROUP BY sex"
    full, empty = (people.sql(f"{query} {end}", epsilon=1e3, errors=True).value for end in ("", cut))
    assert len(empty) == 0 < len(full)
    assert list(empty.columns) == list(full.columns)
    assert list(empty.dtypes) == list(full.dtypes)


def test_an_answer_without_rows_has_the_types_of_its_private_keys(tmp_path):
    """Where no key is frequent enough to be shown, columns have DuckDB's types, to be stacked with others.

    A file says its types; that of a frame may be one record's doing, so that its keys are text, whatever they hold.
    """
    rows = pl.DataFrame({"zip": ["a", "b"], "code": [7, 8], "age": [30, 40]})
    rows.write_parquet(tmp_path / "rows.parquet")
    declared = Schema(zip=Unlisted(), code=Unlisted(), age=Bounded(0, 99))
    query = "SELECT zip AS place, code, COUNT(*) AS n, AVG(age) AS mean FROM t GROUP BY zip, code"
    for source, code in ((tmp_path / "rows.parquet", pl.Int64), (rows, pl.String)):
        asked = table(str(source) if code == pl.Int64 else source, schema=declared, threads=1)
        told = asked.sql(query, epsilon=1, delta=1e-9).value
        assert told.schema == {"place": pl.String, "code": code, "n": pl.Int64, "mean": pl.Float64}
        assert not len(told)
        assert asked.group_by("zip").count().release(epsilon=1, delta=1e-9).value.schema["zip"] == pl.String
