"""Confidence intervals: they cover as often as they say, shrink with the budget, and cost what was asked."""

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet.auditing import replay
from discreet.linear import Lasso, LinearRegression, LogisticRegression, inference
from experiments import coverage
from experiments.coverage import linear, logistic

FALSE_ALARM = 1e-6
RUNS = 40


@pytest.mark.parametrize("name", coverage.CASES)
@pytest.mark.parametrize(("n", "epsilon"), [(4000, 2.0), (20_000, 0.5)])
def test_intervals_cover_as_often_as_they_say(name, n, epsilon):
    """95 % intervals, each coefficient: misses within a binomial's range; intervals of 0.4 of the width are rejected."""
    errors, widths = coverage.covered(name, n, epsilon, runs=RUNS)
    most = stats.binom.ppf(1 - FALSE_ALARM, RUNS, 0.05)
    assert ((errors > widths).sum(axis=0) <= most).all()
    assert ((errors > 0.4 * widths).sum(axis=0) > most).any()


@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_cost_is_known_first_and_not_exceeded(kind, adjacency):
    model = kind(epsilon=0.8, delta=1e-5, bounds=(-1, 1), adjacency=adjacency, random_state=0)
    before = inference.privacy_event(model, 2)
    x, y = (linear if kind is LinearRegression else logistic)(np.random.default_rng(0), 3000)

    class Book:
        charged = None

        def charge(self, event, label="", *, unit="one record"):
            self.charged = event

    book = Book()
    found = inference.coefficients(model, x, y, book=book)
    assert found.event == before == book.charged
    assert 0.78 < dp.epsilon(before, 1e-5, adjacency=adjacency) <= 0.8
    assert found.reproducible
    assert not hasattr(model, "coef_")


def test_more_budget_gives_narrower_intervals():
    x, y = linear(np.random.default_rng(0), 5000)
    widths = [inference.coefficients(LinearRegression(epsilon=e, bounds=(-1, 1), random_state=0), x, y).standard_error[0]
              for e in (0.5, 2.0, 8.0)]
    assert widths[0] > widths[1] > widths[2]


def test_too_little_data_gives_infinite_intervals():
    model = LogisticRegression(epsilon=0.1, feature_norm=1.0, random_state=0)
    found = inference.coefficients(model, np.zeros((3, 2)), [0, 1, 0])
    assert np.isinf(found.standard_error).all()


def test_inference_touches_data_only_where_it_says():
    rng = np.random.default_rng(0)
    for kind, draw in ((LinearRegression, linear), (LogisticRegression, logistic)):
        x, y = draw(rng, 50)
        for adjacency in ("add-remove", "replace"):
            model = kind(epsilon=1.0, delta=1e-5, random_state=0, adjacency=adjacency)
            other = (x[1:], y[1:]) if adjacency == "add-remove" else (np.r_[[[np.nan, 9e9]], x[1:]], np.r_[1 - y[:1], y[1:]])
            replay(lambda data, model=model: inference.coefficients(model, *data), (x, y), other, seeded=True,
                   event=inference.privacy_event(model, x.shape[1]))


def test_models_without_a_theorem_are_refused():
    for model in (Lasso(), LogisticRegression(delta=0.0), LogisticRegression(classes=(0, 1, 2))):
        with pytest.raises(ValueError, match=r"no interval is proved|written for two"):
            inference.privacy_event(model, 2)
