"""Rows that are handed to somebody's function: no row's result depends on another, in any container."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from discreet.encoding.rowwise import BLOCK, NOTHING, map_rows
from searches import rows as search

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(700, 5))


def containers() -> dict[str, Any]:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import torch
    from scipy.sparse import csc_matrix

    frame = pd.DataFrame(ROWS, columns=list("abcde"), index=RNG.permutation(len(ROWS)))
    return {
        "array": ROWS,
        "list": [list(row) for row in ROWS],
        "pandas": frame,
        "polars": pl.DataFrame(ROWS, schema=list("abcde")),
        "arrow": pa.table({name: ROWS[:, i] for i, name in enumerate("abcde")}),
        "tensor": torch.as_tensor(ROWS),
        "bfloat16": torch.as_tensor(ROWS).bfloat16(),
        "sparse": csc_matrix(ROWS),
        "objects": ROWS.astype(object),
        "pair": (ROWS, ROWS[:, 0]),
    }


def first_column(rows: Any) -> Any:
    if isinstance(rows, tuple):
        assert len(rows[1]) == BLOCK
        return first_column(rows[0])
    if hasattr(rows, "tocsr"):
        return rows.toarray()[:, 0]
    return rows["a"] if hasattr(rows, "columns") else [row[0] for row in rows]


@pytest.mark.parametrize("kind", containers())
def test_every_row_of_every_container_has_its_own_result(kind: str) -> None:
    rows = containers()[kind]
    expected = [float(x) for x in rows[:, 0]] if kind == "bfloat16" else ROWS[:, 0].tolist()
    assert [float(x) for x in map_rows(first_column, rows, len(ROWS))] == expected


def test_blocks_have_one_size_and_a_row_always_stands_at_one_place() -> None:
    """What rounds by shape or by place does the same to a row whoever else is there."""

    def places_of(rows: np.ndarray) -> np.ndarray:
        assert rows.shape == (BLOCK, 5)
        return np.arange(BLOCK)

    places = map_rows(places_of, ROWS, len(ROWS))
    for gone in (0, 350, 699):
        assert map_rows(places_of, np.delete(ROWS, gone, axis=0), 699) == places[:gone] + places[gone + 1 :]
    assert len(set(places)) > BLOCK / 2


def test_a_row_that_fails_fails_alone_and_equal_rows_are_asked_once() -> None:
    calls = []

    def strict(rows: np.ndarray) -> np.ndarray:
        calls.append(len(rows))
        if not np.isfinite(rows).all():
            raise ValueError("no number")
        return rows.sum(axis=1)

    equal = np.ones((5000, 2))
    assert map_rows(strict, equal, 5000) == [2.0] * 5000
    assert calls == [BLOCK]
    odd = equal.copy()
    odd[17] = np.nan
    results = map_rows(strict, odd, 5000)
    assert results[17] is NOTHING
    assert results[:17] + results[18:] == [2.0] * 4999


def test_fewer_rows_than_targets_have_nothing_at_the_end() -> None:
    assert map_rows(lambda rows: rows[:, 0], np.ones((2, 1)), 3) == [1.0, 1.0, NOTHING]


class RoundsByShape:
    """Stands in for a matrix product near a tie: which class wins hangs on how many rows there are, and where."""

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return (np.arange(len(rows)) + len(rows)) % 2


def test_one_record_moves_a_count_of_correct_predictions_by_one() -> None:
    from discreet import tuning
    from discreet.auditing import replay

    score, targets = tuning.Correct(epsilon=1.0), np.zeros(16_667)
    rows = np.tile(RNG.normal(size=5), (16_667, 1))
    assert RoundsByShape().predict(rows).sum() != RoundsByShape().predict(rows[1:]).sum()
    data = [(RoundsByShape(), (rows[gone:], targets[gone:])) for gone in (0, 1)]
    replay(score.release, *data)  # raises where a count moves by more than one


def test_rows_are_read_apart() -> None:
    search.main(4, seed=1)


def test_the_search_sees_a_row_that_moves_others() -> None:
    with pytest.raises(AssertionError, match="other rows are read differently"):
        search.check("by shape", lambda rows: rows + len(rows), ROWS, 7)


def test_what_a_function_says_of_a_record_is_said_to_nobody(recwarn):
    """A signalling NaN makes NumPy warn where it is compared; a function may warn by itself, or be told to raise."""

    def compare(rows):
        if np.isnan(rows[:, 0]).any():
            warnings.warn("there is a record without a number", stacklevel=2)
        return rows[:, 0] / (rows[:, 0] - 1) > 0

    odd = np.array([0x7FF0000000000001], np.uint64).view(np.float64)
    rows = np.append(np.arange(-5.0, 5.0), odd)[:, None]
    with np.errstate(all="raise"):
        assert map_rows(compare, rows, 11)[:3] == [True] * 3
    assert not recwarn.list
