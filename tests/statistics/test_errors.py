"""The error a statistic states before it reads data is the error that is measured, over a grid of sizes and budgets.

Root mean squares are compared with a normal approximation of the mean of squares; six standard errors leave room for
its heavy tail. Each comparison also rejects a scale that is 30 % off, which is its power.
"""

import math

import numpy as np
import pytest
from scipy import stats

import discreet as dp
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

FALSE_ALARM = 1e-6
RUNS = 3000
SIGMAS = 6.0

SIZES = (200, 5000)
BUDGETS = ({"epsilon": 0.5}, {"epsilon": 3.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.5})
GRID = [(n, budget) for n in SIZES for budget in BUDGETS]


def rms_fits(errors, stated):
    """Whether the mean square of the errors is stated², within six standard errors."""
    squares = np.asarray(errors, float) ** 2
    return abs(squares.mean() - stated**2) <= SIGMAS * squares.std() / math.sqrt(squares.size)


def coverage_fits(errors, stated, confidence):
    """Whether the stated quantile is exceeded as often as it says."""
    missed = int((np.abs(errors) > stated).sum())
    low, high = stats.binom.ppf([FALSE_ALARM, 1 - FALSE_ALARM], len(errors), 1 - confidence)
    return low <= missed <= high


def covered(errors, stated, confidence):
    """Whether the stated bound is exceeded no more often than it says."""
    return (np.abs(errors) > stated).sum() <= stats.binom.ppf(1 - FALSE_ALARM, len(errors), 1 - confidence)


def answers(operation, values, runs=RUNS, seed=1):
    """Many releases on the same records, which are read once."""
    totals, mechanism, rng = operation.totals(values), operation.mechanism, seeded(seed)
    return np.array([operation.answer(mechanism.release(totals, rng).value) for _ in range(runs)])


def skewed(n):
    """Places between 0 and 1 with mean 2/7 and no mass at the ends."""
    return stats.beta.ppf((np.arange(n) + 0.5) / n, 2, 5)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(
    "make",
    [Count, lambda **b: Sum(bounds=(-3, 10), **b), lambda **b: Histogram(bins=(0, 0.2, 0.4, 1), **b)],
    ids=["count", "sum", "histogram"],
)
def test_counts_sums_and_histograms(make, budget):
    operation, values = make(**budget), skewed(500)
    truth = np.asarray(operation.totals(values), float)
    errors = answers(operation, values).astype(float) - truth
    assert rms_fits(errors.ravel(), operation.rmse())
    assert not rms_fits(errors.ravel(), operation.rmse() * 1.3)
    assert covered(errors.ravel(), operation.error(0.9), 0.9)
    if isinstance(operation, Sum):
        assert coverage_fits(errors, operation.error(0.9), 0.9)


@pytest.mark.parametrize(("n", "budget"), GRID)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_mean(n, budget, adjacency):
    """The pair's exact law at the supposed mean, and the bound that holds for every mean."""
    values = 20 + 80 * skewed(n)
    operation = Mean(bounds=(20, 100), adjacency=adjacency, n=n if adjacency == "replace" else None, **budget)
    errors = answers(operation, values) - values.mean()
    stated = operation.rmse(n=n, mean=values.mean())
    assert rms_fits(errors, stated)
    assert not rms_fits(errors, stated * 1.3)
    assert coverage_fits(errors, operation.error(0.9, n=n, mean=values.mean()), 0.9)
    assert covered(errors, operation.error(0.9, n=n), 0.9)
    assert stated <= operation.rmse(n=n) * (1 + 1e-9)


@pytest.mark.parametrize(("n", "epsilon", "mean"), [(10, 1.0, 0.3), (20, 1.0, 0.05), (30, 0.3, 0.5)])
def test_the_means_law_holds_where_first_order_does_not(n, epsilon, mean):
    """A handful of records: the ratio of noisy sums is far from linear, and its stated law is not an expansion."""
    operation = Mean(bounds=(0, 1), epsilon=epsilon)
    errors = answers(operation, np.full(n, mean)) - mean
    stated = operation.rmse(n=n, mean=mean)
    assert rms_fits(errors, stated)
    assert coverage_fits(errors, operation.error(0.8, n=n, mean=mean), 0.8)
    linear = operation.rmse(n=n) * math.hypot(mean, 1 - mean)
    assert abs(stated / linear - 1) > 0.02


def test_the_pair_halves_the_variance_at_the_middle():
    operation = Mean(bounds=(0, 1), epsilon=1.0)
    assert operation.rmse(n=10**5, mean=0.5) == pytest.approx(operation.rmse(n=10**5) / math.sqrt(2), rel=1e-4)


@pytest.mark.parametrize(("n", "epsilon", "p"), [(100, 1.0, 0.3), (100, 5.0, 0.5), (400, 0.5, 0.2), (2000, 1.0, 0.9)])
def test_the_binary_mean_has_the_lectures_error(n, epsilon, p):
    """p(1-p)/n from sampling the records, 2/(nε)² from the noise."""
    operation = Mean(bounds=(0, 1), epsilon=epsilon, adjacency="replace", n=n)
    draw, rng = np.random.default_rng(3), seeded(3)
    errors = [operation.release(draw.random(n) < p, rng).value - p for _ in range(RUNS)]
    stated = p * (1 - p) / n + 2 / (n * epsilon) ** 2
    assert operation.mse(variance=p * (1 - p)) == pytest.approx(stated, rel=1e-6)
    assert rms_fits(errors, math.sqrt(stated))
    assert not rms_fits(errors, math.sqrt(stated) * 1.3)


@pytest.mark.parametrize(("n", "budget"), GRID)
def test_variance(n, budget):
    values = 10 * skewed(n)
    operation = Variance(bounds=(0, 10), **budget)
    errors = answers(operation, values) - values.var()
    stated = operation.rmse(n=n, mean=values.mean(), variance=values.var())
    if n > 1000:  # to first order in 1/n
        assert rms_fits(errors, stated)
        assert not rms_fits(errors, stated * 1.3)
    assert stated <= operation.rmse(n=n) * (1 + 1e-9)
    assert covered(errors, operation.error(0.9, n=n), 0.9)


@pytest.mark.parametrize(("n", "budget"), GRID)
def test_variance_with_public_size(n, budget):
    values = 10 * skewed(n)
    operation = Variance(bounds=(0, 10), adjacency="replace", n=n, **budget)
    errors = answers(operation, values) - values.var()
    if operation.rmse() < values.var() / 8:  # the cut at zero does not bite
        assert rms_fits(errors, operation.rmse())
        assert not rms_fits(errors, operation.rmse() * 1.3)
        assert coverage_fits(errors, operation.error(0.9), 0.9)
    assert covered(errors, operation.error(0.9), 0.9)


@pytest.mark.parametrize("budget", BUDGETS)
def test_covariance(budget):
    rng = np.random.default_rng(5)
    x = np.clip(rng.normal(size=(20_000, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]]), -3, 3)
    operation = Covariance(bounds=((-3, 3), (-4, 4)), **budget)
    truth = np.cov(x.T, bias=True)
    errors = answers(operation, x, runs=1500) - truth
    stated = operation.rmse(n=len(x), mean=x.mean(axis=0), covariance=truth)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        assert rms_fits(errors[:, i, j], stated[i, j])
        assert not rms_fits(errors[:, i, j], stated[i, j] * 1.3)
        assert covered(errors[:, i, j], operation.error(0.9, n=len(x))[i, j], 0.9)
        assert covered(
            errors[:, i, j], operation.error(0.9, n=len(x), mean=x.mean(axis=0), covariance=truth)[i, j], 0.9
        )
    assert (stated <= operation.rmse(n=len(x)) * (1 + 1e-9)).all()


@pytest.mark.parametrize(("n", "budget"), GRID)
def test_cdf(n, budget):
    values, bins = skewed(n), (0.0, 0.15, 0.25, 0.35, 1.0)
    operation = Cdf(bins=bins, **budget)
    truth = np.array([np.mean(values < edge) for edge in bins[1:]])
    errors = answers(operation, values) - truth
    stated = operation.rmse(n=n, cdf=truth)
    for i in range(3):
        if n > 1000:
            assert rms_fits(errors[:, i], stated[i])
            assert not rms_fits(errors[:, i], stated[i] * 1.3)
        assert covered(errors[:, i], operation.error(0.9, n=n)[i], 0.9)
    assert stated[3] == operation.rmse(n=n)[3] == 0
    assert (stated <= operation.rmse(n=n) + 1e-12).all()


@pytest.mark.parametrize(("n", "budget"), [(n, b) for n in SIZES for b in BUDGETS[2:]])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_vector_mean(n, budget, adjacency):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(n, 7))
    x = 2 * x / np.linalg.norm(x, axis=1)[:, None] * rng.random((n, 1)) + 0.0
    x[:, 0] = np.abs(x[:, 0])
    operation = VectorMean(
        dimension=7, norm=2.0, adjacency=adjacency, n=n if adjacency == "replace" else None, **budget
    )
    truth = x.mean(axis=0)
    lengths = np.linalg.norm(answers(operation, x, runs=1000) - truth, axis=1)
    stated = operation.rmse(n=n, mean=np.linalg.norm(truth))
    if n > 1000 or adjacency == "replace":
        assert rms_fits(lengths, stated)
        assert not rms_fits(lengths, stated * 1.3)
    assert covered(lengths, operation.error(0.9, n=n), 0.9)


def populations():
    """Populations of second moment at most 1: a normal, a heavy tail, and the worst case for the bias at τ."""
    normal = lambda rng, n, tau: rng.normal(0.6, 0.8, n)  # noqa: E731
    student = lambda rng, n, tau: rng.standard_t(3, n) / math.sqrt(3)  # noqa: E731
    spike = lambda rng, n, tau: np.where(rng.random(n) < 1 / (4 * tau**2), 2 * tau, 0.0)  # noqa: E731
    return {
        "normal": (normal, lambda tau: 0.6),
        "student": (student, lambda tau: 0.0),
        "spike": (spike, lambda tau: 1 / (2 * tau)),
    }


@pytest.mark.parametrize("name", populations())
@pytest.mark.parametrize(("n", "epsilon"), [(200, 0.5), (1000, 1.0)])
@pytest.mark.parametrize("lecture", [False, True])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_the_bounded_variance_mean_keeps_its_bound(name, n, epsilon, lecture, adjacency):
    """Both clips: ours gives σ²/n + √2σ²/(nε), the lecture's σ²/n + 2.25σ²/(nε)."""
    clip = math.sqrt(n * epsilon) / 2 if lecture else None
    operation = BoundedVarianceMean(sd=1.0, n=n, clip=clip, epsilon=epsilon, adjacency=adjacency)
    assert operation.tau == pytest.approx(clip or math.sqrt(n * epsilon) / 128**0.25, rel=1e-6)
    bound = 1 / n + (2.25 if lecture else math.sqrt(2)) / (n * epsilon)
    assert operation.mse() == pytest.approx(bound, rel=1e-6)
    draw, mean = populations()[name]
    data, rng = np.random.default_rng(4), seeded(4)
    errors = [operation.release(draw(data, n, operation.tau), rng).value - mean(operation.tau) for _ in range(1500)]
    squares = np.square(errors)
    assert squares.mean() - SIGMAS * squares.std() / math.sqrt(squares.size) <= bound
    if name == "spike" and adjacency == "replace":  # the bound is nearly met: less the spike's own variance, 1/4τ²·…
        assert squares.mean() >= bound - 1 / n - SIGMAS * squares.std() / math.sqrt(squares.size)


@pytest.mark.parametrize(("d", "adjacency"), [(1, "replace"), (16, "replace"), (16, "add-remove"), (100, "replace")])
def test_the_bounded_variance_mean_of_vectors(d, adjacency):
    """τ shrinks like d^-¼, and the measured error stays below the bound."""
    n, budget = 2000, {"epsilon": 1.0, "delta": 1e-6}
    operation = BoundedVarianceMean(sd=1.0, n=n, dimension=d, adjacency=adjacency, **budget)
    one = BoundedVarianceMean(sd=1.0, n=n, dimension=1, adjacency=adjacency, **budget)
    if adjacency == "replace":
        assert operation.tau == pytest.approx(one.tau * d**-0.25, rel=1e-6)
    data, rng = np.random.default_rng(7), seeded(7)
    squares = [
        ((operation.release(data.normal(0.1, 0.9, (n, d)) / math.sqrt(d), rng).value - 0.1 / math.sqrt(d)) ** 2).sum()
        for _ in range(60)
    ]
    assert np.mean(squares) - SIGMAS * np.std(squares) / math.sqrt(60) <= operation.mse()


@pytest.mark.parametrize("budget", [{"epsilon": 0.5}, {"epsilon": 3.0}, {"rho": 0.1}])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_mode_and_top_k(budget, adjacency):
    """Close contests: the chosen count falls short by more than the stated error no more often than stated."""
    values = np.repeat(np.arange(20), 30 + np.arange(20))
    counts, rng = 30 + np.arange(20), seeded(8)
    mode = Mode(categories=range(20), adjacency=adjacency, **budget)
    short = np.array([counts.max() - counts[mode.release(values, rng).value] for _ in range(400)])
    assert covered(short, mode.error(0.8), 0.8)
    best = TopK(k=3, categories=range(20), adjacency=adjacency, **budget)
    for turn in range(3):
        short = np.array([counts[-1 - turn] - counts[best.release(values, rng).value[turn]] for _ in range(200)])
        assert covered(short, best.error(0.8), 0.8)


def test_mode_is_right_when_the_contest_is_not_close():
    operation = Mode(categories="abc", epsilon=1.0)
    values = list("a" * 100 + "b" * (100 + math.ceil(operation.error(0.999))))
    right = sum(operation.release(values, seeded(i)).value == "b" for i in range(300))
    assert right >= stats.binom.ppf(FALSE_ALARM, 300, 0.999)


def rank_error(values, answer, q):
    below, up_to = np.sum(values < answer), np.sum(values <= answer)
    return max(0.0, below - q * len(values), q * len(values) - up_to)


@pytest.mark.parametrize("budget", [{"epsilon": 0.5}, {"epsilon": 3.0}, {"rho": 0.1}])
@pytest.mark.parametrize("q", [0.02, 0.5, 0.9])
@pytest.mark.parametrize("n", SIZES)
def test_quantile(q, budget, n):
    """The rank is missed by more than the stated error no more often than stated; whole values are grid points."""
    values = np.floor(10_000 * skewed(n))
    operation, rng = Quantile(q=q, bounds=(0, 16_384), steps=16_384, **budget), seeded(9)
    missed = np.array([rank_error(values, operation.release(values, rng).value, q) for _ in range(200)])
    assert covered(missed, operation.error(0.8), 0.8)


def test_quantiles():
    q = np.arange(0.1, 0.95, 0.1)
    for values in (np.floor(10_000 * skewed(5000)), np.repeat([3.0, 7.0, 20.0], [2000, 2000, 1000])):
        for budget in ({"epsilon": 4.0}, {"epsilon": 1.0, "delta": 1e-6}):
            operation, rng = Quantiles(q=tuple(q), bounds=(0, 16_384), steps=16_384, **budget), seeded(10)
            for _ in range(20):
                found = operation.release(values, rng).value
                assert (np.diff(found) >= 0).all()
                assert max(rank_error(values, x, share) for x, share in zip(found, q, strict=True)) <= operation.error(
                    1 - 1e-7
                )


def test_an_atom_serves_many_quantiles():
    """All records equal: every quantile is that value, although the first choice splits the records there."""
    found = (
        Quantiles(q=(0.1, 0.3, 0.5, 0.7, 0.9), bounds=(0, 100), epsilon=2.0).release(np.full(5000, 42.0), rng=1).value
    )
    assert np.abs(found - 42.0).max() < 1e-3


@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0])
def test_quantile_has_its_exact_law(q):
    """On a grid of eleven points, against exp(ε·u/2D) with scores written out by hand."""
    values = np.array([2, 2, 2, 5, 6, 9])
    below = np.array([(values < j).sum() for j in range(11)])
    up_to = np.array([(values <= j).sum() for j in range(11)])
    distance = np.maximum(0, np.maximum(below - q * 6, q * 6 - up_to))
    law = np.exp(-1.2 * distance / (2 * max(q, 1 - q)))
    operation, rng = Quantile(q=q, bounds=(0, 10), steps=10, epsilon=1.2), seeded(11)
    counts = np.bincount([round(operation.release(values, rng).value) for _ in range(6000)], minlength=11)
    assert stats.chisquare(counts, law / law.sum() * 6000).pvalue > FALSE_ALARM
    wrong = law**1.3
    assert stats.chisquare(counts, wrong / wrong.sum() * 6000).pvalue < FALSE_ALARM


def test_functions_and_operations_agree():
    values = np.arange(100) % 7
    assert (
        dp.statistics.mean(values, (0, 6), epsilon=1.0, rng=1).value
        == Mean(bounds=(0, 6), epsilon=1.0).release(values, rng=1).value
    )
    assert (
        dp.statistics.sum(values, (0, 6), rho=1.0, rng=1).value
        == Sum(bounds=(0, 6), rho=1.0).release(values, rng=1).value
    )
