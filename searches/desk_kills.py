"""No charge is lost or made twice, whatever is killed: ``python -m searches desk_kills``.

A desk in processes of its own, with everything in a PostgreSQL server of its own, under load. At random moments one of
its web process, a worker, and the database is ended with signal 9, and started again where it does not come back by
itself. After every few kills the clients stop, and each key is asked once more: it has one charge in the chain, and the
one answer that it had.

It needs PostgreSQL's programs, in ``/usr/lib/postgresql``.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from discreet.desk.charging import open_books
from discreet.desk.configuration import read_configuration
from discreet.desk.state import DeskState
from discreet.ledger import Ledger
from tests.desk.desks import COUNT, free_port, write_desk

SERVE = [sys.executable, "-c", "from discreet.cli import main; main()", "desk", "serve", "--port"]
CLIENTS = 6
ROUND = 10  # kills, after which what was promised is checked: a run that is ended loses those since the last round
VICTIMS = ("web", *["worker"] * 3, *["database"] * 6)


class Postgres:
    """A server of our own, on a socket alone."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._bin = max(Path("/usr/lib/postgresql").glob("*/bin"))
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self._as:
            subprocess.run(["chown", "postgres", home], check=True)
            home.parent.chmod(0o755)
        self._run("initdb", "--pgdata", home / "data", "--auth", "trust", "--username", "discreet")
        self.start()

    def _run(self, program: str, *words: Any) -> None:
        command = [*self._as, str(self._bin / program), *map(str, words)]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def url(self) -> str:
        return f"postgresql://discreet@/postgres?host={self.home}"

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.home}'"
        log = self.home / "log"
        for _ in range(60):
            with contextlib.suppress(subprocess.CalledProcessError):  # what was killed may still hold its memory
                self._run("pg_ctl", "--pgdata", self.home / "data", "-w", "--log", log, "--options", options, "start")
                return
            time.sleep(0.5)
        raise RuntimeError(log.read_text(encoding="utf-8")[-2000:])

    def kill(self) -> None:
        number = int((self.home / "data" / "postmaster.pid").read_text(encoding="ascii").splitlines()[0])
        os.kill(number, signal.SIGKILL)
        while Path(f"/proc/{number}").exists():
            time.sleep(0.01)

    def stop(self) -> None:
        self._run("pg_ctl", "--pgdata", self.home / "data", "--mode", "immediate", "stop")


@dataclass
class Desk:
    """The server's process."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen([*SERVE, str(self.port)], cwd=self.folder, stdout=subprocess.DEVNULL,
                                        stderr=(self.folder / "log").open("ab"))  # fmt: skip
        for _ in range(1200):
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"http://127.0.0.1:{self.port}/healthz").status_code == 200:
                    return
            if self.process.poll() is not None:
                raise RuntimeError((self.folder / "log").read_text(encoding="utf-8")[-2000:])
            time.sleep(0.1)
        raise RuntimeError("The desk does not answer.")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def kill_worker(self, draw: random.Random) -> bool:
        """End one of the processes that open the data."""
        assert self.process is not None
        found = []
        for tasks in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(number) for number in tasks.read_text(encoding="ascii").split()]
        workers = [number for number in found if b"spawn_main" in _command(number)]
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(draw.choice(workers), signal.SIGKILL)
        return bool(workers)


def _command(number: int) -> bytes:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return b""


@dataclass
class Load:
    """Clients that ask until it is over, and note what they were answered; who is cut off asks again, with the same
    key.
    """

    url: str
    tokens: list[str]
    name: str  # of the round: keys begin with it
    answers: dict[tuple[int, str], set[str]] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    replies: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    over: bool = False
    threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Load:
        self.threads = [threading.Thread(target=self.ask, args=(who,)) for who in range(CLIENTS)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.over = True
        for thread in self.threads:
            thread.join()

    def ask(self, who: int) -> None:
        headers, number = {"Authorization": f"Bearer {self.tokens[who]}"}, 0
        while not self.over:
            with httpx.Client(base_url=self.url, headers=headers, timeout=60) as client:
                while not self.over:
                    key = f"{self.name}-{number}"
                    try:
                        reply = client.post("/v1/releases", json=COUNT.to_dict(), headers={"Idempotency-Key": key})
                    except httpx.TransportError:
                        break
                    self.statuses[reply.status_code] += 1
                    if reply.status_code != 201:
                        time.sleep(0.2)
                        continue
                    self.answers.setdefault((who, key), set()).add(_value(reply.json()))
                    number += 1
                    self.replies.release()
            time.sleep(0.1)

    def once_more(self, who: int, key: str) -> str:
        """The answer that is kept under a key."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}", "Idempotency-Key": key}
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                reply = httpx.post(f"{self.url}/v1/releases", json=COUNT.to_dict(), headers=headers, timeout=60)
                if reply.status_code == 201:
                    return _value(reply.json())
            time.sleep(0.1)
        raise AssertionError("an answer that was given is no longer there")


def _value(reply: dict[str, Any]) -> str:
    return "withheld" if reply["state"] == "withheld" else str(reply["columns"])


@contextlib.contextmanager
def served(home: Path) -> Iterator[tuple[Desk, Postgres, list[str], DeskState]]:
    """A desk, its database, the tokens of those who ask, its state."""
    (home / "postgres").mkdir()
    database = Postgres(home / "postgres")
    folder = home / "desk"
    folder.mkdir()
    file = write_desk(folder, tick=0.02, workers=2, ledger=database.url, state=database.url)
    configuration, tokens = read_configuration(file), []
    state = DeskState(configuration.state)
    with Ledger(configuration.ledger) as ledger:
        book = open_books(ledger, configuration)["visits"]
        for number in range(CLIENTS):
            book.sub(f"p{number}", epsilon=900.0)
            tokens.append(state.add_person(f"p{number}", "analyst", ("visits",)))
    desk = Desk(folder, free_port())
    try:
        desk.start()
        yield desk, database, tokens, state
    finally:
        desk.kill()
        state.close()
        database.stop()


def kill(victim: str, desk: Desk, database: Postgres, draw: random.Random) -> None:
    """End it, and start it again where nothing else does."""
    match victim:
        case "web":
            desk.kill()
            desk.start()
        case "worker":
            desk.kill_worker(draw)
        case "database":
            database.kill()
            database.start()
        case _:
            raise AssertionError(victim)


def search(kills: int, seed: int) -> int:
    """Kill so many, and check after every few; how many questions were answered."""
    draw, killed, answered = random.Random(seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as (desk, database, tokens, state):
        for first in range(0, kills, ROUND):
            with Load(f"http://127.0.0.1:{desk.port}", tokens, f"r{first}") as load:
                for _ in range(min(ROUND, kills - first)):
                    for _ in range(draw.randint(1, 6)):
                        assert load.replies.acquire(timeout=300), "no question is answered any more"
                    time.sleep(draw.random() * 0.05)  # anywhere between two replies
                    victim = draw.choice(VICTIMS)
                    kill(victim, desk, database, draw)
                    killed[victim] += 1
            withheld = check(desk, load, state)
            answered += len(load.answers)
            print(f"desk_kills: {killed.total()} kills {dict(killed)} checked, none lost, none doubled", flush=True)
            seen = f"{len(load.answers)} questions, {withheld} withheld, replies by status {dict(load.statuses)}"
            print(f"  in the last round {seen}", flush=True)
    return answered


def check(desk: Desk, load: Load, state: DeskState) -> int:
    """Each key of a round once more, at a desk that was started anew; the chain; all that is stored. How many answers
    are withheld.
    """
    desk.kill()
    desk.start()
    for (who, key), values in load.answers.items():
        values.add(load.once_more(who, key))
    assert all(len(values) == 1 for values in load.answers.values()), "two answers for one key"
    configuration = read_configuration(desk.folder / "desk.toml")
    with Ledger(configuration.ledger) as ledger:
        assert ledger.verify().entries > CLIENTS
        charged = [(entry.book, entry.unit.key) for entry in ledger.entries() if entry.unit and entry.unit.key]
    assert len(charged) == len(set(charged)), "two charges for one key"
    answered = {(f"visits/p{who}", key) for who, key in load.answers}
    asked = state.questions(most=None)
    stored = {(f"visits/{one.person}", one.key) for one in asked if one.state in ("answered", "withheld")}
    assert answered <= set(charged), "an answer without its charge"
    assert stored == set(charged), "a charge that the desk does not know of"
    return sum(values == {"withheld"} for values in load.answers.values())


def main(size: int | None = None, seed: int = 0) -> None:
    """200 kills, by default."""
    kills = size or 200
    answered = search(kills, seed)
    print(f"desk_kills: {kills} kills, {answered:,} questions; none lost, none doubled", flush=True)


def retry(case: int) -> None:
    """A short run of that seed."""
    search(10, case)
