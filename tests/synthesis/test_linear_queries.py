"""Linear queries in whole numbers, and the histogram that is published."""

import numpy as np
import pytest

from discreet.random import seeded
from discreet.synthesis import SyntheticCounts
from discreet.synthesis.linear_queries import UNIT, UnitQueries
from discreet.workloads import AllRanges, Explicit, Identity, Marginals, Prefix, Product


class Thirds(Prefix):
    """A workload of a kind that nothing is known of."""

    def _row(self, i):
        return super()._row(i) / 3


@pytest.mark.parametrize(
    "workload",
    [
        Identity((2, 3)),
        Prefix(6),
        AllRanges(6),
        Marginals((2, 3), 1),
        Product((Prefix(2), AllRanges(3))),
        Explicit(np.linspace(0, 1, 18).reshape(3, 6)),
    ],
    ids=lambda w: type(w).__name__,
)
@pytest.mark.parametrize("size", [1, 2**50, 2**62])
def test_answers_are_exact_at_every_size(workload, size):
    """Against rows of Python's own fractions, beyond what doubles and 64 bits hold."""
    x = np.array([1, 0, 2, 0, 1, 3], object).reshape(workload.shape) * size
    x = x.astype(np.int64) if size == 1 else x
    found = UnitQueries(workload).exact(x)
    for i in range(workload.queries):
        weights = [round(float(w) * UNIT) for w in workload.row(i).reshape(-1)]
        assert int(found[i]) == sum(w * int(v) for w, v in zip(weights, x.reshape(-1), strict=True))


@pytest.mark.parametrize("matrix", [[[0.0, 1.5]], [[-0.1, 1.0]], [[2.0, 3.0]]])
def test_weights_outside_zero_and_one_are_refused(matrix):
    with pytest.raises(ValueError, match=r"weights outside \[0, 1\]"):
        UnitQueries(Explicit(matrix))


def test_a_kind_of_workload_that_is_not_known_is_read_row_by_row():
    assert UnitQueries(Thirds(4)).rows.max() == round(UNIT / 3)
    with pytest.raises(ValueError, match="too many weights"):
        UnitQueries(Thirds(10_000))
    with pytest.raises(ValueError, match="must be one of discreet"):
        UnitQueries(np.eye(3))


def test_records_are_drawn_with_the_shares_of_the_cells():
    """Each share within five standard deviations (false alarm below 1e-5); a cell that holds nothing is never drawn."""
    counts = SyntheticCounts(Identity(4), np.array([0.0, 30.0, 70.0, 0.0]))
    found = np.bincount(counts.sample(40_000, seeded(1)), minlength=4) / 40_000
    assert found[0] == found[3] == 0
    assert abs(found[1] - 0.3) < 5 * np.sqrt(0.21 / 40_000)
    assert abs(found[1] - 0.32) > 5 * np.sqrt(0.21 / 40_000)  # the test would see a share that is two points off
