"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.encoding import Encoder
from discreet.random import seeded
from discreet.schema import Bounded, Categories, Declaration, Schema
from discreet.synthesis import MWEM, QualityCheck, learning, mwem, quality, small_db
from discreet.synthesis.coded_table import CodedTable
from discreet.synthesis.domain import Domain
from discreet.synthesis.drawing import _quantiles
from discreet.synthesis.raking import Target, rake
from discreet.synthesis.saved import load, save
from discreet.synthesis.scores import pair_trends
from discreet.synthesis.small_db import SmallDB, _log10_multisets
from discreet.synthesis.trees import junction_tree
from discreet.workloads import Prefix
from tests.frozen import unfrozen
from tests.synthesis.test_model import model


def test_nothing_that_was_stated_can_be_changed_afterwards():
    # what a run adds up, and parameters, set again as an estimator's are: the fit that states a cost is frozen
    assert unfrozen("synthesis") == {"Evidence", "Evolve", "LinkedSynthesizer", "Spending", "TableSynthesizer"}


def test_records_that_cannot_be_are_left_out_by_their_own_cells():
    facts = Declaration(Schema(a=Categories(["x", "y"]), b=Categories(["u", "v"])))
    domain = Domain(facts, {}, {("a", "b"): [("x", "u")]})
    codes = domain.codes(domain.encoder.read({"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "v"]}))
    assert codes.tolist() == [[0, 1, 1], [1, 0, 1]]


def test_the_offset_of_a_group_lies_anywhere_in_a_record():
    """One record of two equal cells: each has an even chance; forty of one kind happen once in 10^12."""
    drawn = {int(_quantiles(np.array([[1.0, 1.0]]), np.array([0]), seeded(i))[0]) for i in range(40)}
    assert drawn == {0, 1}


@pytest.mark.parametrize(("passes", "used"), [(1, [1, 1, 1]), (2, [1, 2, 3])])
def test_several_passes_go_over_all_that_was_measured_and_one_over_the_last(passes, used, monkeypatch):
    seen = []
    monkeypatch.setattr(
        mwem, "_multiplicative_weights", lambda model, measured, n, passes: seen.append(len(measured)) or model
    )
    MWEM(workload=Prefix(4), epsilon=1.0, rounds=3, passes=passes, n=10).release([4, 3, 2, 1], rng=1)
    assert seen == used


def test_what_multiplicative_weights_need_is_stated_by_name():
    with pytest.raises(TypeError, match="positional"):
        MWEM(Prefix(4), epsilon=1.0, rounds=2, n=10)


@pytest.mark.parametrize(("cells", "m"), [(2, 5), (3, 4), (6, 40), (40, 6)])
def test_multisets_are_counted_by_binomial_coefficients(cells, m):
    assert _log10_multisets(cells, m) == pytest.approx(math.log10(math.comb(cells + m - 1, m)), rel=1e-12)


def test_pairs_of_many_categories_are_told_apart():
    schema = Schema(a=Categories(range(3)), b=Categories(range(100)))
    one, two = ({"a": [i % 3 for i in range(100)], "b": [(i + k) % 100 for i in range(100)]} for k in (0, 1))
    tables = [CodedTable(Encoder(Declaration(schema)).read(table), 4) for table in (one, two)]
    same = [CodedTable(Encoder(Declaration(schema)).read(one), 4) for _ in range(2)]
    assert pair_trends(*same) == {("a", "b"): 1.0}
    assert pair_trends(*tables)["a", "b"] < 0.1


def test_a_number_at_the_lower_bound_is_in_the_first_bin():
    table = CodedTable(Encoder(Declaration(Schema(x=Bounded(0, 4)))).read({"x": [0.0, 1.5, 4.0, math.nan]}), 4)
    assert table.codes["x"].tolist() == [0, 1, 3, 4]


def test_the_error_of_a_column_is_half_the_difference_of_its_shares():
    schema = Schema(a=Categories(["x", "y"]), b=Categories(["u", "v"]))
    facts = quality({"a": ["x"] * 4, "b": ["u"] * 4}, {"a": ["x", "x", "x", "y"], "b": ["u"] * 4}, schema=schema)
    assert [column["error"] for column in facts["columns"]] == [0.25, 0.0]


def test_a_check_against_a_single_record_is_one():
    synthetic = {"a": ["x", "y"]}
    check = QualityCheck(synthetic=synthetic, schema=Schema(a=Categories(["x", "y"])), n=1, epsilon=1.0)
    assert check.n == 1
    with pytest.raises(ValueError, match="n is 0"):
        QualityCheck(synthetic=synthetic, schema=Schema(a=Categories(["x", "y"])), n=0, epsilon=1.0)


def test_what_a_far_clique_knows_reaches_the_root():
    """A chain of three: the last one's counts of the third column are far more exact than those in the middle."""
    tree = junction_tree((5, 2, 2, 2), [(0, 1), (1, 2), (2, 3)])
    assert (tree.cliques, tree.parents) == (((0, 1), (1, 2), (2, 3)), (0, 0, 1))
    exact = np.array([[40.0, 40.0], [10.0, 10.0]])
    targets = [Target((0, 1), np.full((5, 2), 10.0), 1.0), Target((1, 2), np.full((2, 2), 25.0), 1e4)]
    _, middle, last = rake(tree, [*targets, Target((2, 3), exact, 1e-2)], 100.0)
    assert middle.sum(axis=0) == pytest.approx([80.0, 20.0], abs=2)
    assert last == pytest.approx(exact, abs=2)


@pytest.mark.parametrize("wrong", [lambda table: table * np.nan, lambda table: table[..., None]])
def test_a_saved_table_is_finite_and_of_the_shape_of_its_columns(wrong, tmp_path):
    save(model(), tmp_path / "model")
    with np.load(tmp_path / "model") as arrays:
        kept = dict(arrays)
    with open(tmp_path / "model", "wb") as file:
        np.savez(file, **kept | {"table0": wrong(kept["table0"])})
    with pytest.raises(ValueError, match="a table does not fit"):
        load(tmp_path / "model")


def test_so_many_counts_of_all_small_data_sets_are_held_and_no_more(monkeypatch):
    counts = SmallDB(workload=Prefix(4), alpha=0.9, epsilon=1.0).candidates * 4
    monkeypatch.setattr(small_db, "_MOST_COUNTS", counts)
    assert SmallDB(workload=Prefix(4), alpha=0.9, epsilon=1.0)
    monkeypatch.setattr(small_db, "_MOST_COUNTS", counts - 1)
    with pytest.raises(ValueError, match="are enumerated"):
        SmallDB(workload=Prefix(4), alpha=0.9, epsilon=1.0)


@pytest.mark.parametrize(
    ("chosen", "last", "measured"), [([(0, 1)], True, {(0, 1)}), ([], True, {(0,)}), ([], False, set())]
)
def test_what_is_worth_it_is_measured_and_at_last_what_was_before(chosen, last, measured, monkeypatch):
    found = set()
    monkeypatch.setattr(learning, "choose", lambda *_: chosen)
    monkeypatch.setattr(learning, "weigh", lambda *_: {})
    monkeypatch.setattr(learning, "divide_budget", lambda sets, *_: dict.fromkeys(sets, 1.0))
    run = SimpleNamespace(
        domain=SimpleNamespace(sizes=(2, 2), impossible=()),
        plan=SimpleNamespace(workload=None, max_cells=100, total=None),
        evidence=SimpleNamespace(sets=[(0,)], measure=lambda codes, budgets, spending: found.update(budgets)),
        codes=None,
        spending=None,
        known=frozenset(),
        _adopted=frozenset(),
    )
    learning.LearningRun.improve(run, {}, 1.0, last=last)
    assert found == measured
