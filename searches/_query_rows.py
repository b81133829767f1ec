"""The table that random queries are asked of: its schema, its rows, and a public table to join."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import polars as pl

import discreet as dp

__all__ = ["COLUMNS", "PUBLIC", "ROWS", "SCHEMA", "WORDS"]

SCHEMA = dp.Schema(
    age=dp.Bounded(0, 100, whole=True),
    income=dp.Bounded(0, 1000),
    hours=dp.Bounded(-20, 60),
    sex=dp.Categories(["f", "m"]),
    educ=dp.Categories(range(1, 6)),
    region=dp.Categories(["north", "south", "east", "west"]),
    married=dp.Categories([False, True]),
    city=dp.Unlisted(),
    day=dp.Dates("2023-01-01", "2024-12-31"),
    seen=dp.Times("2023-01-01", "2024-12-31"),
)
PUBLIC = {
    "regions": pl.DataFrame({"region": ["north", "south", "east"], "zone": ["cold", "warm", "warm"], "tax": [1, 2, 4]})
}
COLUMNS: dict[str, str] = {
    "age": "number",
    "income": "number",
    "hours": "number",
    "sex": "text",
    "educ": "number",
    "region": "text",
    "married": "truth",
    "city": "text",
    "day": "moment",
    "seen": "moment",
}
WORDS = {"sex": ["f", "m"], "region": ["north", "south", "east", "west"], "city": ["Lyon", "lyon", " Nice", "Paris"]}


def _rows(size: int = 700) -> pl.DataFrame:
    """Visits within the declarations, with missing values where no key needs one."""
    rng = np.random.default_rng(11)
    start = dt.datetime(2023, 1, 1)
    at = [start + dt.timedelta(seconds=int(s)) for s in rng.integers(0, 730 * 86_400, size)]

    def gaps(values: Any) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in np.asarray(values).tolist()]

    return pl.DataFrame(
        {
            "age": rng.integers(0, 100, size),
            "income": gaps(rng.integers(0, 2000, size) / 2),
            "hours": gaps(rng.integers(-20, 61, size) * 1.0),
            "sex": rng.choice(["f", "m"], size),
            "educ": rng.integers(1, 6, size),
            "region": rng.choice(["north", "south", "east", "west"], size),
            "married": rng.random(size) < 0.4,
            "city": pl.Series(gaps(rng.choice(["Lyon", "lyon", " Nice", "Paris", "Oslo"], size)), dtype=pl.String),
            "day": [moment.date() for moment in at],
            "seen": pl.Series([None if i % 9 == 0 else moment for i, moment in enumerate(at)], dtype=pl.Datetime("us")),
        }
    )


ROWS = _rows()
