"""Groups without rows: listed keys are answered whatever they hold, by noise of the same law."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import discreet as dp
from discreet.auditing import ReplayError, replay
from discreet.random.tap import listening
from discreet.tables import aggregates
from tests.tables.frames import CONNECTION

FALSE_ALARM = 1e-6
GROUPS = 3000
QUESTIONS = {
    "count": lambda q: q.count(),
    "sum": lambda q: q.sum("x"),
    "mean": lambda q: q.mean("x"),
    "variance": lambda q: q.variance("x"),
    "median": lambda q: q.median("x", bins=8),
    "quantile": lambda q: q.quantile("x", 0.9, bins=8),
    "histogram": lambda q: q.histogram("x", 3),
}
BUDGETS = {"laplace": {"epsilon": 1.0}, "gaussian": {"rho": 0.5}}


def table(keys, values, groups=3, **options):
    frame = pl.DataFrame(
        {"k": pl.Series(keys, dtype=pl.Int64), "x": pl.Series(values, dtype=pl.Float64), "who": range(len(keys))}
    )
    schema = dp.Schema(k=dp.Categories(range(groups)), x=dp.Bounded(0, 10))
    return dp.table(CONNECTION.from_arrow(frame.to_arrow()), schema=schema, **options).group_by("k")


class Heard:
    """Every value that met noise, with what came out; nothing is changed."""

    def __init__(self):
        self.steps = []

    def draw_output(self, what, value, norm, limit, draw, event, once):
        out = draw()
        self.steps.append((repr(what), norm, repr(limit), event, np.array(value, float), np.array(out, float)))
        return out

    def coins(self, keys):
        return np.random.default_rng(0).integers(1 << 63, size=len(keys)).astype(np.uint64)


def heard(question, budget, *rows, **options):
    listener = Heard()
    with listening(listener):
        question(table(*rows, **options)).release(**budget)
    return listener.steps


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", QUESTIONS)
def test_what_meets_noise_is_the_same_for_groups_with_rows_and_without(name, budget):
    """The mechanisms, their scales, limits and shapes, in their order, whichever groups are empty."""
    told = []
    for rows in (([], []), ([1] * 5, [3.0] * 5), ([0, 1, 2] * 9, [9.0] * 27)):
        steps = heard(QUESTIONS[name], BUDGETS[budget], *rows)
        told.append([(*step[:4], step[4].shape, step[5].shape) for step in steps])
    assert told[0]
    assert told[0] == told[1] == told[2]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", ["count", "sum", "mean", "variance"])
def test_the_noise_on_an_empty_group_has_the_law_of_any_other(name, budget):
    """Two samples of 1,500 groups each, with and without rows; a scale 1.6 times as large is rejected."""
    full = [group for group in range(GROUPS // 2) for _ in range(2)]
    (step,) = heard(QUESTIONS[name], BUDGETS[budget], full, [2.0, 7.0] * (GROUPS // 2), groups=GROUPS)
    value, out = (part.reshape(GROUPS, -1) for part in step[4:])
    assert (value[: GROUPS // 2] > 0).any(axis=1).all()
    assert not value[GROUPS // 2 :].any()
    held, empty = np.split(np.abs(out - value)[:, 0], 2)
    assert stats.ks_2samp(held, empty).pvalue > FALSE_ALARM
    assert stats.ks_2samp(held, 1.6 * empty).pvalue < FALSE_ALARM


@pytest.mark.parametrize("options", [{}, {"unit": "who"}], ids=["rows", "units"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_only_row_of_a_group_is_told_by_nothing_but_noise(name, options):
    """One record makes the difference between a group with rows and one without, in any place."""

    def run(rows):
        keys, values = [k for k, _ in rows], [x for _, x in rows]
        return QUESTIONS[name](table(keys, values, **options)).release(epsilon=1.0)

    others = [(0, 3.0), (2, 9.5), (0, None)]
    for lone in ((1, 4.0), (1, float("nan"))):
        replay(run, [*others, lone], others)
    replay(run, [], [lone])


def test_replay_sees_an_empty_group_that_is_answered_without_noise(monkeypatch):
    """The control: a mean that skips groups without rows."""
    usual = aggregates.Mean.noisy

    def skipping(self, rows, mechanism, stats, rng):
        held = np.flatnonzero(stats.rows)
        places = np.full(stats.size, -1)
        places[held] = np.arange(len(held))
        out = np.zeros((stats.size, 2))
        out[held] = usual(self, rows, mechanism, stats.placed(places, len(held)), rng)
        return out

    monkeypatch.setattr(aggregates.Mean, "noisy", skipping)
    with pytest.raises(ReplayError):
        replay(lambda keys: table(keys, [1.0] * len(keys)).mean("x").release(epsilon=1.0), [0, 1], [0])
