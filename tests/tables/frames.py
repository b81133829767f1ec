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
