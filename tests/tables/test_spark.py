"""The same script on Spark: the same whole numbers meet the same noise, so the answers are equal to the last bit."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.tables import col
from tests.tables import frames
from tests.tables.frames import SPELLED

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java: install a Java 17 runtime")

HOSTILE = [
    None,
    float("nan"),
    float("inf"),
    float("-inf"),
    1e308,
    5e-324,
    -0.0,
    2.5,
    7.25,
    1e16,
    0.1,
    9.999999999999998,
]
TYPES = "unit bigint, educ bigint, city string, code double, name string, x double, y bigint"


def records():
    """Rows that differ where engines differ: NaN and NULL, signs of zero, extremes of 64 bits, text beside text."""
    rng = np.random.default_rng(1)
    cities, codes, names = (
        ["a", "b", "c", "", None],
        [10.0, 20.5, -3.0, 10.5, float("nan"), None],
        ["p", "q", "ü", None],
    )
    units, ys = [0, 1, 2, -1, 2**63 - 1, -(2**63), 12345678901234, None], [None, 2**63 - 1, -(2**63), 3, 50, -1]
    return [
        (
            units[rng.integers(8)],
            (
                int(rng.integers(0, 5)),
                cities[rng.integers(5)],
                codes[rng.integers(6)],
                names[rng.integers(4)],
                HOSTILE[rng.integers(12)],
                ys[rng.integers(6)],
            ),
        )
        for _ in range(200)
    ]


QUESTIONS = [
    (lambda t: t.group_by("educ").count().mean("x").sum("y").variance("y"), {"epsilon": 1.0}, {}),
    (lambda t: t.group_by("city").median("x", bins=16), {"epsilon": 1.0}, {}),
    (lambda t: t.group_by("educ").mean("x"), {"epsilon": 1.0}, {"unit": "unit"}),
    (
        lambda t: (
            t.derive(z=(col("x") / col("y")).clip(-1, 1))
            .filter((col("x") > 0.05) | (col("city") == "a"))
            .group_by("city", "code")
            .mean("z")
            .count()
        ),
        {"rho": 0.5},
        {"unit": "unit", "max_rows_per_unit": 4, "max_groups_per_unit": 2},
    ),
    (
        lambda t: t.group_by("name").count().mean("x"),
        {"epsilon": 9.0, "delta": 0.4},
        {"unit": "name", "max_rows_per_unit": 3},
    ),
    (lambda t: t.count_distinct("name"), {"epsilon": 1.0}, {"unit": "unit", "max_rows_per_unit": 2}),
    (
        lambda t: t.filter(col("city").is_in(["a", "b"]) & ~col("x").is_in([0.0, 2.5, *range(2000, 4000)])).count(),
        {"epsilon": 1.0},
        {},
    ),
]


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=[pytest.mark.slow] * (number % 3 > 0)) for number in range(len(QUESTIONS))]
)
def test_spark_and_duckdb_answers_are_equal_under_one_seed(spark_session, number):
    """Fixed point, keys, filters, sampling of units: bit for bit."""
    ask, budget, bounds = QUESTIONS[number]
    rows = records()
    frame = spark_session.createDataFrame([(unit, *row) for unit, row in rows], TYPES)
    there = ask(dp.table(frame, schema=frames.SCHEMA, **bounds)).release(**budget, rng=5)
    here = ask(frames.table(rows, **bounds)).release(**budget, rng=5)
    assert there.event == here.event
    assert there.value.to_dict(as_series=False) == here.value.to_dict(as_series=False)


def test_odd_names_types_and_magnitudes_are_read_alike(spark_session):
    """Names that engines confuse, a byte that overflows, doubles whose floor does; fractions order a unit's rows."""
    rows = [
        (1, 1000.0, 1e9, 100, 1.2),
        (1, 2.0, 3.0, 100, 1.7),
        (2, 1.0, -1e300, -100, 1e300),
        (3, 1e300, 1.5, 50, -1e300),
        (None, None, None, None, None),
        (4, float("nan"), float("inf"), 7, float("nan")),
    ] * 3
    frame = spark_session.createDataFrame(rows, "Unit_ bigint, K0 double, V0 double, t tinyint, d double")
    types = {"Unit_": pa.int64(), "K0": pa.float64(), "V0": pa.float64(), "t": pa.int8(), "d": pa.float64()}
    columns = zip(types.items(), zip(*rows, strict=True), strict=True)
    relation = frames.CONNECTION.from_arrow(
        pa.table({name: pa.array(column, kind) for (name, kind), column in columns})
    )
    schema = dp.Schema(
        K0=dp.Categories([1, 2], other=-1),
        V0=dp.Bounded(-1e150, 1e150),
        t=dp.Categories([100, 50, -100]),
        d=dp.Unlisted(),
    )
    v = col("V0")

    def ask(source):
        table = dp.table(source, schema=schema, unit="Unit_", max_rows_per_unit=2)
        table = table.derive(
            z=(v * v * v).floor().clip(-2, 2), w=col("t") * col("t"), n=(v * v * v - v * v * v).clip(0, 1)
        )
        return table.group_by("K0").sum("z").sum("w").count("n").count_distinct("d").release(epsilon=50.0, rng=2).value

    assert ask(frame).to_dict(as_series=False) == ask(relation).to_dict(as_series=False)


def test_spark_adds_halves_so_that_nothing_overflows(spark_session):
    """2^48 rows would fit; a few rows of the largest steps show that the halves are put together rightly."""
    rows = [(1, (1, "a", 10.0, "p", 10.0, 100))] * 50
    frame = spark_session.createDataFrame([(unit, *row) for unit, row in rows], TYPES)
    found = dp.table(frame, schema=frames.SCHEMA).sum("x").sum("y").release(epsilon=1000.0, rng=1).value
    assert found["x_sum"][0] == pytest.approx(500, abs=0.5)
    assert found["y_sum"][0] == pytest.approx(5000, abs=5)


def test_text_means_the_same_on_spark(spark_session):
    """Numbers by our grammar, not Java's; keys and units byte by byte, whatever the collation."""
    numbered = [(text, number) for number, text in enumerate(SPELLED)]
    schema = dp.Schema(x=dp.Bounded(-1e6, 1e6), k=dp.Categories(range(len(SPELLED))))
    frame = spark_session.createDataFrame(numbered, "x string, k bigint")
    found = dp.table(frame, schema=schema).group_by("k").count("x").release(epsilon=1e6, rng=1).value
    assert [bool(count) for count in found["x_count"]] == [expected is not None for expected in SPELLED.values()]
    frame = spark_session.createDataFrame([("a",), ("A",), ("b",)], "k string").selectExpr("k COLLATE UTF8_LCASE AS k")
    table = dp.table(frame, schema=dp.Schema(k=dp.Unlisted()), unit="k")
    assert table.count().count_distinct("k").release(epsilon=1000.0, rng=1).value.row(0) == (3, 3)


def test_a_date_beyond_every_calendar_does_not_stop_spark(spark_session):
    """In microseconds it does not fit 64 bits: it is missing, and the other is counted."""
    frame = spark_session.sql("SELECT date_from_unix_date(2000000000) AS d UNION ALL SELECT DATE '2020-06-06'")
    table = dp.table(frame, schema=dp.Schema(d=dp.Dates("2020-01-01", "2020-12-31")))
    assert table.sql("SELECT COUNT(d) AS n FROM t", epsilon=1000.0, rng=1).value["n"][0] == 1
