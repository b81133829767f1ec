"""The lectures' comparison of strategies for range queries, with comparable totals."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dp
from experiments import range_queries

SIZES = (16, 64, 256)


@pytest.fixture(scope="module")
def rows():
    return {row.name: row.totals for row in range_queries.rows(SIZES)}


def test_totals_grow_as_their_laws_say(rows):
    """From 64 to 256 cells: k⁶ and k⁵ for all ranges, k³ for cells, and less than k³ for a hierarchy."""
    growth = {name: np.log(totals[2] / totals[1]) / np.log(4) for name, totals in rows.items()}
    assert growth["1: all ranges, as they come"] == pytest.approx(6, abs=0.1)
    assert growth["1 with least squares"] == pytest.approx(5, abs=0.1)
    assert growth["2: cells"] == pytest.approx(3, abs=0.05)
    assert 2 < growth["3: binary hierarchy"] < 2.6


def test_closed_forms_of_strategies_one_and_two(rows):
    """2(Δ/ε)² per query with Δ = (k/2)(k/2 + 1); 2/ε² per cell of each of k(k + 1)(k + 2)/6 cell visits."""
    for n, first, second in zip(SIZES, rows["1: all ranges, as they come"], rows["2: cells"], strict=True):
        assert first == pytest.approx(n * (n + 1) / 2 * 2 * (n / 2 * (n / 2 + 1)) ** 2)
        assert second == pytest.approx(2 * n * (n + 1) * (n + 2) / 6)


def test_the_optimised_strategy_is_the_best_and_above_the_bound(rows):
    for i in range(len(SIZES)):
        assert (
            rows["SVD lower bound"][i]
            < rows["optimised"][i]
            <= min(totals[i] for name, totals in rows.items() if name != "SVD lower bound") * (1 + 1e-9)
        )


def test_measured_error_on_a_histogram_is_the_stated_one():
    x, strategy = np.arange(64), dp.workloads.hierarchy(64)
    query = dp.workloads.Query(workload=dp.workloads.Identity(64), strategy=strategy, epsilon=range_queries.EPSILON)
    assert range_queries.measured(x, strategy, runs=50)[1] == pytest.approx(query.rmse, rel=0.1)


def test_the_job_prints_and_draws(tmp_path, monkeypatch, capsys):
    """Without the real histograms, too: quickly on made-up ones, otherwise it says how to get them."""
    monkeypatch.setattr(range_queries._results, "BUILD", tmp_path)
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    range_queries.main(quick=range_queries._results.begin("", ["--quick"]))
    printed = capsys.readouterr().out
    assert "3: binary hierarchy" in printed
    assert "dpbench is not here: made-up data stands in for it" in printed
    assert f"wrote {tmp_path / 'quick' / 'range_queries.png'}" in printed
    assert (tmp_path / "quick" / "range_queries.png").read_bytes().startswith(b"\x89PNG")
    range_queries._results.begin("", [])
    with pytest.raises(SystemExit, match="discreet data fetch dpbench"):
        range_queries.real(runs=3, size=64)


def test_real_histograms_give_a_row_each(monkeypatch):
    """Their error falls without negative counts, in every run of these."""
    made = np.eye(1, 4096, dtype=np.int64)[0] * 500
    monkeypatch.setattr(range_queries, "histograms", lambda: iter([("MADE", made)]))
    ((name, records, empty, *errors),) = range_queries.real(runs=3, size=64)
    assert (name, records, empty) == ("MADE", "500", "98%")
    plain, facts = (float(each.split(" / ")[0]) for each in errors[2:])
    assert facts < plain
