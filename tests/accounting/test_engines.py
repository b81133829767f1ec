"""Two independent engines, and the lattices of one of them: they agree within their bounds wherever both apply."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import discreet as dp
from discreet import events as ev
from discreet.accounting.neighbours import resolve
from discreet.accounting.pld.atoms import Atoms
from discreet.accounting.pld.bounded_range import BoundedRange
from discreet.accounting.pld.composition import PLD, _contour
from discreet.accounting.pld.contour import Line
from discreet.accounting.pld.convolution import Composition
from discreet.accounting.pld.discounting import Discounted
from discreet.accounting.pld.grid import LossGrid
from discreet.accounting.pld.lattice import lower, upper
from discreet.accounting.pld.pairs import GaussianShift, LaplaceShift, reverse
from discreet.accounting.pld.replaced import ReplaceSampledGaussian
from discreet.accounting.pld.sampling import Sampled, Supremum, Symmetric
from discreet.accounting.pld.tilts import APART, Tilts
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified

PAIRS = {
    "gaussian": GaussianShift(0.7),
    "laplace": LaplaceShift(0.9),
    "bounded range": BoundedRange(1.1),
    "binary": Atoms(np.array([-0.8, 0.8]), np.array([1.0, math.exp(0.8)]) / (1 + math.exp(0.8))),
    "sampled gaussian": Sampled(0.1, GaussianShift(1.3)),
    "unsampled gaussian": reverse(Sampled(0.1, GaussianShift(1.3))),
    "sampled laplace": Sampled(0.2, LaplaceShift(1.5)),
    "unsampled laplace": reverse(Sampled(0.2, LaplaceShift(1.5))),
    "fixed size": Symmetric(Sampled(0.1, GaussianShift(2.0))),
    "replaced": ReplaceSampledGaussian(0.1, 0.9),
    "parallel": Supremum((LaplaceShift(0.5), GaussianShift(0.4))),
}
POINTS = np.linspace(-1.3, 1.6, 59)


def lattice_profile(law, points):
    losses = law.losses - law.offset
    return np.array([law.infinity + law.masses[losses > x] @ -np.expm1(x - losses[losses > x]) for x in points])


@pytest.mark.parametrize("name", PAIRS)
def test_the_upper_lattice_dominates_and_is_close(name):
    pair = PAIRS[name]
    profile = lattice_profile(upper(pair, 2e-3, 1e-18), POINTS)
    assert np.all(profile >= pair.profile(POINTS) - 1e-14)
    assert np.all(profile <= pair.profile(POINTS) + 1e-4)


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "parallel"])
def test_the_lower_lattice_is_dominated_and_is_close(name):
    pair = PAIRS[name]
    profile = lattice_profile(lower(pair, 2e-3, 1e-18), POINTS)
    assert np.all(profile <= pair.profile(POINTS) + 1e-14)
    assert np.all(profile >= pair.profile(POINTS) - 2e-3)


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "parallel"])
def test_a_pair_is_two_probability_laws_with_the_loss_it_says(name):
    pair = PAIRS[name]
    (p, q), (p_head, q_head) = pair.tails(POINTS), pair.heads(POINTS)
    assert p + p_head == pytest.approx(1)
    assert q + q_head == pytest.approx(1)
    fine = np.linspace(-1.2, 1.2, 4001) + 1e-7
    p, q = pair.tails(fine)
    dp, dq = -np.diff(p), -np.diff(q)
    some = (dp > 1e-9) & (dq > 1e-9)
    loss = np.log(dp[some] / dq[some])
    assert np.all(loss >= fine[:-1][some] - 1e-5)
    assert np.all(loss <= fine[1:][some] + 1e-5)


@pytest.mark.parametrize("name", ["gaussian", "laplace", "bounded range", "binary", "fixed size", "replaced"])
def test_symmetric_pairs_are_their_own_reverse(name):
    pair = PAIRS[name]
    forward = pair.profile(POINTS)
    backward = 1 - np.exp(POINTS) + np.exp(POINTS) * pair.profile(-POINTS)
    assert forward == pytest.approx(backward, abs=1e-12)


@pytest.mark.parametrize(("c", "step"), [(1.0, 0.01), (3e4, 5e-10), (1e-3, 1e-6), (50.0, 2.0)])
@pytest.mark.parametrize("size", [1, 512, 2000])
def test_discounted_sums_are_those_of_exact_arithmetic(c, step, size):
    """From any point on, within the stated rounding; the second would cancel to nothing if it were a difference."""
    masses = np.random.default_rng(size).exponential(size=size) / size
    each = Discounted(masses, c, step)
    for start in {0, size // 3, size - 1}:
        distance = step * np.arange(size - start)
        terms = masses[start:] * np.exp(-c * distance)
        decayed, lost = each.sums(start)
        assert decayed == pytest.approx(math.fsum(terms), rel=1e-13)
        assert lost == pytest.approx(math.fsum(terms * -np.expm1(-distance)), rel=1e-13)
        assert abs(decayed - math.fsum(terms)) <= 2.0**-53 * each.rounding


@pytest.mark.parametrize("count", [1, 40, 10**5])
def test_what_is_left_out_of_a_spectrum_is_covered(count):
    """A binomial law by exact binomials: frequencies without weight are not computed, and the bounds still hold."""
    each = 1 / (1 + math.exp(0.5 / math.sqrt(count)))
    pair = Atoms(np.array([-1.0, 1.0]) * 0.5 / math.sqrt(count), np.array([each, 1 - each]))
    whole = LossGrid(((pair, count),))
    sums = np.arange(count + 1)
    law, loss = binom.pmf(sums, count, 1 - each), (2 * sums - count) * 0.5 / math.sqrt(count)
    for epsilon in (0.1, 0.45, 2.0):
        truth = float(law @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 0.0))))
        low, high = whole.delta_bounds(epsilon)
        assert low * (1 - 1e-9) <= truth <= high * (1 + 1e-9)
        assert high - low <= 1e-4 * high + 1e-12


def test_the_transform_is_that_of_the_tails():
    for name in ("laplace", "bounded range", "binary"):
        pair, law = PAIRS[name], upper(PAIRS[name], 1e-4, 1e-18)
        for z in (0.5, 2.0, 7.0):
            direct = np.log(law.masses @ np.exp(z * law.losses))
            value, error = pair.log_mgf(np.array([z], dtype=complex))
            assert value.real[0] == pytest.approx(direct, abs=1e-5)
            assert error[0] < 1e-12


def test_bounded_range_is_the_worst_of_all_its_members():
    r"""Each member puts its losses on t and t - epsilon; none has a larger delta anywhere."""
    epsilon = 1.3
    worst = BoundedRange(epsilon).profile(POINTS)
    for t in np.linspace(0, epsilon, 14):
        chance = (math.exp(epsilon) - math.exp(t)) / math.expm1(epsilon)
        member = chance * np.maximum(0, -np.expm1(POINTS - t)) + (1 - chance) * np.maximum(
            0, -np.expm1(POINTS - t + epsilon)
        )
        assert np.all(member <= worst + 1e-12)


def test_the_bounded_range_curve_is_the_largest_of_its_members():
    pair = BoundedRange(1.3)
    for order in (1.2, 2.0, 9.0, 60.0):
        members = [np.log(m.masses @ np.exp((order - 1) * m.losses)) / (order - 1) for m in pair.attainable]
        assert max(members) <= pair.divergence(np.array([order]))[0] <= min(1.3, order * 1.3**2 / 8) + 1e-9


def test_lower_bounds_rest_on_what_is_attained():
    """Envelopes are for upper bounds only: no other account may lie below a certified lower bound."""
    many = ev.Exponential(epsilon=0.4) * 60
    sampled_pair = (
        ev.PoissonSampled(rate=0.2, event=ev.Laplace(noise_multiplier=2) + ev.Gaussian(noise_multiplier=2)) * 9
    )
    parallel = (ev.Gaussian(noise_multiplier=0.6) | ev.DiscreteLaplace(scale=2)) * 12
    for event, delta, other in ((many, 1e-5, "rdp"), (sampled_pair, 1e-6, "basic"), (parallel, 1e-9, "rdp")):
        low, high = dp.epsilon_bounds(event, delta)
        assert 0 < low <= high < math.inf
        assert low <= dp.epsilon(event, delta, accountant=other)


def test_near_the_largest_loss_the_bounds_stay_close():
    low, high = dp.epsilon_bounds(ev.PureDP(epsilon=1.73) * 11, 1.14e-12)
    assert 19.0299 < low <= high <= 19.03


def test_a_delta_inside_a_sample_is_sampled_too():
    event = ev.PoissonSampled(rate=0.01, event=ev.ApproxDP(epsilon=1.2, delta=1e-5)) * 100
    low, high = dp.epsilon_bounds(event, 1e-4)
    assert high < low * 1.01
    assert dp.epsilon(event, 0.9e-5) == math.inf


def normal(x):
    return np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


@settings(max_examples=40, deadline=None)
@given(
    st.floats(0.02, 0.98), st.floats(0.4, 3), st.floats(0, 1), st.floats(0, 1), st.floats(0, math.pi), st.floats(0, 3)
)
def test_the_replace_pair_dominates_replacements_in_the_plane(rate, sigma, r1, r2, angle, epsilon):
    """Two records of any length up to one, at any angle: their hockey-stick divergence is at most the pair's."""
    grid = np.linspace(-8 * sigma - 1, 8 * sigma + 1, 400)
    x, y = np.meshgrid(grid, grid)
    cell = (grid[1] - grid[0]) ** 2 / sigma**2

    def density(a, b):
        return normal((x - a) / sigma) * normal((y - b) / sigma)

    out = (1 - rate) * density(0, 0)
    p, q = out + rate * density(r1, 0), out + rate * density(r2 * math.cos(angle), r2 * math.sin(angle))
    divergence = float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * cell)
    assert divergence <= ReplaceSampledGaussian(rate, sigma).profile(np.array([epsilon]))[0] + 1e-4


def both_engines(event, delta, adjacency="add-remove"):
    account = PLD(resolve(event, Adjacency(adjacency)))
    for contour, lattice in account._directions:
        assert contour is not None
        yield contour.epsilon_bounds(delta), lattice.epsilon_bounds(delta)


def sampled(rate, sigma):
    return ev.PoissonSampled(rate=rate, event=ev.Gaussian(noise_multiplier=sigma))


@pytest.mark.parametrize(
    ("event", "adjacency"),
    [
        (sampled(0.05, 1.2) * 200, "add-remove"),
        (sampled(0.05, 1.2) * 200, "replace"),
        (sampled(0.02, 2.0) * 300 + ev.Gaussian(noise_multiplier=8), "add-remove"),
        (sampled(0.02, 2.0) * 300 + ev.Laplace(noise_multiplier=3), "add-remove"),
        (ev.Gaussian(noise_multiplier=6) * 10 + ev.Exponential(epsilon=0.2) * 5, "add-remove"),
        (ev.Gaussian(noise_multiplier=3) + ev.ApproxDP(epsilon=0.2, delta=1e-7) * 4, "add-remove"),
        (ev.Gaussian(noise_multiplier=3) + ev.PureDP(epsilon=0.3) * 3, "add-remove"),
    ],
)
def test_contour_and_grid_agree(event, adjacency):
    for (low, high), (grid_low, grid_high) in both_engines(event, 1e-5, adjacency):
        assert high - low <= 1e-6 * high
        assert max(low, grid_low) <= min(high, grid_high)
        assert grid_high - grid_low <= 5e-3 * grid_high


def test_atoms_are_symmetric_only_if_somebody_said_so():
    """A loss of 1 with probability 1/4 under P has 1/4e under Q: the other direction is another pair,
    and is computed.
    """
    masses = np.array([0.75, 0.25])
    losses = np.array([math.log(0.75 / (1 - 0.25 / math.e)), 1.0])
    pair, others = Atoms(losses, masses), masses * np.exp(-losses)
    for epsilon in (0.0, 0.1, 0.2):
        backward = float(np.maximum(others - math.exp(epsilon) * masses, 0).sum())
        assert reverse(pair).profile(np.array([epsilon]))[0] == pytest.approx(backward, abs=1e-15)
    assert reverse(pair).profile(np.zeros(1))[0] == pytest.approx(pair.profile(np.zeros(1))[0])
    assert reverse(pair).profile(np.array([0.2]))[0] < pair.profile(np.array([0.2]))[0]


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.5])
def test_the_smallest_loss_of_a_sample_is_an_outcome_of_its_own(rate):
    """Where P has nothing, Q loses log(1 - rate): that point belongs to what is at or below it, under both laws."""
    failing = Atoms(np.array([-1.0, 1.0]), np.array([0.9 / (1 + math.e), 0.9 * math.e / (1 + math.e)]), 0.1)
    pair, edge = Sampled(rate, failing), np.array([np.log1p(-rate)])
    for near in (edge, np.nextafter(edge, 0)):
        (p, q), (p_head, q_head) = pair.tails(near), pair.heads(near)
        assert q_head == pytest.approx(0.1)
        assert p_head == pytest.approx(0.1 * (1 - rate))
        assert (p + p_head, q + q_head) == (pytest.approx(1), pytest.approx(1))


def test_a_lower_bound_counts_an_infinite_loss_once():
    """Five events that fail with probability 1e-3: beyond every finite loss delta is 1 - 0.999⁵, from below too."""
    failing = Atoms(
        np.array([-0.1, 0.1]), 0.999 * np.array([1.0, math.exp(0.1)]) / (1 + math.exp(0.1)), 1e-3, mirrored=True
    )
    whole = Composition([(lower(failing, 1e-3, 1e-20), 5)])
    low, _ = whole.delta(0.6)
    assert low == pytest.approx(1 - 0.999**5, rel=1e-9)
    assert low <= 1 - 0.999**5


def test_a_contour_holds_sampled_gaussians_of_one_direction_only():
    """It prices them by one formula; a composition of both directions is the grid's."""
    forward = Sampled(0.1, GaussianShift(1.0))
    assert _contour(((forward, 3), (reverse(forward), 3)), 0.0) is None
    assert all(_contour(((pair, 3),), 0.0) is not None for pair in (forward, reverse(forward)))


def ask_curve(account, stop=40.0):
    return [account.epsilon(float(delta)) for delta in np.exp(-np.arange(0.5, stop, 0.5))]


def test_a_curve_of_eighty_points_is_asked_of_a_dozen_lines():
    """The best of several runs asks its run for a whole curve: a line for each of eighty points took seconds."""
    account = PLD(
        resolve(ev.PoissonSampled(rate=0.3, event=ev.Gaussian(noise_multiplier=1.0)) * 30, Adjacency.ADD_REMOVE)
    )
    ask_curve(account)
    lines = [contour._lines for contour, _ in account._directions]
    assert all(10 < len(each) < 20 for each in lines)


def test_a_line_that_refuses_is_asked_once(monkeypatch):
    """Each refusal cost as much as an answer, and was forgotten: one of them before each answer of the lattice."""
    made = []
    make = Line._make_nodes
    monkeypatch.setattr(Line, "_make_nodes", lambda line: made.append(line.c) or make(line))
    run = ev.PoissonSampled(rate=0.999999999, event=ev.GDP(mu=1.78)) * 3
    account = PLD(resolve(run, Adjacency.ADD_REMOVE))
    ask_curve(account, stop=10.0)
    refused = [c for contour, _ in account._directions for c in contour._lines
               if isinstance(contour._lines[c]._nodes_or_refusal, NotCertified)]  # fmt: skip
    assert refused
    assert len(made) == len(set(made)) * 2  # once for each direction


def test_losses_that_end_are_composed_once_for_a_whole_curve():
    """A lattice for every three decades of delta took seconds, where none of them depends on where tails are cut."""
    run = ev.DiscreteLaplace(scale=2.0) * 7 + ev.PureDP(epsilon=0.1)
    (_, lattice), *_ = PLD(resolve(run, Adjacency.ADD_REMOVE))._directions
    for delta in np.exp(-np.arange(0.5, 40.0, 0.5)):
        lattice.epsilon_upper(float(delta))
    (composition,) = lattice._made.values()
    assert len(composition._windows) < 20


@pytest.mark.parametrize("log_delta", [-0.01, -1.0, -1.6, -4.4, -13.5, -37.4, -100.0, -500.0])
@pytest.mark.parametrize(
    "event",
    [
        ev.PoissonSampled(rate=0.1, event=ev.Gaussian(noise_multiplier=0.8)) * 100,
        ev.Gaussian(noise_multiplier=1.0) + ev.Laplace(noise_multiplier=2.0),
    ],
    ids=["sampled", "beside a Laplace answer"],
)
def test_a_shared_line_is_as_sharp_as_one_of_its_own(event, log_delta):
    """At most a few times wider than the interval of the line that is best for this delta alone."""
    contour = PLD(resolve(event, Adjacency.ADD_REMOVE))._directions[0][0]
    delta = math.exp(log_delta)
    low, high = contour.epsilon_bounds(delta)
    assert low <= high <= low + 1e-9 * (1 + low)


def test_tilts_are_shared_within_a_factor_of_delta():
    """However the question is put, the tilt serves a delta within e^1.5 of what is asked, and its grid."""
    calls = []

    def saddle(c):  # of a Gaussian
        calls.append(c)
        return c - 0.5, -c * c / 2

    tilts = Tilts(saddle, -12, 14)
    for log_delta in np.linspace(-3.0, -700.0, 300):
        epsilon = math.sqrt(-2 * log_delta) - 0.5
        for c in (tilts.tilt(log_delta=log_delta), tilts.tilt(epsilon=epsilon)):
            assert abs(-c * c / 2 - log_delta) <= APART / 2 + 2 * abs(log_delta) * 2 / 256
    assert len(calls) == len(set(calls))
