"""Odd values, and records made of them: dictionaries of a column ``x`` (numbers, mostly), ``k`` (text, mostly) and
``who`` (identifiers, mostly). Any entry may be odd.
"""

from __future__ import annotations

import datetime
import decimal
import math
import random
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["OBJECTS", "ODD", "Failing", "Record", "record"]

Record = dict[str, Any]


class Failing:
    """An object that fails at whatever is done with it."""

    def __float__(self) -> float:
        raise RuntimeError("a private word")

    __hash__ = __iter__ = __eq__ = __len__ = __repr__ = __str__ = __bool__ = __index__ = __float__  # type: ignore[assignment]


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
    "2020-01-01",
    "2020-02-30",
    "2020-06-15T23:59:59.999999",
    "2020-1-1",
    "0000-01-01",
    "9999-12-31 23:59",
    "2020-01-01 00:00+05",
]
ZONES = [
    datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC),
    datetime.datetime(2020, 1, 1, 17, tzinfo=datetime.timezone(datetime.timedelta(hours=5))),
    datetime.date(2020, 1, 1),
]
OBJECTS: list[Any] = [
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
    pd.NA,
    pd.NaT,
    pd.Timestamp("2020-01-01", tz="UTC"),
]
ODD = {"floats": FLOATS, "whole": WHOLE, "texts": TEXTS, "objects": OBJECTS}


def _pick(rng: random.Random, usual: Sequence[Any], *odd: Sequence[Any]) -> Any:
    return rng.choice(usual) if rng.random() < 0.6 else rng.choice(rng.choice(odd))


def record(rng: random.Random, kind: str) -> Record:
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
