"""Output and objective perturbation: the constants of the theorems, the laws of the noise,
minimisers that are certified.
"""

import math

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet.linear.losses import HuberHinge, Logistic, Softmax
from discreet.linear.problem import Problem
from discreet.linear.rows import Map
from discreet.linear.solvers._minimise import Minimisation
from discreet.linear.solvers._noise import COVER_SHARE, radial, radial_error
from discreet.linear.solvers.objective import ObjectivePerturbation
from discreet.linear.solvers.output import TOLERANCE, OutputPerturbation
from discreet.random import seeded

FALSE_ALARM = 1e-6
R = math.sqrt(2)


def problem(loss=None, **facts):
    return Problem(
        **{
            "loss": loss or Logistic(),
            "epsilon": 1.0,
            "delta": 0.0,
            "square": 2.0,
            "features": 4,
            "regularization": 10.0,
        }
        | facts
    )


def records(n=300, features=3, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, features)), rng.integers(0, classes, n)
    return Map.from_bounds(1.0, None, features, True).records(x, y)


@pytest.mark.parametrize(("adjacency", "changes"), [("add-remove", 1), ("replace", 2)])
def test_output_sensitivity_is_what_a_record_moves_the_minimiser_by(adjacency, changes):
    solver = OutputPerturbation(problem=problem(adjacency=adjacency))
    assert solver.sensitivity == pytest.approx(changes * R / 10, rel=2.1 * TOLERANCE)
    assert solver.sensitivity >= changes * R / 10


def test_one_record_moves_the_minimiser_by_no_more():
    data, worst = records(), 0.0
    full = Minimisation(Logistic(), data, 2.0, 10.0, np.zeros((4, 1))).solve(1e-7)
    for i in range(100):
        kept = data.take(np.arange(300) != i)
        worst = max(
            worst, np.linalg.norm(full - Minimisation(Logistic(), kept, 2.0, 10.0, np.zeros((4, 1))).solve(1e-7))
        )
    assert 0 < worst <= R / 10


@pytest.mark.parametrize(("adjacency", "changes"), [("add-remove", 1), ("replace", 2)])
def test_objective_noise_follows_the_theorem(adjacency, changes):
    """R = 1: Γ(d, 1/ε′) with ε′ = ε - ln(1 + c/Λ); twice each under replace. c scales with R²."""
    for square in (1.0, 2.0):
        solver = ObjectivePerturbation(problem=problem(adjacency=adjacency, square=square))
        left = (1 - COVER_SHARE) - changes * math.log(1 + 0.25 * square / 10)
        assert solver.regularization == 10
        assert solver.epsilon_left == pytest.approx(left, rel=1e-8)
        assert solver.noise_scale == pytest.approx(changes * math.sqrt(square) / left, rel=1e-8)


@pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 2), ("replace", 4)])
def test_regularization_grows_when_epsilon_is_small(adjacency, factor):
    """Λ = c/(e^{ε/2} - 1) under add-remove, c/(e^{ε/4} - 1) under replace, and ε′ = ε/2."""
    solver = ObjectivePerturbation(problem=problem(epsilon=0.01, adjacency=adjacency, regularization=1.0))
    epsilon = 0.01 * (1 - COVER_SHARE)
    assert solver.regularization == pytest.approx(0.5 / math.expm1(epsilon / factor), rel=1e-6)
    assert solver.epsilon_left == pytest.approx(epsilon / 2, rel=1e-6)


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(), Softmax(3)])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_the_gaussian_tilt_keeps_its_budget(loss, epsilon):
    """The privacy loss |Z|·μ + μ²/2 + κ (one-sided for one sign) exceeds epsilon with a hockey-stick mass below
    delta.
    """
    solver = ObjectivePerturbation(problem=problem(loss=loss, epsilon=epsilon, delta=1e-3))
    mu = loss.lipschitz * R / solver.noise_scale
    kappa = loss.log_determinant(2.0, solver.regularization)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200_000, loss.outputs))
    reach = np.maximum(z[:, 0], 0) if loss.outputs == 1 else np.linalg.norm(z, axis=1)
    excess = np.maximum(0, -np.expm1(epsilon * (1 - COVER_SHARE) - (reach * mu + mu**2 / 2 + kappa)))
    assert excess.mean() <= 1e-3 + 6 * excess.std() / math.sqrt(len(z))
    assert kappa <= epsilon / 2


def test_radial_noise_has_a_gamma_norm_and_a_uniform_direction():
    rng = seeded(3)
    draws = np.array([radial(3, 2.0, rng) for _ in range(20_000)])
    norms = np.linalg.norm(draws, axis=1)
    assert stats.kstest(norms, stats.gamma(3, scale=2.0).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(norms, stats.gamma(3, scale=2.1).cdf).pvalue < FALSE_ALARM
    assert stats.kstest(norms, stats.gamma(4, scale=1.5).cdf).pvalue < FALSE_ALARM
    height = draws[:, 1] / norms  # uniform on [-1, 1] for a uniform direction in three dimensions
    assert stats.kstest(height, stats.uniform(-1, 2).cdf).pvalue > FALSE_ALARM
    assert abs(radial(1, 1.0, rng)[0]) > 0
    assert radial_error(100, 1.0) < 1e-5


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(0.1), Softmax(3)])
@pytest.mark.parametrize(("n", "ridge"), [(0, 1.0), (1, 1e-3), (300, 1e-4), (300, 1e4)])
def test_minimisers_are_certified(loss, n, ridge):
    data = records(max(n, 1), classes=max(loss.outputs, 2)).take(np.arange(n))
    tilt = np.random.default_rng(1).normal(size=(4, loss.outputs)) * 5
    found = Minimisation(loss, data, 2.0, ridge, tilt)
    w = found.solve(1e-5)
    exact = data.rows.T @ loss.residual(data.rows @ w, data.targets) + ridge * w + tilt
    assert np.linalg.norm(exact) <= 1e-5


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(0.5), Softmax(3)])
def test_a_bound_below_the_rounding_of_doubles_is_met_in_extended_precision(loss):
    """As with tens of millions of records, where a sum of doubles cannot certify its own norm."""
    data, tilt = records(300, classes=max(loss.outputs, 2)), np.ones((4, loss.outputs))
    found = Minimisation(loss, data, 2.0, 1.0, tilt)
    w = found.solve(1e-11)
    assert found.slack(w) > 1e-11 > found.slack(w, precise=True)
    rows = data.rows.astype(np.longdouble)
    exact = rows.T @ loss.residual(rows @ w, data.targets) + w + tilt
    assert np.linalg.norm(exact.astype(float)) <= 1e-11


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(0.5)])
def test_a_ridge_that_rounding_hides_is_no_error(loss):
    """Equal columns and Λ = 1e-18: the Hessian is singular in doubles, which data alone decide."""
    data = Map.from_bounds(1.0, None, 3, True).records(np.ones((300, 3)), np.arange(300) % 2)
    w = Minimisation(loss, data, 2.0, 1e-18, np.zeros((4, 1))).solve(1e-4)
    assert np.isfinite(w).all()


@pytest.mark.parametrize("kind", [OutputPerturbation, ObjectivePerturbation])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", [0.05, 2.0])
def test_the_event_costs_what_was_asked(kind, delta, adjacency, epsilon):
    solver = kind(problem=problem(delta=delta, adjacency=adjacency, epsilon=epsilon))
    assert epsilon * 0.99 <= dp.epsilon(solver.event, delta, adjacency=adjacency) <= epsilon
