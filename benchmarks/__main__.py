"""``python -m benchmarks [room ...]``: every room's benchmark, or the named ones."""

from __future__ import annotations

import importlib
import sys

ROOMS = ("package", "accounting", "noise", "ledger", "statistics", "workloads", "tables", "linear", "training")

if __name__ == "__main__":
    chosen = sys.argv[1:] or ROOMS
    if unknown := sorted(set(chosen) - set(ROOMS)):
        raise SystemExit(f"There is no benchmark {unknown[0]!r}; there are {', '.join(ROOMS)}.")
    for room in chosen:
        importlib.import_module(f"benchmarks.{room}").main()
