"""Projection on a convex set that contains the truth never hurts, in the norm it was made in."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from discreet.workloads import (
    AllRanges,
    Constraints,
    Explicit,
    Identity,
    Marginals,
    Prefix,
    Product,
    fitted,
    hierarchy,
    optimise,
    project,
    wavelet,
)
from discreet.workloads.strategy import answers

FACTS = [
    {"nonnegative": True},
    {"monotone": "increasing"},
    {"monotone": "decreasing"},
    {"total": 30.0},
    {"nonnegative": True, "total": 30.0},
    {"nonnegative": True, "monotone": "increasing"},
    {"monotone": "decreasing", "total": 30.0},
    {"nonnegative": True, "monotone": "increasing", "total": 30.0},
]
STRATEGIES = [
    hierarchy(8, 2),
    hierarchy(7, 3),
    wavelet(8),
    optimise(AllRanges(8)),
    optimise(AllRanges(8), noise="laplace"),
]


def truth(facts, seed, n):
    """A histogram that satisfies the constraints."""
    x = np.random.default_rng(seed).integers(0, 9, n).astype(float) - (0 if facts.get("nonnegative") else 2)
    if "monotone" in facts:
        x = np.sort(x)[:: 1 if facts["monotone"] == "increasing" else -1]
    if "total" in facts:
        x = np.maximum(x, 0.0) + 1e-3
        x *= facts["total"] / x.sum()
    return x


def satisfied(x, facts):
    step = np.diff(x) * (-1 if facts.get("monotone") == "decreasing" else 1)
    return (
        (not facts.get("nonnegative") or x.min() >= -1e-9)
        and ("monotone" not in facts or step.min() >= -1e-9)
        and ("total" not in facts or abs(x.sum() - facts["total"]) < 1e-5)
    )


@settings(max_examples=60)
@given(
    facts=st.sampled_from(FACTS),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([0.1, 3.0, 100.0]),
    n=st.integers(2, 12),
)
def test_projecting_never_hurts(facts, seed, scale, n):
    """Euclidean norm on cells."""
    x = truth(facts, seed, n)
    z = x + scale * np.random.default_rng(seed + 1).normal(size=n)
    p = project(z, **facts)
    assert satisfied(p, facts)
    assert np.linalg.norm(p - x) <= np.linalg.norm(z - x) * (1 + 1e-9) + 1e-9
    assert np.allclose(project(p, **facts), p, atol=1e-9)
    for other in (truth(facts, seed + k, n) for k in range(2, 6)):  # the angle at p is at least 90°
        assert (z - p) @ (other - p) <= 1e-6 * (1 + scale) ** 2


@settings(max_examples=40)
@given(
    facts=st.sampled_from(FACTS),
    which=st.sampled_from(range(len(STRATEGIES))),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([0.1, 3.0, 100.0]),
)
def test_constrained_inference_never_hurts(facts, which, seed, scale):
    """The norm of the measurements: ‖A(x̂ - x)‖ is no larger with constraints than without."""
    strategy = STRATEGIES[which]
    n = strategy.shape[0]
    x = truth(facts, seed, n)
    noise = scale * np.random.default_rng(seed + 1).normal(size=strategy.rows)
    plain = strategy.covariance(strategy.adjoint(noise)) if strategy.shape != (7,) else None
    y = matrix(strategy) @ x + noise
    p = fitted(strategy, y, Constraints(**facts))
    assert satisfied(p, facts)
    error = length(strategy, p - x)
    if plain is not None:  # on a padded domain plain least squares uses less than is known
        assert error <= length(strategy, plain) * (1 + 1e-4) + 1e-4


WORKLOADS = [Prefix(8), AllRanges(8), Identity(8), Explicit(np.random.default_rng(1).normal(size=(20, 8)))]


@settings(max_examples=60)
@given(
    facts=st.sampled_from(FACTS),
    workload=st.sampled_from(WORKLOADS),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([0.1, 3.0, 100.0]),
)
def test_constraints_never_raise_the_workloads_error(facts, workload, seed, scale):
    """In the norm of its answers, in every single run; given the total that the constraints know, if any."""
    strategy = hierarchy(8, 2)
    x = truth(facts, seed, 8)
    y = matrix(strategy) @ x + scale * np.random.default_rng(seed + 1).normal(size=strategy.rows)
    known = Constraints(total=facts["total"]) if "total" in facts else None
    before = np.linalg.norm(workload.apply(fitted(strategy, y, known) - x))
    p = fitted(strategy, y, Constraints(**facts), workload)
    assert satisfied(p, facts)
    assert np.linalg.norm(workload.apply(p - x)) <= before * (1 + 1e-4) + 1e-4


@pytest.mark.parametrize("workload", [Prefix(24), AllRanges(24)])
def test_rising_sums_are_the_projection(workload):
    """The linear-time road and a dense solver meet."""
    strategy = hierarchy(24, 2)
    y = np.random.default_rng(3).normal(size=strategy.rows) * 5
    rows = np.stack([workload.apply(row) for row in np.eye(24)], axis=1)
    exact, _ = nnls(rows, rows @ strategy.estimate(y))
    assert np.allclose(fitted(strategy, y, Constraints(nonnegative=True), workload), exact, atol=1e-6)


def test_tables_take_constraints_too():
    """A product and marginals, where the norm has no short cut."""
    for workload in (Product((Prefix(3), AllRanges(4))), Marginals((3, 4), [(0,), (1,)])):
        strategy = hierarchy((3, 4))
        y = np.random.default_rng(4).normal(size=strategy.rows) * 5
        p = fitted(strategy, y, Constraints(nonnegative=True), workload)
        assert p.shape == (3, 4)
        assert p.min() >= 0
        # truth: nothing
        assert np.linalg.norm(workload.apply(p)) <= np.linalg.norm(workload.apply(strategy.estimate(y)))


def matrix(strategy):
    return np.stack([np.asarray(answers(strategy, row), float) for row in np.eye(strategy.shape[0], dtype=int)], axis=1)


def length(strategy, v):
    return float(np.sqrt(v @ strategy.gram_apply(v)))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: f"{s.name} {s.shape[0]}")
def test_nonnegative_least_squares_is_the_dense_solvers(strategy):
    y = np.random.default_rng(3).normal(size=strategy.rows) * 5
    a = matrix(strategy)
    exact, residual = nnls(a, y)
    found = fitted(strategy, y, Constraints(nonnegative=True))
    assert np.linalg.norm(a @ found - y) == pytest.approx(residual, rel=1e-6)
    assert np.allclose(found, exact, atol=1e-3)


def test_a_total_of_zero_leaves_nothing():
    strategy = hierarchy(8, 2)
    found = fitted(
        strategy, np.random.default_rng(3).normal(size=strategy.rows), Constraints(nonnegative=True, total=0.0)
    )
    assert np.allclose(found, 0.0, atol=1e-6)


def test_the_tree_solver_is_least_squares_for_any_branching():
    for branching in (2, 3, 4, 7):
        strategy = hierarchy(AllRanges(branching**2), branching, weighted=True)
        y = np.random.default_rng(branching).normal(size=strategy.rows)
        assert np.allclose(strategy.estimate(y), np.linalg.lstsq(matrix(strategy), y)[0], atol=1e-6)


def test_public_mistakes_are_named():
    with pytest.raises(ValueError, match="monotone is 'up'"):
        Constraints(monotone="up")
    with pytest.raises(ValueError, match="total is -1"):
        Constraints(nonnegative=True, total=-1)
    with pytest.raises(ValueError, match="no single order"):
        fitted(hierarchy((2, 3)), np.zeros(hierarchy((2, 3)).rows), Constraints(monotone="increasing"))
