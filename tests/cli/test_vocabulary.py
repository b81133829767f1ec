"""One vocabulary: an option has one form, and an argument one name, in whatever command it stands."""

from __future__ import annotations

import ast
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from discreet import cli
from tests.cli.person import leaves

ARGUMENTS = {"EVENT", "DATA", "RUN", "BOOK", "MODEL", "DATASET", "PERSON", "NUMBER"}


@pytest.fixture(scope="module")
def commands():
    return dict(leaves(typer.main.get_command(cli.app())))


def test_an_option_has_the_same_short_form_metavar_and_variable_in_every_command(commands):
    forms = defaultdict(set)
    for command in commands.values():
        for option in (given for given in command.params if given.param_type_name == "option"):
            forms[option.opts[0]].add((tuple(option.opts), option.metavar, option.envvar))
    assert {name: seen for name, seen in forms.items() if len(seen) > 1} == {}
    assert forms["--out"] == {(("--out", "-o"), "FILE", None)}
    assert len(forms) > 30


@pytest.mark.parametrize("option", ["--epsilon", "--delta", "--out", "--json", "--ledger", "--book", "--no-book"])
def test_an_option_that_commands_share_is_declared_once(option):
    declared = [
        path.name
        for path in sorted(Path(cli.__file__).parent.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "typer.Option"
        if option in [given.value for given in node.args if isinstance(given, ast.Constant)]
    ]
    assert declared == ["options.py"]


def test_arguments_have_names_that_are_known(commands):
    named = {
        given.metavar.strip("[]") if given.metavar else given.name
        for command in commands.values()
        for given in command.params
        if given.param_type_name == "argument"
    }
    assert named <= ARGUMENTS


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"discreet {version('discreet')}\n"
