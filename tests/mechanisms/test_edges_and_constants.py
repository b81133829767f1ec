"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

import inspect
import math
import sys
from dataclasses import replace
from datetime import UTC, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from discreet.events import PureDP
from discreet.mechanisms import (
    AboveThreshold,
    Budget,
    ClusteredMean,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    PermuteAndFlip,
    ProposeTestRelease,
    RandomizedResponse,
    SmoothSensitivity,
    SparseVector,
    StabilityHistogram,
    StableMode,
    TopK,
)
from discreet.mechanisms.canonical import UNKNOWN, canonical
from discreet.mechanisms.clustered_mean import _weighted_mean
from discreet.mechanisms.factorization.participation import (
    _DENSE,
    Pattern,
    matrix_sensitivity,
    toeplitz_sensitivity,
)
from discreet.mechanisms.factorization.toeplitz import matrix
from discreet.mechanisms.grid import in_range, root_above
from discreet.mechanisms.records import holds_numbers, rows
from discreet.mechanisms.scores import ScoreGrid
from discreet.random import seeded
from discreet.statistics import Mean
from tests.frozen import unfrozen


def test_whole_numbers_are_digits_below_2_to_the_128_and_doubles_from_there_on():
    for sign in (1, -1):
        assert type(canonical(sign * ((1 << 128) - 1))) is int
        assert type(canonical(sign * (1 << 128))) is float
        assert type(canonical(sign * 2.0**128)) is float
        assert type(canonical(sign * 2.0**127)) is int
    assert type(canonical((1 << 128) + 1)) is int  # no double holds it


def test_no_answer_is_an_answer_like_any_other():
    assert canonical(None) is None
    assert StabilityHistogram(epsilon=50.0, delta=1e-3).release([None] * 40, rng=1).value == {None: 40}


def test_a_histogram_takes_every_epsilon_up_to_1024():
    assert StabilityHistogram(epsilon=1024.0, delta=1e-6).release(["a"] * 9, rng=1).value == {"a": 9}
    with pytest.raises(ValueError, match="epsilon"):
        StabilityHistogram(epsilon=1025.0, delta=1e-6)


def test_the_error_of_one_report_is_hoeffdings():
    mechanism = RandomizedResponse(epsilon=math.log(3), categories=2)  # the truth three times in four
    assert mechanism.error(0.9, size=1) == pytest.approx(math.sqrt(math.log(20) / 2) / 0.5)


def test_only_bins_of_finite_edges_are_counted():
    histogram = StabilityHistogram(epsilon=50.0, delta=1e-3, width=1e-300)
    assert histogram.release(np.array([1e300] * 40 + [0.0] * 40), rng=1).value == {0.0: 40}


def test_the_number_of_records_is_compared_where_it_is_public_and_nowhere_else():
    values = [0.1, 0.2, 0.3]
    Mean(bounds=(0.0, 1.0), epsilon=1.0).release(values, rng=1)
    Mean(bounds=(0.0, 1.0), epsilon=1.0, adjacency="replace", n=3).release(values, rng=1)
    with pytest.raises(ValueError, match="n=2"):
        Mean(bounds=(0.0, 1.0), epsilon=1.0, adjacency="replace", n=2).release(values, rng=1)


def test_nothing_that_was_stated_can_be_changed_afterwards():
    assert unfrozen("mechanisms") == set()


ERRORS = [
    (Laplace(sensitivity=1.0, scale=1.0), {}),
    (Gaussian(sensitivity=1.0, sigma=1.0), {}),
    (DiscreteLaplace(scale=1.0), {}),
    (DiscreteGaussian(sigma=1.0), {}),
    (Exponential(sensitivity=1.0, epsilon=1.0), {"size": 3}),
    (NoisyMax(sensitivity=1.0, epsilon=1.0), {"size": 3}),
    (PermuteAndFlip(sensitivity=1.0, epsilon=1.0), {"size": 3}),
    (TopK(k=1, sensitivity=1.0, epsilon=1.0), {"size": 3}),
    (AboveThreshold(threshold=1.0, sensitivity=1.0, epsilon=1.0), {"size": 3}),
    (SparseVector(threshold=1.0, sensitivity=1.0, epsilon=1.0, max_positives=2), {"size": 3}),
    (RandomizedResponse(epsilon=1.0), {"size": 3}),
    (SmoothSensitivity(epsilon=1.0, resolution=1e-9), {"smooth_bound": 1.0}),
    (SmoothSensitivity(epsilon=1.0, delta=1e-6, resolution=1e-9), {"smooth_bound": 1.0}),
    (StabilityHistogram(epsilon=1.0, delta=1e-6), {}),
    (StableMode(epsilon=1.0, delta=1e-6), {}),
]


@pytest.mark.parametrize(("mechanism", "facts"), ERRORS, ids=lambda value: type(value).__name__)
def test_no_error_is_stated_with_certainty_or_less_than_none_and_none_shrinks_with_confidence(mechanism, facts):
    for outside in (1.0, -0.01, math.nan):
        with pytest.raises(ValueError, match="confidence"):
            mechanism.error(outside, **facts)
    errors = [mechanism.error(confidence, **facts) for confidence in (0.0, 0.5, 0.9, 0.99)]
    assert errors == sorted(errors)
    assert 0 <= errors[0] < errors[-1]


def test_the_errors_of_smooth_noise_are_quantiles_of_cauchy_and_laplace():
    """The scale is twice the bound over epsilon."""
    for delta, width in ((0.0, math.tan(0.45 * math.pi)), (1e-6, math.log(10))):
        mechanism = SmoothSensitivity(epsilon=0.5, delta=delta, resolution=1e-9)
        assert mechanism.error(0.9, smooth_bound=3.0) == pytest.approx(12.0 * width, rel=1e-6)


def test_the_error_of_a_session_of_questions_shares_the_doubt_among_rounds():
    """Laplace noise of one scale on the threshold, of another on each answer; half of the doubt for either."""
    session = SparseVector(threshold=1.0, sensitivity=1.0, epsilon=3.0, max_positives=3, monotone=True)
    assert session.error(0.7, size=5) == session.round.error(0.9, size=5)
    budget = session.round.epsilon / 2  # of monotone questions, threshold and answers have the same
    assert session.round.error(0.9, size=5) == pytest.approx((math.log(20) + math.log(100)) / budget, rel=1e-6)


@pytest.mark.parametrize("monotone", [False, True])
def test_threshold_questions_and_selections_spend_what_they_were_given_to_a_millionth(monotone):
    for kind, facts in ((AboveThreshold, {"threshold": 1.0}), (NoisyMax, {}), (PermuteAndFlip, {}), (Exponential, {})):
        mechanism = kind(sensitivity=3.0, epsilon=0.7, monotone=monotone, **facts)
        assert 0.7 * (1 - 1e-6) < mechanism.event.epsilon <= 0.7


def test_the_deviation_is_that_of_the_noise():
    assert Laplace(sensitivity=1.0, scale=3.0).deviation == pytest.approx(math.sqrt(2) * 3)
    assert Gaussian(sensitivity=1.0, sigma=3.0).deviation == pytest.approx(3)
    weights = {x: math.exp(-abs(x) / 3) for x in range(-200, 201)}
    variance = sum(x**2 * w for x, w in weights.items()) / sum(weights.values())
    assert DiscreteLaplace(scale=3.0).deviation == pytest.approx(math.sqrt(variance))


def test_scales_and_sensitivities_range_over_doubles_whose_grids_are_ordinary():
    assert [in_range("scale", 2.0**-900), in_range("scale", 2.0**900)] == [2.0**-900, 2.0**900]
    for outside in (2.0**-901, 2.0**901):
        with pytest.raises(ValueError, match="scale"):
            in_range("scale", outside)


def test_roots_are_a_little_above():
    for x in (1, 2, 3, 4, 10**6, 2**70 + 1):
        assert x <= root_above(x) ** 2 <= x * (1 + Fraction(1, 1 << 31)) ** 2


def test_points_on_a_line_have_a_mean_too():
    mechanism = ClusteredMean(radius=1.0, dimension=1, size=400, epsilon=2.0, delta=1e-6)
    assert mechanism.release([[5.0]] * 400, rng=1).value == pytest.approx(5.0, abs=0.5)
    with pytest.raises(ValueError, match="dimension"):
        ClusteredMean(radius=1.0, dimension=0, size=400, epsilon=2.0, delta=1e-6)


def test_rows_are_lists_of_pairs_arrays_of_pairs_or_objects_and_nothing_else():
    ragged = np.array([None, None], object)
    ragged[:] = [(1.0, 2.0), (3.0,)]
    assert rows([(1.0, 2.0)], 2).tolist() == rows(np.array([[1.0, 2.0]]), 2).tolist() == [[1.0, 2.0]]
    assert np.isnan(rows(ragged, 2)).tolist() == [[False, False], [True, True]]
    for wrong in (np.zeros((2, 3)), np.zeros(2), np.zeros((2, 2, 2))):
        with pytest.raises(ValueError, match="shape"):
            rows(wrong, 2)


def test_a_budget_is_divided_into_equal_parts_of_all_that_it_states():
    assert Budget(epsilon=1.0, delta=1e-6).divide(4) == [Budget(epsilon=0.25, delta=2.5e-7)] * 4
    assert Budget(rho=1.0).divide(4) == [Budget(rho=0.25)] * 4
    with pytest.raises(ValueError, match="delta given with rho"):
        Budget(rho=1.0, delta=1e-6)
    assert Budget(rho=1.0, delta=0.0) == Budget(rho=1.0)


def test_counts_have_whole_noise_where_that_is_proved_and_better():
    """Below a deviation of one; for one count of a whole reach, for several of any."""
    kinds = [
        type(Budget(rho=4.0).additive(1, size, square=square, whole=True))
        for size, square in ((1, Fraction(1)), (1, Fraction(2)), (2, Fraction(2)), (1, Fraction(9)))
    ]
    assert kinds == [DiscreteGaussian, Gaussian, DiscreteGaussian, Gaussian]


def test_decimals_and_times_have_one_form_for_each_value():
    assert canonical(Decimal("2.50")) == canonical(2.5) == 2.5
    assert canonical(Decimal("1e-9")) == canonical(Decimal("0.000000001"))
    assert canonical(Decimal("1e999999")) is UNKNOWN
    assert canonical(time(9, 30)) == time(9, 30)
    assert canonical(time(9, 30, tzinfo=timezone(timedelta(hours=2)))) == time(7, 30, tzinfo=UTC)
    assert canonical(-0.0) == 0.0
    assert math.copysign(1.0, canonical(-0.0)) == 1.0
    assert type(canonical(True)) is type(canonical(1))


def test_bins_have_a_width_or_are_the_values():
    counted = [
        StabilityHistogram(epsilon=50.0, delta=1e-3, width=w).release([0.25] * 40, rng=1).value for w in (None, 1)
    ]
    assert counted == [{0.25: 40}, {0.0: 40}]


def test_candidates_are_accepted_by_how_far_their_score_lies_below_the_highest():
    """Odds of e to one for a score of 1 instead of 0 at epsilon = 2: of 300, 219 expected, deviation 8; at 6 of them
    the false-alarm rate is 2e-9, and even odds (150) are 9 away.
    """
    mechanism, coins = Exponential(sensitivity=1.0, epsilon=2.0), seeded(1)
    draw = lambda: int(coins.generator.integers(0, 2))  # noqa: E731
    chosen = [mechanism.release_by_sampling(draw, float, 1.0, rng=seeded(i)).value for i in range(300)]
    assert abs(sum(chosen) - 300 * math.e / (1 + math.e)) < 6 * 7.7


def test_the_unit_of_reports_and_shown_bins_is_the_callers():
    assert RandomizedResponse(epsilon=1.0, unit="patient").release([0, 1], rng=1).unit == "patient"
    assert StabilityHistogram(epsilon=1.0, delta=1e-6, unit="patient").mode(["a"], rng=1).unit == "patient"


@pytest.mark.parametrize("value", [2.0**1023, sys.float_info.max, -(2.0**1023), 2.0**-1074, 2.0**128])
def test_a_double_has_one_form_whatever_it_is_written_as(value):
    """From 2^1023 on whole numbers kept their digits: of equal records the first one decided what was shown."""
    equals = [value, Fraction(value), np.longdouble(value), *([int(value)] if value.is_integer() else [])]
    assert {repr(canonical(equal)) for equal in equals} == {repr(value)}


def test_what_no_double_holds_keeps_its_digits_and_infinity_its_sign():
    assert canonical(int(sys.float_info.max) + 1) == int(sys.float_info.max) + 1
    assert canonical(2**1024 - 1) == 2**1024 - 1
    assert [canonical(Decimal(text)) for text in ("-Infinity", "Infinity")] == [-math.inf, math.inf]


def test_pandas_own_types_of_numbers_and_truth_are_numbers():
    pd = pytest.importorskip("pandas")
    kinds = {kind: holds_numbers(pd.Series([None], dtype=kind)) for kind in ("Int64", "Float64", "boolean", "string")}
    assert kinds == {"Int64": True, "Float64": True, "boolean": True, "string": False}


def test_public_offsets_are_added_to_scores_of_any_size():
    """Steps below the best, at which candidates are weighed; scores beyond 64 bits take the exact path."""
    grid = ScoreGrid.paying(1.0, 1.0, 2)
    ahead = np.array([0, 6, 10], np.int64)
    assert grid.gaps([0.0, 0.0, 0.0], ahead).tolist() == [10, 4, 0]
    assert grid.gaps([2**70, 2**70, 2**70], ahead).tolist() == [10, 4, 0]


@pytest.mark.parametrize(("adjacency", "lead"), [("add-remove", lambda d: d + 1), ("replace", lambda d: 2 * d + 2)])
def test_the_lead_of_a_mode_is_counted_in_records(adjacency, lead):
    """A record added closes the lead by one, a replaced one by two."""
    facts = {"epsilon": 1.0, "delta": 1e-6, "adjacency": adjacency}
    distance = ProposeTestRelease(**facts, distance=len, base=len).error(0.9)
    assert StableMode(**facts).error(0.9) == lead(distance)


def test_points_with_three_quarters_of_all_near_them_have_full_weight_and_with_half_none():
    points = np.array([[0.0], [1.0], [2.0], [10.0]])
    assert _weighted_mean(points, np.array([3, 3, 3, 1])).tolist() == [1]
    assert _weighted_mean(points, np.array([2, 2, 2, 4])).tolist() == [10]


def test_smoothness_leaves_room_for_two_scales_that_are_rounded_to_steps():
    """A scale has at least 2^20 steps, and each of two neighbours' is rounded by one at most."""
    assert 0.5 - SmoothSensitivity(epsilon=1.0, resolution=1e-9).beta >= 2 * 2.0**-20


def test_a_test_costs_itself_and_what_it_lets_through():
    alone = ProposeTestRelease(epsilon=1.0, delta=1e-6, distance=len, base=len)
    base = PureDP(epsilon=0.5)
    assert replace(alone, base_event=base).event == alone.event + base


def test_what_a_mechanism_needs_is_stated_by_name():
    for mechanism, _ in ERRORS:
        parameters = inspect.signature(type(mechanism)).parameters.values()
        assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}


def test_a_bin_of_the_stated_size_is_shown_with_the_confidence_and_one_by_half_a_scale_smaller_is_not():
    """Discrete Laplace noise of ratio p is at most -m with probability p^m/(1 + p)."""
    histogram = StabilityHistogram(epsilon=0.1, delta=1e-6)
    ratio, size = math.exp(-1 / histogram.scale), histogram.error(0.9)
    large, small = math.ceil(size), math.floor(size - histogram.scale / 2)
    missed = [ratio ** (count - histogram.threshold) / (1 + ratio) for count in (large, small)]
    assert missed[0] <= 0.1 < missed[1]


def test_one_candidate_is_the_best_of_one():
    assert 0 < NoisyMax(sensitivity=1.0, epsilon=1.0).error(0.9, size=1) < math.inf


@pytest.mark.parametrize("regular", [False, True])
def test_columns_that_meet_at_the_separation_itself_add_up(regular):
    """Columns (1, 0, 1, 0) and (0, 0, 1, 0) of a record that is there twice: their sum has the square 5."""
    pattern = Pattern(4, 2, 2, regular=regular)
    assert matrix_sensitivity(matrix(np.array([1.0, 0.0, 1.0, 0.0])), pattern).value == pytest.approx(math.sqrt(5))


def test_a_series_that_rises_has_a_bound_that_nothing_says_to_be_attained():
    series = np.zeros(_DENSE + 1)
    series[:3] = 0.5, 1.0, 0.25
    found = toeplitz_sensitivity(series, Pattern(len(series), 1, 3))
    assert not found.exact
    assert found.value >= np.linalg.norm(np.convolve(series[:3], np.ones(3)))


def test_selections_take_every_epsilon_from_2_to_the_minus_40():
    assert Exponential(sensitivity=1.0, epsilon=2.0**-40).event.epsilon <= 2.0**-40
    with pytest.raises(ValueError, match="epsilon"):
        Exponential(sensitivity=1.0, epsilon=2.0**-41).release([0.0, 1.0], rng=1)
