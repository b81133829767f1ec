"""Private linear models: time to fit beside scikit-learn and diffprivlib, bytes moved by DP-CD.

Every figure comes from one run. Times are the best of three after a small warm-up. Writes ``build/bench-linear.json``.
Accuracy beside diffprivlib is ``python -m experiments linear_accuracy``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import peers

ROWS, COLUMNS = 100_000, 100
OWED_RATIO, OWED_BANDWIDTH = 3.0, 0.5


def best(action: Callable[[], Any], times: int = 3, clock: Callable[[], float] = time.perf_counter) -> float:
    found = []
    for _ in range(times):
        start = clock()
        action()
        found.append(clock() - start)
    return min(found)


def large(rows: int = ROWS, columns: int = COLUMNS) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, columns))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x, (rng.random(rows) < 1 / (1 + np.exp(-20 * x[:, 0] + 10 * x[:, 1]))).astype(int)


def speed() -> dict[str, float]:
    """Seconds to fit 10⁵ × 100: scikit-learn's own, then ours by solver, then diffprivlib's."""
    from sklearn.linear_model import LogisticRegression as Ordinary

    from discreet.linear import LogisticRegression

    x, y = large()
    found = {"scikit-learn (not private)": best(lambda: Ordinary().fit(x, y))}
    for solver in ("output", "objective", "gd"):
        model = LogisticRegression(
            epsilon=1.0, delta=1e-6, feature_norm=1.0, solver=solver, random_state=0, classes=(0, 1)
        )
        model.fit(x[:100], y[:100])
        found[solver] = best(lambda model=model: model.fit(x, y))
    peers.BUILD.mkdir(exist_ok=True)
    path = peers.BUILD / "bench-linear.npz"
    np.savez(path, x0=x, y0=y, test0=x[:0], labels0=y[:0])
    theirs = peers.ask(
        peers.python("linear"),
        peers.ROOT / "benchmarks" / "peers_linear.py",
        {"data": str(path), "epsilon": 1.0, "seeds": 1},
    )
    if not isinstance(theirs, peers.Failure):
        found["diffprivlib"] = theirs["seconds"]
    return found


def defaults() -> dict[str, list[float]]:
    """Processor seconds of a fit, scikit-learn's, our default's and coordinate descent's, by size."""
    from sklearn.linear_model import LogisticRegression as Ordinary

    from discreet.linear import LogisticRegression

    found = {}
    for rows, columns in ((100_000, 50), (1_000_000, 20)):
        x, y = large(rows, columns)
        ours, turns = (
            LogisticRegression(feature_norm=1.0, solver=s, random_state=0, classes=(0, 1)) for s in ("auto", "cd")
        )
        for model in (ours, turns):
            model.fit(x[:50_000], y[:50_000])  # compiles
        found[f"{rows:,} × {columns}"] = [
            best(lambda x=x, y=y, model=model: model.fit(x, y), clock=time.process_time)
            for model in (Ordinary(), ours, turns)
        ]
    return found


def copy_bandwidth() -> float:
    """Bytes a second that one core reads and writes when it copies 256 MB."""
    source = np.ones(1 << 25)
    target = np.empty_like(source)
    return 2 * source.nbytes / best(lambda: np.copyto(target, source), 5)


def coordinate_bandwidth(loss: str) -> dict[str, float]:
    """DP-CD on 10⁵ × 100: 32 bytes a record and coordinate (see ``solvers.dp_cd``), over the time of a pass."""
    from discreet.linear import LinearRegression, LogisticRegression

    x, y = large()
    kind: Any = LinearRegression if loss == "squared" else partial(LogisticRegression, classes=(0, 1))
    facts = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "feature_norm": 1.0,
        "solver": "cd",
        "fit_intercept": False,
        "random_state": 0,
    }
    few, many = (kind(**facts, solver_options={"passes": passes}) for passes in (1, 6))
    few.fit(x, y)
    seconds = (best(lambda: many.fit(x, y)) - best(lambda: few.fit(x, y))) / 5
    return {
        "seconds a pass": seconds,
        "bytes a pass": 32.0 * ROWS * COLUMNS,
        "bytes a second": 32 * ROWS * COLUMNS / seconds,
    }


def main() -> None:
    console = Console(width=max(120, Console().width))
    seconds = speed()
    own = seconds["scikit-learn (not private)"]
    table = Table(title=f"Seconds to fit {ROWS:,} × {COLUMNS}")
    for header in ("method", "seconds", "over scikit-learn"):
        table.add_column(header, justify="right")
    for name, value in seconds.items():
        table.add_row(name, f"{value:.2f}", f"{value / own:.2f}")
    console.print(table)
    fits = defaults()
    for size, (plain, ours, turns) in fits.items():
        console.print(f"a default fit of {size}: {ours:.2f} s, scikit-learn {plain:.2f} s ({ours / plain:.1f}x)")
        console.print(f"coordinate descent on {size}: {turns:.2f} s ({turns / ours:.1f}x the default)")
        if ours > OWED_RATIO * plain:
            console.print(f"MISSES  the default on {size}: above {OWED_RATIO:g}x")
    copied, moved = copy_bandwidth(), {loss: coordinate_bandwidth(loss) for loss in ("squared", "logistic")}
    for loss, found in moved.items():
        console.print(
            f"DP-CD, {loss}: {found['bytes a pass'] / 1e9:.2f} GB a pass in {found['seconds a pass']:.3f} s = "
            f"{found['bytes a second'] / 1e9:.1f} GB/s; one core copies at {copied / 1e9:.1f} GB/s "
            f"({found['bytes a second'] / copied:.0%})"
        )
    for solver in ("output", "objective"):
        if seconds[solver] > OWED_RATIO * own:
            console.print(f"MISSES  {solver}: {seconds[solver] / own:.1f}x scikit-learn's time, above {OWED_RATIO:g}x")
    if moved["squared"]["bytes a second"] < OWED_BANDWIDTH * copied:
        console.print("MISSES  DP-CD moves fewer bytes than half of the copy bandwidth")
    peers.BUILD.mkdir(exist_ok=True)
    report = {"seconds": seconds, "defaults": fits, "copy": copied, "cd": moved}
    (peers.BUILD / "bench-linear.json").write_text(json.dumps(report, indent=2))
    console.print("Wrote build/bench-linear.json.")


if __name__ == "__main__":
    main()
