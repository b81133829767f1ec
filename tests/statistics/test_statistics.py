"""What statistics promise: budgets kept, charged before data is read, and a stated meaning for every awkward record."""

import dataclasses
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet import datasets
from discreet import statistics as s
from discreet.auditing.strategies import awkward_floats
from discreet.statistics.bounded import exact_total, positions

VALUES = [1.0, 2.0, 3.0, 4.0]
ROWS = [[1.0, 2.0], [3.0, 4.0]]

OPERATIONS = {
    "count": lambda **b: s.Count(**b),
    "sum": lambda **b: s.Sum(bounds=(0, 5), **b),
    "mean": lambda **b: s.Mean(bounds=(0, 5), **b),
    "variance": lambda **b: s.Variance(bounds=(0, 5), **b),
    "bounded variance": lambda **b: s.BoundedVarianceMean(sd=2.0, n=10, **b),
    "covariance": lambda **b: s.Covariance(bounds=((0, 5), (0, 5)), **b),
    "histogram": lambda **b: s.Histogram(bins=(0, 2, 5), **b),
    "cdf": lambda **b: s.Cdf(bins=(0, 2, 5), **b),
    "top k": lambda **b: s.TopK(k=2, bins=(0, 2, 5, 9), **b),
    "quantiles": lambda **b: s.Quantiles(q=(0.2, 0.5, 0.7, 0.9), bounds=(0, 5), **b),
    "mode": lambda **b: s.Mode(bins=(0, 2, 5), **b),
    "quantile": lambda **b: s.Quantile(q=0.3, bounds=(0, 5), **b),
    "vector mean": lambda **b: s.VectorMean(dimension=2, norm=3.0, **b),
}
NO_DELTA, GAUSSIAN_ONLY = {"mode", "quantile"}, {"vector mean"}


def data_for(name):
    return ROWS if name in ("covariance", "vector mean") else VALUES


# --- budgets
# -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - GAUSSIAN_ONLY))
@settings(max_examples=20)
@given(epsilon=st.floats(1e-3, 20))
def test_epsilon_is_never_exceeded_and_hardly_wasted(name, epsilon):
    spent = dp.epsilon(OPERATIONS[name](epsilon=epsilon).event, delta=0)
    assert epsilon * (1 - 1e-3) <= spent <= epsilon


@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - NO_DELTA))
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_epsilon_and_delta_are_never_exceeded_and_hardly_wasted(name, epsilon):
    spent = dp.epsilon(OPERATIONS[name](epsilon=epsilon, delta=1e-6).event, delta=1e-6)
    assert epsilon * (1 - 1e-3) <= spent <= epsilon


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_rho_is_never_exceeded(name):
    event = OPERATIONS[name](rho=0.3).event
    assert dp.epsilon(event, delta=1e-6, accountant="zcdp") <= dp.epsilon(
        dp.events.ZCDP(rho=0.3), delta=1e-6, accountant="zcdp"
    ) * (1 + 1e-9)


@pytest.mark.parametrize("name", ["count", "sum", "histogram", "cdf", "top k", "mode", "quantile"])
def test_replace_is_priced_under_replace(name):
    operation = OPERATIONS[name](epsilon=1.0, adjacency="replace")
    assert operation.adjacency is dp.Adjacency.REPLACE
    assert dp.epsilon(operation.event, delta=0, adjacency="replace") <= 1.0


def test_many_selections_profit_from_composition():
    pure, approximate = (s.TopK(k=50, categories=range(100), epsilon=1.0, **more) for more in ({}, {"delta": 1e-6}))
    assert approximate.error() < pure.error() / 2


# --- values, charging, releases
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_operations_are_values(name):
    operation = OPERATIONS[name](rho=0.5)
    assert pickle.loads(pickle.dumps(operation)) == operation
    assert hash(operation) == hash(dataclasses.replace(operation))
    first, again = (operation.release(data_for(name), rng=3) for _ in range(2))
    assert first.event == operation.event
    assert first.reproducible
    np.testing.assert_equal(first.value, again.value)
    assert not operation.release(data_for(name)).reproducible
    with pytest.raises(dataclasses.FrozenInstanceError):
        operation.rho = 1.0


class Closed:
    """A book that refuses everything."""

    def charge(self, event, label="", *, unit="one record", reproducible=False):
        raise dp.BudgetExceeded(label)


class Unread:
    """Records that may not be looked at."""

    def __iter__(self):
        raise AssertionError("read")

    __array__ = __len__ = __getitem__ = __iter__


FUNCTIONS = {
    "count": lambda x, **o: s.count(x, rho=0.5, **o),
    "sum": lambda x, **o: s.sum(x, (0, 5), rho=0.5, **o),
    "mean": lambda x, **o: s.mean(x, (0, 5), rho=0.5, **o),
    "binary mean": lambda x, **o: s.binary_mean(x, rho=0.5, **o),
    "bounded-variance mean": lambda x, **o: s.bounded_variance_mean(x, 2.0, 10, rho=0.5, **o),
    "vector mean": lambda x, **o: s.vector_mean(x, 3.0, 2, rho=0.5, **o),
    "variance": lambda x, **o: s.variance(x, (0, 5), rho=0.5, **o),
    "covariance": lambda x, **o: s.covariance(x, [(0, 5), (0, 5)], rho=0.5, **o),
    "histogram": lambda x, **o: s.histogram(x, bins=np.array([0, 2, 5]), rho=0.5, **o),
    "cdf": lambda x, **o: s.cdf(x, [0, 2, 5], rho=0.5, **o),
    "mode": lambda x, **o: s.mode(x, categories=np.arange(5), rho=0.5, **o),
    "top k": lambda x, **o: s.top_k(x, 2, bins=[0, 2, 5], rho=0.5, **o),
    "quantile": lambda x, **o: s.quantile(x, 0.2, (0, 5), rho=0.5, **o),
    "median": lambda x, **o: s.median(x, (0, 5), rho=0.5, **o),
    "quantiles": lambda x, **o: s.quantiles(x, [0.2, 0.5], (0, 5), rho=0.5, **o),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_book_is_charged_before_data_is_read(name):
    with pytest.raises(dp.BudgetExceeded, match=name):
        FUNCTIONS[name](Unread(), book=Closed())
    charged = []
    book = type("Open", (), {"charge": lambda self, event, label="", unit="": charged.append((event, label))})()
    answer = FUNCTIONS[name](data_for(name), book=book, label="mine")
    assert charged == [(answer.event, "mine")]
    assert answer.label == "mine"


# --- what awkward records mean
# ------------------------------------------------------------------------------------------

TIGHT = {"epsilon": 500.0}
MISSING = [math.nan, None, "text", b"1", 1j]


@pytest.mark.parametrize("missing", MISSING)
def test_a_missing_record_contributes_nothing(missing):
    for name in ("count", "sum", "mean", "variance", "histogram", "cdf", "bounded variance"):
        operation = OPERATIONS[name](**TIGHT)
        inner = getattr(operation, "inner", operation)
        assert np.array_equal(inner.totals([1.0, missing, 4.0]), inner.totals([1.0, 4.0]))
    pair = s.Covariance(bounds=((0, 5), (0, 5)), **TIGHT)
    assert np.array_equal(
        pair.totals([[1.0, 2.0], [missing, 3.0], [3.0, missing], [1.0], 5.0]), pair.totals([[1.0, 2.0]])
    )
    assert s.quantile([missing] * 10 + [2.0] * 50, 0.5, (0, 5), epsilon=10.0, rng=1).value == pytest.approx(
        2.0, abs=0.1
    )


def test_an_infinity_lies_beyond_every_bound():
    """And so does an integer too large for a double."""
    for low, high in ((-math.inf, math.inf), (-(10**400), 10**400), (-1e308, 1e308)):
        assert np.array_equal(s.Mean(bounds=(0, 5), **TIGHT).totals([low, high]), [1, 1])
        assert s.Sum(bounds=(-2, 5), **TIGHT).totals([low, high]) == 3
        assert s.Histogram(bins=(0, 2, 5), **TIGHT).totals([low, high]).tolist() == [0, 0]
        assert s.Cdf(bins=(0, 2, 5), **TIGHT).totals([low, high]).tolist() == [1, 1]
    assert s.Histogram(bins=(-math.inf, 0, math.inf), **TIGHT).totals([-math.inf, math.inf, 3]).tolist() == [1, 2]
    vectors = s.VectorMean(dimension=2, norm=1.0, rho=1.0)
    assert np.array_equal(vectors.totals([[math.inf, 0.0], [math.nan, 0.0]]), [0, 0, 0])


@pytest.mark.parametrize("empty", [[], np.array([]), np.array([], np.int64), [math.nan] * 3])
def test_no_records_have_an_answer_within_the_bounds(empty):
    assert s.Mean(bounds=(2, 5), epsilon=1.0).totals(empty).tolist() == [0, 0]
    for seed in range(20):
        assert 2 <= s.mean(empty, (2, 5), epsilon=1.0, rng=seed).value <= 5
        assert 0 <= s.variance(empty, (2, 5), epsilon=1.0, rng=seed).value <= 9 / 4
        assert 2 <= s.median(empty, (2, 5), epsilon=1.0, rng=seed).value <= 5
        found = s.quantiles(empty, (0.1, 0.4, 0.8), (2, 5), epsilon=1.0, rng=seed).value
        assert (np.diff(found) >= 0).all()
        shares = s.cdf(empty, (0, 1, 2), epsilon=1.0, rng=seed).value
        assert (np.diff(shares) >= 0).all()
        assert shares[-1] == 1
        assert s.mode(empty, categories="ab", epsilon=1.0, rng=seed).value in "ab"
    for seed in range(5):
        matrix = s.covariance(np.zeros((0, 2)), [(0, 1), (0, 1)], rho=1.0, rng=seed).value
        assert np.linalg.eigvalsh(matrix).min() >= -1e-9
        assert np.linalg.norm(s.vector_mean(np.zeros((0, 3)), 1.0, 3, rho=1.0, rng=seed).value) <= 1 + 1e-9


def test_both_noisy_sums_negative_give_the_middle():
    operation = s.Mean(bounds=(2, 6), epsilon=1.0)
    assert operation.answer(np.array([-1.0, -2.0])) == 4.0
    assert operation.answer(np.array([-1.0, 2.0])) == 2.0
    assert operation.answer(np.array([[1.0, 1.0], [3.0, 1.0]])).tolist() == [4.0, 5.0]
    assert s.Variance(bounds=(0, 2), epsilon=1.0).answer(np.full(3, -1.0)) == 4 / 8  # half of what is possible


def test_with_public_size_a_missing_record_is_at_the_middle():
    operation = s.Mean(bounds=(0, 10), epsilon=1.0, adjacency="replace", n=4)
    assert operation.totals([0.0, 10.0, math.nan, 10.0]) == Fraction(25, 40)
    with pytest.raises(ValueError, match=r"values has 3 records, but n=4 was declared\."):
        operation.release([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="values has 3 records"):
        s.Variance(bounds=(0, 10), epsilon=1.0, adjacency="replace", n=4).release([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="values has 1 records"):
        s.VectorMean(dimension=2, norm=1.0, rho=1.0, adjacency="replace", n=4).release([[1.0, 2.0]])


def test_unknown_categories_are_left_out():
    operation = s.Histogram(categories=("a", 1, None), epsilon=1.0)
    assert operation.totals(["a", "b", 1, 1.0, True, None, [], math.nan]).tolist() == [1, 3, 1]
    assert operation.totals(np.array(["a", "zz", "a"])).tolist() == [2, 0, 0]
    assert operation.totals(np.array([1, 2, 1])).tolist() == [0, 2, 0]
    for dtype in (np.int8, np.int64, np.uint64, float):
        counted = s.Histogram(categories=(7, -3, 5), epsilon=1.0).totals(np.array([5, 7, 9, 5, 0], dtype))
        assert counted.tolist() == [1, 0, 2]
    assert operation.totals(np.array([1.0, math.nan])).tolist() == [0, 1, 0]
    assert operation.totals(np.array(["a", None, 1, {}], object)).tolist() == [1, 1, 1]


def test_bins_are_half_open_and_the_last_is_closed():
    assert s.Histogram(bins=(0, 1, 2), epsilon=1.0).totals([0, 1, 2, 2.0001, -0.1]).tolist() == [1, 2]


def test_integers_are_added_exactly():
    huge = np.array([2**63 - 1, -(2**63), 2**53 + 1, 7], np.int64)
    bounds = (-(2.0**63), 2.0**63)
    assert exact_total(huge, bounds) == (2**53 + 7, 4)
    assert exact_total(np.array([2**64 - 1], np.uint64), bounds) == (2**63, 1)
    assert exact_total(np.array([2**53 + 1, 3], np.int64), (0.5, 2.0**53)) == (2**53 + 3, 2)
    assert exact_total(np.array([0, 5], np.int8), (0.5, 2.5)) == (3, 2)
    assert s.Sum(bounds=(0, 300), epsilon=1.0).totals(np.array([255, 255], np.uint8)) == 510
    assert s.Mean(bounds=(0, 1), epsilon=1.0).totals(np.array([True, False, True])).tolist() == [2, 1]


@given(
    st.lists(awkward_floats(), max_size=6), st.sampled_from([(0.0, 1.0), (-1e200, 1e200), (1e16, 1e16 + 2), (0.1, 0.3)])
)
def test_the_pair_adds_up_to_the_number_of_records_exactly(values, bounds):
    """The proof that its L1 sensitivity is 1: both parts are sums of terms that are not negative and add up to 1."""
    pair = s.Mean(bounds=bounds, epsilon=1.0).totals(np.array(values, float))
    assert sum(pair) == sum(not math.isnan(x) for x in values)
    assert min(pair) >= 0
    triple = s.Variance(bounds=bounds, epsilon=1.0).totals(np.array(values, float))
    assert sum(triple) == sum(pair)
    assert min(triple) >= 0
    assert (positions(np.array(values, float), bounds) <= 2**30).all()


@given(st.lists(st.tuples(*[awkward_floats()] * 3), min_size=1, max_size=1), st.sampled_from([1e-150, 0.7, 1e200]))
def test_shortened_rows_keep_their_norm(row, norm):
    operation = s.VectorMean(dimension=3, norm=norm, rho=1.0)
    totals = operation.totals(row)
    length = sum(x**2 for x in totals[:-1])
    assert length <= (1 + Fraction(1, 2**30)) ** 2
    if np.isfinite(row).all() and max(map(abs, row[0])) > 100 * norm:
        assert length >= 1 - Fraction(1, 2**40)


# --- refusals
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: s.Mean(bounds=(0, 1)), "nothing given, but exactly one of epsilon, rho"),
        (lambda: s.Mean(bounds=(0, 1), epsilon=1.0, rho=1.0), "epsilon and rho given"),
        (lambda: s.Mean(bounds=(0, 1), rho=1.0, delta=1e-6), "delta given with rho"),
        (lambda: s.Mean(bounds=(0, 1), epsilon=-1.0), "epsilon is -1.0"),
        (lambda: s.Mean(bounds=(1, 0), epsilon=1.0), "the lower end must come first"),
        (lambda: s.Mean(bounds=(1, 1), epsilon=1.0), "the lower end must come first"),
        (lambda: s.Mean(bounds=(0, math.inf), epsilon=1.0), "bounds is inf"),
        (lambda: s.Mean(bounds=None, epsilon=1.0), "bounds is None, but must be a pair"),
        (lambda: s.Mean(bounds=(0, 2**53 + 1), epsilon=1.0), "must be doubles exactly"),
        (lambda: s.Mean(bounds=(0, 1), epsilon=1.0, n=5), "n is given, but the number of records is private"),
        (lambda: s.Mean(bounds=(0, 1), epsilon=1.0, adjacency="replace"), "n is missing"),
        (lambda: s.Mean(bounds=(0, 1), epsilon=1.0, adjacency="near"), "adjacency is 'near'"),
        (lambda: s.Mean(bounds=(0, 1), epsilon=1.0).error(), "n is missing, but the error depends"),
        (lambda: s.Variance(bounds=(0, 1), epsilon=1.0).error(), "n is missing, but the error depends"),
        (lambda: s.VectorMean(dimension=2, norm=1.0, epsilon=1.0), "add delta=, or use rho="),
        (lambda: s.VectorMean(dimension=2**21, norm=1.0, rho=1.0), "at most 1048576"),
        (lambda: s.BoundedVarianceMean(sd=1.0, n=5, dimension=2, epsilon=1.0), "add delta=, or use rho="),
        (lambda: s.Covariance(bounds=((0, 1),), rho=1.0, adjacency="replace"), "proved under 'add-remove'"),
        (lambda: s.Covariance(bounds=(), rho=1.0), "sequence of pairs"),
        (lambda: s.Histogram(epsilon=1.0), "exactly one of bins, categories"),
        (lambda: s.Histogram(bins=(0, 1), categories="a", epsilon=1.0), "bins and categories given"),
        (lambda: s.Histogram(bins=(0, 0), epsilon=1.0), "increasing order"),
        (lambda: s.Histogram(categories="aa", epsilon=1.0), "repeated entry"),
        (lambda: s.Mode(categories="ab", epsilon=1.0, delta=0.1), "leave delta out"),
        (lambda: s.TopK(k=3, categories="ab", epsilon=1.0), "only 2 parts"),
        (lambda: s.Quantile(bounds=(0, 1), epsilon=1.0, delta=0.1), "leave delta out"),
        (lambda: s.Quantile(bounds=(0, 1), epsilon=1e-12), "epsilon of one selection"),
        (lambda: s.Quantile(q=1.5, bounds=(0, 1), epsilon=1.0), r"q is 1.5"),
        (lambda: s.Quantiles(q=(0.5, 0.5), bounds=(0, 1), epsilon=1.0), "increasing order"),
        (
            lambda: s.Quantiles(q=(0.2, 0.5), bounds=(0, 1), epsilon=1.0, adjacency="replace"),
            "proved under 'add-remove' only",
        ),
        (lambda: s.Quantile(bounds=(0, 1), epsilon=1.0, steps=2**33), "at most 2\\^32"),
    ],
)
def test_wrong_public_facts_are_refused_by_name(make, text):
    with pytest.raises(ValueError, match=text):
        make()


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((2, 2)),
        np.array(["12345"]),
        np.array([12345j]),
        np.array(3.0),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.zeros(2, np.longdouble),
    ],
)
def test_shape_and_type_are_refused_without_showing_a_record(values):
    with pytest.raises(ValueError, match=r"dimensions|dtype") as caught:
        s.mean(values, (0, 1), epsilon=1.0)
    assert "12345" not in str(caught.value)


def test_rows_of_another_width_are_refused():
    with pytest.raises(ValueError, match=r"shape \(records, 2\)"):
        s.vector_mean(np.zeros((4, 3)), 1.0, 2, rho=1.0)


# --- the census example
# ---------------------------------------------------------------------------------------------------


def test_mean_income_by_education():
    """Sixteen public groups at ε = 1 each (they are disjoint): mean absolute error of about $320 over 200 runs."""
    try:
        people = datasets.pums()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    operation = s.Mean(bounds=(0, 200_000), epsilon=1.0)
    groups = [people["income"][people["educ"] == key] for key in range(1, 17)]
    truth = [np.clip(group, 0, 200_000).mean() for group in groups]
    totals = [operation.totals(group) for group in groups]
    errors = [
        abs(operation.answer(operation.mechanism.release(total).value) - mean)
        for _ in range(200)
        for total, mean in zip(totals, truth, strict=True)
    ]
    assert np.mean(errors) <= 345
