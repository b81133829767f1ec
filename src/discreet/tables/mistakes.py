"""Mistakes said in the language in which they were made: to who wrote SQL in SQL, with the place.

What methods and SELECTs share finds a mistake once, and words it twice where the remedies differ. In a schema file a
remedy is a line of it, whoever asks.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from discreet.dates import Dates, Times
from discreet.schema import Bounded, Categories, Column, Unlisted

__all__ = ["at", "declaration_name", "mistake", "nearest"]

_LONGEST, _MOST = 90, 1000  # characters of a query that a message repeats; names that are compared


def mistake(python: str, sql: str) -> ValueError:
    """An error for who wrote Python, that ``at`` turns into one for who wrote SQL."""
    error = ValueError(python)
    error.sql = sql  # type: ignore[attr-defined]
    return error


@contextmanager
def at(place: str) -> Iterator[None]:
    """Mistakes in a part of a query, said in SQL, with the part in front unless they repeat it.

    >>> with at("WHERE sex"):
    ...     raise mistake("write col('age') >= 18.", "write age >= 18.")
    Traceback (most recent call last):
    ...
    ValueError: WHERE sex: write age >= 18.
    """
    try:
        yield
    except ValueError as error:
        if getattr(error, "placed", False):
            raise
        said = getattr(error, "sql", str(error))
        part = place.removeprefix("WHERE ").removeprefix("GROUP BY ")
        repeated = part in said and not part.isidentifier()
        told = ValueError(said if repeated else f"{_shorten(place)}: {said}")
        told.placed = True  # type: ignore[attr-defined]
        raise told from None


def _shorten(text: str) -> str:
    """The beginning of a long text; a list that was taken out of it (``lists``) is dots."""
    text = re.sub("'list [0-9]+ of [0-9]+\0'", "...", text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that somebody who wrote ``name`` may have meant, or nothing.

    >>> nearest("INCOM", ["age", "income"]), nearest("f", ["age", "income"])
    ('income', '')
    """
    small = {other.lower(): other for other in islice(known, _MOST)}
    found = difflib.get_close_matches(name.lower(), small, n=1, cutoff=0.7)
    return small[found[0]] if found else ""


def declaration_name(column: Column | None) -> str:
    """What a declaration is called in a schema file."""
    match column:
        case Bounded():
            return "bounds"
        case Categories():
            return "categories"
        case Dates():
            return "dates"
        case Times():
            return "times"
        case Unlisted():
            return "unlisted values"
        case None:
            return "nothing"
    raise ValueError(f"A column is declared as {type(column).__name__}, which no schema file says.")
