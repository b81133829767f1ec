"""The little that is said to each engine in its own words: casts that cannot fail, bits, the smallest rows of a unit.

Everything else goes through narwhals. Both engines speak SQL, so a dialect is a handful of spellings.

Decision 60.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

from discreet.dates import OFFSET, SPELLED, UTC
from discreet.encoding.values import NUMERAL, TRUTHS
from discreet.errors import DiscreetError, choice

__all__ = ["Engine", "EngineFailed", "PlanFailed", "as_columns", "plan_or_fail", "quietly"]

T = TypeVar("T")
_MOMENTS = dict.fromkeys(("date", "time", "zoned", "text"))  # what dates and times are stored as
_STOPPED = "Query interrupted"  # what DuckDB makes of Ctrl-C: a RuntimeError


class EngineFailed(DiscreetError):
    """An engine could not finish. Its own message is withheld, because it may quote private values."""


class PlanFailed(EngineFailed):
    """An engine cannot plan a query: said before anything is charged or read, so no record is the reason."""


def plan_or_fail(action: Callable[[], T]) -> T:
    """What ``action`` gives, which reads nothing; of what an engine raises, our own words."""
    try:
        return action()
    except EngineFailed:
        raise
    except Exception as error:
        kind = type(error).__name__
    raise PlanFailed(
        f"The engine cannot plan this query ({kind}); nothing was read or charged. The reason is the query, the "
        "types of the table, or a moved or damaged file, and never a row: ask for less at once, or prepare "
        "columns in the engine first."
    )


def quietly(action: Callable[[], T]) -> T:
    """What ``action`` gives; whatever an engine raises becomes a sentence without its message,
    and without its traceback.
    """
    try:
        return action()
    except EngineFailed:  # says one of our own sentences already
        raise
    except Exception as error:
        if str(error) == _STOPPED:
            raise KeyboardInterrupt from None
        kind = type(error).__name__
    raise EngineFailed(
        f"The engine could not finish the query ({kind}). Its message is withheld because it may quote private "
        "values. Common causes: not enough memory (raise memory_limit=), a damaged or moved file."
    )


def as_columns(rows: Sequence[Sequence[Any]], width: int) -> list[Any]:
    """Rows of Python values as columns, masked where nothing is."""
    columns = []
    for values in zip(*rows, strict=True) if rows else [()] * width:
        held = np.empty(len(rows), object)
        held[:] = values
        columns.append(np.ma.array(held, mask=[value is None for value in values]))
    return columns


class Engine(ABC):
    """What differs between DuckDB and Spark. Frames are the engine's own."""

    adds_in_128_bits: bool
    half_bits: int  # of the lower half in which large sums are added up, or handed over

    @abstractmethod
    def quote(self, name: str) -> str:
        """A column's name in SQL."""

    @abstractmethod
    def xor(self, a: str, b: str) -> str:
        """Bitwise exclusive or."""

    @abstractmethod
    def shift_right(self, a: str, places: int) -> str:
        """``a`` shifted right."""

    @abstractmethod
    def beside(self, high: str, places: int, low: str) -> str:
        """``high`` in front of the ``places`` bits of ``low``."""

    @abstractmethod
    def digest(self, text: str) -> str:
        """The first 60 bits of the MD5 of a text's bytes."""

    @abstractmethod
    def project(self, frame: Any, columns: Sequence[str]) -> Any:
        """Select SQL expressions."""

    def stop_inlining(self, frame: Any) -> Any:
        """The frame, whose columns the engine computes once and does not write out again where they are used."""
        return frame

    @abstractmethod
    def among(self, frame: Any, column: str, values: Sequence[Any], name: str) -> Any:
        """The frame with one more column: whether ``column`` is one of ``values``, all numbers or all text."""

    def smallest(self, frame: Any, unit: str, order: str, keep: int) -> Any:
        """The ``keep`` smallest values of ``order`` for each unit, in a column of that name."""
        return self.first_rows(frame, unit, order, [order], keep)

    def first_rows(self, frame: Any, unit: str, order: str, columns: Sequence[str], keep: int) -> Any:
        """``columns`` of the ``keep`` rows of each unit that come first by ``order``, and then by themselves."""
        by = ", ".join(dict.fromkeys([order, *columns]))
        rank = f"row_number() OVER (PARTITION BY {unit} ORDER BY {by}) AS rank_"
        return self.project(self.project(frame, ["*", rank]).filter(f"rank_ <= {keep}"), columns)

    @abstractmethod
    def join(self, left: Any, right: Any, condition: str) -> Any:
        """The pairs of rows for which a condition holds; no column is in both."""

    @abstractmethod
    def fetch(self, frame: Any, progress: Callable[[float], None] | None) -> list[Any]:
        """Run the query; its columns as arrays, masked where nothing is."""

    @abstractmethod
    def dry_run(self, frame: Any) -> list[Any]:
        """Plan the query and read nothing: the columns that ``fetch`` would give if there were no rows."""

    def double(self, column: str, *, spelled: bool, truth: bool = False) -> str:
        """A column as a double; NULL for what is none; text (``spelled``) is one by our grammar alone,
        not the engine's. With ``truth`` a text may spell a truth value.
        """
        value = self.quote(column)
        if not spelled:
            return f"TRY_CAST({value} AS DOUBLE)"
        found = f"TRY_CAST(CASE WHEN {self.spells_a_number(value)} THEN {value} END AS DOUBLE)"
        if not truth:
            return found
        truths = " ".join(f"WHEN {self.spells(value, form)} THEN {size}" for form, size in TRUTHS.items())
        return f"CASE {truths} ELSE {found} END"

    def number(self, double: str) -> str:
        """A double, or NULL where it is NaN. Has to be applied twice, because DuckDB drops comparisons with NaN (so
        ``NULLIF`` too) and even ``isnan`` where a file's statistics, which leave NaN out, seem to decide them. Of what
        a CASE gives it believes nothing, so the first, which it may drop, makes it ask the second.
        """
        return f"CASE WHEN isnan({double}) THEN NULL ELSE {double} END"

    def spells_a_number(self, text: str) -> str:
        """Whether all of a text matches ``NUMERAL``."""
        return self.spells(text, NUMERAL)

    @abstractmethod
    def spells(self, text: str, pattern: str) -> str:
        """Whether all of a text matches a pattern without quotes."""

    @abstractmethod
    def literal(self, text: str) -> str:
        """A text as a constant."""

    @abstractmethod
    def trim(self, text: str) -> str:
        """A text without spaces at its ends."""

    @abstractmethod
    def has(self, where: Literal["start", "end", "middle"], text: str, part: str) -> str:
        """Whether a text starts or ends with a part, or contains it."""

    def seconds(self, column: str, kind: Literal["date", "time", "zoned", "text"]) -> str:
        """A date, a time, or a text that spells one, as seconds since 1970; NULL for what is none.

        Text is one by our grammar alone. Times with a zone are instants; without, they are taken as they are written.
        """
        choice("kind", kind, _MOMENTS)
        value = self.quote(column)
        if kind != "text":
            return f"CAST({self.microseconds(value, kind)} AS DOUBLE) / 1e6"
        plain, utc, offset = (self.spells(value, form) for form in (SPELLED, UTC, OFFSET))
        before_zone = (
            f"WHEN {utc} THEN left({value}, length({value}) - 1) WHEN {offset} THEN left({value}, length({value}) - 6)"
        )
        time = self.written_time(f"CASE WHEN {plain} THEN {value} {before_zone} END")
        hours, minutes = (f"TRY_CAST(substr({value}, length({value}) - {place}, 2) AS BIGINT)" for place in (4, 1))
        sign = f"CASE WHEN substr({value}, length({value}) - 5, 1) = '-' THEN -60000000 ELSE 60000000 END"
        ahead = f"CASE WHEN {offset} THEN ({hours} * 60 + {minutes}) * {sign} ELSE 0 END"  # of UTC, in microseconds
        return f"CAST({self.microseconds(time, kind)} - {ahead} AS DOUBLE) / 1e6"

    @abstractmethod
    def written_time(self, text: str) -> str:
        """A text as a time without a zone, or NULL."""

    @abstractmethod
    def microseconds(self, value: str, kind: str) -> str:
        """Of a date or a time, since 1970, or NULL."""

    @abstractmethod
    def date(self, days: str) -> str:
        """The date that is a whole number of days after 1970-01-01, given as a double, or NULL."""

    @abstractmethod
    def days(self, date: str) -> str:
        """How many days after 1970-01-01 a date is, as a double: of whole numbers a far one overflows."""

    @abstractmethod
    def like(self, text: str, pattern: str) -> str:
        """Whether all of a text matches a pattern of SQL's LIKE, in which no sign escapes another."""

    @abstractmethod
    def text(self, column: str, *, spelled: bool = False, mended: bool = False) -> str:
        """A column as text that is compared byte by byte, whatever collation it or its engine has. Of one that is text
        already (``spelled``), bytes that are no UTF-8 become question marks, unless who read it has ``mended`` it.
        """

    def double_as_text(self, double: str) -> str:
        """A double as text, as ``values.label`` writes whole numbers: without a point."""
        whole = f"abs({double}) <= {1 << 53} AND floor({double}) = {double}"
        return f"CASE WHEN {whole} THEN {self.as_text(f'CAST({double} AS BIGINT)')} ELSE {self.as_text(double)} END"

    @abstractmethod
    def as_text(self, value: str) -> str:
        """A value as text."""

    def smallest_per_unit(self, frame: Any, columns: Sequence[str], unit: str, order: str, keep: int) -> Any:
        """``columns`` of rows whose ``order`` is among the ``keep`` smallest distinct values of their unit."""
        rank = f"dense_rank() OVER (PARTITION BY {unit} ORDER BY {order}) AS rank_"
        return self.project(self.project(frame, [*columns, rank]).filter(f"rank_ <= {keep}"), list(columns))
