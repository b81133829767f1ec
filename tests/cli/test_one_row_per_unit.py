"""One schema serves queries and models: where queries count four visits per patient, models read one, and say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet import cli
from discreet.ledger import Ledger

SCHEMA = """
unit = "patient"
max_rows_per_unit = 4
[columns]
patient = { unlisted = true }
age = { bounds = [0, 100] }
ill = { categories = ["no", "yes"] }
"""
NOTE = "one row per 'patient' is read here, the first: max_rows_per_unit = 4 holds for queries"
PATE = """
[data]
private = "visits.csv"
public = "visits.csv"
schema = "visits.toml"
target = "ill"
[teachers]
number = 3
jobs = 1
[aggregation]
sigma = 4.0
queries = 5
"""
COMMON = ("visits.csv", "--schema", "visits.toml", "--epsilon", "1", "--ledger", "budget.db")


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{i // 3},{i * 37 % 100},{('no', 'yes')[i % 2]}" for i in range(600)]
    Path("visits.csv").write_text("patient,age,ill\n" + "\n".join(lines) + "\n")
    Path("visits.toml").write_text(SCHEMA)
    with Ledger("budget.db") as ledger:
        ledger.open("visits", epsilon=9.0, delta=1e-4, unit="patient")


def run(*arguments, code=0):
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert stopped.value.code == code


@pytest.mark.parametrize(
    "command",
    [
        ("query", *COMMON, "--sql", "SELECT COUNT(*) AS n FROM visits"),
        ("fit", *COMMON, "--target", "ill", "--out", "model.json"),
        ("synth", *COMMON, "--out", "made.csv"),
        ("synth", *COMMON, "--explain", "--rows", "200"),
        ("pate", "votes.toml", "--ledger", "budget.db", "--out", "student.json", "--quiet"),
    ],
    ids=["query", "fit", "synth", "synth --explain", "pate"],
)
def test_one_schema_serves_queries_and_models(command, capsys):
    """Every command takes it; those that read one row per unit say so on standard output, others do not."""
    Path("votes.toml").write_text(PATE)
    run(*command)
    assert (NOTE in capsys.readouterr().out) == (command[0] != "query")


def test_it_is_said_before_the_charge(capsys):
    """So that a budget that refuses the release has told it first."""
    run("fit", *COMMON, "--epsilon", "50", "--target", "ill", "--out", "model.json", code=2)
    told = capsys.readouterr()
    assert NOTE in told.out
    assert "above the limit" in told.err
    run("fit", *COMMON, "--target", "ill", "--out", "model.json", "--json")
    told = capsys.readouterr()
    assert NOTE in told.err
    assert told.out.startswith("{")
