"""Record and replay of every statistic on awkward neighbours: empty data, duplicates, NaN, infinities, extremes."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.adjacency import Adjacency
from discreet.auditing import ReplayError, replay
from discreet.auditing.strategies import awkward_floats, awkward_integers, neighbours
from discreet.mechanisms import Laplace
from discreet.random import seeded
from discreet.statistics import (
    BoundedVarianceMean,
    Cdf,
    Count,
    Covariance,
    Histogram,
    Mean,
    Mode,
    Quantile,
    Quantiles,
    Sum,
    TopK,
    Variance,
    VectorMean,
)
from discreet.statistics.nested_ranks import NestedChoices, spread
from discreet.statistics.ranks import UNIT, RankChoice, heaps_from_counts, heaps_from_runs

brief = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))

PURE, APPROXIMATE, CONCENTRATED = {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.5}
BUDGETS = {"pure": PURE, "approximate": APPROXIMATE, "concentrated": CONCENTRATED}
EDGES = (-3.0, 0.0, 0.5, 1.0, 8.0)

COLUMN = {
    "count": lambda **b: Count(**b),
    "sum": lambda **b: Sum(bounds=(-0.1, 3), **b),
    "mean": lambda **b: Mean(bounds=(-1, 0.3), **b),
    "mean, wide bounds": lambda **b: Mean(bounds=(-1e200, 1e250), **b),
    "variance": lambda **b: Variance(bounds=(-2, 5), **b),
    "bounded variance mean": lambda **b: BoundedVarianceMean(sd=1.0, n=8, centre=0.5, **b),
    "histogram": lambda **b: Histogram(bins=EDGES, **b),
    "histogram to infinity": lambda **b: Histogram(bins=(-math.inf, 0, math.inf), **b),
    "cdf": lambda **b: Cdf(bins=EDGES, **b),
    "top k": lambda **b: TopK(k=2, bins=EDGES, **b),
    "quantiles": lambda **b: Quantiles(q=(0.1, 0.5, 0.6, 0.9), bounds=(-2, 3), steps=50, **b),
}
PURE_ONLY = {
    "mode": lambda **b: Mode(bins=EDGES, **b),
    "quantile": lambda **b: Quantile(q=0.3, bounds=(-2, 3), steps=500, **b),
    "median": lambda **b: Quantile(bounds=(-2, 3), **b),
}
CASES = [(name, kind) for name in COLUMN for kind in BUDGETS] + [(name, "pure") for name in PURE_ONLY]


def made(name, kind, **more):
    return (COLUMN | PURE_ONLY)[name](**BUDGETS[kind], **more)


def both_ways(operation, data, neighbour):
    """Replay in both orders."""
    replay(operation, data, neighbour)
    replay(operation, neighbour, data)


@pytest.mark.parametrize(("name", "kind"), CASES)
@settings(brief, max_examples=15)
@given(pair=neighbours(awkward_floats()))
def test_floats_in_arrays_and_in_lists(name, kind, pair):
    operation = made(name, kind)
    both_ways(operation.release, *(np.array(x, float) for x in pair))
    both_ways(operation.release, *pair)


@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if case[1] == "pure"])
@brief
@given(pair=neighbours(awkward_integers()))
def test_integers(name, kind, pair):
    operation = made(name, kind)
    both_ways(operation.release, *(np.array(x, np.int64) for x in pair))


class Evil:
    """An object that fails at whatever is done with it."""

    def __float__(self):
        raise RuntimeError("a private word")

    __hash__ = __iter__ = __eq__ = __float__


# A list may hold anything; NumPy would pick one type for all entries and so let one record round another.
ANYTHING = st.one_of(
    awkward_floats(),
    awkward_integers(),
    st.none(),
    st.text(max_size=2),
    st.booleans(),
    st.sampled_from([10**400, -(10**400), 2**64, "1.5", b"2", 1j, (1,), [1.0], {}]),
    st.builds(Evil),
)


@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if case[1] == "pure"])
@brief
@given(pair=neighbours(ANYTHING))
def test_lists_of_anything(name, kind, pair):
    both_ways(made(name, kind).release, *pair)


REPLACE = {"count": {}, "sum": {}, "histogram": {}, "cdf": {}, "top k": {}, "mode": {}, "quantile": {}, "median": {}}


@pytest.mark.parametrize("name", REPLACE)
@brief
@given(pair=neighbours(awkward_floats(), replace=True))
def test_replace(name, pair):
    both_ways(made(name, "pure", adjacency="replace").release, *pair)


@pytest.mark.parametrize("kind", BUDGETS)
@brief
@given(values=st.lists(awkward_floats(), min_size=5, max_size=5), position=st.integers(0, 4), new=awkward_floats())
def test_replace_with_public_size(kind, values, position, new):
    other = [*values[:position], new, *values[position + 1 :]]
    for operation in (
        Mean(bounds=(-1, 0.3), n=5, adjacency="replace", **BUDGETS[kind]),
        Variance(bounds=(-2, 5), n=5, adjacency="replace", **BUDGETS[kind]),
        BoundedVarianceMean(sd=2.0, n=5, adjacency="replace", **BUDGETS[kind]),
    ):
        both_ways(operation.release, values, other)


ROW = st.tuples(awkward_floats(), awkward_floats())


@pytest.mark.parametrize("kind", BUDGETS)
@brief
@given(pair=neighbours(st.one_of(ROW, st.sampled_from([None, 1.0, "ab", (1.0,), (1.0, 2.0, 3.0)]), st.builds(Evil))))
def test_rows_of_anything(kind, pair):
    both_ways(Covariance(bounds=((-1, 1), (0.1, 7)), **BUDGETS[kind]).release, *pair)


@pytest.mark.parametrize("kind", BUDGETS)
@brief
@given(pair=neighbours(ROW))
def test_rows(kind, pair):
    operations = [Covariance(bounds=((-1, 1), (0.1, 7)), **BUDGETS[kind])]
    if kind != "pure":
        operations += [
            VectorMean(dimension=2, norm=0.7, **BUDGETS[kind]),
            VectorMean(dimension=2, norm=1e200, **BUDGETS[kind]),
            BoundedVarianceMean(sd=1.0, n=5, dimension=2, centre=(0.5, -1e200), **BUDGETS[kind]),
        ]
    for operation in operations:
        both_ways(operation.release, *(np.array(x, float).reshape(-1, 2) for x in pair))
        both_ways(operation.release, *pair)


@brief
@given(rows=st.lists(ROW, min_size=4, max_size=4), position=st.integers(0, 3), new=ROW)
def test_rows_under_replace(rows, position, new):
    other = [*rows[:position], new, *rows[position + 1 :]]
    both_ways(VectorMean(dimension=2, norm=0.7, rho=0.5, n=4, adjacency="replace").release, rows, other)


@brief
@given(pair=neighbours(st.one_of(st.sampled_from(["a", "b", "zzz", ""]), ANYTHING)))
def test_categories(pair):
    for operation in (
        Histogram(categories=("a", "b", None, 1), **PURE),
        Mode(categories=("a", "b", 1), **PURE),
        TopK(k=2, categories=("a", "b", 1, 0.5), **CONCENTRATED),
    ):
        both_ways(operation.release, *pair)


@given(
    values=st.lists(st.integers(0, 12), max_size=8),
    extra=st.integers(0, 12),
    other=st.integers(0, 12),
    q=st.sampled_from([0.0, 0.1, 0.5, 0.75, 1.0]),
)
def test_scores_of_ranks_keep_their_sensitivity_everywhere(values, extra, other, q):
    """Every point of the range, not only the probes of replay."""
    points = np.arange(13)
    for adjacency, neighbour in (("add-remove", values), ("replace", [*values, other])):
        choice = RankChoice(round(q * UNIT), 0, 12, 1.0, adjacency)
        a, b = (
            choice.scores(heaps_from_runs(x, x + 1), points)
            for x in (np.array([*values, extra]), np.array(neighbour, np.int64))
        )
        assert np.abs(a - b).max() <= choice.sensitivity
        assert a.max() == 0


# --- replay would have found the usual mistakes --------------------------------------------------------------------


def test_the_pair_made_of_doubles_is_found():
    """(x - L)/(U - L) and (U - x)/(U - L) rounded to doubles, and added in doubles, do not move by 1 in L1."""
    noise = Laplace(sensitivity=1.0, epsilon=1e6, max_size=2)

    def naive(x):
        x = np.array(x)
        return noise.release(np.array([(x / 3).sum(), ((3 - x) / 3).sum()]))

    data = np.random.default_rng(0).uniform(0, 3, 2000).tolist()
    neighbours_of_it = [data[:i] + data[i + 1 :] for i in range(60)]

    def found(operation):
        try:
            for neighbour in neighbours_of_it:
                replay(operation, data, neighbour)
        except ReplayError:
            return True
        return False

    assert found(naive)
    assert not found(Mean(bounds=(0, 3), epsilon=1e6).release)


def test_a_size_read_off_the_data_is_found():
    noise = Laplace(sensitivity=1.0, epsilon=1.0, max_size=1)
    with pytest.raises(ReplayError, match="results differ"):
        replay(lambda x: noise.release(float(np.clip(x, 0, 1).sum())).value / len(x), [0.5, 0.2], [0.5])


# --- several quantiles: nested choices -----------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    place=st.integers(0, 5),
    bits=st.sampled_from([0, 1, 3, 12]),
)
def test_one_record_more_is_one_more_point_wherever_heaps_are_spread(counts, place, bits):
    """No other point moves, so that one choice of a level sees one record more, whatever was chosen before."""
    more = [count + (at == place % len(counts)) for at, count in enumerate(counts)]
    before, after = (spread(heaps_from_counts(np.array(found)), bits) for found in (counts, more))
    found = [Counter(dict(zip(p.tolist(), np.diff(b).tolist(), strict=True))) for p, _, b in (before, after)]
    assert found[1].total() == sum(more)
    assert (found[1] - found[0]).total() == 1
    assert not found[0] - found[1]


def test_several_quantiles_miss_by_less_than_as_many_on_their_own():
    """Nine of 3,000 records at ε = 0.5: ranks are missed by 0.38 times as much, on average over 31 seeds of 15 runs.

    The ratio was 0.50 with this seed and 0.29 to 0.47 with the 30 others, against 1 if nothing was gained.
    """
    counts = np.bincount(np.minimum(1023, np.random.default_rng(0).gamma(2, 100, 3000).astype(int)), minlength=1024)
    before, shares, rng = np.append(0, np.cumsum(counts)), tuple(np.arange(1, 10) / 10), seeded(1)
    nested = NestedChoices(shares, 0, (1024 << 12) - 1, 0.5 / 4)
    apart = [RankChoice(round(q * UNIT), 0, 1023, 0.5 / 9, Adjacency.ADD_REMOVE) for q in shares]

    def missed(chosen):
        ranks = [(before[at] - q * 3000, q * 3000 - before[at + 1]) for at, q in zip(chosen, shares, strict=True)]
        return np.mean([max(0, *pair) for pair in ranks])

    fine, plain = spread(heaps_from_counts(counts), 12), heaps_from_counts(counts)
    ours = [missed([point >> 12 for point in nested.choose(fine, rng)]) for _ in range(15)]
    theirs = [missed([one.choose(plain, rng) for one in apart]) for _ in range(15)]
    assert np.mean(ours) < 0.75 * np.mean(theirs)


def test_nested_choices_are_refused_where_a_record_is_in_two_of_a_level():
    """Whoever asks: under replace a record leaves one part and enters another."""
    with pytest.raises(ValueError, match="proved under 'add-remove' only"):
        NestedChoices((0.25, 0.75), 0, 9, 0.5, Adjacency.REPLACE)
    assert NestedChoices((0.5,), 0, 9, 0.5, Adjacency.REPLACE).levels == 1
