"""Sparse matrices are the tables they stand for."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import discreet as dp
from discreet.estimators import GaussianNB
from discreet.linear import LinearRegression, LogisticRegression

X = (np.random.default_rng(0).random((400, 6)) < 0.3).astype(float)
Y = X[:, 0].astype(int)


def least_squares(**facts):
    """A regression of targets in [-1, 1]."""
    return LinearRegression(target_bounds=(-1, 1), **facts)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array, sp.csr_array])
@pytest.mark.parametrize(
    "kind", [partial(LogisticRegression, classes=(0, 1)), least_squares, partial(GaussianNB, classes=(0, 1))]
)
def test_a_sparse_table_gives_the_same_model(form, kind):
    dense, sparse = (kind(epsilon=5.0, bounds=(0, 1), random_state=1).fit(x, Y) for x in (X, form(X)))
    assert (dense.predict(X) == sparse.predict(form(X))).all()
    assert sparse.event_ == dense.event_


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        (sp.csr_matrix(X.astype(complex)), "real numbers"),
        (sp.coo_array((1 << 20, 1 << 20)), "at most"),
    ],
)
def test_what_no_table_can_be_made_of_is_refused_before_the_charge(x, reason):
    book = dp.Ledger("sqlite://").open("b", epsilon=5.0, delta=1e-3)
    with pytest.raises(ValueError, match=reason):
        LogisticRegression(feature_norm=1.0, classes=(0, 1)).fit(x, np.zeros(x.shape[0]), book=book)
    assert book.spent().epsilon == 0
