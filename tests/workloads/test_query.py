"""Answers: what they cost, how wrong they are, and that data reaches them only through noise."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

import discreet as dp
from discreet.auditing import ReplayError, replay
from discreet.auditing.strategies import awkward_floats, neighbours
from discreet.release import Operation
from discreet.workloads import (
    AllRanges,
    Answers,
    Identity,
    Marginals,
    Prefix,
    Query,
    all_queries,
    answer,
    hierarchy,
    identity,
    optimise,
)
from discreet.workloads.strategy import Strategy
from tests.workloads.families import STRATEGIES

FALSE_ALARM = 1e-9
brief = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


class Register:
    """A book that writes down what happened, and may refuse."""

    def __init__(self, refuse=False):
        self.charges, self.refuse = [], refuse

    def charge(self, event, label="", *, unit="one record", reproducible=False):
        if self.refuse:
            raise dp.BudgetExceeded("refused")
        self.charges.append((event, label))


def test_the_contract():
    """The lines of the design, as written there."""
    histogram = np.arange(256)
    w = dp.workloads.AllRanges(256)
    s = dp.workloads.optimise(w, noise="gaussian")
    release = dp.workloads.answer(w, histogram, strategy=s, rho=0.5)  # Release of consistent answers
    answers = np.asarray(release.value)
    assert answers.shape == (w.queries,)
    assert not release.reproducible
    assert answers[w.index(3, 9)] + answers[w.index(10, 20)] == pytest.approx(answers[w.index(3, 20)])
    assert release.event == Query(workload=w, strategy=s, rho=0.5).event
    assert isinstance(Query(workload=w, rho=0.5), Operation)


@pytest.mark.parametrize("asked", [{"epsilon": 0.5}, {"epsilon": 0.5, "delta": 1e-6}, {"rho": 0.1}])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace", "zero-out"])
def test_what_is_asked_for_is_never_exceeded(asked, adjacency):
    query = Query(workload=AllRanges(32), adjacency=adjacency, **asked)
    if "rho" in asked:
        assert 1 / (2 * query.event.noise_multiplier**2) <= 0.1
    else:
        assert dp.epsilon(query.event, delta=asked.get("delta", 0.0), adjacency=adjacency) <= 0.5
    assert query.event.adjacency == adjacency


def test_unit_noise_gives_the_known_errors():
    """Gaussian noise of unit variance per unit of sensitivity: rho = 0.5, add-remove."""
    w = AllRanges(256)
    known = {"identity": (identity(w), 9.274), "hierarchy": (hierarchy(w), 3.835), "optimised": (None, 2.902)}
    for strategy, value in known.values():
        assert Query(workload=w, strategy=strategy, rho=0.5).rmse == pytest.approx(value, abs=1e-3)


@pytest.mark.parametrize("asked", [{"epsilon": 1.0}, {"rho": 0.5}])
def test_measured_error_is_the_stated_error(asked):
    """Mean squared error over many releases, against the closed form, with a test that rejects a wrong one."""
    w, runs = AllRanges(16), 2000
    query = Query(workload=w, **asked)
    x, rng = np.arange(16) * 7, dp.random.seeded(11)
    truth = w.apply(x)
    errors = np.array([((np.asarray(query.release(x, rng).value) - truth) ** 2).sum() for _ in range(runs)])
    spread = errors.std() / math.sqrt(runs) * stats.norm.isf(FALSE_ALARM / 2)
    assert abs(errors.mean() - query.total_squared_error) < spread
    assert abs(errors.mean() - 1.25 * query.total_squared_error) > spread


def test_one_querys_deviation_and_error():
    w = AllRanges(16)
    weights = np.zeros(16)
    weights[3:8] = 1
    for query in (Query(workload=w, rho=0.5), Query(workload=w, epsilon=1.0)):
        rng = dp.random.seeded(12)
        found = np.array([query.release(np.zeros(16, int), rng).value.estimate @ weights for _ in range(1500)])
        assert found.std() == pytest.approx(query.deviation(weights), rel=0.1)
        assert np.mean(np.abs(found) <= query.error(0.95, query=weights)) >= 0.93
        assert np.mean(np.abs(found) <= query.error(0.5, query=weights)) >= 0.45
        assert query.error(0.95) > query.rmse


def test_the_book_is_charged_first_and_may_refuse():
    register = Register()
    answer(Prefix(4), [1, 2, 3, 4], epsilon=1.0, book=register, label="ages")
    assert [label for _, label in register.charges] == ["ages"]

    class Unread:
        shape = (4,)

        def __array__(self, *_, **__):
            raise AssertionError("the data was read")

    with pytest.raises(dp.BudgetExceeded):
        answer(Prefix(4), Unread(), epsilon=1.0, book=Register(refuse=True))
    with pytest.raises(ValueError, match="exactly one of epsilon, rho"):
        answer(Prefix(4), Unread(), book=register)
    with pytest.raises(ValueError, match="no single order"):
        answer(Identity((2, 2)), Unread(), epsilon=1.0, monotone="increasing", book=register)
    with pytest.raises(ValueError, match="measures 8,390,656 values"):
        answer(AllRanges(4096), Unread(), strategy=all_queries(AllRanges(4096)), epsilon=1.0, book=register)
    assert len(register.charges) == 1


def test_answers_serve_other_queries_at_no_cost():
    release = answer(AllRanges(8), np.arange(8), epsilon=1.0, rng=1)
    assert release.reproducible
    total = np.asarray(release.value.to(Prefix(8)))[-1]
    assert total == pytest.approx(np.asarray(release.value)[AllRanges(8).index(0, 7)])
    with pytest.raises(ValueError, match="other workload"):
        release.value.to(Prefix(9))


def test_constraints_hold_in_the_release():
    w = Prefix(64)
    release = answer(w, np.zeros(64, int), epsilon=0.1, nonnegative=True, rng=1)
    assert (np.diff(np.asarray(release.value)) >= 0).all()
    release = answer(
        Identity(6), [9, 7, 3, 3, 1, 0], epsilon=0.5, monotone="decreasing", total=23, adjacency="replace", rng=1
    )
    values = np.asarray(release.value)
    assert (np.diff(values) <= 1e-9).all()
    assert values.sum() == pytest.approx(23)


def test_large_domains_never_build_a_dense_matrix(monkeypatch):
    """16,384 cells: the whole path, without a Gram matrix."""
    w = AllRanges(16_384)
    monkeypatch.setattr(AllRanges, "gram", lambda _: pytest.fail("a dense Gram matrix was built"))
    release = answer(w, np.arange(16_384), rho=0.5, rng=1)
    assert release.value.estimate.shape == (16_384,)
    assert len(release.value) == 134_225_920
    for strategy in (
        hierarchy(w),
        dp.workloads.wavelet(w),
        dp.workloads.fourier(w),
        hierarchy(w, None, noise="laplace"),
    ):
        assert math.isfinite(strategy.trace(w))
    with pytest.raises(ValueError, match="measures 134,225,920 values"):
        answer(w, np.arange(16_384), strategy=dp.workloads.all_queries(w), epsilon=1.0)


def test_marginals_and_products_are_answered():
    w = Marginals((4, 3, 2), 2)
    x = np.arange(24).reshape(4, 3, 2)
    for asked in ({"epsilon": 1e4}, {"rho": 1e6}):
        assert np.allclose(np.asarray(answer(w, x, **asked).value), w.apply(x), atol=0.5)
        product = dp.workloads.Product((Prefix(4), Identity(3), AllRanges(2)))
        assert np.allclose(np.asarray(answer(product, x, **asked).value), product.apply(x), atol=0.5)


def test_a_query_is_a_value():
    query = Query(workload=Prefix(8), strategy=hierarchy(8), epsilon=1.0)
    assert pickle.loads(pickle.dumps(query)).event == query.event
    with pytest.raises(ValueError, match="The strategy is over cells"):
        Query(workload=Prefix(8), strategy=hierarchy(9), epsilon=1.0)


# --- record and replay -------------------------------------------------------------------------------------------


def histogram(records, shape):
    """Records to cells, whatever they are: NaN to the first, the rest folded into the range."""
    size = math.prod(shape)
    cells = np.clip(np.nan_to_num(np.array(records, dtype=float), nan=0.0), -1e6, 1e6)
    return np.bincount(np.floor(cells * 1.7).astype(int) % size, minlength=size).reshape(shape)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("replaced", [False, True])
@brief
@given(data=st.data())
def test_every_strategys_measurement_passes(name, replaced, data):
    """Both kinds of noise, both adjacencies, on hostile neighbours."""
    strategy: Strategy = STRATEGIES[name]
    pair = data.draw(neighbours(awkward_floats(), replace=replaced))
    w = Identity(strategy.shape)
    for asked in ({"epsilon": 1.0}, {"rho": 0.5}):
        query = Query(workload=w, strategy=strategy, adjacency="replace" if replaced else "add-remove", **asked)
        replay(lambda x, query=query: query.release(histogram(x, strategy.shape)), *pair)


@brief
@given(cells=st.lists(awkward_floats(), min_size=8, max_size=8), cell=st.integers(0, 7))
def test_hostile_histograms_pass(cells, cell):
    """The histogram itself is hostile: NaN, infinities, fractions; a neighbour has one count more in one cell."""
    x = np.floor(np.clip(np.nan_to_num(cells, nan=0.0), -(2.0**52), 2.0**52))
    y = x.copy()
    y[cell] += 1
    hostile = np.where(np.isfinite(cells), 0.0, cells)
    for asked in ({"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6, "nonnegative": True}):
        for a, b in ((x, y), (y, x), (hostile, np.where(np.isnan(hostile), 0.0, hostile))):
            replay(lambda h, asked=asked: answer(AllRanges(8), h, **asked), a, b)


def test_replay_finds_a_strategy_that_understates_its_sensitivity():
    class Understated(type(hierarchy(8))):
        def column_norm(self, norm):
            return 0.9 * super().column_norm(norm)

    honest = hierarchy(8)
    wrong = Understated(honest.n, honest.widths, honest.weights)
    query = Query(workload=Prefix(8), strategy=wrong, rho=0.5)
    with pytest.raises(ReplayError, match="differs by"):
        replay(lambda x: query.release(histogram(x, (8,))), [1.0, 2.0], [1.0])


def test_answers_show_no_private_value():
    release = answer(Prefix(3), [12345, 0, 0], rho=0.5)
    assert isinstance(release.value, Answers)
    assert "12345" not in repr(Query(workload=Prefix(3), rho=0.5))
    assert optimise(Prefix(3)) is optimise(Prefix(3))
