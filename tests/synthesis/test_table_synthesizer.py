"""Whole fits: what they cost, what they give, what they refuse, and whether neighbours look alike."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet import events
from discreet.accounting import epsilon
from discreet.auditing import ReplayError, mu_lower_bound, replay
from discreet.schema import Bounded, Categories, Declaration, Schema
from discreet.synthesis import PrivateBins, TableSynthesizer, learning
from discreet.synthesis.spending import Spending
from tests.operations.contract import Log, SpyBook

SCHEMA = Schema(
    a=Categories(range(3)),
    b=Categories(range(4)),
    c=Categories(range(2)),
    d=Bounded(0, 10, missing=0),
    e=Bounded(-1, 1),
)


def table(n=4000, seed=0):
    """a decides b and c, and d follows c."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.8, a, 3)
    c = (a > 0).astype(int) ^ (rng.random(n) < 0.05)
    return {"a": a, "b": b, "c": c, "d": c * 5 + rng.uniform(0, 5, n), "e": rng.uniform(-1, 1, n)}


def fitted(data=None, **facts):
    facts = {"epsilon": 2.0, "delta": 1e-6, "bins": 4} | facts
    return TableSynthesizer(**facts).fit(table() if data is None else data, schema=SCHEMA, rng=1)


def test_a_fit_keeps_dependencies_and_answers_directly():
    synth, data = fitted(), table()
    drawn = synth.sample(4000, rng=2)
    assert list(drawn) == ["a", "b", "c", "d", "e"]
    real, made = ((rows["a"] == rows["b"]).mean() for rows in (data, drawn))
    assert made == pytest.approx(real, abs=0.05)
    assert synth.count({"a": 1, "c": 1}) == pytest.approx(((data["a"] == 1) & (data["c"] == 1)).sum(), abs=200)
    assert synth.marginal(["a", "c"]).shape == (3, 2)
    assert synth.marginal(["a"]).sum() == pytest.approx(4000, abs=200)
    assert len(synth.sample(rng=3)["a"]) == round(synth.model_.total)


def test_the_event_is_one_gaussian_that_costs_what_was_asked():
    operation = TableSynthesizer(epsilon=0.7, delta=1e-9).operation(SCHEMA)
    assert isinstance(operation.event, events.Gaussian)
    assert 0.69 < epsilon(operation.event, delta=1e-9) <= 0.7
    exchanged = TableSynthesizer(epsilon=0.7, delta=1e-9, adjacency="replace").operation(SCHEMA).event
    assert epsilon(exchanged, delta=1e-9, adjacency="replace") <= 0.7


@pytest.mark.parametrize(
    "facts",
    [{}, {"total": 4000}, {"bins": PrivateBins(4)}, {"adjacency": "replace"}, {"epsilon": 1e-3}, {"workload": 1}],
    ids=str,
)
def test_a_fit_spends_its_budget_and_no_more(monkeypatch, facts):
    kept = []

    class Kept(Spending):
        def __init__(self, *facts):
            super().__init__(*facts)
            kept.append(self)

    monkeypatch.setattr(learning, "Spending", Kept)
    fitted(**facts)
    (spending,) = kept
    assert 0.98 * spending.rho < spending.spent <= spending.rho


def test_more_budget_gives_a_smaller_error():
    data = table()
    real = np.array([[((data["a"] == a) & (data["b"] == b)).sum() for b in range(4)] for a in range(3)])
    errors = [
        np.mean(
            [
                np.abs(
                    TableSynthesizer(eps, 1e-6, bins=4).fit(data, schema=SCHEMA, rng=s).marginal(["a", "b"]) - real
                ).sum()
                for s in range(3)
            ]
        )
        for eps in (0.03, 0.3, 10.0)
    ]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, lambda rows: pl.DataFrame(rows).to_arrow()], ids=["pandas", "polars", "arrow"]
)
def test_a_sample_is_the_kind_of_frame_that_was_given(frame):
    given = frame(table(200))
    drawn = fitted(given).sample(20, rng=1)
    assert type(drawn) is type(given)


def test_a_file_gives_a_polars_frame(tmp_path):
    pl.DataFrame(table(200)).write_csv(tmp_path / "rows.csv")
    assert isinstance(fitted(str(tmp_path / "rows.csv")).sample(20, rng=1), pl.DataFrame)


def test_one_row_a_unit_counts_and_the_unit_is_charged():
    log = Log()
    book = SpyBook(log)
    facts = Declaration(SCHEMA, unit="who")
    data = table(300)
    doubled = {name: np.concatenate([values, values]) for name, values in data.items()}
    doubled["who"] = np.tile(np.arange(300), 2)
    synth = TableSynthesizer(100.0, 1e-6, bins=4).fit(doubled, schema=facts, book=book, label="mine", rng=1)
    assert book.charges == [(synth.event_, "mine", "who")]
    assert synth.model_.total == pytest.approx(300, abs=20)
    assert "who" not in synth.sample(5, rng=1)


def test_progress_is_told_and_ends_at_one():
    told = []
    TableSynthesizer(1.0, 1e-6, bins=2).fit(
        table(50), schema=SCHEMA, rng=1, progress=lambda share, stage: told.append((share, stage))
    )
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    assert told[-1] == (1.0, "done")


def test_cost_and_the_error_of_noise_alone_are_told_before_the_fit():
    stated = TableSynthesizer(0.5, 1e-6, bins=4).explain(SCHEMA, n=4000)
    assert stated.candidates == 10
    assert 0 < stated.column_error < stated.pair_error < stated.workload_error < 1
    alone = TableSynthesizer(0.5, 1e-6, bins=4, workload=1).explain(SCHEMA, n=4000)
    assert alone.workload_error == pytest.approx(alone.column_error)
    assert "error by noise alone" in str(stated)
    assert "no bound" in str(stated)
    assert stated.event == TableSynthesizer(0.5, 1e-6).operation(SCHEMA).event
    private = TableSynthesizer(0.5, 1e-6, bins=PrivateBins(4)).explain(SCHEMA, n=4000)
    assert private.pair_error == stated.pair_error  # a tenth goes to the shapes of columns, whoever cuts the cells


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_error_of_noise_alone_is_that_of_the_columns(adjacency):
    """A flat table of one column, thirty fits: their mean error is within a fifth of it, and not of half of it."""
    schema, data = Schema(a=Categories(range(12))), {"a": np.repeat(range(12), 500)}
    told = TableSynthesizer(0.3, 1e-6, workload=1, adjacency=adjacency)
    plan = told.operation(schema).plan
    alone = plan._expected_error((0,), plan.rho * 0.95) / 6000  # all but the total goes to the column in the end
    fits = [told.fit(data, schema=schema, rng=seed).marginal(["a"]) for seed in range(30)]
    found = [0.5 * np.abs(counts / 6000 - 1 / 12).sum() for counts in fits]
    assert np.mean(found) == pytest.approx(alone, rel=0.2)
    assert np.mean(found) != pytest.approx(0.5 * alone, rel=0.2)


# --- odd tables ------------------------------------------------------------------------------------------------------


def test_an_empty_table_gives_noise():
    synth = fitted({name: [] for name in table(1)})
    assert len(synth.sample(10, rng=1)["a"]) == 10


def test_one_column_a_constant_column_and_all_missing():
    one = TableSynthesizer(1.0, 1e-6).fit({"a": [1] * 100}, schema=Schema(a=Categories([0, 1])), rng=1)
    assert one.marginal(["a"])[1] > 60
    constant = TableSynthesizer(1.0, 1e-6).fit({"a": [1] * 100}, schema=Schema(a=Categories([1])), rng=1)
    assert constant.sample(3, rng=1)["a"].tolist() == [1, 1, 1]
    missing = TableSynthesizer(1.0, 1e-6, bins=2).fit({"x": [None] * 100}, schema=Schema(x=Bounded(0, 1)), rng=1)
    assert missing.count({"x": None}) > 60
    both = Schema(a=Categories([1]), b=Categories(["x", "y"]))
    beside = TableSynthesizer(1.0, 1e-6).fit({"a": [1, 1], "b": ["x", None]}, schema=both, rng=1)
    assert beside.marginal(["a", "b"]).shape == (1, 2)


def test_impossible_rows_are_not_drawn_and_determined_values_follow():
    data = table(500)
    schema = Schema(a=Categories(range(3)), b=Categories(range(4)), grade=Categories(["low", "mid", "high"]))
    synth = TableSynthesizer(
        1.0,
        1e-6,
        structural_zeros={("b", "a"): [(0, 1), (1, 0), (2, 0)]},
        dependencies={"grade": ("a", {0: "low", 1: "mid", 2: "high"})},
    ).fit({"a": data["a"], "b": data["b"]}, schema=schema, rng=1)
    drawn = synth.sample(2000, rng=1)
    assert not ((drawn["a"] == 1) & (drawn["b"] == 0)).any()
    assert not ((drawn["a"] == 0) & (drawn["b"] == 2)).any()
    assert set(zip(drawn["a"].tolist(), drawn["grade"].tolist(), strict=True)) <= {(0, "low"), (1, "mid"), (2, "high")}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"max_cells": 5}, "more than max_cells=5 cells"),
        ({"max_cells": 10**12}, "are held in memory"),
        ({"bins": 1_000_000}, "bins is 1000000"),
        ({"delta": 0}, "gaussian"),
        ({"epsilon": -1}, "epsilon"),
        ({"adjacency": "zero-out"}, "zero-out"),
        ({"total": -3}, "total"),
        ({"engine": "magic"}, "engine is 'magic'"),
        ({"workload": [["a", "z"]]}, "not among the columns"),
        ({"workload": []}, "at least one"),
        ({"workload": {("a", "b"): -1.0}}, "workload"),
        ({"unit": ""}, "unit"),
    ],
    ids=str,
)
def test_public_mistakes_are_found_before_the_charge(facts, words):
    log = Log()
    with pytest.raises(ValueError, match=words):
        TableSynthesizer(**({"epsilon": 1.0, "delta": 1e-6} | facts)).fit(
            table(10), schema=SCHEMA, book=SpyBook(log), rng=1
        )
    assert "charge" not in log


def test_columns_that_are_absent_or_of_another_type_are_found_before_the_charge():
    log, data = Log(), table(10)
    bad = [
        {name: values for name, values in data.items() if name != "c"},
        data | {"d": np.array(["2020-01-01"] * 10, "M8[D]")},
        data | {"d": data["d"][:-1]},
        42,
    ]
    for rows in bad:
        with pytest.raises(ValueError, match=r"Column 'c'|'d' has type|differ in length|source is a"):
            TableSynthesizer(1.0, 1e-6).fit(rows, schema=SCHEMA, book=SpyBook(log), rng=1)
    assert "charge" not in log


def test_an_unfitted_synthesiser_says_so():
    with pytest.raises(ValueError, match="not fitted"):
        TableSynthesizer().sample(3)


def test_weights_decide_what_is_measured():
    """With the whole weight on (a, b), the pair is in the model, at a budget that pays for little."""
    synth = TableSynthesizer(0.3, 1e-6, bins=4, workload={("a", "b"): 1.0}).fit(table(), schema=SCHEMA, rng=1)
    assert synth.model_.tree.home((0, 1)) is not None
    assert synth.model_.tree.home((0, 3)) is None


# --- privacy ---------------------------------------------------------------------------------------------------------


def smaller(data):
    return {name: values[1:] for name, values in data.items()}


def published(data, **facts):
    model = TableSynthesizer(**({"epsilon": 1.0, "delta": 1e-6, "bins": 3} | facts)).operation(SCHEMA)
    answer = model.release(data)
    return [list(answer.value.tables), answer.value.tree.cliques, answer.value.domain.bins]


@pytest.mark.parametrize("facts", [{}, {"bins": PrivateBins(3)}, {"total": 60}], ids=str)
def test_a_whole_fit_passes_replay_on_neighbours(facts):
    data = table(60)
    odd = {"a": [7], "b": ["x"], "c": [None], "d": [math.inf], "e": [math.nan]}
    awkward = {name: [*values.tolist(), *odd[name]] for name, values in data.items()}
    event = TableSynthesizer(1.0, 1e-6).operation(SCHEMA).event
    for one, other in (
        (data, smaller(data)),
        (smaller(data), data),
        (awkward, {n: v.tolist() for n, v in data.items()}),
    ):
        replay(lambda rows: published(rows, **facts), one, other, event=event)


def test_replay_catches_a_fit_that_selects_on_exact_errors(monkeypatch):
    monkeypatch.setattr(Spending, "errors", lambda self, exact, rho: np.array(exact))
    data = table(60)
    data["a"][0], data["b"][0], data["c"][0] = 0, 2, 1
    event = TableSynthesizer(20.0, 1e-6).operation(SCHEMA).event

    def caught():
        try:
            replay(lambda rows: published(rows, epsilon=20.0), data, smaller(data), event=event)
        except ReplayError:
            return True
        return False

    assert any(caught() for _ in range(20))  # a selection has to tip


def test_replay_catches_a_spike_that_is_read_without_paying(monkeypatch):
    monkeypatch.setattr(Spending, "counts", lambda self, exact, rho: exact.astype(float))
    schema, data = Schema(x=Bounded(0, 1000, missing=0)), {"x": [0.0] * 40 + [3.0] * 20}
    operation = TableSynthesizer(1.0, 1e-6).operation(schema)
    with pytest.raises(ReplayError):
        replay(lambda rows: operation.release(rows).value.domain.shapes, data, smaller(data), event=operation.event)


ALARM = 1e-6


def hits(data, trials):
    """How often the marginal of (a, b) has more than half a record in the cell that only the extra record is in."""
    schema = Schema(a=Categories(range(2)), b=Categories(range(2)))
    synth = TableSynthesizer(4.0, 1e-5, total=20)
    found = [synth.fit(data, schema=schema, rng=seed).marginal(["a", "b"])[1, 1] for seed in range(trials)]
    return sum(value > 0.5 for value in found)


@pytest.mark.parametrize("trials", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_an_audit_on_neighbours_stays_below_the_claim(monkeypatch, trials):
    """Runs on each of two tables that differ in the one record of its cell; a false alarm has probability 1e-6.

    With 400 runs the two are told apart for certain.
    """
    monkeypatch.setattr(learning, "_DRAWN", 1 << 8)  # a speed knob
    without = {"a": [0] * 20, "b": [0] * 20}
    with_one = {"a": [0] * 20 + [1], "b": [0] * 20 + [1]}
    claimed = 1 / TableSynthesizer(4.0, 1e-5).operation(Schema(a=Categories(range(2)))).event.noise_multiplier
    found = mu_lower_bound((hits(with_one, trials), hits(without, trials)), trials, alarm=ALARM)
    assert found <= claimed
    assert found > 0 or trials < 400


def test_the_name_of_another_algorithm_warns():
    import discreet.synthesis

    with pytest.warns(FutureWarning, match="TableSynthesizer"):
        assert discreet.synthesis.AIM is TableSynthesizer
