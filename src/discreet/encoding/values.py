"""What one value means, the same whatever engine or container it comes from: the grammar of numbers, the equality of
units.

*Numbers as text* follow one grammar, plain ASCII decimals: white space around, a sign, digits with a point, an
exponent; or ``inf``, ``infinity``. Anything else is missing, also what Python, Java or DuckDB would read by themselves
(``1_0``, ``5d``, ``٥``, ``0x1F``, ``nan``).

*Identifiers* are equal if they are equal numbers (1, 1.0 and True are one, as -0.0 and 0.0 are) or the same text, byte
by byte, whatever the collation. A number is never a text: 7 and "7" are two. NULL and NaN are missing, and all missing
ones are one unit. Only a pandas column of objects can mix kinds; ``identity`` writes their classes as text.
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

__all__ = ["NUMERAL", "identity", "number", "text"]

_SPACE = "[ \t\r\n\f\v]*"  # characters, not escapes: SQL dialects read a backslash in their own ways
_INFINITY = "[iI][nN][fF]([iI][nN][iI][tT][yY])?"
NUMERAL = f"{_SPACE}[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|{_INFINITY}){_SPACE}"
_NUMERAL = re.compile(NUMERAL)

_WHOLE, _WHOLE_POWERS = 1e16, 5000  # up to where whole numbers are written as such
_KINDS = ("number:", "text:", "bytes:", "object:")


def number(value: Any) -> float:
    """The number that an object is, or that a text spells by our grammar; NaN for anything else.

    >>> number(" 1.5e1"), number(True), number(10**400), number("1_0"), number(b"1"), number(None)
    (15.0, 1.0, inf, nan, nan, nan)
    """
    try:
        if isinstance(value, str):
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


def _identity(value: Any) -> str | None:
    if value is None or value != value:
        return None
    if isinstance(value, str):
        return f"text:{value}" if value.startswith(_KINDS) else str(value)
    if isinstance(value, (Real, Decimal, np.bool_)):
        return f"number:{_exact(bool(value) if isinstance(value, np.bool_) else value)}"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"bytes:{bytes(value).hex()}"
    if isinstance(value, datetime) and value.tzinfo is not None:  # one instant, whatever its time zone
        value = value.astimezone(UTC)
    return f"object:{type(value).__name__}:{value!r}"


def _exact(value: Any) -> str:
    """One text for all equal numbers, whatever their types; never long because of an exponent."""
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
