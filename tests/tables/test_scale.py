"""Ten million rows: a private group-by does the work of the same query written by hand, in the memory it is given.

What is compared is work, which no other process of the machine changes: rows that are read, rows that reach each
aggregation, passes over them between. Seconds at 10⁸ rows, and what is owed there, are measured by
benchmarks/tables.py.
"""

from __future__ import annotations

import json

import duckdb
import pytest

import discreet as dp
from benchmarks.tables import BY_UNIT, CLIPPED, make, questions
from discreet.tables.bounding import SecretKey

ROWS = 10**7
SCHEMA = dp.Schema(educ=dp.Categories(range(1, 17)), income=dp.Bounded(0, 200_000))


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A file that DuckDB itself writes in a second or two."""
    path = tmp_path_factory.mktemp("scale") / "people.parquet"
    make(path, ROWS)
    yield path
    path.unlink()


def test_a_long_scan_says_how_far_it_is(people):
    """In both passes of a mean and a median; nothing is printed by DuckDB itself."""
    seen: list = []
    dp.table(people, schema=SCHEMA, threads=1).mean("income").median("income").release(
        epsilon=1.0, progress=seen.append
    )
    assert seen == sorted(seen)
    assert {0.5, 1.0} < set(seen)
    assert any(0 < share < 0.5 for share in seen)


def test_units_that_do_not_fit_in_the_memory_given_are_spilled(people, tmp_path):
    """One row each of 3.3 million units, in 100 MB."""
    spilled = tmp_path / "spilled"  # DuckDB makes the folder when it needs it, and takes it away with its connection
    for name, memory in (("private", "1GB"), ("private by unit", "100MB")):
        asked = questions(people, memory_limit=memory, temp_directory=str(spilled), threads=1)
        asked[name]()
        assert spilled.exists() == (memory == "100MB")


# --- work ------------------------------------------------------------------------------------------------------------


def work(query):
    """What DuckDB does for a query: rows out of every scan, aggregation and other operator, from the last to the first,
    and of the projections, which look at a row at a time, how many there are of more than a thousand rows.
    """
    told = duckdb.connect(config={"threads": 1}).execute(f"EXPLAIN (ANALYZE, FORMAT json) {query}").fetchall()[0][1]
    steps, projections, left = [], 0, list(json.loads(told)["operator"])
    while left:
        operator = left.pop()
        left += operator.get("children", [])
        kind, rows = operator["type"].removeprefix("PERFECT_"), operator["intermediate_rows"]
        if kind == "PROJECTION":
            projections += rows > 1000
        elif kind not in ("RESULT_COLLECTOR", "EXPLAIN_ANALYZE"):
            steps.append((kind, rows))
    return steps, projections


def planned(path, unit, question):
    """The queries that DuckDB is given for a question."""
    rows = dp.table(path, schema=SCHEMA, unit=unit).group_by("educ")
    scans = question(rows).operation(epsilon=1.0).scans()
    return [rows.rows._totals(scan, SecretKey(tuple(range(1, 129, 2))))[0].sql_query() for scan in scans]


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    path = tmp_path_factory.mktemp("few") / "people.parquet"
    make(path, 90_000)
    return path


@pytest.mark.parametrize(
    ("unit", "by_hand", "more"), [(None, CLIPPED, 3), ("person_id", BY_UNIT, 12)], ids=["rows", "units"]
)
def test_a_private_group_by_reads_and_adds_up_what_a_query_written_by_hand_does(few, unit, by_hand, more):
    """One scan, the same aggregations of as many rows, no sort, window or join; casts, clips and hashes look at a row
    at a time, in so many projections more.
    """
    (query,) = planned(few, unit, lambda rows: rows.mean("income").count().sum("income"))
    steps, projections = work(query)
    expected, plain = work(by_hand.format(path=few))
    assert steps == expected
    assert {kind for kind, _ in steps} == {"HASH_GROUP_BY", "TABLE_SCAN"}
    assert steps[-1] == ("TABLE_SCAN", 90_000)
    assert projections <= plain + more


def test_each_set_of_bins_is_one_scan_more(few):
    """A mean and its variance share a scan; a median needs one of its own."""
    queries = planned(few, None, lambda rows: rows.mean("income").variance("income").median("income"))
    assert [work(query)[0][-1] for query in queries] == [("TABLE_SCAN", 90_000)] * 2
