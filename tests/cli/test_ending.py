"""How a command ends: quietly, and when it is stopped, by saying that it was stopped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import narwhals
import pytest

from discreet import cli
from discreet.encoding import caches, engines


def test_what_leads_to_an_engines_objects_is_forgotten_before_the_end():
    """The small sibling of the next: narwhals' caches are empty after what runs at exit."""
    narwhals.from_native(duckdb.sql("SELECT 1 AS x"))
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("narwhals")]
    kept = [value for module in modules for value in vars(module).values() if hasattr(value, "cache_info")]
    assert sum(value.cache_info().currsize for value in kept) > 0
    caches._empty()
    assert sum(value.cache_info().currsize for value in kept) == 0


@pytest.mark.slow(sibling="test_what_leads_to_an_engines_objects_is_forgotten_before_the_end")
def test_a_query_prints_its_answer_and_nothing_else(tmp_path):
    """DuckDB prints a page about each of its objects that outlives Python; none does."""
    (tmp_path / "d.csv").write_text("x\n1\n2\n")
    (tmp_path / "s.toml").write_text("[columns]\nx = { bounds = [0, 9] }\n")
    words = ["query", "d.csv", "--schema", "s.toml", "--sql", "SELECT COUNT(*) FROM d", "--epsilon", "1", "--no-book"]
    script = f"import pyarrow\nfrom discreet.cli import main\nmain({words!r})"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(map(str, map(Path.absolute, map(Path, sys.path)))), "PATH": "/bin"},
    )
    assert done.stderr == ""
    assert "count" in done.stdout


def test_a_stopped_scan_is_stopped_and_not_short_of_memory():
    """DuckDB makes a RuntimeError of Ctrl-C; other errors stay failures of the engine."""

    def raising(error):
        def act():
            raise error

        return act

    with pytest.raises(KeyboardInterrupt):
        engines.quietly(raising(RuntimeError("Query interrupted")))
    with pytest.raises(engines.EngineFailed, match="RuntimeError"):
        engines.quietly(raising(RuntimeError("out of something")))


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "Stopped. What was charged before stays charged."),
        (OverflowError("1e999"), 2, "too large or small"),
        (MemoryError(), 2, "too large or small"),
        (TypeError("age 47"), 2, "Something unexpected failed (TypeError)."),
        (ValueError("a\x1b[2Jb"), 2, "a\\x1b[2Jb"),
    ],
)
def test_a_failure_is_one_sentence_whatever_it_is(error, code, message, monkeypatch, capsys):
    """No traceback, no message that may quote a record, nothing that acts on the terminal."""

    def fail(words):
        raise error

    monkeypatch.setattr(cli, "_run", fail)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["query"])
    assert stopped.value.code == code
    printed = capsys.readouterr().err
    assert message in printed
    assert "47" not in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    "event",
    [
        "laplace(2)*1e300",
        "gaussian(1e308)",
        "laplace(1e-320)",
        "'a'*4000000000",
        "[1]*4000000000",
        "gaussian(4)*1e308*1e308*1e308",
        "pure(1e-300)*1e308",
    ],
)
def test_extreme_events_are_answered_or_refused_in_a_sentence(event, capsys):
    """Never a traceback, and nothing takes gigabytes."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(["epsilon", event, "--delta", "1e-5"])
    printed = capsys.readouterr()
    assert stopped.value.code in (0, 2)
    assert (printed.out if stopped.value.code == 0 else printed.err).strip()
    assert "unexpected" not in printed.err
