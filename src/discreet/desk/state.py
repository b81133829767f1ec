"""What a desk remembers beside the ledger: people, their tokens, questions with their answers, what was declared.

A question's state moves in one direction, each step in one transaction that names the state it leaves, so that of two
who try the same step one succeeds. That a question was charged is not said here but in the ledger, by its key: this
file can be lost or restored without a second draw for one charge.

    (none) ─► running ─► answered | withheld            waiting ─► approved ─► running …
                 └──► (none), where nothing was charged     └──► declined | cancelled
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from discreet.errors import DiscreetError, choice, extra, number

with extra("ledger"):
    import sqlalchemy as sa

from discreet.ledger.address import Address
from discreet.ledger.store import connect
from discreet.ledger.terms import check_name

__all__ = ["ROLES", "Asking", "DeskState", "Person", "person_from"]

ROLES = {"analyst": "asks", "owner": "approves, raises, freezes", "officer": "reads everything, changes nothing"}
_PREFIX = "desk_"

_metadata = sa.MetaData()
_people = sa.Table(
    "discreet_desk_people",
    _metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("datasets", sa.Text, nullable=False),
)
_tokens = sa.Table(
    "discreet_desk_tokens",
    _metadata,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("person", sa.Text, nullable=False, index=True),
    sa.Column("expires", sa.Text, nullable=False),
)
_questions = sa.Table(
    "discreet_desk_questions",
    _metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False, index=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("decision", sa.Text, nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    sa.UniqueConstraint("person", "key"),
    sqlite_autoincrement=True,  # no number twice, though questions that were not charged are forgotten
)
_facts = sa.Table(
    "discreet_desk_facts",
    _metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a token: what they may do, and of which data sets."""

    name: str
    role: str
    datasets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        choice("role", self.role, ROLES)  # whatever the state's file says: what is asked below is asked of these three

    def may_see(self, dataset: str) -> bool:
        """Analysts see what they were given; owner and officer see all."""
        return self.role != "analyst" or dataset in self.datasets


@dataclass(frozen=True, slots=True)
class Asking:
    """A question as it is stored."""

    number: int
    person: str
    key: str
    digest: str
    question: Mapping[str, Any]
    state: str
    at: str
    decision: Mapping[str, Any]
    answer: Mapping[str, Any]


class DeskState:
    """The desk's own tables, beside the ledger's, in SQLite or PostgreSQL."""

    def __init__(self, url: str, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        address = Address.parse(url)
        if address.file:  # for its owner alone: answers are public, but not to everybody
            os.close(os.open(address.file, os.O_CREAT | os.O_WRONLY, 0o600))
        self._engine = connect(address)
        self._lock = threading.RLock()
        self._clock = clock
        with self._write() as connection:
            _metadata.create_all(connection)

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    @contextmanager
    def _write(self) -> Iterator[sa.Connection]:
        with self._transaction(write=True) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[sa.Connection]:
        try:
            with self._lock, self._engine.connect() as connection:
                connection = connection.execution_options(discreet_write=write)
                with connection.begin():
                    yield connection
        except sa.exc.IntegrityError:  # two of the same, at once: the caller says what that means
            raise
        except sa.exc.SQLAlchemyError as error:
            raise DiscreetError(f"The desk's own state failed ({type(error).__name__}).") from None

    # --- people and tokens -------------------------------------------------------------------------------------------

    def add_person(self, name: str, role: str, datasets: tuple[str, ...], *, days: float = 90.0) -> str:
        """Write a person down, and give their token, which is not kept: only its hash is."""
        check_name(name)
        choice("role", role, ROLES)
        number("days", days, low=0, high=3650, open_low=True)
        row = {"name": name, "role": role, "datasets": json.dumps(sorted(datasets))}
        with self._write() as connection:
            connection.execute(sa.delete(_people).where(_people.c.name == name))
            connection.execute(sa.insert(_people), row)
            return self._issue(connection, name, days)

    def _issue(self, connection: sa.Connection, name: str, days: float) -> str:
        token = _PREFIX + secrets.token_urlsafe(32)
        expires = (self._clock() + timedelta(days=days)).isoformat()
        connection.execute(sa.insert(_tokens), {"hash": _hash(token), "person": name, "expires": expires})
        return token

    def revoke(self, name: str) -> int:
        """Take back every token of a person; how many there were."""
        with self._write() as connection:
            return int(connection.execute(sa.delete(_tokens).where(_tokens.c.person == name)).rowcount)

    def person_of(self, token: str) -> Person | None:
        """Whose token it is, if it is one that has not expired.

        It is looked up by its hash: how long that takes says something about hashes, which nobody can choose.
        """
        with self._transaction(write=False) as connection:
            row = connection.execute(
                sa.select(_people, _tokens.c.hash, _tokens.c.expires)
                .join(_tokens, _tokens.c.person == _people.c.name)
                .where(_tokens.c.hash == _hash(token))
            ).one_or_none()
        if row is None or not secrets.compare_digest(row.hash, _hash(token)):
            return None
        if datetime.fromisoformat(row.expires) <= self._clock():
            return None
        return person_from(row)

    def person(self, name: str) -> Person | None:
        """The person of that name."""
        return next((each for each in self.people() if each.name == name), None)

    def token_count(self, name: str) -> int:
        """How many tokens of a person have not expired."""
        with self._transaction(write=False) as connection:
            rows = connection.execute(sa.select(_tokens.c.expires).where(_tokens.c.person == name)).all()
        return sum(datetime.fromisoformat(row.expires) > self._clock() for row in rows)

    def people(self) -> list[Person]:
        """Everybody, by name."""
        with self._transaction(write=False) as connection:
            rows = connection.execute(sa.select(_people).order_by(_people.c.name)).all()
        return [person_from(row) for row in rows]

    # --- questions ---------------------------------------------------------------------------------------------------

    def question(self, person: str, key: str) -> Asking | None:
        """The question of that key, if the person asked one."""
        mine = (_questions.c.person == person) & (_questions.c.key == key)
        return next(iter(self._select(mine)), None)

    def question_number(self, number: int) -> Asking | None:
        """The question of that number."""
        return next(iter(self._select(_questions.c.number == number)), None)

    def questions(
        self, person: str | None = None, state: str | None = None, *, most: int | None = 1000
    ) -> list[Asking]:
        """The newest questions: of a person, or in a state."""
        wanted = sa.true() if person is None else _questions.c.person == person
        return self._select(wanted & (sa.true() if state is None else _questions.c.state == state), most)

    def _select(self, wanted: Any, most: int | None = 1) -> list[Asking]:
        query = sa.select(_questions).where(wanted).order_by(_questions.c.number.desc()).limit(most)
        with self._transaction(write=False) as connection:
            return [_asking(row) for row in connection.execute(query)]

    def begin(
        self, person: str, key: str, digest: str, question: Mapping[str, Any], state: str, *, room: int = 0
    ) -> bool:
        """Write a new question down, with so many bytes of room for its answer: where the disk has none, nothing is
        charged. False where the key is taken.
        """
        row = {"person": person, "key": key, "digest": digest, "question": json.dumps(question), "state": state,
               "at": self._clock().isoformat(), "decision": "{}", "answer": "{}" + " " * room}  # fmt: skip
        try:
            with self._write() as connection:
                connection.execute(sa.insert(_questions), row)
        except sa.exc.IntegrityError:
            return False
        return True

    def move(self, asking: Asking, old: str, new: str, **columns: Mapping[str, Any]) -> bool:
        """One step from a state to another; false where somebody else was first."""
        texts = {name: json.dumps(value, allow_nan=False) for name, value in columns.items()}
        with self._write() as connection:
            step = sa.update(_questions).where((_questions.c.number == asking.number) & (_questions.c.state == old))
            return bool(connection.execute(step.values(state=new, **texts)).rowcount == 1)

    def forget(self, asking: Asking) -> None:
        """Take back a question that runs and was not charged, so that its key can be used again."""
        with self._write() as connection:
            gone = (_questions.c.number == asking.number) & (_questions.c.state == "running")
            connection.execute(sa.delete(_questions).where(gone))

    # --- what was declared -------------------------------------------------------------------------------------------

    def fact(self, name: str) -> Any:
        """What was noted under a name; none if nothing was."""
        with self._transaction(write=False) as connection:
            row = connection.execute(sa.select(_facts.c.value).where(_facts.c.name == name)).one_or_none()
        return None if row is None else json.loads(row.value)

    def note(self, name: str, value: Any) -> None:
        """Note something under a name."""
        with self._write() as connection:
            connection.execute(sa.delete(_facts).where(_facts.c.name == name))
            connection.execute(sa.insert(_facts), {"name": name, "value": json.dumps(value)})


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def person_from(row: sa.Row[Any]) -> Person:
    """The person of a row of people."""
    return Person(row.name, row.role, tuple(json.loads(row.datasets)))


def _asking(row: sa.Row[Any]) -> Asking:
    parsed = (json.loads(row.question), json.loads(row.decision), json.loads(row.answer))
    return Asking(row.number, row.person, row.key, row.digest, parsed[0], row.state, row.at, parsed[1], parsed[2])
