"""What a desk answers in a second, how long an answer takes beyond its tick, and whether its memory grows.

    python -m benchmarks.desk [--requests N] [--clients N]

A server in processes of its own on loopback, as ``discreet desk serve`` starts it, with two workers; clients in threads
here. The server's processor time is told beside the clock, for machines that do other work too. Explanations are worked
out at the server here, though the Python client makes its own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx

from discreet.desk.charging import open_books
from discreet.desk.configuration import read_configuration
from discreet.desk.questions import BuilderCall, DeskBudget, DeskQuestion
from discreet.desk.state import DeskState
from discreet.ledger import Ledger
from searches.desk_kills import Desk
from tests.desk.desks import COUNT, ask, free_port, write_desk

TICK = 0.25
GROUPS = DeskQuestion(
    "visits",
    DeskBudget(epsilon=0.1),
    (BuilderCall("group_by", ("ward",)), BuilderCall("mean", ("days",)), BuilderCall("count")),
)


@dataclass(frozen=True)
class Served:
    """A desk that answers, and the token of its one analyst."""

    url: str
    token: str
    number: int  # of the web process

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=60)

    def processor_time(self) -> float:
        """Seconds of the web process, without its workers."""
        parts = Path(f"/proc/{self.number}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Megabytes of the web process."""
        return int(Path(f"/proc/{self.number}/statm").read_text(encoding="ascii").split()[1]) * 4096 / 1e6


@contextlib.contextmanager
def served() -> Iterator[Served]:
    """A desk in processes of its own."""
    with tempfile.TemporaryDirectory() as folder:
        configuration = read_configuration(write_desk(Path(folder), workers=2, tick=TICK))
        state = DeskState(configuration.state)
        with Ledger(configuration.ledger) as ledger:
            open_books(ledger, configuration)["visits"].sub("ada", epsilon=900.0)
        token = state.add_person("ada", "analyst", ("visits",))
        state.close()
        desk = Desk(Path(folder), free_port())
        desk.start()
        assert desk.process is not None
        try:
            yield Served(f"http://127.0.0.1:{desk.port}", token, desk.process.pid)
        finally:
            desk.kill()


def explains(desk: Served, requests: int, clients: int) -> None:
    """Explanations in a second, and the time of each; and memory before and after."""
    local = threading.local()

    def explain(_: int) -> float:
        if not hasattr(local, "client"):
            local.client = desk.client()
        while True:
            start = time.perf_counter()
            with contextlib.suppress(httpx.RemoteProtocolError):  # a connection that was idle too long, and is closed
                assert local.client.post("/v1/explain", json=GROUPS.to_dict()).status_code == 200
                return time.perf_counter() - start

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(explain, range(200)))  # first uses
        before, start, cpu = desk.memory(), time.perf_counter(), desk.processor_time()
        times = sorted(pool.map(explain, range(requests)))
        taken, cpu = time.perf_counter() - start, desk.processor_time() - cpu
    print(
        f"explain: {requests / taken:.0f} a second by the clock with {clients} clients, {requests / cpu:.0f} a second "
        f"of its processor ({1e3 * cpu / requests:.1f} ms each); median {1e3 * statistics.median(times):.1f} ms, "
        f"p95 {1e3 * times[int(0.95 * requests)]:.1f} ms; memory {before:.0f} MB before, {desk.memory():.0f} MB after "
        f"{requests:,} requests",
        flush=True,
    )


def releases(desk: Served, requests: int) -> None:
    """How long an answer takes beyond its tick, and what it costs the server."""
    beyond, cpu = [], desk.processor_time()
    with desk.client() as client:
        for number in range(requests):
            start = time.perf_counter()
            assert ask(client, COUNT, f"k{number}").status_code == 201
            beyond.append(time.perf_counter() - start - TICK)
    print(
        f"release: {1e3 * statistics.median(beyond):.1f} ms beyond a tick of {TICK} s in the median, "
        f"{1e3 * sorted(beyond)[int(0.95 * requests)]:.1f} ms at p95, of {requests}; "
        f"{1e3 * (desk.processor_time() - cpu) / requests:.1f} ms of the server's processor each",
        flush=True,
    )


def main(requests: int = 10_000, clients: int = 2) -> None:
    with served() as desk:
        releases(desk, max(20, requests // 200))
        explains(desk, requests, clients)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=2)
    given = parser.parse_args()
    main(given.requests, given.clients)
