"""Where expressions are computed, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from discreet.encoding.engines import Engine, PlanFailed
from discreet.errors import extra
from discreet.schema import Schema

with extra("tables"):
    import narwhals as nw

__all__ = ["Scope"]

MOST_COLUMNS = 1_000  # that are made on the way: DuckDB plans as many in ten seconds, and takes the square of them
LARGEST = 1e300


class Scope:
    """A frame that grows. What is used twice becomes a column, so that nested expressions are not written out again and
    again.

    ``column`` gives a declared column as the schema reads it; ``engine`` says what narwhals has no words for;
    ``schema`` tells which guards are not needed.
    """

    def __init__(self, frame: Any, column: Callable[[str], nw.Expr], engine: Engine, schema: Schema) -> None:
        self.frame, self.column, self.engine, self.schema = frame, column, engine, schema
        self.unclipped: dict[str, nw.Expr] = {}  # derived columns before they were clipped to their bounds
        self._made = 0

    def let(self, value: nw.Expr) -> nw.Expr:
        """The value, as a column of its own."""
        name = self._name()
        self.frame = self.frame.with_columns(value.alias(name))
        return nw.col(name)

    def said(self, sql: Callable[..., str], *values: nw.Expr) -> nw.Expr:
        """What the engine makes of SQL, which is given the names of columns that hold the values."""
        names, made = [self._name() for _ in values], self._name()
        frame = self.frame.with_columns(*(value.alias(name) for value, name in zip(values, names, strict=True)))
        self.frame = nw.from_native(self.engine.project(frame.to_native(), ["*", f"{sql(*names)} AS {made}"]))
        return nw.col(made)

    def text(self, value: nw.Expr) -> nw.Expr:
        """The text, compared byte by byte from here on, whatever collation the engine prefers."""
        return self.said(self.engine.text, value)

    def among(self, value: nw.Expr, values: Sequence[Any]) -> nw.Expr:
        """Whether the value is one of many; missing where it is missing. Long lists are looked up,
        not compared one by one.
        """
        column, found = self._name(), self._name()
        frame = self.frame.with_columns(value.alias(column)).to_native()
        self.frame = nw.from_native(self.engine.among(frame, column, values, found))
        return nw.col(found)

    def _name(self) -> str:
        self._made += 1
        if self._made > MOST_COLUMNS:
            raise PlanFailed(
                f"The query takes more than {MOST_COLUMNS:,} steps for each row, which no engine plans in seconds: ask "
                "for less at once, or prepare columns in the engine first."
            )
        return f"t{self._made - 1}"

    def finite(self, *nodes: Any) -> bool:
        """Whether values are finite, by their bounds: then no sum, difference, product or quotient of them is NaN."""
        return all(abs(end) <= LARGEST for node in nodes for end in node.bounds(self.schema))

    def real(self, value: nw.Expr) -> nw.Expr:
        """The value, or missing where it is not a number."""
        for _ in range(2):  # twice: see ``Engine.number``
            value = self.said(self.engine.number, value)
        return value
