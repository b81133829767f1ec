"""An event keeps the adjacency it was proved under, whatever wraps it: an account or a book of another refuses it."""

from __future__ import annotations

import pytest

import discreet as dp
from discreet import events as ev
from discreet.accounting import ACCOUNTANTS
from discreet.adjacency import Adjacency
from discreet.ledger import Ledger
from discreet.linear.losses import Logistic
from discreet.linear.problem import Problem
from discreet.linear.solvers.gd import GradientDescent
from discreet.linear.solvers.sgd import StochasticGradientDescent
from discreet.linear.solvers.svrg import VarianceReduced

REPLACE = Adjacency.REPLACE
SAMPLED = ev.PoissonSampled(rate=0.1, event=ev.Gaussian(noise_multiplier=2.0))
REPLACE_ONLY = {
    "gaussian": ev.Gaussian(noise_multiplier=2.0, adjacency=REPLACE),
    "pure": ev.PureDP(epsilon=0.5, adjacency=REPLACE),
    "randomized response": ev.RandomizedResponse(epsilon=0.5),
    "fixed size": ev.FixedSizeSampled(rate=0.1, event=ev.Gaussian(noise_multiplier=2.0)),
    "shuffled": ev.Shuffled(event=ev.Gaussian(noise_multiplier=2.0)),
    "sampled, proved under replace": ev.ProvedUnder(adjacency=REPLACE, event=SAMPLED),
}
WRAPPERS = {
    "itself": lambda e: e,
    "composed": lambda e: e + ev.PureDP(epsilon=0.1),
    "repeated": lambda e: e * 3,
    "parallel": lambda e: e | ev.PureDP(epsilon=0.1),
    "parallel with itself": lambda e: e | e,
    "poisson": lambda e: ev.PoissonSampled(rate=0.5, event=e),
    "poisson of rate one": lambda e: ev.PoissonSampled(rate=1.0, event=e),
    "nested poisson": lambda e: ev.PoissonSampled(rate=0.5, event=ev.PoissonSampled(rate=0.5, event=e)),
    "poisson of a sum": lambda e: ev.PoissonSampled(rate=0.5, event=e + ev.PureDP(epsilon=0.1)),
    "poisson of parts": lambda e: ev.PoissonSampled(rate=0.5, event=e | ev.PureDP(epsilon=0.1)),
    "truncated": lambda e: ev.TruncatedPoissonSampled(rate=0.5, max_batch_size=9, dataset_size=8, event=e),
    "fixed size": lambda e: ev.FixedSizeSampled(rate=0.5, event=e),
    "shuffled": lambda e: ev.Shuffled(event=e),
    "balls in bins": lambda e: ev.BallsInBins(bins=3, event=e),
    "proved under add-remove": lambda e: ev.ProvedUnder(adjacency="add-remove", event=e),
    "proved under replace": lambda e: ev.ProvedUnder(adjacency="replace", event=e),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("kind", REPLACE_ONLY)
def test_what_holds_under_replace_only_never_passes_as_add_remove(kind, wrapper):
    """Refused when it is built, or by every accountant, and by a book; under zero-out too."""
    try:
        event = WRAPPERS[wrapper](REPLACE_ONLY[kind])
    except ValueError:
        return
    for adjacency in ("add-remove", "zero-out"):
        for view in (None, *ACCOUNTANTS):
            with pytest.raises(dp.UnsupportedEvent):
                dp.epsilon(event, 1e-5, accountant=view, adjacency=adjacency)
        with pytest.raises(dp.UnsupportedEvent):
            Ledger("sqlite://").open("book", epsilon=100.0, delta=1e-3, adjacency=adjacency).charge(event)


def test_the_proof_narrows_and_the_price_stays():
    narrow = ev.ProvedUnder(adjacency=REPLACE, event=SAMPLED) * 50
    assert dp.epsilon(narrow, 1e-5, adjacency=REPLACE) == dp.epsilon(SAMPLED * 50, 1e-5, adjacency=REPLACE)
    for delta in (0.0, 1e-6):
        books = [Ledger("sqlite://").open("book", epsilon=50.0, delta=1e-5, adjacency=REPLACE) for _ in range(2)]
        charged = zip(books, (narrow, SAMPLED * 50), strict=True)
        prices = [book.charge(event, delta=delta or None).amounts for book, event in charged]
        assert prices[0] == prices[1]


def solver(kind, adjacency, **options):
    problem = Problem(loss=Logistic(), features=3, square=1.0, epsilon=1.0, delta=1e-6, adjacency=adjacency, size=1000)
    return kind(problem=problem, **options)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (GradientDescent, {}),
        (StochasticGradientDescent, {"steps": 20}),
        (VarianceReduced, {"rounds": 3, "inner": 4}),
    ],
)
def test_a_solver_that_takes_the_number_of_records_as_public_is_refused_by_an_add_remove_book(kind, options):
    """Under replace its step uses the exact number of records; claimed under add-remove,
    that was measured forty times over.
    """
    event = solver(kind, Adjacency.REPLACE, **options).event
    with pytest.raises(dp.UnsupportedAdjacency):
        dp.epsilon(event, 1e-6)
    with pytest.raises(dp.UnsupportedAdjacency):
        Ledger("sqlite://").open("book", epsilon=5.0, delta=1e-5).charge(event)
    assert 0.9 < dp.epsilon(event, 1e-6, adjacency=REPLACE) <= 1.0
    assert dp.epsilon(solver(kind, Adjacency.ADD_REMOVE, **options).event, 1e-6) <= 1.0
