"""What one value means, the same whatever engine or container it comes from: the grammar of numbers, the equality of
units.

*Numbers as text* follow one grammar, plain ASCII decimals: white space around, a sign, digits with a point, an
exponent; or ``inf``, ``infinity``. Anything else is missing, also what Python, Java or DuckDB would read by themselves
(``1_0``, ``5d``, ``٥``, ``0x1F``, ``nan``). Where the categories are truth values, as files spell them, ``true`` and
``false`` in large or small letters are 1 and 0.

*Identifiers* are equal if they are equal numbers (1, 1.0 and True are one, as -0.0 and 0.0 are) or the same text, byte
by byte, whatever the collation. A number is never a text: 7 and "7" are two. NULL and NaN are missing, and all missing
ones are one unit. ``identity`` writes their classes as text, because in pandas, and in lists, one column mixes kinds.

*Labels*, entries of a column whose categories are text, are texts as they are and numbers as written by ``label``.

Decision 101.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from math import nan
from numbers import Rational, Real
from typing import Any

import numpy as np

from discreet.mechanisms.records import double
from discreet.schema import Categories

__all__ = ["KINDS", "NUMBERS", "NUMERAL", "TRUTHS", "are_truths", "display_of", "identity", "label", "number", "text"]

_SPACE = "[ \t\r\n\f\v]*"  # characters, not escapes: SQL dialects read a backslash in their own ways
_INFINITY = "[iI][nN][fF]([iI][nN][iI][tT][yY])?"
NUMERAL = f"{_SPACE}[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|{_INFINITY}){_SPACE}"
_NUMERAL = re.compile(NUMERAL)
TRUTHS = {f"{_SPACE}[tT][rR][uU][eE]{_SPACE}": 1.0, f"{_SPACE}[fF][aA][lL][sS][eE]{_SPACE}": 0.0}

_WHOLE, _WHOLE_POWERS = 1e16, 5000  # up to where whole numbers are written as such
_LONG = 2.0**64  # and shown as such
KINDS = NUMBERS, _TEXTS, _BYTES, _ = "number:", "text:", "bytes:", "object:"


def are_truths(column: object) -> bool:
    """Whether a column is declared to hold truth values."""
    return isinstance(column, Categories) and all(isinstance(value, bool) for value in column.labels)


def number(value: Any, *, truth: bool = False) -> float:
    """The number that an object is, or that a text spells by our grammar; NaN for anything else. With ``truth`` a text
    may spell a truth value.

    >>> number(" 1.5e1"), number(True), number(10**400), number("1_0"), number(b"1"), number(None)
    (15.0, 1.0, inf, nan, nan, nan)
    >>> number("True"), number("True", truth=True), number(" FALSE ", truth=True), number("yes", truth=True)
    (nan, 1.0, 0.0, nan)
    """
    try:
        if isinstance(value, str):
            if truth and (spelled := [size for form, size in TRUTHS.items() if re.fullmatch(form, value)]):
                return spelled[0]
            return float(value) if _NUMERAL.fullmatch(value) else nan
    except Exception:  # an object may do anything when it is looked at
        return nan
    return double(value)


def text(value: Any) -> str | None:
    """A text as it is; none for anything else, and for one with half of a surrogate pair, which no engine can hold.

    >>> text("a"), text(1), text("\\ud800")
    ('a', None, None)
    """
    try:
        return value.encode().decode() if isinstance(value, str) else None
    except Exception:  # as above
        return None


def label(value: Any) -> str | None:
    """What an entry is where categories are text: text as it is, a truth value in English, a number in the shortest
    way, a whole one without a point whatever type holds it; none for anything else.

    >>> label("a"), label(1), label(np.float64(1)), label(2.5), label(True), label(b"a"), label(float("nan"))
    ('a', '1', '1', '2.5', 'true', None, None)
    """
    try:
        if isinstance(value, (bool, np.bool_)):
            return str(bool(value)).lower()
        return _exact(value) if isinstance(value, (Real, Decimal)) and value == value else text(value)
    except Exception:  # as above
        return None


def identity(value: Any) -> str | None:
    """A text that two objects share if and only if they are one identifier; none for a missing one, or an unreadable
    one.

    >>> identity(1), identity(1.0), identity(np.True_), identity("1"), identity("number:1"), identity(float("nan"))
    ('number:1', 'number:1', 'number:1', '1', 'text:number:1', None)
    """
    try:
        return text(_identity(value))
    except Exception:  # an object may do anything when it is looked at
        return None


def display_of(written: str) -> Any:
    """What stands for the class that ``identity`` wrote: a number, a text, bytes; as it was written for others.

    >>> [display_of(identity(value)) for value in (1.0, 2.5, 2**60 + 1, "1", "number:1", b"a", Decimal("0.1"))]
    [1, 2.5, 1152921504606846977, '1', 'number:1', b'a', 'number:1e-1']
    """
    kind = next((kind for kind in KINDS if written.startswith(kind)), "")
    rest = written.removeprefix(kind)
    if kind == NUMBERS:
        if "x" in rest and "/" not in rest:
            return int(rest, 16)
        near = float(rest) if _NUMERAL.fullmatch(rest) else nan
        return (int(near) if near.is_integer() and abs(near) < _LONG else near) if _exact(near) == rest else written
    return rest if kind == _TEXTS else bytes.fromhex(rest) if kind == _BYTES else written


def _identity(value: Any) -> str | None:
    if value is None or value != value:
        return None
    if isinstance(value, str):
        return f"{_TEXTS}{value}" if value.startswith(KINDS) else str(value)
    if isinstance(value, (Real, Decimal, np.bool_)):
        return f"{NUMBERS}{_exact(value)}"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{_BYTES}{bytes(value).hex()}"
    if isinstance(value, datetime) and value.tzinfo is not None:  # one instant, whatever its time zone
        value = value.astimezone(UTC)
    return f"object:{type(value).__name__}:{value!r}"


def _exact(value: Any) -> str:
    """One text for all equal numbers, whatever their types; never long because of an exponent."""
    if isinstance(value, np.generic):
        value = value.item()  # NumPy compares a whole number with a double as doubles: two identifiers would be one
    near = number(value)
    if near == value:  # Python compares exactly
        return str(int(near)) if near.is_integer() and abs(near) < _WHOLE else repr(near)
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        plain = "".join(map(str, digits)).rstrip("0")
        power = int(exponent) + len(digits) - len(plain)
        if not 0 <= power < _WHOLE_POWERS:
            return f"{'-' * sign}{plain}e{power}"
        value = (-1) ** sign * int(plain) * 10**power
    if isinstance(value, Rational):
        return hex(value.numerator) + ("" if value.denominator == 1 else f"/{value.denominator:x}")
    return repr(value)
