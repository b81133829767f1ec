"""What the comparison with peers rests on: the public domain, the measure, and a run that goes on where it stopped."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import adult_table, peers, synthesis
from discreet.datasets import adult


def test_every_record_has_a_code_inside_the_public_domain():
    codes, sizes = adult_table.codes(), adult_table.sizes()
    assert len(sizes) == 15
    assert {len(column) for column in codes.values()} == {48_842}
    assert all(column.min() >= 0 and column.max() < sizes[name] for name, column in codes.items())
    assert sizes["native_country"] == len(adult().categories["native_country"])
    ages = np.concatenate([adult().train["age"], adult().test["age"]])
    assert (codes["age"] == pd.cut(ages, [17, *range(20, 90, 5), 91], right=False, labels=False)).all()


def test_the_measure_is_the_average_total_variation():
    """Against pandas, on a few hundred rows of two columns; and a table has no distance from itself."""
    codes = adult_table.codes()
    one, two = ({name: column[part] for name, column in codes.items()} for part in (slice(300), slice(300, 700)))
    pair = ("sex", "race")
    shares = [pd.DataFrame(t).groupby(list(pair)).size() / len(t["sex"]) for t in (one, two)]
    wanted = shares[0].sub(shares[1], fill_value=0).abs().sum() / 2
    assert adult_table._variation(one, two, pair) == pytest.approx(wanted)
    assert adult_table.marginal_error(one, one, 1) == 0
    assert 0 < adult_table.marginal_error(one, two, 1) < adult_table.marginal_error(one, two, 2)


def test_peers_are_measured_once_and_failures_are_kept(tmp_path, monkeypatch, capsys):
    """A run that is stopped goes on with the next question; a failure is an answer too."""
    asked = []

    def ask(interpreter, script, question, *, limit):
        asked.append((question["peer"], question["epsilon"], question["seed"]))
        if len(asked) == 5:
            raise KeyboardInterrupt
        failed = question["peer"] == "dpmm-aim"
        return peers.Failure("no memory") if failed else {"error": 0.1, "cpu": 2.0, "megabytes": 3.0}

    monkeypatch.setattr(synthesis, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(peers, "ask", ask)
    monkeypatch.setattr(peers, "python", lambda name: name)
    with pytest.raises(KeyboardInterrupt):
        synthesis.measure_peers(1)
    assert len(json.loads((tmp_path / "results.json").read_text())) == 4
    synthesis.measure_peers(1)
    assert len(set(asked)) == len(asked) - 1 == 12  # only the one that was stopped was asked again
    assert sum("failure" in entry for entry in synthesis.stored()) == 3
    monkeypatch.setattr(synthesis, "ours", lambda *_: {"error": 0.2, "cpu": 500.0, "megabytes": 4.0})
    synthesis.main()
    told = capsys.readouterr().out
    assert "no memory" in told
    assert "MISSES  3-way error 0.2000 at epsilon 1; the best peer has 0.1000" in told
    assert "MISSES  the residual engine took 500 CPU-seconds" in told


def test_the_documentation_shows_what_is_stored():
    page = peers.ROOT / "docs" / "synthesis.md"
    assert synthesis.markdown() in page.read_text(encoding="utf-8")


def test_a_failure_and_a_question_not_asked_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(synthesis, "RESULTS", tmp_path / "results.json")
    synthesis.keep({"method": "dpmm-aim", "epsilon": 1.0, "seed": 0, "failure": "no memory"})
    synthesis.keep({"method": "dpmm-mst", "epsilon": 1.0, "seed": 0, "error": 0.5, "cpu": 2.0, "megabytes": 3.0})
    told = synthesis.markdown()
    assert "| dpmm-aim | not run | failed | not run |" in told
    assert "| dpmm-mst | not run | 0.5000 (1) | not run | 2 | 3 |" in told
