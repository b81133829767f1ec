"""Implicit workloads are the matrices they stand for."""

import math

import numpy as np
import pytest

import discreet as dp
from discreet.workloads import AllRanges, Explicit, Identity, Marginals, Prefix, Product, four_queries
from tests.workloads.families import WORKLOADS, matrix_of


@pytest.mark.parametrize("name", WORKLOADS)
def test_closed_forms_are_those_of_the_matrix(name):
    """Gram matrix, its diagonal, its action, singular values, columns."""
    workload = WORKLOADS[name]
    matrix = matrix_of(workload.apply, workload.shape)
    gram = matrix.T @ matrix
    assert matrix.shape == (workload.queries, workload.size)
    assert np.allclose(workload.gram(), gram)
    assert np.allclose(workload.gram_diagonal(), np.diagonal(gram))
    assert np.allclose(workload.gram_apply(np.eye(workload.size)), gram)
    assert workload.nuclear_norm() == pytest.approx(np.linalg.norm(matrix, "nuc"))
    assert workload.column_norm("l1") == pytest.approx(np.abs(matrix).sum(axis=0).max())
    assert workload.column_norm("l2") == pytest.approx(np.linalg.norm(matrix, axis=0).max())


@pytest.mark.parametrize("workload", [Identity(13), Prefix(13), AllRanges(13)])
def test_structure_along_a_line(workload):
    """Energy of blocks, sums along diagonals, the tridiagonal inverse: against the generic dense versions."""
    gram = workload.gram()
    dense = Explicit(np.linalg.cholesky(gram).T)
    for width in (1, 2, 5, 13, 20):
        assert workload.block_energy(width) == pytest.approx(dense.block_energy(width))
    assert np.allclose(workload.diagonal_sums(), dense.diagonal_sums())
    if (inverse := workload.inverse_gram()) is not None:
        full = np.diag(inverse[0]) + np.diag(inverse[1], 1) + np.diag(inverse[1], -1)
        assert np.allclose(full @ gram, np.eye(13))


def test_ranges_are_found_by_their_ends():
    w, x = AllRanges(9), np.arange(9) ** 2
    answers = w.apply(x)
    for first in range(9):
        for last in range(first, 9):
            assert answers[w.index(first, last)] == x[first : last + 1].sum()
    with pytest.raises(ValueError, match="3 to 9 is not inside the cells 0 to 8"):
        w.index(3, 9)


def test_the_singular_value_bounds_of_the_literature():
    """Root-mean-square error, noise of unit variance per unit of sensitivity."""
    known = {AllRanges(256): 2.876, AllRanges(1024): 3.492, Prefix(256): 2.471, Prefix(1024): 2.910}
    for w, bound in known.items():
        assert math.sqrt(dp.workloads.svd_bound(w) / w.queries) == pytest.approx(bound, abs=5e-4)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: AllRanges(0), "n is 0"),
        (lambda: Prefix(2.5), "n is 2.5"),
        (lambda: Explicit([1, 2]), "matrix has shape"),
        (lambda: Explicit([[math.nan]]), "finite"),
        (lambda: Product(()), "factors"),
        (lambda: Product((Identity((2, 2)),)), "factors"),
        (lambda: Marginals((2, 3), [(2,)]), "attributes 0 to 1"),
        (lambda: Marginals((2, 3), []), "at least one"),
        (lambda: Marginals((2, 3), [(1, 1)]), "attributes 0 to 1"),
        (lambda: Marginals((64, 65), 1).gram(), "limited to 4096"),
        (lambda: Product((Prefix(64), Prefix(65))).gram(), "limited to 4096"),
    ],
)
def test_public_mistakes_are_named(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_the_four_queries_of_the_lectures_cost_what_they_say():
    """Total squared error 128/ε² by splitting the budget, 32/ε² all at once, 12/ε² from disjoint buckets."""
    w, epsilon = four_queries(), 0.5
    split = [dp.mechanisms.Laplace(sensitivity=1.0, epsilon=epsilon / 4, max_size=1) for _ in range(w.queries)]
    assert sum(2 * m.scale**2 for m in split) == pytest.approx(128 / epsilon**2, rel=1e-9)
    assert dp.epsilon(sum(m.event for m in split), delta=0.0) <= epsilon
    assert dp.workloads.all_queries(w).column_norm("l1") == pytest.approx(2)
    for strategy, total in ((dp.workloads.all_queries(w), 32), (dp.workloads.identity(w), 12)):
        query = dp.workloads.Query(workload=w, strategy=strategy, epsilon=epsilon)
        assert query.total_squared_error == pytest.approx(total / epsilon**2, rel=1e-9)
        assert dp.epsilon(query.event, delta=0.0) <= epsilon
