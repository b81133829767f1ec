"""Exponential, noisy max, permute-and-flip, top-k: their exact laws, their bounds, their refusals."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import discreet as dp
from discreet import events
from discreet.mechanisms import Exponential, NoisyMax, PermuteAndFlip, TopK
from discreet.mechanisms.scores import ScoreGrid
from discreet.random import permuted_index, seeded, weighted_index

FALSE_ALARM = 1e-6
SCORES = np.array([0.0, 1.0, 2.5, -3.0, 2.4])
KINDS = [Exponential, NoisyMax, PermuteAndFlip]


def fits(counts, probabilities):
    return stats.chisquare(counts, np.array(probabilities) * counts.sum()).pvalue > FALSE_ALARM


def drawn(mechanism, scores, draws, seed):
    rng = seeded(seed)
    return np.bincount([mechanism.release(scores, rng).value for _ in range(draws)], minlength=len(scores))


def exponential_law(scores, weight):
    mass = np.exp(weight * (scores - scores.max()))
    return mass / mass.sum()


def permute_and_flip_law(scores, weight):
    accept = np.exp(weight * (scores - scores.max()))
    law = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for i in order:
            law[i] += reached * accept[i] / len(orders)
            reached *= 1 - accept[i]
    return law


@pytest.mark.parametrize("monotone", [False, True])
def test_exponential_has_its_law(monotone):
    counts = drawn(Exponential(sensitivity=1.0, epsilon=1.0, monotone=monotone), SCORES, 20_000, 1)
    weight = 1.0 if monotone else 0.5
    assert fits(counts, exponential_law(SCORES, weight))
    assert not fits(counts, exponential_law(SCORES, weight * 1.3))


def test_exponential_weighs_by_its_base_measure():
    base = (1.0, 5.0, 0.5, 20.0, 1.0)
    counts = drawn(Exponential(epsilon=1.0, base_measure=base), SCORES, 20_000, 2)
    law = np.array(base) * exponential_law(SCORES, 0.5)
    assert fits(counts, law / law.sum())
    assert not fits(counts, exponential_law(SCORES, 0.5))


def test_permute_and_flip_has_its_law():
    counts = drawn(PermuteAndFlip(sensitivity=1.0, epsilon=1.0), SCORES, 20_000, 3)
    assert fits(counts, permute_and_flip_law(SCORES, 0.5))
    assert not fits(counts, permute_and_flip_law(SCORES, 0.7))


def test_noisy_max_has_its_law():
    """Two candidates a distance g apart: Laplace noise of scale b swaps them with probability e^{-g/b}(1/2 + g/4b)."""
    counts = drawn(NoisyMax(sensitivity=1.0, epsilon=1.0), np.array([0.0, 1.5]), 20_000, 4)
    g = 0.75
    swap = math.exp(-g) * (0.5 + g / 4)
    assert fits(counts, [swap, 1 - swap])
    assert not fits(counts, [swap * 1.1, 1 - swap * 1.1])


def test_top_k_is_peeling():
    rng, mechanism = seeded(5), TopK(k=2, epsilon=2.0)
    pairs = [tuple(mechanism.release(SCORES[:3], rng).value) for _ in range(20_000)]
    law = {}
    first = exponential_law(SCORES[:3], 0.5)
    for i in range(3):
        rest = [j for j in range(3) if j != i]
        for j, p in zip(rest, exponential_law(SCORES[rest], 0.5), strict=True):
            law[i, j] = first[i] * p
    counts = np.array([pairs.count(pair) for pair in law])
    assert fits(counts, list(law.values()))
    assert mechanism.event == events.Exponential(epsilon=mechanism.event.event.epsilon) * 2
    assert dp.epsilon(mechanism.event, delta=0) <= 2.0


@pytest.mark.parametrize("kind", KINDS)
@given(sensitivity=st.floats(1e-6, 1e6), epsilon=st.floats(1e-4, 20), monotone=st.booleans())
def test_epsilon_is_never_exceeded_and_hardly_wasted(kind, sensitivity, epsilon, monotone):
    mechanism = kind(sensitivity=sensitivity, epsilon=epsilon, monotone=monotone)
    assert epsilon * (1 - 1e-4) <= mechanism.event.epsilon <= epsilon
    assert dp.epsilon(mechanism.event, delta=0) <= epsilon


@pytest.mark.parametrize("kind", KINDS)
def test_the_utility_bound_holds(kind):
    mechanism, rng = kind(sensitivity=1.0, epsilon=1.0), seeded(6)
    scores = -np.random.default_rng(0).uniform(0, 40, 200)
    bound = mechanism.error(confidence=0.9, size=200)
    missed = sum(scores[mechanism.release(scores, rng).value] < scores.max() - bound for _ in range(300))
    assert missed <= stats.binom.ppf(1 - FALSE_ALARM, 300, 0.1)


def test_the_utility_bound_is_the_theorems():
    assert Exponential(sensitivity=2.0, epsilon=0.5).error(0.95, size=1000) == pytest.approx(8 * math.log(20_000))
    assert Exponential(monotone=True).error(0.95, size=1000) == pytest.approx(math.log(20_000))
    assert Exponential(base_measure=(1.0, 3.0)).error(0.5) == pytest.approx(2 * math.log(8))
    with pytest.raises(ValueError, match="size is missing"):
        Exponential().error()


@given(
    st.lists(st.floats(-1e3, 1e3) | st.sampled_from([1e300, -1e300, 1e18, 5e-324]), min_size=1, max_size=6),
    st.floats(-1, 1),
)
def test_neighbouring_scores_stay_within_reach(scores, shift):
    """Both the fast and the wide path: scores within the sensitivity are at most ``reach`` steps apart."""
    grid = ScoreGrid.paying(1.0, 1.0, 2)
    for score in scores:
        assert abs(grid.steps(score) - grid.steps(score + shift)) <= grid.reach or abs(score) > 2.0**52
    gaps = grid.gaps(scores)
    best = max(grid.steps(s) for s in scores)
    assert gaps.tolist() == [min(best - grid.steps(s), 2**61) for s in scores]


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=5), st.sampled_from([0, 2**60, -(2**60), 2**70]), st.data())
def test_a_shift_of_all_scores_changes_no_gap_with_or_without_a_base_measure(scores, shift, data):
    """Whole numbers beyond 2^53 take the exact path, which must agree with the fast one."""
    grid = ScoreGrid.paying(1.0, 1.0, 2)
    offsets = np.array(data.draw(st.lists(st.integers(-(2**40), 0), min_size=len(scores), max_size=len(scores))))
    for given_offsets in (None, offsets):
        shifted = grid.gaps([score + shift for score in scores], given_offsets)
        assert shifted.tolist() == grid.gaps(scores, given_offsets).tolist()


def test_large_sets_and_huge_scores():
    scores = np.zeros(1_000_000)
    scores[123_456] = 200.0
    for kind in KINDS:
        assert kind().release(scores, rng=1).value == 123_456
        assert kind().release([1e300, -1e300, 1e200], rng=1).value == 0
        assert kind().release([2**63 - 1, 0], rng=1).value == 0
        assert kind().release([3.0], rng=1).value == 0


def test_sampling_a_set_too_large_to_list():
    """Integers below 2^64 with score minus the distance to a target: found by drawing from the base measure."""
    mechanism, rng, draws = Exponential(sensitivity=1.0, epsilon=2.0), seeded(7), np.random.default_rng(0)
    found = [
        mechanism.release_by_sampling(lambda: int(draws.integers(0, 8)), lambda x: -abs(x - 5.0), 0.0, rng).value
        for _ in range(4000)
    ]
    assert fits(np.bincount(found, minlength=8), exponential_law(-np.abs(np.arange(8) - 5.0), 1.0))
    assert mechanism.release_by_sampling(lambda: 1, lambda x: 1e9, 0.0).value == 1
    with pytest.raises(ValueError, match="base_measure"):
        Exponential(base_measure=(1.0,)).release_by_sampling(lambda: 1, lambda x: 0.0, 0.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [[], [[1.0, 2.0]], np.array(["12345"]), 3.0, None])
def test_what_is_publicly_no_line_of_scores_is_refused_without_being_shown(kind, bad):
    with pytest.raises(ValueError, match="scores") as caught:
        kind().release(bad)
    assert "12345" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [math.nan, -math.inf, None, "12345", 1j, object(), -(10**400)])
def test_a_score_that_is_no_number_is_the_lowest(kind, bad):
    """Nothing is told by an error: the others are chosen among as if it were not there."""
    assert {kind(epsilon=1.0).release([bad, -1e300], rng=seeded(i)).value for i in range(20)} == {1}
    assert {kind(epsilon=1.0).release([bad, bad], rng=seeded(i)).value for i in range(20)} == {0, 1}
    assert kind(epsilon=1.0).release([0.0, math.inf, bad], rng=1).value == 1


def test_bad_parameters_are_named():
    for kind in KINDS:
        for bad in (0, -1.0, math.nan, math.inf, "1"):
            with pytest.raises(ValueError, match="sensitivity"):
                kind(sensitivity=bad)
            with pytest.raises(ValueError, match="epsilon"):
                kind(epsilon=bad)
    with pytest.raises(ValueError, match="base_measure"):
        Exponential(base_measure=(1.0, 0.0))
    with pytest.raises(ValueError, match="scores has 3 entries, but base_measure has 2"):
        Exponential(base_measure=(1.0, 1.0)).release([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="at least k=3"):
        TopK(k=3).release([1.0, 2.0])
    for pick in (weighted_index, permuted_index):
        with pytest.raises(ValueError, match="gaps"):
            pick(np.array([1, 2]), 10)
