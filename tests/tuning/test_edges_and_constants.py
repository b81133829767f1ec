"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.encoding.rowwise import row_answers
from discreet.tuning.runs import _pieces
from discreet.tuning.scores import Total, squared_errors
from tests.frozen import unfrozen


def test_nothing_that_was_stated_can_be_changed_afterwards():
    assert unfrozen("tuning") == set()


def test_a_shape_is_cut_into_ones_and_a_rest():
    assert list(_pieces(3.5)) == [1, 1, 1, Fraction(1, 2)]
    assert list(_pieces(1.0)) == [1]


def test_a_score_of_a_sum_is_stated_by_name():
    with pytest.raises(TypeError, match="positional"):
        Total(len, (0.0, 1.0), epsilon=1.0)


def test_answers_of_a_list_a_column_and_a_table_of_one_are_the_same():
    for values in ([1, 2], np.array([1, 2]), np.array([[1], [2]])):
        assert row_answers(values) == [1, 2]


def test_squared_errors_are_relative_to_the_width_of_the_bounds():
    score = squared_errors((0.0, 10.0), predict=lambda model, rows: rows, epsilon=1.0)
    assert score.values(None, ([5.0, 0.0, 99.0], [5.0, 5.0, 0.0])).tolist() == [0.0, -0.25, -1.0]
