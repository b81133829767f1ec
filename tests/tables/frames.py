"""Small hostile tables for the tests of this room."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

import discreet as dp
from discreet.auditing.strategies import awkward_floats, awkward_integers

SCHEMA = dp.Schema(
    educ=dp.Categories(range(1, 4)),
    city=dp.Categories(["a", "b"], other="else"),
    code=dp.Categories([10, 20.5, -3]),
    name=dp.Unlisted(),
    x=dp.Bounded(0, 10),
    y=dp.Bounded(-5, 100, missing=1.5),
)
TYPES = pa.schema(
    [
        ("unit", pa.int64()),
        ("educ", pa.int64()),
        ("city", pa.string()),
        ("code", pa.float64()),
        ("name", pa.string()),
        ("x", pa.float64()),
        ("y", pa.int64()),
    ]
)

# A row without its unit: values inside and outside of what the schema declares.
rows = st.tuples(
    st.one_of(st.integers(0, 4), awkward_integers(), st.none()),
    st.one_of(st.sampled_from(["a", "b", "c", "", "A"]), st.none()),
    st.one_of(st.sampled_from([10.0, 20.5, -3.0, 10.5]), awkward_floats(), st.none()),
    st.one_of(st.sampled_from(["p", "q", "r", "'; drop"]), st.none()),
    st.one_of(awkward_floats(), st.none()),
    st.one_of(awkward_integers(), st.none()),
)
units = st.one_of(st.integers(0, 3), st.sampled_from([-1, 2**63 - 1, -(2**63)]), st.none())


def frame(records):
    """An Arrow table of (unit, row) records; replay compares operations on such lists."""
    columns = list(zip(*[(unit, *row) for unit, row in records], strict=True)) or [()] * len(TYPES)
    return pa.table({field.name: pa.array(column, field.type) for field, column in zip(TYPES, columns, strict=True)})


# one for all tests of a process: opening one takes longer than a query
CONNECTION = duckdb.connect(config={"threads": 1})


def table(records, **options):
    """A private table of such records."""
    return dp.table(CONNECTION.from_arrow(frame(records)), schema=SCHEMA, **options)


INF = float("inf")
# what a text is as a number; None for no number
SPELLED = {
    "1": 1.0,
    " 1.5\t": 1.5,
    "+5": 5.0,
    "-.5": -0.5,
    "1.": 1.0,
    "1e2": 100.0,
    "1E-2": 0.01,
    "inf": INF,
    "-Infinity": -INF,
    "1e400": INF,
    "1e-400": 0.0,
    "007": 7.0,
    "0" * 400 + "3": 3.0,
    **dict.fromkeys(
        [
            "1_0",
            "5d",
            "5f",
            "٥",
            "\uff11",
            "0x1F",
            "nan",
            "NaN",
            "1e",
            "e5",
            "--1",
            "+-1",
            "1,5",
            "1 0",
            "",
            " ",
            "true",
            "1\u00a0",
            "1\u2028",
            "1\u0085",
            "\ufeff1",
            "infin",
            "1\x00",
            "NULL",
            "½",
            "1.2.3",
            "1e5.0",
            "$1",
        ]
    ),
}
