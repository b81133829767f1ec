"""``python -m mutants [room ...] [--size 300] [--seed 0]``: which changes live? Never in CI: it takes an hour or two.

Each change is made in a copy of the project, and the room's tests run, the cheapest first. A change that lives is killed by
a new test, or listed in ``mutants/equivalent.toml`` with the reason why nobody could notice.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from mutants.changes import Change, sample
from mutants.rooms import ROOMS, ROOT, files, tests

IGNORED = shutil.ignore_patterns(".git", ".venv*", ".hypothesis", "site", "build", "*_cache", "docs")
PYTEST = ("-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", "-p", "mutants.cheapest_first", "-m", "not slow")


def main() -> None:
    """Draw the changes, try each, and print what lived."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description="Which changed lines do the tests not notice?")
    parser.add_argument("room", nargs="*", help=f"some of {', '.join(ROOMS)}; all of them by default")
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dry", action="store_true", help="print the changes, try none")
    given = parser.parse_args()
    rooms = given.room or ROOMS
    known = {(row["file"], row["before"], row["after"]) for row in _equivalent()}
    changes = sample([path for room in rooms for path in files(room)], given.size, given.seed)
    counts = {"killed": 0, "equivalent": 0, "lived": 0}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(ROOT, copy, ignore=IGNORED)
        if not given.dry and (failing := [room for room in rooms if not _passes(copy, room)]):
            raise SystemExit(f"The tests of {', '.join(failing)} fail without any change.")
        for change in changes:
            before, after = change.shown()
            began = time.monotonic()
            if (change.path.as_posix(), before, after) in known:
                outcome = "equivalent"
            elif given.dry:
                outcome = "lived"
            else:
                outcome = "lived" if _lives(copy, change) else "killed"
            counts[outcome] += 1
            took = time.monotonic() - began
            print(f"{outcome:10} {took:5.0f} s  {change.path}:{change.line}  {before}  =>  {after}", flush=True)
    dead = counts["killed"] + counts["equivalent"]
    print(f"{len(changes)} changes: " + ", ".join(f"{n} {name}" for name, n in counts.items())
          + f"; {100 * dead / max(1, len(changes)):.1f} % killed or equivalent")


def _equivalent() -> list[dict[str, str]]:
    listed = tomllib.loads((ROOT / "mutants" / "equivalent.toml").read_text()).get("change", [])
    if silent := [row for row in listed if not row.get("why")]:
        raise SystemExit(f"mutants/equivalent.toml: {silent[0]['file']} has a row without a reason.")
    return list(listed)


def _passes(copy: Path, room: str) -> bool:
    """Whether the room's tests pass, the cheapest first: most changes die within seconds."""
    environment = os.environ | {
        "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
        "NUMBA_CACHE_DIR": str(copy / ".numba"), "MUTANTS_TIMES": str(copy / f".times-{room}"),
    }  # fmt: skip
    command = [sys.executable, *PYTEST, *tests(room)]
    try:
        return not subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=1200, check=False).returncode
    except subprocess.TimeoutExpired:  # an endless loop is noticed
        return False


def _lives(copy: Path, change: Change) -> bool:
    target = copy / change.path
    original = target.read_text()
    target.write_text(change.code())
    try:
        return _passes(copy, change.path.parts[2])
    finally:
        target.write_text(original)


if __name__ == "__main__":
    main()
