"""Passes in which every record is in one batch, chosen at random: bounds from both sides beside independent answers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, norm

import discreet as dp
from discreet import events as ev
from discreet.accounting.allocation import Allocated, Allocation
from discreet.accounting.allocation_balance import balance, moments
from discreet.accounting.allocation_cells import LatticeCells
from discreet.accounting.allocation_lattice import _merge_few, power
from discreet.accounting.allocation_ratio import FAST, SHARP, Precision, spread_ratio
from discreet.accounting.contraction import contract_atoms
from discreet.accounting.kept_shapes import majorants
from discreet.accounting.neighbours import resolve
from discreet.accounting.pld.composition import PLD
from discreet.accounting.pld.pairs import GaussianShift
from discreet.accounting.rdp import rdp_curve
from discreet.adjacency import Adjacency
from discreet.mechanisms.factorization import BLT, Banded, LambdaCGD, Pattern, Strategy, Workload, kept_bins_event

FALSE_ALARM = 1e-9


def bins(count: int, sigma: float) -> ev.BallsInBins:
    return ev.BallsInBins(bins=count, event=ev.Gaussian(noise_multiplier=sigma))


def deltas(count: int, sigma: float, epsilon: float) -> list[tuple[float, float]]:
    """(lower, upper) of removing a record, and of adding one."""
    above = Allocation(Allocated(count, GaussianShift(1 / sigma)))
    below, at = above.attainable[0], np.array([epsilon])
    return [(float(low.profile(at)[0]), float(high.profile(at)[0]))
            for low, high in ((below, above), (below.mirror, above.mirror))]  # fmt: skip


# --- answers that were computed otherwise ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sigma", "count", "epsilon", "removed", "added"),
    [
        (1, 100, 0.2, 4.6357e-3, 3.1907e-3),
        (1, 100, 0.5, 4.4089e-5, 5.926e-7),
        (1, 100, 1.0, 3.01578e-7, None),
        (1, 10, 0.2, 8.3092e-2, 7.7890e-2),
        (1, 10, 0.5, 2.68504e-2, 1.9064e-2),
        (1, 10, 1.0, 2.78287e-3, 4.8625e-4),
        (0.8, 50, 0.2, 3.90047e-2, 3.17463e-2),
        (0.8, 50, 0.5, 7.05304e-3, 1.81079e-3),
        (0.8, 50, 1.0, 5.03238e-4, 2.9085e-7),
        (2, 100, 0.2, 1.4576e-6, 1.0563e-6),
    ],
)
def test_both_directions_of_one_pass_meet_the_linear_lattice(sigma, count, epsilon, removed, added):
    """Figures of a spread onto a uniform lattice by one transform, converged to the digits shown."""
    for (low, high), truth in zip(deltas(count, sigma, epsilon), (removed, added), strict=True):
        assert low <= high <= low * (1 + 1e-3)
        if truth is None:
            assert high < 1e-15
        else:
            assert high == pytest.approx(truth, rel=2e-4)


@pytest.mark.parametrize(
    ("sigma", "count", "passes", "epsilon"),
    [
        (1, 100, 1, 0.62094),
        (1, 100, 10, 1.7015),
        pytest.param(0.8, 1000, 1, 0.28358, marks=pytest.mark.slow),
        (0.8, 1000, 10, 0.75633),
        (2, 100, 10, 0.6031),
    ],
)
def test_passes_that_are_drawn_anew(sigma, count, passes, epsilon):
    low, high = dp.epsilon_bounds(bins(count, sigma) * passes, 1e-5)
    assert low <= high <= low * (1 + 1e-4)
    assert high == pytest.approx(epsilon, rel=2e-5)
    rate = ev.PoissonSampled(rate=1 / count, event=ev.Gaussian(noise_multiplier=sigma)) * (count * passes)
    assert high < dp.epsilon(rate, 1e-5)


def test_the_headline():
    low, high = dp.epsilon_bounds(bins(100, 1.0) * 10, 1e-5)
    assert high <= 1.7016
    assert 0 <= high - low <= 1e-6 * high


@pytest.mark.parametrize(
    ("count", "width"),
    [(100, 2e-6), (1000, 2e-6), *(pytest.param(10**n, 5e-6, marks=pytest.mark.slow) for n in (4, 5))],
)
def test_small_noise_is_priced_from_both_sides(count, width):
    """Rows contracted one by one lost 2e-3 of epsilon, and 1e-2 at 10⁵; first points of rows 1e-5; coarse rows 5e-4."""
    low, high = dp.epsilon_bounds(bins(count, 0.5) * 10, 1e-5)
    assert 0 < low <= high <= low * (1 + width)


@pytest.mark.parametrize(("sigma", "count"), [(2.0, 10**5), (4.0, 10**4), (20.0, 10**5), (1.0, 10**5)])
def test_many_bins_and_much_noise_are_priced_from_both_sides(sigma, count):
    """Tails known to 1e-12 gave 10⁵ bins 4e-4 of epsilon; ends of transforms kept the lattice coarse."""
    low, high = dp.epsilon_bounds(bins(count, sigma) * 10, 1e-5)
    assert 0 < low <= high <= low * (1 + 6e-5)


def test_a_law_of_much_noise_whose_lower_end_is_moved_up_stays_one():
    """A coarse row's first point may be before the start, which a cut at it does not move down."""
    law = Allocated(10**5, GaussianShift(1 / 4)).law(Precision(exact=False, cut=1e-30, columns=2048), above=True)[0]
    points, masses = law.atoms()
    assert masses @ points == pytest.approx(10**5, rel=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_outcomes_between_the_points_of_several_rows_are_contracted_across_their_ends(seed):
    """Calls and puts are never above those of what was placed, and next to nothing is left out."""
    rng, rows, columns = np.random.default_rng(seed), 4, 64
    start = int(rng.integers(0, 100))
    cells, points, masses = LatticeCells(rows, columns, start), [], []
    for r in range(rows - 1):
        first = 0 if r == 0 else columns // 2
        for share in (0.0, float(rng.uniform(0, 1))):
            placed = np.exp(-0.02 * 2.0**r * np.arange(first, 2 * columns - 8)) * rng.uniform(0.9, 1.1)
            cells.place(r, placed, first, share)
            points.append(2.0**r * ((start >> r) + first + share + np.arange(len(placed))))
            masses.append(placed)
    x, m = np.concatenate(points), np.concatenate(masses)
    merged = cells.contract()
    numbers = np.array([2.0**r * ((start >> r) + np.arange(columns)) for r in range(rows)])
    assert (merged >= 0).all()
    assert m.sum() * (1 - 0.02) <= merged.sum() <= m.sum()
    for strike in np.linspace(start, start + 400, 97):
        for side in (1, -1):
            below = float((merged * np.maximum(side * (numbers - strike), 0)).sum())
            assert below <= float(m @ np.maximum(side * (x - strike), 0)) * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.3, 4.0), (1.0, 0.1), (1.0, 1.0), (3.0, 0.1)])
def test_two_bins_by_quadrature(sigma, epsilon):
    """Given the first ratio, the second is a Black-Scholes price."""
    mu = 1 / sigma

    def call(strike: float) -> float:
        if strike <= 0:
            return 1 - strike
        d = math.log(strike) / mu
        return float(norm.cdf(mu / 2 - d) - strike * norm.cdf(-mu / 2 - d))

    def put(strike: float) -> float:
        return call(strike) - 1 + strike if strike > 0 else 0.0

    def mean(f) -> float:
        value, _ = quad(lambda z: f(math.exp(mu * z - mu**2 / 2)) * norm.pdf(z), -12, 12 + mu,
                        points=[(math.log(2 * math.exp(s * epsilon)) + mu**2 / 2) / mu for s in (1, -1)],
                        epsabs=1e-14, epsrel=1e-11, limit=800)  # fmt: skip
        return value

    removed = mean(lambda x: call(2 * math.exp(epsilon) - x)) / 2
    added = math.exp(epsilon) / 2 * mean(lambda x: put(2 * math.exp(-epsilon) - x))
    for (low, high), truth in zip(deltas(2, sigma, epsilon), (removed, added), strict=True):
        assert low <= truth * (1 + 1e-8) + 1e-12
        assert high >= truth * (1 - 1e-8) - 1e-12
        assert high - low <= 1e-3 * high + 1e-12


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("inner", [0.5, 2.0])
def test_randomised_response_in_bins_by_enumeration(count, inner):
    """Every outcome of so many batches, each a bit that is told rightly with probability e^ε/(1 + e^ε)."""
    p = math.exp(inner) / (1 + math.exp(inner))
    event = ev.BallsInBins(bins=count, event=ev.PureDP(epsilon=inner))
    for epsilon in (0.1, 0.5 * inner, 0.9 * inner):
        removed = added = 0.0
        for outcome in itertools.product((0, 1), repeat=count):
            absent = math.prod(1 - p if bit else p for bit in outcome)
            present = absent * sum(math.exp(inner if bit else -inner) for bit in outcome) / count
            removed += max(0.0, present - math.exp(epsilon) * absent)
            added += max(0.0, absent - math.exp(epsilon) * present)
        truth = max(removed, added)
        assert truth * (1 - 1e-12) <= dp.delta(event, epsilon) <= truth * 1.01 + 1e-9
    assert dp.epsilon(event, 0.0) == pytest.approx(inner)


@pytest.mark.parametrize("orders", [(2, 3, 4, 8, 12)])
def test_renyi_divergences_of_whole_orders_are_multinomial_sums(orders):
    """E S^α = α! [x^α] (Σ E ℓ^j x^j / j!)^t, here by exact polynomial powers."""
    count, sigma = 20, 1.3
    series = np.array([math.exp(j * (j - 1) / (2 * sigma**2)) / math.factorial(j) for j in range(13)])
    total = np.array([1.0])
    for _ in range(count):
        total = np.convolve(total, series)[:13]
    curve = rdp_curve(bins(count, sigma), np.array(orders, dtype=float))
    for order, value in zip(orders, curve, strict=True):
        truth = math.log(total[order] * math.factorial(order) / count**order) / (order - 1)
        assert truth * (1 - 1e-12) <= value <= truth * 1.01
    step = bins(count, sigma) * 5
    assert (
        dp.epsilon(step, 1e-6)
        <= dp.epsilon(step, 1e-6, accountant="rdp")
        < dp.epsilon(ev.Gaussian(noise_multiplier=sigma) * 5, 1e-6)
    )


# --- laws ------------------------------------------------------------------------------------------------------------


def test_one_bin_is_the_event_and_kept_bins_of_independent_noise_are_a_larger_shift():
    step = ev.Gaussian(noise_multiplier=1.5)
    assert dp.epsilon(ev.BallsInBins(bins=1, event=step) * 3, 1e-6) == dp.epsilon(step * 3, 1e-6)
    kept = ev.BallsInBins(bins=50, event=step * 4)
    assert dp.epsilon(kept, 1e-6) == pytest.approx(dp.epsilon(bins(50, 0.75), 1e-6), rel=1e-9)


def test_more_bins_more_noise_and_fewer_passes_cost_less():
    by_bins = [dp.epsilon(bins(count, 0.8) * 3, 1e-6) for count in (1, 2, 30, 10**4)]
    by_noise = [dp.epsilon(bins(64, sigma) * 3, 1e-6) for sigma in (0.7, 1.0, 2.0)]
    by_passes = [dp.epsilon(bins(64, 1.0) * passes, 1e-6) for passes in (50, 7, 2, 1)]
    for prices in (by_bins, by_noise, by_passes):
        assert prices == sorted(prices, reverse=True)
        assert len(set(prices)) == len(prices)


def test_one_pass_over_many_bins_nears_poisson_sampling_from_below():
    """Both ratios are 1 + Σ(ℓ - 1)/t to first order in 1/t."""
    gaps = []
    for count in (10, 100, 1000, 10**4):
        rate = ev.PoissonSampled(rate=1 / count, event=ev.Gaussian(noise_multiplier=1.0)) * count
        gaps.append(dp.epsilon(rate, 1e-5) / dp.epsilon(bins(count, 1.0), 1e-5) - 1)
    assert gaps == sorted(gaps, reverse=True)
    assert 0 < gaps[-1] < 0.07 < gaps[1]


def test_no_lower_bound_is_above_what_costs_more():
    """On a grid of noise, bins and passes: the lower bound of each beside the upper bounds of its dearer neighbours."""
    grid = {
        (s, t, k): dp.epsilon_bounds(bins(t, s) * k, 1e-5)
        for s in (0.8, 1.0, 1.3)
        for t in (20, 21, 40)
        for k in (1, 2)
    }
    for (s, t, k), (low, _) in grid.items():
        for (noise, count, passes), (_, high) in grid.items():
            if noise <= s and count <= t and passes >= k:
                assert low <= high


@pytest.mark.parametrize(
    ("sigma", "count", "passes", "delta", "width"),
    [
        (1.0, 100, 1, 1e-15, 1e-3),
        (1.0, 100, 10, 1e-15, 1e-2),
        (0.3, 5, 2, 1e-5, 1e-5),
        pytest.param(0.5, 1000, 3, 0.1, 1e-2, marks=pytest.mark.slow),
    ],
)
def test_small_noise_and_small_deltas_are_certified(sigma, count, passes, delta, width):
    low, high = dp.epsilon_bounds(bins(count, sigma) * passes, delta)
    assert 0 < low <= high <= low * (1 + width)


def test_a_pass_composes_with_anything():
    step, other = bins(100, 1.0) * 10, ev.Laplace(noise_multiplier=2.0)
    low, high = dp.epsilon_bounds(step + other, 1e-5)
    assert dp.epsilon_bounds(step, 1e-5)[1] < low <= high < dp.epsilon(step, 1e-5) + 0.5
    sampled = ev.PoissonSampled(rate=0.1, event=bins(10, 1.0))
    assert dp.epsilon(sampled, 1e-5) < dp.epsilon(bins(10, 1.0), 1e-5)
    nested = ev.BallsInBins(bins=4, event=bins(5, 1.0))
    assert dp.epsilon(bins(20, 1.0), 1e-5) <= dp.epsilon(nested, 1e-5) * (1 + 1e-3)


def test_calibration_and_the_trade_off():
    sigma = dp.calibrate(lambda s: bins(50, s) * 4, epsilon=1.0, delta=1e-5)
    assert dp.epsilon(bins(50, sigma) * 4, 1e-5) <= 1.0 < dp.epsilon(bins(50, 0.99 * sigma) * 4, 1e-5)
    curve = dp.guarantee(bins(50, 1.0))
    assert dp.guarantee(ev.Gaussian(noise_multiplier=1.0)).tradeoff(0.1) < curve.tradeoff(0.1) < 0.9


@pytest.mark.parametrize("wanted", ["replace", "zero-out"])
def test_only_absence_is_amplified(wanted):
    inner = ev.Gaussian(noise_multiplier=2.0)
    assert dp.epsilon(ev.BallsInBins(bins=9, event=inner) * 2, 1e-5, adjacency=wanted) == dp.epsilon(
        inner * 2, 1e-5, adjacency=wanted
    )


def test_a_group_pays_for_each_of_its_records():
    one, two = (dp.epsilon(bins(100, 1.0), 1e-6, group_size=size) for size in (1, 2))
    assert 2 * one < two < dp.epsilon(ev.Gaussian(noise_multiplier=0.5), 1e-6)


def test_beyond_the_most_bins_the_price_is_that_of_so_many():
    low, high = dp.epsilon_bounds(bins(10**9, 5.0) * 10**4, 1e-4)
    below, above = dp.epsilon_bounds(bins(10**6, 5.0) * 10**4, 1e-4)
    assert (low, high) == (0.0, above)
    assert 0 < below <= above <= below * 1.05


@pytest.mark.parametrize("count", [0, 2.5, -1, "3"])
def test_bins_are_a_whole_number(count):
    with pytest.raises(ValueError, match="bins is"):
        bins(count, 1.0)


# --- spreads and contractions ----------------------------------------------------------------------------------------


def test_a_contraction_keeps_mass_and_mean_and_lowers_every_call():
    atoms, points = np.linspace(0.01, 39.9, 3001), np.linspace(0.0, 40.0, 400)
    masses = gamma.pdf(atoms, 3.0)
    masses /= masses.sum()
    merged = contract_atoms(points, atoms, masses)
    assert (merged >= 0).all()
    assert merged.sum() == pytest.approx(1, abs=1e-9)
    assert merged @ points == pytest.approx(masses @ atoms, abs=1e-9)
    for strike in np.linspace(0, 12, 97):
        assert merged @ np.maximum(points - strike, 0) <= masses @ np.maximum(atoms - strike, 0) + 1e-12


def test_a_contraction_leaves_nothing_out_where_gaps_double():
    """Coarse outcomes at the first point of a coarse row find too little beside it at half the distance."""
    points = np.concatenate([np.arange(64.0), 64 + 2.0 * np.arange(64)])
    atoms = np.arange(191.0)
    masses = np.where(np.isin(atoms, points), 0.3, 1.0) * np.exp(-0.01 * atoms)
    merged = contract_atoms(points, atoms, masses)
    assert merged.sum() == pytest.approx(masses.sum(), rel=1e-14)
    assert merged @ points == pytest.approx(masses @ atoms, rel=1e-14)


def test_a_law_that_lies_on_few_points_of_a_coarse_row_is_merged_whole():
    """A bulk between columns 9 and 11, where no contraction onto every second point is possible."""
    row = np.zeros(512)
    row[9:12] = 0.3, 0.4, 0.3
    few, others = _merge_few(row, 0)
    assert few.sum() + others.sum() == pytest.approx(1)
    row[9:60] = np.exp(-0.1 * np.arange(51))
    assert len(_merge_few(row, 0)[0]) == 8


@pytest.mark.parametrize(("sigma", "bins"), [(1.0, 10**5), (4.0, 10**5), (0.5, 1000)])
def test_mass_and_mean_of_a_sum_are_exact_though_no_tail_is(sigma, bins):
    """Each tail is wrong by some 1e-13: with 10⁵ bins a law had 2e-7 too much mass, and 4e-4 of epsilon at noise 4."""
    variances = []
    for above in (True, False):
        law, wrong = Allocated(bins, GaussianShift(1 / sigma)).law(FAST, above=above)
        points, masses = law.atoms()
        assert wrong < 1e-12
        assert masses.sum() == pytest.approx(1, abs=1e-12)
        assert masses @ points == pytest.approx(bins, rel=1e-12)
        variances.append(float(masses @ (points / bins - 1) ** 2))
    truth = math.expm1(1 / sigma**2) / bins
    assert variances[1] <= truth * (1 + 1e-9) <= variances[0] * (1 + 2e-9)
    assert variances[0] - variances[1] <= 1e-4 * truth


@pytest.mark.parametrize("seed", range(30))
def test_what_a_law_has_too_much_is_taken_away_above_all_it_is_above(seed):
    """A law, and one with some more mass anywhere, or less: made as heavy, with its mean, it keeps the order."""
    rng, columns = np.random.default_rng(seed), 512
    numbers = np.array([np.arange(columns, dtype=float), 2.0 * np.arange(columns)])
    law = np.zeros((2, columns))
    law[0] = np.exp(-(((np.arange(columns) - rng.uniform(100, 400)) / rng.uniform(10, 60)) ** 2))
    law[1, columns // 2 :] = 1e-3 * rng.exponential(size=columns // 2)
    more = law + np.where(law > 0, 1e-9 * rng.exponential(size=law.shape), 0.0) * rng.integers(0, 2, law.shape)
    for one, other in ((law, more), (more, law)):
        side, changed = (1 if other is more else -1), balance(numbers, other, *moments(numbers, one))
        assert (changed != other).any()
        for got, wanted in zip(moments(numbers, changed), moments(numbers, one), strict=True):
            assert float(got / wanted) == pytest.approx(1, abs=1e-15)
        for strike in np.linspace(0, 2 * columns, 201):
            for sign in (1, -1):
                payoff = np.maximum(sign * (numbers - strike), 0)
                gain = side * float(((changed - one) * payoff).astype(np.longdouble).sum())
                assert gain >= -1e-14 * float((one * payoff).sum() + (one * numbers).sum())


@pytest.mark.parametrize("seed", range(10))
def test_whatever_the_atoms_a_contraction_is_never_above_them(seed):
    """Calls and puts, for atoms that lie anyhow: then some mass is left out."""
    rng = np.random.default_rng(seed)
    atoms = np.sort(rng.gamma(rng.uniform(0.5, 4), 1.0, int(rng.integers(1, 3000))))
    points = np.unique(np.append(rng.gamma(2.0, 1.5, 200), [0.0, atoms[-1] + 1]))
    masses = rng.exponential(size=len(atoms))
    merged = contract_atoms(points, atoms, masses)
    assert (merged >= 0).all()
    for strike in np.linspace(0, 12, 49):
        for side in (1, -1):
            below, above = (m @ np.maximum(side * (x - strike), 0) for x, m in ((points, merged), (atoms, masses)))
            assert below <= above * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("exact", [True, False])
def test_sums_on_the_lattice_enclose_a_sum_by_simulation(exact):
    """Five ratios at noise 0.7: calls by a simulation of half a million, at six standard errors (1e-9 a figure)."""
    laws, rng = Allocated(5, GaussianShift(1 / 0.7)), np.random.default_rng(3)
    sums = np.exp(rng.normal(size=(500_000, 5)) / 0.7 - 0.5 / 0.49).sum(axis=1)
    for strike in (1.0, 5.0, 20.0):
        call = np.maximum(sums - strike, 0)
        error = 6 * float(call.std()) / math.sqrt(len(call))
        low, high = (laws.law(SHARP if exact else FAST, above=above)[0].atoms() for above in (False, True))
        bounds = [float(m @ np.maximum(x - strike, 0)) for x, m in (low, high)]
        assert bounds[0] - error <= float(call.mean()) <= bounds[1] + error
        assert bounds[0] <= bounds[1] <= bounds[0] * (1 + 1e-3)


def test_powers_do_not_depend_on_the_order_of_additions():
    one, _ = spread_ratio(GaussianShift(1.0), 3, FAST)
    for total in (power(one, 3), one + (one + one)):
        points, masses = total.atoms()
        assert masses.sum() == pytest.approx(1, abs=1e-8)
        assert masses @ points == pytest.approx(3, abs=1e-7)


# --- matrices --------------------------------------------------------------------------------------------------------


class Given(Strategy):
    """A matrix as it is."""

    def __init__(self, matrix):
        self.steps, self.memory, self.bands, self._matrix = len(matrix), len(matrix), len(matrix), np.asarray(matrix)

    def matrix(self):
        return self._matrix

    def advance(self, step, draw, memory):
        raise NotImplementedError


def at_unit_sensitivity(strategy: Strategy, count: int) -> ev.KeptBins:
    event = kept_bins_event(strategy, count, 1.0)
    return kept_bins_event(strategy, count, math.sqrt(event.products[0]))


def test_columns_that_never_meet_are_independent_bins():
    """Two bands and groups two apart: fifty independent bins."""
    event = at_unit_sensitivity(Banded([1.0, 0.5], 100), 100)
    assert dp.epsilon(event, 1e-5) <= dp.epsilon(bins(50, 1.0), 1e-5) * (1 + 1e-4)
    assert 0 < dp.epsilon_bounds(event, 1e-5)[0] < dp.epsilon(event, 1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_small_matrices_lie_between_their_bounds(seed):
    """Both directions by a simulation of 10⁵ runs, at six standard errors: a false alarm once in 10⁹."""
    rng = np.random.default_rng(seed)
    count, passes = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    matrix = np.tril(rng.exponential(size=(count * passes, count * passes)) * (rng.random((1, count * passes)) < 0.7))
    matrix += np.eye(len(matrix))
    event = at_unit_sensitivity(Given(matrix), count)
    moved = np.stack([matrix[:, i::count].sum(axis=1) for i in range(count)]) / event.noise_multiplier
    z = rng.normal(size=(100_000, moved.shape[1]))
    ratio = np.exp(z @ moved.T - (moved**2).sum(axis=1) / 2).mean(axis=1)
    account = PLD(resolve(event, Adjacency.ADD_REMOVE))
    for epsilon in (0.2, 1.0):
        samples = np.maximum(ratio - math.exp(epsilon), 0), np.maximum(1 - math.exp(epsilon) * ratio, 0)
        errors = [6 * float(sample.std()) / math.sqrt(len(sample)) for sample in samples]
        low, high = account.delta_bounds(epsilon)
        assert max(float(x.mean()) - error for x, error in zip(samples, errors, strict=True)) <= high
        assert low <= max(float(x.mean()) + error for x, error in zip(samples, errors, strict=True))
        assert 0 < low < high


def test_the_last_bins_of_a_pass_are_neighbours_of_the_first_of_the_next():
    """Three divides no hundred: groups by remainder would have bins 0 and 99, which are one step apart."""
    event = at_unit_sensitivity(LambdaCGD(0.3, 1000), 100)
    assert event.products[99] > 0.25 * event.products[0] > 9 * event.products[3]
    assert majorants(event)[0].bins == 33
    assert majorants(event)[0].common < 0.03


def test_toeplitz_matrices_have_the_products_that_all_matrices_have():
    for strategy, count in ((LambdaCGD(0.6, 23), 5), (Banded([1.0, 0.5, 0.1], 8), 8), (LambdaCGD(0.4, 4), 9)):
        fast, dense = (kept_bins_event(s, count, 1.0) for s in (strategy, Given(strategy.matrix())))
        assert fast.products == pytest.approx(dense.products, rel=1e-12)
        assert fast.smallest_products == pytest.approx(dense.smallest_products, rel=1e-12)


def test_a_matrix_that_moves_bins_apart_is_refused():
    with pytest.raises(ValueError, match="negative entry"):
        kept_bins_event(Given([[1.0, 0.0], [-0.5, 1.0]]), 2, 1.0)
    with pytest.raises(ValueError, match="lower triangular"):
        kept_bins_event(Given([[1.0, 0.5], [0.0, 1.0]]), 2, 1.0)
    for entry in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not finite"):
            kept_bins_event(Given([[1.0, 0.0], [entry, 1.0]]), 2, 1.0)
    with pytest.raises(ValueError, match="smallest_products"):
        ev.KeptBins(bins=2, products=(1.0, 0.5), noise_multiplier=1.0, smallest_products=(1.0, 0.6))
    with pytest.raises(ValueError, match="products has 3 entries for 2 bins"):
        ev.KeptBins(bins=2, products=(1.0, 0.5, 0.2), noise_multiplier=1.0)


def test_kept_bins_are_data_and_known_bins_cost_the_sensitivity():
    strategy = BLT.optimised(Workload(40), Pattern.passes(40, 20), buffers=2)
    event = kept_bins_event(strategy, 20, 2.0)
    assert ev.Event.from_json(event.to_json()) == event
    alone = dp.epsilon(ev.Gaussian(noise_multiplier=2.0 / strategy.sensitivity(Pattern.passes(40, 20)).value), 1e-5)
    assert dp.epsilon(event, 1e-5) < alone
    replaced = ev.Gaussian(noise_multiplier=2.0 / math.sqrt(event.products[0]))
    assert dp.epsilon(event, 1e-5, adjacency="replace") == pytest.approx(
        dp.epsilon(replaced, 1e-5, adjacency="replace")
    )
    assert dp.epsilon(event, 1e-5, accountant="rdp") < alone * 1.5


# --- what an attacker of the first version found ------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.01, 0.1, 0.15, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("bins", [2, 100])
def test_a_pass_never_costs_more_than_one_of_its_batches(sigma, bins):
    batch = ev.Gaussian(noise_multiplier=sigma)
    for delta in (1e-5, 1e-10):
        low, high = dp.epsilon_bounds(ev.BallsInBins(bins=bins, event=batch), delta)
        assert low <= high <= dp.epsilon(batch, delta) * (1 + 1e-9)


def test_where_a_pass_is_not_amplified_nothing_is_said_from_below():
    batch = ev.Gaussian(noise_multiplier=0.05)
    assert dp.epsilon_bounds(ev.BallsInBins(bins=10, event=batch), 1e-5)[0] == 0
    assert dp.epsilon_bounds(ev.BallsInBins(bins=10, event=batch * 2) + batch, 1e-5)[0] == 0
    assert dp.epsilon_bounds(ev.BallsInBins(bins=1, event=batch), 1e-5)[0] > 0
    for adjacency in ("replace", "zero-out"):
        assert dp.epsilon_bounds(ev.BallsInBins(bins=10, event=batch), 1e-5, adjacency=adjacency)[0] == 0


@pytest.mark.parametrize("accountant", ["gdp", "zcdp"])
def test_a_batch_s_mu_and_rho_hold_of_its_pass(accountant):
    batch = ev.Gaussian(noise_multiplier=5.0)
    one, whole_pass = (
        dp.epsilon(e * 3, 1e-5, accountant=accountant) for e in (batch, ev.BallsInBins(bins=9, event=batch))
    )
    assert whole_pass == pytest.approx(one)


@pytest.mark.parametrize("noise_multiplier", [1e-200, 1e200])
def test_kept_bins_with_noise_beyond_squares_have_a_price(noise_multiplier):
    event = ev.KeptBins(bins=4, products=(1.0, 0.2), noise_multiplier=noise_multiplier)
    assert dp.epsilon(event, 1e-5) == (math.inf if noise_multiplier < 1 else 0)


def test_products_that_no_bins_have_are_refused():
    with pytest.raises(ValueError, match="above its first"):
        ev.KeptBins(bins=4, products=(1.0, 5.0), noise_multiplier=1.0)


def test_nothing_is_said_from_below_of_a_pass_inside_a_sample():
    small = ev.BallsInBins(bins=10, event=ev.Gaussian(noise_multiplier=0.05))
    low, high = dp.epsilon_bounds(ev.PoissonSampled(rate=0.5, event=small), 1e-5)
    assert low == 0 < high
    assert dp.epsilon_bounds(ev.PoissonSampled(rate=0.5, event=small.event), 1e-5)[0] > 0


def test_a_batch_whose_finest_law_floats_do_not_hold_is_priced_by_the_other():
    """Alone it was left to the zCDP account, 37.42, while beside a Gaussian it cost 36.26."""
    bins = ev.BallsInBins(bins=3, event=ev.DiscreteGaussian(sigma=0.2))
    alone, together = (dp.epsilon(event, 1e-6) for event in (bins, bins + ev.Gaussian(noise_multiplier=1.9)))
    assert alone == pytest.approx(36.088949, abs=1e-5)
    assert alone < together


def test_passes_of_such_a_batch_are_composed_too():
    """Every outcome of two passes over two bins; the composition was left to other accounts, which said 0.745."""
    numbers = np.arange(-20, 22)
    there, absent = (np.exp(-((numbers - shift) ** 2) / 0.5) for shift in (1, 0))
    there, absent = there / there.sum(), absent / absent.sum()
    one = (np.outer(there, absent) + np.outer(absent, there)).ravel() / 2, np.outer(absent, absent).ravel()
    p, q = (np.outer(law, law).ravel() for law in one)
    truth = max(float(np.maximum(x - math.exp(2.0) * y, 0).sum()) for x, y in ((p, q), (q, p)))
    price = dp.delta(ev.BallsInBins(bins=2, event=ev.DiscreteGaussian(sigma=0.5)) * 2, 2.0)
    assert truth * (1 - 1e-12) <= price <= truth * (1 + 1e-6)


@pytest.mark.parametrize("count", [2, 3])
def test_few_batches_that_may_fail_altogether_are_amplified(count):
    """A ratio that is zero, or never ends, set the ends of the lattice: fewer than five bins cost a whole batch."""
    failing = ev.ApproxDP(epsilon=1.0, delta=1e-6)
    odds = np.exp([1.0, 0.0]) / (1 + math.e) * (1 - 1e-6)
    there, absent = np.append(odds, [1e-6, 0.0]), np.append(odds[::-1], [0.0, 1e-6])
    mixture, alone = there, absent
    for _ in range(count - 1):
        mixture = (np.multiply.outer(mixture, absent) + np.multiply.outer(alone, there)).ravel()
        alone = np.multiply.outer(alone, absent).ravel()
    mixture = mixture / count
    for epsilon in (0.1, 0.5, 0.9):
        sides = [np.maximum(x - math.exp(epsilon) * y, 0).sum() for x, y in ((mixture, alone), (alone, mixture))]
        price = dp.delta(ev.BallsInBins(bins=count, event=failing), epsilon)
        assert max(sides) * (1 - 1e-12) <= price <= max(sides) * (1 + 1e-6)


def test_a_pass_inside_a_pass_and_a_batch_of_two_events_are_amplified():
    """Two bins of two are four; they cost 1.7 times as much, and two events a batch 1.8 times."""
    bit, told = ev.PureDP(epsilon=1.0), ev.Gaussian(noise_multiplier=2.0) + ev.PureDP(epsilon=0.5)
    nested = ev.BallsInBins(bins=2, event=ev.BallsInBins(bins=2, event=bit))
    assert dp.delta(nested, 0.4) == pytest.approx(dp.delta(ev.BallsInBins(bins=4, event=bit), 0.4), rel=1e-6)
    assert dp.delta(ev.BallsInBins(bins=2, event=told), 0.4) < 0.6 * dp.delta(told, 0.4)
