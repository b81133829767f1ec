"""What is public of a data set, and tables made of that alone: empty ones, on which a question is priced exactly as on
the records, and ones of made-up rows, on which it can be tried.

What a question costs follows from the declarations and from the types that a file states: both are sent to analysts.
How many rows there are, and what is in them, is not among them.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.dates import Dates, Times
from discreet.errors import extra
from discreet.schema import Bounded, Categories, Column, Declaration, Unlisted, declaration, parse_schema
from discreet.tables.table import Table, table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["empty_table", "made_up_table", "public_facts", "read_declaration"]

_WORDS = 20  # different values of a made-up column that is unlisted


def read_declaration(path: Path) -> tuple[Declaration, dict[str, Any]]:
    """A schema file: what it declares, and its contents in JSON's types, for those who are elsewhere."""
    import tomllib

    text = path.read_text(encoding="utf-8")
    declared = parse_schema(text, f"The schema file {path.name!r}")
    contents: dict[str, Any] = json.loads(json.dumps(tomllib.loads(text), default=str))
    return declared, contents


def public_facts(visible: Table) -> dict[str, Any]:
    """What the types of a source say of each declared column; made in the process that may open it."""
    source = visible.source
    return {
        name: {"kind": source.kinds[name], "whole": name in source.whole, "spelled": name in source.spelled}
        for name in source.names
    }


def empty_table(name: str, contents: Mapping[str, Any], facts: Mapping[str, Any]) -> Table:
    """A table without rows, of the same public facts as the source: the same questions cost the same on it."""
    return _table(name, declaration(contents), facts, {column: [] for column in facts})


def made_up_table(name: str, contents: Mapping[str, Any], facts: Mapping[str, Any], rows: int = 1000) -> Table:
    """A table of rows that are drawn from the declarations, the same each time: no record had a part in them."""
    declared, draw = declaration(contents), random.Random(0)
    columns = {
        column: [_made_up(declared.schema.get(column), kind["kind"], draw) for _ in range(rows)]
        for column, kind in facts.items()
    }
    if declared.unit is not None:
        most = 1 if declared.max_rows_per_unit == "auto" else declared.max_rows_per_unit
        whole = facts[declared.unit]["kind"] != "text"
        columns[declared.unit] = [row // most if whole else f"unit {row // most}" for row in range(rows)]
    return _table(name, declared, facts, columns)


def _table(name: str, declared: Declaration, facts: Mapping[str, Any], columns: Mapping[str, list[Any]]) -> Table:
    with extra("tables"):
        import polars as pl
    types = {column: _type(declared.schema.get(column), kind["kind"]) for column, kind in facts.items()}
    frame = pl.DataFrame({column: pl.Series(columns[column], dtype=types[column]) for column in facts})
    opened = table(frame, schema=declared)
    kinds = {column: kind["kind"] for column, kind in facts.items()}
    if dict(opened.source.kinds) != kinds:
        raise ValueError(f"The columns of {name!r} cannot be rebuilt from what is public of them.")
    source = replace(
        opened.source,
        name=name,
        whole=frozenset(column for column, kind in facts.items() if kind["whole"]),
        spelled=frozenset(column for column, kind in facts.items() if kind["spelled"]),
        elsewhere=None,
    )
    return replace(opened, source=source)


def _type(column: Column | None, kind: str) -> pl.DataType | type[pl.DataType]:
    import polars as pl

    if isinstance(column, (Dates, Times)):
        return pl.Datetime("us")
    return {"text": pl.String, "integer": pl.Int64, "number": pl.Float64}[kind]


def _made_up(column: Column | None, kind: str, draw: random.Random) -> Any:
    match column:
        case Bounded(low=low, high=high, whole=whole):
            return float(draw.randint(int(low), int(high))) if whole else draw.uniform(low, high)
        case Categories(values=values) if kind == "text":
            return str(draw.choice(values))
        case Categories(values=values):
            return draw.choice([int(value) if kind == "integer" else float(value) for value in values])
        case Dates() | Times():
            seconds = draw.uniform(column.low, column.high)
            return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
        case Unlisted() | None:  # none: the unit's, which is filled in later
            word = draw.randrange(_WORDS)
            return f"value {word}" if kind == "text" else word
    raise ValueError(f"A column is declared as {type(column).__name__}, for which no values are made up.")
