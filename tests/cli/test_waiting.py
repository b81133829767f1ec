"""Whoever waits is told, in one way: at a terminal after a second, in a log when asked, beside JSON never."""

from __future__ import annotations

import sys
import threading

import pytest

from discreet.cli import waiting
from discreet.cli.waiting import waiting as wait
from tests.cli.person import AtOnce, Terminal


def at_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("DISCREET_PROGRESS", raising=False)
    return sys.stderr


def test_a_person_sees_the_stage_and_the_share_on_a_line_that_goes_away(monkeypatch):
    terminal = at_a_terminal(monkeypatch)
    monkeypatch.setattr(waiting.threading, "Timer", AtOnce)
    with wait("fitting") as told:
        told(0.25)
        told(0.5, "draw[red]ing\x1b[31m")
    seen = terminal.getvalue()
    assert "fitting" in seen
    assert "draw[red]ing\\x1b[31m" in seen  # neither markup nor an escape of its own
    assert "50%" in seen
    assert seen.endswith("\x1b[2K")  # the line is erased


def test_what_is_quick_shows_nothing(monkeypatch):
    terminal = at_a_terminal(monkeypatch)
    with wait("computing") as told:
        told(0.5)
    assert terminal.getvalue() == ""
    assert not any(isinstance(thread, threading.Timer) for thread in threading.enumerate())


def test_a_failure_takes_the_line_away_too(monkeypatch):
    terminal = at_a_terminal(monkeypatch)
    monkeypatch.setattr(waiting.threading, "Timer", AtOnce)
    with pytest.raises(KeyboardInterrupt), wait("fitting"):
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("\x1b[2K")
    assert "\x1b[?25h" in terminal.getvalue()  # the cursor is shown again


@pytest.mark.parametrize(
    ("variable", "value", "silent"), [("TERM", "dumb", False), ("DISCREET_PROGRESS", "0", False), ("X", "", True)]
)
def test_nobody_is_told_who_does_not_want_to_be(monkeypatch, variable, value, silent):
    terminal = at_a_terminal(monkeypatch)
    monkeypatch.setenv(variable, value)
    with wait("fitting", silent=silent) as told:
        assert told is None
    assert terminal.getvalue() == ""


def test_a_pipe_gets_nothing_and_plain_lines_when_asked(monkeypatch, capsys):
    with wait("fitting") as told:
        assert told is None
    monkeypatch.setenv("DISCREET_PROGRESS", "1")
    with wait("fitting") as told:
        for share in (0.0, 0.01, 0.02, 0.31, 0.32):
            told(share, "pairs")
        told(1.0)
    with wait("fitting", silent=True) as told:
        assert told is None
    assert capsys.readouterr().err.splitlines() == ["fitting", "pairs: 0 %", "pairs: 30 %", "fitting: 100 %"]
