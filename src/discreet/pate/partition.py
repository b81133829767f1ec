"""Which teacher learns from a record: a keyed hash of the record, or of its unit's identifier.

The teacher is a function of that record (or identifier), the public key and the public number of teachers: it does not
depend on where the record stands, on how many there are, or on any other. So one record more or less changes the part
of one teacher, and one unit more or less, of however many records, as well. A record that is replaced may leave one
teacher and enter another, which is two teachers: accountants price that as a removal and an addition.

Equal records share a teacher. −0.0 and 0.0 are one value, and so are all NaNs.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.encoding.values import identity
from discreet.errors import whole

__all__ = ["teacher_of_records", "teacher_of_units"]

_MOST = 1 << 32  # of 64 hashed bits, the remainder by so many is uniform up to 2^-32


def teacher_of_records(n_teachers: int, key: bytes, *columns: ArrayLike) -> NDArray[np.int64]:
    """The teacher of each record, from 0; a record is its rows of the ``columns`` of numbers together.

    >>> X = np.arange(12.0).reshape(6, 2)
    >>> found = teacher_of_records(3, b"public", X)
    >>> (teacher_of_records(3, b"public", X[::-1]) == found[::-1]).all()
    np.True_
    """
    rows = [_plain(column) for column in columns]
    if len({len(row) for row in rows}) != 1:
        raise ValueError("The columns of records differ in length, but must have one row per record.")
    return _teachers_by_hash(
        n_teachers, key, (b"".join(row.tobytes() for row in record) for record in zip(*rows, strict=True))
    )


def teacher_of_units(n_teachers: int, key: bytes, units: Any) -> NDArray[np.int64]:
    """The teacher of each record whose unit has this identifier; all that is missing is one unit.

    >>> teacher_of_units(5, b"public", ["ann", "bob", "ann"]).tolist()
    [2, 3, 2]
    """
    return _teachers_by_hash(n_teachers, key, (repr(identity(unit)).encode("utf-8", "surrogatepass") for unit in units))


def _plain(column: ArrayLike) -> NDArray[np.float64]:
    """Numbers with one form for each value."""
    numbers = np.array(column, np.float64, order="C") + 0.0  # −0.0 + 0.0 is 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers


def _teachers_by_hash(n_teachers: int, key: bytes, records: Iterator[bytes]) -> NDArray[np.int64]:
    count = whole("n_teachers", n_teachers, low=1)
    if count > _MOST:
        raise ValueError(f"n_teachers is {count}, but at most {_MOST} are possible.")
    found = (int.from_bytes(blake2b(record, digest_size=8, key=key).digest()) % count for record in records)
    return np.fromiter(found, np.int64)
