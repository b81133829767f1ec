"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

from __future__ import annotations

import threading
from datetime import date

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet.encoding import Encoder
from discreet.encoding.containers import UnreadColumn, UnreadRows, row_length
from discreet.encoding.duckdb import DuckDB, _watch
from discreet.encoding.features import pair
from discreet.encoding.sources import open_source
from discreet.schema import Bounded, Categories, Dates, Declaration, Schema
from tests.frozen import unfrozen

FACTS = Declaration(Schema(a=Bounded(0, 10), c=Categories([1, 2**53 - 1])), unit="who")


def test_nothing_that_was_stated_can_be_changed_afterwards():
    assert unfrozen("encoding") == set()


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame], ids=lambda kind: kind.__name__)
def test_one_row_of_each_unit_counts_and_whole_numbers_below_2_to_the_53_are_categories(kind):
    data = kind({"a": [1.0, 2.0, 3.0], "c": [1, 2**53 - 1, 7], "who": ["x", "y", "x"]})
    first, every = (Encoder(FACTS, one_row_a_unit=one).read(data) for one in (True, False))
    assert (len(first), len(every)) == (2, 3)
    assert every.codes("c").tolist() == [0, 1, -1]
    assert every.numbers("a").tolist() == [1.0, 2.0, 3.0]


def test_progress_only_grows_and_begins_when_something_is_known():
    done, said, shares = threading.Event(), [], iter([-100.0, 0.0, 30.0, 20.0, 250.0, 40.0])

    class Connection:
        def query_progress(self):
            share = next(shares, None)
            if share is None:
                done.set()
                return -100.0
            return share

    _watch(Connection(), done, said.append)
    assert said == [0.3, 1.0]


def test_files_that_are_read_together_have_the_same_columns(tmp_path):
    for name, header in (("1", "a,c,who"), ("2", "a,c,who"), ("3", "a,who,c")):
        (tmp_path / f"{name}.csv").write_text(f"{header}\n1,1,1\n")
    with pytest.raises(ValueError, match=r"3.csv' has other columns than .*1.csv'"):
        dp.table(str(tmp_path / "*.csv"), schema=FACTS.schema, unit="who")
    assert dp.table(str(tmp_path / "[12].csv"), schema=FACTS.schema, unit="who").schema == FACTS.schema
    for name, kind in (("1", pl.Int64), ("2", pl.Int64), ("3", pl.String)):
        pl.DataFrame({"a": [1], "c": pl.Series([1]).cast(kind), "who": [1]}).write_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match=r"3.parquet' has other columns or types than .*1.parquet'"):
        dp.table(str(tmp_path / "*.parquet"), schema=FACTS.schema, unit="who")
    assert dp.table(str(tmp_path / "[12].parquet"), schema=FACTS.schema, unit="who").schema == FACTS.schema


def test_a_file_of_no_known_ending_and_a_column_of_dates_are_refused(tmp_path):
    (tmp_path / "people.dat").write_text("a\n1\n")
    with pytest.raises(ValueError, match="no known ending"):
        dp.table(str(tmp_path / "people.dat"), schema=Schema(a=Bounded(0, 1)))
    with pytest.raises(ValueError, match="must hold numbers, truth values or text"):
        dp.table(pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}), schema=Schema(a=Bounded(0, 1)))


@pytest.mark.parametrize("unit", [None, "who", "k"])
def test_a_unit_is_a_column_beside_the_schema_or_an_unlisted_one_of_it(unit):
    data = pd.DataFrame({"a": [1.0, 2.0], "k": ["u", "u"], "who": [1, 2]})
    table = dp.table(data, schema=Schema(a=Bounded(0, 10), k=dp.Unlisted()), unit=unit)
    assert table.count().release(epsilon=50.0, rng=1).value["count"].tolist() == [1 if unit == "k" else 2]


def test_frames_and_lists_are_read_by_row_and_column():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})
    assert UnreadRows(frame, 2).read().tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert UnreadRows([[1.0, 4.0], [2.0]], 2).read().shape == (2, 2)
    assert UnreadColumn([[1.0], "x", [2.0, 3.0]], "list").read().tolist() == [1.0, "x", [2.0, 3.0]]


def test_a_whole_number_beyond_2_to_the_53_is_not_taken_for_its_neighbour():
    """As doubles both are 2^53."""
    facts = Encoder(Declaration(Schema(c=Categories([2**53]))))
    assert facts.read(pl.DataFrame({"c": [2**53, 2**53 + 1, -(2**53) - 1]})).codes("c").tolist() == [0, -1, -1]


def test_a_row_is_a_sequence_of_values_and_text_or_a_mapping_is_none():
    assert [row_length(row) for row in ([1, 2], (1,), "ab", b"ab", {"a": 1}, {1, 2}, 3)] == [2, 1] + [None] * 5


def test_whole_numbers_are_a_fact_of_files_that_declare_their_types(tmp_path):
    """In pandas one missing entry makes doubles of them, and who reads a CSV file into polars infers them."""
    schema, data = Schema(c=Categories([1, 2]), a=Bounded(0, 1)), {"c": [1, 2], "a": [0.5, 1.0]}
    for kind in (pl.DataFrame, pd.DataFrame, pa.table):
        assert open_source(kind(data), schema, None).whole == set()
    pl.DataFrame(data).write_parquet(tmp_path / "t.parquet")
    pl.DataFrame(data).write_ipc(tmp_path / "t.arrow")
    pl.DataFrame(data).write_csv(tmp_path / "t.csv")
    for name, whole in {"t.parquet": {"c"}, "t.arrow": {"c"}, "t.csv": set()}.items():
        assert open_source(tmp_path / name, schema, None).whole == whole


def test_a_relation_is_asked_by_its_own_engine():
    relation = pytest.importorskip("duckdb").sql("SELECT 1 AS a")
    assert isinstance(open_source(relation, Schema(a=Bounded(0, 1)), None).engine, DuckDB)


def test_numbers_are_no_dates_but_where_pandas_holds_dates_as_objects():
    schema = Schema(d=Dates("2020-01-01", "2020-12-31"))
    with pytest.raises(ValueError, match="must hold dates, times or text"):
        open_source(pl.DataFrame({"d": [1.0]}), schema, None)
    assert open_source(pd.DataFrame({"d": [date(2020, 5, 1)]}), schema, None).kinds == {"d": "number"}


@pytest.mark.parametrize("wrong", [[[1.0], [2.0]], ([1.0],), ([1.0], [2.0], [3.0]), "ab"])
def test_what_a_model_learns_from_is_a_pair(wrong):
    assert pair(([1.0], [2.0])) == ([1.0], [2.0])
    with pytest.raises(ValueError, match="must be the pair"):
        pair(wrong)
