"""Trees, raking, drawing, answers and files."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest

from discreet.random import seeded
from discreet.schema import Bounded, Categories, Declaration, Schema
from discreet.synthesis import load
from discreet.synthesis.counting import counts
from discreet.synthesis.domain import Domain
from discreet.synthesis.drawing import draw_codes
from discreet.synthesis.model import Model
from discreet.synthesis.raking import Target, marginal, rake
from discreet.synthesis.saved import save
from discreet.synthesis.trees import junction_tree, tree_cells

SIZES = (2, 3, 2, 4, 2)
SETS = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)]
TREE = junction_tree(SIZES, SETS)
JOINT = np.random.default_rng(1).dirichlet(np.full(96, 0.5)).reshape(SIZES) * 1000


def sums(table, columns):
    return table.sum(axis=tuple(i for i in range(5) if i not in columns))


def fitted(sets=SETS, softness=1e-4):
    targets = [Target(c, sums(JOINT, c), 1.0) for c in sets]
    return rake(TREE, targets, 1000.0, sweeps=500, tolerance=1e-9, softness=softness)


def whole_joint(tables):
    """The distribution that the tables of a tree make, cell by cell."""
    joint = np.ones(SIZES)
    for place, clique in enumerate(TREE.cliques):
        shared = TREE.separator(place)

        def spread(columns, table):
            return table.reshape(tuple(SIZES[i] if i in columns else 1 for i in range(5)))

        joint = joint * spread(clique, tables[place])
        if place:
            joint = joint / spread(shared, marginal(tables[place], clique, shared))
    return joint


def test_a_tree_holds_every_set_and_has_the_running_intersection():
    for sets in ([], SETS, list(combinations(range(5), 2))):
        tree = junction_tree(SIZES, sets)
        assert all(tree.home(c) is not None for c in sets)
        assert {i for clique in tree.cliques for i in clique} == set(range(5))
        for place in range(1, len(tree.cliques)):
            earlier = {i for clique in tree.cliques[:place] for i in clique}
            assert set(tree.cliques[place]) & earlier == set(tree.separator(place))
        assert tree_cells(SIZES, sets) == tree.cells


def test_raking_meets_consistent_counts_and_its_tables_agree():
    tables = fitted()
    for c in SETS:
        home = TREE.home(c)
        np.testing.assert_allclose(marginal(tables[home], TREE.cliques[home], c), sums(JOINT, c), rtol=2e-3, atol=0.05)
    for place in range(1, len(tables)):
        shared, parent = TREE.separator(place), TREE.parents[place]
        np.testing.assert_allclose(
            marginal(tables[place], TREE.cliques[place], shared),
            marginal(tables[parent], TREE.cliques[parent], shared),
        )


def test_raking_finds_the_distribution_of_most_entropy():
    """Plain proportional fitting of the whole table, which needs no tree, is the oracle."""
    oracle = np.full(SIZES, 1000 / 96)
    for _ in range(500):
        for c in SETS:
            ratio = sums(JOINT, c) / sums(oracle, c)
            oracle = oracle * ratio.reshape(tuple(SIZES[i] if i in c else 1 for i in range(5)))
    np.testing.assert_allclose(whole_joint(fitted()), oracle, rtol=0.02, atol=0.02)


def test_one_step_solves_the_stated_problem():
    """At the minimum of KL(P'|P) + |M P' - y|²/2ηv, log(P'/P) + (M P' - y)/ηv is zero in every cell."""
    tree, y = junction_tree((2, 3), [(0, 1)]), np.array([[300.0, -40.0, 90.0], [70.0, 500.0, 5.0]])
    (table,) = rake(tree, [Target((0, 1), y, 400.0)], 1000.0, sweeps=1, softness=0.5)
    for total in np.linspace(500, 2000, 4000):  # what it was before it was scaled to the total
        before = table * total / 1000
        if np.abs(np.log(before / (1000 / 6)) + (before - y) / 200).max() < 0.005:
            return
    raise AssertionError("no multiple of the table is the minimum")


def test_fewer_sweeps_leave_noisy_counts_less_met():
    noisy = sums(JOINT, (0, 1)) + np.array([[40.0, -30.0, 20.0], [-25.0, 30.0, -35.0]])
    home = TREE.home((0, 1))
    gaps = []
    for sweeps in (1, 5, 200):
        tables = rake(TREE, [Target((0, 1), noisy, 900.0)], 1000.0, sweeps=sweeps, tolerance=0.0, softness=1.0)
        gaps.append(np.abs(marginal(tables[home], TREE.cliques[home], (0, 1)) - noisy).sum())
    assert gaps[0] > gaps[1] > gaps[2]


def test_negative_and_contradictory_counts_still_give_a_distribution():
    targets = [
        Target((0, 1), np.array([[-500.0, 3.0, 900.0], [-2.0, -1e6, 100.0]]), 1e-3),
        Target((1,), np.array([1e6, 0.0, 0.0]), 1e-3),
    ]
    tables = rake(TREE, targets, 1000.0)
    assert all(np.isfinite(table).all() and (table >= 0).all() for table in tables)
    assert tables[0].sum() == pytest.approx(1000.0)


def test_impossible_combinations_get_no_mass():
    masks = [None] * len(TREE.cliques)
    home = TREE.home((0, 1))
    shape = tuple(SIZES[i] if i in (0, 1) else 1 for i in TREE.cliques[home])
    masks[home] = np.array([[0.0, 1.0, 1.0], [1.0, 1.0, 0.0]]).reshape(shape)
    tables = rake(TREE, [Target((3,), np.array([1.0, 2.0, 3.0, 4.0]) * 100, 1.0)], 1000.0, possible=masks)
    found = marginal(tables[home], TREE.cliques[home], (0, 1))
    assert found[0, 0] == found[1, 2] == 0.0
    assert found.sum() == pytest.approx(1000.0)


def test_drawn_records_have_the_models_counts_closer_than_chance():
    tables, n = fitted(), 20_000
    drawn = draw_codes(TREE, tables, n, seeded(3))
    for place, clique in enumerate(TREE.cliques):
        share = tables[place] / tables[place].sum()
        gap = np.abs(counts(drawn, clique, SIZES) / n - share)
        assert (gap <= 5 * np.sqrt(share / n) + 1e-3).all()
    root = TREE.cliques[0]
    assert np.abs(counts(drawn, root, SIZES) - n * tables[0] / tables[0].sum()).max() <= 1.0001


FACTS = Declaration(
    Schema(
        a=Categories(["x", "y"]),
        b=Categories([1, 2], other=0),
        c=Categories([False, True]),
        d=Bounded(0, 30),
        e=Categories(["no", "yes"]),
        f=Bounded(0, 9, missing=0),
    )
)
DOMAIN = Domain(
    FACTS, bins={"d": [0, 10, 20, 30]}, dependencies={"f": ("a", {"x": 3, "y": 5})}, structural_zeros={("a", "e"): []}
)


def model(kind="columns"):
    return Model(DOMAIN, TREE, fitted(), kind, {"epsilon": 1.0})


def test_marginals_across_the_tree_are_those_of_the_whole_distribution():
    joint, names = whole_joint(fitted()), ["a", "b", "c", "d", "e"]
    for size in (1, 2, 3):
        for columns in combinations(range(5), size):
            found = model().marginal([names[i] for i in columns])
            np.testing.assert_allclose(found, sums(joint, columns), rtol=1e-6, atol=1e-9)
    turned = model().marginal(["e", "a"])
    np.testing.assert_allclose(turned, model().marginal(["a", "e"]).T)


def test_a_determined_column_is_counted_by_what_determines_it():
    table, alone = model().marginal(["f", "b"]), model().marginal(["a", "b"])
    np.testing.assert_allclose(table.sum(axis=1)[[5, 8]], alone.sum(axis=1))
    assert model().labels("f")[5][0] <= 3 < model().labels("f")[5][1]
    assert table.sum() == pytest.approx(alone.sum())


def test_counts_take_values_lists_and_ranges():
    found, table = model(), model().marginal(["a", "d"])
    assert found.count({"a": "x"}) == pytest.approx(table[0].sum())
    assert found.count({"a": ["x", "y"], "d": (0, 15)}) == pytest.approx(table[:, 0].sum() + table[:, 1].sum() / 2)
    assert found.count({"d": None}) == pytest.approx(table[:, 3].sum())
    assert found.count({}) == pytest.approx(found.total)
    for bad in ({"a": "z"}, {"d": 3}, {"g": 1}):
        with pytest.raises(ValueError, match=r"where (asks|must have)|not among"):
            found.count(bad)


@pytest.mark.parametrize(("kind", "library"), [("pandas", "pandas"), ("polars", "polars"), ("pyarrow", "pyarrow")])
def test_a_saved_model_draws_the_same_frame(tmp_path, kind, library):
    before = model(kind)
    save(before, tmp_path / "model.npz")
    after = load(tmp_path / "model.npz")
    assert (after.tree, after.kind, after.statement) == (before.tree, before.kind, before.statement)
    assert after.domain.sizes == DOMAIN.sizes
    drawn, again = before.sample(50, rng=1), after.sample(50, rng=1)
    assert type(drawn).__module__.split(".")[0] == library
    assert drawn.equals(again)
    assert len(drawn) == 50


def test_a_file_that_is_no_model_is_refused_and_runs_nothing(tmp_path):
    bad = tmp_path / "bad.npz"
    facts = np.frombuffer(json.dumps({"format": "other"}).encode(), np.uint8)
    for write in (
        lambda: bad.write_bytes(b"PK\x03\x04 nothing"),
        lambda: bad.write_bytes(b"cos\nsystem\n(S'true'\ntR."),  # a pickle
        lambda: np.savez(bad, facts=facts),
        lambda: np.savez(bad, facts=np.array([{"format": 1}], object)),
    ):
        write()
        with pytest.raises(ValueError, match="holds no model"):
            load(bad)
    save(model(), bad)
    with np.load(bad) as arrays:
        kept = dict(arrays)
    np.savez(bad, **(kept | {"table0": kept["table0"] - 1e9}))
    with pytest.raises(ValueError, match="a table does not fit"):
        load(bad)
