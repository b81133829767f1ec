"""Rooms bring commands of their own; one that cannot be loaded says why, and takes nothing else down with it."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import typer

from discreet import cli
from discreet.errors import MissingExtra


class Broken(ModuleType):
    """A module whose import found an extra missing."""

    def __getattr__(self, name):
        raise MissingExtra('This needs an optional dependency: pip install "discreet[ledger]"')


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    return stopped.value.code


@pytest.fixture
def ledger(monkeypatch):
    """A stand-in for the ledger's commands."""
    room = ModuleType("discreet.cli.ledger")
    room.app = typer.Typer(no_args_is_help=True)

    @room.app.command()
    def show(name: str) -> None:
        """Print a name."""
        print(f"book {name}")

    @room.app.command()
    def lose() -> None:
        """Fail."""
        raise ValueError("nothing there")

    monkeypatch.setitem(sys.modules, "discreet.cli.ledger", room)


def test_a_group_of_commands_is_added_under_its_name(ledger, capsys):
    """discreet ledger show census."""
    assert run("ledger", "show", "census") == 0
    assert capsys.readouterr().out == "book census\n"
    assert run("ledger", "lose") == 2
    assert capsys.readouterr().err == "nothing there\n"


def test_a_group_without_a_command_shows_its_help(ledger, capsys):
    """On standard error, with exit code 2."""
    assert run("ledger") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "show" in printed.err


def test_a_single_command_is_added_under_its_name(monkeypatch, capsys):
    """discreet report census."""
    room = ModuleType("discreet.cli.report")

    def report(name: str) -> None:
        """Print a name."""
        print(f"report of {name}")

    room.report = report
    monkeypatch.setitem(sys.modules, "discreet.cli.report", room)
    assert run("report", "census") == 0
    assert capsys.readouterr().out == "report of census\n"


def test_a_room_whose_extra_is_missing_says_how_to_install_it(monkeypatch, capsys):
    """The other commands work; this one answers with the line that installs it, whatever it was asked."""
    monkeypatch.setitem(sys.modules, "discreet.cli.ledger", Broken("discreet.cli.ledger"))
    assert run("epsilon", "gaussian(4)", "--delta", "1e-5") == 0
    capsys.readouterr()
    assert run("ledger", "open", "census", "--epsilon", "3") == 2
    assert capsys.readouterr().err.strip().endswith('pip install "discreet[ledger]"')
