"""Quantiles of heaped data: the candidates weigh round numbers more, by public facts, and the choice is still exact."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import discreet as dp
from discreet.statistics.ranks import UNIT, Heaps, RankChoice, heaps_from_runs
from discreet.statistics.round_numbers import RoundGrid

GRIDS = [
    RoundGrid((0.0, 20.0), 40),
    RoundGrid((-3.3, 7.7), 1000),
    RoundGrid((0.0, 200_000.0), 1 << 12),
    RoundGrid((0.5, 0.75), 100),
    RoundGrid((0.0, 1.0), 1),
    RoundGrid((10.0**17, 10.0**17 + 1024.0), 64),
]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_every_point_of_the_grid_has_candidates_of_its_own_that_are_numbered_without_a_gap(grid: RoundGrid) -> None:
    low, high = grid.bounds
    values = [grid.value(candidate) for candidate in range(grid.size)]
    assert values == sorted(values)
    first, end = grid.runs(np.array(values))
    assert all(a <= candidate < b for candidate, (a, b) in enumerate(zip(first, end, strict=True)))
    assert len(set(values)) == grid.steps + 1
    assert (values[0], values[-1]) == (low, high)


def test_each_precision_of_decimals_has_as_many_candidates_as_the_grid() -> None:
    grid = RoundGrid((0.0, 100.0), 1 << 12)  # tens, ones, and tenths, of which 4,096 steps hold two each
    numbers = Counter(grid.value(candidate) for candidate in range(grid.size))
    share = (grid.steps + 1) / grid.size
    tens = sum(numbers[10.0 * k] for k in range(11)) / grid.size
    assert share == pytest.approx(1 / 4, rel=0.02)
    assert tens == pytest.approx(share * (1 + 11 / 101 + 11 / 1001 + 11 / 4097), rel=0.05)


def test_a_heap_outweighs_the_points_between_heaps() -> None:
    ages = np.repeat(np.arange(5, 15), 20)  # whole numbers between bounds far apart: the median is 9 or 10
    answers = [dp.statistics.median(ages, bounds=(0, 1000), epsilon=0.3, rng=seed).value for seed in range(60)]
    near = sum(abs(answer - 9.5) <= 1.5 and answer == int(answer) for answer in answers)
    assert near >= 40  # on a grid of equal points 9 of these 60 are whole


def test_whole_numbers_are_answered_as_whole_numbers() -> None:
    ages = np.repeat(np.arange(20, 61), 30)
    bounds = dp.Bounded(0, 120, whole=True)
    median = dp.statistics.median(ages, bounds=bounds, epsilon=1.0, rng=1).value
    quartiles = dp.statistics.quantiles(ages, (0.25, 0.5, 0.75), bounds=bounds, epsilon=1.0, rng=1).value
    assert type(median) is int
    assert median == pytest.approx(40, abs=2)
    assert quartiles.dtype.kind == "i"
    assert np.abs(quartiles - [30, 40, 50]).max() <= 3


def test_the_bounds_of_a_schema_serve_every_statistic_of_a_column() -> None:
    """One declaration for the mean as for the median; what no array has is refused, with the line to write."""
    ages, schema = np.repeat(np.arange(20, 61), 30), dp.Schema(age=dp.Bounded(0, 120, whole=True))
    assert dp.statistics.mean(ages, bounds=schema["age"], epsilon=100.0, rng=1).value == pytest.approx(40, abs=0.1)
    assert dp.statistics.sum(ages, bounds=schema["age"], epsilon=100.0, rng=1).value == pytest.approx(49_200, abs=50)
    with pytest.raises(ValueError, match=r"missing= is for tables. Write bounds=\(0\.0, 120\.0\)"):
        dp.statistics.mean(ages, bounds=dp.Bounded(0, 120, missing=0), epsilon=1.0)
    with pytest.raises(ValueError, match=r"an array needs numbers: \(low, high\)"):
        dp.statistics.median(ages, bounds=dp.Bounded("auto"), epsilon=1.0)


def test_a_heap_of_several_candidates_is_chosen_with_the_weight_of_all() -> None:
    """Two heaps of five records each: at half of ten the median is a tie, so the law is the number of candidates.

    False alarm of the interval: 1e-9, six standard deviations of 3,000 coins; a heap that counted once gives 1/2.
    """
    choice = RankChoice(UNIT // 2, 0, 8, 10.0, dp.Adjacency.ADD_REMOVE)
    heaps = Heaps(np.array([0, 1]), np.array([1, 9]), np.array([0, 5, 10]))
    source = dp.random.seeded(5)
    draws = np.array([choice.choose(heaps, source) for _ in range(3000)])
    wide = float((draws > 0).mean())
    assert abs(wide - 8 / 9) < 6 * np.sqrt(8 / 81 / 3000)
    assert set(draws.tolist()) == set(range(9))


def test_scores_are_those_of_counts_of_records_below_and_up_to_each_candidate() -> None:
    grid = RoundGrid((0.0, 20.0), 40)
    records = np.array([0.0, 3.3, 3.3, 10.0, 10.0, 10.0, 19.9])
    choice = RankChoice(UNIT // 4, 0, grid.size - 1, 1.0, dp.Adjacency.ADD_REMOVE)
    scores = choice.scores(heaps_from_runs(*grid.runs(records)), np.arange(grid.size))
    values = np.array([grid.value(candidate) for candidate in range(grid.size)])
    snapped = np.rint(records * 2) / 2
    below = np.array([(snapped < value).sum() for value in values])
    up_to = np.array([(snapped <= value).sum() for value in values])
    wanted = 0.25 * len(records)
    distance = np.maximum(0, np.maximum(below - wanted, wanted - up_to))
    np.testing.assert_array_equal(scores, -(distance * UNIT).astype(np.int64))


def test_neighbours_move_no_score_by_more_than_the_sensitivity() -> None:
    grid = RoundGrid((0.0, 20.0), 40)
    records = np.random.default_rng(3).integers(0, 200, 50) / 10
    for q in (0.0, 0.1, 0.5, 1.0):
        choice = RankChoice(round(q * UNIT), 0, grid.size - 1, 1.0, dp.Adjacency.ADD_REMOVE)
        scores = [
            choice.scores(heaps_from_runs(*grid.runs(rows)), np.arange(grid.size)) for rows in (records, records[1:])
        ]
        assert np.abs(scores[0] - scores[1]).max() <= choice.sensitivity
