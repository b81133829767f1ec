"""Rows come in the order that was asked for, as plain DuckDB gives them: counts by their size, not as text."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from searches._query_answers import unlike_kinds

SIZES = {"10th": 931, "HS-grad": 10_501, "Some-college": 7291, "7th-8th": 646, "Bachelors": 5354, "Prof-school": 576}
ROWS = pl.DataFrame(
    {
        "education": np.repeat(list(SIZES), list(SIZES.values())),
        "hours": np.arange(sum(SIZES.values())) % 97,
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(sum(SIZES.values())) % 12, "D"),
    }
).with_columns(pl.col("day").cast(pl.Date))
SCHEMA = dp.Schema(
    education=dp.Categories(list(SIZES)), hours=dp.Bounded(0, 96, whole=True), day=dp.Dates("2024-01-01", "2024-01-12")
)
QUERIES = [
    "SELECT education, COUNT(*) AS n FROM t GROUP BY education ORDER BY n DESC LIMIT 5",
    "SELECT education, COUNT(*) AS n FROM t GROUP BY education ORDER BY n",
    "SELECT education, COUNT(*) AS n FROM t GROUP BY education ORDER BY COUNT(*) DESC, education LIMIT 3 OFFSET 1",
    "SELECT education, SUM(hours) AS s FROM t GROUP BY education ORDER BY s DESC",
    "SELECT education, COUNT(*) AS n FROM t GROUP BY education HAVING COUNT(*) > 900 ORDER BY n",
    "SELECT education, AVG(hours) AS m FROM t GROUP BY education ORDER BY education DESC",
    "SELECT day, COUNT(*) AS n FROM t GROUP BY day ORDER BY day DESC LIMIT 4",
]


def source(kind: str, folder: Any) -> Any:
    match kind:
        case "polars":
            return ROWS
        case "pandas":
            return ROWS.to_pandas()
        case "Arrow":
            return pa.table(ROWS)
        case "Parquet":
            ROWS.write_parquet(folder / "rows.parquet")
            return folder / "rows.parquet"
        case "CSV":
            ROWS.write_csv(folder / "rows.csv")
            return folder / "rows.csv"
    raise ValueError(kind)


@pytest.mark.parametrize("kind", ["polars", "pandas", "Arrow", "Parquet", "CSV"])
@pytest.mark.parametrize("query", QUERIES)
def test_rows_come_in_the_order_that_plain_sql_gives_them(query: str, kind: str, tmp_path: Any) -> None:
    connection = duckdb.connect()
    connection.register("t", pa.table(ROWS))
    plain = connection.sql(query)
    answer = dp.table(source(kind, tmp_path), schema=SCHEMA).sql(query, epsilon=1e6).value
    assert list(answer.columns) == plain.columns
    keys = answer[plain.columns[0]].tolist() if kind == "pandas" else answer[plain.columns[0]].to_list()
    expected = plain.fetchall()
    assert unlike_kinds(answer, plain.types) == ""
    assert [str(key)[:10] for key in keys] == [str(row[0])[:10] for row in expected]
    values = np.asarray(answer[plain.columns[1]], float)
    assert values == pytest.approx([float(row[1]) for row in expected], rel=1e-3)
