"""One form for every value that is counted under its own name: what is shown depends on the class, never on the record.

Python holds 1, True, 1.0 and Decimal("1.00") equal, -0.0 and 0.0, noon in Lagos and eleven in London. Count such
records together and show the key that came first, and one record decides what is published. Here every record becomes,
by itself, the form of its class; forms that are equal are the same to the last character (type, sign, exponent, zone).

==========================================  =======================================================================
record                                      form
==========================================  =======================================================================
a number of any type                        the first that holds it exactly: ``int`` (beyond 2^128 a double first),
                                            ``float``, ``Decimal`` without trailing zeros, ``Fraction``
a complex number                            the number, if it has no imaginary part; otherwise ``complex`` without -0.0
NaN of any type, not-a-time                 the text ``"nan"``
text, bytes (also subclasses, NumPy's)      ``str``, ``bytes``
a moment                                    ``datetime``: in UTC if it has a zone; to the microsecond, whatever the unit
a date, a time of day, a span               ``date``, ``time`` (in UTC if it has a zone), ``timedelta``
``None``, a UUID, a member of an ``Enum``   itself
a tuple, a ``frozenset``                    the same, of forms
anything else                               none: such a record is counted nowhere
==========================================  =======================================================================

Anything else is what has an equality of its own, or no hash, a number of more than 2048 bits, a tuple nested deeper
than 16. It is left out in silence: an error would tell that the record is there. A record's own equality and hash are
not asked.

Decision 94.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from discreet.mechanisms.records import check_line, entries, readable

__all__ = ["UNKNOWN", "canonical", "keys"]

UNKNOWN: Any = object()  # the form of what has none
_NAN = "nan"
_BITS = 2048  # of a numerator or denominator: every double has fewer
_DEEPEST = 16
_LARGEST = int(sys.float_info.max)
_PLAIN = 1 << 128  # whole numbers below are shown in digits


def canonical(value: Any) -> Any:
    """The form of a record's class, or ``UNKNOWN``.

    >>> [canonical(x) for x in (True, 1.0, np.int8(1), Decimal("1.00"), -0.0, Decimal("0.10"), "a", (True, -0.0))]
    [1, 1, 1, 1, 0, Decimal('0.1'), 'a', (1, 0)]
    >>> canonical([1]) is UNKNOWN
    True
    """
    return _canonical(value, 0)


def keys(values: Any) -> list[Any]:
    """The forms of all records that have one.

    The type of an array is a fact about all of it, so a float array has floats for keys, and a Boolean one truth
    values. That of a pandas column is not, because one record decides it: entries are read one by one, and every kind
    of missing one, which pandas exchanges for each other, is ``"nan"``.

    >>> keys([1, True, [1], 2.5]), keys(np.array([1.0, -0.0, np.nan]))
    ([1, 1, 2.5], [1.0, 0.0, 'nan'])
    """
    check_line(values)
    if hasattr(values, "isna"):
        forms = [_NAN if _is_pandas_missing(value) else canonical(value) for value in entries(values)]
        return [form for form in forms if form is not UNKNOWN]
    values = readable(values)
    if isinstance(getattr(values, "dtype", None), np.dtype):
        array = np.asarray(values)
        if array.dtype.kind in "biu":
            return list(array.tolist())
        if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
            return [x if x == x else _NAN for x in (array.astype(np.float64) + 0.0).tolist()]
        values = array.tolist() if array.dtype.kind == "V" else array
    return [form for form in map(canonical, entries(values)) if form is not UNKNOWN]


def _is_pandas_missing(value: Any) -> bool:
    """``None`` or ``NA``, for which pandas' own question would ask the record whether it equals itself."""
    return value is None or type(value).__name__ == "NAType"


def _canonical(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str or value is None or (kind is int and -_PLAIN < value < _PLAIN):
        return value
    if kind is float:
        return _double(value)
    if issubclass(kind, (tuple, frozenset)):
        return _collection(value, depth)
    try:
        # Not isinstance: it would ask the record what it says it is.
        return next((read(value) for known, read in _FORMS if issubclass(kind, known)), UNKNOWN)
    except Exception:  # a zone is a user's code, and a moment may have no equal in UTC: such a record has no form
        return UNKNOWN


def _collection(value: Any, depth: int) -> Any:
    if depth == _DEEPEST:
        return UNKNOWN
    frozen = issubclass(type(value), frozenset)
    parts = [_canonical(part, depth + 1) for part in (frozenset if frozen else tuple).__iter__(value)]
    if any(part is UNKNOWN for part in parts):
        return UNKNOWN
    return frozenset(sorted(parts, key=repr)) if frozen else tuple(parts)  # a set lists its members as they were put in


def _double(x: float) -> Any:
    if x != x:
        return _NAN
    if math.isinf(x):
        return x
    return int(x) if x.is_integer() and abs(x) < _PLAIN else x


def _rational(numerator: int, denominator: int) -> Any:
    if denominator == 1 and abs(numerator) < _PLAIN:
        return numerator
    if max(numerator.bit_length(), denominator.bit_length()) > _BITS:
        return UNKNOWN
    exact = Fraction(numerator, denominator)
    if abs(exact) <= _LARGEST and Fraction(near := float(exact)) == exact:
        return near
    return exact.numerator if exact.denominator == 1 else _decimal(exact)


def _decimal(exact: Fraction) -> Any:
    """As a decimal, if it ends; in lowest terms its digits have no trailing zero."""
    rest, places = exact.denominator, 0
    for factor in (2, 5):
        power = 0
        while rest % factor == 0:
            rest, power = rest // factor, power + 1
        places = max(places, power)
    if rest != 1:
        return exact
    digits = abs(exact.numerator) * 10**places // exact.denominator
    return Decimal((int(exact < 0), tuple(map(int, str(digits))), -places))


def _from_decimal(x: Decimal) -> Any:
    if Decimal.is_nan(x):
        return _NAN
    if Decimal.is_infinite(x):
        return -math.inf if Decimal.is_signed(x) else math.inf
    # Ten to the power of a million takes a while to write out, and has too many bits anyway.
    return UNKNOWN if abs(Decimal.adjusted(x)) > _BITS else _rational(*Decimal.as_integer_ratio(x))


def _from_floating(x: Any) -> Any:
    """NumPy's other floats, exactly: a long double holds more than a double."""
    if np.isnan(x):
        return _NAN
    return float(x) if np.isinf(x) else _rational(*x.as_integer_ratio())


def _complex(x: Any) -> Any:
    exact = complex.__add__(x, 0) if issubclass(type(x), complex) else complex(x)
    parts = [_double(exact.real), _double(exact.imag)]
    if _NAN in parts:
        return _NAN
    return complex(*parts) if parts[1] else parts[0]


def _moment(x: datetime) -> Any:
    if x.year != x.year:
        return _NAN  # pandas' not-a-time
    plain = datetime(x.year, x.month, x.day, x.hour, x.minute, x.second, x.microsecond, x.tzinfo, fold=x.fold)
    return plain.replace(fold=0, tzinfo=None) if plain.utcoffset() is None else plain.astimezone(UTC)


def _time(x: time) -> time:
    offset, plain = time.utcoffset(x), time(x.hour, x.minute, x.second, x.microsecond)
    if offset is None:
        return plain
    return (datetime.combine(date(2000, 1, 2), plain) - offset).timetz().replace(tzinfo=UTC)


def _from_numpy(unit: str, known: type) -> Callable[[Any], Any]:
    """NumPy's moments and spans in microseconds; those beyond Python's range have no form."""

    def read(x: Any) -> Any:
        if np.isnat(x):
            return _NAN
        plain = x.astype(unit).item()
        return plain if type(plain) is known else UNKNOWN

    return read


def _member(x: Enum) -> Any:
    """A member is equal to itself alone, unless its class says otherwise."""
    kind: Any = type(x)
    return x if (kind.__eq__, kind.__hash__) == (object.__eq__, Enum.__hash__) else UNKNOWN


_FORMS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    ((bytes, bytearray), lambda x: bytes(memoryview(x))),
    (int, lambda x: _rational(int.__add__(x, 0), 1)),
    (float, lambda x: _double(float.__add__(x, 0.0))),
    (np.timedelta64, _from_numpy("m8[us]", timedelta)),
    (np.datetime64, _from_numpy("M8[us]", datetime)),
    ((np.bool_, np.integer), lambda x: _rational(int(x), 1)),
    (np.floating, _from_floating),
    ((complex, np.complexfloating), _complex),
    (Decimal, _from_decimal),
    (Fraction, lambda x: _rational(*Fraction.as_integer_ratio(x))),
    (datetime, _moment),
    (date, lambda x: date(x.year, x.month, x.day)),
    (time, _time),
    (timedelta, lambda x: timedelta(x.days, x.seconds, x.microseconds)),
    (UUID, lambda x: UUID(int=x.int)),
    (Enum, _member),
)
