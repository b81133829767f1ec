"""Rows under conditions, declared inequalities, and public margins; none of it costs anything."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet.random import seeded
from discreet.schema import Bounded, Categories, Dates, Declaration, Schema
from discreet.synthesis import TableSynthesizer, load
from discreet.synthesis.conditioning import condition, rake_to_margins
from discreet.synthesis.domain import Domain
from discreet.synthesis.inequalities import contradiction, parse, tightest_ranges
from discreet.synthesis.model import Model
from discreet.synthesis.raking import Target, marginal, rake
from discreet.synthesis.trees import junction_tree
from tests.operations.contract import Log, SpyBook

SIZES = (2, 3, 2, 4)
TREE = junction_tree(SIZES, [(0, 1), (1, 2), (2, 3)])
JOINT = np.random.default_rng(1).dirichlet(np.full(48, 0.5)).reshape(SIZES) * 1000


def chain():
    """Tables along a chain of four columns, and the whole distribution that they make."""
    targets = [Target(c, JOINT.sum(axis=tuple({0, 1, 2, 3} - set(c))), 1.0) for c in [(0, 1), (1, 2), (2, 3)]]
    tables = rake(TREE, targets, 1000.0, sweeps=300, tolerance=1e-9, softness=1e-4)
    return tables, whole_joint(tables)


def whole_joint(tables):
    joint = np.ones(SIZES)
    for place, clique in enumerate(TREE.cliques):
        shared = TREE.separator(place)
        over = marginal(tables[place], clique, shared) if place else np.ones(())
        for columns, table, power in ((clique, tables[place], 1), (shared if place else (), over, -1)):
            shape = tuple(SIZES[i] if i in columns else 1 for i in range(4))
            joint = joint * np.where(table > 0, table, 1.0 if power < 0 else table).reshape(shape) ** power
    return joint


def test_a_conditioned_tree_is_the_conditioned_distribution():
    tables, joint = chain()
    factors = {0: np.array([0.0, 1.0]), 3: np.array([1.0, 0.0, 0.5, 0.0])}
    found = condition(TREE, tables, factors)
    expected = joint * factors[0][:, None, None, None] * factors[3]
    np.testing.assert_allclose(whole_joint(found), expected, atol=1e-9)
    for table, clique in zip(found, TREE.cliques, strict=True):
        np.testing.assert_allclose(table, expected.sum(axis=tuple({0, 1, 2, 3} - set(clique))), atol=1e-9)


def test_raked_tables_are_proportional_fitting_of_the_whole_table():
    tables, joint = chain()
    margins = {(0,): np.array([300.0, 200.0]), (2,): np.array([50.0, 450.0])}
    found = rake_to_margins(TREE, tables, margins)
    for _ in range(300):
        joint = joint * (margins[(0,)] / joint.sum(axis=(1, 2, 3)))[:, None, None, None]
        joint = joint * (margins[(2,)] / joint.sum(axis=(0, 1, 3)))[:, None]
    np.testing.assert_allclose(whole_joint(found), joint, atol=1e-5)


# --- rows under conditions -------------------------------------------------------------------------------------------

SCHEMA = Schema(
    sex=Categories(["f", "m"]),
    age=Bounded(0, 99, whole=True),
    school=Bounded(0, 20, missing=0, whole=True),
    came=Dates("2024-01-01", "2024-12-31"),
    left=Dates("2024-01-01", "2024-12-31"),
    rate=Bounded(0, 1, missing=0),
)
CONSTRAINTS = ["age >= school + 5", "left >= came"]


def people(size=4000):
    """Made up: nobody leaves before he came, or learned before five; women are older; every ninth age is missing."""
    draw = np.random.default_rng(5)
    sex = np.where(draw.random(size) < 0.4, "f", "m")
    age = np.clip(draw.normal(np.where(sex == "f", 50, 30), 12), 5, 99).round()
    school = np.minimum(draw.integers(0, 21, size), age - 5)
    came = draw.integers(0, 366, size)
    left = np.minimum(came + draw.integers(0, 40, size), 365)
    first = np.datetime64("2024-01-01")
    return pl.DataFrame(
        {
            "age": np.where(np.arange(size) % 9 == 0, None, age.astype(int)).tolist(),
            "sex": sex,
            "school": school.astype(int),
            "came": first + came.astype("m8[D]"),
            "left": first + left.astype("m8[D]"),
            "rate": draw.random(size),
        }
    )


@pytest.fixture(scope="module")
def synth():
    return TableSynthesizer(5.0, 1e-9, workload=2, constraints=CONSTRAINTS).fit(people(), schema=SCHEMA, rng=1)


def test_every_row_satisfies_the_constraints_and_missing_entries_stay(synth):
    rows = synth.sample(4000, rng=2)
    assert (rows["age"] >= rows["school"] + 5).drop_nulls().all()
    assert (rows["left"] >= rows["came"]).all()
    assert rows["age"].null_count() == pytest.approx(4000 / 9, rel=0.2)
    assert rows["age"].min() >= 5
    assert rows["age"].mean() == pytest.approx(people()["age"].mean(), rel=0.05)
    assert 0 < (rows["left"] - rows["came"]).dt.total_days().median() < 45


def test_without_the_constraints_rows_break_them():
    """What the test above would not notice if the data alone forced it."""
    rows = TableSynthesizer(5.0, 1e-9, workload=2).fit(people(), schema=SCHEMA, rng=1).sample(4000, rng=2)
    assert (rows["left"] < rows["came"]).sum() > 20


def test_rows_are_as_asked_and_otherwise_as_the_model_says(synth):
    women = synth.sample(3000, rng=3, where={"sex": "f"})
    assert women["sex"].unique().to_list() == ["f"]
    real = people().filter(pl.col("sex") == "f")
    assert women["age"].mean() == pytest.approx(real["age"].mean(), rel=0.05)
    assert len(synth.sample(rng=3, where={"sex": "f"})) == pytest.approx(synth.count({"sex": "f"}), abs=1)
    asked = {"age": (20, 25), "rate": (0.25, 0.5), "came": ("2024-03-01", "2024-03-31")}
    rows = synth.sample(500, rng=4, where=asked)
    assert rows["age"].is_between(20, 25).all()
    assert rows["rate"].is_between(0.25, 0.5).all()
    assert rows["rate"].n_unique() > 100
    assert rows["came"].dt.month().unique().to_list() == [3]
    assert (rows["age"] >= rows["school"] + 5).all()
    assert (rows["left"] >= rows["came"]).all()
    assert synth.sample(200, rng=5, where={"age": None})["age"].null_count() == 200
    assert set(synth.sample(200, rng=5, where={"sex": ["f", "m"]})["sex"]) == {"f", "m"}


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"sex": "x"}, "none of its labels"),
        ({"height": 3}, "not among the columns"),
        ({"age": (200, 300)}, "gives no probability"),
        ({"age": (0, 3)}, "gives no probability|contradict"),
        ({"age": (30, 20)}, "the lower one first"),
        ({"age": 30}, "must have a pair"),
        (
            {"left": ("2024-01-01", "2024-01-10"), "came": ("2024-02-01", "2024-02-10")},
            "gives no probability|contradict",
        ),
    ],
)
def test_what_cannot_be_is_refused(synth, where, said):
    with pytest.raises(ValueError, match=said):
        synth.sample(10, rng=1, where=where)


def test_a_determined_column_may_be_asked_for():
    schema = Schema(town=Categories(["a", "b", "c"]), land=Categories(["x", "y"]), tax=Bounded(0, 10))
    facts = {"land": ("town", {"a": "x", "b": "y", "c": "y"}), "tax": ("town", {"a": 1, "b": 2, "c": 3})}
    table = {"town": ["a", "b", "c", "c"] * 100}
    fitted = TableSynthesizer(5.0, 1e-9, dependencies=facts).fit(table, schema=schema, rng=1)
    assert set(fitted.sample(50, rng=1, where={"land": "y"})["town"]) == {"b", "c"}
    assert set(fitted.sample(50, rng=1, where={"tax": (1.5, 2.5)})["town"]) == {"b"}


def test_a_saved_model_keeps_its_constraints(synth, tmp_path):
    synth.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.domain.constraints == tuple(CONSTRAINTS)
    asked = {"sex": "m", "age": (5, 12)}
    assert again.sample(300, rng=7, where=asked).equals(synth.sample(300, rng=7, where=asked))


def test_a_row_that_breaks_a_constraint_is_left_out_by_itself():
    """Of two neighbours the codes differ in one row at most, whatever that row is."""
    schema = Schema(a=Bounded(0, 10, missing=0, whole=True), b=Bounded(0, 10, missing=0, whole=True))
    domain = Domain(Declaration(schema), bins=list(range(11)), constraints=("a >= b",))
    read = domain.encoder.read
    rows = {"a": [5, 9, 2, 7], "b": [1, 9, 8, 7]}
    assert domain.codes(read(rows)).tolist() == [[5, 9, 7], [1, 9, 7]]
    rows["b"][2] = 1
    assert domain.codes(read(rows)).tolist() == [[5, 9, 2, 7], [1, 9, 1, 7]]


# --- what is refused before the charge -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        (["age >= school + 200"], "can never hold within the bounds: 'age >= school \\+ 200'"),
        (["age >= school", "age < school", "left >= came"], "'age >= school' and 'age < school'"),
        (["left > came", "came >= left"], "'left > came' and 'came >= left'"),
        (["age >= tall"], "'tall' is no modelled column"),
        (["age >= sex"], "'sex' is no modelled column"),
        (["age >= age"], "with itself"),
        (["age == school"], "write 'a >= b'"),
        (["age > rate"], "write '>='"),
        ([3], "write 'a >= b'"),
        ("age >= school", "must be a list"),
    ],
)
def test_constraints_that_cannot_hold_are_refused_by_name_before_the_charge(constraints, said):
    log = Log()
    with pytest.raises(ValueError, match=said):
        TableSynthesizer(1.0, 1e-9, constraints=constraints).fit(people(90), schema=SCHEMA, book=SpyBook(log))
    assert "charge" not in log


def test_bounds_are_met_exactly_by_decimals():
    """0.1 + 0.2 is more than 0.3 in doubles, and not in decimals; the row that remains is drawn."""
    schema = Schema(a=Bounded(0, 0.3, missing=0), b=Bounded(0.1, 0.2, missing=0.1))
    synth = TableSynthesizer(1.0, 1e-9, bins=1, constraints=["a >= b + 0.2"])
    rows = synth.fit({"a": [0.3] * 99, "b": [0.1] * 99}, schema=schema, rng=1).sample(20, rng=1)
    assert rows["a"].tolist() == pytest.approx([0.3] * 20)
    assert rows["b"].tolist() == pytest.approx([0.1] * 20)


def test_inequalities_are_understood():
    whole = {"a": True, "b": True, "c": False, "a + 1": False}
    for text, left, right, least in [
        ("a>=b", "a", "b", 0),
        ("a < b - 2", "b", "a", 3),
        ("a > b + 1.5", "a", "b", 2),
        ("c >= a + 1.5", "c", "a", 1.5),
        ("c <= a + 1", "a + 1", "c", 0),
    ]:
        found = parse(text, whole)
        assert (found.left, found.right, found.least) == (left, right, least)
    chained = [parse(text, whole) for text in ("a >= b + 3", "b >= c + 2")]
    assert tightest_ranges(chained, dict.fromkeys("abc", (0, 10))) == {"a": (5, 10), "b": (2, 7), "c": (0, 5)}
    assert contradiction(chained, dict.fromkeys("abc", (0, 4))) == ["a >= b + 3", "b >= c + 2"]


def test_structural_zeros_that_contradict_are_refused_by_name_before_the_charge():
    schema = Schema(sex=Categories(["f", "m"]), role=Categories(["wife", "husband"]))
    zeros = {("sex",): [("f",)], ("role", "sex"): [("wife", "m"), ("husband", "m")], ("role",): [("husband",)]}
    log = Log()
    with pytest.raises(ValueError, match=r"structural_zeros of \('sex',\) and \('sex', 'role'\) together"):
        TableSynthesizer(1.0, structural_zeros=zeros).fit({"sex": [], "role": []}, schema=schema, book=SpyBook(log))
    assert "charge" not in log


# --- public margins --------------------------------------------------------------------------------------------------


def small_model():
    facts = Declaration(
        Schema(sex=Categories(["f", "m"]), sick=Categories(["no", "yes"]), age=Bounded(0, 9, missing=0))
    )
    tree = junction_tree((2, 2, 3), [(0, 1), (1, 2)])
    tables = [np.ones(tree.shape(c)) * 120 / np.prod(tree.shape(c)) for c in tree.cliques]
    tables[tree.cliques.index((0, 1))][:] = [[30, 10], [50, 30]]
    tables[tree.cliques.index((1, 2))][:] = [[30, 30, 20], [10, 10, 20]]
    return Model(Domain(facts, bins=3), tree, tables, "columns")


def test_margins_are_met_and_conditional_shares_stay():
    model = small_model().rake_to({"sex": {"m": 500, "f": 1500}})
    assert model.total == pytest.approx(2000)
    np.testing.assert_allclose(model.marginal(["sex", "sick"]), [[1125, 375], [312.5, 187.5]])
    again = small_model().rake_to({"sex": {"f": 0.5, "m": 0.5}, ("sick",): {("no",): 0.25, ("yes",): 0.75}})
    assert again.total == pytest.approx(120)
    np.testing.assert_allclose(again.marginal(["sex"]), [60, 60], rtol=1e-6)
    np.testing.assert_allclose(again.marginal(["sick"]), [30, 90], rtol=1e-6)
    both = {("sick", "sex"): {("no", "f"): 1, ("no", "m"): 2, ("yes", "f"): 3, ("yes", "m"): 4}}
    np.testing.assert_allclose(small_model().rake_to(both).marginal(["sex", "sick"]), [[1, 3], [2, 4]])
    assert (np.asarray(again.sample(400, rng=1)["sick"]) == "yes").mean() == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize(
    ("margins", "said"),
    [
        ({}, "names no columns"),
        ({"sex": {"f": 1.0}}, r"each combination of labels: see \('m',\)"),
        ({"sex": {"f": 1.0, "m": 2, "x": 3}}, r"each combination of labels: see \('x',\)"),
        ({"sex": {"f": 0, "m": 0}}, "add up to nothing"),
        ({"sex": {"f": -1, "m": 5}}, "margins is -1"),
        ({"age": {0: 5}}, "columns of categories"),
        ({"sex": {"f": 1, "m": 2}, "sick": {"no": 1, "yes": 9}}, "different totals"),
        ({"sex": {"f": 1, "m": 2}, ("sex",): {"f": 1, "m": 2}}, "twice"),
        ({"what": {}}, "not among the columns"),
    ],
)
def test_odd_margins_are_refused(margins, said):
    with pytest.raises(ValueError, match=said):
        small_model().rake_to(margins)


def test_margins_of_what_is_impossible_are_refused():
    model = small_model()
    model.tables[model.tree.cliques.index((0, 1))][:] = [[40, 0], [0, 80]]
    with pytest.raises(ValueError, match="cannot all be met"):
        model.rake_to({"sex": {"f": 0.5, "m": 0.5}, "sick": {"no": 0.9, "yes": 0.1}})


def test_a_number_within_a_range_is_drawn_within_it():
    """Evenly, not moved to the ends; and a range of one number gives this number, not the double after it."""
    domain = Domain(Declaration(Schema(x=Bounded(0, 100, missing=0))), bins=[0, 10, 100])
    cells, digits = np.zeros((1, 1000), np.int32), 3.123456789012
    values = domain.values(cells, seeded(1), {"x": (2.5, 3.25)})["x"]
    assert values.min() >= 2.5
    assert values.max() <= 3.25
    assert ((values == 2.5) | (values == 3.25)).mean() < 0.05
    assert set(domain.values(cells, seeded(1), {"x": (digits, digits)})["x"].tolist()) == {digits}
