"""``python -m experiments [name ...]``: every experiment, or the named ones."""

from __future__ import annotations

import importlib
import sys

EXPERIMENTS = ("quickstart", "ladder", "range_queries", "ptr_mode", "linear_accuracy", "coordinate_descent", "dimension")

if __name__ == "__main__":
    chosen = sys.argv[1:] or EXPERIMENTS
    if unknown := sorted(set(chosen) - set(EXPERIMENTS)):
        raise SystemExit(f"There is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}.")
    for name in chosen:
        importlib.import_module(f"experiments.{name}").main()
