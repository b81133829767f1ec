"""A private step against an ordinary one and against Opacus in its modes: eight models, time and memory.

Every figure is from a fresh process on two threads: the median of many steps after a warm-up, forward, backward,
clipping, noise and update included, loading excluded; of several processes the fastest. Memory is the peak above what
the process held before its first step. Plain torch is also timed on a heap that keeps what a step frees, as private
training's does. Writes ``build/bench-training.json``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import peers
from benchmarks.workloads_training import WORKLOADS

MODES = ("hooks", "functorch", "ew", "ghost")
OWED = (1.15, 1.2, 1.4, 1.15, 1.2, 1.4, 1.5, 1.5)  # of plain SGD's time
OWED_MEMORY, OWED_MEGABYTES = 1.25, 20.0
PROCESSES = 3
LIMIT = 240.0


def fastest(interpreter: str, script: str, question: dict[str, str], processes: int = PROCESSES) -> Any:
    """Least time and least peak of several processes, or the reason there is none."""
    found: Any = None
    for _ in range(processes):
        answer = peers.ask(interpreter, peers.ROOT / "benchmarks" / script, question, limit=LIMIT)
        if isinstance(answer, peers.Failure):
            return answer
        found = answer if found is None else {key: min(found[key], answer[key]) for key in answer}
    return found


def measure(name: str, *, with_peers: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"workload": name}
    for method in ("plain", "settled", "private", "quick"):
        found = fastest(sys.executable, "ours_training.py", {"workload": name, "method": method})
        if isinstance(found, peers.Failure):
            raise SystemExit(f"{name}, {method}: {found.reason}")
        result[method] = found
    for mode in MODES if with_peers else ():
        found = fastest(peers.python("training"), "peers_training.py", {"workload": name, "method": mode}, 1)
        result[mode] = {"failure": found.reason} if isinstance(found, peers.Failure) else found
    return result


def show(results: list[dict[str, Any]]) -> None:
    table = Table(
        "workload",
        "plain",
        "plain, settled heap",
        "private",
        "owed",
        "quick noise",
        "memory",
        *(f"Opacus {mode}" for mode in MODES),
    )
    for result, owed in zip(results, OWED, strict=False):
        plain = result["plain"]

        def times(key: str, result: dict[str, Any] = result, plain: dict[str, Any] = plain) -> str:
            found = result.get(key)
            if found is None or "failure" in found:
                return "-"
            return f"{found['seconds'] / plain['seconds']:.2f}× {found['megabytes']:.0f} MB"

        memory = (
            result["private"]["megabytes"] <= OWED_MEMORY * plain["megabytes"]
            or result["private"]["megabytes"] <= plain["megabytes"] + OWED_MEGABYTES
        )
        table.add_row(
            result["workload"],
            f"{1000 * plain['seconds']:.2f} ms {plain['megabytes']:.0f} MB",
            times("settled"),
            times("private"),
            f"{owed:g}×",
            times("quick"),
            "ok" if memory else "above",
            *map(times, MODES),
        )
    Console(width=200).print(table)


def main() -> None:
    with_peers = "--alone" not in sys.argv
    results = [measure(name, with_peers=with_peers) for name in WORKLOADS]
    peers.BUILD.mkdir(exist_ok=True)
    (peers.BUILD / "bench-training.json").write_text(json.dumps(results, indent=1))
    show(results)


if __name__ == "__main__":
    main()
