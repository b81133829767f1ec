"""``python -m experiments [name ...]``: every experiment, or the named ones; those that only choose settings run if named."""

from __future__ import annotations

import importlib
import sys

EXPERIMENTS = ("quickstart", "range_queries", "ptr_mode", "linear_accuracy", "coordinate_descent", "dimension",
               "coverage", "ladder")
CHOICES = ("adult_recipe", "linear_defaults")

if __name__ == "__main__":
    chosen = sys.argv[1:] or EXPERIMENTS
    if unknown := sorted(set(chosen) - {*EXPERIMENTS, *CHOICES}):
        raise SystemExit(f"There is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS + CHOICES)}.")
    for name in chosen:
        importlib.import_module(f"experiments.{name}").main()
