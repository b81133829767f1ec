"""The ledger and report commands: thin, complete, documented."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

import discreet as dp
from discreet import events
from discreet.cli.ledger import app
from discreet.cli.report import report
from discreet.errors import BudgetExceeded
from discreet.ledger import ChainBroken, Ledger, LedgerError


@pytest.fixture
def url(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path / 'budget.db'}"
    with Ledger(address, who="alice") as ledger:
        book = ledger.open("census", epsilon=3.0, delta=1e-6)
        book.charge(events.Laplace(noise_multiplier=4.0), label="=income mean")
        book.sub("bob", epsilon=1.0).charge(events.PureDP(epsilon=0.5), label="[red]ages[/red]")
    return address


def run(*arguments: str, on: typer.Typer = app) -> Result:
    result = CliRunner().invoke(on, list(arguments), env={"COLUMNS": "200"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def reporter() -> typer.Typer:
    alone = typer.Typer(add_completion=False)
    alone.command()(report)
    return alone


def test_open_makes_a_book_and_its_sub_book(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'new.db'}"
    opened = run("open", "survey", "--epsilon", "2", "--delta", "1e-6", "--unit", "one person", "--ledger", address)
    assert "survey: epsilon=2, delta=1e-06" in opened.output
    assert "epsilon=0.5" in run("open", "survey/eve", "--epsilon", "0.5", "-l", address).output
    with Ledger(address, create=False) as ledger:
        assert ledger.book("survey/eve").terms.unit == "one person"
        assert ledger.head() in run("open", "survey/eve", "--epsilon", "0.5", "-l", address).output
    with pytest.raises(LedgerError, match="Limits are fixed"):
        run("open", "survey", "--epsilon", "9", "-l", address)


def test_show_lists_books_and_the_head(url: str) -> None:
    shown = run("show", "-l", url).output
    assert "census/bob" in shown
    assert "plain addition" in run("show", "census", "-l", url).output
    with Ledger(url, create=False) as ledger:
        assert ledger.head() in shown
    data = json.loads(run("show", "census", "--json", "-l", url).output)
    assert [row["book"] for row in data["books"]] == ["census", "census/bob"]
    assert data["books"][0]["epsilon"] == 0.75


def test_show_says_how_many_more_such_releases_there_is_room_for(url: str) -> None:
    """Of the last release of each book, if nothing else is released."""
    shown = " ".join(run("show", "--ledger", url).output.split())
    assert "census: room for about" in shown
    assert "more releases like the last one (=income mean)" in shown
    assert "census/bob: room for about 1 more release like the last one" in shown


def test_history_prints_labels_as_they_are(url: str) -> None:
    shown = run("history", "census", "-l", url).output
    assert "[red]ages[/red]" in shown
    assert "Laplace(noise_multiplier=4)" in shown
    data = json.loads(run("history", "census", "-n", "1", "--json", "-l", url).output)
    assert [entry["book"] for entry in data["entries"]] == ["census/bob"]
    assert data["chain"] == {"verified": True, "entries": 4, "head": data["head"], "problem": None}


def test_verify_against_a_head_in_a_file(url: str, tmp_path: Path) -> None:
    with Ledger(url, create=False) as ledger:
        (tmp_path / "anchor").write_text(ledger.head() + "\n")
    anchored = run("verify", "--head", str(tmp_path / "anchor"), "-l", url).output
    assert "4 entries in 2 books verified against" in anchored
    assert "4 entries in 2 books verified\n" in run("verify", "-l", url).output
    with pytest.raises(ChainBroken):
        run("verify", "--head", "3:" + "0" * 64, "-l", url)


def test_export_gives_every_column(url: str, tmp_path: Path) -> None:
    data = json.loads(run("export", "-l", url).output)
    assert len(data["entries"]) == 4
    told = run("export", "census", "--format", "csv", "--out", str(tmp_path / "out.csv"), "-l", url).output
    assert told.replace("\n", "").endswith(f"wrote {tmp_path / 'out.csv'}: 4 entries")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text(encoding="utf-8"), newline="")))
    assert len(rows) == 4
    assert rows[1]["label"] == "'=income mean", "a spreadsheet must not run a label as a formula"
    assert set(rows[0]) >= {"seq", "at", "who", "event", "epsilon", "hash", "previous"}


def test_plot_writes_a_figure(url: str, tmp_path: Path) -> None:
    run("plot", "census", "--out", str(tmp_path / "figure.svg"), "-l", url)
    assert (tmp_path / "figure.svg").read_text(encoding="utf-8").startswith("<svg")


def test_report_writes_an_entry_for_the_registry(url: str, tmp_path: Path) -> None:
    run("census", "--registry", "--out", str(tmp_path / "entry.json"), "-l", url, on=reporter())
    assert json.loads((tmp_path / "entry.json").read_text(encoding="utf-8"))["deployment"]["name"] == "census"
    refused = run("census", "--registry", "--out", str(tmp_path / "e.html"), "-l", url, on=reporter())
    assert (refused.exit_code, "JSON" in refused.output) == (2, True)
    assert not (tmp_path / "e.html").exists()


def test_report_writes_html_or_json_and_prints_the_head(url: str, tmp_path: Path) -> None:
    for name in ("report.html", "report.json"):
        printed = run("census", "--out", str(tmp_path / name), "--entries", "2", "-l", url, on=reporter()).output
        with Ledger(url, create=False) as ledger:
            assert ledger.head() in printed
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len(json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["entries"]) == 2


def test_looking_at_a_ledger_never_makes_one(tmp_path: Path) -> None:
    missing = f"sqlite:///{tmp_path / 'none.db'}"
    for command in (["show"], ["history", "x"], ["verify"], ["export"], ["plot", "x"]):
        with pytest.raises(LedgerError, match="There is no ledger"):
            run(*command, "-l", missing)
    assert not list(tmp_path.iterdir())


def test_a_release_made_elsewhere_is_charged_by_hand_or_refused(url: str) -> None:
    said = run("charge", "census", "laplace(2)", "--label", "incomes", "-l", url).output
    assert "charged Laplace(noise_multiplier=2)" in said
    assert "spent epsilon=1.25 of 3, left epsilon=1.75" in said
    with pytest.raises(BudgetExceeded):
        run("charge", "census", "laplace(0.1)", "-l", url)
    with Ledger(url, create=False) as ledger:
        assert ledger.book("census").entries(newest=1)[0].label == "incomes"


def test_history_says_what_each_charge_would_cost_by_itself(url: str) -> None:
    run("charge", "census", "gaussian(10)", "-l", url)
    rows = json.loads(run("history", "census", "--json", "-l", url).output)
    alone = {row["seq"]: row["epsilon_alone"] for row in rows["entries"]}
    tight = [
        dp.epsilon(event, delta=1e-6)
        for event in (events.Laplace(noise_multiplier=4), events.Gaussian(noise_multiplier=10))
    ]
    assert [alone[seq] for seq in sorted(alone)] == [None, tight[0], None, pytest.approx(0.5, abs=1e-5), tight[1]]
    said = run("history", "census", "-l", url).output
    assert "for one that was charged by hand, it is what its event costs alone" in said
    assert "often less than the sum of what was asked" in said


def test_history_shows_what_was_asked_and_what_the_book_had_spent_then(url: str) -> None:
    """An event of less is shown as what was asked for it."""
    with Ledger(url, create=False) as ledger:
        ledger.book("census").charge(events.Laplace(noise_multiplier=10), "asked", asked=(0.25, 0.0))
    said = run("history", "census", "-n", "1", "-l", url).output
    assert "0.25" in said
    assert "ε asked" in said
    assert "ε alone" not in said


def test_a_book_without_a_delta_says_what_it_cannot_pay_for(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'new.db'}"
    assert "Models and synthetic rows need one" in run("open", "a", "--epsilon", "1", "-l", address).output
    assert "need one" not in run("open", "b", "--epsilon", "1", "--delta", "1e-6", "-l", address).output


def test_the_only_book_need_not_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("open", "study", "--epsilon", "1", "--delta", "1e-6")
    assert "opened with the limit" in run("history").output
    assert run(on=reporter()).output.endswith("study.html\n")
    run("open", "other", "--epsilon", "1", "--delta", "1e-6")
    for refused in (lambda: run("history"), lambda: run(on=reporter())):
        with pytest.raises(ValueError, match=r"2 books \(other, study\), so say which one is meant"):
            refused()
