"""Rooms bring commands of their own; one that cannot be loaded says why, and takes nothing else down with it."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest
import typer

from discreet import cli
from discreet.errors import MissingExtra

HEAVY = {
    "torch",
    "numpy",
    "scipy",
    "numba",
    "sqlalchemy",
    "polars",
    "duckdb",
    "sklearn",
    "matplotlib",
    "pandas",
    "pyarrow",
    "jinja2",
}

# one process for all of them: what none of them loaded, each of them did not
EVERY_HELP = f"""
import sys, typer
from discreet import cli
def leaves(command, path):
    yield path
    for name, child in getattr(command, "commands", {{}}).items():
        yield from leaves(child, [*path, name])
for path in leaves(typer.main.get_command(cli.app()), []):
    try:
        cli.main([*path, "--help"])
    except SystemExit as stopped:
        assert stopped.code == 0, path
    assert not {HEAVY!r} & set(sys.modules), (path, {HEAVY!r} & set(sys.modules))
print("asked", len(list(leaves(typer.main.get_command(cli.app()), []))))
"""


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

    room.register = lambda commands: commands.add_typer(room.app, name="ledger")
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

    room.register = lambda commands: commands.command()(report)
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


def test_a_module_put_into_the_folder_brings_its_command(monkeypatch, tmp_path, capsys):
    """No list names it; a heading that no other command has follows the known ones;
    a module without register is a helper.
    """
    (tmp_path / "toy.py").write_text(
        "def toy() -> None:\n    \"Say hello.\"\n    print('hello')\n\n"
        "def register(app):\n    app.command(rich_help_panel='Play')(toy)\n"
    )
    (tmp_path / "helper.py").write_text("def helper() -> None: ...\n")
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "discreet.cli.toy", raising=False)
    assert run("toy") == 0
    assert capsys.readouterr().out == "hello\n"
    assert run("--help") == 0
    told = capsys.readouterr().out
    assert told.index("Price an event:") < told.index("Play:") < told.index("Say hello.")
    assert "helper" not in told
    sys.modules.pop("discreet.cli.toy"), sys.modules.pop("discreet.cli.helper")


def test_no_help_text_loads_anything_heavy():
    """discreet --help and discreet COMMAND --help: typer and the standard library, whatever is installed."""
    done = subprocess.run([sys.executable, "-c", EVERY_HELP], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split("asked ")[-1]) > 12
