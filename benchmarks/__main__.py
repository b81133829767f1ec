"""``python -m benchmarks [room ...]``: every room's benchmark, or the named ones; each module here with ``main()`` is
one.

Modules named ours_, peers_ or make_ run in a process of their own, which a benchmark or a person starts.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

ROOMS = sorted(
    path.stem
    for path in Path(__file__).parent.glob("[!_]*.py")
    if not path.stem.startswith(("ours_", "peers", "make_")) and "\ndef main(" in path.read_text()
)

if __name__ == "__main__":
    chosen = sys.argv[1:] or ROOMS
    if unknown := sorted(set(chosen) - set(ROOMS)):
        raise SystemExit(f"There is no benchmark {unknown[0]!r}; there are {', '.join(ROOMS)}.")
    for room in chosen:
        importlib.import_module(f"benchmarks.{room}").main()
