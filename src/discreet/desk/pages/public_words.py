"""What is public of a data set, in words: its columns, whom it protects, questions that can be asked of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.dates import Dates, Times
from discreet.schema import Bounded, Categories, Column, Unlisted
from discreet.tables.table import Table

__all__ = ["ColumnWords", "columns_of", "examples", "sql_name", "unit_of"]

MOST_VALUES = 12  # categories that a line shows


@dataclass(frozen=True, slots=True)
class ColumnWords:
    """A column, for people: what it is called, what kind of values it has, what is declared of them."""

    name: str
    kind: str
    declared: str
    values: tuple[str, ...] = ()
    can_be_averaged: bool = False
    can_be_grouped: bool = False


def columns_of(table: Table) -> list[ColumnWords]:
    """The declared columns, in their order; the column of the unit is no column to ask about."""
    return [_words(name, column) for name, column in table.schema.items()]


def _words(name: str, column: Column) -> ColumnWords:
    match column:
        case Bounded(auto=True):
            return ColumnWords(name, "number", "bounds are found privately, for a share of each question", (), True)
        case Bounded(low=low, high=high, whole=whole):
            kind = "whole number" if whole else "number"
            return ColumnWords(
                name, kind, f"{low:,g} to {high:,g}; what lies outside counts as the nearer end", (), True
            )
        case Categories():
            labels = tuple(map(str, column.labels))
            more = f" and {len(labels) - MOST_VALUES:,} more" if len(labels) > MOST_VALUES else ""
            return ColumnWords(name, "category", ", ".join(labels[:MOST_VALUES]) + more, labels, False, True)
        case Dates() | Times():
            kind = "date" if isinstance(column, Dates) else "time"
            return ColumnWords(name, kind, f"{column.first} to {column.last}")
        case Unlisted():
            return ColumnWords(
                name, "unlisted", "its values are private: those with many rows are shown", (), False, True
            )
    raise ValueError(f"A column is declared as {type(column).__name__}, which no page describes.")


def unit_of(contents: Mapping[str, Any]) -> str:
    """Whom an answer protects, in a few words."""
    unit = contents.get("unit")
    if not unit:
        return "one row"
    most = contents.get("max_rows_per_unit", 1)
    return f"all rows of one {unit}" + (f", of which at most {most} count" if isinstance(most, int) else "")


def sql_name(name: str) -> str:
    """A name as SQL takes it.

    >>> sql_name("ward"), sql_name("length of stay")
    ('ward', '"length of stay"')
    """
    quoted = name.replace('"', '""')
    return name if re.fullmatch("[a-z_][a-z0-9_]*", name) and name not in _RESERVED else f'"{quoted}"'


_RESERVED = frozenset(
    ("select", "from", "where", "group", "order", "by", "limit", "having", "case", "end", "all", "and", "or", "not",
     "table", "column", "desc", "asc", "when", "then", "else", "in", "is", "null", "user", "default", "check")
)  # fmt: skip


def examples(name: str, table: Table) -> list[tuple[str, str]]:
    """A few questions, with what they ask: made of the declarations alone."""
    columns, source = columns_of(table), sql_name(name)
    numbers = [each.name for each in columns if each.can_be_averaged]
    keys = [each.name for each in columns if each.values]
    found = [("How many rows there are", f"SELECT COUNT(*) AS n FROM {source}")]
    if keys:
        key = sql_name(keys[0])
        found.append((f"How many rows by {keys[0]}", f"SELECT {key}, COUNT(*) AS n\nFROM {source}\nGROUP BY {key}"))
    if numbers:
        number = sql_name(numbers[0])
        by = sql_name(keys[0]) if keys else ""
        select, group = (f"{by}, ", f"\nGROUP BY {by}") if by else ("", "")
        what = f"The mean of {numbers[0]}" + (f" by {keys[0]}" if keys else "")
        found.append((what, f"SELECT {select}AVG({number}) AS mean\nFROM {source}{group}"))
    return found
