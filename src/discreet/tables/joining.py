r"""Two private tables of the same units, joined in the engine.

Each side keeps at most k and l rows of each unit, chosen by a hash of the unit's rows on that side alone, with a key
that is a constant: the join is the same for every question, and privacy does not rest on the hash. A unit then has at
most k·l pairs, whoever else is in either table, because rows are paired only with rows of the same unit. So one unit
more or less, with all its rows on both sides, is at most k·l rows more or less of the joined table.

Rows without an identifier are paired with none.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.encoding.engines import quietly
from discreet.encoding.sources import Source
from discreet.schema import Schema
from discreet.tables.bounding import ContributionLimit, Field, SecretKey, kept_rows

if TYPE_CHECKING:
    from discreet.tables.table import Table

__all__ = ["join_tables"]

_words = random.Random(21)
_KEY = SecretKey(tuple((1 << 29) | _words.getrandbits(29) | 1 for _ in range(64)))


def join_tables(left: Table, right: Table) -> Table:
    """The table of pairs; refused where public facts tell that it cannot be bounded or would be misread."""
    from discreet.tables.table import MOST_ROWS

    unit = left.limit.unit
    if unit is None or right.limit.unit != unit:
        raise ValueError(
            "Two private tables are joined on their unit, so that what one unit adds is bounded: open both with unit= "
            "and the same column. A join on anything else pairs rows of different units, and is refused."
        )
    if left.limit.auto or right.limit.auto:
        raise ValueError("max_rows_per_unit is 'auto', but a join needs a number on each side.")
    if any(table.conditions or table.derived for table in (left, right)):
        raise ValueError("A table was filtered or has derived columns: join first, then filter and derive.")
    if both := [name for name in left.declared if name in right.declared and name != unit]:
        raise ValueError(f"Both tables declare a column {both[0]!r}: leave it out of one schema, or rename it.")
    most = left.limit.rows * right.limit.rows
    if most > MOST_ROWS:
        raise ValueError(f"A unit would count with {most:,} pairs of rows, but may with {MOST_ROWS:,} at most.")
    source = _pairs(left.source, _beside(left.source, right.source), unit, (left.limit.rows, right.limit.rows))
    declared = {name: column for table in (left, right) for name, column in table.declared.items()}
    default = left.limit.default or right.limit.default
    return replace(
        left,
        source=source,
        declared=Schema(declared),
        limit=ContributionLimit(unit, most, most, most, default),
        hidden=left.hidden | right.hidden,
    )


def _beside(left: Source, right: Source) -> Source:
    """The right side where the engine of the left can read it."""
    if type(left.engine) is not type(right.engine) or left.answers != right.answers:
        raise ValueError("The two tables are of different kinds (files, pandas, Spark ...): open both as the same.")
    if right.elsewhere is None or left.connection is None:
        if (right.elsewhere is None) != (left.connection is None):
            raise ValueError("One table is a relation of a connection of its own: open both as relations, or neither.")
        return right
    return right.elsewhere(left.connection)


def _pairs(left: Source, right: Source, unit: str, most: tuple[int, int]) -> Source:
    if left.kinds[unit] != right.kinds[unit]:
        raise ValueError(
            f"Column {unit!r} holds {left.kinds[unit]}s in one table and {right.kinds[unit]}s in the other."
        )
    engine = left.engine
    sides, names = [], {unit: "unit_"}
    for mark, source, keep in zip("lr", (left, right), most, strict=True):
        own = {name: f"{mark}{number}" for number, name in enumerate(source.names) if name != unit}
        renamed = [f"{source.names[unit]} AS unit_", *(f"{source.names[name]} AS {new}" for name, new in own.items())]
        fields = [Field(new, kind=source.kinds[name]) for name, new in own.items()]
        sides.append(_keep_rows(engine, source, renamed, fields, unit, keep))
        names |= own
    there = engine.project(sides[1], [*(name for name in names.values() if name.startswith("r")), "unit_ AS other_"])
    pairs = quietly(lambda: engine.project(engine.join(sides[0], there, "unit_ = other_"), list(names.values())))
    kinds = {**right.kinds, **left.kinds}
    return Source(
        engine,
        pairs,
        f"{left.name} joined with {right.name}",
        left.answers,
        kinds,
        names,
        left.whole | right.whole,
    )


def _keep_rows(engine: Any, source: Source, renamed: list[str], fields: list[Field], unit: str, keep: int) -> Any:
    return quietly(
        lambda: kept_rows(engine, engine.project(source.frame, renamed), fields, source.kinds[unit], keep, _KEY)
    )
