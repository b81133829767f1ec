"""``python -m mutants [room ...] [--size 300] [--seed 0]``: which changes live? Never in CI: it takes an hour.

Each change is made in a copy of the project, and the room's tests that run the changed line are run, the cheapest
first. A change that lives is killed by a new test, or listed in ``mutants/equivalent.toml`` with the reason why nobody
could notice. Rooms named on the command line are a part of the same draw over all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

from mutants.changes import Change, sample
from mutants.rooms import FRESH, ROOMS, ROOT, files, tests

IGNORED = shutil.ignore_patterns(".git", ".venv*", ".hypothesis", "site", "build", "*_cache", "__pycache__")
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "mutants.inside", "-m", "not slow")


def main() -> None:
    """Draw the changes, try each, and print what lived."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description="Which changes do the tests not notice?")
    parser.add_argument("room", nargs="*", help=f"some of {', '.join(ROOMS)}; all of them by default")
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of tests a change must live through")
    parser.add_argument("--folder", type=Path, help="keep what was learnt and found here, and go on from there")
    parser.add_argument("--dry", action="store_true", help="print the changes, try none")
    given = parser.parse_args()
    drawn = sample([path for room in ROOMS for path in files(room)], given.size, given.seed)
    chosen = [change for change in drawn if change.room in (given.room or ROOMS)]
    known, counts = _equivalent(), Counter[str]()
    left = [change for change in chosen if (change.path.as_posix(), *change.shown()) not in known]
    with tempfile.TemporaryDirectory() as folder:
        outcomes = {} if given.dry else _outcomes(left, given.folder or Path(folder), given.budget)
    for change in chosen:
        by = outcomes.get(str(change), "")
        tried = "lived" if str(change) in outcomes else "not tried"
        outcome = "equivalent" if change not in left else "killed" if by else tried
        counts[outcome] += 1
        print(f"{outcome:10} {change}  {by and f'[{by}]'}")
    dead = counts["killed"] + counts["equivalent"]
    print(f"{len(chosen)} changes: {dict(counts)}; {100 * dead / max(1, len(chosen)):.1f} % killed or equivalent")


def _outcomes(changes: list[Change], folder: Path, budget: float) -> dict[str, str]:
    """For each change the test that noticed it, or nothing: one process a room, which forks for each change."""
    copy, found = folder / "project", {}
    shutil.copytree(ROOT, copy, ignore=IGNORED, dirs_exist_ok=True)  # also over what an interrupted trial left changed
    for room in dict.fromkeys(change.room for change in changes):
        results, job = folder / f"{room}.results", folder / f"{room}.job"
        done = _read(results)
        left = [change.described() for change in changes if change.room == room and str(change) not in done]
        job.write_text(json.dumps({"changes": left, "results": str(results), "map": str(folder / f"{room}.map"),
                                   "source": str(copy / "src" / "discreet" / room), "budget": budget,
                                   "fresh": room in FRESH,
                                   "command": [sys.executable, *PYTEST]}))  # fmt: skip
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(copy / "src"), str(copy), os.environ.get("PYTHONPATH", "")]),
            "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(folder / ".numba"),
            "MUTANTS_JOB": str(job),
        }  # fmt: skip
        if left and subprocess.run([sys.executable, *PYTEST, *tests(room)], cwd=copy, env=environment).returncode:
            raise SystemExit(f"The tests of {room} do not pass without any change, or could not be tried.")
        found |= _read(results)
    return found


def _read(results: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    return {row["place"]: row["by"] for row in rows}


def _equivalent() -> set[tuple[str, str, str]]:
    listed = tomllib.loads((ROOT / "mutants" / "equivalent.toml").read_text()).get("change", [])
    if silent := [row for row in listed if not row.get("why")]:
        raise SystemExit(f"mutants/equivalent.toml: {silent[0]['file']} has a row without a reason.")
    return {(row["file"], row["before"], row["after"]) for row in listed}


if __name__ == "__main__":
    main()
