"""Principal components: what rounding to parts does to the moments, and what it may not do to the sensitivity."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.estimators import PCA
from discreet.estimators.pca import _PARTS, _divide_exactly
from discreet.estimators.sums import in_ball, room_to_round


@pytest.mark.parametrize("law", ["smooth", "narrow", "heaped"])
def test_rounding_leaves_variances_as_they_are(law):
    """With next to no noise; cut towards zero they were 6e-4 too small, however many the records."""
    rng = np.random.default_rng(0)
    rows = {
        "smooth": rng.normal(size=(20_000, 3)) * [2.0, 1.0, 0.5],
        "narrow": rng.normal(size=(20_000, 3)) * 0.2,
        "heaped": rng.integers(0, 2, (20_000, 3)) * 8.0,
    }[law]
    model = PCA(bounds=(-8, 8), epsilon=1e6, delta=0, random_state=0).fit(rows)
    truth = np.sort(np.linalg.eigvalsh(np.cov(np.clip(rows, -8, 8).T, bias=True)))[::-1]
    assert model.explained_variance_ == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("size", [1, 3, 500])
def test_a_rounded_row_stays_in_the_ball(size):
    """Rows of length 1 whose rounding is the worst: every entry up by half a part, or as it comes."""
    rng = np.random.default_rng(1)
    worst = np.full((1, size), (np.floor(_PARTS / size**0.5) + 0.5) / _PARTS)
    rows = in_ball(np.concatenate([rng.normal(size=(200, size)) * 9, worst, np.ones((1, size))]), 1.0)
    room = room_to_round(size, _PARTS)
    lengths = (np.rint(rows * (room * _PARTS)).astype(np.int64) ** 2).sum(axis=1)
    assert lengths.max() <= _PARTS**2
    assert size == 1 or (np.ceil(rows * _PARTS).astype(np.int64) ** 2).sum(axis=1).max() > _PARTS**2


def test_totals_that_doubles_cannot_hold_are_divided_exactly():
    total = 2**60 + 1
    assert [x * _PARTS**2 for x in _divide_exactly(np.array([total, 3]), _PARTS**2)] == [total, 3]
    assert _divide_exactly(np.array([3]), _PARTS**2).dtype == np.float64
