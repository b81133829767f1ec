"""Tests of means, beside scipy's where next to no noise is added, and what they say where there is too much."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet import inference
from discreet.errors import BudgetExceeded
from discreet.inference import OneSample, Paired, Samples, Welch, power

SURE = {"epsilon": 1e6}
RNG = np.random.default_rng(3)
A, B = RNG.normal(5.0, 1.0, 150), RNG.normal(5.3, 1.5, 120)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_a_simulated_law_is_student_s_where_there_is_little_noise(alternative):
    """At ε = 1,000 laws are simulated, by 9,999 draws and 3 % wider: to 0.02. Without noise: test_classical."""
    mine = inference.welch(A, B, (0, 10), alternative=alternative, epsilon=1e3, rng=1)
    theirs = stats.ttest_ind(A, B, equal_var=False, alternative=alternative)
    assert mine.effect == pytest.approx(A.mean() - B.mean(), abs=0.01)
    assert mine.p_value == pytest.approx(theirs.pvalue, abs=0.02)
    low, high = stats.ttest_ind(A, B, equal_var=False).confidence_interval()
    assert mine.interval == pytest.approx((low, high), abs=0.05 * (high - low))


def test_a_small_group_is_answered_with_a_warning_of_skewed_records():
    few, many = OneSample(bounds=(0, 1), epsilon=10.0), [0.4, 0.5, 0.6] * 100
    assert "skewed" in few.release([0.4, 0.5, 0.6] * 15, rng=1).note
    assert few.release(many, rng=1).note == ""
    assert few.release(many[:6], rng=1).p_value == 1.0  # of so few, no level could be held


def test_a_column_of_groups_is_as_two_samples():
    groups, values = ["b"] * len(B) + ["a"] * len(A), np.concatenate([B, A])
    test = Welch(bounds=(0, 10), groups=("a", "b"), epsilon=1.0)
    one, two = test.release((groups, values), rng=4), test.release(Samples((A, B)), rng=4)
    assert one.value == two.value


def test_what_is_missing_beyond_or_of_no_group_is_left_out_or_clipped():
    test = Welch(bounds=(0, 10), **SURE)
    odd = (([0, 1, 0, 1, 7, 0, "x"] * 40), ([4.0, 6.0, 99.0, -5.0, 3.0, float("nan"), 2.0] * 40))
    plain = ([0, 1, 0, 1] * 40, [4.0, 6.0, 10.0, 0.0] * 40)
    assert test.release(odd, rng=1).effect == pytest.approx(test.release(plain, rng=1).effect, abs=1e-3)


def test_a_pair_that_misses_a_measurement_is_missing():
    test = Paired(bounds=(0, 10), **SURE)
    answer = test.release(([3.0, float("nan"), 5.0] * 30, [1.0, 9.0, 2.0] * 30), rng=1)
    assert answer.effect == pytest.approx(2.5, abs=1e-3)


@pytest.mark.parametrize("test", [OneSample(bounds=(0, 1), epsilon=0.1), Welch(bounds=(0, 1), epsilon=0.1)])
def test_too_few_records_for_the_noise_give_a_p_value_of_one_and_say_so(test):
    data = [0.5] * 20 if isinstance(test, OneSample) and not isinstance(test, Welch) else ([0, 1] * 10, [0.5] * 20)
    answer = test.release(data, rng=1)
    assert answer.p_value == 1.0
    assert answer.interval == (-math.inf, math.inf)
    assert "noise on the number of records" in answer.note


def test_a_null_at_an_end_of_the_bounds_is_far_from_records_in_the_middle():
    answer = OneSample(bounds=(17, 90), null=17.0, epsilon=1.0).release([40.0, 42.0] * 300, rng=1)
    assert answer.p_value < 0.001
    assert 0 < answer.interval[1] - answer.interval[0] < 2


def test_no_records_at_all_are_answered():
    assert OneSample(bounds=(0, 1), epsilon=1.0).release([], rng=1).p_value == 1.0
    assert Welch(bounds=(0, 1), epsilon=1.0).release(([], []), rng=1).p_value == 1.0


def test_one_release_has_one_p_value():
    """The draws of a null law are public, and the same each time."""
    test = OneSample(bounds=(0, 10), null=5.0, epsilon=1.0)
    noisy = np.array([[20.0, 50.0, 30.0]])
    assert test.answer(noisy) == test.answer(noisy)


def test_a_refused_charge_reads_nothing():
    ledger = dp.Ledger("sqlite://")
    book = ledger.open("study", epsilon=0.5)
    with pytest.raises(BudgetExceeded):
        inference.welch(A, B, (0, 10), epsilon=1.0, book=book)
    answer = inference.welch(A, B, (0, 10), epsilon=0.4, book=book)
    assert answer.label == "Welch's test"
    assert dp.epsilon(answer, delta=0) == pytest.approx(0.4)


def test_a_test_that_can_show_nothing_says_so_before_the_charge():
    ledger = dp.Ledger("sqlite://")
    book = ledger.open("study", epsilon=1.0)
    hopeless = OneSample(bounds=(0, 1), n_expected=30, epsilon=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # so that it stops there
        with pytest.raises(UserWarning, match="too small for this test"):
            book.release(hopeless, [0.5] * 30)
        book.release(OneSample(bounds=(0, 1), n_expected=3000, epsilon=0.1), [0.5] * 3000)
    assert book.spent().epsilon == pytest.approx(0.1)


def test_of_a_public_number_of_records_it_is_known_without_a_guess():
    book = dp.Ledger("sqlite://").open("study", epsilon=20.0, adjacency="replace")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="too small for this test"):
            book.release(OneSample(bounds=(0, 1), n=30, adjacency="replace", epsilon=0.01), [0.5] * 30)
        for n in (15, 36):  # where the largest effect, all records at a bound, is seen
            book.release(OneSample(bounds=(0, 1), null=0.5, n=n, adjacency="replace", epsilon=10.0), [0.5] * n)
    assert book.spent().epsilon == pytest.approx(20.0)


def test_what_is_no_pair_of_columns_is_refused_before_the_charge():
    ledger = dp.Ledger("sqlite://")
    book = ledger.open("study", epsilon=1.0)
    with pytest.raises(ValueError, match="tuple of 2 columns"):
        book.release(Welch(bounds=(0, 1), epsilon=0.1), [0.5])
    assert book.spent().epsilon == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Welch(bounds=(0, 1), groups=(0, 1, 2), epsilon=1.0), "two groups"),
        (lambda: Welch(bounds=(1, 0), epsilon=1.0), "bounds"),
        (lambda: Welch(bounds=(0, 1), epsilon=1.0, alternative="both"), "alternative is 'both'"),
        (lambda: Welch(bounds=(0, 1), epsilon=1.0, confidence=1.0), "confidence"),
        (lambda: Welch(bounds=(0, 1), epsilon=1.0, simulations=3), "simulations"),
        (lambda: OneSample(bounds=(0, 1), null=math.nan, epsilon=1.0), "null"),
        (lambda: OneSample(bounds=(17, 90), epsilon=1.0), r"null is 0.0, but must be a number in \[17, 90\]"),
        (lambda: Welch(bounds=(0, 1), null=1.5, epsilon=1.0), r"null is 1.5, but must be a number in \[-1, 1\]"),
        (lambda: Welch(bounds=(0, 1), epsilon=1.0).check([[0, 1], [1.0, 2.0]]), "tuple of 2 columns"),
        (lambda: Welch(bounds=(0, 1), epsilon=1.0).check(Samples(([1.0],))), "1 samples, but must have 2"),
    ],
)
def test_public_mistakes_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: inference.Paired(bounds=(-(2.0**900), 2.0**900), epsilon=1.0),
        lambda: inference.AverageEffect(bounds=(0, 2.0**899), overlap=0.01, epsilon=1.0),
        lambda: inference.AverageEffect(bounds=(0, 1), overlap=1e-300, epsilon=1.0),
        lambda: inference.AverageEffect(bounds=(0, 1), limit=1e-300, epsilon=1.0),
    ],
)
def test_bounds_of_what_is_averaged_are_refused_before_anything_is_charged(make: Callable[[], object]) -> None:
    """They are public facts: all four were charged, and then raised."""
    with pytest.raises(ValueError, match="averaged"):
        make()


def test_an_effect_of_which_nothing_is_known_is_one_that_the_bounds_allow():
    """A difference of -31,168 days was shown of stays of at most 30."""
    for seed in range(5):
        answer = inference.welch([9.0] * 50, [7.0] * 50, bounds=(0, 30), epsilon=1e-3, rng=seed)
        assert (answer.p_value, answer.interval) == (1.0, (-np.inf, np.inf))
        assert -30 <= answer.effect <= 30


def test_a_public_number_of_records_leaves_all_of_the_budget_to_the_mean():
    """Of 1,000 records at ε = 0.1 the interval is as wide as noise of 2/ε on their sum; 1.4 times without n."""
    values = [4.0, 5.0, 6.0, 7.0] * 250
    told = {"adjacency": "replace", "epsilon": 0.1, "null": 5.0, "rng": 1}
    known = inference.one_sample(values, (0, 10), n=1_000, **told)
    private = inference.one_sample(values, (0, 10), **told)
    assert known.event.noise_multiplier == private.event.noise_multiplier
    width, wider = (np.diff(answer.interval)[0] for answer in (known, private))
    assert width == pytest.approx(2 * 1.96 * np.hypot(10 * 2**0.5 / 0.1 / 1_000, 1.12 / 1_000**0.5), rel=0.15)
    assert wider > 1.25 * width


def test_the_totals_of_a_public_number_of_records_move_by_two_at_most():
    """From any record to any other, in L1; and by two in L2, whose square the event of Gaussian noise counts."""
    test = OneSample(bounds=(0, 1), n=1, adjacency="replace", epsilon=1.0)
    totals = np.array([test.totals(np.array([t]))[0] for t in [*np.linspace(0, 1, 41), math.nan]], float)
    moves = totals[:, None] - totals[None]
    assert np.abs(moves).sum(-1).max() == 2
    assert (moves**2).sum(-1).max() == 4
    l1, square, size = test._moves
    assert (l1, square, size) == (2, 4, 2)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_of_a_public_number_of_records_without_noise_the_law_is_student_s(alternative):
    asked = {"alternative": alternative, "adjacency": "replace", "rng": 1, **SURE}
    mine = inference.one_sample(A, (0, 10), null=5.1, n=len(A), **asked)
    theirs = stats.ttest_1samp(A, 5.1, alternative=alternative)
    assert (mine.statistic, mine.p_value) == pytest.approx((theirs.statistic, theirs.pvalue), abs=1e-3)
    pair = inference.paired(A[:120], B, (0, 10), n=120, **asked)
    theirs = stats.ttest_rel(A[:120], B, alternative=alternative)
    assert (pair.statistic, pair.p_value) == pytest.approx((theirs.statistic, theirs.pvalue), abs=1e-3)


def test_a_missing_record_of_a_public_number_stands_in_the_middle():
    test = OneSample(bounds=(0, 10), n=4, adjacency="replace", **SURE)
    assert test.totals(np.array([1.0, math.nan, 9.0, 3.0])).tolist() == test.totals(np.array([1, 5, 9, 3])).tolist()


def test_a_number_that_is_not_the_public_one_is_refused_before_the_charge():
    book = dp.Ledger("sqlite://").open("study", epsilon=1.0)
    asked = {"epsilon": 0.1, "adjacency": "replace", "book": book}
    for n, said in ((5, "has 6 records, but n=5"), (0, "n is 0")):
        with pytest.raises(ValueError, match=said):
            inference.one_sample([0.5] * 6, (0, 1), n=n, **asked)
        with pytest.raises(ValueError, match=said):
            inference.paired([0.5] * 6, [0.5] * 6, (0, 1), n=n, **asked)
    with pytest.raises(ValueError, match="private unless adjacency='replace'"):
        inference.one_sample([0.5] * 6, (0, 1), n=6, epsilon=0.1, book=book)
    with pytest.raises(ValueError, match="leave one out"):
        inference.one_sample([0.5] * 6, (0, 1), n=6, n_expected=100, **asked)
    assert book.spent().epsilon == 0


def test_power_of_a_public_number_of_records_is_of_so_many():
    """Of the test's own, or of those that are asked about; never of one number with the noise of another."""
    test = OneSample(bounds=(-3, 3), n=300, adjacency="replace", epsilon=0.2)
    assert power(test, effect=0.5, sd=1.0, runs=400) == power(test, n=300, effect=0.5, sd=1.0, runs=400)
    assert power(test, n=600, effect=0.5, sd=1.0, runs=400) > 0.9 > power(test, effect=0.5, sd=1.0, runs=400)
