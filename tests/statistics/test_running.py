"""Running counts and sums: what a record moves, what the noise is, and that no total looks ahead."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import discreet as dp
from discreet import statistics as s
from discreet.random import seeded

FALSE_ALARM = 1e-9
BUDGETS = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.5}]
METHODS = ["tree", "square-root"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_no_record_moves_what_is_noised_by_more_than_is_declared(method, adjacency):
    """Every record of a small world, added or replaced by every other; the worst one attains it under add-remove."""
    count = s.RunningCount(periods=11, method=method, rho=0.5, adjacency=adjacency)
    total = s.RunningSum(periods=11, bounds=(-3, 7), method=method, rho=0.5, adjacency=adjacency)
    for operation, records in (
        (count, [*range(-1, 12), 2.5, float("nan")]),
        (total, [(p, v) for p in (-1, 0, 1, 5, 10, 11) for v in (-9.0, 0.3, 7.0, float("nan"))]),
    ):
        l1, square, _ = operation._moves
        base = [records[3], records[7]]
        others = [[*base, r] for r in records]
        pairs = (
            [(base, other) for other in others]
            if adjacency == "add-remove"
            else [(one, other) for one in others for other in others]
        )
        worst = [0, 0]
        for one, other in pairs:
            moved = np.array(
                [int(a) - int(b) for a, b in zip(operation.totals(one), operation.totals(other), strict=True)], object
            )
            worst = [max(worst[0], abs(moved).sum()), max(worst[1], (moved * moved).sum())]
        assert worst[0] <= l1
        assert worst[1] <= square
        if adjacency == "add-remove":
            assert (worst[0], worst[1]) == (l1, square)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_the_noise_is_as_large_as_is_said(budget, method):
    """The squared errors of 400 releases, for each total, by a chi-square; power: an error stated a third too small is
    rejected."""
    operation = s.RunningCount(periods=16, method=method, **budget)
    records, truth = [0, 3, 3, 9], np.array([1, 1, 1, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4])
    errors = np.array([operation.release(records, rng=seeded(i)).value - truth for i in range(400)])

    def fits(scale):
        found = (errors**2).sum(axis=0) / (operation.deviations() * scale) ** 2
        kurtosis = 1.0 if operation.budget.gaussian else 2.5  # (6 of Laplace - 1) / 2 of the Gaussian
        low, high = chi2.ppf([FALSE_ALARM / 32, 1 - FALSE_ALARM / 32], 400 / kurtosis) * kurtosis
        return bool((found > low).all() and (found < high).all())

    assert fits(1.0)
    assert not fits(2 / 3)


@pytest.mark.parametrize("method", METHODS)
def test_a_total_does_not_look_ahead(method):
    operation = s.RunningCount(periods=16, method=method, rho=0.5)
    noisy = np.random.default_rng(0).normal(size=operation._moves[2])
    one, changed = operation.answer(noisy), noisy.copy()
    changed[-1] += 1e6  # belongs to the last period
    assert np.allclose(one[:-1], operation.answer(changed)[:-1], atol=1e-6)
    assert one[-1] != pytest.approx(operation.answer(changed)[-1])


def test_the_error_grows_slowly_and_the_root_beats_the_tree():
    for n, wanted in ((512, 2.8892), (4096, 3.5513)):
        assert s.RunningCount(periods=n, rho=0.5).rmse() == pytest.approx(wanted, rel=1e-3)
    assert s.RunningCount(periods=512, rho=0.5, method="tree").rmse() == pytest.approx(5.1499, rel=1e-3)
    assert s.RunningCount(periods=512, epsilon=1.0).method == "auto"
    assert not s.RunningCount(periods=512, epsilon=1.0)._rooted
    assert not s.RunningCount(periods=100_000, rho=0.5)._rooted


def test_large_amounts_are_added_exactly():
    """Far above 2^53 units, in both methods."""
    records = [(p, 1e6) for p in range(8)] * 2000
    for method in METHODS:
        operation = s.RunningSum(periods=8, bounds=(-1e6, 1e6), method=method, rho=1e8)
        amounts, totals = operation.amounts(records), operation.totals(records)
        assert [int(a) for a in amounts] == [2000 << 30] * 8
        if method == "square-root":
            c = np.rint(np.array([1, 1 / 2, 3 / 8, 5 / 16]) * 2**20).astype(int)
            assert int(totals[3]) == int(c.sum()) * (2000 << 30)
    less = s.RunningSum(periods=8, bounds=(-1e6, 1e6), method="square-root", rho=1e12)
    found = less.release([(p, -1e6) for p in range(8)], rng=1).value
    assert found == pytest.approx(-1e6 * np.arange(1, 9), rel=1e-4)


def test_what_is_publicly_wrong_is_refused_before_the_charge():
    class Unpaid:
        def charge(self, event, label="", *, unit="one record", reproducible=False):
            raise AssertionError("charged")

    for wrong, reason in (
        (lambda: dp.statistics.running_count([0], periods=0, rho=1.0, book=Unpaid()), "periods"),
        (lambda: dp.statistics.running_count([0], periods=1 << 21, rho=1.0, book=Unpaid()), "periods"),
        (lambda: dp.statistics.running_count([0], periods=9, method="fast", rho=1.0, book=Unpaid()), "method"),
        (
            lambda: dp.statistics.running_count(np.zeros((2, 2)), periods=9, rho=1.0, book=Unpaid()),
            "one-dim|dimension|column",
        ),
        (
            lambda: dp.statistics.running_sum(np.zeros(2), periods=9, bounds=(0, 1), rho=1.0, book=Unpaid()),
            "row|dimension",
        ),
        (lambda: dp.statistics.running_sum([[0, 1]], periods=9, bounds=(1, 0), rho=1.0, book=Unpaid()), "bounds"),
        (lambda: s.RunningCount(periods=1 << 14, method="square-root", rho=1.0), "at most"),
    ):
        with pytest.raises(ValueError, match=reason):
            wrong()
