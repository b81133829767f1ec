"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

import numpy as np
import pytest

import discreet as dp
from discreet.encoding.features import MOST
from discreet.linear import LinearRegression, LogisticRegression, kernels
from discreet.linear.losses import Logistic, Squared
from discreet.linear.placing import place
from discreet.linear.problem import Problem, clip_norm, noise_multiplier
from discreet.linear.rows import Map, Records
from tests.frozen import unfrozen


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "model", [LogisticRegression(solver="gd", classes=(0, 1)), LinearRegression(target_bounds=(-1, 1), solver="gd")]
)
def test_a_fit_spends_the_budget_it_was_given_to_a_thousandth(model, adjacency):
    event = model.set_params(epsilon=1.0, delta=1e-6, adjacency=adjacency).privacy_event(4)
    assert 0.999 < dp.epsilon(event, delta=1e-6, adjacency=adjacency) <= 1.0


def test_nothing_that_was_stated_can_be_changed_afterwards():
    assert unfrozen("linear") == {"TableModel"}  # a fitted model, which learns


@pytest.mark.parametrize(("adjacency", "changes"), [("add-remove", 1), ("replace", 2)])
def test_the_ridge_is_where_noise_moves_a_weight_by_four(adjacency, changes):
    problem = Problem(loss=Squared(), epsilon=1.0, delta=1e-6, square=1.0, features=3, adjacency=adjacency, size=100)
    noise = noise_multiplier(1.0, 1e-6)
    assert problem.ridge(8.0) == pytest.approx(noise * 8.0 * changes / 4)
    assert problem.rho(0.5) == pytest.approx(0.5 / (2 * noise**2))
    assert problem.steady_ridge(1e-9, 6.0, 100.0) == pytest.approx(144.0 * 3 / 30)
    assert problem.steady_ridge(50.0, 6.0, 100.0) == 50.0


@pytest.mark.parametrize("stated", [{"regularization": 0.25}, {"loss": Logistic()}])
def test_a_ridge_that_is_declared_or_not_of_a_squared_loss_stays(stated):
    facts = {"loss": Squared(), "epsilon": 1.0, "delta": 1e-6, "square": 1.0, "features": 3}
    problem = Problem(**facts | stated)
    assert problem.steady_ridge(0.25, 1e6, 1.0) == 0.25
    assert Problem(**facts, regularization=0.25).ridge(1e6) == 0.25


def test_as_many_records_may_be_declared_as_doubles_count():
    facts = {"loss": Squared(), "epsilon": 1.0, "delta": 1e-6, "square": 1.0, "features": 3}
    assert Problem(**facts, size=2**53).size == 2**53
    with pytest.raises(ValueError, match="dataset_size"):
        Problem(**facts, size=2**53 + 1)


def test_whole_numbers_are_numbers_to_a_squared_loss_and_classes_to_any_other():
    records = Records(np.zeros((3, 1)), np.array([0, 1, 2]), np.array([True, True, False]))
    assert records.signs_or_targets("squared").tolist() == [0.0, 1.0, 0.0]
    assert records.signs_or_targets("logistic").tolist() == [-1.0, 1.0, 0.0]


def test_clip_norms_range_over_doubles_whose_squares_are_ordinary():
    assert [clip_norm(2.0**-400), clip_norm(2.0**400)] == [2.0**-400, 2.0**400]
    for outside in (2.0**-401, 2.0**401):
        with pytest.raises(ValueError, match="clip"):
            clip_norm(outside)


def test_zeroing_out_is_refused():
    with pytest.raises(ValueError, match="zero-out"):
        Problem(loss=Squared(), epsilon=1.0, delta=1e-6, square=1.0, features=3, adjacency="zero-out")


@pytest.mark.parametrize("bounds", [(1.0, 0.0), (0.0, np.inf), (-1.7e308, 1.7e308), (1.7e308, 1.75e308), (np.nan, 1.0)])
def test_bounds_that_are_no_interval_of_doubles_are_refused_for_that_reason(bounds):
    with pytest.raises(ValueError, match="bounds must be finite, each lower one below its upper one"):
        Map.from_bounds(None, bounds, 2, False)


def test_without_bounds_features_are_divided_by_their_norm_and_nothing_else():
    for norm, divided in ((None, 1.0), (4.0, 4.0)):
        assert Map.from_bounds(norm, None, 2, True) == Map(0.0, 1.0, divided, False, True)


def test_a_row_of_zeros_stays_one():
    out = np.full((1, 2), np.nan)
    place(np.zeros((1, 2)), np.zeros(2), np.ones(2), 1.0, False, 0.5, out)
    assert out.tolist() == [[0.0, 0.0]]


def test_a_row_outside_of_the_ball_is_drawn_to_its_edge_and_one_inside_divided():
    out = np.zeros((2, 3))
    place(np.array([[3.0, 4.0], [0.3, 0.4]]), np.zeros(2), np.ones(2), 2.0, False, 0.5, out)
    assert out == pytest.approx(np.array([[0.3, 0.4, 1.0], [0.15, 0.2, 1.0]]))


@pytest.mark.parametrize(("score", "residual"), [(9.0, 0.0), (1.25, -0.25), (1.0, -0.5), (-9.0, -1.0)])
def test_the_smoothed_hinge_pulls_by_nothing_to_one(score, residual):
    one = np.ones(1)
    assert kernels.column_sum(kernels.HINGE, one, np.array([score]), one, 0.5, 4.0)[0] == residual
    for clip in (0.1, 0.6, 2.0):
        inside = kernels.inside_count(kernels.HINGE, one, np.array([score]), one, 0.5, clip)
        assert inside == (abs(residual) <= clip)


def test_a_grid_step_is_the_power_of_two_32_bits_below_the_clip():
    assert kernels.grid_step(1.0) == 2.0**-32
    assert kernels.grid_step(6.0) == 2.0**-30


def test_half_a_billion_clipped_gradients_add_up_in_64_bits():
    assert 5 * 10**8 < MOST < 2**63 / (2 ** (kernels.GRID_BITS + 1))


def test_the_norm_of_a_tiny_row_is_its_norm():
    assert kernels.small_norm(np.array([3e-200, -4e-200])) == pytest.approx(5e-200, rel=1e-12, abs=0)


def test_a_record_without_a_residual_adds_nothing_whatever_its_row():
    totals = np.zeros((1, 2), np.int64)
    kernels._clipped_sum(np.array([[np.inf, 1.0]]), np.zeros((1, 1)), 1.0, 2.0**-32, totals)
    assert totals.tolist() == [[0, 0]]


@pytest.mark.parametrize(("t", "value"), [(0.0, 0.5), (2.0, 0.8807970779778823), (-2.0, 0.1192029220221176)])
def test_the_sigmoid_has_its_values(t, value):
    assert kernels._sigmoid(t) == pytest.approx(value, rel=1e-12)


def test_features_inside_their_bounds_are_left_in_their_units():
    made = Map.from_bounds(None, {0: (0.0, 4.0), 1: (10.0, 30.0)}, 2, False)
    assert made.inside(np.array([[1.0, 15.0], [9.0, 20.0]])) == pytest.approx(np.array([[1.0, 15.0], [4.0, 20.0]]))


def test_sums_of_products_are_of_all_rows_and_are_unpacked_again():
    rows = np.array([[0.5, 0.25], [0.25, -0.5], [0.5, 0.5]])
    for n in (1, 2, 3):
        found = kernels.clipped_sum(rows[:n], np.ones((n, 1)), 4.0)
        assert np.asarray(found, float).reshape(-1) == pytest.approx(rows[:n].sum(axis=0), abs=1e-6)
    packed = np.asarray(kernels.gram_sum(rows, np.ones(3), 1.0, 1.0), float)
    assert kernels.unpack_symmetric(packed[:3], 2) == pytest.approx(rows.T @ rows, abs=1e-6)
    assert packed[3:] == pytest.approx(rows.sum(axis=0), abs=1e-6)


@pytest.mark.parametrize(("score", "clip", "inside"), [(0.0, 0.6, 1), (0.0, 0.4, 0), (2.0, 0.2, 1), (-2.0, 0.2, 0)])
def test_the_logistic_loss_pulls_by_the_chance_of_the_other_label(score, clip, inside):
    one = np.ones(1)
    assert kernels.inside_count(1, one, np.array([score]), one, 0.5, clip) == inside
