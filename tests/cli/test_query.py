"""discreet query: a private SELECT over a file, charged to a book."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import discreet as dp
from discreet import cli

SQL = "SELECT educ, AVG(income) AS pay, COUNT(*) FROM people GROUP BY educ"


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A file and its schema, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    rng = np.random.default_rng(0)
    frame = {"id": np.arange(4000) // 2, "educ": rng.integers(1, 3, 4000), "income": rng.uniform(0, 100, 4000)}
    pl.DataFrame(frame).write_parquet("p.parquet")
    (tmp_path / "schema.toml").write_text(
        'unit = "id"\n[columns]\neduc = { range = [1, 3] }\nincome = { bounds = [0, 100] }\n'
    )
    return ["query", "p.parquet", "--schema", "schema.toml", "--sql", SQL]


def run(arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    return stopped.value.code


def test_the_answer_is_a_table(people, capsys):
    """Every public group has a line."""
    assert run([*people, "--epsilon", "100"]) == 0
    printed = capsys.readouterr().out
    assert "educ" in printed
    assert "pay" in printed
    assert [line.split()[1] for line in printed.splitlines() if line.startswith("│")] == ["1", "2", "3"]


def test_json_has_every_digit_and_the_event(people, capsys):
    assert run([*people, "--epsilon", "2", "--json", "--memory-limit", "500MB"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [row["educ"] for row in answer["rows"]] == [1, 2, 3]
    assert sum(row["count"] for row in answer["rows"]) == pytest.approx(2000, abs=60)  # one row each of 2,000 units
    assert dp.epsilon(dp.Event.from_dict(answer["event"]), delta=0) <= 2


def test_explain_reads_and_spends_nothing(people, capsys):
    assert run([*people, "--rho", "0.5", "--explain"]) == 0
    printed = capsys.readouterr().out
    for part in ("'id'", "by educ (3 public)", "Gaussian(noise_multiplier=", "pay: ±"):
        assert part in printed


def test_the_book_is_charged_first(people, capsys):
    """With the query as its label; a refusal is one sentence and exit code 2, and nothing is printed."""
    with dp.Ledger("sqlite:///budget.db") as ledger:
        ledger.open("census", epsilon=1.5, unit="id")
    asked = [*people, "--epsilon", "1", "--ledger", "budget.db", "--book", "census"]
    assert run(asked) == 0
    with dp.Ledger("sqlite:///budget.db") as ledger:
        book = ledger.book("census")
        assert book.spent().epsilon == pytest.approx(1.0)
        assert SQL in [entry.label for entry in book.entries()]
    capsys.readouterr()
    assert run([*asked, "--again"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "above the limit 1.5 of book 'census'. Nothing was released." in printed.err


def test_a_book_that_is_not_open_is_refused(people, capsys):
    """A mistyped name or file makes neither a book nor a ledger."""
    assert run([*people, "--epsilon", "1", "--ledger", "nowhere.db", "--book", "census"]) == 2
    assert not Path("nowhere.db").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--epsilon", "1", "--book", "census"], "--ledger and --book belong together"),
        ([], "--epsilon is missing"),
        (["--epsilon", "-1"], "epsilon is -1"),
        (["--epsilon", "1", "--sql", "SELECT MAX(income) FROM p"], "high quantile"),
        (["--epsilon", "1", "--schema", "nowhere.toml"], "cannot be read"),
    ],
)
def test_bad_input_is_one_sentence(people, change, message, capsys):
    assert run([*people, *change]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_a_file_that_is_not_there_is_named(people, capsys):
    people[1] = "nowhere.parquet"
    assert run([*people, "--epsilon", "1"]) == 2
    assert "There is no file 'nowhere.parquet'" in capsys.readouterr().err


def test_progress_is_shown_to_a_person_who_waits(people, monkeypatch, capsys):
    """On standard error, if that is a terminal; the answer alone is on standard output."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert run([*people, "--epsilon", "1", "--json"]) == 0
    json.loads(capsys.readouterr().out)


def test_the_scan_reports_how_far_it_is():
    """Shares between 0 and 1 that never fall, over all passes, and the end of each."""
    from discreet.encoding.duckdb import DuckDB
    from discreet.tables.operation import _part

    asked: list[str] = []

    class Slow:
        shares = iter([-1.0, 10.0, 60.0, 50.0])

        def execute(self, setting):
            asked.append(setting)

        def query_progress(self):
            return next(self.shares, 90.0)

    class Waiting:
        types = ("BIGINT",)

        def fetchnumpy(self):
            while len(seen) < 3:
                pass
            return {"n": [1]}

    seen: list[float] = []
    assert DuckDB(Slow()).fetch(Waiting(), _part(seen.append, 1, 2)) == [[1]]
    assert seen == [0.55, 0.8, 0.95, 1.0]
    assert "SET enable_progress_bar_print = false" in asked
