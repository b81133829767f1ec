"""Exact vector noise beside OpenDP's, and float training noise beside torch's, in one run.

Ours is a whole release: value to the grid, noise, checks, the Release. OpenDP's is a call of its measurement on a
list. Both add noise of scale 100. At 10⁶ entries OpenDP is measured on 2·10⁴ and multiplied, which its cost per entry
allows; the table says so. The targets are the issue's: 20 times OpenDP's throughput at 10³, 100 times at 10⁶, and
training noise no slower than torch's, with the cryptographic generator.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.peers import BUILD, Failure, ask, python
from benchmarks.peers_noise import best
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from discreet.random import gaussian_noise

SCRIPT = Path(__file__).with_name("peers_noise.py")
LARGE, MEASURED, TENSOR = 1_000_000, 20_000, 20_000_000
OWED = {1000: 20, LARGE: 100}

OURS: dict[tuple[str, str], Callable[[int], Any]] = {
    ("laplace", "float"): lambda n: Laplace(sensitivity=1.0, scale=100.0),
    ("gaussian", "float"): lambda n: Gaussian(sensitivity=1.0, sigma=100.0),
    ("laplace", "integer"): lambda n: DiscreteLaplace(sensitivity=1, scale=100.0),
    ("gaussian", "integer"): lambda n: DiscreteGaussian(sensitivity=1, sigma=100.0, max_size=n),
}


def ours(law: str, numbers: str, size: int) -> float:
    mechanism = OURS[law, numbers](size)
    data = np.zeros(size, float if numbers == "float" else int)
    return best(lambda: mechanism.release(data), 50 if size <= 1000 else 5)


def theirs(peer: str, law: str, numbers: str, size: int, times: int) -> float:
    """Seconds for ``size`` entries; infinite, with the reason printed, if the peer gives no answer."""
    question = {"peer": peer, "law": law, "numbers": numbers, "size": size, "times": times}
    answer = ask(python("noise"), SCRIPT, question)
    if isinstance(answer, Failure):
        print(f"{peer} gave no answer: {answer.reason}")
        return float("inf")
    return float(answer)


def vector_rows() -> list[dict[str, Any]]:
    rows = []
    for law, numbers in OURS:
        for size in OWED:
            mine = ours(law, numbers, size)
            measured = min(size, MEASURED)
            peer = theirs("opendp", law, numbers, measured, 3) * size / measured
            rows.append(
                {
                    "what": f"{law}, {numbers}",
                    "size": size,
                    "ours": mine,
                    "peer": "OpenDP 0.16",
                    "theirs": peer,
                    "owed": OWED[size],
                    "note": "" if measured == size else f"from {measured:,}",
                }
            )
    return rows


def tensor_rows() -> list[dict[str, Any]]:
    rows = []
    for numbers, dtype in (("float32", np.float32), ("float64", np.float64)):
        peer = theirs("torch", "gaussian", numbers, TENSOR, 5)
        for secure in (True, False):
            buffer = np.empty(TENSOR, dtype)
            mine = best(lambda buffer=buffer, secure=secure: gaussian_noise(buffer, secure=secure), 5)  # type: ignore[misc]
            rows.append(
                {
                    "what": f"training noise, {numbers}, {'AES' if secure else 'SFC64'}",
                    "size": TENSOR,
                    "ours": mine,
                    "peer": "torch",
                    "theirs": peer,
                    "owed": 1,
                    "note": "",
                }
            )
    return rows


def main() -> None:
    console, rows = Console(width=120), [*vector_rows(), *tensor_rows()]
    grid = Table("noise", "entries", "ours, ns/entry", "peer", "theirs, ns/entry", "times", "owed", "", title="Noise")
    for row in rows:
        ratio = row["theirs"] / row["ours"]
        verdict = " no answer" if ratio == float("inf") else "" if ratio >= row["owed"] else " MISSES"
        grid.add_row(
            row["what"],
            f"{row['size']:,}",
            f"{row['ours'] / row['size'] * 1e9:,.1f}",
            row["peer"],
            f"{row['theirs'] / row['size'] * 1e9:,.1f}",
            f"{ratio:,.1f}",
            f"{row['owed']}",
            row["note"] + verdict,
        )
    console.print(grid)
    BUILD.mkdir(exist_ok=True)
    (BUILD / "bench-noise.json").write_text(json.dumps(rows, indent=1))
    console.print("Wrote build/bench-noise.json.")


if __name__ == "__main__":
    main()
