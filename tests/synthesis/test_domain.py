"""Cells from public facts; every row is judged by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.auditing.strategies import awkward_floats
from discreet.random import seeded
from discreet.schema import Bounded, Categories, Declaration, Schema, Unlisted
from discreet.synthesis.column_shape import Shape
from discreet.synthesis.domain import Domain

FACTS = Declaration(
    Schema(
        age=Bounded(0, 100),
        pay=Bounded(0, 10, missing=0),
        sex=Categories(["f", "m"]),
        role=Categories(["wife", "husband", "single"], other="?"),
        zip=Unlisted(),
    )
)
DOMAIN = Domain(
    FACTS,
    bins={"age": [0, 18, 65, 100], "pay": 2},
    structural_zeros={("role", "sex"): [("wife", "m"), ("husband", "f")]},
)
ROWS = {
    "age": [17, 18, 100, None, "x", 5, 5],
    "pay": [0, 5, 99, None, "3", 1, 1],
    "sex": ["f", "m", "m", "f", "f", "m", "q"],
    "role": ["wife", "husband", "odd", None, "single", "wife", "single"],
    "zip": ["1"] * 7,
}


def codes(rows, domain=DOMAIN):
    return domain.codes(domain.encoder.read(rows))


def test_entries_fall_into_their_cells_and_missing_ones_into_one_of_their_own():
    assert DOMAIN.names == ("age", "pay", "sex", "role")
    assert DOMAIN.sizes == (4, 2, 2, 4)
    # the sixth row is impossible, the seventh has a sex that is not listed: both count nowhere
    assert codes(ROWS).T.tolist() == [[0, 0, 0, 0], [1, 1, 1, 1], [2, 1, 1, 3], [3, 0, 0, 3], [3, 0, 0, 2]]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(awkward_floats(), st.sampled_from(["f", "m", "?", None])), max_size=6), st.data())
def test_one_row_less_is_one_code_less_and_the_others_stay(rows, data):
    facts = Domain(Declaration(Schema(age=Bounded(0, 100), sex=Categories(["f", "m"]))), bins=4)
    place = data.draw(st.integers(0, max(len(rows) - 1, 0)))

    def coded(chosen):
        found = {"age": [age for age, _ in chosen], "sex": [sex for _, sex in chosen]}
        return codes(found, facts).T.tolist()

    every, alone = coded(rows), [coded([row]) for row in rows]
    assert every == [code for one in alone for code in one]
    assert coded(rows[:place] + rows[place + 1 :]) == [c for k, one in enumerate(alone) if k != place for c in one]


def test_drawn_values_lie_in_their_cells():
    facts = Domain(FACTS, bins={"age": [0, 18, 65, 100], "pay": [0, 2.5, 10]}, whole=["age"])
    cells = np.array([[0, 1, 2, 3] * 50, [0, 1] * 100, [0, 1] * 100, [3, 2] * 100], np.int32)
    values = facts.values(cells, seeded(1))
    assert list(values) == ["age", "pay", "sex", "role"]
    known = ~np.isnan(values["age"])
    assert known.tolist() == [True, True, True, False] * 50
    assert (values["age"][known] % 1 == 0).all()
    again = codes({**values, "age": [None if np.isnan(x) else x for x in values["age"]], "zip": [""] * 200}, facts)
    assert again.tolist() == cells.tolist()


def test_private_bins_follow_the_weight():
    shape = Shape(tuple(range(9)), (100.0, 0, 0, 0, 0, 40, 40, 0), is_whole=True)
    assert shape.cut(4, least=1.0) == (0, 1, 6, 7, 8)  # the heavy zero is alone, the next edges follow 40 and 40
    assert shape.cut(4, least=1e9) == (0.0, 8.0)  # no cell would be heavy enough: the whole line is one


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"bins": {"sex": 3}}, "bins names 'sex'"),
        ({"bins": {"age": [0, 50]}}, "rising edges that hold the bounds"),
        ({"bins": {"age": [0, 60, 50, 100]}}, "rising edges"),
        ({"bins": "many"}, None),
        ({"bins": 0}, "bins is 0"),
        ({"whole": ["sex"]}, "whole names 'sex'"),
        ({"structural_zeros": {("sex", "age"): [("f", 3)]}}, "no category of 'age'"),
        ({"structural_zeros": {("sex",): [("f",), ("m",)]}}, "nothing possible"),
        ({"structural_zeros": {("sex", "role"): [("f",)]}}, "another length"),
        ({"structural_zeros": {("sex", "zip"): []}}, "not among the columns"),
        ({"dependencies": {"role": ("sex", {"f": "wife"})}}, "has no value of 'role'"),
        ({"dependencies": {"role": ("age", {})}}, "must be modelled Categories"),
        ({"dependencies": {"role": ("sex", {"f": "wife", "m": "duke"})}}, "no category of 'role'"),
    ],
    ids=str,
)
def test_public_mistakes_in_a_domain_are_named(facts, words):
    with pytest.raises(ValueError, match=words):
        Domain(FACTS, **facts)


def test_a_schema_without_usable_columns_is_refused():
    with pytest.raises(ValueError, match="no bounded or categorical"):
        Domain(Declaration(Schema(zip=Unlisted())))


def test_a_determined_column_is_neither_read_nor_modelled():
    facts = Domain(FACTS, dependencies={"pay": ("sex", {"f": 2.0, "m": 7.0})}, bins={"age": 1, "pay": [0, 5, 10]})
    assert facts.names == ("age", "sex", "role")
    rows = {name: values for name, values in ROWS.items() if name != "pay"}
    found = facts.values(codes(rows, facts), seeded(1))
    assert found["pay"].tolist() == [2.0 if sex == "f" else 7.0 for sex in found["sex"]]
    assert facts.derivation_of("pay")[1].tolist() == [0, 1]


@pytest.mark.parametrize(("low", "high", "digits"), [(0, 5000, 2), (0, 105, 3), (-1e-7, 1e-7, 12), (-3e12, 5e12, -7)])
def test_drawn_numbers_have_no_digits_that_nothing_was_measured_of(low, high, digits):
    shape = Shape((low, (low + high) / 2, high), (1.0, 3.0), is_whole=False)
    cells = np.linspace(low, high, 17)
    first, last = np.repeat(cells[:-1], 500), np.repeat(cells[1:], 500)
    drawn = shape.draw(first, last, seeded(3))
    assert (drawn >= first).all()
    assert (drawn <= last).all()
    assert (drawn == np.round(drawn, digits)).all()
    assert len(np.unique(drawn)) > 7_000  # of 8,000: numbers, not a few bins


def test_a_cell_too_narrow_for_short_numbers_keeps_long_ones_and_points_stay_as_they_are():
    point = 1234.56789012345
    shape = Shape((0.0, point, math.nextafter(point, math.inf), 5000.0), (1.0, 5.0, 1.0), is_whole=False)
    narrow = np.full(50, 0.0011), np.full(50, 0.0012)
    drawn = shape.draw(*narrow, seeded(4))
    assert ((narrow[0] <= drawn) & (drawn < narrow[1])).all()
    assert point in shape.draw(np.zeros(50), np.full(50, 5000.0), seeded(5))
