"""What public facts tell is refused before the charge, and what they declare holds in what is drawn and counted."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from discreet.adjacency import Adjacency
from discreet.schema import Bounded, Categories, Dates, Declaration, Schema, Times, Unlisted
from discreet.synthesis import PrivateBins, QualityCheck, SmallDB, TableSynthesizer, learning, load, plan
from discreet.synthesis.domain import Domain
from discreet.synthesis.model import Model
from discreet.synthesis.saved import save
from discreet.synthesis.trees import junction_tree
from discreet.workloads import Prefix
from tests.operations.contract import Log, SpyBook

SCHEMA = Schema(a=Categories(range(3)), b=Categories(range(2)))
ROWS = {"a": [0, 1, 2] * 20, "b": [0, 1, 1] * 20}
GRADED = Schema(a=Categories(range(3)), g=Bounded(0, 10))
WIDE = Schema({f"c{i}": Categories(range(4)) for i in range(30)})
PAIRS = {(f"c{i}", f"c{j}"): [(0, 0)] for i in range(16) for j in range(i)}


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch):
    monkeypatch.setattr(learning, "_DRAWN", 1 << 10)  # a speed knob


def fitted(data=ROWS, schema=SCHEMA, book=None, **facts):
    return TableSynthesizer(**{"epsilon": 1.0, "delta": 1e-6} | facts).fit(data, schema=schema, book=book, rng=1)


@pytest.mark.parametrize(
    ("schema", "facts", "words"),
    [
        (SCHEMA, {"total": 1e300}, "total is 1e"),
        (SCHEMA, {"epsilon": 1e-14, "delta": 1e-15}, "so small that"),
        (SCHEMA, {"structural_zeros": {("a", "a"): [(0, 0)]}}, "different columns"),
        (SCHEMA, {"structural_zeros": {("a",): [(0,), (1,)], ("a", "b"): [(2, 0), (2, 1)]}}, "together leave nothing"),
        (SCHEMA, {"structural_zeros": {("a", "b"): [(0, 0), (1, 0), (2, 0)], ("b",): [(1,)]}}, "leave nothing"),
        (WIDE, {"structural_zeros": PAIRS}, "structural zeros keep together"),
        (WIDE, {"structural_zeros": {tuple(WIDE): []}}, "cells: at most"),
        (WIDE, {"workload": 12}, "list fewer or smaller"),
        (WIDE, {"workload": [tuple(WIDE)]}, "list fewer or smaller"),
        (SCHEMA, {"workload": True}, "workload is True"),
        (SCHEMA, {"workload": "ab"}, "workload is 'ab'"),
        (SCHEMA, {"dependencies": {"b": ("a", {0: 0, 1: 1, 2: 2})}}, "no category of 'b'"),
        (GRADED, {"dependencies": {"g": ("a", {0: math.nan, 1: 2, 2: 3})}}, "g is nan"),
        (GRADED, {"dependencies": {"g": ("a", {0: "x", 1: 2, 2: 3})}}, "g is 'x'"),
        (GRADED, {"dependencies": {"g": ("a", {0: 1, 1: 2, 2: 300})}}, "g is 300"),
        (Schema(a=Categories([0]), z=Unlisted()), {"dependencies": {"z": ("a", {0: 1})}}, "not the unit"),
        (Schema(a=Categories([0]), t=Times("2024-01-01", "2024-01-02")), {}, "Times, which is not modelled"),
        (Schema(d=Dates("2024-01-01", "2024-01-09")), {"dates": {"d": ("2024-01-01", "2024-01-02")}}, "say it once"),
        (Schema(g=Bounded(0.2, 0.8)), {"whole": ["g"]}, "no whole number"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_public_mistakes_are_found_before_the_charge(schema, facts, words):
    log = Log()
    rows = {name: [0, 1, 0] for name in schema}
    with pytest.raises(ValueError, match=words):
        fitted(rows, schema, SpyBook(log), **facts)
    assert "charge" not in log


def test_a_domain_alone_leaves_no_date_out_in_silence():
    with pytest.raises(ValueError, match="'d' is Dates, which is not modelled here"):
        Domain(Declaration(Schema(a=Categories([0]), d=Dates("2020-01-01", "2020-01-10"))))


def test_a_number_of_bins_is_one_that_is_held():
    with pytest.raises(ValueError, match="count must be"):
        PrivateBins(10**13)


@pytest.mark.parametrize("weight", [1e308, 1e-320], ids=str)
def test_weights_count_by_their_ratio_and_never_stop_a_fit(weight):
    """Sums of weights as large as these are infinite; in the smallest doubles they lose their digits."""
    weighted = fitted(workload={("a", "b"): weight, ("a",): weight})
    plain = fitted(workload={("a", "b"): 1.0, ("a",): 1.0})
    assert (weighted.marginal(["a", "b"]) == plain.marginal(["a", "b"])).all()


def test_candidates_are_no_more_than_can_be_looked_at(monkeypatch):
    facts = TableSynthesizer(workload=5).operation(Schema({f"c{i}": Categories([0, 1]) for i in range(6)})).plan
    every = facts.larger((tuple(range(6)),))
    assert len(every) == math.comb(6, 3) + math.comb(6, 4) + math.comb(6, 5)
    monkeypatch.setattr(plan, "_MOST_CANDIDATES", 22)
    assert [len(c) for c in facts.larger((tuple(range(6)),))].count(3) == 20


# --- what is declared holds ------------------------------------------------------------------------------------------


def test_zeros_of_the_same_columns_in_another_order_hold_as_well():
    zeros = {("a", "b"): [(0, 1)], ("b", "a"): [(1, 2)]}
    drawn = fitted(structural_zeros=zeros).sample(500, rng=1)
    assert not set(zip(drawn["a"].tolist(), drawn["b"].tolist(), strict=True)) & {(0, 1), (2, 1)}


def test_a_determined_number_needs_no_bins_of_its_own():
    told = {"dependencies": {"g": ("a", {0: 1, 1: 2, 2: 3})}, "bins": PrivateBins(4)}
    synth = fitted({"a": [0, 1, 2] * 9}, GRADED, **told)
    drawn = synth.sample(20, rng=1)
    assert (drawn["g"] == drawn["a"] + 1).all()
    assert synth.marginal(["g"]).sum() == pytest.approx(synth.model_.total)


@pytest.mark.parametrize("bins", [16, PrivateBins(6), [0, 0.25, 0.5, 1.5, 3]], ids=str)
def test_whole_numbers_are_drawn_whole_and_within_their_bounds(bins):
    schema = Schema(x=Bounded(0, 3))
    synth = fitted({"x": [0, 1, 2, 3] * 20}, schema, bins={"x": bins}, whole=["x"], epsilon=10.0)
    drawn = synth.sample(200, rng=1)["x"]
    assert set(drawn[~np.isnan(drawn)].tolist()) <= {0.0, 1.0, 2.0, 3.0}
    assert synth.count({"x": (0, 3)}) == pytest.approx(synth.model_.total - synth.count({"x": None}))


def test_a_bin_beyond_the_bounds_holds_nothing_and_one_across_them_counts_by_its_inside():
    domain = Domain(Declaration(Schema(x=Bounded(0, 1, missing=0))), bins=[-5, -1, 0.5, 9])
    assert domain.between("x", 0, 0.75).tolist() == pytest.approx([0.0, 1.0, 0.5])


def test_a_day_is_counted_and_bins_of_days_end_at_days():
    """Ten days in at most eight cells: each has at least one."""
    rows = {"a": [0, 1, 2] * 20, "d": [f"2020-01-{1 + i % 10:02d}" for i in range(60)]}
    schema = Schema(a=Categories(range(3)), d=Dates("2020-01-01", "2020-01-10"))
    synth = fitted(rows, schema, bins=PrivateBins(8), epsilon=20.0)
    days = [f"2020-01-{day:02d}" for day in range(1, 11)]
    each = [synth.count({"d": (day, day)}) for day in days]
    assert min(each) > 0
    assert sum(each) == pytest.approx(synth.count({"d": (days[0], days[-1])}))
    assert set(synth.sample(100, rng=1)["d"]) <= {*days, None}


def test_bounds_that_few_numbers_lie_between_have_fewer_bins():
    """Found when the bins are chosen, after the charge, unless steps that coincide are one."""
    schema = Schema(x=Bounded(1, 1 + 1e-15))
    assert len(fitted({"x": [1, 2]}, schema, bins=PrivateBins(8)).model_.domain.edges("x")) < 8


def test_a_column_whose_chosen_bins_are_one_is_left_alone():
    """Sixty records pay for no second cell. A residual of one cell has no sensitivity, and is not measured."""
    schema = Schema(a=Categories(range(3)), x=Bounded(0, 100, missing=0))
    rows = {"a": [0, 1, 2] * 20, "x": [0, 1, 1] * 20}
    synth = fitted(rows, schema, bins=PrivateBins(4), whole=["x"], epsilon=0.1)
    assert synth.marginal(["a", "x"]).shape == (3, 1)
    assert set(synth.sample(50, rng=1)["x"].tolist()) <= set(range(101))


def test_more_records_than_are_held_are_refused():
    with pytest.raises(ValueError, match="n must be a whole number of at most 1073741824"):
        fitted().sample(10**15)


def test_a_blank_row_is_in_a_cell_of_its_own_so_zero_out_is_refused():
    """Blanking a row moves two cells by one: twice what one row more or less does."""
    with pytest.raises(ValueError, match="zero-out"):
        QualityCheck(synthetic=ROWS, schema=SCHEMA, n=60, epsilon=1.0, adjacency=Adjacency.ZERO_OUT)


def test_a_data_set_of_one_cell_and_too_many_records_is_refused():
    with pytest.raises(ValueError, match="records over 1 cells"):
        SmallDB(workload=Prefix(1), alpha=1e-6, epsilon=1.0)


# --- files -----------------------------------------------------------------------------------------------------------


def kept(tmp_path, **told):
    """A saved model: its path, its arrays and its facts."""
    facts = Declaration(Schema(a=Categories(range(3)), b=Categories(range(2)), c=Categories(range(2))))
    tree = junction_tree((3, 2, 2), [(0, 1), (1, 2)])
    assert (tree.cliques, tree.parents) == (((0, 1), (1, 2)), (0, 0))
    made = Model(Domain(facts, **told), tree, [np.full((3, 2), 10.0), np.full((2, 2), 15.0)], "columns")
    path = tmp_path / "model.npz"
    save(made, path)
    with np.load(path) as arrays:
        held = dict(arrays)
    return path, held, json.loads(bytes(held["facts"]).decode())


def test_numpy_s_numbers_in_public_facts_are_kept(tmp_path):
    zeros = {("a", "b"): [(np.int64(0), np.int64(1))]}
    path, _, facts = kept(tmp_path, structural_zeros=zeros)
    assert facts["structural_zeros"] == [[["a", "b"], [[0, 1]]]]
    assert load(path).domain.impossible[0, 1].tolist() == [[False, True], [False, False], [False, False]]


def test_every_single_byte_changed_and_every_fact_replaced_gives_a_model_or_one_kind_of_refusal(tmp_path):
    path, held, facts = kept(tmp_path)
    whole = path.read_bytes()
    choose = np.random.default_rng(0)
    refused = 0
    for place in choose.integers(0, len(whole), 150):
        changed = bytearray(whole)
        changed[place] ^= int(choose.integers(1, 256))
        path.write_bytes(changed)
        refused += not _loads(path)
    assert refused > 100
    for name, junk in itertools.product(facts, [None, -1, 1.5, "x", [], {}, [[0, 0]], [["a"]]]):
        if json.dumps(facts[name]) != json.dumps(junk):
            np.savez(path, **held | {"facts": np.frombuffer(json.dumps(facts | {name: junk}).encode(), np.uint8)})
            _loads(path)


def _loads(path):
    try:
        load(path).sample(3, rng=1)
    except ValueError as error:
        if "holds no model" not in str(error):
            raise
        return False
    return True


@pytest.mark.parametrize(
    ("change", "tables"),
    [
        ({"cliques": [[1, 0], [1, 2]]}, {"table0": np.full((2, 3), 10.0)}),
        ({"cliques": [[0, 1], [1, 2], [0, 2]], "parents": [0, 0, 1]}, {"table2": np.full((3, 2), 10.0)}),
        ({"parents": [0, 1]}, {}),
        ({"cliques": [[0, 1], [1.5, 2]]}, {}),
        ({}, {"table1": np.full((2, 2), 99.0)}),
    ],
    ids=["unsorted", "no running intersection", "its own parent", "no place", "another total"],
)
def test_cliques_that_make_no_tree_are_refused(tmp_path, change, tables):
    path, held, facts = kept(tmp_path)
    np.savez(path, **held | tables | {"facts": np.frombuffer(json.dumps(facts | change).encode(), np.uint8)})
    with pytest.raises(ValueError, match=r"make no tree|different totals|cliques is"):
        load(path)
