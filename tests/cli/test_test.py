"""``discreet test``: a file in, a p-value and an interval out, a book charged first."""

from __future__ import annotations

import json

import polars as pl
import pytest

from discreet import cli, release
from discreet.ledger import Ledger

SCHEMA = (
    '[columns]\ntreated = { categories = ["no", "yes"] }\ndays = { bounds = [0, 30] }\nseen = { categories = [0, 1] }\n'
    'day = { dates = ["2024-01-01", "2024-12-31"] }\n'
)
TEST = ("test", "visits.csv", "--schema", "visits.toml", "--by", "treated", "--of", "days", "--epsilon", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_LEDGER", raising=False)
    (tmp_path / "visits.toml").write_text(SCHEMA)
    rows = {"treated": ["no", "yes"] * 400, "days": [9.0, 7.0] * 400, "seen": [1, 1] * 400}
    pl.DataFrame(rows).write_csv(tmp_path / "visits.csv")
    return tmp_path


def run(*arguments):
    try:
        cli.main(list(arguments))
    except SystemExit as stopped:
        return stopped.code
    return 0


def test_a_test_is_charged_and_shown(folder, capsys):
    with Ledger(f"sqlite:///{folder}/budget.db") as ledger:
        ledger.open("ward", epsilon=2.0)
    assert run(*TEST, "--ledger", "budget.db") == 0
    shown = capsys.readouterr().out
    assert "Welch's test: treated, days" in shown
    assert "p ≤ 0.0001 (two-sided; as small as the simulated draws can say)" in shown
    with Ledger(f"sqlite:///{folder}/budget.db") as ledger:
        assert [entry.label for entry in ledger.book("ward").entries()][-1] == "Welch's test: treated, days"
        assert ledger.book("ward").spent().epsilon == pytest.approx(1.0)


def test_json_has_the_numbers_and_the_cost(folder, capsys):
    assert run(*TEST, "--no-book", "--seed", "1", "--json", "--test", "mann-whitney") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["p_value"] < 0.01
    assert answer["interval"][0] < answer["effect"] < answer["interval"][1]
    assert answer["reproducible"]
    assert answer["event"]


def test_the_log_rank_test_takes_the_column_of_events(folder, capsys):
    assert run(*TEST, "--no-book", "--seed", "1", "--test", "log-rank", "--events", "seen") == 0
    assert "log-rank test: treated, days, seen" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--of", "seen"), "Cramér's V = "),
        (("--test", "mann-whitney", "--alternative", "greater"), "P(no > yes), ties half = "),
        ((), "difference of means, no less yes = "),
    ],
)
def test_the_effect_has_a_name_and_a_one_sided_test_says_that_its_interval_is_not(folder, capsys, options, said):
    assert run(*TEST, "--no-book", *options) == 0
    shown = capsys.readouterr().out
    assert said in shown
    assert ("95 % two-sided interval" in shown) == ("greater" in options)


@pytest.mark.parametrize("options", [("--test", "anova"), ("--of", "seen"), ("--test", "kolmogorov-smirnov")])
def test_a_test_without_sides_names_none(folder, capsys, options):
    """Not "two-sided" of squares; and one side of it is refused."""
    assert run(*TEST, "--no-book", *options) == 0
    assert "sided" not in capsys.readouterr().out.partition("assumes")[0]
    assert run(*TEST, "--no-book", *options, "--alternative", "less") == 2
    assert "alternative is 'less'" in capsys.readouterr().err


def test_no_book_is_said_in_the_words_of_the_command_line(folder, capsys, recwarn):
    release._said.discard("no book")
    assert run(*TEST) == 0
    assert "NOT CHARGED: no book counts this release" in capsys.readouterr().err
    assert run(*TEST, "--no-book") == 0
    assert capsys.readouterr().err == ""
    assert not list(recwarn)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--test", "t"), "test is 't', but must be 'welch'"),
        (("--test", "log-rank"), "needs three columns"),
        (("--events", "seen"), "only the log-rank test takes a third column"),
        (("--test", "two-proportions"), "needs exactly 2 categories"),
        (("--of", "day"), "day is declared as dates; Welch's test needs numbers (bounds = [low, high])."),
        (("--of", "seen", "--test", "anova"), "seen is declared as 2 categories; analysis of variance needs numbers"),
    ],
)
def test_a_public_mistake_is_found_before_a_book_is_charged(folder, capsys, options, said):
    with Ledger(f"sqlite:///{folder}/budget.db") as ledger:
        ledger.open("ward", epsilon=2.0)
    assert run(*TEST, "--ledger", "budget.db", *options) == 2
    assert said in capsys.readouterr().err
    with Ledger(f"sqlite:///{folder}/budget.db") as ledger:
        assert ledger.book("ward").spent().epsilon == 0


def test_one_column_is_tested_against_a_value(folder, capsys):
    column = ("test", "visits.csv", "--schema", "visits.toml", "--of", "days", "--epsilon", "1", "--no-book")
    assert run(*column, "--seed", "1", "--test", "one-sample", "--null", "9", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["p_value"] < 0.01
    assert answer["interval"][0] < 8 < answer["interval"][1]
    assert run(*column) != 0  # without its name
