"""Exact sums: any order, any magnitude, never a wrap."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.random import exact_sum


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_equals_the_sum_of_fractions(values):
    assert exact_sum(np.array(values, dtype=float)) == sum(map(Fraction, values), Fraction(0))


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_never_wrap(values):
    assert exact_sum(np.array(values, dtype=np.int64)) == sum(values)


def test_unsigned_and_narrow_types():
    assert exact_sum(np.array([2**64 - 1] * 3, np.uint64)) == 3 * (2**64 - 1)
    assert exact_sum(np.array([-128, 127], np.int8)) == -1
    assert exact_sum(np.array([255, 255], np.uint8)) == 510
    assert exact_sum(np.array([2**32 - 1] * 2, np.uint32)) == 2**33 - 2
    assert exact_sum(np.array([True, True])) == 2
    assert exact_sum(np.array([0.1], np.float32)) == Fraction(float(np.float32(0.1)))


def test_large_sums_round_correctly():
    values = np.random.default_rng(0).normal(size=100_000) * 1e9
    assert float(exact_sum(values)) == math.fsum(values)


@pytest.mark.parametrize("bad", [[math.nan], [math.inf, 1.0]])
def test_what_is_not_finite_is_refused_without_being_shown(bad):
    with pytest.raises(ValueError, match="NaN or an infinity") as caught:
        exact_sum(bad)
    assert "1.0" not in str(caught.value)


def test_other_types_are_refused():
    with pytest.raises(ValueError, match="dtype"):
        exact_sum(["a"])
