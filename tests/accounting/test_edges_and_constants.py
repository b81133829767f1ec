"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

import math

import numpy as np
import pytest

import discreet as dp
from discreet.accounting import rdp
from discreet.accounting.calibration import _bracket
from discreet.accounting.conversion import rdp_to_delta
from discreet.accounting.gaussian import _SLACK, _smallest, profile_delta
from discreet.accounting.guarantees import _account
from discreet.accounting.leaves.noise import _discrete_gaussian_pair
from discreet.accounting.leaves.selections import _hull
from discreet.accounting.outward import growth
from discreet.accounting.pld import convolution
from discreet.accounting.pld.atoms import Atoms
from discreet.accounting.pld.convolution import Composition
from discreet.accounting.pld.grid import LossGrid
from discreet.accounting.pld.lattice import upper
from discreet.accounting.pld.pairs import GaussianShift, chernoff_beyond
from discreet.accounting.pld.sampling import Sampled
from discreet.accounting.rdp import rdp_curve
from discreet.accounting.selection import mean_runs, success
from discreet.accounting.widened import Grouped

ev = dp.events


@pytest.mark.parametrize("epsilon", [29.5, 30.0, 30.5, 31.5])
def test_sampling_shifts_large_losses_by_the_log_of_the_rate(epsilon):
    """Two branches meet at a loss of 30; δ(ε) = q·δ₀(log(1 + (e^ε - 1)/q)) and Laplace noise has δ₀(x) = 1 - e^{(x -
    40)/2}.
    """
    q, event = 0.5, ev.PoissonSampled(rate=0.5, event=ev.Laplace(noise_multiplier=1 / 40))
    exact = -q * math.expm1((math.log1p(math.expm1(epsilon) / q) - 40) / 2)
    assert dp.delta(event, epsilon=epsilon) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("accountant", ["zcdp", "rdp", "gdp", "basic", "pld"])
def test_what_costs_nothing_has_a_delta_of_exactly_nothing(accountant):
    nothing = ev.Composed(events=())
    assert dp.delta(nothing, epsilon=0.5, accountant=accountant) == 0.0
    assert dp.epsilon(nothing, delta=0.0, accountant=accountant) == 0.0


def test_the_figure_shows_guessing_as_the_diagonal_and_no_privacy_as_the_axes():
    (ax,) = dp.guarantee(ev.PureDP(epsilon=1.0)).plot().axes
    guessing, none, curve = (line.get_xydata().tolist() for line in ax.lines)
    assert guessing == [[0, 1], [1, 0]]
    assert none == [[0, 1], [0, 0], [1, 0]]
    assert curve[0][0] == 0
    assert curve[-1][0] == 1


def profile(p, q, epsilon):
    """δ(ε) of two discrete laws, by its definition."""
    return sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.9])
def test_a_sampled_composition_is_that_of_its_outcomes(epsilon):
    """Two answers that are true with odds of e to one, on one sample of half of the records."""
    true = math.e / (1 + math.e)
    p, q = [true**2, 2 * true * (1 - true), (1 - true) ** 2], [(1 - true) ** 2, 2 * true * (1 - true), true**2]
    mixed = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    exact = max(profile(mixed, q, epsilon), profile(q, mixed, epsilon))
    event = ev.PoissonSampled(rate=0.5, event=ev.PureDP(epsilon=1.0) * 2)
    assert dp.delta(event, epsilon=epsilon) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("sensitivity", [1, 2, 3])
def test_discrete_laplace_noise_is_priced_as_its_outcomes(sensitivity):
    weights = [math.exp(-abs(x) / 2) for x in range(-80, 81)]
    p = [w / sum(weights) for w in weights]
    exact = profile(p + [0.0] * sensitivity, [0.0] * sensitivity + p, 0.3)
    event = ev.DiscreteLaplace(scale=2.0, sensitivity=sensitivity)
    assert dp.delta(event, epsilon=0.3) == pytest.approx(exact, rel=1e-9)


def test_noise_that_hides_nothing_leaves_the_sample_to_do_it():
    event = ev.PoissonSampled(rate=0.3, event=ev.Gaussian(noise_multiplier=1e-3))
    assert dp.delta(event, epsilon=0.5, adjacency="replace") == pytest.approx(0.3)


def test_laplace_and_gaussian_noise_together_are_known_to_nine_digits():
    low, high = dp.epsilon_bounds(ev.Laplace(noise_multiplier=8.0) * 40 + ev.Gaussian(noise_multiplier=3.0), delta=1e-6)
    assert high == pytest.approx(low, rel=1e-9)
    assert dp.epsilon(ev.Laplace(noise_multiplier=8.0) * 40 + ev.Gaussian(noise_multiplier=3.0), delta=1.0) == 0.0


def test_delta_at_the_epsilon_of_a_delta_is_that_delta():
    event = ev.PoissonSampled(rate=0.01, event=ev.Gaussian(noise_multiplier=1.0)) * 1000
    assert dp.delta(event, epsilon=dp.epsilon(event, delta=1e-5)) == pytest.approx(1e-5, rel=1e-6)


@pytest.mark.parametrize("target", [0.9, 0.1, 1e-3, 1e-7, 1e-20, 1e-150])
def test_a_root_is_on_the_safe_side_to_the_last_bit_of_its_logarithm(target):
    """A root finder ends on either side of the root."""
    for slope in (1.0, 0.37, 2.9, 1e3):
        falling = lambda x: math.exp(-slope * x)  # noqa: B023, E731
        assert math.log(falling(_smallest(falling, target, start=1.0))) <= math.log(target * (1 - _SLACK))


def test_a_group_has_a_delta_of_at_most_one():
    assert Grouped(_account(ev.Gaussian(noise_multiplier=0.1), None, dp.Adjacency.ADD_REMOVE, 1), 3).delta(0.0) == 1


def test_a_guarantee_shows_what_it_is_of_and_nothing_that_was_computed():
    assert "account=" not in repr(dp.guarantee(ev.Gaussian(noise_multiplier=1.0)))


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0])
def test_a_delta_grows_by_a_geometric_series(epsilon):
    assert growth(epsilon, 4) == pytest.approx(sum(math.exp(i * epsilon) for i in range(4)), rel=1e-11)


def test_the_rounding_of_every_mass_above_epsilon_is_paid_for():
    """The masses of a window err by so much each, and what lies n steps above epsilon counts e^(-cn) of it."""
    grid = LossGrid(((GaussianShift(1.0), 40),))
    whole = Composition(grid._laws(upper, 1e-3, 1e-12))
    window = whole._window(epsilon=5.0)
    steps = np.arange(2000)
    assert window._wrong(5.0) >= window.law[2] * float(np.exp(-window.c * 1e-3 * steps).sum())


@pytest.mark.parametrize("count", [16, 64])
def test_many_small_gaussians_on_a_lattice_are_one_large_one(count):
    """Phases of a transform to the power of so many go round the circle more than once."""
    low, high = LossGrid(((GaussianShift(1 / math.sqrt(count)), count),)).delta_bounds(0.5)
    assert low <= profile_delta(1.0, 0.5) <= high <= 1.0001 * low


@pytest.mark.parametrize("count", [3, 7, 20])
def test_answers_of_two_kinds_on_a_lattice_are_binomial(count):
    """Every other point of the lattice is empty: the transform is as large at its last phases as at the first."""
    true = math.e / (1 + math.e)
    wins = [math.comb(count, k) * true**k * (1 - true) ** (count - k) for k in range(count + 1)]
    pair = Atoms(np.array([-1.0, 1.0]), np.array([1 - true, true]))
    low, high = LossGrid(((pair, count),)).delta_bounds(0.5)
    exact = profile(wins, wins[::-1], 0.5)
    assert low <= exact <= high <= 1.0001 * low


@pytest.mark.parametrize("events", [(1.0, 2.0), (2.0, 1.0), (2.0, 1.0, 0.5)])
def test_parallel_parts_cost_what_the_costliest_does_wherever_it_stands(events):
    parts = [ev.PureDP(epsilon=epsilon) for epsilon in events]
    assert dp.epsilon(ev.Parallel(events=tuple(parts)), delta=0.0) == 2.0


@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-5, 0.1])
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 8.0])
def test_parallel_parts_of_several_kinds_cost_no_more_than_the_costliest_alone(epsilon, delta):
    """Each has its own account, and shares a lattice with none."""
    noise = dp.mechanisms.Gaussian(sensitivity=1.0, epsilon=epsilon, delta=delta).event
    counts = ev.Laplace(noise_multiplier=2 / epsilon) + ev.DiscreteLaplace(scale=4 / epsilon) * 2
    each = [dp.epsilon(event, delta) for event in (noise, counts)]
    assert dp.epsilon(noise | counts, delta) == dp.epsilon(counts | noise, delta) == max(each)
    low, high = dp.epsilon_bounds(noise | counts, delta)
    assert low <= high <= max(each) * (1 + 1e-9)
    assert dp.delta(noise | counts, epsilon) == max(dp.delta(event, epsilon) for event in (noise, counts))


def test_a_law_of_runs_has_its_mean():
    assert [success(mean, 1.0) for mean in (1, 4.0, 10.0)] == [1.0, 0.25, 0.1]
    assert mean_runs(success(7.0, 0.0), 0.0) == pytest.approx(7.0, rel=1e-9)


def test_a_group_of_two_has_delta_of_half_epsilon_grown():
    one = _account(ev.Gaussian(noise_multiplier=5.0), None, dp.Adjacency.ADD_REMOVE, 1)
    assert Grouped(one, 2).delta(1.0) == pytest.approx(one.delta(0.5) * (1 + math.exp(0.5)), rel=1e-9)


def test_a_divergence_at_one_order_proves_its_delta():
    exact = math.exp((3 - 1) * (0.1 - 1.0 + math.log1p(-1 / 3)) - math.log(3))
    assert rdp_to_delta([3.0], [0.1], 1.0) == pytest.approx(exact, rel=1e-9)


def test_curves_have_an_entry_for_each_order_whichever_direction_is_dearer():
    sampled = ev.PoissonSampled(rate=0.1, event=ev.Gaussian(noise_multiplier=1.0))
    curve = rdp_curve(sampled, [2.0, 3.0, 4.0])
    assert curve.shape == (3,)
    assert curve[0] == pytest.approx(math.log1p(0.01 * math.expm1(1.0)), rel=1e-6)
    lattice = rdp_curve(ev.FixedSizeSampled(rate=0.1, event=ev.Gaussian(noise_multiplier=1.0)), [2.0, 3.0],
                        adjacency=dp.Adjacency.REPLACE)  # fmt: skip
    assert 0 < lattice[0] < lattice[1] < 10


def test_moments_beyond_a_loss_are_bounded_by_the_best_tilt():
    """ρb(b+1) - (b-c)l is least at b = (l/ρ-1)/2."""
    assert chernoff_beyond(0.5, 3.0, np.array([1.0]))[0] == pytest.approx(-0.125, rel=1e-9)
    pair = _discrete_gaussian_pair(ev.DiscreteGaussian(sigma=2.0, sensitivity=1))
    assert pair.rho == 0.125
    assert np.isfinite(Sampled(0.1, pair).log_moment_beyond(5.0, np.array([1.0, 2.0]))).all()


def test_more_atoms_than_fit_are_refused_by_name():
    with pytest.raises(dp.UnsupportedEvent, match="too many atoms"):
        dp.epsilon(ev.DiscreteGaussian(sigma=1e9, sensitivity=1), delta=1e-6, accountant="pld")


@pytest.mark.parametrize("accountant", [None, "pld", "rdp", "basic"])
def test_a_sample_of_nobody_costs_nothing(accountant):
    nobody = ev.PoissonSampled(rate=0.0, event=ev.Gaussian(noise_multiplier=1.0))
    assert dp.epsilon(nobody, delta=1e-6, accountant=accountant) == 0.0


@pytest.mark.parametrize("sampler", [ev.PoissonSampled, ev.FixedSizeSampled])
def test_where_nobody_is_sampled_it_does_not_matter_what_runs_inside_or_who_asks(sampler):
    """No replace pair of a sampled Laplace is proved, and no group's: there is nothing to prove it of."""
    nobody = sampler(rate=0.0, event=ev.Laplace(noise_multiplier=1.0))
    for adjacency in dp.Adjacency:
        assert dp.epsilon(nobody, delta=0.0, adjacency=adjacency) == 0.0
    assert dp.epsilon(nobody, delta=0.0, adjacency="replace", group_size=3) == 0.0


def test_the_lower_hull_is_convex_made_of_the_points_and_above_none_of_them():
    """By its definition: at a point's place the hull is the lowest of all chords over it."""
    coins = np.random.default_rng(3)
    for _ in range(20):
        x, y = np.sort(coins.normal(size=12)), coins.uniform(size=12)
        found = _hull(list(zip(x.tolist(), y.tolist(), strict=True)))
        chords = [
            min(y[i] + (y[j] - y[i]) * (at - x[i]) / (x[j] - x[i]) for i in range(12) for j in range(i + 1, 12)
                if x[i] <= at <= x[j])
            for at in x
        ]  # fmt: skip
        assert np.interp(x, *np.transpose(found)) == pytest.approx(chords)


def test_a_bracket_is_looked_for_as_far_as_it_takes():
    safe, unsafe = _bracket(lambda x: 50.5 - x, 0.0, 1.0)
    assert unsafe < 50.5 <= safe < 90


def test_a_curve_of_a_lattice_takes_few_points_and_stays_above_that_of_many(monkeypatch):
    """Bins of a strong sampled Laplace asked for 161 orders of 27 laws of some 10^5 points each: 17 seconds."""
    event = ev.PoissonSampled(rate=0.2, event=ev.DiscreteGaussian(sigma=2.0))
    orders = tuple(rdp.ORDERS[::16].tolist())
    sizes: list[int] = []

    def noted(*given, real=rdp.upper):
        sizes.append(len((law := real(*given)).masses))
        return law

    monkeypatch.setattr(rdp, "upper", noted)

    def curve(most: int):
        monkeypatch.setattr(rdp, "_MOST_POINTS", most)
        rdp._leaf_curve.cache_clear()
        sizes.clear()
        return rdp_curve(event, orders)

    many, most = curve(1 << 30), max(sizes)
    few = curve(1 << 16)
    assert min(sizes) <= 1 << 16 < most
    assert (many * (1 - 1e-11) <= few).all()
    assert (few <= many * (1 + 1e-5) + 1e-12).all()


def test_a_sum_of_exponentials_leaves_out_what_rounding_does():
    exponents = np.concatenate([np.linspace(-2000, 0, 10**5), [700.0, 699.0]])
    exact = 700 + math.log1p(math.exp(-1))
    assert convolution._log_sum_exp(exponents) == pytest.approx(exact, rel=1e-15)
    even = np.concatenate([[0.0], np.full(1 << 20, -30.0)])
    assert convolution._log_sum_exp(even) == pytest.approx(math.log1p((1 << 20) * math.exp(-30.0)), rel=1e-12)
