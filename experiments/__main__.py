"""``python -m experiments [name ...] [--quick] [--write]``: every experiment, or the named ones; those that only choose
settings run if named.

Each module here is an experiment, with ``main(quick)``; one whose name starts with an underscore helps the others.
Quickly, it shows that it works, on less of everything. Only with ``--write`` the documentation is changed.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from experiments import _results

CHOICES = ["adult_recipe", "linear_defaults", "synthesis_settings"]
EXPERIMENTS = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py") if path.stem not in CHOICES)


def main(words: list[str]) -> None:
    listed = f"{__doc__}\nExperiments: {', '.join(EXPERIMENTS)}.\nThose that choose settings: {', '.join(CHOICES)}.\n"
    quick = _results.begin(listed, words)
    names = [word for word in words if not word.startswith("--")]
    if unknown := sorted(set(names) - {*EXPERIMENTS, *CHOICES}):
        raise SystemExit(f"There is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS + CHOICES)}.")
    for name in names or EXPERIMENTS:
        importlib.import_module(f"experiments.{name}").main(quick=quick)


if __name__ == "__main__":
    main(sys.argv[1:])
