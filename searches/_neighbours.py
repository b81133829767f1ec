"""Hostile neighbours: containers of one odd record more, and everything that leaves an operation compared.

A *case* is an operation, a container and two lists of records that differ in one. Records are dictionaries of a column
``x`` (numbers, mostly), ``k`` (text, mostly) and ``who`` (identifiers, mostly); any entry may be odd. A container puts
records into something an operation reads; an operation gives a Release. Noise is forced by record and replay: what
meets noise must stay within the declared sensitivity, and keys, types, order, shapes, warnings, errors and messages
must be equal.

To try further operations, append to ``OPERATIONS``; a container that an operation does not take is not tried on it.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import decimal
import gzip
import math
import random
import struct
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from discreet.auditing import ReplayError, replay

__all__ = ["CONTAINERS", "ODD", "OPERATIONS", "Case", "Operation", "cases", "check", "one_connection", "spark"]

Record = dict[str, Any]

# --- odd values ------------------------------------------------------------------------------------------------------


class Failing:
    """An object that fails at whatever is done with it."""

    def __float__(self) -> float:
        raise RuntimeError("a private word")

    __hash__ = __iter__ = __eq__ = __len__ = __repr__ = __str__ = __float__  # type: ignore[assignment]


def _double(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


NUMBERS = [0.0, 1.0, 2.0, 2.5, 50.0, 99.0, 100.0]
FLOATS = [
    math.nan,
    _double(0x7FF0000000000001),
    _double(0xFFF8000000000123),
    -0.0,
    math.inf,
    -math.inf,
    5e-324,
    -2.2e-308,
    1e308,
    -1e308,
    1e16,
    2.0**53 + 2,
    0.1,
    100.00000000000001,
]
WHOLE = [0, 1, -1, 127, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
TEXTS = [
    "a",
    "b",
    "",
    "A",
    "1",
    "1.0",
    "1_0",
    "5d",
    "٥",
    "nan",
    "inf",
    "NULL",
    "é",
    "e\u0301",
    "\u202e",
    "\ufeff",
    "\U0001f600",
    "ß",
    "a\nb",
    '"',
    ",",
    "'; drop",
    "\\",
    " a ",
    "number:1",
    "int:1",
    "\t",
    "1e400",
    "true",
    "None",
    "\x7f",
]
ZONES = [
    datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC),
    datetime.datetime(2020, 1, 1, 17, tzinfo=datetime.timezone(datetime.timedelta(hours=5))),
    datetime.date(2020, 1, 1),
]
OBJECTS = [
    None,
    True,
    False,
    np.True_,
    np.int64(1),
    np.float32(1),
    decimal.Decimal("1.00"),
    decimal.Decimal("NaN"),
    decimal.Decimal("sNaN"),
    decimal.Decimal("1e9999"),
    10**400,
    2**70,
    1j,
    b"1",
    b"\xff",
    bytearray(b"a"),
    (1,),
    [1.0],
    [],
    {},
    np.array([1.0]),
    np.array([1.0, 2.0]),
    np.datetime64("NaT"),
    np.longdouble("1e4000"),
    Failing(),
    *ZONES,
]
try:
    import pandas as pd

    OBJECTS += [pd.NA, pd.NaT, pd.Timestamp("2020-01-01", tz="UTC")]
except ImportError:  # a search without tables
    pd = None  # type: ignore[assignment]
ODD = {"floats": FLOATS, "whole": WHOLE, "texts": TEXTS, "objects": OBJECTS}


def _pick(rng: random.Random, usual: Sequence[Any], *odd: Sequence[Any]) -> Any:
    return rng.choice(usual) if rng.random() < 0.6 else rng.choice(rng.choice(odd))


def _record(rng: random.Random, kind: str) -> Record:
    """A record of one ``kind`` of table: typed doubles or whole numbers, text, or anything at all."""
    x: dict[str, tuple[Sequence[Any], ...]] = {
        "floats": (NUMBERS, FLOATS, [None]),
        "whole": ([0, 1, 2, 50], WHOLE, [None]),
        "texts": ([str(n) for n in NUMBERS], TEXTS, [None]),
        "objects": (NUMBERS, FLOATS, WHOLE, TEXTS, OBJECTS),
    }
    who: dict[str, tuple[Sequence[Any], ...]] = {
        "floats": ([1.0, 2.0, 3.0], FLOATS, [None]),
        "whole": ([1, 2, 3], WHOLE, [None]),
        "texts": (["p", "q", "P"], TEXTS, [None]),
        "objects": ([1, 1.0, "1", True, "p"], FLOATS, TEXTS, OBJECTS),
    }
    k = (["a", "b", "c"], TEXTS, [None]) if kind != "objects" else (["a", "b"], TEXTS, OBJECTS, FLOATS)
    return {"x": _pick(rng, *x[kind]), "k": _pick(rng, *k), "who": _pick(rng, *who[kind])}


# --- containers ------------------------------------------------------------------------------------------------------

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


def _pandas(records: list[Record], kind: str, folder: Path) -> Any:
    if kind != "objects":
        return _arrow(records, kind, folder).to_pandas()
    return pd.DataFrame({name: pd.Series(_objects(values), dtype=object) for name, values in _columns(records).items()})


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


def _polars(records: list[Record], kind: str, folder: Path) -> Any:
    import polars as pl

    return pl.from_arrow(_arrow(records, kind, folder))


def _relation(records: list[Record], kind: str, folder: Path) -> Any:
    import duckdb

    return duckdb.connect(config={"threads": 1}).from_arrow(_arrow(records, kind, folder))


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


def _rows(records: list[Record], kind: str, folder: Path) -> Any:
    """Rows of two numbers, ragged where an entry is odd enough."""
    return [[r["x"], r["who"]] if not isinstance(r["x"], (list, tuple)) else r["x"] for r in records]


TYPED, ANY = ("floats", "whole", "texts"), ("floats", "whole", "texts", "objects")
CONTAINERS: dict[str, tuple[str, tuple[str, ...], Container]] = {  # what it holds, of which kinds of records, how
    "pandas": ("table", ANY, _pandas),
    "pandas nullable": ("table", TYPED, _nullable),
    "pandas of Arrow": ("table", TYPED, _arrow_in_pandas),
    "polars": ("table", TYPED, _polars),
    "pyarrow": ("table", TYPED, _arrow),
    "relation": ("table", TYPED, _relation),
    "csv": ("table", TYPED, _csv("rows.csv")),
    "csv.gz": ("table", TYPED, _csv("rows.csv.gz")),
    "spoiled csv": ("table", TYPED, _spoiled),
    **{f"parquet by {name}": ("table", TYPED, _parquet(name)) for name in ("polars", "pyarrow", "duckdb")},
    "list": ("column", ("floats", "whole", "objects"), _list),
    "array": ("column", ("floats", "whole"), _array),
    "object array": ("column", ("floats", "objects"), lambda r, kind, folder: _objects(_list(r, kind, folder))),
    "pandas column": ("column", ("floats", "whole", "objects"), _part(_pandas)),
    "nullable column": ("column", ("floats", "whole"), _part(_nullable)),
    "Arrow column of pandas": ("column", ("floats", "whole"), _part(_arrow_in_pandas)),
    "polars column": ("column", ("floats", "whole"), _part(_polars)),
    "pyarrow column": ("column", ("floats", "whole"), _part(_arrow)),
    "list of rows": ("rows", ("floats", "objects"), _rows),
    "object array of rows": ("rows", ("floats", "objects"), lambda r, kind, folder: _objects(_rows(r, kind, folder))),
}

# --- operations ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Operation:
    """A function of a container that gives a Release. ``takes`` is what a container holds: a table, a column, rows of
    two numbers. ``protects`` is a row, or all records with one ``who``: such neighbours differ in all of them.
    """

    name: str
    takes: str
    release: Callable[[Any], Any]
    protects: str = "row"


def _table_operations() -> list[Operation]:
    import discreet as dp
    from discreet.tables import col

    schema = dp.Schema(x=dp.Bounded(0, 100), k=dp.Categories(["a", "b"], other="else"), who=dp.Unlisted())
    filled = dp.Schema(x=dp.Bounded(0, 100, missing=0), k=dp.Unlisted(), who=dp.Unlisted())
    listed = dp.Schema(x=dp.Categories([0, 1, 2]), k=dp.Categories(["a"]), who=dp.Unlisted())
    questions: dict[str, tuple[Any, Callable[[Any], Any], dict[str, float]]] = {
        "sums": (schema, lambda t: t.group_by("k").count().sum("x").mean("x"), {"epsilon": 1.0}),
        "filled": (filled, lambda t: t.sum("x").variance("x").count("x"), {"epsilon": 1.0}),
        "bins": (schema, lambda t: t.group_by("k").histogram("x", 3).median("x", bins=8), {"epsilon": 1.0}),
        "filtered": (schema, lambda t: t.filter(~(col("x") < 50) | (col("k") == "a")).count(), {"rho": 0.5}),
        "missing": (schema, lambda t: t.filter(col("x").is_missing()).group_by("k").count(), {"rho": 8.0}),
        "derived": (schema, lambda t: t.derive(z=(1 / col("x")).clip(-1, 1)).sum("z"), {"epsilon": 1.0}),
        "private keys": (filled, lambda t: t.group_by("k").count().sum("x"), {"epsilon": 1.0, "delta": 0.2}),
        "private numbers": (schema, lambda t: t.group_by("who").count(), {"epsilon": 1.0, "delta": 0.2}),
        "numeric categories": (listed, lambda t: t.group_by("x").count(), {"epsilon": 1.0}),
        "distinct": (schema, lambda t: t.count_distinct("who").count_distinct("k"), {"epsilon": 1.0}),
    }
    bounds: dict[str, dict[str, Any]] = {"row": {}, "unit": {"unit": "who", "max_rows_per_unit": 2}}

    def operation(name: str, protects: str) -> Operation:
        declared, ask, budget = questions[name]
        options = bounds[protects]
        return Operation(
            f"table, {name}, a {protects}",
            "table",
            lambda source: ask(dp.table(source, schema=declared, **options)).release(**budget),
            protects,
        )

    return [operation(name, protects) for name in questions for protects in bounds]


def _statistics_operations() -> list[Operation]:
    from discreet import statistics as st

    edges = (-1.0, 0.0, 1.0, 50.0)
    columns = {
        "count": st.Count(epsilon=1.0),
        "sum": st.Sum(bounds=(0, 100), epsilon=1.0),
        "mean": st.Mean(bounds=(0, 100), rho=0.5),
        "variance": st.Variance(bounds=(0, 100), epsilon=1.0),
        "histogram": st.Histogram(bins=edges, epsilon=1.0),
        "categories": st.Histogram(categories=(0, 1, 2), epsilon=1.0),
        "cdf": st.Cdf(bins=edges, epsilon=1.0),
        "quantile": st.Quantile(q=0.3, bounds=(0, 100), steps=50, epsilon=1.0),
        "quantiles": st.Quantiles(q=(0.2, 0.7), bounds=(0, 100), steps=50, epsilon=1.0),
        "mode": st.Mode(bins=edges, epsilon=1.0),
        "top k": st.TopK(k=2, categories=(0, 1, 2), epsilon=1.0),
    }
    rows = {
        "vector mean": st.VectorMean(dimension=2, norm=10.0, rho=0.5),
        "covariance": st.Covariance(bounds=((0, 100), (0, 3)), epsilon=1.0),
    }
    return [
        *(Operation(f"statistics, {name}", "column", asked.release) for name, asked in columns.items()),
        *(Operation(f"statistics, {name}", "rows", asked.release) for name, asked in rows.items()),
    ]


OPERATIONS: list[Operation] = [*_table_operations(), *_statistics_operations()]

# --- cases -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Case:
    """Two neighbours in one kind of container, for one operation."""

    operation: Operation
    container: str
    kind: str
    first: list[Record]
    second: list[Record]

    def __str__(self) -> str:
        return f"{self.operation.name}; {self.container} of {self.kind}"


def _same_unit(a: Any, b: Any) -> bool:
    from discreet.encoding.values import identity

    return identity(a) == identity(b)


def cases(
    size: int, seed: int, containers: Mapping[str, tuple[str, tuple[str, ...], Container]] | None = None
) -> list[Case]:
    """So many cases, from a seed: every operation in turn, and for each the containers that it takes in turn."""
    rng, out, chosen = random.Random(seed), list[Case](), containers or CONTAINERS
    able = [operation for operation in OPERATIONS if operation.takes in {holds for holds, _, _ in chosen.values()}]
    while len(out) < size:
        turn, place = divmod(len(out), len(able))
        operation = able[place]
        fitting = [name for name, (holds, _, _) in chosen.items() if holds == operation.takes]
        name = fitting[(turn + place) % len(fitting)]
        kind = rng.choice(chosen[name][1])
        base = [_record(rng, kind) for _ in range(rng.choice([0, 1, 3, 8]))]
        base += base[:1] * rng.choice([0, 0, 3, 20])  # heaps of one record
        extra, place = _record(rng, kind), rng.randrange(len(base) + 1)
        longer = [*base[:place], extra, *base[place:]]
        if operation.protects == "unit":  # without all records of that unit, as the container reads identifiers
            read = (lambda v: v) if "csv" not in name else (lambda v: "" if v is None else str(v))
            base = [record for record in longer if not _same_unit(read(record["who"]), read(extra["who"]))]
        pair = (longer, base) if rng.random() < 0.5 else (base, longer)
        out.append(Case(operation, name, kind, *pair))
    return out


def check(
    case: Case,
    containers: Mapping[str, tuple[str, tuple[str, ...], Container]] | None = None,
    *,
    fresh: bool = True,
    reaches: tuple[str, ...] = (),
) -> bool:
    """Replay a case; whether it answered. A difference that its cost does not cover raises ``ReplayError``.

    Two equal refusals are no violation (a type that is publicly wrong), and show nothing else. Without ``fresh``
    nothing is copied, for containers that hold what cannot be (a session): each run makes its data and its answer anew
    all the same.
    """
    make = (containers or CONTAINERS)[case.container][2]

    def run(records: list[Record]) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            data = make(records, case.kind, Path(folder))
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                value = case.operation.release(data).value
            return _seen(value), [f"{w.category.__name__}: {w.message}" for w in heard]

    try:
        return replay(run, case.first, case.second, allow=(Exception,), fresh=fresh, reaches=reaches).error is None
    except ReplayError as error:
        raise ReplayError(f"{case}: {error}") from None


def _seen(value: Any) -> Any:
    """All that a receiver sees of an answer: its kind, the names and types of columns, their order and their values."""
    if hasattr(value, "dtypes") and hasattr(value, "columns"):
        return (
            type(value).__name__,
            [str(name) for name in value.columns],
            [str(kind) for kind in value.dtypes],
            [[repr(entry) for entry in (value[name].to_list())] for name in value.columns],
        )
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, [repr(entry) for entry in value.ravel().tolist()]
    return type(value).__name__, repr(value)
