"""Files that commands write: put in place when complete, never over another without --force, never over a ledger."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import discreet as dp
from discreet import cli
from discreet.cli.outputs import claim_path


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_LEDGER", raising=False)
    with dp.Ledger("budget.db") as ledger:
        ledger.open("census", epsilon=1.0).charge(dp.events.PureDP(epsilon=0.1), label="\r=1+1")


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    return stopped.value.code


WRITERS = {
    "report": ("report", "census", "--out"),
    "export": ("ledger", "export", "--out"),
    "plot": ("ledger", "plot", "census", "--out"),
    "tradeoff": ("tradeoff", "gaussian(1)", "--out"),
}


@pytest.mark.parametrize(
    "writer",
    [
        pytest.param(words, id=name, marks=[pytest.mark.slow] * (name in ("report", "tradeoff")))
        for name, words in WRITERS.items()
    ],
)
def test_a_file_is_overwritten_only_by_force_and_a_ledger_never(writer, capsys):
    """Each command that writes."""
    there = "there.html" if writer[0] == "report" else "there.png"  # a report's ending says what it is
    Path(there).write_text("kept")
    assert run(*writer, there) == 2
    assert "--force" in capsys.readouterr().err
    assert Path(there).read_text() == "kept"
    ledger = Path("budget.db").read_bytes()
    assert run(*writer, "budget.db", "--force") == 2
    assert "never overwritten" in capsys.readouterr().err
    assert Path("budget.db").read_bytes() == ledger
    assert run(*writer, there, "--force") == 0
    assert Path(there).read_bytes() != b"kept"
    assert sorted(file.name for file in Path().iterdir() if file.name.startswith(".")) == []


def test_what_fails_leaves_the_old_file_and_no_part_of_the_new_one():
    """The new file takes its place at the end, or not at all."""
    Path("out").write_text("old")

    def fail():
        with claim_path("out", force=True) as part:
            part.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert Path("out").read_text() == "old"
    assert len(list(Path().iterdir())) == len(
        {"out", "budget.db", "budget.db-journal"} & {f.name for f in Path().iterdir()}
    )


@pytest.mark.parametrize("name", ["missing/out", ".", "budget.db", "budget.db-wal", "n" * 300, "link", "pipe"])
def test_what_cannot_be_written_is_refused_at_once(name):
    """Before the block begins: a link to the ledger is the ledger."""
    os.symlink("budget.db", "link")
    os.mkfifo("pipe") if name != "pipe" else Path("pipe").mkdir()
    with pytest.raises(ValueError, match="cannot be written"), claim_path(name, force=True):
        raise AssertionError("the block began")


def test_what_is_read_is_not_overwritten():
    """Even by force, even by another name for it."""
    Path("data.csv").write_text("x")
    os.link("data.csv", "same")
    with pytest.raises(ValueError, match="the command reads it"), claim_path("same", force=True, inputs=["data.csv"]):
        raise AssertionError("the block began")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_a_cell_that_a_spreadsheet_would_run_gets_a_quote(start, capsys):
    """In CSV of the ledger's history."""
    with dp.Ledger("budget.db") as ledger:
        ledger.book("census").charge(dp.events.PureDP(epsilon=0.1), label=f"{start}1+1")
    assert run("ledger", "export", "--format", "csv") == 0
    assert f"'{start}1+1" in capsys.readouterr().out


def test_a_file_that_is_there_is_refused_with_the_command_that_overwrites_it(capsys):
    Path("census.html").write_text("mine")
    assert run("report", "census", "--dataset", "visits of 2025") == 2
    command = "discreet report census --dataset 'visits of 2025' --force"
    assert capsys.readouterr().err.strip().endswith(f"Choose another name, or overwrite it: {command}")
    assert Path("census.html").read_text() == "mine"
