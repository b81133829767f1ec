"""What looks wrong with an answer is said, and never loses an answer that was paid for."""

from __future__ import annotations

import re
import warnings

import polars as pl
import pytest

import discreet as dp
from discreet.tables.doubts import DoubtfulAnswer

ROWS = pl.DataFrame(
    {
        "ward": ["North", "South", "South", "East"] * 500,
        "admitted": ["31.12.2024", "01.02.2024"] * 1000,
        "cost": ["1,5", "99,0"] * 1000,
        "days": [3, 5] * 1000,
    }
)


def visits(**declared):
    known = {
        "ward": dp.Categories(["North", "South", "East"]),
        "admitted": dp.Dates("2024-01-01", "2024-12-31"),
        "cost": dp.Bounded(0, 100),
        "days": dp.Bounded(0, 30),
    }
    return dp.table(ROWS, schema=dp.Schema({**known, **declared}))


def told(asked, **budget):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        asked.release(**{"epsilon": 1.0, "rng": 1, **budget})
    return [str(one.message) for one in heard if issubclass(one.category, DoubtfulAnswer)]


WRONG = {
    "a category in other capitals": lambda: (
        visits(ward=dp.Categories(["NORTH", "South", "East"])).group_by("ward").count(),
        "ward: the noise hides whether any row has 'NORTH'",
    ),
    "days written another way, as groups": lambda: (
        visits().parse("SELECT month(admitted) AS m, COUNT(*) AS n FROM visits GROUP BY m"),
        "n: .*intervals hold zero.*date_format",
    ),
    "days written another way, as a condition": lambda: (
        visits().parse("SELECT COUNT(*) AS n FROM visits WHERE admitted > '2024-02-03'"),
        "n: the interval holds zero",
    ),
    "decimal commas in a sum": lambda: (visits().sum("cost"), "cost_sum: .*zero.*decimal"),
    "decimal commas in a mean": lambda: (visits().mean("cost"), "cost_mean: .*touches the bounds 0 to 100"),
}


@pytest.mark.parametrize("mistake", WRONG)
@pytest.mark.filterwarnings("ignore")
def test_a_file_that_is_written_otherwise_than_declared_is_noticed(mistake):
    asked, sentence = WRONG[mistake]()
    (line,) = told(asked)
    assert re.search(sentence, line), line


@pytest.mark.filterwarnings("ignore")
def test_nothing_is_said_of_an_answer_that_looks_right():
    assert told(visits().group_by("ward").count().mean("days").sum("days")) == []
    assert told(visits().parse("SELECT COUNT(*) AS n FROM visits WHERE days > 4 HAVING COUNT(*) > 1")) == []


def test_a_filter_that_makes_errors_of_warnings_loses_no_answer():
    book = dp.Ledger("sqlite://").open("b", epsilon=2.0, delta=1e-6)
    asked = visits(ward=dp.Categories(["NORTH", "South", "East"])).group_by("ward").count()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(asked.release(epsilon=1.0, book=book).value) == 3


@pytest.mark.filterwarnings("ignore")
def test_bounds_that_are_chosen_privately_are_doubted_too():
    table = visits(days=dp.Bounded("auto"), ward=dp.Categories(["NORTH", "South"]))
    asked = table.group_by("ward").count().mean("days")
    assert any("'NORTH'" in line for line in told(asked, delta=1e-6))
