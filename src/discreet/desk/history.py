"""Questions that were asked, found again: by words, by data set, with notes of who asked them.

Lists leave the answers where they are: an answer may be long, and a list shows none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from discreet.desk import state as desk_state
from discreet.desk.errors import Refusal
from discreet.desk.questions import DeskQuestion
from discreet.desk.state import DeskState
from discreet.errors import extra, is_whole_text

with extra("ledger"):
    import sqlalchemy as sa

__all__ = ["AskedQuestion", "History"]

LONGEST_NOTE = 2000
_questions = desk_state._questions
_notes = sa.Table(
    "discreet_desk_notes",
    desk_state._metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
)
_LIGHT = [_questions.c[name] for name in ("number", "person", "key", "digest", "question", "state", "at", "decision")]


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question without its answer, as a list shows it."""

    number: int
    person: str
    key: str
    digest: str
    question: Mapping[str, Any]
    state: str
    at: str
    decision: Mapping[str, Any]
    note: str = ""

    @property
    def dataset(self) -> str:
        """What was asked about."""
        return str(self.question["operation"]["dataset"])

    @property
    def text(self) -> str:
        """What was asked, as people read it; as it was written down, where this version no longer reads it."""
        try:
            return _visible(str(DeskQuestion.from_dict(self.question)))
        except ValueError:
            return json.dumps(self.question["operation"])

    @property
    def budget(self) -> dict[str, float]:
        """What it was asked for with."""
        return dict(self.question["budget"])


class History:
    """The questions of a desk's state; those ``in_flight``, whose reply has not left at its tick, still run."""

    def __init__(self, state: DeskState, in_flight: Callable[[int], bool]) -> None:
        self._state, self._in_flight = state, in_flight

    def search(
        self,
        person: str | None,
        words: str = "",
        *,
        dataset: str = "",
        state: str = "",
        before: int | None = None,
        most: int = 50,
    ) -> list[AskedQuestion]:
        """The newest questions in which all words stand: in what was asked, in its label, or in a note."""
        wanted = sa.true() if person is None else _questions.c.person == person
        for word in words.split()[:10]:
            stored = _escape(json.dumps(word)[1:-1])  # as JSON writes it
            in_question = _questions.c.question.ilike(f"%{stored}%", escape="\\")
            wanted &= in_question | _notes.c.note.ilike(f"%{_escape(word)}%", escape="\\")
        if dataset:
            wanted &= _questions.c.question.like(f"%{_escape(json.dumps({'dataset': dataset})[1:-1])}%", escape="\\")
        if state:
            wanted &= _questions.c.state == state
        if before is not None:
            wanted &= _questions.c.number < before
        query = (
            sa.select(*_LIGHT, sa.func.coalesce(_notes.c.note, "").label("note"))
            .join(_notes, _notes.c.number == _questions.c.number, isouter=True)
            .where(wanted)
            .order_by(_questions.c.number.desc())
            .limit(most)
        )
        with self._state._transaction(write=False) as connection:
            return [self._asked(row) for row in connection.execute(query)]

    def same(self, person: str, operation: Mapping[str, Any]) -> list[AskedQuestion]:
        """The answered questions of a person that ask the same, whatever they cost: their answers are free."""
        text = json.dumps(operation)
        mine = (_questions.c.person == person) & (_questions.c.state == "answered")
        same = mine & (sa.func.substr(_questions.c.question, 1, _START + len(text)) == _head(text))
        query = sa.select(*_LIGHT).where(same).order_by(_questions.c.number.desc()).limit(5)
        with self._state._transaction(write=False) as connection:
            found = [self._asked(row) for row in connection.execute(query)]
        return [asked for asked in found if asked.state == "answered"]

    def waiting(self) -> int:
        """How many questions wait for the owner."""
        query = sa.select(sa.func.count()).where(_questions.c.state == "waiting")
        with self._state._transaction(write=False) as connection:
            return int(connection.execute(query).scalar_one())

    def _asked(self, row: Any) -> AskedQuestion:
        """A row as it may be seen now: whoever lists their questions learns no earlier than who waits for the reply."""
        note = row.note if "note" in row._fields else ""
        state = "running" if self._in_flight(row.number) else row.state
        question, decision = json.loads(row.question), json.loads(row.decision)
        return AskedQuestion(row.number, row.person, row.key, row.digest, question, state, row.at, decision, note)

    def note(self, person: str, number: int, text: str) -> None:
        """Keep a note beside a question of one's own."""
        if not is_whole_text(text) or len(text) > LONGEST_NOTE:
            raise Refusal(422, "invalid", f"A note is text of at most {LONGEST_NOTE:,} characters.")
        with self._state._write() as connection:
            connection.execute(sa.delete(_notes).where(_notes.c.number == number))
            if text:
                connection.execute(sa.insert(_notes), {"number": number, "person": person, "note": text})

    def note_of(self, number: int) -> str:
        """The note beside a question; empty if there is none."""
        query = sa.select(_notes.c.note).where(_notes.c.number == number)
        with self._state._transaction(write=False) as connection:
            return str(connection.execute(query).scalar_one_or_none() or "")


def _visible(text: str) -> str:
    r"""The text with what cannot be seen as an escape: who approves a question approves what stands there, in the order
    in which it stands there.

    >>> print(_visible("SELECT 1 -- \u202e\n"), end="")
    SELECT 1 -- \u202e
    """
    return "".join(sign if sign.isprintable() or sign in "\n\t" else ascii(sign)[1:-1] for sign in text)


def _head(operation: str) -> str:
    """How a stored question begins: ``DeskQuestion.to_dict`` writes its version and its operation first."""
    return json.dumps({"version": 1, "operation": None}).replace("null}", operation)


_START = len(_head(""))


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
