"""What a worker cannot do: reach other files, the network, another program; say anything but its answer."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from discreet.desk import worker
from discreet.desk.answers import read_frame, write_frame
from discreet.desk.configuration import read_configuration
from discreet.desk.public_tables import empty_table, public_facts, read_declaration
from discreet.desk.questions import DeskQuestion
from discreet.desk.worker import _open
from discreet.desk.workers import Job, Workers
from discreet.encoding.duckdb import lock_connection
from discreet.errors import DiscreetError
from discreet.tables.table import table
from tests.desk.desks import BY_WARD, COUNT, PATIENCE, Running, ask, write_desk

CONFINED = """
import ctypes, os, socket, subprocess, threading
from discreet.desk.confinement import confine
confine(1 << 30)
def refused(action):
    try:
        action()
    except (PermissionError, MemoryError) as error:
        return type(error).__name__
    return "allowed"
print(refused(lambda: socket.socket()), refused(lambda: os.execv("/bin/true", ["true"])),
      refused(lambda: subprocess.run(["true"])), refused(lambda: bytearray(2 << 30)))
taken = ctypes.CDLL(None, use_errno=True).syscall(438, os.pidfd_open(os.getpid()), 0, 0)  # pidfd_getfd
print("PermissionError" if (taken, ctypes.get_errno()) == (-1, 1) else "allowed")
thread = threading.Thread(target=lambda: print(refused(lambda: socket.socket())))
thread.start(); thread.join()
print(open(os.devnull).read() == "", sum(range(10)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's filter is Linux's")
def test_the_kernel_refuses_network_programs_and_memory() -> None:
    found = subprocess.run([sys.executable, "-c", CONFINED], capture_output=True, text=True, check=True)
    assert found.stdout.split() == [*["PermissionError"] * 3, "MemoryError", *["PermissionError"] * 2, "True", "45"]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's filter is Linux's")
def test_every_worker_of_a_desk_is_confined(desk: Running) -> None:
    """As the kernel says it, of the processes that have the data open."""
    assert len(desk.service.workers.processes) == desk.service.configuration.workers
    for number in desk.service.workers.processes:
        status = Path(f"/proc/{number}/status").read_text(encoding="ascii")
        limits = Path(f"/proc/{number}/limits").read_text(encoding="ascii")
        assert "Seccomp:\t2" in status  # a filter
        assert "NoNewPrivs:\t1" in status
        assert [line.split()[4] for line in limits.splitlines() if line.startswith("Max core")] == ["0"]
        assert "unlimited" not in next(line for line in limits.splitlines() if line.startswith("Max address"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{other}')",
        "SELECT * FROM read_csv('{other}')",
        "SELECT * FROM sniff_csv('{other}')",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO '{other}.copy'",
        "ATTACH '{other}.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET allowed_paths = ['{other}']",
        "SET memory_limit = '100GB'",
    ],
)
def test_a_locked_connection_reaches_its_own_file_alone(tmp_path: Path, sql: str) -> None:
    own, other = tmp_path / "own.parquet", tmp_path / "other.csv"
    pl.DataFrame({"a": [1, 2]}).write_parquet(own)
    other.write_text("a\n1\n", encoding="utf-8")
    with duckdb.connect(":memory:") as connection:
        rows = connection.sql(f"SELECT * FROM read_parquet('{own}')")
        lock_connection(connection, [str(own)])
        assert rows.fetchall() == [(1,), (2,)]
        with pytest.raises(duckdb.Error, match=r"Permission|disabled|[Cc]annot"):
            connection.execute(sql.format(other=other)).fetchall()


def write_source(folder: Path, ending: str) -> Path:
    """The visits in another form."""
    write_desk(folder)
    frame, source = pl.read_parquet(folder / "visits.parquet"), folder / f"other.{ending}"
    match ending:
        case "csv":
            frame.write_csv(source)
        case "csv.gz":
            source.write_bytes(gzip.compress(frame.write_csv().encode()))
        case "jsonl":
            frame.write_ndjson(source)
        case "feather":
            frame.write_ipc(source)
        case "*.parquet":
            frame[:300].write_parquet(folder / "other.1.parquet")
            frame[300:].write_parquet(folder / "other.2.parquet")
        case "parquet":
            frame.write_parquet(source)
    return source


FORMS = ["parquet", "csv", "csv.gz", "jsonl", "feather", "*.parquet"]


def test_lists_keep_the_type_of_their_numbers() -> None:
    """A histogram's counts came back as floats."""
    answer = pl.DataFrame({"counts": [[3, -1], None], "shares": [[0.5, None], [math.inf]]})
    sent = json.loads(json.dumps(write_frame(answer), allow_nan=False))
    assert read_frame(sent).equals(answer)
    assert read_frame(sent).schema == answer.schema


@pytest.mark.parametrize("ending", FORMS)
def test_a_workers_table_is_locked_and_still_answers(tmp_path: Path, ending: str) -> None:
    source = write_source(tmp_path, ending)
    opened = _open(str(source), str(tmp_path / "visits.toml"), memory=1.0).table
    with pytest.raises(duckdb.Error):
        opened.source.connection.execute("SELECT * FROM glob('/*')")
    answer = BY_WARD.operation(opened).release(rng=1).value
    assert read_frame(write_frame(answer)).equals(answer)


@pytest.mark.parametrize("ending", FORMS)
def test_an_empty_table_prices_as_the_records_do(tmp_path: Path, ending: str) -> None:
    source = write_source(tmp_path, ending)
    declared, contents = read_declaration(tmp_path / "visits.toml")
    records = table(source, schema=declared)
    empty = empty_table("visits", contents, public_facts(records))
    for sql in ("SUM(days)", "AVG(days)", "COUNT(*)", "MEDIAN(days)", "VAR_POP(days), COUNT(days)"):
        question = DeskQuestion("visits", COUNT.budget, sql=f"SELECT ward, {sql} FROM visits GROUP BY ward")
        assert question.operation(empty).event == question.operation(records).event
        assert (
            str(question.operation(empty).explain()).splitlines()[1:]
            == str(question.operation(records).explain()).splitlines()[1:]
        )


def test_a_source_that_prices_otherwise_is_charged_nothing(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The types of a file changed under the server: what the worker would charge is not what was worked out."""
    from dataclasses import replace

    name, token = desk.person()
    visible = desk.service.tables["visits"]
    other = replace(visible, source=replace(visible.source, whole=frozenset()))
    monkeypatch.setitem(desk.service.tables, "visits", other)
    wire = {**COUNT.to_dict(), "operation": {"type": "sql", "dataset": "visits", "sql": "SELECT SUM(days) FROM visits"}}
    reply = ask(desk.with_token(token), wire, "q")
    assert reply.status_code == 503
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 0


def test_a_worker_that_cannot_open_its_data_stops_the_start(tmp_path: Path) -> None:
    configuration = read_configuration(write_desk(tmp_path))
    (tmp_path / "visits.parquet").write_bytes(b"no table")
    dataset = configuration.datasets["visits"]
    with pytest.raises(DiscreetError, match="A worker cannot open the data"):
        Workers(1, {"visits": (str(dataset.source), str(dataset.schema))}, 1.0)


@pytest.mark.parametrize("changed", ["ready", "places", "schemas"])
def test_a_source_that_changed_is_not_read_by_the_next_worker(monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    """A schema that is edited, or a file that is replaced, under a running desk: its owner was not asked."""
    from discreet.desk import workers

    same = {"ready": {"visits": {}}, "places": {"visits": None}, "schemas": {"visits": {"columns": {}}}}
    starts = iter([same, same | {changed: {}}, same])
    asked = []
    monkeypatch.setattr(workers._Worker, "start", lambda self: next(starts))
    monkeypatch.setattr(workers._Worker, "ask", lambda self, job: asked.append(job) or {"stopped": True})
    one = Workers(1, {}, 1.0)
    outcomes = []
    for _ in range(2):
        job = Job({}, lambda wanted: True, 1.0)
        one.put(job)
        outcomes.append(job.outcome.result(PATIENCE))
        job.done.set()
    one.close()
    assert outcomes == [None, {"stopped": True}]  # the second, when all is as it was
    assert len(asked) == 1


def test_a_job_that_nobody_waits_for_any_more_ends_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken back before a worker took it up, it is not asked; taken back afterwards, its outcome is nobody's."""
    from discreet.desk import workers

    start = {"ready": {"visits": {}}, "places": {"visits": None}, "schemas": {"visits": {"columns": {}}}}
    asked = []

    def answer(self: workers._Worker, job: Job) -> dict[str, object]:
        asked.append(job)
        assert not job.outcome.cancel(), "too late: the worker is at it"
        return {"answered": True}

    monkeypatch.setattr(workers._Worker, "start", lambda self: start)
    monkeypatch.setattr(workers._Worker, "is_alive", lambda self: True)
    monkeypatch.setattr(workers._Worker, "kill", lambda self: None)
    monkeypatch.setattr(workers._Worker, "ask", answer)
    one = Workers(1, {}, 1.0)
    gone, wanted = Job({}, lambda asked: True, 1.0), Job({}, lambda asked: True, 1.0)
    assert gone.outcome.cancel()
    for job in (gone, wanted):
        job.done.set()
        one.put(job)
    assert wanted.outcome.result(PATIENCE) == {"answered": True}
    one.close()
    assert asked == [wanted]


def test_a_late_answer_is_withheld_and_its_worker_ended(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline that has passed when the worker is told to read."""
    from discreet.desk import workers

    name, token = desk.person()
    client = desk.with_token(token)
    receive = workers._Worker._receive

    def late(self: workers._Worker, until: float) -> dict[str, object] | None:
        message = receive(self, until)
        return message if message is not None and "charge" in message else None

    monkeypatch.setattr(workers._Worker, "_receive", late)
    reply = ask(client, COUNT, "q").json()
    monkeypatch.undo()
    assert reply["state"] == "withheld"
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 1
    assert ask(client, COUNT, "next").json()["state"] == "answered"


def test_a_question_beyond_the_deadline_is_ended(desk: Running) -> None:
    """A deadline that has passed at once: the worker is ended, and another one answers the next."""
    job = Job(COUNT.to_dict(), lambda wanted: True, 0.0)
    desk.service.workers.put(job)
    outcome = job.outcome.result(PATIENCE)
    job.done.set()
    assert outcome is None
    assert ask(desk.client(), COUNT, "next").json()["state"] == "answered"


def test_what_fails_in_a_worker_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an engine's words, which quote values, nor where they come from."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a private value: 4711")

    monkeypatch.setattr(worker, "charged", fail)
    opened: Any = worker._Opened(None, None, {}, "")  # type: ignore[arg-type]
    pipe: Any = None
    for message in ({"ask": COUNT.to_dict()}, {"ask": {}}, {}, [], None):
        assert worker._answer(pipe, {"visits": opened}, message) == {"failed": False}


def test_a_worker_reads_nothing_that_was_not_charged(desk: Running) -> None:
    refused: list[object] = []

    def refuse(wanted: object) -> bool:
        refused.append(wanted)
        return False

    job = Job(COUNT.to_dict(), refuse, PATIENCE)
    desk.service.workers.put(job)
    outcome = job.outcome.result(PATIENCE)
    job.done.set()
    assert outcome == {"stopped": True}
    assert len(refused) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"a": [1, None], "b": [0.5, None], "c": ["x", None], "d": [True, None]},
        {"a": [[1.0, 2.0], [float("inf"), 3.0]], "b": [float("nan"), float("-inf")]},
        {"a": [None, None], "b": ["", "="]},
    ],
)
def test_a_frame_is_the_same_after_its_journey(values: dict[str, list[object]]) -> None:
    frame = pl.DataFrame(values)
    assert read_frame(write_frame(frame)).equals(frame, null_equal=True)


def test_days_and_times_stay_such() -> None:
    import datetime as dt

    frame = pl.DataFrame({"day": [dt.date(2024, 2, 29), None], "at": [dt.datetime(2024, 2, 29, 12, 30), None]})
    assert read_frame(write_frame(frame)).equals(frame)


def test_a_column_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="which no desk sends"):
        write_frame(pl.DataFrame({"a": [{"b": 1}]}))
