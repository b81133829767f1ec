"""What correlated noise costs over independent noise: processor time of a private step, and memory.

``python -m benchmarks correlated``. For each workload a process takes steps with independent and with another noise in
turns, on one thread, and keeps the least time of each; memory is the peak of a process with one noise alone, the least
of two. The figures of ``docs/correlated-noise.md`` are its output on two cores, shared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

WORKLOADS = ("b: MLP, batch 512", "a: CNN, batch 256", "e: WRN-16-4, batch 64")
OTHERS = ("lambda CGD", "banded, 4", "BLT, 3", "tree")


def answered(workload: str, *noises: str, alone: bool = False) -> dict[str, Any]:
    """What a fresh process measures."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    asked = json.dumps({"workload": workload, "noises": noises, "alone": alone})
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.ours_correlated"],
        input=asked,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def memory(workload: str, noise: str) -> float:
    return min(answered(workload, noise)["megabytes"] for _ in range(2))


def main() -> None:
    print("milliseconds of the noise of a step by itself: independent, " + ", ".join(OTHERS))
    for workload in WORKLOADS:
        alone = answered(workload, "independent", *OTHERS, alone=True)["milliseconds"]
        print(f"{workload:<24} " + " ".join(f"{value:8.2f}" for value in alone))
    print(f"{'workload':<24} {'noise':<12} {'time':>8} {'memory':>8}   over independent noise")
    for workload in WORKLOADS:
        plain = memory(workload, "independent")
        for other in OTHERS:
            one, two = answered(workload, "independent", other)["seconds"]
            print(f"{workload:<24} {other:<12} {two / one - 1:>+8.1%} {memory(workload, other) / plain - 1:>+8.1%}")
