"""One palette, where the terminal has colours and nobody said otherwise; never in what another program reads."""

from __future__ import annotations

import contextlib
import io
import re
import sys

import pytest

import discreet as dp
from discreet import cli
from discreet.cli import colours, show
from discreet.cli.colours import BAD, GOOD, Painted
from tests.cli.person import Terminal

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def run(*words):
    with contextlib.suppress(SystemExit):
        cli.main(list(words))


@pytest.mark.parametrize(
    ("variables", "at_a_terminal", "in_a_pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),  # set, but empty: as if it were not
        ({"TERM": "dumb"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_the_terminal_and_two_variables_decide(variables, at_a_terminal, in_a_pipe, monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (colours.wants_colour(Terminal()), colours.wants_colour(io.StringIO())) == (at_a_terminal, in_a_pipe)


def test_verdicts_errors_and_amounts_have_theirs(monkeypatch, tmp_path):
    """And without them the text is the same, letter by letter."""
    monkeypatch.chdir(tmp_path)
    with dp.Ledger("budget.db") as ledger:
        ledger.open("census", epsilon=2.0, delta=1e-6).charge(dp.events.PureDP(epsilon=1.9))
        ledger.open("used", epsilon=1.0).charge(dp.events.PureDP(epsilon=1.0))
    lines = [
        ["epsilon", "laplace(2)", "--delta", "0"],
        ["epsilon", "laplace(-2)", "--delta", "0"],
        ["ledger", "show"],
        ["ledger", "verify"],
    ]
    seen = {}
    monkeypatch.setenv("COLUMNS", "80")
    for forced in ("1", "0"):
        monkeypatch.setenv("FORCE_COLOR", forced)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            for words in lines:
                run(*words)
        seen[forced] = out.getvalue(), err.getvalue()
    out, err = seen["1"]
    assert colours.AMOUNT.paint("epsilon = 0.5") in out
    assert colours.GOOD.paint("4 entries in 2 books verified") in out
    assert err.startswith(f"\x1b[{BAD.code}m")
    assert re.search(r"\x1b\[1;31m0 *\x1b", out)  # nothing left of one book
    assert re.search(r"\x1b\[33m0\.1 *\x1b", out)  # little of the other
    assert "\x1b" not in "".join(seen["0"])
    assert tuple(ESCAPE.sub("", text) for text in seen["1"]) == seen["0"]


def test_json_and_data_have_none_whatever_is_forced(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    show.as_json({"epsilon = 1": Painted("consistent", GOOD)})
    show.data("epsilon = 1\n")
    assert "\x1b" not in capsys.readouterr().out


def test_a_text_cannot_bring_a_colour_of_its_own(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    show.say(Painted("a\x1b[32mb", BAD), "epsilon = 1\x1b[0m")
    assert capsys.readouterr().out == "\x1b[1;31ma\\x1b[32mb\x1b[0m\n\x1b[1;36mepsilon = 1\x1b[0m\\x1b[0m\n"
    assert sys.stdout is not None
