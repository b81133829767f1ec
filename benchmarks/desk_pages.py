"""How long the server takes for each page, at a ledger of so many entries.

    python -m benchmarks.desk_pages [--entries N]

A server of this process on loopback, its ledger filled before it starts. Times are by the clock, and of the processor
of this process; the median of five, after a first visit that is said apart.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks.ledger import fill
from discreet.ledger import Ledger
from tests.desk.desks import Running, running, write_desk

PAGES = {
    "analyst": ("/", "/data/visits", "/data/visits/ask", "/answers/k", "/history", "/planner",
                "/planner?plan=questions&count=50&epsilon=0.05&delta=1e-6"),
    "owner": ("/", "/requests", "/people", "/spending", "/checklist"),
    "officer": ("/", "/ledger", "/ledger?words=nothing", "/verify", "/hazards/visits"),
}  # fmt: skip
TIMES = 5


def fill_ledger(folder: Path, entries: int) -> None:
    """A ledger that was charged so often, and in which somebody called ada has a part."""
    with Ledger(f"sqlite:///{folder / 'budget.db'}", who="desk") as ledger:
        whole = ledger.open("visits", epsilon=1e9, delta=1e-6)
        fill(whole, entries)
        whole.sub("ada", epsilon=1e8)


def visit(desk: Running, token: str, role: str) -> None:
    with httpx.Client(base_url=desk.url, headers={"Origin": desk.url, "Accept": "text/html"}, timeout=120) as client:
        client.post("/sign-in", data={"token": token})
        if role == "analyst":
            form = {"sql": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "epsilon": "0.1", "key": "k"}
            client.post("/data/visits/release", data=form)
        for path in PAGES[role]:
            times, cpu = [], []
            for _ in range(TIMES + 1):
                start, busy = time.perf_counter(), time.process_time()
                reply = client.get(path)
                times.append(time.perf_counter() - start)
                cpu.append(time.process_time() - busy)
                assert reply.status_code == 200, (path, reply.status_code)
            first, rest, busy_first, busy_rest = (
                1e3 * each for each in (times[0], statistics.median(times[1:]), cpu[0], statistics.median(cpu[1:]))
            )
            print(f"{role:8} {path:62} first {first:6.0f} ms, then {rest:5.0f} ms; ", end="")
            print(f"processor {busy_first:6.0f}, {busy_rest:5.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    entries = parser.parse_args().entries
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = write_desk(folder, epsilon=1e9, workers=1, tick=0.05)
        fill_ledger(folder, entries)
        with running(file) as desk:
            people = (("ada", "analyst", ("visits",)), ("olga", "owner", ()), ("otto", "officer", ()))
            tokens = {role: desk.service.state.add_person(who, role, given) for who, role, given in people}
            print(f"{entries:,} entries")
            for role, token in tokens.items():
                visit(desk, token, role)


if __name__ == "__main__":
    main()
