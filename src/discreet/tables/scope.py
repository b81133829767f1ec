"""Where expressions are computed, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, zip_longest
from typing import Any

from discreet.encoding.engines import Engine, PlanFailed
from discreet.errors import extra
from discreet.schema import Schema

with extra("tables"):
    import narwhals as nw

__all__ = ["Scope", "with_steps"]

MOST_STEPS = 1_000  # that DuckDB plans in some ten seconds
LARGEST = 1e300


@dataclass(frozen=True)
class Let:
    """A column that holds a value."""

    name: str
    value: nw.Expr


@dataclass(frozen=True)
class Said:
    """A column that the engine makes of SQL."""

    name: str
    sql: str


@dataclass(frozen=True)
class AmongValues:
    """A column that says whether another holds one of some values."""

    name: str
    column: str
    values: Sequence[Any]


class Scope:
    """What is used twice becomes a column, so that nested expressions are not written out again and again.

    Columns are noted as steps first, and made of a frame by ``with_steps``, those of several scopes side by side: an
    engine plans as many steps as the longest of them has. ``column`` gives a declared column as the schema reads it;
    ``engine`` says what narwhals has no words for; ``schema`` tells which guards are not needed.
    """

    def __init__(self, column: Callable[[str], nw.Expr], engine: Engine, schema: Schema) -> None:
        self.column, self.engine, self.schema = column, engine, schema
        self._steps: list[Let | Said | AmongValues] = []
        self._numbers = count()

    def beside(self) -> Scope:
        """A scope of the same columns, whose steps may be taken side by side with these."""
        other = Scope(self.column, self.engine, self.schema)
        other._numbers = self._numbers
        return other

    def let(self, value: nw.Expr, name: str = "") -> nw.Expr:
        """The value, as a column of its own."""
        self._steps.append(Let(name or self._name(), value))
        return nw.col(self._steps[-1].name)

    def from_sql(self, sql: Callable[..., str], *values: nw.Expr) -> nw.Expr:
        """What the engine makes of SQL, which is given the names of columns that hold the values."""
        names = []
        for value in values:
            names.append(self._name())
            self._steps.append(Let(names[-1], value))
        self._steps.append(Said(self._name(), sql(*names)))
        return nw.col(self._steps[-1].name)

    def text(self, value: nw.Expr) -> nw.Expr:
        """The text, compared byte by byte from here on, whatever collation the engine prefers."""
        return self.from_sql(
            lambda name: self.engine.text(name, spelled=False), value
        )  # its bytes were mended when read

    def among(self, value: nw.Expr, values: Sequence[Any]) -> nw.Expr:
        """Whether the value is one of many; missing where it is missing. Long lists are looked up,
        not compared one by one.
        """
        column = self._name()
        self._steps += [Let(column, value), AmongValues(self._name(), column, values)]
        return nw.col(self._steps[-1].name)

    def _name(self) -> str:
        number = next(self._numbers)
        if number >= MOST_STEPS:
            raise PlanFailed(
                f"The query takes more than {MOST_STEPS:,} steps for each row, which no engine plans in seconds. "
                "Nothing was read or charged: ask for less at once, or prepare columns in the engine first."
            )
        return f"t{number}"

    def finite(self, *nodes: Any) -> bool:
        """Whether values are finite, by their bounds: then no sum, difference, product or quotient of them is NaN."""
        return all(abs(end) <= LARGEST for node in nodes for end in node.bounds(self.schema))

    def real(self, value: nw.Expr) -> nw.Expr:
        """The value, or missing where it is not a number."""
        for _ in range(2):  # twice: see ``Engine.number``
            value = self.from_sql(self.engine.number, value)
        return value


def with_steps(frame: Any, scopes: Sequence[Scope]) -> Any:
    """The frame with the columns of scopes, none of which stands on another's: the first step of all, the second ..."""
    for level in zip_longest(*(scope._steps for scope in scopes)):
        steps = [step for step in level if step is not None]
        if lets := [step.value.alias(step.name) for step in steps if isinstance(step, Let)]:
            frame = frame.with_columns(*lets)
        native, engine = frame.to_native(), scopes[0].engine
        if told := [f"{step.sql} AS {step.name}" for step in steps if isinstance(step, Said)]:
            native = engine.project(native, ["*", *told])
        for step in steps:
            if isinstance(step, AmongValues):
                native = engine.among(native, step.column, step.values, step.name)
        frame = nw.from_native(native)
    return frame
