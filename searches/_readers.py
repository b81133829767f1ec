"""Tables of every type by every writer, with one record that is ordinary or spoiled, for the search of readers.

A table has three columns: ``i`` numbers the records, ``v`` is of the type that is tried, ``note`` is text. The last
record is spoiled in one of two ways: its note has bytes that are no UTF-8, or its ``v`` is as odd as the type allows.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

__all__ = [
    "MARK",
    "SQL_TYPES",
    "TYPES",
    "WRITERS",
    "as_polars",
    "own_database",
    "spark_writers",
    "spoil",
    "sql_table",
    "table",
]

_CONNECT = duckdb.connect  # as it was before ``one_connection``
ROWS = 6
TIMES = "%Y-%m-%d %H:%M:%S"  # or pandas would write all times as days, unless one of them is none
MARK, SPOILED = b"QQQQ", b"\xff\xfeQ\xc3"  # what is written, and what becomes of it in the file


def _ticks(kind: Any, *values: int) -> tuple[Any, list[Any]]:
    """Entries of a type by the whole numbers that stand for them."""
    whole = pa.array(values, pa.int32() if kind == pa.date32() else pa.int64()).view(kind)
    return kind, list(whole)


_LONG = (2**63 - 1, -(2**63), -(2**63) + 1, 2**62)
_DAY = 86_400
_DECIMALS = [
    pa.decimal128(4, 2),
    pa.decimal128(18, 2),
    pa.decimal128(38, 10),
    pa.decimal256(50, 2),
    pa.decimal256(76, 0),
]
_DECIMALS += [pa.decimal32(7, 2), pa.decimal64(12, 2)]
TYPES: dict[str, tuple[Any, list[Any], list[Any]]] = {  # the type, an ordinary entry or two, odd ones
    **{
        str(kind): (kind, [1, 7], [np.iinfo(str(kind)).min, np.iinfo(str(kind)).max])
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    },
    **{
        str(kind): (kind, [1.0, 2.5], [np.nan, np.inf, -np.inf, -0.0, 6e-8])
        for kind in (pa.float16(), pa.float32(), pa.float64())
    },
    "bool": (pa.bool_(), [True, False], [None]),
    **{
        str(kind): (
            kind,
            [decimal.Decimal(1), decimal.Decimal(7)],
            [decimal.Decimal(f"-{'9' * kind.precision}E-{kind.scale}")],
        )
        for kind in _DECIMALS
    },
    **{
        str(kind): (kind, ["1", "b"], ["", "a\0b", "é€😀", "1e400", "2024-01-01"])
        for kind in (pa.string(), pa.large_string(), pa.string_view())
    },
    "dictionary of text": (pa.dictionary(pa.int32(), pa.string()), ["1", "b"], ["", "word"]),
    "dictionary of numbers": (pa.dictionary(pa.int32(), pa.int64()), [1, 7], [2**62]),
    "json": (pa.json_(), ['{"a": 1}', "1"], ["{", ""]),
    "uuid": (pa.uuid(), [uuid.UUID(int=1).bytes, uuid.UUID(int=7).bytes], [uuid.UUID(int=2**128 - 1).bytes]),
    "binary": (pa.binary(), [b"1", b"b"], [b"\xff"]),
    "null": (pa.null(), [None, None], [None]),
    "date32": (*_ticks(pa.date32(), 19_000, 19_001), _ticks(pa.date32(), 2**31 - 1, -(2**31), 2**31 - 5)[1]),
    "date64": (
        *_ticks(pa.date64(), 19_000 * _DAY * 1000, 19_001 * _DAY * 1000),
        _ticks(pa.date64(), 2**53, -(2**53))[1],
    ),
    **{
        f"{unit} {zone}": (
            *_ticks(pa.timestamp(unit, zone), 19_000 * _DAY * scale, 19_001 * _DAY * scale),
            _ticks(pa.timestamp(unit, zone), *_LONG)[1],
        )
        for unit, scale in {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.items()
        for zone in (None, "UTC", "Europe/Paris")
    },
    "year 9999": (
        *_ticks(pa.timestamp("us"), 253_402_214_400 * 10**6, 19_001 * _DAY * 10**6),
        _ticks(pa.timestamp("us"), 2**62)[1],
    ),
    "time": (pa.time64("us"), [datetime.time(1), datetime.time(2)], [datetime.time(23, 59)]),
    "duration": (pa.duration("us"), [1, 2], [2**62]),
    "list": (pa.list_(pa.int64()), [[1], [2]], [[]]),
    "struct": (pa.struct({"str": pa.string()}), [{"str": "a"}, {"str": "b"}], [{"str": None}]),
}

SQL_TYPES: dict[str, list[str]] = {  # DuckDB's own, with odd entries
    "TINYINT": ["-128"],
    "HUGEINT": [str(2**127 - 1)],
    "UHUGEINT": [str(2**128 - 1)],
    "FLOAT": ["nan", "inf"],
    "DOUBLE": ["nan", "-inf"],
    "DECIMAL(38, 10)": ["9" * 28],
    "BOOLEAN": ["0"],
    "VARCHAR": ["", "1e400"],
    "JSON": ["{}", '""'],
    "UUID": ["ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "ENUM('1', '2', 'word')": ["word"],
    "DATE": ["infinity", "-infinity", "5877642-06-25 (BC)"],
    "TIMESTAMP_S": ["infinity", "294246-12-31"],
    "TIMESTAMP_MS": ["infinity", "294246-12-31"],
    "TIMESTAMP": ["infinity", "294246-12-31"],
    "TIMESTAMP_NS": ["infinity", "2262-01-01"],
    "TIMESTAMPTZ": ["infinity", "294246-12-31"],
    "BIT": ["101"],
    "BIGNUM": ["9" * 99],
    "TIME": ["24:00:00"],
    "INTERVAL": ["1 year"],
}


def table(name: str, odd: int | None, note: bytes = b"ok", *, spoil: bool = False) -> Any:
    """Records of a type; the last has an odd entry, or another note, which may be spoiled where it stands."""
    kind, usual, odder = TYPES[name]
    values = [usual[i % 2] for i in range(ROWS)] + [usual[0] if odd is None else odder[odd]]
    return pa.table({"i": range(ROWS + 1), "v": pa.array(values, kind), "note": _notes(note, spoil)})


def _notes(note: bytes, spoil: bool) -> Any:
    words = pa.array([b"ok"] * ROWS + [SPOILED if spoil else note], pa.binary())
    return words.view(pa.string())


def sql_table(kind: str, odd: int | None, note: bytes) -> Any:
    """The same in a type of DuckDB."""
    dates = kind.startswith(("DATE", "TIMESTAMP"))
    usual = (
        "2022-01-01" if dates else str(uuid.UUID(int=1)) if kind == "UUID" else "1 day" if kind == "INTERVAL" else "1"
    )
    usual = "01:00:00" if kind == "TIME" else usual
    last = usual if odd is None else SQL_TYPES[kind][odd]
    rows = ", ".join(
        f"({i}, '{last if i == ROWS else usual}', '{note.decode() if i == ROWS else 'ok'}')" for i in range(ROWS + 1)
    )
    return own_database().sql(f"SELECT i, CAST(v AS {kind}) AS v, note FROM (VALUES {rows}) AS t(i, v, note)")


def spoil(path: Path) -> None:
    """Put bytes that are no text in the place of the mark, in a file that is not compressed."""
    for file in [path] if path.is_file() else sorted(path.glob("*.parquet")):
        found = file.read_bytes()
        file.write_bytes(found.replace(MARK, SPOILED))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # Spark's, of what it wrote


def _pandas(rows: Any) -> pd.DataFrame:
    if any(pa.types.is_decimal(kind) for kind in _arrow(rows).schema.types):
        raise TypeError("to pandas decimals are objects, whose type the writer infers from the records")
    return rows.to_pandas() if isinstance(rows, pa.Table) else rows.df()


def _arrow(rows: Any) -> Any:
    return rows if isinstance(rows, pa.Table) else rows.to_arrow_table()


def as_polars(rows: Any) -> Any:
    """The same rows in polars, which panics at what it does not hold."""
    if any(pa.types.is_decimal256(kind) for kind in _arrow(rows).schema.types):
        raise TypeError("polars has no such decimals")
    return pl.from_arrow(_arrow(rows))


def own_database() -> Any:
    """A database for one table: a time beyond DuckDB's calendar ends the whole database that it is written from."""
    return _CONNECT(config={"threads": 1})


def _relation(rows: Any) -> Any:
    return own_database().from_arrow(rows) if isinstance(rows, pa.Table) else rows


def _pandas_json(rows: Any, path: Path) -> None:
    frame = _pandas(rows)
    if isinstance(frame["v"].dtype, pd.DatetimeTZDtype):
        raise TypeError("pandas crashes when it writes a zoned time beyond its calendar as JSON")
    frame.to_json(path, orient="records", lines=True)


def _parquet(**options: Any) -> Callable[[Any, Path], None]:
    return lambda rows, path: pq.write_table(_arrow(rows), path, compression="none", **options)


WRITERS: dict[str, tuple[str, Callable[[Any, Path], None]]] = {  # what a file is called, and how it is written
    "pyarrow": ("t.parquet", _parquet()),
    "pyarrow, old": ("t.parquet", _parquet(version="1.0", use_dictionary=False)),
    "pyarrow, INT96": ("t.parquet", _parquet(use_deprecated_int96_timestamps=True)),
    "pyarrow, without Arrow's schema": ("t.parquet", _parquet(store_schema=False, row_group_size=3)),
    "pyarrow, v2 pages": (
        "t.parquet",
        _parquet(data_page_version="2.0", write_page_index=True, write_statistics=False),
    ),
    "polars": ("t.parquet", lambda rows, path: as_polars(rows).write_parquet(path, compression="uncompressed")),
    "duckdb": ("t.parquet", lambda rows, path: _relation(rows).write_parquet(str(path), compression="uncompressed")),
    "pandas": ("t.parquet", lambda rows, path: _pandas(rows).to_parquet(path, compression=None, index=False)),
    "pandas, with an index": (
        "t.parquet",
        lambda rows, path: (
            _pandas(rows).set_index("i", drop=False, append=False).rename_axis(None).to_parquet(path, compression=None)
        ),
    ),
    "Feather by pyarrow": (
        "t.feather",
        lambda rows, path: pa.feather.write_feather(_arrow(rows), path, "uncompressed"),
    ),
    "Feather by polars": ("t.arrow", lambda rows, path: as_polars(rows).write_ipc(path, compression="uncompressed")),
    "CSV by polars": ("t.csv", lambda rows, path: as_polars(rows).write_csv(path)),
    "CSV by pandas": ("t.csv", lambda rows, path: _pandas(rows).to_csv(path, date_format=TIMES)),
    "CSV by duckdb": ("t.csv", lambda rows, path: _relation(rows).write_csv(str(path), header=True)),
    "tabs by pandas": (
        "t.tsv",
        lambda rows, path: _pandas(rows).to_csv(path, sep="\t", date_format=TIMES),
    ),
    "JSON by polars": ("t.jsonl", lambda rows, path: as_polars(rows).write_ndjson(path)),
    "JSON by pandas": ("t.jsonl", lambda rows, path: _pandas_json(rows, path)),
}


def spark_writers(session: Any) -> dict[str, tuple[str, Callable[[Any, Path], None]]]:
    """Files that Spark writes, of the three forms that its times have."""

    def write(form: str, times: str) -> Callable[[Any, Path], None]:
        def to(rows: Any, path: Path) -> None:
            session.conf.set("spark.sql.parquet.outputTimestampType", times)
            frame = session.createDataFrame(_arrow(rows)).coalesce(1)
            kept = frame.write.mode("overwrite").option("header", True)
            (kept.option("compression", "none") if form == "parquet" else kept).format(form).save(str(path))
            if form == "csv":
                (part,) = path.glob("*.csv")
                text = part.read_bytes()
                for file in [*path.iterdir()]:
                    file.unlink()
                path.rmdir()
                path.write_bytes(text)

        return to

    parquet = {
        f"Spark, {times}": ("t", write("parquet", times)) for times in ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS")
    }
    return {**parquet, "CSV by Spark": ("t.csv", write("csv", "INT96"))}
