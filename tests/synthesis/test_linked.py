"""Two linked tables: what a root may move, whose rows count, and what comes back."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet.adjacency import Adjacency
from discreet.auditing import ReplayError, replay
from discreet.encoding import Encoded, Encoder
from discreet.encoding.columns import Words
from discreet.random import Streams, seeded
from discreet.release import charged
from discreet.schema import Bounded, Categories, Dates, Declaration, Schema
from discreet.synthesis import LinkedSynthesizer, learning, linked_rows
from discreet.synthesis.completing import complete_codes
from discreet.synthesis.counting import WeightedCodes, closure, counts, whole_residual
from discreet.synthesis.linked_rows import ONE, LinkedRows, link_rows
from discreet.synthesis.spending import Spending, error_of
from discreet.synthesis.trees import junction_tree
from tests.operations.contract import Log, SpyBook
from tests.operations.synthesis import HOME_FACTS, HOMES, VISIT_FACTS, VISITS, linked, published_links, without_root

TREE = junction_tree((2, 3, 2, 2), [(0, 1), (1, 2), (2, 3)])
Pair = tuple[dict[str, Any], dict[str, Any]]


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr(learning, "_DRAWN", 1 << 12)  # a speed knob


def release(data: Any) -> Any:
    answer = charged(linked(order="day"), data)
    return type(answer)(published_links(answer.value), answer.event)


def with_rows(parents: dict[str, list[Any]], children: dict[str, list[Any]]) -> Pair:
    """The tables with more rows."""
    return (
        {name: [*values, *parents.get(name, [])] for name, values in HOMES.items()},
        {name: [*values, *children.get(name, [])] for name, values in VISITS.items()},
    )


# --- what a root may move --------------------------------------------------------------------------------------------

ROOT: dict[str, list[Any]] = {"home": ["x"], "rooms": [9.0], "town": ["n"]}
MANY = 10_000


@pytest.mark.parametrize(
    "more",
    [
        with_rows(ROOT, {}),
        with_rows(ROOT, {"home": ["x"] * MANY, "day": [9.0] * MANY, "sick": ["yes"] * MANY}),
        with_rows({n: v * 2 for n, v in ROOT.items()}, {"home": ["x"], "day": [np.inf], "sick": ["no"]}),
        with_rows(
            {**ROOT, "rooms": [float("nan")], "town": [None]},
            {"home": ["x"] * 3, "day": [float("nan"), "soon", 0.0], "sick": [None, 7, "no"]},
        ),
        with_rows({}, {"home": ["x"] * 50, "day": [9.0] * 50, "sick": ["yes"] * 50}),
    ],
    ids=["no child", "many", "twice", "odd", "orphans"],
)
def test_no_root_moves_more_than_it_is_charged(more):
    """Replay, both ways: a hostile root more or less."""
    replay(release, (HOMES, VISITS), more)
    replay(release, more, (HOMES, VISITS))


@pytest.mark.slow(sibling="test_no_root_moves_more_than_it_is_charged")
def test_a_root_with_a_million_children_moves_no_more():
    n = 10**6
    more = with_rows(ROOT, {"home": ["x"] * n, "day": [9.0] * n, "sick": ["yes"] * n})
    replay(release, more, (HOMES, VISITS))


@pytest.mark.parametrize("forgets", ["the cap's weights", "who is beyond the cap", "orphans"])
def test_replay_catches_a_fit_that_forgets(forgets, monkeypatch):
    if forgets == "the cap's weights":  # each child counts as a record
        monkeypatch.setattr(LinkedRows, "weights", lambda rows, skipped=0: np.where(rows.position < skipped, 0, ONE))
        less = without_root(3)
    elif forgets == "who is beyond the cap":  # the first of the file, whoever their parents are
        whole = linked_rows.link_rows
        monkeypatch.setattr(
            "discreet.synthesis.linked_synthesizer.link_rows",
            lambda p, pk, c, ck, listed, order, most: whole(
                p, pk, c, ck, listed & (np.cumsum(listed) <= 8), order, most
            ),
        )
        less = without_root(3)
    else:  # an orphan is another root's child

        def adopted(keys: Any, known: Any) -> Any:
            place = {word: i for i, word in enumerate(known.words)}
            return np.array([*(place.get(word, 0) for word in keys.words), len(known.words)])[keys.at]

        monkeypatch.setattr(linked_rows, "_numbers", adopted)
        less = with_rows({}, {"home": ["x"] * 50, "day": [9.0] * 50, "sick": ["yes"] * 50})
    with pytest.raises(ReplayError):
        replay(release, (HOMES, VISITS), less)


@pytest.mark.parametrize("adjacency", list(Adjacency)[:2])
def test_a_unit_of_several_rows_moves_counts_by_no_more_than_a_record(adjacency):
    """All roots of up to three rows in 2 x 3 cells, against the sensitivities that noise is scaled to."""
    sizes, cells = (2, 3), list(product(range(2), range(3)))
    sets = closure([(0, 1)])
    squares = dict.fromkeys(sets, 0)
    units = [rows for m in range(4) for rows in product(cells[:4], repeat=m)]
    moved = {c: [] for c in sets}
    for rows in units:
        weights = LinkedRows(
            Encoded(Schema(a=Bounded(0, 1)), 1, {}),
            Encoded(Schema(a=Bounded(0, 1)), len(rows), {}),
            np.zeros(len(rows), int),
        ).weights()
        codes = WeightedCodes(np.array(rows, np.int32).reshape(-1, 2).T.copy(), weights, ONE)
        assert weights.sum() in (0, ONE)
        for c in sets:
            moved[c].append(whole_residual(counts(codes, c, sizes)).ravel())
    from discreet.synthesis.counting import difference_square

    replaced = adjacency == Adjacency.REPLACE
    for c in sets:
        values = np.array(moved[c])
        ends = values[None, :, :] - values[:, None, :] if replaced else values
        squares[c] = int((ends**2).sum(axis=-1).max())
        assert squares[c] <= difference_square([sizes[i] for i in c])[replaced] * ONE**2
    if not replaced:
        assert squares[(0, 1)] == difference_square(sizes)[0] * ONE**2  # reached


def test_errors_of_weighted_rows_are_exact():
    codes = WeightedCodes(np.array([[0, 1, 1]], np.int32), np.array([1365, 1365, 1366]), ONE)
    found = error_of(codes, (0,), (2,), np.array([0.5, 0.5]))
    assert found == abs(1365 / ONE - 0.5) + abs(2731 / ONE - 0.5)


def test_parts_of_a_budget_have_noise_of_their_own_and_add_up():
    spending = Spending(1.0, Adjacency.ADD_REMOVE, Streams(1))
    one, two = spending.take(0.5), spending.take(0.25)
    exact = np.zeros(4, np.int64)
    assert (one.counts(exact, 0.1) != two.counts(exact, 0.1)).all()
    with pytest.raises(Exception, match="more than the fit was charged"):
        spending.take(0.26)
    with pytest.raises(Exception, match="more than the fit was charged"):
        two.counts(exact, 0.2)


# --- whose rows count ------------------------------------------------------------------------------------------------


def links(parent_keys: list[str], child_keys: list[str], order: Any = None, listed: Any = True, most: int = 2) -> Any:
    """Which child rows each root has."""
    schema = Schema(row=Bounded(0, 99))
    words = sorted({*parent_keys, *child_keys} - {""})

    def keys(values: list[str]) -> Words:
        return Words(np.array([words.index(v) if v else -1 for v in values], np.int64), list(words))

    parents = Encoded(schema, len(parent_keys), {"row": np.arange(len(parent_keys), dtype=float)})
    children = Encoded(schema, len(child_keys), {"row": np.arange(len(child_keys), dtype=float)})
    chosen = np.broadcast_to(listed, len(child_keys))
    rows = link_rows(parents, keys(parent_keys), children, keys(child_keys), chosen, order, most)
    owned: dict[int, list[int]] = {int(root): [] for root in rows.roots.numbers("row")}
    for root, child in zip(rows.roots.numbers("row")[rows.root_of], rows.children.numbers("row"), strict=True):
        owned[int(root)].append(int(child))
    return owned


def test_the_first_children_count_as_they_stand_or_by_their_order():
    assert links(["b", "a"], ["a", "b", "a", "a"]) == {0: [1], 1: [0, 2]}
    order = np.array([5.0, np.nan, 4.0, 5.0])
    assert links(["b", "a"], ["a", "b", "a", "a"], order=order) == {0: [1], 1: [2, 0]}


def test_a_second_row_of_a_parent_an_orphan_and_an_unlisted_child_count_nowhere():
    assert links(["a", "a", "b"], ["x", "a", "b"]) == {0: [1], 2: [2]}
    assert links(["a"], ["a", "a", "a"], listed=np.array([False, True, True])) == {0: [1, 2]}
    assert links([], ["a"]) == {}
    assert links(["a"], []) == {0: []}


def test_missing_keys_are_one_parent():
    assert links(["", "a", ""], ["", "a", ""]) == {0: [0, 2], 1: [1]}
    assert links(["a"], [""]) == {0: []}


# --- what comes back -------------------------------------------------------------------------------------------------


def planted(n: int = 3000) -> Pair:
    """Homes whose town says how many live there, whose members share a trait, and visit on rising days."""
    draw = np.random.default_rng(5)
    town = draw.choice(["n", "s"], n)
    counts = np.minimum(draw.poisson(np.where(town == "n", 1.0, 3.0)), 5)
    home = np.repeat(np.arange(n), counts)
    trait = draw.random(n)[home] < 0.5
    sick = np.where(draw.random(len(home)) < 0.9, trait, ~trait)
    day = np.concatenate([np.sort(draw.integers(0, 60, count)) for count in counts]).astype(float)
    parents = {"town": town.tolist(), "home": np.arange(n), "rooms": draw.integers(0, 9, n).astype(float)}
    return parents, {"sick": np.where(sick, "yes", "no").tolist(), "day": day, "home": home}


def test_both_tables_come_back_with_what_links_them():
    """At a large budget: numbers of children by town, siblings, rising days, new keys, columns as they stood."""
    parents, children = planted()
    facts = Schema(sick=Categories(["no", "yes"]), day=Bounded(0, 59, whole=True))
    for order in (None, "day"):
        fitted = LinkedSynthesizer(20.0, max_children=4, order=order).fit(
            parents, children, key="home", parent_schema=HOME_FACTS, child_schema=facts, rng=1
        )
        homes, visits = fitted.sample(4000, rng=2)
        assert (list(homes), list(visits)) == (["town", "home", "rooms"], ["sick", "day", "home"])
        assert homes["home"].tolist() == list(range(4000))
        assert np.isin(visits["home"], homes["home"]).all()
        found, real = (np.bincount(t["home"], minlength=n) for t, n in ((visits, 4000), (children, 3000)))
        assert found.max() <= 4
        for town in ("n", "s"):
            expected = np.minimum(real, 4)[np.array(parents["town"]) == town].mean()
            assert found[homes["town"] == town].mean() == pytest.approx(expected, abs=0.1)
        same = visits["home"][1:] == visits["home"][:-1]
        second = same & np.append(True, ~same[:-1])  # beside a first one
        assert (visits["sick"][1:] == visits["sick"][:-1])[second].mean() == pytest.approx(0.82, abs=0.04)
        assert visits["day"].dtype == np.int64
        if order:
            assert (np.diff(visits["day"])[same] >= 0).all()
            assert visits["day"].max() <= 59


def test_dates_in_order_and_kinds_of_frames():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    parents, children = planted(300)
    seen = [f"2024-{1 + int(day) // 28:02d}-{1 + int(day) % 28:02d}" if day else None for day in children["day"]]
    facts = Schema(sick=Categories(["no", "yes"]), seen=Dates("2024-01-01", "2024-03-31"))
    homes, visits = (
        LinkedSynthesizer(50.0, max_children=3, order="seen")
        .fit(
            pd.DataFrame(parents),
            pl.DataFrame({"home": children["home"], "sick": children["sick"], "seen": seen}),
            key="home",
            parent_schema=HOME_FACTS,
            child_schema=facts,
            rng=1,
        )
        .sample(rng=1, where={"town": "s"})
    )
    assert isinstance(homes, pd.DataFrame)
    assert set(homes["town"]) == {"s"}
    assert visits.schema == pl.Schema({"home": pl.Int64, "sick": pl.String, "seen": pl.Date})
    gaps = visits.group_by("home", maintain_order=True).agg(pl.col("seen").diff().drop_nulls())["seen"].explode()
    assert gaps.drop_nulls().dt.total_days().min() >= 0
    assert len(gaps) > 100
    last = visits.group_by("home", maintain_order=True).agg(pl.col("seen").is_null().cast(pl.Int8).diff().min())
    assert last["seen"].drop_nulls().min() >= 0  # missing days are last


def as_file(table: dict[str, Any], path: Any) -> Any:
    import polars as pl

    pl.DataFrame(table).write_parquet(path)
    return path


@pytest.mark.parametrize("key", [1, 2**60, "a", 1.5], ids=str)
def test_keys_meet_whatever_holds_them(key, tmp_path):
    """One root, one child, in every two containers; a key that is missing, and one more of each that meets nothing."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    kind = type(key)
    tables = [{"home": [kind(0), key], "day": [1.0, 2.0]}, {"home": [key, kind(7)], "day": [3.0, 4.0]}]
    makers = {
        "lists": dict,
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "pyarrow": lambda table: pl.DataFrame(table).to_arrow(),
        "parquet": lambda table: as_file(table, tmp_path / f"{table['day'][0]}.parquet"),
    }
    encoder = Encoder(Declaration(Schema(day=Bounded(0, 9)), unit="home"))
    found = {}
    for name, make in makers.items():
        pair = [encoder.prepare_every_row(make(table))() for table in tables]
        found[name] = pair
        assert encoder.unit_kind(make(tables[0])) in (None, "text" if kind is str else "numbers")
    for one, two in product(makers, repeat=2):
        (parents, parent_keys), (children, child_keys) = found[one][0], found[two][1]
        rows = link_rows(parents, parent_keys, children, child_keys, np.ones(2, bool), None, 3)
        assert (rows.root_of.tolist(), rows.children.numbers("day").tolist()) == ([1], [3.0])


def test_nothing_at_all_and_one_child_at_most():
    empty: Pair = tuple({name: [] for name in table} for table in (HOMES, VISITS))  # type: ignore[assignment]
    missing = {**VISITS, "day": [None] * len(VISITS["home"])}
    for data, settings in (
        (empty, {"order": "day"}),
        ((HOMES, {name: [] for name in VISITS}), {}),
        ((HOMES, missing), {"order": "day"}),
        ((HOMES, VISITS), {"max_children": 1, "order": "day"}),
    ):
        homes, visits = linked(**settings).release(data, rng=1).value.sample(50, rng=1)
        assert len(homes["home"]) == 50
        assert np.bincount(visits["home"], minlength=1).max() <= settings.get("max_children", 3)


# --- public mistakes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "facts", "data", "message"),
    [
        ({}, {}, (HOMES, None), "One of them is missing"),
        ({}, {}, (None, VISITS), "One of them is missing"),
        ({}, {}, ({"rooms": [1.0], "town": ["n"]}, VISITS), "'home'"),
        ({}, {}, (HOMES, {"day": [1.0], "sick": ["no"]}), "'home'"),
        ({}, {}, (HOMES, {"home": [1], "sick": ["no"]}), "'day'"),
        ({"max_children": 0}, {}, None, "max_children"),
        ({"max_children": 1000}, {}, None, "max_children"),
        ({"order": "sick"}, {}, None, "order"),
        ({"order": "when"}, {}, None, "order"),
        ({}, {"key": "rooms"}, None, "key is 'rooms'"),
        ({}, {"key": "day"}, None, "key is 'day'"),
        ({}, {"child_schema": Declaration(VISIT_FACTS, unit="who")}, None, "unit = 'who'"),
        ({"child": {"epsilon": 3}}, {}, None, "child names 'epsilon'"),
        ({"order": "day", "child": {"constraints": ["day >= cost"]}}, {}, None, "constraints"),
        ({"adjacency": "zero-out"}, {}, None, "zero-out"),
        ({"epsilon": 0.0}, {}, None, "epsilon"),
        ({"max_cells": 10}, {}, None, "max_cells"),
        ({}, {}, ({**HOMES, "home": [str(key) for key in HOMES["home"]]}, {**VISITS, "home": np.arange(20)}), "home"),
    ],
)
def test_public_mistakes_are_refused_by_name_before_the_charge(settings, facts, data, message):
    book = SpyBook(Log())
    given = {"key": "home", "parent_schema": HOME_FACTS, "child_schema": VISIT_FACTS} | facts
    parents, children = (HOMES, VISITS) if data is None else data
    if "cost" in str(settings):
        given["child_schema"] = Schema({**VISIT_FACTS, "cost": Bounded(0, 9)})
        children = {**VISITS, "cost": VISITS["day"]}
    if message == "home":  # numbers on one side, by their type, and text on the other
        parents = {**parents, "home": np.array(parents["home"])}
    with pytest.raises(ValueError, match=message):
        LinkedSynthesizer(**{"max_children": 3, **settings}).fit(parents, children, book=book, **given)
    assert not book.charges


def test_one_charge_of_one_gaussian_for_the_key():
    book = SpyBook(Log())
    fitted = LinkedSynthesizer(1.0, 1e-6, max_children=2).fit(
        HOMES, VISITS, key="home", parent_schema=HOME_FACTS, child_schema=VISIT_FACTS, book=book, rng=1
    )
    assert book.charges == [(fitted.event_, "synthetic linked tables", "home")]
    with pytest.raises(ValueError, match="not fitted"):
        LinkedSynthesizer(max_children=2).sample(3)


# --- drawing what is unknown -----------------------------------------------------------------------------------------


def test_the_rest_of_a_record_follows_the_models_distribution_given_what_is_known():
    """Against the whole distribution, for every value of the first and the last column of a chain."""
    draw = np.random.default_rng(3)
    ends = [draw.random((2, 3)), draw.random((3, 2)), draw.random((2, 2))]
    joint = np.einsum("ab,bc,cd->abcd", *ends)
    tables = [joint.sum(axis=tuple(set(range(4)) - set(clique))) for clique in TREE.cliques]
    n, factor = 60_000, np.array([1.0, 0.0, 3.0])
    codes = np.zeros((4, 4 * n), np.int32)
    codes[0], codes[3] = np.repeat([0, 0, 1, 1], n), np.repeat([0, 1, 0, 1], n)
    factors = {1: np.broadcast_to(factor, (4 * n, 3)).copy()}
    found = complete_codes(TREE, tables, codes, {0, 3}, seeded(1), factors)
    assert (found[[0, 3]] == codes[[0, 3]]).all()
    for k, (a, d) in enumerate(product(range(2), repeat=2)):
        expected = joint[a, :, :, d] * factor[:, None]
        part = found[:, k * n : (k + 1) * n]
        drawn = counts(np.ascontiguousarray(part), (1, 2), (2, 3, 2, 2)) / n
        assert np.abs(drawn - expected / expected.sum()).max() < 0.005  # many standard deviations: counts are spread


def test_what_the_model_holds_impossible_is_drawn_as_if_it_were_not_known():
    tables = [np.array([[0.0, 0.0], [3.0, 1.0]])]
    found = complete_codes(junction_tree((2, 2), [(0, 1)]), tables, np.zeros((2, 1000), np.int32), {0}, seeded(1))
    assert found[1].mean() == pytest.approx(0.25, abs=0.01)
