"""The experiments on SmallDB and MWEM, made small: they show what they claim."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.schema import Categories, Schema
from discreet.synthesis import TableSynthesizer, learning
from experiments import mwem, small_db, synthesis_settings


def test_small_db_is_within_its_bound_until_it_is_refused():
    cells, alpha, m, candidates, bound, error, _ = small_db.row(4, 0.4, runs=3)
    assert (cells, alpha, m, candidates) == ("4", "0.4", "7", "120")
    assert float(error) <= float(bound)
    assert small_db.row(32, 0.1, runs=1)[3:] == ("10^38.9", "refused")
    assert small_db.feasible((2, 64), (0.5,), runs=1).row_count == 2


def test_range_errors_are_those_of_every_range():
    choose = np.random.default_rng(0)
    one, two = choose.normal(size=9), choose.normal(size=9)
    gaps = [(one - two)[a:b].sum() for a in range(9) for b in range(a + 1, 10)]
    found = mwem.range_errors(one, two)
    assert found == pytest.approx((np.sqrt(np.mean(np.square(gaps))), np.abs(gaps).max()))


def test_mwem_beats_noise_on_cells_where_records_are_few():
    """1,024 cells and 1,000 records in a heap, ε = 0.1, as on the four histograms of 4,096 cells."""
    x = mwem.thinned(np.r_[np.zeros(800), np.full(8, 100.0), np.zeros(216)])
    assert x.sum() == 1000
    operations = mwem.ways(1024)
    assert mwem.measured(operations["MWEM"], x, 3)[0] < mwem.measured(operations["identity"], x, 3)[0]


def test_the_theorem_s_table_has_a_bound_above_every_run():
    grid = mwem.theorem(runs=2, cells=8, records=1000)
    bounds, largest = (list(grid.columns[i].cells) for i in (2, 4))
    assert all(float(b.replace(",", "")) > float(e.replace(",", "")) for b, e in zip(bounds, largest, strict=True))


def test_every_variant_of_the_settings_changes_a_fit(monkeypatch):
    """A constant that was bound when a function was defined would be changed in vain."""
    monkeypatch.setattr(learning, "_DRAWN", 1 << 10)  # a speed knob
    a = np.random.default_rng(0).integers(0, 3, 2000)
    rows, schema = {"a": a, "b": a, "c": a // 2}, Schema({name: Categories(range(3)) for name in "abc"})

    def fitted(variant):
        with synthesis_settings.changed(synthesis_settings.VARIANTS[variant]):
            return TableSynthesizer(1.0, 1e-6).fit(rows, schema=schema, rng=1).marginal(["a", "b", "c"])

    same, *others = synthesis_settings.VARIANTS
    assert (fitted(same) == fitted(same)).all()
    assert not [variant for variant in others if (fitted(variant) == fitted(same)).all()]
