"""The scripts of the guide run under torchrun as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "distributed.md"
SCRIPTS = re.findall(r"^```\{ \.python \.torchrun \}\n# (\w+)\.py[^\n]*\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)


# as a process ends, torch may abort it now and then (https://github.com/pytorch/pytorch/pull/179291)
AT_ONCE = "\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n"


def launched(folder, name):
    """What a script prints on two processes, to its end."""
    place = folder / f"{name}.py"
    place.write_text(dict(SCRIPTS)[name] + AT_ONCE)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(place)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_guides_script_runs_under_torchrun(tmp_path):
    assert re.search(r"epsilon (2\.9\d|3\.00) after 40 steps", launched(tmp_path, "train"))


@pytest.mark.slow(sibling="test_the_guides_script_runs_under_torchrun")
def test_accelerate_runs_under_torchrun(tmp_path):
    pytest.importorskip("accelerate")
    assert re.search(r"epsilon (2\.9\d|3\.00) after 10 steps", launched(tmp_path, "with_accelerate"))


@pytest.mark.slow(sibling="test_the_guides_script_runs_under_torchrun")
def test_the_trainer_runs_under_torchrun(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    monkeypatch.chdir(tmp_path)
    assert re.search(r"epsilon (2\.9\d|3\.00) after 10 steps", launched(tmp_path, "with_trainer"))
