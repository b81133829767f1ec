"""A worker: the only process that opens the data. It answers one question at a time, and says nothing else.

It speaks JSON over one pipe with the server that started it, which may open neither the data nor a random generator of
the worker's; the worker may open neither the network nor another program, and knows neither the ledger nor who asks.

    server                               worker
      ask {question}            ─►         builds it, and has the engine plan it: nothing is read
                                ◄─       charge {event, unit}
      charges, in one step      ─► go      reads, draws
                                ◄─       answer {columns, error}

Between ``charge`` and ``go`` nothing is read: a refused charge is a question that was never asked.

Decision 572.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from discreet.desk.answers import write_frame
from discreet.desk.configuration import source_files
from discreet.desk.confinement import confine, die_with_parent
from discreet.desk.databases import DatabaseTable, open_duckdb_table, open_postgres_table
from discreet.desk.public_tables import empty_table, public_facts, read_declaration
from discreet.desk.questions import BuilderCall, DeskBudget, DeskQuestion
from discreet.encoding.duckdb import lock_connection
from discreet.events import Event
from discreet.release import ONE_RECORD, Enforced, charged
from discreet.schema import Declaration
from discreet.tables.table import Table, table

__all__ = ["serve"]


class _Stopped(Exception):
    """The server did not charge: nothing is read."""


class _Payer:
    """A book at the other end of the pipe."""

    records_asked = True

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.was_charged = False

    def charge(
        self,
        event: Event,
        label: str = "",
        *,
        unit: str = ONE_RECORD,
        reproducible: bool = False,
        asked: tuple[float, float] | None = None,
    ) -> None:
        """Ask the server to charge, and wait until it has."""
        facts = {"event": event.to_dict(), "unit": str(unit), "enforced": isinstance(unit, Enforced), "asked": asked}
        _send(self._pipe, {"charge": facts | {"reproducible": reproducible}})
        if _receive(self._pipe) != {"go": True}:
            raise _Stopped
        self.was_charged = True


@dataclass(frozen=True, slots=True)
class _Opened:
    """A source that was opened: for queries, and for what reads the table as a whole."""

    table: Table
    declared: Declaration
    contents: Mapping[str, Any]  # of its schema file
    data: str | DatabaseTable

    @property
    def place(self) -> str | None:
        """What the source calls itself, where that is not its file."""
        return self.data.place if isinstance(self.data, DatabaseTable) else None


def serve(pipe: Connection, datasets: Mapping[str, tuple[str | None, ...]], memory: float, unconfined: bool) -> None:
    """Open the data sets (name: source, schema, table), say what is public of them, and answer until the pipe ends."""
    die_with_parent()
    _be_silent()
    try:
        opened = {name: _open(*files, memory=memory) for name, files in datasets.items()}
        facts = {name: public_facts(one.table) for name, one in opened.items()}
        for name, one in opened.items():
            _warm_up(empty_table(name, one.contents, facts[name]))
        if not unconfined:
            confine(int(memory * 2**30))
    except Exception as error:  # to the owner, at the start: nothing was asked of a record yet
        _send(pipe, {"failed": f"{type(error).__name__}: {error}"})
        return
    places, contents = ({name: getattr(one, said) for name, one in opened.items()} for said in ("place", "contents"))
    _send(pipe, {"ready": facts, "places": places, "schemas": contents})
    while True:
        try:
            question = _receive(pipe)
        except EOFError:
            return
        _send(pipe, _answer(pipe, opened, question))


def _open(source: str | None, schema: str | None, name: str | None = None, *, memory: float) -> _Opened:
    """A source, by a connection that is locked to it."""
    assert source is not None
    declared, contents = read_declaration(Path(str(schema)))
    settings: dict[str, Any] = {"memory_limit": f"{memory / 2:g}GB", "threads": 1}
    if name is None:
        opened = table(source, schema=declared, **settings)
        lock_connection(opened.source.connection, source_files(Path(source)))
        return _Opened(opened, declared, contents, source)
    if source.startswith("postgresql"):
        columns = list(dict.fromkeys([*declared.schema, *([declared.unit] if declared.unit else [])]))
        found, files = open_postgres_table(source, name, columns, settings), []
    else:
        found, files = open_duckdb_table(source, name, settings), [source]
    opened = table(found.relation, schema=declared)
    lock_connection(found.connection, files)
    return _Opened(opened, declared, contents, found)


def _warm_up(empty: Table) -> None:
    """Compile what is compiled at its first use: the first question is not to be late for it."""
    steps = (BuilderCall("count"),)
    for budget in (DeskBudget(epsilon=1.0), DeskBudget(rho=0.5)):
        DeskQuestion("", budget, steps).operation(empty).release(rng=1)


def _answer(pipe: Connection, opened: Mapping[str, _Opened], message: Any) -> dict[str, Any]:
    payer = _Payer(pipe)
    try:
        question = DeskQuestion.from_dict(message["ask"])
        one = opened[question.dataset]
        operation = question.operation(one.table, one.declared, one.data)
        release = charged(operation, book=payer, label=question.label)
        value, model = (release.value, None) if question.whole is None else release.value
        answer = {"columns": write_frame(value), "error": release.error}
        return {"answer": answer if model is None else answer | {"model": model}}
    except _Stopped:
        return {"stopped": True}
    except Exception:  # whatever it says stays here: before the charge for its paths, after it for what it may quote
        return {"failed": payer.was_charged}


def _send(pipe: Connection, message: Mapping[str, Any]) -> None:
    pipe.send_bytes(json.dumps(message, allow_nan=False).encode())


def _receive(pipe: Connection) -> Any:
    return json.loads(pipe.recv_bytes())


def _be_silent() -> None:
    """What a library prints may quote a record."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives
