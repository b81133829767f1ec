"""What is publicly wrong about a container is found before a book is charged."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.mechanisms import AboveThreshold, SmoothMedian, SparseVector, StabilityHistogram, StableMode
from discreet.release import charged

MECHANISMS = [
    SmoothMedian(bounds=(0.0, 1.0), epsilon=1.0),
    StableMode(epsilon=1.0, delta=1e-6),
    StabilityHistogram(epsilon=1.0, delta=1e-6),
    AboveThreshold(threshold=1.0, sensitivity=1.0, epsilon=1.0),
    SparseVector(threshold=1.0, sensitivity=1.0, epsilon=1.0, max_positives=1),
]


class Book:
    def charge(self, event, label="", *, unit="one record"):
        raise AssertionError("charged")


@pytest.mark.parametrize("wrong", [None, 5, "text", {"a": 1}, {1, 2}], ids=lambda wrong: type(wrong).__name__)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_a_wrong_container_is_not_charged_for(mechanism, wrong):
    with pytest.raises(ValueError, match="must be a sequence"):
        charged(mechanism, wrong, book=Book())


def test_a_median_of_a_table_is_not_charged_for():
    with pytest.raises(ValueError, match="dimensions"):
        charged(MECHANISMS[0], np.zeros((2, 2)), book=Book())
