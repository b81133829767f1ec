"""Answers that a person has already: noise is paid for once, so who asks again is told before the charge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from discreet.desk.questions import DeskQuestion
from discreet.tables.canonical import canonical_form
from discreet.tables.query import TableQuery
from discreet.tables.table import Table

__all__ = ["earlier_answers", "said_of"]

_NEWEST = 100  # questions that are looked at: reading one takes milliseconds


def earlier_answers(
    history: Sequence[Mapping[str, Any]], dataset: str, asked: TableQuery, table: Table
) -> Iterator[Mapping[str, Any]]:
    """The lines of a history, the newest first, that asked the same in whatever words and for whatever epsilon."""
    form = canonical_form(asked)
    for line in history[:_NEWEST]:
        operation = line["question"]["operation"]
        if line["state"] != "answered" or operation["dataset"] != dataset or operation["type"] not in ("sql", "table"):
            continue
        try:
            known = DeskQuestion.from_dict(line["question"]).build(table)
        except ValueError:  # of an older version, or of a schema that has changed: another question
            continue
        if canonical_form(known) == form:
            yield line


def said_of(line: Mapping[str, Any]) -> str:
    """When a question was asked, and for how much."""
    cost = ", ".join(f"{name}={value:g}" for name, value in line["question"]["budget"].items() if name != "noise")
    return f"This was asked before, on {line['at'][:16].replace('T', ' ')} UTC, with {cost}"
