"""Epsilon from the error that one can bear: what the error columns then say is that error, and hardly less."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import discreet as dp
from discreet import cli
from discreet.tables.error_targets import half_widths

N = 3000


@pytest.fixture(scope="module")
def people():
    chance = np.random.default_rng(0)
    frame = pl.DataFrame({"age": chance.uniform(0, 100, N), "sex": chance.choice(["f", "m"], N)})
    schema = dp.Schema(age=dp.Bounded(0, 100), sex=dp.Categories(["f", "m"]))
    return dp.table(frame, schema=schema)


def widths(query, name, epsilon, delta=None):
    frame = query.release(epsilon, delta, errors=True, rng=1).value
    return (frame[f"{name}_high"] - frame[f"{name}_low"]).to_numpy() / 2


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize(("ask", "error"), [("count", 20), ("sum", 900.0), ("both", 1500.0)])
def test_the_error_columns_are_within_the_error_and_not_with_less_epsilon(people, ask, error, delta):
    grouped = people.group_by("sex")
    query = {
        "count": lambda: grouped.count(name="x"),
        "sum": lambda: grouped.sum("age", name="x"),
        "both": lambda: grouped.sum("age", name="x").count(name="n"),
    }[ask]()
    epsilon = query.epsilon_for(error=error, delta=delta)
    assert (widths(query, "x", epsilon, delta) <= error).all()
    assert (widths(query, "x", 0.95 * epsilon, delta) > error).any()


def test_a_mean_asks_for_a_rough_number_of_rows(people):
    query = people.group_by("sex").mean("age", name="x")
    with pytest.raises(ValueError, match="rows=500"):
        query.epsilon_for(error=1.0)
    epsilon = query.epsilon_for(error=1.0, rows=N // 2)
    within = widths(query, "x", epsilon)
    assert (within < 1.1).all()  # at that size the worst place is an edge; these means lie in the middle
    assert (within > 0.5).all()


def test_what_no_error_decides_is_said(people):
    with pytest.raises(ValueError, match=r"explain\(epsilon\)"):
        people.variance("age").epsilon_for(error=1.0)
    with pytest.raises(ValueError, match="error"):
        people.count().epsilon_for(error=0)


def test_a_group_whose_name_is_private_and_columns_that_share_their_noise(people):
    towns = dp.table(pl.DataFrame({"town": ["a"] * 5000}), schema=dp.Schema(town=dp.Unlisted()))
    query = towns.group_by("town").count(name="x")
    epsilon = query.epsilon_for(error=20, delta=1e-6)
    assert 15 < widths(query, "x", epsilon, 1e-6)[0] <= 20
    both = people.group_by("sex").mean("age", name="m").count(name="x").sum("age", name="s")
    stated = half_widths(both.operation(1.0), rows=N // 2)
    assert widths(both, "x", 1.0) == pytest.approx(stated["x"])
    assert widths(both, "s", 1.0) == pytest.approx(stated["s"])


def test_an_error_is_asked_on_the_command_line(people, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"sex": ["f", "m"] * 300}).write_parquet("p.parquet")
    (tmp_path / "s.toml").write_text('[columns]\nsex = { categories = ["f", "m"] }\n')
    asked = ["query", "p.parquet", "--schema", "s.toml", "--sql", "SELECT sex, COUNT(*) FROM p GROUP BY sex"]
    with pytest.raises(SystemExit, match="0"):
        cli.main([*asked, "--error", "20", "--no-book"])
    assert "error of at most 20 in 95 of 100 answers: epsilon = 0.147" in capsys.readouterr().out
    for wrong in (["--error", "20", "--epsilon", "1"], ["--epsilon", "1", "--rows", "9"]):
        with pytest.raises(SystemExit, match="2"):
            cli.main([*asked, *wrong, "--no-book"])
