"""Synthetic tables: the average 3-way error of ours on Adult beside smartnoise-synth's and dpmm's AIM and MST.

``python -m benchmarks synthesis`` fits ours at epsilon 1 with one seed (``make bench`` does that) and prints it beside
what is stored in ``synthesis_results.json``. The other figures are measured once and kept there:

    python -m benchmarks.synthesis peers [seeds [peer ...]]     at epsilon 1, 0.1 and 10; goes on where it stopped
    python -m benchmarks.synthesis ours [seeds [engine ...]]    both engines, the same way
    python -m benchmarks.synthesis table                        what is stored, as the table of docs/synthesis.md

The data is the binned table of ``adult_table``, delta 1e-9, and all are measured by the same code on as many rows as
the real table has. Seconds are of CPU, megabytes the peak of the process.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import peers
from benchmarks.adult_table import codes, frame, marginal_error, schema, sizes

RESULTS = Path(__file__).with_name("synthesis_results.json")
EPSILONS, DELTA = (1.0, 0.1, 10.0), 1e-9
PEERS = ("dpmm-mst", "smartnoise-mst", "smartnoise-aim", "dpmm-aim")
ENGINES = ("residual", "mbi")
LONGEST = 86_400.0  # seconds on the clock; what counts is the CPU time that ``peers_synthesis`` allows
GOAL, OWED_CPU = 0.9, {"residual": 120.0, "mbi": 900.0}


def stored() -> list[dict[str, Any]]:
    """What was measured so far."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else []


def keep(entry: dict[str, Any]) -> None:
    """Add one measurement, so that a run that is stopped loses nothing."""
    rows = [json.dumps(found) for found in [*stored(), entry]]
    RESULTS.write_text("[\n  " + ",\n  ".join(rows) + "\n]\n")


def missing(methods: Iterable[str], seeds: int) -> Iterator[dict[str, Any]]:
    """The questions that no stored entry answers: all methods with one seed before any with the next."""
    done = {(found["method"], found["epsilon"], found["seed"]) for found in stored()}
    for seed in range(seeds):
        for epsilon in EPSILONS:
            for method in methods:
                if (method, epsilon, seed) not in done:
                    yield {"method": method, "epsilon": epsilon, "delta": DELTA, "seed": seed}


def measure_peers(seeds: int = 1, *methods: str) -> None:
    """One peer at a time, each fit in a fresh process of its own environment."""
    script = peers.ROOT / "benchmarks" / "peers_synthesis.py"
    for question in missing(methods or PEERS, seeds):
        asked = question | {"peer": question["method"]}
        answer = peers.ask(peers.python(question["method"].split("-")[0]), script, asked, limit=LONGEST)
        if isinstance(answer, peers.Failure) and answer.reason == "exit code -15":
            raise SystemExit("The peer was stopped by hand: nothing is stored, and the next run asks again.")
        found = {"failure": answer.reason} if isinstance(answer, peers.Failure) else answer
        keep(question | found)
        print(json.dumps(question | found), flush=True)


def ours(engine: str, epsilon: float, seed: int) -> dict[str, Any]:
    """One fit of our estimator, measured like the peers' (in this process: its peak of memory is the process's)."""
    from discreet.synthesis import TableSynthesizer

    data = frame()
    before = time.process_time()
    model = TableSynthesizer(epsilon=epsilon, delta=DELTA, engine=engine).fit(data, schema=schema(), rng=seed)
    drawn = model.sample(len(data), rng=seed + 1)
    cpu = time.process_time() - before
    synthetic = {name: drawn[name].to_numpy().astype("int64") for name in sizes()}
    real = codes()
    return {
        "error": marginal_error(real, synthetic),
        "pairs": marginal_error(real, synthetic, 2),
        "cpu": cpu,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measure_ours(seeds: int = 5, *engines: str) -> None:
    """Both engines at every epsilon."""
    for question in missing([f"discreet-{engine}" for engine in engines or ENGINES], seeds):
        found = ours(question["method"].split("-")[1], question["epsilon"], question["seed"])
        keep(question | found)
        print(json.dumps(question | found), flush=True)


def markdown() -> str:
    """What is stored: mean error, the number of runs, CPU seconds and memory at epsilon 1."""
    found = stored()
    lines = ["| | ε = 0.1 | ε = 1 | ε = 10 | CPU s | MB |", "|---|--:|--:|--:|--:|--:|"]
    for method in (*(f"discreet-{engine}" for engine in ENGINES), *PEERS):
        by_epsilon = [[e for e in found if e["method"] == method and e["epsilon"] == eps] for eps in sorted(EPSILONS)]
        cells = [_cell(entries) for entries in by_epsilon]
        cost = _summary(by_epsilon[1])[2:] if by_epsilon[1] else ["", ""]
        lines.append(f"| {method} | {' | '.join(cells)} | {' | '.join(cost)} |")
    return "\n".join([*lines, f"| noise alone, by `explain` | {' | '.join(_noise_alone())} | | |"])


def _noise_alone() -> list[str]:
    """What is told before a fit of ours, by epsilon: no bound."""
    from discreet.synthesis import TableSynthesizer

    return [
        f"{TableSynthesizer(epsilon, DELTA).explain(schema(), n=48_842).workload_error:.4f}"
        for epsilon in sorted(EPSILONS)
    ]


def _cell(entries: list[dict[str, Any]]) -> str:
    errors = [entry["error"] for entry in entries if "error" in entry]
    if not errors:
        return "failed" if entries else "not run"
    return f"{fmean(errors):.4f} ({len(errors)})"


def main() -> None:
    """Ours at epsilon 1 with one seed, beside everything stored."""
    console = Console(width=max(120, Console().width))
    fresh = {"method": "discreet-residual (now)", "epsilon": 1.0, "seed": 0, **ours("residual", 1.0, 0)}
    found = [*stored(), fresh]
    table = Table(title=f"Adult, {len(sizes())} columns: average 3-way total-variation error, delta = {DELTA:g}")
    for header in ("method", "epsilon", "error", "runs", "CPU s", "MB"):
        table.add_column(header, justify="right")
    for epsilon in sorted(EPSILONS):
        for method in sorted({entry["method"] for entry in found}):
            entries = [e for e in found if e["method"] == method and e["epsilon"] == epsilon]
            if entries:
                table.add_row(method, f"{epsilon:g}", *_summary(entries))
    console.print(table)
    best = min(
        (e["error"] for e in stored() if e["epsilon"] == 1.0 and e["method"] in PEERS and "error" in e), default=None
    )
    if best is not None and fresh["error"] > best:
        console.print(f"MISSES  3-way error {fresh['error']:.4f} at epsilon 1; the best peer has {best:.4f}")
    elif best is not None and fresh["error"] > GOAL * best:
        console.print(f"Above the goal: 3-way error {fresh['error']:.4f} is not 10 % below the best peer's {best:.4f}")
    if fresh["cpu"] > OWED_CPU["residual"]:
        console.print(
            f"MISSES  the residual engine took {fresh['cpu']:.0f} CPU-seconds, above {OWED_CPU['residual']:g}"
        )


def _summary(entries: list[dict[str, Any]]) -> list[str]:
    good = [entry for entry in entries if "error" in entry]
    if not good:
        return [entries[0]["failure"][:60], "0", "", ""]
    mean = {key: fmean(entry[key] for entry in good) for key in ("error", "cpu", "megabytes")}
    return [f"{mean['error']:.4f}", str(len(good)), f"{mean['cpu']:.0f}", f"{mean['megabytes']:.0f}"]


if __name__ == "__main__":
    what, seeds, *rest = [*sys.argv[1:], "1"][: max(2, len(sys.argv) - 1)]
    if what == "table":
        print(markdown())
    else:
        {"peers": measure_peers, "ours": measure_ours}[what](int(seeds), *rest)
