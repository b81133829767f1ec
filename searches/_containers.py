"""Containers that put records (``_odd``) into something an operation reads. What is no text in one, is none in all."""

from __future__ import annotations

import csv
import datetime
import gzip
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from searches._odd import Record

__all__ = ["CONTAINERS", "Container", "identifier", "one_connection", "spark"]

Container = Callable[[list[Record], str, Path], Any]


@contextmanager
def one_connection() -> Iterator[None]:
    """Tables opened inside share a DuckDB connection: opening one takes longer than most questions here."""
    import duckdb

    usual, shared = duckdb.connect, duckdb.connect(config={"threads": 1})
    duckdb.connect = lambda *place, **settings: shared.cursor()
    try:
        yield
    finally:
        duckdb.connect = usual


def _columns(records: list[Record]) -> dict[str, list[Any]]:
    return {name: [record[name] for record in records] for name in ("x", "k", "who")}


def _types(kind: str) -> Any:
    import pyarrow as pa

    number = {"floats": pa.float64(), "whole": pa.int64(), "texts": pa.string()}[kind]
    return {"x": number, "k": pa.string(), "who": number}


def _arrow(records: list[Record], kind: str, _: Path) -> Any:
    import pyarrow as pa

    types = _types(kind)
    return pa.table(
        {name: pa.array(values, types[name], from_pandas=False) for name, values in _columns(records).items()}
    )


_ROUNDED = 1 << 53  # pandas rounds whole numbers beyond, before anybody reads them, where one entry is missing


def _in_doubles(value: Any) -> Any:
    return max(-_ROUNDED, min(value, _ROUNDED)) if type(value) is int else value


def _pandas(records: list[Record], kind: str, folder: Path) -> Any:
    records = [{name: _in_doubles(value) for name, value in record.items()} for record in records]
    if kind != "objects":
        return _arrow(records, kind, folder).to_pandas()
    return pd.DataFrame({name: pd.Series(_objects(values), dtype=object) for name, values in _columns(records).items()})


def _inferred(records: list[Record], kind: str, folder: Path) -> Any:
    """Columns whose types pandas infers, so that one record decides them.

    Not of moments and complex numbers alone: a column that can hold neither numbers nor text is refused by its type.
    """
    refused = (datetime.date, np.datetime64, complex)
    columns = {
        name: [None if isinstance(value, refused) else _in_doubles(value) for value in values]
        for name, values in _columns(records).items()
    }
    return pd.DataFrame({name: pd.Series(values, dtype=None if values else object) for name, values in columns.items()})


def _mapping(records: list[Record], kind: str, _: Path) -> Any:
    return _columns(records)


def _objects(values: list[Any]) -> Any:
    out = np.empty(len(values), object)
    for number, value in enumerate(values):
        out[number] = value
    return out


def _nullable(records: list[Record], kind: str, folder: Path) -> Any:
    names = {"floats": "Float64", "whole": "Int64", "texts": "string"}
    return pd.DataFrame(
        {
            name: pd.array([None if v != v else v for v in values], "string" if name == "k" else names[kind])
            for name, values in _columns(records).items()
        }
    )


def _arrow_in_pandas(records: list[Record], kind: str, folder: Path) -> Any:
    return _arrow(records, kind, folder).to_pandas(types_mapper=pd.ArrowDtype)


def _no_text(value: Any) -> bytes | None:
    return None if value is None else value.encode().replace("é".encode(), b"\xe9").replace("ß".encode(), b"\xff\xfe")


def _spoiled_arrow(records: list[Record], kind: str, folder: Path) -> Any:
    """Text whose bytes are no UTF-8 in what is odd: Arrow does not look."""
    import pyarrow as pa

    table = _arrow(records, kind, folder)
    for place, field in enumerate(table.schema):
        if field.type == pa.string():
            entries = [_no_text(value) for value in table[field.name].to_pylist()]
            table = table.set_column(place, field.name, pa.array(entries, pa.binary()).view(pa.string()))
    return table


def _spoiled_parquet(records: list[Record], kind: str, folder: Path) -> Any:
    import pyarrow.parquet as pq

    pq.write_table(_spoiled_arrow(records, kind, folder), folder / "rows.parquet", row_group_size=4)
    return folder / "rows.parquet"


def _spoiled_in_pandas(records: list[Record], kind: str, folder: Path) -> Any:
    return _spoiled_arrow(records, kind, folder).to_pandas(types_mapper=pd.ArrowDtype)


def _polars(records: list[Record], kind: str, folder: Path) -> Any:
    import polars as pl

    return pl.from_arrow(_arrow(records, kind, folder))


def _relation(make: Container) -> Container:
    def relation(records: list[Record], kind: str, folder: Path) -> Any:
        import duckdb

        return duckdb.connect(config={"threads": 1}).from_arrow(make(records, kind, folder))

    return relation


def _csv(name: str) -> Container:
    def write(records: list[Record], kind: str, folder: Path) -> Path:
        path = folder / name
        opener = gzip.open if name.endswith(".gz") else open
        with opener(path, "wt", newline="", encoding="utf-8") as file:
            lines = csv.writer(file)
            lines.writerow(["x", "k", "who"])
            lines.writerows([["" if v is None else v for v in record.values()] for record in records])
        return path

    return write


def _spoiled(records: list[Record], kind: str, folder: Path) -> Path:
    """A text file with bytes that are no UTF-8 in what is odd."""
    path = _csv("rows.csv")(records, kind, folder)
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xe9").replace("ß".encode(), b"\xff\xfe"))
    return path


def _parquet(writer: str) -> Container:
    def write(records: list[Record], kind: str, folder: Path) -> Path:
        table, path = _arrow(records, kind, folder), folder / "rows.parquet"
        if writer == "polars":
            import polars as pl

            pl.from_arrow(table).write_parquet(path)
        elif writer == "pyarrow":
            import pyarrow.parquet as pq

            pq.write_table(table, path, row_group_size=4, write_page_index=True)
        else:
            import duckdb

            duckdb.connect(config={"threads": 1}).from_arrow(table).write_parquet(str(path))
        return path

    return write


def spark(session: Any) -> Container:
    """Frames of a Spark session, which the slow search brings."""

    def frame(records: list[Record], kind: str, folder: Path) -> Any:
        number = {"floats": "double", "whole": "bigint", "texts": "string"}[kind]
        return session.createDataFrame(
            [tuple(record.values()) for record in records], f"x {number}, k string, who {number}"
        )

    return frame


def _list(records: list[Record], kind: str, folder: Path) -> Any:
    return [record["x"] for record in records]


def _array(records: list[Record], kind: str, folder: Path) -> Any:
    if kind == "whole":
        return np.array([0 if record["x"] is None else record["x"] for record in records], np.int64)
    return np.array([math.nan if record["x"] is None else record["x"] for record in records], np.float64)


def _part(make: Container) -> Container:
    return lambda records, kind, folder: make(records, kind, folder)["x"]


def _inferred_column(records: list[Record], kind: str, folder: Path) -> Any:
    """With a number in it, since one of text alone is refused by its type."""
    return _inferred([{"x": 0.0, "k": None, "who": None}, *records], kind, folder)["x"]


def _array_of_rows(records: list[Record], kind: str, folder: Path) -> Any:
    rows = [[math.nan if v is None else v for v in (record["x"], record["who"])] for record in records]
    return np.array(rows, np.float64).reshape(-1, 2)


def _rows(records: list[Record], kind: str, folder: Path) -> Any:
    """Rows of two numbers, ragged where an entry is odd enough."""
    return [[r["x"], r["who"]] if not isinstance(r["x"], (list, tuple)) else r["x"] for r in records]


TYPED, ANY = ("floats", "whole", "texts"), ("floats", "whole", "texts", "objects")
CONTAINERS: dict[str, tuple[str, tuple[str, ...], Container]] = {  # what it holds, of which kinds of records, how
    "pandas": ("table", ANY, _pandas),
    "pandas, inferred": ("table", ANY, _inferred),
    "pandas nullable": ("table", TYPED, _nullable),
    "pandas of Arrow": ("table", TYPED, _arrow_in_pandas),
    "polars": ("table", TYPED, _polars),
    "pyarrow": ("table", TYPED, _arrow),
    "spoiled pyarrow": ("table", ("texts",), _spoiled_arrow),
    "spoiled parquet": ("table", ("texts",), _spoiled_parquet),
    "spoiled pandas": ("table", ("texts",), _spoiled_in_pandas),
    "relation": ("relation", TYPED, _relation(_arrow)),
    "spoiled relation": ("relation", ("texts",), _relation(_spoiled_arrow)),
    "mapping": ("mapping", ANY, _mapping),
    "csv": ("table", TYPED, _csv("rows.csv")),
    "csv.gz": ("table", TYPED, _csv("rows.csv.gz")),
    "spoiled csv": ("table", TYPED, _spoiled),
    **{f"parquet by {name}": ("table", TYPED, _parquet(name)) for name in ("polars", "pyarrow", "duckdb")},
    "list": ("column", ("floats", "whole", "objects"), _list),
    "array": ("column", ("floats", "whole"), _array),
    "object array": ("column", ("floats", "objects"), lambda r, kind, folder: _objects(_list(r, kind, folder))),
    "pandas column": ("column", ("floats", "whole", "objects"), _part(_pandas)),
    "inferred column": ("column", ("floats", "whole", "objects"), _inferred_column),
    "nullable column": ("column", ("floats", "whole"), _part(_nullable)),
    "Arrow column of pandas": ("column", ("floats", "whole"), _part(_arrow_in_pandas)),
    "polars column": ("column", ("floats", "whole"), _part(_polars)),
    "pyarrow column": ("column", ("floats", "whole"), _part(_arrow)),
    "array of rows": ("rows", ("floats",), _array_of_rows),
    "list of rows": ("rows", ("floats", "objects"), _rows),
    "object array of rows": ("rows", ("floats", "objects"), lambda r, kind, folder: _objects(_rows(r, kind, folder))),
}


def identifier(container: str) -> Callable[[Any], Any]:
    """How a container holds an identifier: rounded, as text, or not at all."""
    if "csv" in container:
        return lambda value: "" if value is None else str(value)
    if container.startswith("spoiled"):
        return lambda value: None if isinstance(value, str) and {"é", "ß"} & set(value) else value
    return _in_doubles if container in ("pandas", "pandas, inferred") else lambda value: value
