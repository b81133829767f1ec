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
    answer,
    constrained_inference,
    hierarchy,
    optimise,
    project,
    wavelet,
)
from discreet.workloads.interior import nearest_nonnegative
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
    p = constrained_inference(strategy, y, Constraints(**facts))
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
    before = np.linalg.norm(workload.apply(constrained_inference(strategy, y, known) - x))
    p = constrained_inference(strategy, y, Constraints(**facts), workload)
    assert satisfied(p, facts)
    assert np.linalg.norm(workload.apply(p - x)) <= before * (1 + 1e-4) + 1e-4


@pytest.mark.parametrize("workload", [Prefix(24), AllRanges(24)])
def test_rising_sums_are_the_projection(workload):
    """The linear-time road and a dense solver meet."""
    strategy = hierarchy(24, 2)
    y = np.random.default_rng(3).normal(size=strategy.rows) * 5
    rows = np.stack([workload.apply(row) for row in np.eye(24)], axis=1)
    exact, _ = nnls(rows, rows @ strategy.estimate(y))
    assert np.allclose(constrained_inference(strategy, y, Constraints(nonnegative=True), workload), exact, atol=1e-6)


def test_tables_take_constraints_too():
    """A product and marginals, where the norm has no short cut."""
    for workload in (Product((Prefix(3), AllRanges(4))), Marginals((3, 4), [(0,), (1,)])):
        strategy = hierarchy((3, 4))
        y = np.random.default_rng(4).normal(size=strategy.rows) * 5
        p = constrained_inference(strategy, y, Constraints(nonnegative=True), workload)
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
    found = constrained_inference(strategy, y, Constraints(nonnegative=True))
    assert np.linalg.norm(a @ found - y) == pytest.approx(residual, rel=1e-6)
    assert np.allclose(found, exact, atol=1e-3)


def test_a_total_of_zero_leaves_nothing():
    strategy = hierarchy(8, 2)
    found = constrained_inference(
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
        constrained_inference(hierarchy((2, 3)), np.zeros(hierarchy((2, 3)).rows), Constraints(monotone="increasing"))


# --- grids, by the interior-point method ---------------------------------------------------------------------------

GRIDS = [
    Product((AllRanges(5), AllRanges(6))),
    Product((Prefix(7), Identity(3))),
    Product((Identity(2), AllRanges(3), Prefix(4))),
    Product((Prefix(1), AllRanges(9))),
    AllRanges(12),
]


@settings(max_examples=60)
@given(
    workload=st.sampled_from(GRIDS),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([1e-3, 3.0, 1e6]),
    known=st.booleans(),
)
def test_on_a_grid_the_nearest_histogram_is_found(workload, seed, scale, known):
    """The conditions of optimality hold, with and without a total: what is not zero has no slope, what is zero has none
    downwards; with a total, up to one shift.
    """
    rng = np.random.default_rng(seed)
    z = rng.normal(size=workload.shape) * scale
    total = float(scale * z.size) if known else None
    x = nearest_nonnegative(workload, z, total)
    assert x is not None
    assert x.min() >= 0
    slope = workload.gram_apply((x - z).reshape(-1)).reshape(x.shape)
    if known:
        assert x.sum() == pytest.approx(total)
        slope = slope - slope[x > 0].mean()
    size = np.sqrt(workload.gram_diagonal().reshape(x.shape))  # of a slope, for a unit of answers
    length = np.sqrt((z * workload.gram_apply(z.reshape(-1)).reshape(z.shape)).sum()) + scale
    assert (slope / size).min() >= -1e-4 * length
    assert np.abs((slope / size)[x > 0]).max(initial=0) <= 1e-4 * length


@pytest.mark.parametrize(("size", "total"), [(1e10, 100.0), (1e100, 1.0), (1e307, 2.0**53), (1.0, 5e-324)])
def test_a_total_far_from_the_noise_gives_numbers_or_nothing(size, total):
    """No cell outweighs its slope, or a product leaves the doubles: neither a division by zero nor NaN."""
    for seed in range(5):
        z = size * np.random.default_rng(seed).normal(size=(4, 4))
        x = nearest_nonnegative(Product((Prefix(4), Prefix(4))), z, total)
        assert x is None or (x.min() >= 0 and x.sum() == pytest.approx(total))


def test_a_known_total_far_below_the_noise_is_met():
    estimate = [
        answer(GRIDS[0], np.ones(GRIDS[0].shape, int), epsilon=1e-8, nonnegative=True, total=9, rng=seed).value.estimate
        for seed in range(3)
    ]
    assert [found.sum() for found in estimate] == pytest.approx([9] * 3)


def test_a_grid_of_64_by_64_takes_few_factors(monkeypatch):
    """Where L-BFGS-B takes thousands of products; the answers are those of the exact minimum to 10⁻⁵."""
    from discreet.workloads import interior

    factors = []
    plain = interior.cholesky_banded
    monkeypatch.setattr(interior, "cholesky_banded", lambda *a, **k: factors.append(1) or plain(*a, **k))
    w = Product((AllRanges(64), AllRanges(64)))
    z = np.random.default_rng(1).normal(size=(64, 64)) + 0.2
    assert nearest_nonnegative(w, z) is not None
    assert len(factors) <= 40


def test_other_workloads_are_left_to_another_method():
    assert nearest_nonnegative(Marginals((4, 4), ((0,), (1,))), np.ones((4, 4))) is None
    assert nearest_nonnegative(WORKLOADS[-1], -np.ones(8)) is None
