"""Scores of a model: one record more moves them by one record's part, however the model rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet import tuning
from discreet.tuning import scores

LARGE = 1_000  # rows: of more, the model's product is added up from the other end


class NearTie:
    """A linear classifier whose product is added up in another order for large tables, as BLAS has kernels by size."""

    def predict(self, rows: Any) -> Any:
        order = 1 if len(rows) > LARGE else -1
        return rows[:, ::order].cumsum(1)[:, -1] > 0.5


def correct(size: int) -> int:
    """How many of so many rows near a tie the model gets right: 1 + 1e16 - 1e16 is 0 or 1, by the order of terms."""
    rows = np.tile([1.0, 1e16, -1e16], (size, 1))
    return tuning.Correct(epsilon=1e6).release((NearTie(), (rows, np.ones(size, bool))), rng=1).value


def test_one_record_more_near_a_tie_moves_the_count_by_at_most_one() -> None:
    """The count is charged at a sensitivity of one, and BLAS may round every row by how many there are."""
    assert abs(correct(LARGE + 1) - correct(LARGE)) <= 1


def test_without_fixed_blocks_one_record_more_moves_the_count_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The power of the test above: asked on the whole table at once, the model changes its mind on every row."""
    monkeypatch.setattr(scores, "map_rows", lambda predict, rows, count: predict(rows))
    assert abs(correct(LARGE + 1) - correct(LARGE)) >= LARGE
