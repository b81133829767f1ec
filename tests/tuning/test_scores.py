"""Scores of a model: one record more moves them by one record's part, however the model rounds."""

from __future__ import annotations

import os
import subprocess
import sys
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


ENDS_TO_END = """
import numpy as np
from discreet import tuning
from discreet.linear import LogisticRegression

rng, features, classes = np.random.default_rng(0), 20, 3
size = 1_000_000 // (features * classes)  # OpenBLAS has a kernel for products of at most so many multiplications
model = LogisticRegression(epsilon=1.0, delta=1e-6, bounds=(-1, 1), classes=(0, 1, 2), random_state=0)
model.fit(rng.uniform(-1, 1, (2000, features)), rng.integers(0, classes, 2000))

# rows whose two best scores are equal up to rounding: one coordinate is moved by as much as they differ
rows = rng.uniform(-1, 1, (4 * size, features))
scores = rows @ model.coef_.T + model.intercept_
best, next_best = np.argsort(-scores, 1)[:, :2].T
slopes, each = model.coef_[best] - model.coef_[next_best], np.arange(len(rows))
moved = np.abs(slopes).argmax(1)
rows[each, moved] -= (scores[each, best] - scores[each, next_best]) / slopes[each, moved]
rows = rows[(np.abs(rows) <= 1).all(1)][: size + 1]
targets = model.predict(rows)

fewer = rows[:-1], targets[:-1]
print(int((model.predict(fewer[0]) != fewer[1]).sum()))
count = tuning.Correct(epsilon=1e6)
print(*(int(count.release((model, data), rng=1).value) for data in ((rows, targets), fewer)))
"""


def test_a_fitted_models_count_of_correct_predictions_moves_by_at_most_one_record() -> None:
    """From a fit to the count, on rows near a tie: the library's own predictions are a BLAS product, and OpenBLAS
    rounds every row otherwise in a table of one row more. Its kernels that do need AVX-512, and are asked for."""
    if not np._core._multiarray_umath.__cpu_features__["AVX512_SKX"]:
        pytest.skip("the processor has no AVX-512, without which OpenBLAS has one kernel for both sizes")
    environment = os.environ | {"OPENBLAS_CORETYPE": "SkylakeX"}
    ran = subprocess.run([sys.executable, "-c", ENDS_TO_END], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    otherwise, larger, smaller = map(int, ran.stdout.split())
    assert otherwise > 1000  # the power: so many predictions a count of the whole table would change
    assert abs(larger - smaller) <= 1
