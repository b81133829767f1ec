"""The table of gains is made of measured errors."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import adaptive_ranges


def test_a_flat_shape_gains_in_cells_and_the_job_prints_it(monkeypatch, tmp_path):
    """Few records over 256 cells: their errors fall by factors; without the real histograms it says where to put
    them."""
    found = adaptive_ranges.errors(np.ones(256, int), runs=3, seed=1)
    assert found["buckets"][1] < found["optimised"][1]
    monkeypatch.setattr(adaptive_ranges, "SCALES", (20,))
    assert adaptive_ranges.table({"flat": np.ones(128)}, runs=1).row_count == 1
    assert all(shape.min() >= 0 for shape in adaptive_ranges.made_up().values())
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match="discreet data fetch dpbench"):
        adaptive_ranges.main()
