"""``python -m mutants [room ...] [--size 300] [--seed 0]``: which changes live? Never in CI: it takes an hour or two.

Each change is made in a copy of the project, and those of the room's tests run that execute the changed line (all of them where
no tracer can see: compiled kernels and what runs at import). A change that lives is killed by a new test, or listed in
``mutants/equivalent.toml`` with the reason why nobody could notice.
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

import coverage

from mutants.changes import Change, sample
from mutants.rooms import ROOMS, ROOT, files, tests

IGNORED = shutil.ignore_patterns(".git", ".venv*", ".hypothesis", "site", "build", "*_cache", "docs", "benchmarks")
PYTEST = ("-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", "-m", "not slow")


def main() -> None:
    """Draw the changes, try each, and print what lived."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description="Which changed lines do the tests not notice?")
    parser.add_argument("room", nargs="*", help=f"some of {', '.join(ROOMS)}; all of them by default")
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dry", action="store_true", help="print the changes, try none")
    given = parser.parse_args()
    rooms = given.room or list(ROOMS)
    known = {(row["file"], row["before"], row["after"]) for row in _equivalent()}
    changes = sample([path for room in rooms for path in files(room)], given.size, given.seed)
    counts = {"killed": 0, "equivalent": 0, "lived": 0}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(ROOT, copy, ignore=IGNORED)
        lines = {} if given.dry else {room: _covering(copy, room) for room in rooms}
        for change in changes:
            room = change.path.parts[2]
            before, after = change.shown()
            began = time.monotonic()
            if (change.path.as_posix(), before, after) in known:
                outcome = "equivalent"
            elif given.dry:
                outcome = "lived"
            else:
                outcome = "lived" if _lives(copy, change, lines[room], tests(room)) else "killed"
            counts[outcome] += 1
            print(f"{outcome:10} {time.monotonic() - began:5.0f} s  {change.path}:{change.line}  {before}  =>  {after}", flush=True)
    dead = counts["killed"] + counts["equivalent"]
    print(f"{len(changes)} changes: " + ", ".join(f"{n} {name}" for name, n in counts.items())
          + f"; {100 * dead / max(1, len(changes)):.1f} % killed or equivalent")


def _equivalent() -> list[dict[str, str]]:
    listed = tomllib.loads((ROOT / "mutants" / "equivalent.toml").read_text()).get("change", [])
    if silent := [row for row in listed if not row.get("why")]:
        raise SystemExit(f"mutants/equivalent.toml: {silent[0]['file']} has a row without a reason.")
    return list(listed)


def _environment(copy: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}", "PYTHONDONTWRITEBYTECODE": "1",
                         "NUMBA_CACHE_DIR": str(copy / ".numba"), "OMP_NUM_THREADS": "1", "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / ".h")}


def _covering(copy: Path, room: str) -> dict[tuple[str, int], set[str]]:
    """Which tests execute each line of a room."""
    settings = copy / f".coveragerc-{room}"
    data = copy / f".coverage-{room}"
    settings.write_text(f"[run]\ndata_file={data}\nsource={copy / 'src' / 'discreet' / room}\n")
    command = [sys.executable, *PYTEST, f"--cov={copy / 'src' / 'discreet' / room}", f"--cov-config={settings}",
               "--cov-context=test", "--cov-report=", *tests(room)]
    done = subprocess.run(command, cwd=copy, env=_environment(copy), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"The tests of {room} fail without any change:\n{done.stdout[-3000:]}")
    measured = coverage.CoverageData(str(data))
    measured.read()
    found: dict[tuple[str, int], set[str]] = {}
    for file in measured.measured_files():
        for line, contexts in measured.contexts_by_lineno(file).items():
            name = Path(file).relative_to(copy).as_posix()
            found[name, line] = {context.split("|")[0] for context in contexts if context}
    print(f"{room}: {len({test for group in found.values() for test in group})} tests seen", flush=True)
    return found


def _lives(copy: Path, change: Change, lines: dict[tuple[str, int], set[str]], everything: list[str]) -> bool:
    target = copy / change.path
    original = target.read_text()
    chosen = sorted(lines.get((change.path.as_posix(), change.line), ())) or everything
    if len(chosen) > 400:  # longer than a command line should be
        chosen = everything
    target.write_text(change.code())
    try:
        done = subprocess.run([sys.executable, *PYTEST, *chosen], cwd=copy, env=_environment(copy), capture_output=True,
                              timeout=900, check=False)
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        target.write_text(original)


if __name__ == "__main__":
    main()
