"""Grid releases: the event is known before data, epsilon is never exceeded, no bit outside the grid survives."""

import dataclasses
import math
import pickle
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import discreet as dp
from discreet.mechanisms import Gaussian, Laplace
from discreet.mechanisms.grid import Grid
from discreet.random import exact_sum, seeded
from searches._odd import Failing

FALSE_ALARM = 1e-6
positive = st.floats(1e-6, 1e6)


@given(sensitivity=positive, epsilon=st.floats(1e-3, 50), size=st.sampled_from([1, 7, 1000, 2**20, 10**8]))
def test_laplace_asked_for_epsilon_never_costs_more(sensitivity, epsilon, size):
    mechanism = Laplace(sensitivity=sensitivity, epsilon=epsilon, max_size=size)
    assert 1 / Fraction(mechanism.event.noise_multiplier) <= Fraction(epsilon)
    assert dp.epsilon(mechanism.event, delta=0) <= epsilon
    assert mechanism.scale <= sensitivity / epsilon * (1 + 1e-9 + size * 2.0**-43 / epsilon)


@settings(max_examples=30)
@given(sensitivity=positive, epsilon=st.floats(0.01, 10), delta=st.sampled_from([1e-2, 1e-5, 1e-9]))
def test_gaussian_asked_for_epsilon_never_costs_more(sensitivity, epsilon, delta):
    mechanism = Gaussian(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    assert dp.epsilon(mechanism.event, delta=delta) <= epsilon
    assert dp.epsilon(mechanism.event, delta=delta) >= epsilon * (1 - 1e-6)


@given(sensitivity=positive, scale=positive)
def test_asked_for_a_scale_the_event_pays_for_the_rounding(sensitivity, scale):
    for mechanism, used in (
        (Laplace(sensitivity=sensitivity, scale=scale), "scale"),
        (Gaussian(sensitivity=sensitivity, sigma=scale), "sigma"),
    ):
        assert scale * (1 - 2.0**-43) <= getattr(mechanism, used) <= scale
        assert Fraction(mechanism.event.noise_multiplier) < Fraction(scale) / Fraction(sensitivity)
        assert mechanism.event.noise_multiplier > scale / sensitivity * (1 - 1e-6 * (1 + scale / sensitivity))


def test_zcdp_calibration():
    mechanism = Gaussian(sensitivity=2.0, rho=0.5)
    assert mechanism.sigma == pytest.approx(2.0, rel=1e-6)
    assert 1 / (2 * mechanism.event.noise_multiplier**2) <= 0.5


def test_classic_calibration_is_wider_and_refuses_epsilon_above_one():
    classic = Gaussian(sensitivity=1.0, epsilon=1.0, delta=1e-5, calibration="classic")
    assert classic.sigma > Gaussian(sensitivity=1.0, epsilon=1.0, delta=1e-5).sigma
    assert dp.epsilon(classic.event, delta=1e-5) < 1.0
    with pytest.raises(ValueError, match=r"epsilon is 1\.2, but calibration='classic'"):
        Gaussian(sensitivity=1.0, epsilon=1.2, delta=1e-5, calibration="classic")
    with pytest.raises(ValueError, match="calibration is 'other'"):
        Gaussian(sensitivity=1.0, epsilon=0.5, delta=1e-5, calibration="other")


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [(Laplace(sensitivity=3.0, scale=6.0), "laplace"), (Gaussian(sensitivity=3.0, sigma=6.0), "norm")],
)
def test_noise_has_the_scale_the_event_promises(mechanism, law):
    noise = mechanism.release(np.zeros(100_000), rng=seeded(7)).value
    assert stats.kstest(noise / 6.0, law).pvalue > FALSE_ALARM
    for wrong in (5.75, 6.25):
        assert stats.kstest(noise / wrong, law).pvalue < FALSE_ALARM


@pytest.mark.parametrize("mechanism", [Laplace(sensitivity=1.0, scale=2.5), Gaussian(sensitivity=1.0, sigma=2.5)])
def test_error_is_the_quantile_it_claims(mechanism):
    noise = np.abs(mechanism.release(np.zeros(100_000), rng=seeded(8)).value)
    for confidence in (0.5, 0.95):
        missed = int((noise > mechanism.error(confidence)).sum())
        low, high = stats.binom.ppf([FALSE_ALARM, 1 - FALSE_ALARM], noise.size, 1 - confidence)
        assert low <= missed <= high


VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=64).filter(lambda x: abs(x) < 1e307),
    st.sampled_from([0.0, -0.0, 5e-324, 1e300, -1e300, 2.0**53 + 1]),
)


@given(st.lists(VALUES, min_size=1, max_size=5), st.sampled_from([1e-9, 0.3, 1.0, 1e5]))
def test_outputs_are_the_rounding_of_a_cell_middle_whatever_the_value(values, scale):
    """The exact sum of the placed value and an odd number of half steps, rounded once: a function of the cell alone."""
    grid = Grid.inside(scale)
    placed = grid.place(np.array(values), 10)
    cells = np.array([3, -(2**40), 2**45, -1, 2**52 + 1][: len(values)])
    for v, n, out in zip(placed, cells, grid.add(placed, cells), strict=True):
        assert (Fraction(v) / grid.step).denominator == 1
        assert out == float(Fraction(v) + (int(n) + Fraction(1, 2)) * grid.step)


@given(VALUES, st.sampled_from([1e-9, 0.3, 1.0, 1e5]))
def test_rounding_to_the_grid_moves_a_value_by_at_most_half_a_step(value, scale):
    grid = Grid.inside(scale)
    for placed in (grid.place(np.array([value]), 1)[0], grid.place(value, 1).item()):
        assert abs(Fraction(placed) - Fraction(value)) <= grid.step / 2


@pytest.mark.parametrize("steps", [2.0**51 + 0.5, 2.0**52 - 0.5, 2.0**52 + 1])
def test_the_last_doubles_between_two_grid_points_are_rounded(steps):
    """Up to 2^52 steps a double may lie between two of them; beyond, every one is a whole number of steps."""
    grid = Grid.inside(1.0)
    for sign in (1, -1):
        placed = grid.place(np.array([sign * steps * float(grid.step)]), 1)[0]
        assert (Fraction(placed) / grid.step).denominator == 1
        assert abs(Fraction(placed) - sign * Fraction(steps) * grid.step) <= grid.step / 2


def test_scalars_arrays_fractions_and_integers_are_accepted():
    mechanism = Laplace(sensitivity=1.0, epsilon=1.0)
    for scalar in (3, 3.0, np.float32(3), np.array(3.0), Fraction(1, 3)):
        assert type(mechanism.release(scalar).value) is float
    assert mechanism.release(np.zeros((2, 3))).value.shape == (2, 3)
    assert mechanism.release([1, 2, 2**60]).value.shape == (3,)
    assert mechanism.release(np.zeros(0)).value.shape == (0,)
    near = mechanism.release(exact_sum([1e16, 1.0, -1e16]), rng=1).value
    assert near == mechanism.release(1.0, rng=1).value


@pytest.mark.parametrize(
    "make", [lambda: Laplace(sensitivity=1.0, epsilon=1.0), lambda: Gaussian(sensitivity=1.0, sigma=1.0)]
)
@pytest.mark.parametrize("bad", ["12345", np.array(["12345"]), None, 12345j, object()])
def test_what_is_publicly_no_number_is_refused_without_being_shown(make, bad):
    with pytest.raises(ValueError, match="finite real numbers") as caught:
        make().release(bad)
    assert "12345" not in str(caught.value)


def test_more_entries_than_declared_are_refused():
    with pytest.raises(ValueError, match="value has 3 entries, but at most max_size=2"):
        Laplace(sensitivity=1.0, epsilon=1.0, max_size=2).release([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "make", [lambda: Laplace(sensitivity=1.0, epsilon=1.0), lambda: Gaussian(sensitivity=1.0, sigma=1.0)]
)
@pytest.mark.parametrize("bad", [math.nan, None, "12345", Decimal("sNaN"), 12345j, object(), Failing()])
def test_an_entry_that_is_no_number_is_nothing(make, bad):
    """An error would tell that it is there; the other entries are noised as they are beside a zero."""
    odd, plain = (make().release([first, 7.5, 2**60], rng=1).value for first in (bad, 0))
    assert odd.tolist() == plain.tolist()


def test_a_result_too_large_for_a_double_is_the_largest():
    largest = sys.float_info.max
    mechanism = Laplace(sensitivity=1.0, epsilon=1.0)
    for beyond in (10**400, math.inf, Decimal("1e99999"), np.longdouble("1e4000")):
        assert mechanism.release(beyond).value == largest
        assert mechanism.release([-beyond, 0.0]).value[0] == -largest
    assert Grid(2**44, 970).add(np.array([largest]), np.array([2**40])) == largest


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", None, True])
def test_parameters_out_of_range_are_named(bad):
    with pytest.raises(ValueError, match="sensitivity"):
        Laplace(sensitivity=bad, epsilon=1.0)
    with pytest.raises(ValueError, match=r"scale|epsilon"):
        Laplace(sensitivity=1.0, scale=bad)
    with pytest.raises(ValueError, match="epsilon"):
        Laplace(sensitivity=1.0, epsilon=bad)
    with pytest.raises(ValueError, match=r"sigma|epsilon"):
        Gaussian(sensitivity=1.0, sigma=bad)
    with pytest.raises(ValueError, match="delta"):
        Gaussian(sensitivity=1.0, epsilon=1.0, delta=bad)
    with pytest.raises(ValueError, match="max_size"):
        Laplace(sensitivity=1.0, epsilon=1.0, max_size=bad if bad is not True else 0)


def test_exactly_one_way_of_asking():
    with pytest.raises(ValueError, match="nothing given, but exactly one of scale, epsilon"):
        Laplace(sensitivity=1.0)
    with pytest.raises(ValueError, match="scale and epsilon given"):
        Laplace(sensitivity=1.0, scale=1.0, epsilon=1.0)
    with pytest.raises(ValueError, match="delta given with sigma"):
        Gaussian(sensitivity=1.0, sigma=1.0, delta=1e-5)
    with pytest.raises(ValueError, match="adjacency is 'nearby'"):
        Laplace(sensitivity=1.0, scale=1.0, adjacency="nearby")


def test_too_many_entries_for_the_budget_is_an_error():
    with pytest.raises(ValueError, match="max_size is too large"):
        Laplace(sensitivity=1.0, epsilon=1e-9, max_size=2**40)


def test_mechanisms_are_values():
    mechanism = Laplace(sensitivity=1.0, epsilon=0.5, adjacency="replace")
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert hash(mechanism) == hash(dataclasses.replace(mechanism))
    assert dataclasses.replace(mechanism).event == mechanism.event
    assert mechanism.event.adjacency == "replace"
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.scale = 1.0


def test_a_seed_marks_the_release():
    mechanism = Gaussian(sensitivity=1.0, sigma=1.0)
    assert mechanism.release(1.0, rng=1) == mechanism.release(1.0, rng=1)
    assert mechanism.release(1.0, rng=1).reproducible
    assert not mechanism.release(1.0).reproducible
    assert mechanism.release(1.0).value != mechanism.release(1.0).value
