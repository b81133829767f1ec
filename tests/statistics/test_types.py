"""A container's type and shape are public: what is wrong about them is refused before the charge;
single records never are.
"""

from __future__ import annotations

import decimal
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet import statistics

NUMBERS = [1.0, 2.0, 3.0]
WRONG = {
    "text": np.array(["1", "2"]),
    "bytes": np.array([b"1"]),
    "complex": np.array([1j]),
    "dates": np.array(["2020-01-01"], "datetime64[D]"),
    "a pandas frame": pd.DataFrame({"x": NUMBERS}),
    "a polars frame": pl.DataFrame({"x": NUMBERS}),
    "an Arrow table": pa.table({"x": NUMBERS}),
    "pandas text": pd.Series(["1", "2"]),
    "pandas categories": pd.Series([1, 2], dtype="category"),
    "pandas dates": pd.Series(pd.to_datetime(["2020-01-01"])),
    "Arrow text in pandas": pd.Series(["1"], dtype=pd.ArrowDtype(pa.string())),
    "polars text": pl.Series(["1", "2"]),
    "Arrow text": pa.array(["1"]),
    "a text": "123",
    "a mapping": {1: 2},
    "a number": 5,
    "two dimensions": np.ones((3, 1)),
}
RIGHT = {
    "a list": NUMBERS,
    "a tuple": tuple(NUMBERS),
    "an array": np.array(NUMBERS),
    "float32": np.array(NUMBERS, "f4"),
    "objects": np.array(NUMBERS, object),
    "pandas": pd.Series(NUMBERS),
    "pandas nullable": pd.Series(NUMBERS, dtype="Float64"),
    "pandas integers": pd.Series([1, 2, 3], dtype="Int64"),
    "Arrow in pandas": pd.Series(NUMBERS, dtype=pd.ArrowDtype(pa.float64())),
    "polars": pl.Series(NUMBERS),
    "Arrow": pa.array(NUMBERS),
    "chunks": pa.chunked_array([NUMBERS]),
    "a generator": range(1, 4),
    "decimals": [decimal.Decimal(x) for x in NUMBERS],
    "decimals of Arrow": pa.array(map(decimal.Decimal, NUMBERS), pa.decimal128(5, 2)),
}


class Book:
    def __init__(self):
        self.charged = 0

    def charge(self, event, label="", *, unit="one record", reproducible=False):
        self.charged += 1


ASKED = {
    "mean": lambda values, book: statistics.mean(values, (0, 10), epsilon=1.0, book=book),
    "sum": lambda values, book: statistics.sum(values, (0, 10), epsilon=1.0, book=book),
    "count": lambda values, book: statistics.count(values, epsilon=1.0, book=book),
    "median": lambda values, book: statistics.median(values, (0, 10), epsilon=1.0, book=book),
    "variance": lambda values, book: statistics.variance(values, (0, 10), epsilon=1.0, book=book),
    "histogram": lambda values, book: statistics.histogram(values, bins=[0, 5, 10], epsilon=1.0, book=book),
    "mode": lambda values, book: statistics.mode(values, bins=[0, 5, 10], epsilon=1.0, book=book),
    "vector mean": lambda values, book: statistics.vector_mean(values, 1.0, 2, rho=1.0, book=book),
    "covariance": lambda values, book: statistics.covariance(values, [(0, 1), (0, 1)], epsilon=1.0, book=book),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("kind", WRONG)
def test_publicly_wrong_types_are_refused_before_the_charge(kind, name):
    book = Book()
    with pytest.raises(ValueError, match="values "):
        ASKED[name](WRONG[kind], book)
    assert book.charged == 0


@pytest.mark.parametrize("kind", RIGHT)
def test_every_container_of_numbers_is_read(kind):
    assert statistics.mean(RIGHT[kind], (0, 10), epsilon=1e5, rng=1).value == pytest.approx(2.0, abs=0.01)
    assert statistics.count(RIGHT[kind], epsilon=1e5, rng=1).value == 3


@pytest.mark.parametrize("odd", ["5", b"5", None, pd.NA, pd.NaT, [5.0], np.array([5.0]), 5j, math.nan, object(), {}])
def test_one_odd_record_is_missing_and_says_nothing(odd):
    """In a list or an array of objects, with no warning: it would say that the record is there."""
    values = np.empty(4, object)
    values[:3], values[3] = NUMBERS, odd
    for container in (values, list(values)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert statistics.count(container, epsilon=1e5, rng=1).value == 3


def test_a_public_size_is_checked_before_the_charge():
    book = Book()
    for ask in (
        lambda: statistics.mean(NUMBERS, (0, 10), epsilon=1.0, adjacency="replace", n=4, book=book),
        lambda: statistics.variance(NUMBERS, (0, 10), epsilon=1.0, adjacency="replace", n=4, book=book),
        lambda: statistics.vector_mean(np.ones((3, 2)), 1.0, 2, rho=1.0, adjacency="replace", n=4, book=book),
    ):
        with pytest.raises(ValueError, match="values has 3 records, but n=4 was declared"):
            ask()
    assert book.charged == 0


def test_text_is_refused_where_no_category_is_text():
    """Text among numeric categories could only be answered with zeros."""
    for values in (np.array(["1"]), np.array([b"1"]), pl.Series(["1"]), pd.Series(["1"]), pa.array(["1"])):
        for ask in (statistics.histogram, statistics.mode):
            with pytest.raises(ValueError, match="no record could be one of them"):
                ask(values, categories=[1, 2], epsilon=1.0)
    for values in (
        ["a", 1],
        np.array(["a", 1], object),
        pl.Series(["a", "c"]),
        pa.array(["a", None]),
        pd.Series(["a", "c"]),
    ):
        assert statistics.histogram(values, categories=["a", "b"], epsilon=1e5, rng=1).value.tolist() == [1, 0]


def test_the_contract_still_reads_what_it_read():
    assert dp.statistics.mean([True, False], bounds=(0, 1), epsilon=1e6, rng=1).value == pytest.approx(0.5, abs=1e-3)
