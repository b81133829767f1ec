"""``python -m experiments [name ...]``: every experiment, or the named ones; those that only choose settings run if
named.

Each module here is an experiment, with ``main()``; one whose name starts with an underscore helps the others.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

CHOICES = ["adult_recipe", "linear_defaults", "synthesis_settings"]
EXPERIMENTS = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py") if path.stem not in CHOICES)

if __name__ == "__main__":
    chosen = sys.argv[1:] or EXPERIMENTS
    if unknown := sorted(set(chosen) - {*EXPERIMENTS, *CHOICES}):
        raise SystemExit(f"There is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS + CHOICES)}.")
    for name in chosen:
        importlib.import_module(f"experiments.{name}").main()
