"""What an expression of a text or of a point in time may be asked: ``col("city").text.lower()``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.errors import whole
from discreet.tables.calendar import STEPS, Part, Truncated
from discreet.tables.expressions import Expression, operand
from discreet.tables.texts import Contains, Joined, Length, TextFunction, like

__all__ = ["DateMethods", "TextMethods"]


@dataclass(frozen=True, slots=True)
class TextMethods:
    """Of a text. Case is that of ASCII letters; a space is a space."""

    of: Expression

    def lower(self) -> Expression:
        """In small letters."""
        return Expression(TextFunction("lower", self.of.node))

    def upper(self) -> Expression:
        """In capitals."""
        return Expression(TextFunction("upper", self.of.node))

    def trim(self) -> Expression:
        """Without spaces at its ends."""
        return Expression(TextFunction("trim", self.of.node))

    def part(self, start: int, size: int) -> Expression:
        """So many characters from a place on, which counts from 1."""
        place, count = whole("start", start, low=1), whole("size", size, low=0)
        return Expression(TextFunction("part", self.of.node, place, count))

    def starts_with(self, part: str) -> Expression:
        """Whether it starts with a part."""
        return Expression(Contains("start", self.of.node, part))

    def ends_with(self, part: str) -> Expression:
        """Whether it ends with a part."""
        return Expression(Contains("end", self.of.node, part))

    def contains(self, part: str) -> Expression:
        """Whether a part is in it."""
        return Expression(Contains("middle", self.of.node, part))

    def followed_by(self, *others: Any) -> Expression:
        """It and other texts, one after another; missing where one is."""
        return Expression(Joined((self.of.node, *map(operand, others))))

    def length(self) -> Expression:
        """How many characters it has."""
        return Expression(Length(self.of.node))

    def like(self, pattern: str) -> Expression:
        """Whether all of it matches a pattern of SQL: % is any text, _ any character."""
        return Expression(like(self.of.node, pattern))


@dataclass(frozen=True, slots=True)
class DateMethods:
    """Of a date or a time, in UTC."""

    of: Expression

    def year(self) -> Expression:
        """The year."""
        return Expression(Part("year", self.of.node))

    def quarter(self) -> Expression:
        """The quarter of the year, from 1 to 4."""
        return Expression(Part("quarter", self.of.node))

    def month(self) -> Expression:
        """The month, from 1 to 12."""
        return Expression(Part("month", self.of.node))

    def week(self) -> Expression:
        """The week of ISO 8601, from 1 to 53."""
        return Expression(Part("week", self.of.node))

    def day(self) -> Expression:
        """The day of the month."""
        return Expression(Part("day", self.of.node))

    def weekday(self) -> Expression:
        """The day of the week, from 0 for Sunday to 6."""
        return Expression(Part("weekday", self.of.node))

    def hour(self) -> Expression:
        """The hour of the day."""
        return Expression(Part("hour", self.of.node))

    def start(self, step: str) -> Expression:
        """The start of its ``"year"``, ``"quarter"``, ``"month"``, ``"week"`` (Monday), ``"day"``, ``"hour"`` or
        ``"minute"``.
        """
        if step not in STEPS:
            raise ValueError(f"step is {step!r}, but must be one of {', '.join(STEPS)}.")
        return Expression(Truncated(step, self.of.node))
