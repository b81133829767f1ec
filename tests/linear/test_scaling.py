"""The private scaler: what it learns, what it costs, and what one record moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.encoding.containers import UnreadRows
from discreet.linear import PrivateScaler


def exact(rows: Any) -> np.ndarray:
    """The totals before noise, by a mechanism whose noise is next to nothing."""
    scaler = PrivateScaler(bounds=(0.0, [1.0, 4.0]), epsilon=1e3, delta=0.5)
    found = scaler.operation(2).draw(UnreadRows(np.asarray(rows, dtype=float), 2), dp.random.as_rng(1))
    return np.concatenate([found[0], found[0] * found[1], found[0] * found[2]])


@pytest.mark.parametrize("odd", [[1e300, -1e300], [np.nan, 4.0], [np.inf, -np.inf], [1.0, 4.0], [0.0, 0.0]])
def test_one_record_moves_the_totals_by_at_most_the_stated_sensitivity(odd: list[float]) -> None:
    rows = np.random.default_rng(0).uniform(0, 1, (50, 2))
    assert np.linalg.norm(exact([*rows, odd]) - exact(rows)) <= np.sqrt(6) + 0.2  # the noise that is left


def test_means_and_spreads_are_those_of_the_data_and_a_book_is_charged(tmp_path: Any) -> None:
    X = np.random.default_rng(0).normal([1.0, -5.0], [0.5, 2.0], size=(20_000, 2))
    book = dp.Ledger(tmp_path / "budget.db").open("scaling", epsilon=1.0, delta=1e-6)
    scaler = PrivateScaler(bounds=([-2, -20], [4, 10]), epsilon=0.9, delta=1e-6, random_state=1).fit(X, book=book)
    assert scaler.mean_ == pytest.approx([1.0, -5.0], abs=0.1)
    assert scaler.scale_ == pytest.approx([0.5, 2.0], rel=0.15)
    assert scaler.transform(X[:3]).shape == (3, 2)
    assert 0.5 < book.spent().epsilon <= 1.0
    with pytest.raises(dp.BudgetExceeded):
        scaler.fit(X, book=book)
