"""Clipped sums are exact, in any order, and no record counts for more than the clip."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special

from discreet.auditing.strategies import awkward_floats
from discreet.linear import kernels
from discreet.linear.losses import HuberHinge, Logistic, OneVersusRest, Softmax, Squared
from discreet.linear.problem import LARGEST
from discreet.linear.rows import Map

rows = hnp.arrays(np.float64, st.tuples(st.integers(0, 6), st.just(3)), elements=st.floats(-1, 1))


def square(entries):
    return sum(Fraction(float(e)) ** 2 for e in np.ravel(entries))


@settings(max_examples=60)
@given(rows, st.floats(1e-9, 1e9), st.integers(0, 2**32))
def test_one_record_counts_for_at_most_the_clip(x, clip, seed):
    residuals = np.random.default_rng(seed).normal(size=(len(x), 2)) * 10.0 ** np.random.default_rng(seed).integers(
        -9, 9
    )
    for i in range(len(x)):
        one = kernels.clipped_sum(x[i : i + 1], residuals[i : i + 1], clip)
        assert square(one) <= Fraction(clip) ** 2
    total = kernels.clipped_sum(x, residuals, clip)
    parts = [kernels.clipped_sum(x[i : i + 1], residuals[i : i + 1], clip) for i in range(len(x))]
    for at in np.ndindex(total.shape):
        assert Fraction(float(total[at])) == sum((Fraction(float(part[at])) for part in parts), Fraction(0))


@pytest.mark.parametrize("clip", [0.7, 1.0, 1.9999, 2.0**-300])
def test_the_largest_model_has_room_for_the_rounding_of_every_entry(clip):
    """Shrunk to _INSIDE of the clip, each of 2^26 entries moved by half a step: at most the clip, exactly."""
    step = Fraction(kernels.grid_step(clip))
    assert Fraction(clip) / 2**33 < step <= Fraction(clip) / 2**32
    assert Fraction(kernels.INSIDE) * Fraction(clip) + math.isqrt(LARGEST) * step / 2 <= Fraction(clip)


@pytest.mark.parametrize(
    ("row", "residual", "clip"),
    [
        ([2.3e-162] + [1.5e-162] * 9999, [1e150], 1e-13),
        ([1e-162] * 100, [1e150] * 3, 1e-14),
        ([1.0], [1e-170] * 50, 1e-171),
        ([5e-324, 1.0], [5e-324], 1e-100),
        ([0.0, 0.0], [1.0], 1.0),
        ([1e-300], [1e150], 2.0**-400),
    ],
)
def test_squares_that_vanish_do_not_lengthen_a_record(row, residual, clip):
    """A norm is taken after division by the largest entry where squares underflow; and no short record is lost."""
    one = kernels.clipped_sum(np.array([row]), np.array([residual]), clip)
    assert square(one) <= Fraction(clip) ** 2
    exact = square(row) * square(residual)
    assert square(one) >= min(exact, Fraction(clip) ** 2) * Fraction(99, 100) - Fraction(clip) ** 2 / 2**40


def test_sums_do_not_depend_on_order_or_blocks():
    rng = np.random.default_rng(1)
    x, r = rng.normal(size=(10_000, 5)), rng.normal(size=(10_000, 2))
    order = rng.permutation(10_000)
    total = kernels.clipped_sum(x, r, 0.7)
    assert (total == kernels.clipped_sum(x[order], r[order], 0.7)).all()
    assert (total == kernels.clipped_sum(x[:4000], r[:4000], 0.7) + kernels.clipped_sum(x[4000:], r[4000:], 0.7)).all()


def test_what_is_not_clipped_is_the_plain_sum():
    rng = np.random.default_rng(2)
    x, r = rng.normal(size=(500, 4)), rng.normal(size=(500, 3))
    assert np.allclose(kernels.clipped_sum(x, r, 1e3), x.T @ r, atol=1e-4)
    assert np.allclose(kernels.scores(x, r[:4]), x @ r[:4])


def test_residuals_that_are_not_finite_count_for_nothing():
    x = np.ones((4, 2))
    assert (kernels.clipped_sum(x, np.array([[np.nan], [np.inf], [-np.inf], [0.25]]), 1.0) == 0.25).all()


@pytest.mark.parametrize(
    ("kind", "loss", "targets"),
    [
        (kernels.SQUARED, Squared(), [0.3, -0.4, 0.0]),
        (kernels.LOGISTIC, Logistic(), [1, 0, 1]),
        (kernels.HINGE, HuberHinge(), [1, 0, 0]),
    ],
)
def test_columns_agree_with_the_losses(kind, loss, targets):
    x, scores, y = np.array([0.5, -1.0, 0.25]), np.array([0.2, 0.9, -3.0]), np.array(targets)
    signs = y if kind == kernels.SQUARED else np.where(y == 1, 1.0, -1.0)
    found = kernels.column_sum(kind, x, scores, signs, 0.5, 10.0)
    expected = loss.residual(scores[:, None], y)[:, 0] * x
    assert found[0] == pytest.approx(expected.sum(), abs=1e-7)
    assert kernels.inside_count(kind, x, scores, signs, 0.5, 1e-12) == int((np.abs(expected) <= 1e-12).sum())


@pytest.mark.parametrize("n", [0, 1, 1024, 2500])
@pytest.mark.parametrize("kind", [kernels.SQUARED, kernels.LOGISTIC, kernels.HINGE])
def test_scores_follow_an_update_in_the_pass_that_adds_up_the_next_column(kind, n):
    rng = np.random.default_rng(n)
    column, moved = (rng.normal(size=n).astype(np.float32) for _ in range(2))
    scores, targets = rng.normal(size=n), np.sign(rng.normal(size=n))
    later, kept = scores.copy(), scores.copy()
    kernels.shift_scores(later, moved, -0.7)
    found = kernels.column_sum(kind, column, scores, targets, 0.5, 0.3, moved, -0.7)
    assert found.tolist() == kernels.column_sum(kind, column, later, targets, 0.5, 0.3).tolist()
    assert scores.tolist() == later.tolist()
    kernels.column_sum(kind, column, kept, targets, 0.5, 0.3, moved, 0.0)
    assert n == 0 or kept.tolist() != later.tolist()


def test_the_sigmoid_is_off_by_less_than_1e_13():
    """And by little of itself where it is tiny: no term of the polynomial may be missing."""
    t = np.concatenate([np.linspace(-40, 40, 4001), [-599.0, 599.0, -1e4, 1e4, 0.0, -0.0]])
    found = np.array([kernels._sigmoid(x) for x in t])
    assert np.allclose(found, special.expit(t), rtol=0, atol=1e-13)
    assert np.allclose(found[:-4], special.expit(t[:-4]), rtol=1e-12, atol=0)
    assert found[-4:].tolist() == [pytest.approx(0, abs=1e-250), 1, 0.5, 0.5]


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(0, 4), st.just(3)), elements=awkward_floats()),
    st.sampled_from([(1.0, None), (1e-100, None), (1e100, None), (None, (-2.0, 3.0)), (0.5, (-2.0, 3.0))]),
)
def test_rows_end_in_the_unit_ball_or_blank(x, declared):
    mapping = Map.from_bounds(*declared, 3, True)
    records = mapping.records(x, np.zeros(len(x), int))
    for row, raw in zip(records.rows, x, strict=True):
        if np.isfinite(raw).all():
            assert row[3] == 1
            assert square(row) <= 2
        else:
            assert (row == 0).all()


@pytest.mark.parametrize("norm", [1.0, 2.0**-400])
def test_bounds_may_be_as_close_as_doubles_can_hold_the_coefficients_and_no_closer(norm):
    """Half their distance times the norm: 2^-960 at least,
    so that a coefficient is below 2^1000 however large a weight is.
    """
    least = 2 * 2.0**-960 / norm
    assert Map.from_bounds(norm, (0.0, least), 2, True).scale[0] * norm == 2.0**-960
    with pytest.raises(ValueError, match="bounds lie too close"):
        Map.from_bounds(norm, (0.0, math.nextafter(least, 0.0)), 2, True)


@settings(max_examples=40)
@given(st.integers(2, 5), st.integers(0, 2**32))
def test_losses_keep_the_constants_they_state(classes, seed):
    rng = np.random.default_rng(seed)
    for loss in (Logistic(), HuberHinge(0.3), Softmax(classes), OneVersusRest(HuberHinge(), classes)):
        scores, y = rng.normal(size=(50, loss.outputs)) * 5, rng.integers(0, max(loss.outputs, 2), 50)
        residuals = loss.residual(scores, y)
        assert np.linalg.norm(residuals, axis=1).max() <= loss.lipschitz + 1e-12
        change = rng.normal(size=scores.shape) * 1e-3
        moved = loss.residual(scores + change, y) - residuals
        assert (np.linalg.norm(moved, axis=1) <= loss.curvature * np.linalg.norm(change, axis=1) * (1 + 1e-6)).all()
        slope = (loss.value(scores + change, y) - loss.value(scores - change, y)) / 2
        assert np.allclose(slope, (residuals * change).sum(axis=1), atol=1e-5)


def test_the_determinant_of_a_softmax_record_is_bounded():
    rng = np.random.default_rng(3)
    for classes in (2, 3, 10):
        loss = Softmax(classes)
        for p in [*rng.dirichlet(np.ones(classes), 50), np.full(classes, 1 / classes)]:
            for ridge in (0.01, 1.0, 50.0):
                hessian = 2.0 * (np.diag(p) - np.outer(p, p))
                _, exact = np.linalg.slogdet(np.eye(classes) + hessian / ridge)
                assert exact <= loss.log_determinant(2.0, ridge) + 1e-9


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_a_shifted_record_counts_the_same_wherever_it_stands(kind):
    """Across blocks of 1,024 and the ends of vectors: without a record the sum is less by what it is alone."""
    rng, n, step = np.random.default_rng(kind), 2600, kernels.grid_step(0.3)
    columns = np.asfortranarray(rng.normal(size=(n, 2)), np.float32)
    scores, targets = rng.normal(size=n), np.where(rng.random(n) < 0.5, -1.0, 1.0)

    def steps(chosen):
        x = np.asfortranarray(columns[chosen])
        found = kernels.column_sum(kind, x[:, 0], scores[chosen], targets[chosen], 0.5, 0.3, x[:, 1], 0.7)
        return int(found[0] / step)

    everybody = np.arange(n)
    for record in (0, 3, 1023, 1024, 2047, 2048, n - 1):
        alone = steps(everybody[record : record + 1])
        assert abs(alone) * step <= 0.3
        assert steps(everybody) - steps(np.delete(everybody, record)) == alone
