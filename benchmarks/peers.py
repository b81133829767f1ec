"""Other libraries, each in an environment of its own, so that a peer never becomes a dependency.

An environment lives under ``.venv-peers/<name>`` and is made on first use. A script of ours runs inside it as a
fresh process: it reads one JSON question on standard input and prints one JSON answer. To use an environment that
exists already, name its Python in the variable ``DISCREET_PEERS_<NAME>``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"

# torch is pinned because a plain range would pull CUDA.
REQUIREMENTS = {
    "accounting": ("dp-accounting==0.6.0", "prv-accountant==0.2.0", "opacus==1.6.0", "torch==2.13.0", "mpmath==1.3.0"),
    "allocation": ("jax-privacy==2.0.0", "numpy>=2.0"),
    "dpmm": ("dpmm==0.1.9",),
    "linear": ("diffprivlib==0.6.6", "scikit-learn==1.7.2"),
    "models": ("diffprivlib==0.6.6", "scikit-learn==1.7.2", "interpret-core==0.7.8", "statsmodels==0.14.5"),
    "noise": ("opendp==0.16.0", "numpy>=2.0", "torch==2.13.0"),
    "sdmetrics": ("sdmetrics==0.32.0",),
    "smartnoise": ("smartnoise-synth==1.0.8", "torch==2.13.0"),
    "training": ("opacus==1.6.0", "torch==2.13.0"),
}


@dataclass(frozen=True)
class Failure:
    """A peer that gave no answer, and why: a time limit, or the last line of its error."""

    reason: str


def python(name: str) -> str:
    """The interpreter of a peer's environment, which is created if it is not there."""
    if named := os.environ.get(f"DISCREET_PEERS_{name.upper()}"):
        return named
    home = ROOT / ".venv-peers" / name
    stamp, wanted = home / "installed", "\n".join(REQUIREMENTS[name])
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"Setting up the peers of {name!r} in {home.relative_to(ROOT)} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        pip = [home / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *REQUIREMENTS[name]], check=True)
        stamp.write_text(wanted)
    return str(home / "bin/python")


def ask(interpreter: str, script: Path, question: Any, *, limit: float = 600) -> Any:
    """The answer of ``script`` to one question, in a fresh process; a ``Failure`` if there is none within ``limit``."""
    try:
        done = subprocess.run(
            _command(interpreter, script),
            input=json.dumps(question),
            capture_output=True,
            text=True,
            timeout=limit,
            env=environment(),
            cwd=ROOT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Failure(f"no answer in {limit:g} s")
    if done.returncode:
        return Failure((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def stream(interpreter: str, script: Path, questions: Iterable[Any]) -> Iterator[Any]:
    """Many answers from one process, a line each, as they come:
    for work where start-up would cost more than the answer.
    """
    with subprocess.Popen(
        [*_command(interpreter, script), "--stream"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=ROOT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for question in questions:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            yield json.loads(process.stdout.readline())
        process.stdin.close()


def _command(interpreter: str, script: Path) -> list[str]:
    # As a module: the folder of a script would come first on the path, and our statistics.py is not Python's.
    return [interpreter, "-m", f"benchmarks.{script.stem}"]


def environment() -> dict[str, str]:
    """Ours, with the source on the path (events need only the standard library) and one thread per process."""
    return os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
