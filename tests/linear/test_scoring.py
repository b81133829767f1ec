"""A private score of rows that were held back: what it costs, how good it is, and that its interval keeps its word."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from discreet import epsilon
from discreet.auditing import replay
from discreet.linear.scoring import HeldOutScore
from discreet.linear.tabular import TableModel
from discreet.random import seeded
from discreet.schema import Bounded, Categories, Declaration, Schema

FACTS = Declaration(Schema(age=Bounded(0, 100), sick=Categories(["no", "yes"]), cost=Bounded(0, 500)))
SICK = Categories(["no", "yes"])


def rows(size, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 100, size)
    sick = np.where(rng.random(size) < np.where(age > 50, 0.9, 0.1), "yes", "no")
    return {"age": age, "sick": sick, "cost": 4 * age + rng.normal(0, 20, size)}


@pytest.mark.parametrize("target", ["sick", "cost"])
@pytest.mark.parametrize(("asked", "delta"), [(0.3, 1e-6), (2.0, 1e-6), (1.0, 0.0)])
def test_a_scored_fit_costs_no_more_than_was_asked(target, asked, delta):
    model = TableModel(FACTS, target, epsilon=asked, delta=delta, score_share=0.2)
    assert epsilon(model.event, delta=delta) <= asked * (1 + 1e-9)
    assert epsilon(model.scoring.event, delta=0.0) == pytest.approx(asked, rel=1e-9)


def test_the_score_is_that_of_rows_that_were_not_fitted_to():
    """Nine tenths are right, where half would be by the label alone; the distance of normal errors is known."""
    model = TableModel(FACTS, "sick", epsilon=2.0, random_state=1, score_share=0.25).fit(rows(8000))
    assert model.score.low <= 0.1 <= model.score.high
    assert model.score.high - model.score.low < 0.07
    assert model.score.constant == pytest.approx(0.5, abs=0.05)
    assert model.score.rows == pytest.approx(2000, abs=200)
    assert model.statement["score"]["loss"] == model.score.loss
    wage = TableModel(FACTS, "cost", epsilon=2.0, random_state=1, score_share=0.25).fit(rows(8000))
    assert wage.score.low <= 20 * math.sqrt(2 / math.pi) <= wage.score.high
    assert wage.score.constant == pytest.approx(100, abs=10)
    assert "score" not in TableModel(FACTS, "sick", epsilon=2.0, random_state=1).fit(rows(800)).statement


@pytest.mark.parametrize("wrong", [0.02, 0.4])
def test_the_interval_holds_the_loss_of_new_rows(wrong):
    """In 95 of 100 cases at least; fewer than 172 of 200 has probability 1e-6 then. It is no wider than it must be."""
    rng, inside, widths = np.random.default_rng(5), 0, []
    for seed in range(200):
        truth = rng.integers(0, 2, 600)
        predicted = np.where(rng.random(600) < wrong, 1 - truth, truth)
        score = HeldOutScore(SICK, epsilon=0.5).measure(truth, predicted, seeded(seed))
        inside += score.low <= wrong <= score.high
        widths.append(score.high - score.low)
    assert binom.cdf(171, 200, 0.95) < 1e-6
    assert inside >= 172
    assert np.mean(widths) < 0.16


def test_no_rows_held_back_and_missing_targets_are_no_error():
    for goal in (SICK, Bounded(0, 9)):
        nothing = np.full(3, -1) if goal is SICK else np.full(3, np.nan)
        for truth in (nothing, nothing[:0]):
            score = HeldOutScore(goal, epsilon=1.0).measure(truth, truth, seeded(1))
            assert 0 <= score.low <= score.loss <= score.high
            assert score.rows >= 1
    few = {name: values[:1] for name, values in rows(5).items()}
    for seed in range(8):  # one row, in one part or the other
        assert TableModel(FACTS, "sick", epsilon=1.0, random_state=seed, score_share=0.5).fit(few).score is not None


def test_a_row_moves_the_model_or_the_score_and_replay_agrees():
    people, fewer = rows(60), {name: values[1:] for name, values in rows(60).items()}
    for target in ("sick", "cost"):
        operation = TableModel(FACTS, target, epsilon=1.0, score_share=0.5).operation()
        for data, neighbour in ((people, fewer), (fewer, people)):
            replay(operation.release, data, neighbour)


def test_a_share_of_rows_is_a_share():
    with pytest.raises(ValueError, match="score_share"):
        TableModel(FACTS, "sick", epsilon=1.0, score_share=1.0)


def test_a_model_that_is_saved_in_python_is_read_by_the_command_line(tmp_path):
    from typer.testing import CliRunner

    from discreet import cli

    model = TableModel(FACTS, "sick", epsilon=2.0, random_state=1).fit(rows(2000))
    model.save(tmp_path / "model.json")
    (tmp_path / "new.csv").write_text("age,cost\n10,40\n95,380\n")
    words = ["predict", str(tmp_path / "model.json"), str(tmp_path / "new.csv"), "--json"]
    told = CliRunner().invoke(cli.app(), words)
    assert '"no"' in told.output
    assert '"yes"' in told.output
