"""The groups that an answer lists are those that plain DuckDB lists: what WHERE excludes by public facts is not there,
and NULL is a group where a look-up or a CASE may give nothing."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet import Bounded, Categories, Dates, Schema, table
from discreet.tables import col
from discreet.tables.conditions import Compare, IsIn, Logic
from discreet.tables.nodes import Column, Number
from discreet.tables.possible_groups import truths_of
from searches._query_answers import unlike_kinds

SCHEMA = Schema(
    ward=Categories(["A", "B", "C", "D"]),
    sex=Categories(["f", "m"]),
    age=Bounded(0, 99, whole=True),
    height=Bounded(100.0, 200.0),
    day=Dates("2024-01-01", "2024-12-31"),
    educ=Categories(range(1, 6)),
)
WARDS = pl.DataFrame({"ward": ["A", "B", "D"], "region": ["north", "south", "south"], "beds": [10, 20, 20]})


def people(size: int = 3_000) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    first = dt.date(2024, 1, 1)
    return pl.DataFrame(
        {
            "ward": rng.choice(["A", "B", "C", "D"], size),
            "sex": rng.choice(["f", "m"], size),
            "age": rng.integers(0, 100, size),
            "height": rng.uniform(100, 200, size),
            "day": [first + dt.timedelta(int(days)) for days in rng.integers(0, 366, size)],
            "educ": rng.integers(1, 6, size),
        }
    )


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    return people()


QUERIES = [
    "SELECT ward, COUNT(*) FROM t WHERE ward IN ('A', 'B') GROUP BY ward",
    "SELECT ward, COUNT(*) FROM t WHERE ward = 'C' GROUP BY ward",
    "SELECT ward, COUNT(*) FROM t WHERE ward <> 'B' GROUP BY ward",
    "SELECT ward, COUNT(*) FROM t WHERE NOT (ward = 'B' OR ward = 'A') GROUP BY ward",
    "SELECT ward, COUNT(*) FROM t WHERE ward LIKE 'B%' AND age > 10 GROUP BY ward",
    "SELECT ward, COUNT(*) FROM t WHERE UPPER(ward) = 'A' OR ward = 'D' GROUP BY ward",
    "SELECT ward, COUNT(*) FROM t WHERE ward = 'A' OR age < 50 GROUP BY ward",
    "SELECT ward, sex, COUNT(*) FROM t WHERE ward = 'A' OR sex = 'f' GROUP BY ward, sex",
    "SELECT educ, COUNT(*) FROM t WHERE educ BETWEEN 2 AND 3 GROUP BY educ",
    "SELECT educ, COUNT(*) FROM t WHERE educ > 3 GROUP BY ROLLUP (educ)",
    "SELECT educ % 2 AS odd, COUNT(*) FROM t WHERE educ IN (1, 3) GROUP BY odd",
    "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) FROM t WHERE day >= '2024-03-05' AND day < '2024-07-01' GROUP BY m",
    "SELECT MONTH(day) AS m, COUNT(*) FROM t WHERE MONTH(day) IN (2, 3) GROUP BY m",
    "SELECT FLOOR(age / 10) * 10 AS b, COUNT(*) FROM t WHERE age >= 30 AND age < 60 GROUP BY b",
    "SELECT FLOOR(height / 10) AS b, COUNT(*) FROM t WHERE 130 <= height AND height < 150 GROUP BY b",
    "SELECT age >= 18 AS adult, COUNT(*) FROM t WHERE age >= 20 GROUP BY adult",
    "SELECT CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END AS b, COUNT(*) FROM t WHERE age < 18 GROUP BY b",
    "SELECT CASE WHEN ward IN ('A', 'B') THEN 'x' ELSE 'y' END AS b, COUNT(*) FROM t WHERE ward = 'A' GROUP BY b",
    "SELECT b, COUNT(*) FROM (SELECT LOWER(ward) AS b FROM t) WHERE b = 'a' GROUP BY b",
    "SELECT ward, COUNT(*) FROM t GROUP BY ward HAVING ward IN ('A', 'B')",
    "SELECT ward, region, COUNT(*) FROM t JOIN w USING (ward) GROUP BY ward, region",
    "SELECT region, COUNT(*) FROM t JOIN w USING (ward) WHERE ward <> 'A' GROUP BY region",
    "SELECT region, COUNT(*) FROM t JOIN w USING (ward) WHERE region = 'south' GROUP BY region",
    "SELECT region, COUNT(*) FROM t LEFT JOIN w USING (ward) GROUP BY region",
    "SELECT beds, COUNT(*) FROM t LEFT JOIN w USING (ward) GROUP BY beds",
    "SELECT ward, region, COUNT(*) FROM t LEFT JOIN w USING (ward) GROUP BY ward, region",
    "SELECT region, COUNT(*) FROM t LEFT JOIN w USING (ward) WHERE ward <> 'C' GROUP BY region",
    "SELECT region, COUNT(*) FROM t LEFT JOIN w USING (ward) WHERE region IS NULL GROUP BY region",
    "SELECT region, COUNT(*) FROM t LEFT JOIN w USING (ward) WHERE region IS NOT NULL GROUP BY region",
    "SELECT COALESCE(region, 'none') AS r, COUNT(*) FROM t LEFT JOIN w USING (ward) GROUP BY r",
    "SELECT CASE WHEN age < 18 THEN 'minor' END AS b, COUNT(*) FROM t GROUP BY b",
    "SELECT NULLIF(ward, 'A') AS b, COUNT(*) FROM t GROUP BY b",
]


def by_key(found: list[tuple[Any, ...]]) -> dict[Any, int]:
    """Counts by their keys; days and times at midnight alike, and 3.0 as 3."""
    return {tuple(str(part).removesuffix(".0").removesuffix(" 00:00:00") for part in key): n for *key, n in found}


@pytest.mark.parametrize("query", QUERIES)
def test_the_groups_are_those_of_plain_duckdb(query: str, rows: pl.DataFrame) -> None:
    t, w = rows, WARDS  # noqa: F841
    answer = table(rows, schema=SCHEMA).sql(query, epsilon=1e6, public={"w": WARDS}).value
    truth = duckdb.sql(query)
    assert by_key(answer.rows()) == by_key(truth.fetchall())
    assert [name for name in answer.columns if name.isidentifier()][:-1] == [
        name for name in truth.columns[:-1] if name.isidentifier()
    ]
    assert unlike_kinds(answer, truth.types) == ""


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "csv"])
@pytest.mark.parametrize("unit", [None, "person"])
def test_every_container_and_unit_lists_the_same_groups(kind: str, unit: str | None, tmp_path: Any) -> None:
    rows = people(200).with_row_index("person")
    rows.write_csv(tmp_path / "t.csv")
    source: Any = {
        "pandas": rows.to_pandas(),
        "polars": rows,
        "arrow": rows.to_arrow(),
        "csv": str(tmp_path / "t.csv"),
    }[kind]
    opened = table(source, schema=SCHEMA, unit=unit, **({"max_rows_per_unit": 1} if unit else {}))
    looked = opened.filter(col("ward").is_in(["A", "B"])).group_by("ward").count().release(epsilon=1e6).value
    assert list(looked["ward"]) == ["A", "B"]
    query = "SELECT region, COUNT(*) AS n FROM t LEFT JOIN w USING (ward) GROUP BY region"
    answer = opened.sql(query, epsilon=1e6, public={"w": WARDS}).value
    counted = {None if pd.isna(region) else region: n for region, n in zip(answer["region"], answer["n"], strict=True)}
    t, w = rows, WARDS  # noqa: F841
    assert counted == dict(duckdb.sql(query).fetchall())


def test_a_group_that_gathers_others_is_not_listed_where_only_a_declared_value_meets_the_condition() -> None:
    rows = pl.DataFrame({"ward": ["A"] * 5 + ["B"] * 7 + ["Z"] * 9})
    opened = table(rows, schema=Schema(ward=Categories(["A", "B"], other="else")))
    some = opened.filter(col("ward") == "A").group_by("ward").count().release(epsilon=1e6).value
    assert some.rows() == [("A", 5)]
    assert opened.group_by("ward").count().release(epsilon=1e6).value.rows() == [("A", 5), ("B", 7), ("else", 9)]
    rest = opened.filter(col("ward").is_missing()).group_by("ward").count().release(epsilon=1e6).value
    assert rest.rows() == [("else", 9)]


@pytest.mark.parametrize("condition", ["ward = 'A' AND ward = 'B'", "age > 200", "educ = 9"])
def test_an_answer_that_publicly_has_no_rows_is_refused_before_the_charge(condition: str, rows: pl.DataFrame) -> None:
    asked = table(rows, schema=SCHEMA).parse(f"SELECT ward, COUNT(*) FROM t WHERE {condition} GROUP BY ward")
    with pytest.raises(ValueError, match="No group can meet the conditions"):
        asked.operation(epsilon=1.0)


@pytest.mark.parametrize(("at", "band"), [(0.0, 0), (100.0, 4)])
def test_a_single_number_that_is_left_has_a_group(at: float, band: int) -> None:
    opened = table(pl.DataFrame({"x": [at] * 9}), schema=Schema(x=Bounded(0, 100)))
    query = f"SELECT FLOOR(x / 25) AS b, COUNT(*) AS n FROM t WHERE x = {at} GROUP BY b"
    assert opened.sql(query, epsilon=1e6).value.rows() == [(band, 9)]


def test_explain_counts_the_groups_that_are_listed(rows: pl.DataFrame) -> None:
    asked = table(rows, schema=SCHEMA).filter(col("educ") > 3).group_by("ward", "educ").count()
    assert "(8 public)" in str(asked.explain(epsilon=1.0))


@pytest.mark.parametrize("age", [None, 7, 20])
@pytest.mark.parametrize("sex", [None, "f", "m"])
@pytest.mark.parametrize("sign", ["&", "|"])
def test_what_a_condition_may_be_holds_what_it_is(age: int | None, sex: str | None, sign: str) -> None:
    parts = (Compare("<", Column("age"), Number(18.0)), Logic("~", (IsIn(Column("sex"), ("f",)),)))
    condition, row = Logic(sign, parts), {"age": age, "sex": sex}
    for known in (["age"], ["sex"], [], ["age", "sex"]):
        may_be = truths_of(condition, known)(row)
        assert condition.value(row) in may_be
        assert len(known) < 2 or may_be == {condition.value(row)}


def test_a_public_table_may_list_more_than_is_declared(rows: pl.DataFrame) -> None:
    t = rows  # noqa: F841
    w = pl.concat([WARDS, pl.DataFrame({"ward": ["elsewhere"]})], how="diagonal_relaxed")
    for kind in ("JOIN", "LEFT JOIN"):
        query = f"SELECT region, COUNT(*) FROM t {kind} w USING (ward) GROUP BY region"
        answer = table(rows, schema=SCHEMA).sql(query, epsilon=1e6, public={"w": w}).value
        assert by_key(answer.rows()) == by_key(duckdb.sql(query).fetchall())


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["a", "B", "C"], "'a', where 'A' is declared for 'ward'"),
        (["B ", "A", "C"], "'B ', where 'B' is declared"),
        (["north", "south"], "no value that is declared for 'ward'"),
        ([1, 2], "is text, but 'ward' of the public table holds numbers"),
    ],
)
def test_a_public_table_with_keys_of_another_spelling_is_refused(rows: Any, kind: str, keys: Any, said: str) -> None:
    w = pl.DataFrame({"ward": keys, "region": ["x", *["y"] * (len(keys) - 1)]})
    with pytest.raises(ValueError, match=said):
        table(rows, schema=SCHEMA).sql(
            f"SELECT region, COUNT(*) FROM t {kind} w USING (ward) GROUP BY region", epsilon=1.0, public={"w": w}
        )
