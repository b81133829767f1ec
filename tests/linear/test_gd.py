"""Gradient descent decides by public facts and a paid count; what it releases costs what was stated, in any case."""

import dataclasses
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import discreet as dp
from discreet.auditing import ReplayError, record, replay
from discreet.linear import LinearRegression, LogisticRegression, fused, kernels
from discreet.linear.curvature import second_moments, symmetric
from discreet.linear.losses import HuberHinge, Logistic, Squared
from discreet.linear.problem import Problem
from discreet.linear.rows import Map
from discreet.linear.solvers import gd
from discreet.linear.solvers.gd import GradientDescent
from discreet.release import Release

rows = hnp.arrays(np.float64, st.tuples(st.integers(0, 5), st.just(3)), elements=st.floats(-1, 1))
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(3000, 3))
Y = (X[:, 0] > 0).astype(int)


def placed(x, y):
    return Map.from_bounds(None, (-1.0, 1.0), x.shape[1], True).records(x, y)


# --- sums --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Squared(), Logistic(), HuberHinge(0.5)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("clip", [1e-9, 0.3, 3.0])
def test_one_pass_is_the_sum_of_clipped_gradients(loss, clip):
    """To the rounding of a score; and it clips: the largest clip is above every gradient, the others below."""
    data = placed(X[:500], X[:500, 1] if loss.name == "squared" else Y[:500])
    w = RNG.normal(size=4)
    kind, width = kernels.KINDS[loss.name], getattr(loss, "width", 0.0)
    found = fused.gradient_sum(
        kind, data.rows, fused.lengths(data.rows), data.signs_or_targets(loss.name), w, width, clip
    )
    residuals = loss.residual(kernels.scores(data.rows, w[:, None]), data.targets)
    assert np.allclose(found, kernels.clipped_sum(data.rows, residuals, clip), rtol=0, atol=500 * clip * 1e-9)


@settings(max_examples=40)
@given(rows, st.floats(1e-9, 1e3), st.sampled_from(sorted(kernels.KINDS.values())), st.integers(0, 99))
def test_a_pass_counts_no_record_for_more_than_the_clip_and_adds_exactly(x, clip, kind, seed):
    w, y = np.random.default_rng(seed).normal(size=3) * 10.0 ** (seed % 5), np.where(np.arange(len(x)) % 2, 1.0, -1.0)

    def total(part):
        return fused.gradient_sum(kind, x[part], fused.lengths(x[part]), y[part], w, 0.5, clip)[:, 0]

    parts = [total(slice(i, i + 1)) for i in range(len(x))]
    for part in parts:
        assert sum(Fraction(float(g)) ** 2 for g in part) <= Fraction(clip) ** 2
    sums = [sum((Fraction(float(part[j])) for part in parts), Fraction(0)) for j in range(3)]
    assert [Fraction(float(g)) for g in total(slice(None))] == sums


@pytest.mark.parametrize("kind", sorted(kernels.KINDS.values()))
@pytest.mark.parametrize("weight", [math.nan, math.inf])
def test_a_pass_at_weights_that_are_no_numbers_counts_no_record_for_more_than_the_clip(kind, weight):
    """NaN in whole steps would be -2^63 of them: once a block, so that the 513th record would change it all."""
    x, w = np.full((513, 2), 0.5), np.full(2, weight)
    sums = [fused.gradient_sum(kind, x[:n], fused.lengths(x[:n]), np.ones(n), w, 0.5, 0.4) for n in (0, 1, 512, 513)]
    assert np.linalg.norm(sums[1] - sums[0]) <= 0.4
    assert np.linalg.norm(sums[3] - sums[2]) <= 0.4


def test_tiny_rows_have_their_length():
    assert fused.lengths(np.array([[3e-200, 4e-200], [0.0, 0.0], [3.0, 4.0]])) == pytest.approx([5e-200, 0, 5])


@settings(max_examples=40)
@given(rows)
def test_second_moments_are_exact_and_no_record_exceeds_its_squared_norm(x):
    parts = [second_moments(x[i : i + 1]) for i in range(len(x))]
    for row, part in zip(x, parts, strict=True):
        square = sum(Fraction(float(e)) ** 2 for e in row)
        assert sum(Fraction(float(e)) ** 2 for e in part) <= square**2
    whole = second_moments(x)
    assert np.array_equal(whole, np.sum(parts, axis=0) if parts else np.zeros(6))
    assert np.allclose(symmetric(whole, 3), x.T @ x, atol=1e-3)


def test_moments_of_very_many_records_are_fractions():
    """Beyond 2^53 steps doubles would round, and 64 bits are not left."""
    row = np.ones((1 << 14, 1))
    found = second_moments(np.broadcast_to(row, (1 << 14, 1)))
    assert float(found[0]) == 1 << 14
    big = kernels.exact(np.array([(1 << 61) * 11], object), 2.0**-35)
    assert big[0] == Fraction((1 << 61) * 11) / 2**35


# --- decisions ---------------------------------------------------------------------------------------------------


def plan(n=None, epsilon=1.0, features=4, loss=None, **options):
    problem = Problem(
        loss=loss or Logistic(),
        epsilon=epsilon,
        delta=1e-6,
        square=2.0,
        features=features,
        size=n,
        l1=options.pop("l1", 0.0),
    )
    return GradientDescent(problem=problem, **options)


def test_curvature_is_measured_where_data_stand_above_the_noise_and_nowhere_else():
    assert plan().with_settings(100.0).curvature == 0
    assert plan().with_settings(1e5).curvature == gd.SHARE
    assert plan(features=gd.WIDEST + 1).with_settings(1e9).curvature == 0
    wide = plan(features=gd.WIDE + 1)
    enough = 1.01 * gd.ROUGH_WORTH * (gd.WIDE + 1) * wide.problem.scale
    settled = wide.with_settings(enough)
    assert (settled.curvature, settled.clip) == (gd.ROUGH_SHARE, gd.ROUGH_CLIP)
    assert wide.with_settings(enough / 1.1).curvature == 0 == plan(features=gd.WIDE).with_settings(enough).curvature
    assert plan(features=gd.WIDE + 1, curvature=0.0).with_settings(enough).clip == gd.CLIP
    assert plan(l1=1.0).with_settings(1e9).curvature == plan(radius=1.0).with_settings(1e9).curvature == 0
    assert plan(curvature=0.0, steps=7).with_settings(1e9).steps == 7
    with pytest.raises(ValueError, match="no L1 penalty"):
        plan(curvature=0.1, l1=1.0)


@pytest.mark.parametrize("size", [10.0, 1e4, 1e8])
@pytest.mark.parametrize("n", [None, 5000])
@pytest.mark.parametrize("options", [{}, {"steps": 3}, {"curvature": 0.5}, {"clip": 1.0}])
def test_whatever_is_decided_costs_no_more_than_what_was_stated(size, n, options):
    """The rates 1/2z² of Gaussians add up; those of the gradients, the curvature and the count to the stated one's."""
    asked = plan(n, **options)
    settled = asked.with_settings(size)
    parts = [settled.mechanism.event.noise_multiplier] * settled.steps
    parts += [settled.moments.event.noise_multiplier] if settled.curvature else []
    parts += [settled.counter.event.noise_multiplier] if settled.counter else []
    stated = sum(count / leaf.noise_multiplier**2 for leaf, count in dp.events.leaves(asked.event).items())
    assert math.fsum(1 / z**2 for z in parts) <= stated
    assert stated <= 1.000001 * math.fsum(1 / z**2 for z in parts)
    assert dp.epsilon(asked.event, 1e-6) <= 1.0


def test_least_squares_are_held_back_where_data_are_few_and_their_intercept_less():
    """Three times the ridge at which noise and data balance; three tenths of it for the intercept, if none is given."""
    few = plan(loss=Squared(), epsilon=0.1).with_settings(100.0)
    assert few._ridge(100.0) == pytest.approx(gd.CAUTION * (2 * few.spread) ** 2 * 4 / 30)
    problem = dataclasses.replace(few.problem, intercept=True)
    ridges = dataclasses.replace(few, problem=problem)._penalties(2.0)
    assert ridges.ravel().tolist() == [2.0, 2.0, 2.0, 2.0 * gd.LEVEL]
    assert few._penalties(2.0) == 2.0, "without an intercept"
    declared = dataclasses.replace(problem, regularization=1.0)
    assert dataclasses.replace(few, problem=declared)._penalties(2.0) == 2.0
    assert plan()._penalties(2.0) == 2.0, "of another loss"


@pytest.mark.parametrize(
    ("solver", "asked", "size"),
    [
        ("gd", {"steps": 10**400}, None),
        ("gd", {"curvature": 1e-300}, None),
        ("gd", {}, 10**308),
        ("cd", {"passes": 10**300}, None),
        ("cd", {"step": 1e308}, None),
    ],
)
def test_what_no_noise_pays_for_is_refused_before_the_charge(solver, asked, size):
    with pytest.raises(ValueError, match=r"must be a (whole )?number|too large"):
        LinearRegression(solver=solver, solver_options=asked, dataset_size=size).privacy_event(3)


@pytest.mark.parametrize("solver", ["gd", "cd"])
def test_no_row_that_vanishes_makes_a_fit_fail_where_numpy_is_told_to_raise(solver):
    tiny = np.vstack([np.full((1, 3), 1e-300), X[:50]])
    with np.errstate(all="raise"):
        LogisticRegression(bounds=(-1, 1), solver=solver, random_state=1, classes=(0, 1)).fit(tiny, Y[:51])


def test_a_vanishing_ridge_leaves_weights_that_are_numbers():
    model = LogisticRegression(
        bounds=(-1, 1), regularization=1e-310, solver_options={"steps": 2, "curvature": 0.0}, classes=(0, 1)
    ).fit(X, Y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "model",
    [partial(LogisticRegression, classes=(0, 1)), partial(LinearRegression, target_bounds=(-1, 1))],
    ids=["logistic", "squares"],
)
def test_descent_with_curvature_passes_replay_and_releases_what_it_says(model, adjacency):
    """Six thousand records in a corner: full-norm rows; the transcript shows that the curvature was released."""
    data = [(1.0, -1.0, 1.0, 1)] * 6000
    other = data[1:] if adjacency == "add-remove" else [(-1.0, 1.0, -1.0, 0), *data[1:]]

    def fitted(records):
        x, y = np.array([r[:3] for r in records]), np.array([r[3] for r in records])
        made = model(epsilon=1.0, bounds=(-1, 1), solver="gd", adjacency=adjacency, random_state=1).fit(x, y)
        return Release((made.coef_, made.n_iter_), made.event_)

    steps = replay(fitted, data, other, seeded=True).steps
    assert len(steps) == gd.FEWEST + 1 + (adjacency == "add-remove")


def test_replay_finds_second_moments_of_rows_that_are_too_long(monkeypatch):
    """The control: the same release, of rows a hundredth too long."""
    monkeypatch.setattr(gd, "second_moments", lambda x: second_moments(x / 2) * 4 * 1.02)
    x = np.full((6000, 3), 1.0)

    def fitted(n):
        made = LogisticRegression(epsilon=1.0, bounds=(-1, 1), solver="gd", random_state=1, classes=(0, 1)).fit(
            x[n:], np.ones(6000 - n)
        )
        return Release(made.coef_, made.event_)

    with pytest.raises(ReplayError, match="differs by"):
        replay(fitted, 0, 1, seeded=True)


def test_a_pure_fit_has_no_curvature():
    steps = record(
        lambda n: LogisticRegression(solver="gd", delta=0.0, bounds=(-1, 1), classes=(0, 1)).fit(X[n:], Y[n:]).coef_, 0
    ).steps
    assert len(steps) == gd.STEPS + 1


# --- what it is for -------------------------------------------------------------------------------------------------


def test_directions_in_which_data_hardly_vary_are_learnt_where_the_budget_allows():
    """One column spans a hundredth of its bounds and decides: plain descent has not arrived after 128 steps."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, size=(40_000, 6)) * [1, 1, 1, 1, 1, 0.02]
    y = (x[:, 5] + 0.002 * rng.normal(size=40_000) > 0).astype(int)
    public = {"epsilon": 10.0, "bounds": (-1, 1), "random_state": 0}
    turned, straight = (
        LogisticRegression(**public, solver="gd", solver_options=options, classes=(0, 1)).fit(x, y).score(x, y)
        for options in ({}, {"curvature": 0.0})
    )
    assert turned > 0.95
    assert turned > straight + 0.02
