"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

import pytest

import discreet as dp
from discreet.linear import LinearRegression, LogisticRegression


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("model", [LogisticRegression(solver="gd", classes=(0, 1)), LinearRegression(solver="gd")])
def test_a_fit_spends_the_budget_it_was_given_to_a_thousandth(model, adjacency):
    event = model.set_params(epsilon=1.0, delta=1e-6, adjacency=adjacency).privacy_event(4)
    assert 0.999 < dp.epsilon(event, delta=1e-6, adjacency=adjacency) <= 1.0
