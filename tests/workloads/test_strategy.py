"""What every strategy promises: exact answers, a true sensitivity, least squares, an error in closed form."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.adjacency import Adjacency
from discreet.workloads import (
    AllRanges,
    Explicit,
    Identity,
    Marginals,
    Matrix,
    Prefix,
    Product,
    all_queries,
    compare,
    fourier,
    hierarchy,
    identity,
    optimise,
    svd_bound,
    unit_error,
    wavelet,
)
from discreet.workloads.filters import optimal_filters
from discreet.workloads.matrices import optimal_matrix, whole_product
from discreet.workloads.p_identity import error_and_gradient
from discreet.workloads.query import Query
from discreet.workloads.strategy import answers, counts
from tests.workloads.families import STRATEGIES, matrix_of

FINE = 2.0**-28  # answers are cut to 2^-30

# Their measurements live on a padded domain, where they are least squares.
PADDED = {"hierarchy 2", "hierarchy 5", "weighted hierarchy", "hierarchy table", "wavelet", "wavelet table", "fourier"}


def dense(strategy):
    return matrix_of(lambda x: answers(strategy, x), strategy.shape, dtype=int)


def gaps(matrix, norm):
    order = 1 if norm == "l1" else 2
    return max(float(np.linalg.norm(a - b, order)) for a in matrix.T for b in matrix.T)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_is_one_matrix(name):
    """Its answers, transpose, Gram matrix and norms agree with each other."""
    strategy = STRATEGIES[name]
    a = dense(strategy)
    size = a.shape[1]
    assert a.shape[0] == strategy.rows
    y = np.random.default_rng(0).normal(size=strategy.rows)
    assert np.allclose(strategy.adjoint(y).reshape(-1), a.T @ y, atol=1e-6)
    gram = strategy.gram_apply(np.eye(size).reshape(*strategy.shape, size)).reshape(size, size)
    assert np.allclose(gram, a.T @ a, atol=1e-6)
    assert np.abs(a).sum(axis=1).max() <= strategy.row_sum * (1 + 1e-12) + FINE
    for norm, order in (("l1", 1), ("l2", 2)):
        column = np.linalg.norm(a, order, axis=0).max()
        assert column <= strategy.sensitivity(norm) <= column * (1 + 1e-5)
        assert gaps(a, norm) <= strategy.sensitivity(norm, Adjacency.REPLACE) <= 2.0001 * strategy.sensitivity(norm)
        assert strategy.sensitivity(norm, Adjacency.ZERO_OUT) == strategy.sensitivity(norm)


@pytest.mark.parametrize("name", STRATEGIES)
def test_least_squares_recovers_and_spreads_noise_as_stated(name):
    """Noiseless answers give the histogram back; the estimate's covariance under unit noise is the one stated."""
    strategy = STRATEGIES[name]
    a, size = dense(strategy), math.prod(strategy.shape)
    x = np.arange(size, dtype=float).reshape(strategy.shape)
    assert np.allclose(strategy.estimate(a @ x.reshape(-1)), x, atol=1e-4)
    back = np.stack([strategy.estimate(row).reshape(-1) for row in np.eye(strategy.rows)], axis=1)
    covariance = strategy.covariance(np.eye(size).reshape(*strategy.shape, size)).reshape(size, size)
    assert np.allclose(back @ back.T, covariance, rtol=1e-4, atol=1e-5 * np.abs(covariance).max())
    if name not in PADDED:
        assert np.allclose(back, np.linalg.pinv(a), atol=1e-4 * np.abs(back).max())


@pytest.mark.parametrize("name", STRATEGIES)
@settings(max_examples=15)
@given(data=st.data())
def test_answers_to_huge_counts_move_no_further_than_the_sensitivity(name, data):
    """Fixed point errs by the same amount whatever the counts; a product in doubles would not (see the next test)."""
    strategy = STRATEGIES[name]
    size = math.prod(strategy.shape)
    huge = st.sampled_from([0, 1, -5, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**30])
    x = np.array(data.draw(st.lists(huge, min_size=size, max_size=size)), object).reshape(strategy.shape)
    cell = data.draw(st.integers(0, size - 1))
    moved = x.copy()
    moved.reshape(-1)[cell] += 1
    pairs = zip(answers(strategy, x).tolist(), answers(strategy, moved).tolist(), strict=True)
    change = [abs(Fraction(b) - Fraction(a)) for a, b in pairs]
    assert sum(change) <= strategy.sensitivity("l1")
    assert sum(c * c for c in change) <= Fraction(strategy.sensitivity("l2")) ** 2


def test_a_product_in_doubles_would_break_the_sensitivity():
    """The check above has power: plain floating point fails it."""
    strategy = STRATEGIES["filters, ranges"]
    a = dense(strategy)
    x = np.full(12, 2.0**53 - 2)
    moved = x.copy()
    moved[3] += 1
    assert np.linalg.norm(a @ moved - a @ x) > 2 * strategy.sensitivity("l2")


def test_products_of_whole_numbers_are_exact():
    rng = np.random.default_rng(3)
    matrix = rng.integers(-(2**40), 2**40, (5, 9)).astype(float)
    x = np.array([int(v) * 2**k for v, k in zip(rng.integers(-99, 99, 9), range(0, 90, 10), strict=True)], object)
    assert whole_product(matrix, x).tolist() == [sum(int(m) * v for m, v in zip(row, x, strict=True)) for row in matrix]


def test_a_histogram_means_counts_and_nothing_is_shown():
    assert counts([math.nan, math.inf, -math.inf, 2.9, -0.5], (5,)).tolist() == [0, 2**53, -(2**53), 2, -1]
    assert counts([None, "a", 2.9, True, 2**70, 10**400], (6,)).tolist() == [0, 0, 2, 1, 2**70, 2**200]
    assert counts(np.array([2**64 - 1], np.uint64), (1,)).tolist() == [2**64 - 1]
    assert counts(np.array([True, False]), (2,)).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"histogram has shape \(3,\), but the workload is over cells of shape \(2,\)"):
        counts([1, 2, 3], (2,))
    for bad in (np.array(["12345"]), np.array([12345j]), "12345", iter([12345])):
        with pytest.raises(ValueError, match=r"histogram .* but must be finite real numbers") as caught:
            counts(bad, np.shape(bad))
        assert "12345" not in str(caught.value)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("largest", [1, 2**20, 2**41, 2**53 + 1, 2**63 - 1, 2**64, 2**100])
def test_answers_depend_on_no_integer_type_and_no_size_of_the_counts(name, largest):
    """One cell of that size: as integers of any kind that hold it, answers are those of Python's."""
    strategy = STRATEGIES[name]
    plain = [largest if i == 1 else i for i in range(math.prod(strategy.shape))]
    exact = np.array(plain, object).reshape(strategy.shape)
    told = [Fraction(v) for v in answers(strategy, counts(exact, strategy.shape)).tolist()]
    for kind in (np.uint64, np.int64, np.int32, np.uint8):
        if largest <= np.iinfo(kind).max:
            other = answers(strategy, counts(np.array(plain, kind).reshape(strategy.shape), strategy.shape))
            assert [Fraction(v) for v in other.tolist()] == told
    if strategy.rounding == 0 and largest <= 2**20:
        assert np.allclose(np.array(told, float), dense(strategy) @ np.array(plain, float))


@pytest.mark.parametrize("kind", [np.int64, np.uint64, object])
@pytest.mark.parametrize("count", [1, 2**41])
def test_a_total_of_all_attributes_is_answered_whatever_holds_the_counts(kind, count):
    """Of Python's integers NumPy's total is a bare one: it failed after the charge, for uint64 and from 2^41 on."""
    for sets in ([()], [(), (0,)], [(), (0, 1)]):
        query = Query(workload=Marginals((2, 3), sets), epsilon=50.0)
        total = float(np.asarray(query.release(np.full((2, 3), count, kind), rng=1).value)[0])
        assert total == pytest.approx(6 * count, abs=3)
    assert int(Marginals((2, 3), [()]).apply(np.full((2, 3), count, object))[0]) == 6 * count


# --- errors in closed form ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "workload", [AllRanges(23), Prefix(23), Identity(23), Explicit(np.tri(23)[::3] + np.eye(23)[:8])]
)
def test_closed_forms_are_traces(workload):
    """Every strategy that knows a formula for a workload agrees with the dense trace."""
    makers = [
        identity,
        wavelet,
        fourier,
        hierarchy,
        lambda w: hierarchy(w, 3),
        lambda w: hierarchy(w, None, weighted=True),
    ]
    for strategy in [make(workload) for make in makers] + [
        optimise(AllRanges(23)),
        optimise(AllRanges(23), noise="laplace"),
    ]:
        by_columns = float(np.trace(strategy.covariance(workload.gram())))
        assert strategy.trace(workload) == pytest.approx(by_columns, rel=1e-6)


def rmse(workload, strategy, noise="gaussian"):
    return math.sqrt(unit_error(workload, strategy, noise) / workload.queries)


def test_the_known_figures_for_all_ranges_of_256_cells():
    w = AllRanges(256)
    assert rmse(w, identity(w)) == pytest.approx(9.274, abs=5e-4)
    assert rmse(w, hierarchy(w, 2)) == pytest.approx(3.835, abs=5e-4)
    assert rmse(w, wavelet(w)) == pytest.approx(3.505, abs=5e-4)


@pytest.mark.parametrize(
    ("workload", "ratio"),
    [
        (AllRanges(256), 1.010),
        (AllRanges(1024), 1.008),
        (Prefix(256), 1.023),
        (Prefix(1024), 1.018),
        (AllRanges(16_384), 1.005),
        (Prefix(16_384), 1.011),
    ],
)
def test_the_optimised_strategy_is_near_the_bound(workload, ratio):
    """Owed: 3 % for ranges, 6 % for prefixes. The optimum itself is this close."""
    bound = math.sqrt(svd_bound(workload) / workload.queries)
    assert bound <= rmse(workload, optimise(workload)) <= ratio * bound


def test_filters_are_the_dense_optimum():
    """Two roads to the same convex optimum."""
    for w in (AllRanges(48), Prefix(48)):
        assert rmse(w, optimal_filters(w)) == pytest.approx(rmse(w, optimal_matrix(w)), rel=1e-3)


@pytest.mark.parametrize(
    "workload",
    [
        AllRanges(100),
        Prefix(100),
        Marginals((3, 4, 5), 2),
        Product((Prefix(5), AllRanges(7))),
        Explicit(np.random.default_rng(4).normal(size=(30, 20))),
    ],
)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_nothing_named_beats_the_optimised_strategy_or_the_bound(workload, noise):
    table = compare(workload, noise=noise)
    assert min(table.rmse.values()) >= table.rmse["optimised"] * (1 - 1e-3)
    assert table.rmse["optimised"] >= table.bound


def test_marginals_under_gaussian_noise_meet_the_bound():
    w = Marginals((5, 6, 7, 2), 2)
    assert unit_error(w, optimise(w)) == pytest.approx(svd_bound(w), rel=1e-4)


def test_optimal_branching_and_level_weights_help():
    w = AllRanges(1024)
    plain, best = hierarchy(w, 2), hierarchy(w, branching=None, noise="laplace")
    weighted = hierarchy(w, branching=None, noise="laplace", weighted=True)
    assert rmse(w, plain, "laplace") > rmse(w, best, "laplace") > rmse(w, weighted, "laplace")


def test_a_tree_whose_noise_was_left_open_is_chosen_by_the_querys():
    """4,096 cells at ε = 0.1: the tree for Gaussian noise would give 250.7."""
    w = AllRanges(4096)
    left_open = hierarchy(w, branching=None, weighted=True)
    assert Query(workload=w, strategy=left_open, epsilon=0.1).rmse == pytest.approx(161.3, abs=0.1)
    assert (
        Query(workload=w, strategy=left_open, rho=0.5).rmse
        == Query(workload=w, strategy=hierarchy(w, None, noise="gaussian", weighted=True), rho=0.5).rmse
    )
    said = hierarchy(w, None, noise="gaussian", weighted=True)
    assert Query(workload=w, strategy=said, epsilon=0.1).rmse == pytest.approx(250.7, abs=0.1)
    table = Product((AllRanges(64), AllRanges(64)))
    assert Query(workload=table, strategy=hierarchy(table, None), epsilon=1.0).rmse == pytest.approx(
        Query(workload=table, strategy=hierarchy(table, None, noise="laplace"), epsilon=1.0).rmse
    )


def test_the_gradient_of_p_identity_is_right():
    rng, w = np.random.default_rng(5), Prefix(7)
    theta, step = rng.random((3, 7)), 1e-6 * rng.random((3, 7))
    ahead, behind = error_and_gradient(theta + step, w)[0], error_and_gradient(theta - step, w)[0]
    assert (ahead - behind) / 2 == pytest.approx(float((error_and_gradient(theta, w)[1] * step).sum()), rel=1e-5)


def test_a_strategy_that_does_not_determine_the_queries_is_refused():
    with pytest.raises(ValueError, match="does not determine every query"):
        Matrix(np.array([[1.0, 1.0]])).trace(Identity(2))
    with pytest.raises(ValueError, match="does not measure the attributes"):
        optimise(Marginals((2, 3), [(0,)])).trace(Marginals((2, 3), [(1,)]))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: optimise(Prefix(4), noise="cauchy"), "noise is 'cauchy'"),
        (lambda: hierarchy(8, 1), "branching is 1"),
        (lambda: hierarchy(8, None), "need a workload"),
        (lambda: fourier(Marginals((2, 2), 1)), "cells in a row"),
        (lambda: all_queries(Marginals((2, 2), 1)), "no strategy of all queries"),
        (lambda: optimal_filters(Identity(4)), "no tridiagonal inverse"),
        (lambda: identity(3).trace(Prefix(4)), r"shape \(4,\), but the strategy is over \(3,\)"),
        (lambda: Matrix(np.zeros((2, 2))).rows, "not all of them zero"),
    ],
)
def test_public_mistakes_are_named(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_a_comparison_prints_and_plots(tmp_path):
    table = compare(AllRanges(64))
    assert next(name for name, _ in table) == "all queries"
    assert "SVD lower bound" in str(table)
    table.plot(str(tmp_path / "bars.png"))
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")
