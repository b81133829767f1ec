"""Runs in the peers' environment: seconds that OpenDP, or torch, takes to noise a vector."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any


def opendp(law: str, numbers: str, size: int) -> Callable[[], Any]:
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics")
    kind: Any = float if numbers == "float" else int
    atom = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T=int)
    metric = dp.l1_distance(T=kind) if law == "laplace" else dp.l2_distance(T=float)
    make = dp.m.make_laplace if law == "laplace" else dp.m.make_gaussian
    measurement, data = make(dp.vector_domain(atom), metric, scale=100.0), [kind(0)] * size
    return lambda: measurement(data)


def torch(law: str, numbers: str, size: int) -> Callable[[], Any]:
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    buffer = torch.empty(size, dtype=torch.float32 if numbers == "float32" else torch.float64)
    return buffer.normal_


def best(run: Callable[[], Any], times: int) -> float:
    """The shortest of several runs, after one that is not counted."""
    run()
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    run = {"opendp": opendp, "torch": torch}[asked["peer"]](asked["law"], asked["numbers"], asked["size"])
    print(json.dumps(best(run, asked["times"])))
