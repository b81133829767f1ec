"""``discreet audit``: a claim is tested on made-up neighbours; no data is read and no book is charged."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from discreet import auditing, cli, statistics
from discreet.auditing.made_up import STATISTICS, frame_read, made_up_statistic, made_up_table
from discreet.cli import audit as audit_command
from discreet.release import Release
from discreet.schema import Bounded, Declaration, Schema, Unlisted

SCHEMA = '[columns]\nage = { bounds = [0, 100] }\nsex = { categories = ["f", "m"] }\n'
MEAN = '[statistic]\nname = "mean"\nbounds = [0, 10]\nepsilon = 1.0\n'
FACTS = {
    "count": {},
    "sum": {"bounds": [0, 10]},
    "mean": {"bounds": [0, 10]},
    "variance": {"bounds": [0, 10]},
    "quantile": {"bounds": [0, 10], "steps": 16},
    "quantiles": {"q": [0.2, 0.5], "bounds": [0, 10], "steps": 16},
    "histogram": {"bins": [0, 5, 10]},
    "cdf": {"bins": [0, 5, 10]},
    "mode": {"categories": ["a", "b"]},
    "top_k": {"categories": ["a", "b", "c"], "k": 1},
    "vector_mean": {"dimension": 2, "norm": 1.0},
    "covariance": {"bounds": [[0, 1], [-1, 1]]},
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.toml").write_text(SCHEMA)
    Path("mean.toml").write_text(MEAN + "\n[audit]\ntrials = 1000\n")
    return tmp_path


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        cli.main(["audit", *words])
    return int(end.value.code or 0)


def test_a_statistic_is_audited_as_a_file_says(here, capsys):
    assert run("mean.toml", "--seed", "1", "--out", "audit.png") == 0
    told = capsys.readouterr().out
    assert "audited on made-up neighbours: mean" in told
    assert "2 x 1000 runs" in told
    assert "claimed: epsilon = 1 at delta = 0 (add-remove)" in told
    assert "consistent: the claim was not refuted" in told
    assert Path("audit.png").stat().st_size > 1000


@pytest.mark.parametrize(
    "words",
    [
        ("--sql", "SELECT sex, count(*) FROM people GROUP BY sex", "--epsilon", "1"),
        ("--target", "sex", "--epsilon", "1", "--delta", "1e-3"),
    ],
    ids=["query", "fit"],
)
def test_queries_and_fits_are_audited_on_rows_made_up_from_the_schema(here, capsys, words):
    code = run("--schema", "people.toml", *words, "--trials", "100", "--json")
    told = json.loads(capsys.readouterr().out)
    assert not told["violated"]
    assert code == (2 if told["saw_nothing"] else 0)
    assert 0 <= told["lower"] <= told["claimed"] < 1.01
    assert told["trials"] == 100


@pytest.mark.parametrize(("seconds", "minutes"), [(0.05, None), (0.5, 9)])
def test_whoever_waits_for_minutes_is_told_so_once_without_a_terminal_too(capsys, seconds, minutes):
    """Unless the runs take less than a minute, or JSON is asked for."""
    for silent in (False, True):
        tell = audit_command._with_pace(None, silent=silent, clock=iter([0.0, 20 * seconds]).__next__)
        for done in range(1, 1001):
            tell(done, 1000)
        said = capsys.readouterr().err
        expected = minutes is not None and not silent
        assert said.count("2 x 500 runs will take about 9 more minutes; --trials takes fewer") == expected
        assert bool(said) == expected


def test_a_query_may_stand_in_the_file(here, capsys):
    Path("query.toml").write_text('[query]\nschema = "people.toml"\nsql = "SELECT sum(age) FROM p"\nepsilon = 1.0\n')
    assert run("query.toml", "--trials", "100", "--confidence", "0.9") in (0, 2)
    assert "with 0.9 confidence" in capsys.readouterr().out


def test_a_false_claim_ends_with_exit_code_one(here, capsys, monkeypatch):
    class Exact(statistics.Mean):
        def release(self, data=None, rng=None):
            return Release(float(len(data)), self.event)

    monkeypatch.setitem(STATISTICS, "mean", Exact)
    assert run("mean.toml") == 1
    assert "VIOLATED: the claim is refuted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "Say what to audit"),
        (("--schema", "people.toml"), "Say what to audit"),
        (("absent.toml",), "There is no file 'absent.toml'"),
        (("both.toml",), "must have one of the sections"),
        (("odd.toml",), "statistic.name is 'magic'"),
        (("few.toml",), "cannot refute"),
        (("--schema", "people.toml", "--target", "sex", "--rho", "1"), "A fit is given --epsilon"),
        (("mean.toml", "--out", "mean.toml"), "cannot be written"),
    ],
)
def test_what_cannot_be_judged_is_refused(here, capsys, words, why):
    Path("both.toml").write_text(MEAN + '[fit]\nschema = "people.toml"\ntarget = "sex"\n')
    Path("odd.toml").write_text('[statistic]\nname = "magic"\n')
    Path("few.toml").write_text(MEAN.replace("1.0", "9.0") + "[audit]\ntrials = 100\n")
    assert run(*words) == 2
    assert why in capsys.readouterr().err


def test_data_can_be_made_up_for_every_statistic_that_is_named():
    assert set(FACTS) == set(STATISTICS)
    for name, facts in FACTS.items():
        operation, data, neighbour = made_up_statistic(name, facts | {"rho": 0.02})
        assert len(data) == len(neighbour) + 1
        assert not auditing.audit(operation, data, neighbour, trials=100, delta=1e-6, confidence=1 - 1e-6).violated


def test_a_made_up_unit_has_all_the_rows_it_may_have():
    declared = Declaration(Schema(x=Bounded(0, 9), zip=Unlisted()), unit="who", max_rows_per_unit=3)
    fewer, more = made_up_table(declared)
    assert more["x"][-3:] == [9.0] * 3
    assert len(set(more["who"])) == len(set(fewer["who"])) + 1


def test_a_missing_answer_is_not_read_as_zero():
    """What says "nothing" on one neighbour and 0 on the other is told apart."""
    pl = pytest.importorskip("polars")
    for rest in ({}, {"sex": ["f"]}):
        zero, none, nan = (frame_read(pl.DataFrame({"n": [value], **rest})) for value in (0.0, None, math.nan))
        assert zero != none
        assert zero != nan


def test_a_unit_of_as_many_rows_as_are_chosen_has_several():
    few, more = made_up_table(Declaration(Schema(age=Bounded(0, 9)), "id", max_rows_per_unit="auto"))
    assert len(set(few["id"])) == len(few["id"])
    assert more["id"].count(more["id"][-1]) > 1


def test_options_that_a_file_would_overrule_are_refused(here, capsys):
    assert run("mean.toml", "--epsilon", "9") != 0
    assert "leave out the other options" in capsys.readouterr().err


MODULE = """data, neighbour = 0.0, 1.0

def honest(total, rng):
    return round(total + rng.laplace(scale=1.0), 3)

def halved(total, rng):
    return round(total + rng.laplace(scale=0.5), 3)
"""


def test_a_function_of_ones_own_module_is_audited_against_the_options(here, capsys):
    Path("my_noise.py").write_text(MODULE)
    assert run("my_noise:honest", "--epsilon", "1", "--trials", "3000", "--seed", "1") == 0
    assert "audited on its own neighbours: my_noise:honest" in capsys.readouterr().out
    assert run("my_noise.py:halved", "--epsilon", "1", "--trials", "3000", "--seed", "1") == 1
    assert "VIOLATED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "sentence"), [("nowhere:noisy", "no module 'nowhere'"), ("my_noise:absent", "has no 'absent'")]
)
def test_a_function_that_is_not_there_is_named(here, capsys, name, sentence):
    Path("my_noise.py").write_text(MODULE)
    assert run(name, "--epsilon", "1") == 2
    assert sentence in capsys.readouterr().err


def test_runs_that_show_nothing_end_with_a_code_of_their_own(here, capsys):
    Path("loud_noise.py").write_text(MODULE.replace("scale=1.0", "scale=1e6"))
    assert run("loud_noise:honest", "--epsilon", "1", "--trials", "400", "--seed", "1") == 2
    assert "could not judge" in capsys.readouterr().out
