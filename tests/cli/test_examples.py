"""Help that works: every command has an example, every example runs, nothing is wider than eighty columns, and a shell
completes what is typed.

All examples are run in one folder, one after the other, as a person at a terminal would: so each command is seen to say
what it is doing while one waits, and to say nothing of it beside JSON.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer

from discreet import cli
from discreet.cli import waiting
from discreet.cli.help import EXAMPLES
from tests.cli.person import AtOnce, Terminal, leaves

FILES = {
    "people.toml": """
[columns]
age = { bounds = [0, 100] }
sex = { categories = ["f", "m"] }
income = { categories = ["low", "high"] }
""",
    "new.csv": "age,sex\n25,f\n90,m\n",
    "network.toml": """
[data]
path = "people.csv"
schema = "people.toml"
target = "income"
[training]
batch_size = 100
[privacy]
epsilon = 2.0
delta = 1e-7
epochs = 2
""",
    "mean.toml": '[statistic]\nname = "mean"\nbounds = [0, 10]\nepsilon = 1.0\n',
    "votes.toml": """
[data]
private = "people.csv"
public = "new.csv"
schema = "people.toml"
target = "income"
[teachers]
number = 4
[aggregation]
sigma = 3.0
""",
}
FIRST = {"init", "ledger open"}
HEAVY = {"train", "plan"}
AT_ONCE = {"check", "data list"}  # nobody waits for them; the first is for a terminal, and has tests of its own
DESK = "desk "  # a session of its own, with a server: tests/desk/test_processes.py


@pytest.fixture(scope="module")
def commands():
    return dict(leaves(typer.main.get_command(cli.app())))


def words(text):
    """The commands of an epilog, with continued lines joined."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.strip().startswith("discreet ")]


def run(*given):
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(given))
    return stopped.value.code


def test_every_help_fits_eighty_columns_and_ends_with_an_example_of_its_own_command(commands, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    for name, command in commands.items():
        assert run(*name.split(), "--help") == 0
        told = capsys.readouterr().out
        assert max(map(len, told.splitlines())) <= 80, name
        assert "..." not in told.replace("any_name ...", "").replace("[WHERE ...]", "").split("Options:")[0], name
        [line] = words(command.epilog)
        assert line[: len(name.split())] == name.split()
        assert f"discreet {name}" in told.rpartition("Example:")[2]
    for group in ([], ["ledger"]):
        assert run(*group, "--help") == 0
        told = capsys.readouterr().out
        assert max(map(len, told.splitlines())) <= 80
        assert "[[" not in told


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    for variable in ("DISCREET_LEDGER", "DISCREET_PROGRESS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    rng = np.random.default_rng(0)
    rows = [f"{age},{'fm'[age % 2]},{('low', 'high')[age // 50]}" for age in rng.integers(0, 100, 400)]
    Path("people.csv").write_text("\n".join(["age,sex,income", *rows]) + "\n")
    return tmp_path


def test_every_example_runs_and_says_what_it_does_while_one_waits(commands, folder, monkeypatch, capsys):
    """The whole of the help, as a session: books first, then releases, then what looks at them."""
    monkeypatch.setattr(waiting.threading, "Timer", AtOnce)
    first = [*words(EXAMPLES)[:2], ["ledger", "raise", "census", "--epsilon", "100", "--delta", "1e-4", "--why", "all"]]
    for line in first:
        assert run(*line) == 0, line
    for name, text in FILES.items():
        Path(name).write_text(text)
    alone = HEAVY | FIRST | AT_ONCE | {name for name in commands if name.startswith(DESK)}
    done = {name: words(command.epilog)[0] for name, command in commands.items() if name not in alone}
    order = sorted(done, key=lambda name: (name in ("ledger raise", "report"), name == "predict"))
    for line in [*(done[name] for name in order), words(EXAMPLES)[3], words(EXAMPLES)[4]]:
        monkeypatch.setattr(sys, "stderr", Terminal())
        again = ["--force"] if line == words(EXAMPLES)[3] else []
        assert run(*line, *again) == 0, (line, sys.stderr.getvalue())
        assert "0:00:0" in sys.stderr.getvalue(), line  # for how long, beside what is being done
    assert Path("census.html").stat().st_size > 10_000
    capsys.readouterr()
    for name in ("epsilon", "ledger show", "ledger history", "predict"):
        monkeypatch.setattr(sys, "stderr", Terminal())
        line = [word for word in done[name] if word not in ("--out", "predictions.csv")]
        assert run(*line, "--json") == 0
        assert (sys.stderr.getvalue(), capsys.readouterr().out[:1] in "{[") == ("", True), name


@pytest.mark.slow(sibling="test_every_example_runs_and_says_what_it_does_while_one_waits")
@pytest.mark.parametrize("name", sorted(HEAVY))
def test_examples_of_commands_that_take_a_while_run_too(name, commands, folder, monkeypatch):
    monkeypatch.setattr(waiting.threading, "Timer", AtOnce)
    for file, text in FILES.items():
        Path(file).write_text(text)
    assert run("ledger", "open", "census", "--epsilon", "3", "--delta", "1e-6") == 0
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run(*words(commands[name].epilog)[0]) == 0, sys.stderr.getvalue()
    assert {"train": "step 8/8", "plan": "batches of 15000: "}[name] in sys.stderr.getvalue()


def test_bash_completes_commands_and_options(tmp_path):
    """The script that --install-completion installs, in a real shell."""
    shim = tmp_path / "discreet"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from discreet.cli import main; main()" "$@"\n')
    shim.chmod(0o755)
    script = """
source <(_DISCREET_COMPLETE=source_bash discreet)
COMP_WORDS=(discreet ledger sh); COMP_CWORD=2; _discreet_completion discreet; echo "${COMPREPLY[@]}"
COMP_WORDS=(discreet fit --no); COMP_CWORD=2; _discreet_completion discreet; echo "${COMPREPLY[@]}"
"""
    place = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=place, check=True)
    assert done.stdout.splitlines() == ["show", "--no-book"], done.stderr


@pytest.mark.parametrize(("shell", "word"), [("zsh", "ledger"), ("fish", "ledger")])
def test_other_shells_are_answered_too(shell, word, monkeypatch, capsys):
    monkeypatch.setenv("_DISCREET_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "discreet led")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    assert run() == 0
    assert word in capsys.readouterr().out
    monkeypatch.setenv("_DISCREET_COMPLETE", f"source_{shell}")
    assert run() == 0
    assert "discreet" in capsys.readouterr().out
