"""Odd containers: whatever somebody may hand to an operation in place of its data. A *form* is a way to hold entries,
an *entry list* what is held; every form is made of every list that it can hold.
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import fractions
import pathlib
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
import torch

__all__ = ["ALONE", "ENTRIES", "FORMS", "form", "forms"]

DAY = datetime.date(2020, 1, 1)
ENTRIES: dict[str, list[Any]] = {
    "floats": [0.5, 1.5, 2.5, 3.5],
    "whole": [3, 0, 5, 2],
    "truths": [True, False, True, True],
    "texts": ["a", "b", "", "1.5"],
    "bytes": [b"a", b"", b"1", b"\xff"],
    "dates": [DAY, DAY, datetime.date(1, 1, 1), DAY],
    "moments": [datetime.datetime(2020, 1, 1)] * 4,
    "spans": [datetime.timedelta(1)] * 4,
    "complex": [1j, 2 + 0j, 0j, 1j],
    "decimals": [decimal.Decimal("1.5")] * 4,
    "fractions": [fractions.Fraction(1, 3)] * 4,
    "long": [2**70, -(2**70), 0, 1],
    "missing": [None, float("nan"), None, float("inf")],
    "mixed": [1, "a", None, 2.5],
    "rows": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]],
    "ragged": [[1.0], [2.0, 3.0], [], 4.0],
    "tuples": [(1, 2.0), (0, 1.0), (3, 5.0), (2, 2.0)],
    "mappings": [{"a": 1}, {"a": 2}, {"b": 3}, {}],
    "arrays": [np.zeros(2), np.zeros(3), np.zeros(()), np.zeros((1, 1))],
    "none": [],
    "one": [3.0],
    "many": [1.0] * 300,
}
HASHED = {name for name in ENTRIES if name not in ("rows", "ragged", "mappings", "arrays")}
NUMBERS = {"floats", "whole", "truths", "one", "many", "none"}
PLAIN = NUMBERS | {"texts", "bytes", "complex"}
FLAT = HASHED - {"tuples"}


def _objects(entries: list[Any]) -> Any:
    out = np.empty(len(entries), object)
    for place, entry in enumerate(entries):
        out[place] = entry
    return out


def _itself(entry: Any) -> Any:
    return entry


def _matrix(entries: list[Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy would rather see an array
        return np.matrix(np.asarray(entries))


def _square(entries: list[Any]) -> Any:
    return np.stack([np.asarray(entries)] * 2, axis=1)


class Sequence:
    """A sequence of a class of one's own."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, place: Any) -> Any:
        return self._entries[place]


class Arrayed(Sequence):
    """Something that NumPy can read."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._entries, dtype)


class Iterating:
    """Something that can be iterated, without a length."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)


def _structured(entries: list[Any]) -> Any:
    return np.array([(i, 0.5) for i in range(len(entries))], [("a", int), ("b", float)])


def _tensor(entries: list[Any]) -> Any:
    return torch.as_tensor(np.asarray(entries, np.float64))


FORMS: dict[str, tuple[set[str], Callable[[list[Any]], Any]]] = {  # of which entries, how
    "list": (set(ENTRIES), list),
    "tuple": (set(ENTRIES), tuple),
    "generator": (set(ENTRIES), lambda e: (x for x in e)),
    "iterator": (set(ENTRIES), iter),
    "map": (set(ENTRIES), lambda e: map(_itself, e)),
    "zip": (NUMBERS, lambda e: zip(e, e, strict=True)),
    "enumerate": (NUMBERS, enumerate),
    "range": (NUMBERS, lambda e: range(len(e))),
    "deque": (set(ENTRIES), collections.deque),
    "set": (FLAT, set),
    "frozen set": (FLAT, frozenset),
    "mapping of entries": (FLAT, lambda e: dict.fromkeys(e, 1)),
    "values of a mapping": (set(ENTRIES), lambda e: dict(enumerate(e)).values()),
    "keys of a mapping": (FLAT, lambda e: dict.fromkeys(e, 1).keys()),
    "mapping of columns": (set(ENTRIES), lambda e: {"a": list(e), "b": list(e)}),
    "read-only mapping": (NUMBERS, lambda e: types.MappingProxyType({"a": e})),
    "counter": (FLAT, collections.Counter),
    "sequence of one's own": (set(ENTRIES), Sequence),
    "what NumPy can read": (NUMBERS | {"texts"}, Arrayed),
    "iterable of one's own": (set(ENTRIES), Iterating),
    "list in a list": (set(ENTRIES), lambda e: [list(e)]),
    "lists of lists of lists": (set(ENTRIES), lambda e: [[[x] for x in e]] * 2),
    "list of arrays": (NUMBERS, lambda e: [np.asarray(e)] * 2),
    "array.array": (NUMBERS - {"truths"}, lambda e: array.array("d", e)),
    "memory view": (NUMBERS, lambda e: memoryview(np.asarray(e, np.float64))),
    "bytes": (NUMBERS, lambda e: bytes(len(e))),
    "byte array": (NUMBERS, lambda e: bytearray(len(e))),
    "text": (NUMBERS, lambda e: "a" * min(len(e), 9)),
    "array": (PLAIN | {"moments", "spans", "long"}, np.asarray),
    "array of objects": (set(ENTRIES), _objects),
    "halves": (NUMBERS, lambda e: np.asarray(e, np.float16)),
    "long doubles": (NUMBERS, lambda e: np.asarray(e, np.longdouble)),
    "bytes' integers": (NUMBERS, lambda e: np.asarray(e).astype(np.int8)),
    "unsigned": (NUMBERS, lambda e: np.asarray(e).astype(np.uint64)),
    "swapped bytes": (NUMBERS, lambda e: np.asarray(e, ">f8")),
    "days": (NUMBERS, lambda e: np.asarray(e).astype("i8").astype("M8[D]")),
    "spans of days": (NUMBERS, lambda e: np.asarray(e).astype("i8").astype("m8[D]")),
    "void": (NUMBERS, lambda e: np.zeros(len(e), "V4")),
    "strings of NumPy": (NUMBERS, lambda e: np.asarray([str(x) for x in e], np.dtypes.StringDType())),
    "structured": (NUMBERS, _structured),
    "record array": (NUMBERS, lambda e: _structured(e).view(np.recarray)),
    "masked": (NUMBERS, lambda e: np.ma.masked_array(np.asarray(e, float), [i % 2 for i in range(len(e))])),
    "square": (PLAIN, _square),
    "square of objects": (PLAIN, lambda e: _square(e).astype(object)),
    "column of rows": (NUMBERS, lambda e: np.asarray(e).reshape(-1, 1)),
    "one row": (NUMBERS, lambda e: np.asarray(e).reshape(1, -1)),
    "cube": (NUMBERS, lambda e: np.zeros((len(e), 2, 2))),
    "no rows": (NUMBERS, lambda e: np.zeros((0, len(e)))),
    "no columns": (NUMBERS, lambda e: np.zeros((len(e), 0))),
    "without dimensions": ({"one"}, lambda e: np.array(e[0])),
    "object without dimensions": (set(ENTRIES), lambda e: _wrapped(e)),
    "scalar of NumPy": ({"one"}, lambda e: np.float64(e[0])),
    "matrix": (NUMBERS, _matrix),
    "series": (HASHED | {"ragged", "mappings"}, lambda e: pd.Series(e, dtype=None if e else object)),
    "series of objects": (set(ENTRIES), lambda e: pd.Series(_objects(e), dtype=object)),
    "series by other labels": (NUMBERS, lambda e: pd.Series(e, index=range(9, 9 + len(e)), dtype=float)),
    "nullable series": (NUMBERS, lambda e: pd.Series(pd.array(e, "Float64"))),
    "nullable truths": (NUMBERS, lambda e: pd.Series(pd.array([bool(x) for x in e], "boolean"))),
    "categorical series": (FLAT - {"missing", "mixed", "complex"}, lambda e: pd.Series(pd.Categorical(e))),
    "categorical": (FLAT - {"missing", "mixed", "complex"}, pd.Categorical),
    "Arrow's series": (NUMBERS, lambda e: pd.Series(e, dtype="float64[pyarrow]")),
    "Arrow's text series": (NUMBERS, lambda e: pd.Series([str(x) for x in e], dtype="string[pyarrow]")),
    "sparse series": (NUMBERS, lambda e: pd.Series(pd.arrays.SparseArray(np.asarray(e, float)))),
    "intervals": (NUMBERS, lambda e: pd.Series(pd.interval_range(0, len(e)))),
    "periods": (NUMBERS, lambda e: pd.Series(pd.period_range("2020", periods=len(e), freq="D"))),
    "zoned moments": (NUMBERS, lambda e: pd.Series(pd.date_range("2020", periods=len(e), tz="UTC"))),
    "index": (NUMBERS | {"texts"}, lambda e: pd.Index(e)),
    "index of several": (NUMBERS, lambda e: pd.MultiIndex.from_arrays([range(len(e)), range(len(e))])),
    "array of pandas": (NUMBERS, lambda e: pd.array(e, "Float64")),
    "frame": (set(ENTRIES), lambda e: pd.DataFrame({"a": _objects(e)})),
    "frame of numbers": (NUMBERS, lambda e: pd.DataFrame({"a": np.asarray(e, float), "b": 1.0})),
    "groups": (NUMBERS, lambda e: pd.DataFrame({"a": e}).groupby("a")),
    "polars": (FLAT - {"mixed", "complex", "long", "fractions"}, lambda e: pl.Series(e, strict=False)),
    "polars' objects": ({"mixed", "mappings", "complex"}, lambda e: pl.Series(e, dtype=pl.Object)),
    "polars' lists": (NUMBERS, lambda e: pl.Series([[1.0, 2.0]] * len(e), dtype=pl.List(pl.Float64))),
    "polars' arrays": (NUMBERS, lambda e: pl.Series([[1.0, 2.0]] * len(e), dtype=pl.Array(pl.Float64, 2))),
    "polars' structs": (NUMBERS, lambda e: pl.Series([{"a": 1}] * len(e), dtype=pl.Struct({"a": pl.Int64}))),
    "polars' categories": (NUMBERS, lambda e: pl.Series(["a"] * len(e), dtype=pl.Categorical)),
    "polars' nulls": (NUMBERS, lambda e: pl.Series([None] * len(e), dtype=pl.Null)),
    "polars' decimals": (NUMBERS, lambda e: pl.Series([decimal.Decimal(1)] * len(e), dtype=pl.Decimal(10, 2))),
    "polars frame": (NUMBERS | {"texts"}, lambda e: pl.DataFrame({"a": e, "b": e})),
    "polars lazily": (NUMBERS, lambda e: pl.LazyFrame({"a": e})),
    "Arrow": (NUMBERS | {"texts", "bytes", "dates", "moments", "spans", "missing"}, pa.array),
    "Arrow in chunks": (NUMBERS | {"texts"}, lambda e: pa.chunked_array([pa.array(e), pa.array(e)[:0]])),
    "Arrow's lists": (NUMBERS, lambda e: pa.array([[1.0, 2.0]] * len(e), pa.list_(pa.float64()))),
    "Arrow's structs": (NUMBERS, lambda e: pa.array([{"a": 1}] * len(e), pa.struct({"a": pa.int64()}))),
    "Arrow's words": (NUMBERS, lambda e: pa.array(["a"] * len(e)).dictionary_encode()),
    "Arrow's nulls": (NUMBERS, lambda e: pa.nulls(len(e))),
    "Arrow's decimals": (NUMBERS, lambda e: pa.array([decimal.Decimal(1)] * len(e), pa.decimal128(10, 2))),
    "Arrow table": (NUMBERS | {"texts"}, lambda e: pa.table({"a": e, "b": e})),
    "Arrow's batch": (NUMBERS, lambda e: pa.record_batch({"a": pa.array(e)})),
    "tensor": (NUMBERS, _tensor),
    "whole tensor": (NUMBERS, lambda e: _tensor(e).long()),
    "tensor with a gradient": (NUMBERS, lambda e: _tensor(e).requires_grad_()),
    "tensor of truths": (NUMBERS, lambda e: _tensor(e).bool()),
    "complex tensor": (NUMBERS, lambda e: _tensor(e).to(torch.complex128)),
    "short floats": (NUMBERS, lambda e: _tensor(e).bfloat16()),
    "square tensor": (NUMBERS, lambda e: torch.zeros(len(e), 2)),
    "tensor without dimensions": ({"one"}, lambda e: torch.tensor(e[0])),
    "sparse tensor": (NUMBERS, lambda e: _tensor(e).to_sparse()),
    "tensor without values": (NUMBERS, lambda e: torch.zeros(len(e), device="meta")),
    "sparse matrix": (NUMBERS, lambda e: scipy.sparse.csr_matrix(np.zeros((len(e), 2)))),
    "sparse array": (NUMBERS, lambda e: scipy.sparse.coo_array(np.asarray(e, float))),
}


def _broken_text() -> Any:
    """Four entries of Arrow's text, the second of bytes that are no UTF-8: Arrow looks at none where it is told so."""
    places = np.array([0, 1, 2, 3, 4], np.int64).tobytes()
    return pa.Array.from_buffers(pa.large_string(), 4, [None, pa.py_buffer(places), pa.py_buffer(b"a\xffba")])


def _far(kind: Any) -> Any:
    """Four dates, moments or spans of Arrow, one of them beyond what Python's hold."""
    return pa.array([0, 2**31 - 1 if kind == pa.date32() else 2**53, 1, 0], kind)


def _of_pandas(column: Any) -> Any:
    return pd.Series(pd.arrays.ArrowExtensionArray(column))


UNHELD: dict[str, Callable[[], Any]] = {  # typed columns with one entry that Python cannot hold
    "Arrow's broken text": _broken_text,
    "Arrow's broken text in chunks": lambda: pa.chunked_array([_broken_text()]),
    "Arrow's broken words": lambda: pa.DictionaryArray.from_arrays([0, 1, 2, 3], _broken_text()),
    "Arrow's broken views": lambda: _broken_text().cast(pa.string_view()),
    "Arrow's broken lists": lambda: pa.LargeListArray.from_arrays([0, 1, 2, 3, 4], _broken_text()),
    "pandas' broken text": lambda: _of_pandas(_broken_text()),
    "Arrow's far moments": lambda: _far(pa.timestamp("s")),
    "Arrow's far days": lambda: _far(pa.date32()),
    "Arrow's far spans": lambda: _far(pa.duration("s")),
    "pandas' far moments": lambda: _of_pandas(_far(pa.timestamp("s"))),
    "polars' far moments": lambda: pl.Series([0, 2**53, 1, 0]).cast(pl.Datetime("ms")),
    "polars' far days": lambda: pl.Series([0, 2**31 - 1, 1, 0], dtype=pl.Int32).cast(pl.Date),
    "polars' far spans": lambda: pl.Series([0, 2**60, 1, 0]).cast(pl.Duration("ms")),
}
ALONE: dict[str, Callable[[], Any]] = UNHELD | {
    "nothing": lambda: None,
    "zero": lambda: 0,
    "a number": lambda: 5,
    "a float": lambda: 2.5,
    "a truth": lambda: True,
    "NaN": lambda: float("nan"),
    "an infinity": lambda: float("inf"),
    "a long number": lambda: 10**400,
    "a complex number": lambda: 1j,
    "a decimal": lambda: decimal.Decimal("1.5"),
    "a signalling NaN": lambda: decimal.Decimal("sNaN"),
    "a fraction": lambda: fractions.Fraction(1, 3),
    "a date": lambda: DAY,
    "a moment of NumPy": lambda: np.datetime64("2020-01-01"),
    "no time": lambda: pd.NaT,
    "pandas' missing": lambda: pd.NA,
    "an object": object,
    "a class": lambda: dict,
    "a function": lambda: len,
    "a module": lambda: types,
    "an ellipsis": lambda: ...,
    "a slice": lambda: slice(0, 4),
    "a path": lambda: pathlib.Path("rows.parquet"),
    "a file's name": lambda: "rows.parquet",
    "empty text": lambda: "",
    "empty bytes": lambda: b"",
    "an exception": lambda: ValueError("a"),
    "a namespace": lambda: types.SimpleNamespace(shape=(4,), dtype="float64"),
    "a lying shape": lambda: types.SimpleNamespace(shape=(4,), dtype=np.dtype(float), ndim=1),
    "a dtype": lambda: np.dtype(float),
    "a random generator": lambda: np.random.default_rng(0),
}
Form = tuple[str, Callable[[], Any]]


def form(name: str, entries: str) -> Form:
    """One form with one list of entries."""
    return f"{name} of {entries}", lambda: FORMS[name][1](list(ENTRIES[entries]))


def forms() -> list[Form]:
    """Every form, with every list that it can hold, and what holds nothing."""
    return [
        *ALONE.items(),
        *(form(name, entries) for name, (held, _) in FORMS.items() for entries in ENTRIES if entries in held),
    ]


def _wrapped(entries: list[Any]) -> Any:
    out = np.empty((), object)
    out[()] = entries
    return out
