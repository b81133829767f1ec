"""Promises of the account that once broke: each test is a reproduction, and fails on the code that broke it."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest

import discreet as dp
from discreet import events as ev
from discreet.accounting import ACCOUNTANTS, views
from discreet.accounting.advanced import Advanced
from discreet.accounting.basic import Basic
from discreet.accounting.gaussian import gaussian_delta, gaussian_epsilon
from discreet.accounting.guarantees import Tightest
from discreet.accounting.leaves import selections
from discreet.accounting.neighbours import for_group, resolve
from discreet.accounting.optimal_kov import Optimal
from discreet.accounting.pld.composition import PLD
from discreet.accounting.rdp import ORDERS as ORDERS_OF_CURVES
from discreet.accounting.rdp import rdp_curve
from discreet.accounting.selection import Runs
from discreet.accounting.sums import pure_epsilon
from discreet.accounting.widened import Slackened
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified, UnsupportedAdjacency
from discreet.ledger import Ledger
from discreet.ledger.amounts import NOTHING, ORDERS, Amounts
from discreet.ledger.pricing import _pure_mu, price

REPLACE = Adjacency.REPLACE
ADD_REMOVE = Adjacency.ADD_REMOVE
VIEWS = (None, *ACCOUNTANTS)
CHEAP = ("gdp", "zcdp", "rdp", "basic", "optimal")
REFUND = ev.PoissonSampled(rate=1e-300, event=ev.Laplace(noise_multiplier=1 / 501))


def exact_amplified(epsilon: float, rate: float) -> mpmath.mpf:
    with mpmath.workdps(700):
        return +mpmath.log1p(mpmath.mpf(rate) * mpmath.expm1(mpmath.mpf(epsilon)))


# --- 1: no price is negative -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-300, 1e-17, 1e-3, 1.0, 30.0, 499.0, 501.0, 700.0, 720.0, 1e4, 1e300])
@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e-217, 1e-60, 1e-16, 0.3, 0.5, 1 - 2.0**-53])
def test_a_sampled_pure_event_costs_the_logarithm_of_one_plus_rate_times_growth(epsilon, rate):
    """Never below log(1 + q(e^ε - 1)), never below zero, and within a millionth of a millionth of it."""
    cost = pure_epsilon(ev.PoissonSampled(rate=rate, event=ev.PureDP(epsilon=epsilon)))
    with mpmath.workdps(30):
        exact = exact_amplified(epsilon, rate) if epsilon < 1e5 else mpmath.mpf(epsilon) + mpmath.log(rate)
        assert 0 < cost <= epsilon
        assert mpmath.mpf(cost) >= min(exact, epsilon) * (1 - mpmath.mpf(2) ** -52)
        assert cost <= exact * (1 + mpmath.mpf("1e-11")) + 1e-323


def test_no_event_is_a_refund():
    """What once had a negative price costs something, and never lowers what stands beside it."""
    assert pure_epsilon(REFUND) > 0
    alone = dp.epsilon(ev.Laplace(noise_multiplier=1.0), 1e-6)
    assert dp.epsilon(REFUND + ev.Laplace(noise_multiplier=1.0), 1e-6) >= alone
    low = ev.PoissonSampled(rate=1e-217, event=ev.PureDP(epsilon=501.0))
    assert dp.epsilon(low, 0) == pytest.approx(1.572, abs=1e-3)


def test_a_book_is_never_refunded():
    book = Ledger("sqlite://").open("census", epsilon=1.0, delta=1e-6)
    before = book.snapshot().book.amounts
    book.charge(REFUND)
    assert book.snapshot().book.amounts.pure > before.pure
    assert book.spent().epsilon >= 0
    with pytest.raises(dp.BudgetExceeded):
        book.charge(ev.PureDP(epsilon=60.0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"pure": Fraction(-1, 10)},
        {"delta": Fraction(-1, 10**9)},
        {"mu2": -1},
        {"renyi": (-1,) + (0,) * (len(ORDERS) - 1)},
        {"planned_epsilon": Fraction(-1)},
        {"planned_delta": -1},
        {"pure": math.nan},
        {"mu2": math.nan},
        {"pure": -math.inf},
        {"renyi": (math.nan,) * len(ORDERS)},
        {"pure": 0.5},
        {"renyi": (0,)},
    ],
)
def test_amounts_below_zero_or_that_are_no_number_do_not_exist(wrong):
    with pytest.raises(ValueError, match=r"must (be|have)"):
        Amounts(**wrong)


def test_no_text_and_no_arithmetic_makes_a_negative_amount():
    text = NOTHING.to_json()
    with pytest.raises(ValueError, match="pure is"):
        Amounts.from_json(text.replace('"pure":"0"', '"pure":"-3"'))
    with pytest.raises(ValueError, match="mu2 is"):
        Amounts.from_json(text.replace('"mu2":"0"', '"mu2":"-3"'))
    with pytest.raises(ValueError, match="must be"):
        Amounts(pure=Fraction(1)) * -1
    with pytest.raises(ValueError, match="must be"):
        NOTHING.above(Amounts(pure=Fraction(1)))
    assert Amounts(pure=math.inf) * 0 == NOTHING


@pytest.mark.parametrize("value", [-1e-9, math.nan, -math.inf])
def test_a_bound_below_zero_or_that_is_no_number_is_refused_wherever_one_is_asked_for(value, monkeypatch):
    """By the solver, by the front door, and by calibrate: whichever account made it."""
    with pytest.raises(NotCertified):
        views.solve_epsilon(lambda epsilon: value, 0.1)
    monkeypatch.setattr("discreet.accounting.guarantees.PLD.epsilon", lambda self, delta: value)
    monkeypatch.setattr("discreet.accounting.guarantees.PLD.delta", lambda self, epsilon: value)
    event = ev.Gaussian(noise_multiplier=1.0)
    for view in (None, "pld"):
        with pytest.raises(NotCertified):
            dp.epsilon(event, 1e-5, accountant=view)
        with pytest.raises(NotCertified):
            dp.delta(event, 1.0, accountant=view)
        with pytest.raises(NotCertified):
            dp.guarantee(event, accountant=view).epsilon(1e-5)
    with pytest.raises(NotCertified):
        dp.calibrate(lambda z: ev.Gaussian(noise_multiplier=z), epsilon=1.0, delta=1e-5)


# --- 2: a wrapper never drops a truncated sampler's overflow
# -----------------------------------------------------------

OVERFLOWING = ev.TruncatedPoissonSampled(
    rate=0.9, max_batch_size=1, dataset_size=50, event=ev.Gaussian(noise_multiplier=2.0)
)
WRAPPERS = {
    "poisson": lambda e: ev.PoissonSampled(rate=0.5, event=e),
    "poisson of rate one": lambda e: ev.PoissonSampled(rate=1.0, event=e),
    "nested poisson": lambda e: ev.PoissonSampled(rate=0.5, event=ev.PoissonSampled(rate=0.5, event=e + e)),
    "truncated": lambda e: ev.TruncatedPoissonSampled(rate=0.5, max_batch_size=90, dataset_size=90, event=e),
    "fixed size": lambda e: ev.FixedSizeSampled(rate=0.5, event=e),
    "shuffled": lambda e: ev.Shuffled(event=e),
    "balls in bins": lambda e: ev.BallsInBins(bins=3, event=e),
    "parallel": lambda e: e | ev.PureDP(epsilon=0.1),
    "composed": lambda e: e + ev.PureDP(epsilon=0.1),
    "repeated": lambda e: e * 3,
    "composed in a sampler": lambda e: ev.PoissonSampled(rate=0.5, event=e + ev.PureDP(epsilon=0.1)),
    "parallel in a sampler": lambda e: ev.PoissonSampled(rate=0.5, event=e | ev.PureDP(epsilon=0.1)),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_an_overflow_is_charged_or_refused_through_every_wrapper(wrapper, view, adjacency):
    event = WRAPPERS[wrapper](OVERFLOWING)
    try:
        assert dp.epsilon(event, 1e-3, accountant=view, adjacency=adjacency) == math.inf
        if view in (None, "pld"):
            assert dp.delta(event, 1.0, accountant=view, adjacency=adjacency) == 1
    except dp.UnsupportedEvent:
        pass


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_book_does_not_admit_an_overflow_in_any_wrapper(wrapper):
    for adjacency in ("add-remove", "replace"):
        book = Ledger("sqlite://").open("census", epsilon=5.0, delta=1e-3, adjacency=adjacency)
        with pytest.raises((dp.BudgetExceeded, dp.UnsupportedEvent)):
            book.charge(WRAPPERS[wrapper](OVERFLOWING))


def test_parts_are_not_given_out_where_there_is_slack():
    """The structure that makes it impossible: who reads the parts of an event with an overflow is refused."""
    resolved = resolve(OVERFLOWING, ADD_REMOVE)
    assert resolved.slack > 0
    with pytest.raises(dp.UnsupportedEvent, match="TruncatedPoissonSampled"):
        resolved.parts


def test_an_overflow_too_rare_for_a_float_is_still_one():
    rare = ev.TruncatedPoissonSampled(rate=1e-9, max_batch_size=100, dataset_size=10_000, event=ev.PureDP(epsilon=1.0))
    assert resolve(rare, ADD_REMOVE).slack > 0
    assert dp.epsilon(rare, 0) == math.inf
    never = ev.TruncatedPoissonSampled(rate=0.5, max_batch_size=101, dataset_size=100, event=ev.PureDP(epsilon=1.0))
    assert resolve(never, ADD_REMOVE).slack == 0


# --- 3: both directions of parallel parts
# ------------------------------------------------------------------------------

LOPSIDED = ev.PoissonSampled(rate=0.7, event=ev.PureDP(epsilon=1.0)) * 2


@pytest.mark.parametrize(
    "free", [ev.PureDP(epsilon=0.0), ev.Composed(events=()), ev.PoissonSampled(rate=0.0, event=LOPSIDED)]
)
def test_a_free_part_beside_it_never_makes_an_event_cheaper(free):
    for delta in (0.3, 0.1, 1e-3):
        alone = dp.epsilon(LOPSIDED, delta)
        assert dp.epsilon(LOPSIDED | free, delta) >= alone * (1 - 1e-9)
        assert dp.epsilon(free | LOPSIDED, delta, accountant="pld") >= alone * (1 - 1e-9)
    assert dp.epsilon(LOPSIDED | free, 0.3) == pytest.approx(0.3445, abs=1e-3)


def test_a_composition_inside_a_sampler_is_priced_in_both_directions():
    """Removing costs more than adding here;
    the flipped leaf (a record that enters another part) must cost the other.
    """
    inner = ev.PureDP(epsilon=2.0) + ev.PureDP(epsilon=1.0)
    sampled = ev.PoissonSampled(rate=0.5, event=ev.PoissonSampled(rate=0.5, event=inner) * 2)
    assert dp.epsilon(sampled | ev.PureDP(epsilon=0.0), 1e-3) >= dp.epsilon(sampled, 1e-3) * (1 - 1e-9)


# --- 4: a truncated tail counts
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        ev.DiscreteGaussian(sigma=1.0),
        ev.DiscreteGaussian(sigma=3.0) * 5,
        ev.Gaussian(noise_multiplier=2.0),
        ev.PoissonSampled(rate=0.1, event=ev.DiscreteGaussian(sigma=2.0)),
        ev.DiscreteGaussian(sigma=1.0) | ev.PureDP(epsilon=1.0),
        ev.PoissonSampled(rate=0.1, event=ev.DiscreteGaussian(sigma=2.0) + ev.PureDP(epsilon=1.0)),
        ev.PoissonSampled(rate=0.1, event=ev.Gaussian(noise_multiplier=2.0)) + ev.Laplace(noise_multiplier=1.0),
    ],
)
@pytest.mark.parametrize("view", [None, "pld", "zcdp", "rdp"])
def test_an_unbounded_loss_has_no_epsilon_at_delta_zero(event, view):
    try:
        assert dp.epsilon(event, 0, accountant=view) == math.inf
        assert dp.delta(event, 1e6, accountant=view) > 0
    except dp.UnsupportedEvent:
        assert view is not None


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1e-300, 1e-250])
def test_the_discrete_gaussian_at_a_tiny_delta_is_not_below_the_truth(delta):
    for view in (None, "pld", "zcdp"):
        claimed = dp.epsilon(ev.DiscreteGaussian(sigma=1.0), delta, accountant=view)
        if claimed < math.inf:
            with mpmath.workdps(60):
                masses = {x: mpmath.exp(-(mpmath.mpf(x) ** 2) / 2) for x in range(-90, 91)}
                total = sum(masses.values())
                true = (
                    sum(max(0, m - mpmath.exp(claimed) * masses.get(x - 1, 0)) for x, m in masses.items() if x > -90)
                    / total
                )
            assert true <= mpmath.mpf(delta) * (1 + mpmath.mpf(10) ** -9)


# --- 5: Rényi orders beyond the lattice's end
# --------------------------------------------------------------------------


def fixed_size_moment(rate: float, sigma: float, order: float) -> float:
    """D_α of (1-q)N(0) + qN(2) against N(0), which a replaced record attains: the binomial sum for whole orders."""
    with mpmath.workdps(30):
        q, half, n = mpmath.mpf(rate), 2 / mpmath.mpf(sigma) ** 2, int(order)
        term, total = (1 - q) ** n, mpmath.mpf(0)
        for k in range(n + 1):
            total += term * mpmath.exp(half * k * (k - 1))
            term *= q / (1 - q) * (n - k) / (k + 1)
        return float(mpmath.log(total) / (n - 1))


@pytest.mark.parametrize(("rate", "sigma"), [(0.1, 1.0), (0.01, 2.0), (0.4, 0.7)])
def test_the_fixed_size_curve_is_never_below_a_moment_that_is_attained(rate, sigma):
    orders = [2.0, 8.0, 33.0, 60.0, 200.0, 1025.0]
    curve = rdp_curve(ev.FixedSizeSampled(rate=rate, event=ev.Gaussian(noise_multiplier=sigma)), orders, REPLACE)
    for order, value in zip(orders, curve, strict=True):
        attained = fixed_size_moment(rate, sigma, order)
        assert value >= attained
        assert value <= attained * 1.6 + 0.1
    assert np.all(np.diff(curve) >= 0)


def test_the_books_renyi_price_of_a_fixed_size_sample_covers_the_tail():
    amounts = price(ev.FixedSizeSampled(rate=0.1, event=ev.Gaussian(noise_multiplier=1.0)), REPLACE)
    at = ORDERS.index(182.0)
    assert amounts.renyi[at] >= fixed_size_moment(0.1, 1.0, 182.0) * 10**15


@pytest.mark.parametrize("order", [65.0, 257.0, 1025.0])
def test_a_sampled_discrete_gaussian_is_not_below_a_moment_that_is_attained(order):
    curve = rdp_curve(ev.PoissonSampled(rate=0.2, event=ev.DiscreteGaussian(sigma=1.0)), [order])
    with mpmath.workdps(40):
        q, reach = mpmath.mpf("0.2"), int(order) + 60
        masses = {x: mpmath.exp(-(mpmath.mpf(x) ** 2) / 2) for x in range(-reach, reach + 1)}
        total = sum(masses.values())
        moment = sum(m * (1 - q + q * masses[x - 1] / m) ** order for x, m in masses.items() if x > -reach) / total
        attained = float(mpmath.log(moment) / (order - 1))
    assert curve[0] >= attained
    assert curve[0] <= attained * 1.6 + 0.1


# --- 6: nothing rounds to zero
# -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon", [1e-300, 1e-160, 1e-17, 1e-15, 1e-9, 1e-3, 0.5, 1.0, 3.0, 40.0, 600.0, 699.0, 720.0]
)
def test_the_gaussian_parameter_of_a_pure_event_is_not_below_the_truth(epsilon):
    """2Φ⁻¹(e^ε/(1+e^ε)), that is 2√2·erfinv(tanh(ε/2)); checked through the tail, where inverses are not needed."""
    mu = _pure_mu(epsilon)
    if mu == math.inf:
        assert epsilon > 700
        return
    with mpmath.workdps(700):
        target = 2 / (mpmath.exp(epsilon) + 1)
        assert mpmath.erfc(mpmath.mpf(mu) / (2 * mpmath.sqrt(2))) <= target
        assert mpmath.erfc(mpmath.mpf(mu) * (1 - mpmath.mpf(10) ** -9) / (2 * mpmath.sqrt(2))) > target


def test_a_tiny_event_a_great_many_times_is_refused_by_every_filter():
    swarm = ev.PureDP(epsilon=1e-17) * 10**36
    for name in ("mixed", "gaussian", "renyi", "basic"):
        book = Ledger("sqlite://").open("census", epsilon=1.0, delta=1e-6, filter=name)
        with pytest.raises(dp.BudgetExceeded):
            book.charge(swarm)
    few = ev.PureDP(epsilon=1e-17) * 10**30
    assert Ledger("sqlite://").open("census", epsilon=1.0, delta=1e-6).charge(few).proof != "pure sum"


@pytest.mark.parametrize(
    "event",
    [
        ev.PureDP(epsilon=1e-17),
        ev.GDP(mu=1e-170),
        ev.ZCDP(rho=1e-320),
        ev.PureDP(epsilon=1e-200),
        ev.Gaussian(noise_multiplier=1e200),
        ev.Laplace(noise_multiplier=1e170),
        ev.Exponential(epsilon=1e-180),
        ev.Gaussian(noise_multiplier=1e308),
    ],
)
@pytest.mark.parametrize("view", VIEWS)
def test_a_price_that_is_too_small_for_a_float_is_not_zero(event, view):
    """Zero is said of what says nothing. A tiny loss, however often repeated, has a positive delta at epsilon zero."""
    for count in (1, 10**36, 10**400):
        try:
            assert dp.delta(event * count, 0.0, accountant=view) > 0
        except (dp.UnsupportedEvent, NotCertified):
            assert view is not None


def test_zcdp_says_zero_only_of_nothing():
    assert dp.epsilon(ev.PureDP(epsilon=1e-170) * 10**345, 1e-6, accountant="zcdp") > 1
    assert dp.epsilon(ev.GDP(mu=1e-170) * 10**345, 1e-6, accountant="gdp") > 1


@pytest.mark.parametrize("z", [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 1.0, 100.0])
@pytest.mark.parametrize("away", [-30.0, -4.0, 0.0, 3.0, 12.0, 30.0, 37.0])
def test_the_gaussian_profile_is_not_below_the_truth(z, away):
    """At epsilons ``away`` standard deviations from the mean loss, for noise from a millionth to a hundred."""
    epsilon = max(0.0, 0.5 / z**2 + away / z)
    claimed = gaussian_delta(noise_multiplier=z, epsilon=epsilon)
    with mpmath.workdps(60):
        mu, e = 1 / mpmath.mpf(z), mpmath.mpf(epsilon)
        true = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e + mpmath.log(mpmath.ncdf(-mu / 2 - e / mu)))
        assert claimed >= min(true, 1)
        assert claimed <= true * (1 + mpmath.mpf("1e-10") + mpmath.mpf("1e-12") / z)
        if 0 < claimed < 1:
            e = mpmath.mpf(gaussian_epsilon(noise_multiplier=z, delta=claimed))
            assert mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e + mpmath.log(mpmath.ncdf(-mu / 2 - e / mu))) <= claimed


def test_gaussian_delta_is_zero_nowhere():
    assert gaussian_delta(noise_multiplier=1.0, epsilon=1e5) > 0
    assert gaussian_delta(noise_multiplier=1e308, epsilon=1.0) > 0


class _Steps:
    """An account whose epsilon grows by a hair each time a little more of delta is taken."""

    def epsilon(self, delta: float) -> float:
        return 1.0 - math.log(delta) * 1e-13

    def delta(self, epsilon: float) -> float:
        return min(1.0, math.exp((1.0 - epsilon) * 1e13))


@pytest.mark.parametrize("ideal", [_Steps(), Tightest(resolve(ev.Gaussian(noise_multiplier=1.0), ADD_REMOVE))])
@pytest.mark.parametrize("slack", [1e-9, 1e-12, 1e-10])
def test_what_slack_costs_is_enough_for_its_own_epsilon(ideal, slack):
    """The epsilon returned leaves enough of delta, after the slack at that very epsilon, for the ideal account."""
    value = Slackened(lambda: ideal, slack).epsilon(1e-6)
    assert ideal.epsilon(1e-6 - (1 + math.exp(value)) * slack) <= value


def test_slack_at_an_epsilon_beyond_floats_is_not_capped():
    assert Slackened(lambda: Tightest(resolve(ev.PureDP(epsilon=720.0), ADD_REMOVE)), 1e-310).delta(719.0) == 1


# --- 8: refusals, not crashes
# ------------------------------------------------------------------------------------------

PARTS = ev.PureDP(epsilon=1.0) | ev.Gaussian(noise_multiplier=1.0)
ODD = {
    "parallel in a sampler": ev.PoissonSampled(rate=0.2, event=PARTS),
    "repeated parallel in a sampler": ev.PoissonSampled(rate=0.2, event=PARTS * 3),
    "parallel in a fixed-size sampler": ev.FixedSizeSampled(rate=0.2, event=PARTS),
    "repeated parallel in another option": (PARTS * 2 + ev.PureDP(epsilon=0.5)) | ev.PureDP(epsilon=3.0),
    "parallel in parallel, repeated": ((PARTS * 2) | ev.Laplace(noise_multiplier=1.0)) * 2,
    "a loss beyond exponentials": (ev.PureDP(epsilon=690.0) | ev.Gaussian(noise_multiplier=1.0)) * 2,
    "nothing with a delta": ev.ApproxDP(epsilon=0.0, delta=0.0),
    "nothing but a delta": ev.ApproxDP(epsilon=0.0, delta=1e-9) * 3,
    "a count beyond floats": ev.PureDP(epsilon=1e-300) * 10**400,
    "noise beyond squares": ev.Gaussian(noise_multiplier=1e308),
    "noise below inverses": ev.Laplace(noise_multiplier=1e-320),
    "sampled noise below inverses": ev.PoissonSampled(rate=0.1, event=ev.Laplace(noise_multiplier=1e-320)),
    "gaussian noise below inverses": ev.Gaussian(noise_multiplier=1e-320) + ev.Laplace(noise_multiplier=1.0),
    "pure beyond squares": ev.PureDP(epsilon=1e200) * 2,
    "gdp beyond squares": ev.GDP(mu=1e200) + ev.PureDP(epsilon=1.0),
    "discrete noise beyond squares": ev.DiscreteGaussian(sigma=1e308),
    "discrete noise below squares": ev.DiscreteGaussian(sigma=1e-308),
    "discrete Laplace below inverses": ev.DiscreteLaplace(scale=1e-320),
    "a sensitivity beyond floats": ev.DiscreteLaplace(scale=1.0, sensitivity=10**400),
    "approximate beyond floats": ev.ApproxDP(epsilon=1e300, delta=1e-300) * 10**400,
    "a swarm in a sampler": ev.PoissonSampled(rate=0.1, event=ev.DiscreteGaussian(sigma=0.8) * 10**24),
    "a tiny swarm in a sampler": ev.PoissonSampled(
        rate=0.1, event=ev.PureDP(epsilon=1e-30) * 10**24 + ev.PureDP(epsilon=0.1)
    ),
    "several free parts": ev.Laplace(noise_multiplier=9.0) | ev.PureDP(epsilon=0.0) | ev.Exponential(epsilon=0.0),
    "many truncated": ev.TruncatedPoissonSampled(rate=0.1, max_batch_size=9, dataset_size=9, event=PARTS) * 10**400,
    "a data set beyond floats": ev.TruncatedPoissonSampled(
        rate=0.1, max_batch_size=9, dataset_size=10**400, event=ev.PureDP(epsilon=1.0)
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ODD)
def test_whatever_the_event_there_is_an_answer_or_a_refusal(name):
    """For each accountant and adjacency: a bound, or a library error; never a crash, never a warning."""
    asked = [partial(dp.epsilon, delta=1e-6, accountant=view) for view in ("pld", *CHEAP)]
    asked += [partial(dp.epsilon, delta=0.0), partial(dp.delta, epsilon=1.0)]
    for adjacency in ("add-remove", "replace") if name != "a loss beyond exponentials" else ("add-remove",):
        for ask in asked:
            with suppress(dp.UnsupportedEvent, NotCertified):
                assert ask(ODD[name], adjacency=adjacency) >= 0


@pytest.mark.parametrize("name", ODD)
def test_whatever_the_event_a_book_admits_or_refuses_it(name):
    book = Ledger("sqlite://").open("census", epsilon=5.0, delta=1e-6)
    try:
        book.charge(ODD[name])
    except (dp.BudgetExceeded, dp.UnsupportedEvent, NotCertified):
        assert not book.entries()[1:]
    assert 0 <= book.spent().epsilon < math.inf


def test_parallel_inside_a_sampler_is_priced():
    """Not only refused: at least the dearer part sampled alone, and at most the parts composed."""
    sampled = dp.epsilon(ev.PoissonSampled(rate=0.2, event=PARTS), 1e-3)
    alone = [dp.epsilon(ev.PoissonSampled(rate=0.2, event=part), 1e-3) for part in PARTS.events]
    assert max(alone) * (1 - 1e-6) <= sampled <= sum(alone)


@pytest.mark.parametrize("k", [2, 3, 10**7])
def test_an_approximate_event_of_many_changes_is_priced_by_a_sum_that_is_neither_cut_nor_slow(k):
    """δ(1 + e^ε + … + e^{(k−1)ε}), where e^ε leaves floats too: there nothing is promised."""
    assert dp.delta(ev.ApproxDP(epsilon=720.0, delta=5e-324), 720.0 * k, group_size=k) == 1.0
    exact = sum(Fraction(math.exp(i * 0.5)) for i in range(k)) if k < 10 else Fraction(0)
    assert for_group(ev.ApproxDP(epsilon=0.5, delta=1e-300), k).delta >= Fraction(1e-300) * exact
    assert for_group(ev.ApproxDP(epsilon=0.5, delta=5e-324), k).delta >= Fraction(5e-324) * exact
    assert for_group(ev.ApproxDP(epsilon=720.0, delta=0.0), k).delta == 0.0
    if k == 2:
        assert dp.delta(ev.ApproxDP(epsilon=720.0, delta=5e-324), 1440.0, adjacency="replace") > 1e-11


@pytest.mark.parametrize("hide", [lambda e: e | e * 2, lambda e: ev.BallsInBins(bins=3, event=e), lambda e: e,
                                  lambda e: ev.ProvedUnder(adjacency="zero-out", event=e)])  # fmt: skip
def test_nothing_is_restated_for_another_adjacency_inside_a_sample_however_it_is_wrapped(hide):
    own = ev.PoissonSampled(rate=0.5, event=hide(ev.Gaussian(noise_multiplier=1.0, adjacency="zero-out")))
    other = ev.PoissonSampled(rate=0.5, event=hide(ev.Laplace(noise_multiplier=1.0)))
    for step in (own, other):
        with pytest.raises(UnsupportedAdjacency):
            dp.epsilon(step, 1e-5, adjacency="zero-out")


@pytest.mark.parametrize("epsilon", [1e-300, 1e-17, 1e-12, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4, 0.01, 1.0, 12.0, 600.0])
def test_the_curve_of_a_selection_is_never_below_the_truth(epsilon: float) -> None:
    """Rounding below the divergence itself, of a tiny selection, once came out negative: a refund times 10^15."""
    orders = np.array([1.0625, 1.5, 2.0, 8.0, 32.0, 256.0, 1e4])
    curve = rdp_curve(ev.Exponential(epsilon=epsilon), orders)
    with mpmath.workdps(700):
        for order, bound in zip(orders.tolist(), curve.tolist(), strict=True):
            a, e = mpmath.mpf(order), mpmath.mpf(epsilon)
            big = mpmath.exp(e)
            low = big ** (1 - a)
            x = (a - 1) / a * (big - low) / (1 - low)
            truth = mpmath.log(x ** (a - 1) * ((big - low) - x * (1 - low)) / (big - 1)) / (a - 1)
            assert truth <= bound <= max(truth * (1 + 2e-9) + mpmath.mpf("4e-13"), mpmath.mpf(5e-324))


def test_many_tiny_selections_are_priced_in_every_currency() -> None:
    """The tree that the search found: beside a dearer option, so that only some orders were negative."""
    choice = ev.PureDP(epsilon=0.0945) | ev.Exponential(epsilon=1e-300)
    found = price((choice + ev.Laplace(noise_multiplier=6.19)) * 10**15, Adjacency.ADD_REMOVE)
    assert min(found.pure, found.mu2, *found.renyi) > 0


def test_what_slack_alone_uses_up_is_not_priced(monkeypatch):
    """The best of many runs, cut after one, is not worth a composition: every epsilon is infinite, every delta one."""
    monkeypatch.setattr(selections, "_pair", lambda *_: pytest.fail("was priced"))
    run = ev.Laplace(noise_multiplier=1.0) + ev.Gaussian(noise_multiplier=1.0) * 7
    cut = ev.Selected(event=run, mean=1e6, law="geometric", cap=1)
    assert dp.epsilon_bounds(cut, 1e-6) == (0.0, math.inf)
    assert dp.guarantee(cut).tpr_at(0.01) == dp.guarantee(cut).advantage() == 1


def test_a_curve_of_sums_asks_for_epsilons_only(monkeypatch):
    """Sums know an epsilon for each delta: a trade-off curve of them inverts nothing, and holds each of their lines."""
    for view in (Basic, Advanced, Optimal):
        monkeypatch.setattr(view, "delta", lambda *_: pytest.fail("was inverted"))
    event = ev.RDP(orders=(2.0, 8.0), epsilons=(0.1, 0.5)) + ev.PureDP(epsilon=0.3)
    one = dp.guarantee(event, accountant="basic")
    for fpr in (0.0, 1e-9, 0.01, 0.3):
        for delta in (1e-12, 0.1, 1.0):
            epsilon = one.epsilon(delta)
            assert one.tpr_at(fpr) <= min(1.0, math.exp(min(epsilon, 700.0)) * fpr + delta) * (1 + 1e-9) + 1e-12
    assert 0 < one.advantage() < 1
    assert one.advantage() == pytest.approx(max(one.tpr_at(x) - x for x in np.linspace(0, 1, 4001)), abs=1e-3)


def test_one_curve_at_a_delta_near_one_costs_no_more_than_it_does_beside_another():
    """Its optimal sum was not asked where nothing was added to it: 12.86 alone, 8.48 beside 1e-17 of a Gaussian."""
    curve = ev.RDP(orders=(1.5, 2.0, 8.0, 32.0), epsilons=(0.0147, 18.0, 6.32, 7.29))
    for delta in (1e-6, 0.1, 0.7, 0.999):
        for adjacency in Adjacency:
            alone, more = (dp.epsilon(e, delta, adjacency=adjacency) for e in (curve, curve + ev.ZCDP(rho=1e-17)))
            assert alone <= more * (1 + 1e-12)


def test_the_curve_of_the_best_of_poisson_runs_asks_for_few_deltas():
    """It asked for 164, in five seconds where a run is itself a composition. Chords lie above what they join."""
    asked = []

    class Asked(PLD):
        def delta(self, epsilon):
            asked.append(epsilon)
            return super().delta(epsilon)

    run = Asked(resolve(ev.Gaussian(noise_multiplier=2.0), ADD_REMOVE))
    own = ORDERS_OF_CURVES / 8
    curve = Runs(10.0, math.inf).curve(ORDERS_OF_CURVES, own, ORDERS_OF_CURVES, own, run)
    assert len(asked) < 70
    for order, value in zip(ORDERS_OF_CURVES, curve, strict=True):
        slope = gaussian_delta(noise_multiplier=2.0, epsilon=math.log1p(1 / (order - 1)))
        exact = order / 8 + 10 * slope + math.log(10 + math.exp(-10)) / (order - 1)
        assert exact * (1 - 1e-12) <= value <= exact * (1 + 2e-3)


def test_a_group_of_what_curves_price_is_not_priced_by_inverting_inversions():
    """Seven seconds for a composition of sums at 10⁶ repetitions: a delta was asked for at each of thirty epsilons."""
    epsilons, parts = [], ev.RDP(orders=(2.0, 8.0, 30.0), epsilons=(0.01, 0.02, 0.05)) * 30 + ev.ZCDP(rho=0.01)
    for size in (5, 7, 10**400):
        for delta in (1e-9, 1e-3, 0.3):
            epsilon = dp.epsilon(parts, delta, group_size=size)
            if size < 10:
                assert dp.delta(parts, epsilon, group_size=size) == pytest.approx(delta, rel=1e-9)
                epsilons.append(epsilon)
            else:
                assert epsilon == math.inf
    assert epsilons[:3] < epsilons[3:]


def test_epsilons_of_a_group_ask_the_optimal_sum_for_no_delta(monkeypatch):
    monkeypatch.setattr(Optimal, "delta", lambda *_: pytest.fail("was inverted"))
    parts = ev.RDP(orders=(2.0, 8.0, 30.0), epsilons=(0.01, 0.02, 0.05)) * 10**6 + ev.ZCDP(rho=0.01)
    assert dp.epsilon(parts, 1e-9, group_size=5) > dp.epsilon(parts, 1e-9)


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-9, 0.9])
def test_a_gaussian_without_noise_loses_all_whatever_is_beside_it(delta):
    """Below the floor of deltas (inf, inf) became (0, inf)."""
    lost = ev.Gaussian(noise_multiplier=1e-310)
    for event in (lost, lost + ev.Exponential(epsilon=0.8) * 1000, lost + ev.Laplace(noise_multiplier=1.0)):
        assert dp.epsilon_bounds(event, delta) == (math.inf, math.inf)
