"""The process's generators decide nothing that an operation releases; ``searches/generators.py`` tries more."""

from __future__ import annotations

import random

import numpy as np
import pytest

from discreet.mechanisms import Gaussian
from discreet.statistics import Count
from searches import generators


def test_operations_and_networks_with_seeded_generators():
    generators.main(8)


@pytest.mark.parametrize("kind", ["draws", "rows"])
def test_the_search_sees_what_it_is_for(kind):
    """An operation that moves the process's generators, and one whose rows are given other coins when one leaves."""

    class Hostile:
        name, data, neighbour = "hostile", [1.0] * 40, [1.0] * 39

        @staticmethod
        def run(data):
            if kind == "draws":
                random.random()
                return Count(epsilon=1.0).release(data)
            coins = np.random.default_rng(random.Random(0).randrange(9)).random(len(data))
            kept = [x * c for x, c in zip(data, coins[::-1], strict=True)]
            total = sum(k * (i + 1) for i, k in enumerate(kept))
            return Gaussian(sensitivity=1.0, sigma=1.0).release(total)

    with pytest.raises(AssertionError, match="as they were" if kind == "draws" else "differs by"):
        generators.check(Hostile, 1)
