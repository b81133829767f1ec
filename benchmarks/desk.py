"""What a desk answers in a second, how long an answer takes beyond its tick, and whether its memory grows.

    python -m benchmarks.desk [--requests N]

A server of this process on loopback, with two real workers; clients in threads of the same process, so that both cores
are shared by all of them. Explanations are worked out at the server here, though the Python client makes its own.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from discreet.desk.questions import BuilderCall, DeskBudget, DeskQuestion
from tests.desk.desks import COUNT, Running, ask, running, write_desk

TICK = 0.25
GROUPS = DeskQuestion(
    "visits",
    DeskBudget(epsilon=0.1),
    (BuilderCall("group_by", ("ward",)), BuilderCall("mean", ("days",)), BuilderCall("count")),
)


def explains(desk: Running, token: str, requests: int, clients: int = 8) -> None:
    """Explanations in a second, and the time of each; and memory before and after."""
    local = threading.local()

    def explain(_: int) -> float:
        if not hasattr(local, "client"):
            local.client = desk.with_token(token)
        start = time.perf_counter()
        assert local.client.post("/v1/explain", json=GROUPS.to_dict()).status_code == 200
        return time.perf_counter() - start

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(explain, range(200)))  # first uses
        before, start, cpu = memory(), time.perf_counter(), time.process_time()
        times = sorted(pool.map(explain, range(requests)))
        taken, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(
        f"explain: {requests / taken:.0f} a second by the clock, {requests / cpu:.0f} of the processor; median "
        f"{1e3 * statistics.median(times):.1f} ms, p95 {1e3 * times[int(0.95 * requests)]:.1f} ms; memory "
        f"{before:.0f} MB before, {memory():.0f} MB after {requests:,} requests"
    )


def releases(desk: Running, requests: int) -> None:
    """How long an answer takes beyond its tick."""
    client = desk.client(epsilon=900.0)
    beyond = []
    for number in range(requests):
        start = time.perf_counter()
        assert ask(client, COUNT, f"k{number}").status_code == 201
        beyond.append(time.perf_counter() - start - TICK)
    print(
        f"release: {1e3 * statistics.median(beyond):.1f} ms beyond a tick of {TICK} s in the median, "
        f"{1e3 * sorted(beyond)[int(0.95 * requests)]:.1f} ms at p95, of {requests}"
    )


def memory() -> float:
    """Megabytes of this process, server and clients together."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096 / 1e6


def main(requests: int = 10_000) -> None:
    with tempfile.TemporaryDirectory() as folder, running(write_desk(Path(folder), workers=2, tick=TICK)) as desk:
        _, token = desk.person()
        assert httpx.get(f"{desk.url}/healthz").status_code == 200
        releases(desk, max(20, requests // 200))
        explains(desk, token, requests)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=10_000)
    main(parser.parse_args().requests)
