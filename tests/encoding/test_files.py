"""JSON lines, Feather and Hive's folders: every line by itself, and nothing fails because of one."""

from __future__ import annotations

import json

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.auditing import replay

SCHEMA = dp.Schema(x=dp.Bounded(0, 10), k=dp.Categories(["a", "b"], other="?"))
ODD = [
    '{"k": "\\ud800"}',
    '{"x": "5\\u0000"}',
    "[" * 3000,
    '{"k": ' * 3000,
    '{"x": {"y": 1}}',
    '{"x": 1e999, "k": "a"}',
    '{"k": "a", "k": "b"}',
    "nul",
    '{"x": 1}x',
    "\ufeff{}",
    '{"k": "a\x01b"}',
    '"',
    "",
    "{" + " " * 2_100_000 + "}",
]


def ask(path):
    return dp.table(str(path), schema=SCHEMA, threads=1).group_by("k").count().sum("x").release(epsilon=1.0)


def test_json_lines_are_read_one_by_one(tmp_path):
    """Whatever a line holds, it changes nothing but what it counts for; those before and after are as they were."""
    usual = [json.dumps({"k": "ab"[i % 2], "x": i}) for i in range(6)]
    paths = [tmp_path / "with.jsonl", tmp_path / "without.jsonl"]
    for odd in ODD:
        paths[0].write_text("\n".join([*usual[:3], odd, *usual[3:]]) + "\n", encoding="utf-8")
        paths[1].write_text("\n".join(usual) + "\n", encoding="utf-8")
        replay(ask, *paths)
    table = dp.table(str(paths[1]), schema=SCHEMA)
    assert table.group_by("k").count().sum("x").release(epsilon=1e3, rng=1).value["count"].to_list() == [3, 3, 0]


def test_feather_files_state_their_types(tmp_path):
    """They are read as Arrow frames are; files that differ are refused."""
    frame = pl.DataFrame({"x": [1.0, 2.0], "k": ["a", "z"]})
    frame.write_ipc(tmp_path / "1.feather")
    table = dp.table(str(tmp_path / "1.feather"), schema=SCHEMA)
    assert table.group_by("k").count().release(epsilon=1e3, rng=1).value["count"].to_list() == [1, 0, 1]
    frame.cast({"x": pl.Int64}).write_ipc(tmp_path / "2.feather")
    with pytest.raises(ValueError, match="must agree"):
        dp.table(str(tmp_path / "*.feather"), schema=SCHEMA)


def test_a_folder_names_a_column_that_no_file_holds(tmp_path):
    """As text, cast by the schema; a column that files hold is never read off a folder."""
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        pl.DataFrame({"x": [1.0] * (year - 2000)}).write_parquet(tmp_path / f"year={year}" / "x.parquet")
    schema = dp.Schema(x=dp.Bounded(0, 10), year=dp.Categories([2023, 2024]))
    table = dp.table(str(tmp_path / "**" / "*.parquet"), schema=schema)
    counts = table.group_by("year").count().release(epsilon=1e3, rng=1).value["count"].to_list()
    assert counts == [23, 24]


def test_a_folder_is_all_its_parquet_files_and_a_workbook_is_refused(tmp_path):
    """A folder whose name looks like a pattern too; Excel is for the frame libraries to read."""
    for part in ("a", "b"):
        folder = tmp_path / "[rows]" / f"k={part}"
        folder.mkdir(parents=True)
        pl.DataFrame({"x": [1.0, 2.0]}).write_parquet(folder / "0.parquet")
    found = dp.table(str(tmp_path / "[rows]"), schema=SCHEMA).group_by("k").count().release(epsilon=1e3, rng=1)
    assert found.value["count"].to_list() == [2, 2, 0]
    with pytest.raises(ValueError, match="read_excel"):
        dp.table(str(tmp_path / "rows.xlsx"), schema=SCHEMA)


@pytest.mark.parametrize("name", ["__HIVE_DEFAULT_PARTITION__", "%5F_HIVE_DEFAULT_PARTITION__", "a%20b"])
def test_a_bad_byte_in_one_row_changes_nothing_that_a_folder_says(tmp_path, name):
    """It makes another reader of the same files, which once took the folder of rows without a value for a name."""
    asked = []
    for bad in ([], [b"\xff"]):
        root = tmp_path / f"{len(bad)}"
        for folder in (name, "b"):
            words = [b"ok"] * 20 + (bad if folder == "b" else [])
            text = pa.Array.from_buffers(pa.string(), len(words), pa.array(words, pa.binary()).buffers())
            (root / f"k={folder}").mkdir(parents=True)
            pq.write_table(pa.table({"c": text}), root / f"k={folder}" / "c.parquet")
        asked.append(str(root / "*" / "*.parquet"))
    schema = dp.Schema(k=dp.Unlisted(), c=dp.Unlisted())
    form = "SELECT k, COUNT(*), COUNT(c) FROM t GROUP BY k"
    replay(lambda path: dp.table(path, schema=schema).sql(form, epsilon=1.0, delta=1e-6), *asked)


@pytest.mark.parametrize(
    ("kind", "far"),
    [
        (pa.timestamp("s", "Europe/Paris"), 2**62),
        (pa.timestamp("ms"), 2**62),
        (pa.timestamp("ms", "Europe/Paris"), -(2**62)),
        (pa.timestamp("ns", "Europe/Paris"), -(2**63) + 1),
        (pa.date32(), 2**31 - 5),
        (pa.date32(), -(2**31)),
    ],
    ids=str,
)
def test_a_date_beyond_every_calendar_is_missing(tmp_path, kind, far):
    """DuckDB stops at one that its microseconds do not hold, in each of three readers; others are as they were."""
    ticks = pa.int32() if kind == pa.date32() else pa.int64()
    near = pa.array(["2021-03-04"]).cast(pa.date32()).cast(kind)
    frame = pa.table({"d": pa.concat_arrays([near, near, pa.array([far], ticks).view(kind)])})
    sources = [frame, str(tmp_path / "d.feather")]
    pa.feather.write_feather(frame, sources[1])
    if getattr(kind, "unit", "") != "s":  # which Parquet does not have
        sources.append(str(tmp_path / "d.parquet"))
        pq.write_table(frame, sources[2])
    schema = dp.Schema(d=dp.Times("2021-01-01", "2021-12-31"))
    for source in sources:
        table = dp.table(source, schema=schema, threads=1)
        answer = table.sql("SELECT quarter(d) AS q, COUNT(*) AS n FROM t GROUP BY q", epsilon=1e3, rng=1)
        assert answer.value["n"].to_list() == [2, 0, 0, 0]
