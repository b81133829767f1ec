"""What is said of a question before it is asked, for nothing: its cost, its error, its mistakes, a rehearsal.

All of it is worked out from public facts, on a table without rows and on one of made-up rows: no worker is asked, and
nothing is charged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.desk.answers import write_frame
from discreet.desk.configuration import Dataset
from discreet.desk.errors import Refusal
from discreet.desk.pages.answer_views import AnswerView
from discreet.desk.public_tables import made_up_table
from discreet.desk.questions import DeskQuestion, count_numbers
from discreet.desk.service import Service
from discreet.desk.state import Person
from discreet.encoding.duckdb import lock_connection
from discreet.errors import DiscreetError
from discreet.reporting.words import number
from discreet.tables.error_targets import half_widths
from discreet.tables.table import Table

__all__ = ["Mistake", "Preview", "preview"]

SMALL, LARGE = 100, 10_000  # rows of a group: for which errors are said
MOST_REHEARSED = 2_000  # numbers of an answer: beyond, a rehearsal keeps everybody waiting
ROWS = 1000
AROUND = 18  # signs on each side of a mistake


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with a question, and where: a line of it, and how far the sign below is moved in."""

    message: str
    line: int = 0
    column: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """What is known of a question before it is asked."""

    epsilon: float
    left: float
    after: float
    fits: bool
    refusal: str
    needs_approval: bool
    cost: str
    label: str
    groups: str
    errors: tuple[tuple[str, str, str], ...]  # a column, its error in small and in large groups
    biases: tuple[str, ...]
    doubts: tuple[str, ...]
    rehearsal: AnswerView | None


def preview(service: Service, person: Person, question: DeskQuestion, made_up: Mapping[Any, Any], *,
            rehearse: bool = True) -> Preview | Mistake:  # fmt: skip
    """What is known of a question; or what is wrong with it."""
    dataset = service.dataset(person, question.dataset)
    try:
        operation = service.operation(question)
        explanation = operation.explain()
    except Refusal as refused:
        return _mistake(refused.message, question.sql or "")
    except (ValueError, DiscreetError) as error:
        return _mistake(str(error), question.sql or "")
    book, whole = service.book(dataset, person.name), service.books[dataset.name]
    left = min(book.remaining().epsilon, whole.remaining().epsilon)
    size = service._epsilon(question, operation.event, dataset)
    refusal = _refusal(service, dataset, size)
    fits = book.affords(operation.event, unit=operation.unit) > 0
    few = question.whole is None and count_numbers(operation) <= MOST_REHEARSED
    return Preview(
        epsilon=size,
        left=left,
        after=max(0.0, left - size),
        fits=fits,
        refusal=refusal,
        needs_approval=question.is_job or size > dataset.approval_above,
        cost=str(explanation.event),
        label=str(operation.label),
        groups=str(getattr(explanation, "groups", "the table as a whole")),
        errors=_errors(operation, explanation.errors),
        biases=tuple((getattr(explanation, "bias", None) or "").splitlines()),
        doubts=tuple(getattr(explanation, "doubts", ())),
        rehearsal=_rehearse(service, question, made_up) if rehearse and few else None,
    )


def _refusal(service: Service, dataset: Dataset, size: float) -> str:
    """Why the desk would say no, whatever is left."""
    if (why := service.state.fact("frozen")) is not None:
        return f"The owner has stopped all questions: {why}"
    if size > dataset.largest_epsilon:
        return f"One question about {dataset.name} costs at most ε = {dataset.largest_epsilon:g}."
    return ""


def _errors(operation: Any, stated: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """The error of each column in small and in large groups; in the library's own words where that says nothing."""
    try:
        small, large = (half_widths(operation, rows) for rows in (SMALL, LARGE))
    except (ValueError, DiscreetError):
        return tuple((name, text, "") for name, text in stated.items())
    return tuple((name, f"±{number(small[name])}", f"±{number(large[name])}") for name in small)


def _rehearse(service: Service, question: DeskQuestion, tables: Any) -> AnswerView | None:
    """The answer that made-up rows would have; none where that fails, which says nothing of the question."""
    try:
        release = question.operation(_made_up(service, question.dataset, tables)).release()
    except (ValueError, DiscreetError, ArithmeticError):
        return None
    return AnswerView.of(write_frame(release.value), dict(release.error or {}))


def _made_up(service: Service, name: str, kept: Any) -> Table:
    key = "made up", name
    if key not in kept:
        made = made_up_table(name, service.contents[name], service.facts[name], ROWS)
        lock_connection(made.source.connection, [])
        kept[key] = made
    table: Table = kept[key]
    return table


def _mistake(message: str, sql: str) -> Mistake:
    """Where the message names a place or a word of the query, that place."""
    if found := re.search(r"\(line ([0-9]+), column ([0-9]+)\)", message):
        line, column = int(found[1]), int(found[2])
        lines = sql.split("\n")
        if line <= len(lines):
            return _placed(message, line, max(0, column - 1), lines[line - 1])
    for word in re.findall(r"'([^']{1,80})'", message):
        for number_of, text in enumerate(sql.split("\n"), 1):
            if found := re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text):
                return _placed(message, number_of, found.start(), text)
    return Mistake(message)


def _placed(message: str, line: int, column: int, text: str) -> Mistake:
    """With as much of the line around the place as fits beside it."""
    start = max(0, column - AROUND)
    return Mistake(message, line, column - start, text[start : column + AROUND])
