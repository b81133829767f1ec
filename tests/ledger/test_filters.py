"""The filters prove what they claim against analysts who choose events by the answers they get."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from discreet import events
from discreet.adjacency import Adjacency
from discreet.ledger.amounts import NOTHING, ORDERS, UNIT, Amounts, exact, units
from discreet.ledger.filters import _SLACK, POLICIES, Limit, _terms, admits, exact_total, reading
from discreet.ledger.pricing import approximate, price

Analyst = Callable[[tuple[int, ...]], float]  # answers so far -> epsilon of the next randomised response, or 0 to stop


def transcripts(limit: Limit, analyst: Analyst, depth: int) -> Iterator[tuple[float, float, Amounts]]:
    """Every run of an analyst on randomised responses: its chance under either neighbour, and where the book ends."""

    def run(answers: tuple[int, ...], p: float, q: float, spent: Amounts) -> Iterator[tuple[float, float, Amounts]]:
        epsilon = analyst(answers) if len(answers) < depth else 0.0
        after = spent + price(events.PureDP(epsilon=epsilon), Adjacency.ADD_REMOVE)
        if not epsilon or not admits(limit, after):
            yield p, q, spent
            return
        truth = 1 / (1 + math.exp(-epsilon))
        yield from run((*answers, 1), p * truth, q * (1 - truth), after)
        yield from run((*answers, 0), p * (1 - truth), q * truth, after)

    yield from run((), 1.0, 1.0, NOTHING)


def gambler(answers: tuple[int, ...]) -> float:
    """Bets more while the answers point one way, so that the sum of costs follows the data."""
    return 0.3 if not answers else 0.6 if sum(answers) > len(answers) / 2 else 0.05


def steady(answers: tuple[int, ...]) -> float:
    return 0.25


def chaser(answers: tuple[int, ...]) -> float:
    """Stops as soon as it is ahead: the stopping time itself carries information."""
    return 0.0 if sum(answers) - (len(answers) - sum(answers)) >= 4 else 0.4


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("analyst", [gambler, steady, chaser])
def test_no_analyst_exceeds_the_limit(policy: str, analyst: Analyst) -> None:
    """Exact enumeration: the hockey-stick divergence at the limit's epsilon is at most its delta."""
    limit = Limit(exact(2.0), exact(0.05), policy)
    runs = list(transcripts(limit, analyst, depth=12))
    assert sum(p for p, _, _ in runs) == pytest.approx(1)
    assert sum(max(0.0, p - math.exp(2.0) * q) for p, q, _ in runs) <= 0.05


@pytest.mark.parametrize("delta", [0.05, 0.01])
@pytest.mark.parametrize("analyst", [gambler, steady, chaser])
def test_the_reading_holds_wherever_the_analyst_stops(analyst: Analyst, delta: float) -> None:
    """The odometer's claim: sum over transcripts of (P - e^reading Q)+ is at most delta; at other deltas too."""
    limit = Limit(exact(4.0), exact(0.05), "mixed")
    runs = list(transcripts(limit, analyst, depth=12))
    excess = sum(max(0.0, p - math.exp(reading(limit, spent, exact(delta)).epsilon) * q) for p, q, spent in runs)
    assert excess <= delta


def test_the_enumeration_catches_a_reading_that_is_too_low() -> None:
    """Power: the Rényi divergence of the realised costs, without the price of delta, is refuted by the same sum."""
    limit = Limit(exact(4.0), exact(0.05), "mixed")
    runs = list(transcripts(limit, chaser, depth=12))
    j = ORDERS.index(2.0)
    excess = sum(max(0.0, p - math.exp(float(spent.renyi[j]) / 1e15) * q) for p, q, spent in runs)
    assert excess > 0.05


def test_the_gaussian_filter_holds_when_the_second_noise_depends_on_the_first_answer() -> None:
    """Two steps by quadrature: the analyst spends the rest only when the first answer was telling."""
    epsilon, mu, first = 1.0, 0.8, 0.5
    rest = math.sqrt(mu**2 - first**2)

    def delta(level: np.ndarray, m: float) -> np.ndarray:
        return norm.cdf(m / 2 - level / m) - np.exp(level) * norm.cdf(-m / 2 - level / m)

    y = np.linspace(-10, 11, 40_001)
    loss = first * y - first**2 / 2  # log dN(first, 1)/dN(0, 1)
    for telling in (loss > 0, loss < 0, np.abs(loss) < 0.3):
        later = np.where(telling, delta(epsilon - loss, rest), np.maximum(0, 1 - np.exp(epsilon - loss)))
        total = np.trapezoid(norm.pdf(y, loc=first) * later, y)
        assert total <= delta(np.array(epsilon), mu) + 1e-9


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0])
def test_the_gaussian_price_of_a_pure_event_lies_below_its_trade_off_curve(epsilon: float) -> None:
    mu = math.sqrt(float(approximate(epsilon, 0.0).mu2) / 1e15)
    fpr = np.linspace(1e-9, 1 - 1e-9, 2001)
    pure = np.maximum(0, np.maximum(1 - math.exp(epsilon) * fpr, math.exp(-epsilon) * (1 - fpr)))
    assert np.all(norm.cdf(norm.ppf(1 - fpr) - mu) <= pure + 1e-12)


def test_ten_tenths_fit_a_book_of_one_and_three_thirds_too() -> None:
    limit = Limit(exact(1.0), exact(0.0))
    tenth = price(events.PureDP(epsilon=0.1), Adjacency.ADD_REMOVE)
    third = price(events.Laplace(noise_multiplier=3.0), Adjacency.ADD_REMOVE)
    assert admits(limit, tenth * 10)
    assert not admits(limit, tenth * 11)
    assert admits(limit, third + third + third)
    assert not admits(limit, tenth * 10 + price(events.PureDP(epsilon=1e-15), Adjacency.ADD_REMOVE))


def test_shares_of_delta_add_up_to_one() -> None:
    for shares in POLICIES.values():
        assert sum(shares.values()) == 1


@pytest.mark.parametrize(
    ("policy", "epsilon", "noise", "expected"),
    [
        ("mixed", 0.5, 10.0, 0.4651017071),
        ("mixed", 3.0, 2.0, 2.6570166108),
        ("asked", 3.0, 2.0, 2.7796202674),
        ("renyi", 3.0, 2.0, 2.5424802693),
        ("renyi", 20.0, 2.0, 2.9375628426),
    ],
)
def test_the_thresholds_of_a_policy_never_change(policy: str, epsilon: float, noise: float, expected: float) -> None:
    """Books were opened by them, and what they proved was written down: a better division gets a new name."""
    spent = price(events.Gaussian(noise_multiplier=noise), Adjacency.ADD_REMOVE)
    assert reading(Limit(exact(epsilon), exact(1e-6), policy), spent).epsilon == pytest.approx(expected, rel=1e-6)


def test_delta_of_approximate_events_is_kept_within_its_share() -> None:
    limit = Limit(exact(10.0), exact(1e-6), "mixed")
    one = approximate(0.01, 1e-8)
    assert admits(limit, one * 10)
    assert not admits(limit, one * 11)
    assert admits(Limit(exact(10.0), exact(1e-6), "basic"), one * 100)
    assert not admits(Limit(exact(10.0), exact(1e-6), "basic"), one * 101)
    assert not admits(Limit(exact(10.0), exact(1e-6), "gaussian"), one)


@pytest.mark.parametrize(("policy", "least"), [("mixed", 0.93), ("asked", 0.89)])
def test_gaussian_charges_come_close_to_the_tight_account(policy: str, least: float) -> None:
    """A book of Gaussian noise holds that much of what events fixed in advance could, and never more than 100 %."""
    step = price(events.Gaussian(noise_multiplier=60.0), Adjacency.ADD_REMOVE)
    limit = Limit(exact(3.0), exact(1e-6), policy)
    count = next(n for n in range(1, 4000) if not admits(limit, step * n)) - 1

    def delta(n: int) -> float:
        mu = math.sqrt(n) / 60
        return float(norm.cdf(mu / 2 - 3 / mu) - math.exp(3) * norm.cdf(-mu / 2 - 3 / mu))

    tight = next(n for n in range(1, 4000) if delta(n) > 1e-6) - 1
    assert least * tight <= count <= tight


def test_a_filter_without_a_price_is_out_and_the_others_go_on() -> None:
    limit = Limit(exact(3.0), exact(1e-6))
    odd = Amounts(pure=math.inf, mu2=math.inf, renyi=tuple(units(0.001 * order) for order in ORDERS))
    assert admits(limit, odd)
    assert reading(limit, odd).proof.startswith("Rényi")
    assert not admits(limit, Amounts(pure=math.inf, mu2=math.inf, renyi=(math.inf,) * len(ORDERS)))


def some(pure: int, mu2: int, rho: int) -> Amounts:
    return Amounts(pure=Fraction(pure, 1000), mu2=mu2 * 10**12, renyi=tuple(int(rho * 1e12 * a) for a in ORDERS))


amounts = st.builds(some, st.integers(0, 3000), st.integers(0, 900), st.integers(0, 400))


@given(amounts, amounts)
@settings(max_examples=150, deadline=None)
def test_charging_more_never_reads_less_and_the_reading_agrees_with_the_filter(a: Amounts, b: Amounts) -> None:
    limit = Limit(exact(2.0), exact(1e-5))
    assert reading(limit, a + b).epsilon >= reading(limit, a).epsilon
    assert (reading(limit, a).epsilon <= 2.0) == admits(limit, a)
    assert a + b == b + a
    assert (a + b).above(a) == b.above(NOTHING)
    assert Amounts.from_json(a.to_json()) == a
    assert a.join(b) == b.join(a)


@given(planned=st.integers(0, 10**18), renyi=st.integers(1, 10**21), limit=st.sampled_from([3.0, 1e4, 1e6]))
@settings(max_examples=200, deadline=None)
def test_a_reading_is_not_below_the_exact_sum_of_its_parts(planned: int, renyi: int, limit: float) -> None:
    """Not by an ulp, and not as the decimal it is written as; nor above the limit that was admitted."""
    spent = Amounts(
        pure=math.inf, mu2=math.inf, renyi=(renyi,) * len(ORDERS), planned_epsilon=Fraction(planned, 10**18)
    )
    book = Limit(exact(limit), Fraction(1, 10**6))
    found = reading(book, spent)
    if not exact_total(book, spent).epsilon < math.inf:
        return
    offsets = _terms(book.less(spent)).offsets
    sums = [Fraction(renyi, UNIT) + Fraction(offset) + Fraction(_SLACK) for offset in offsets if offset < math.inf]
    assert exact(found.epsilon) >= min(Fraction(planned, 10**18) + max(Fraction(0), min(sums)), exact(limit))
    assert not admits(book, spent) or found.epsilon <= limit


def test_a_book_that_a_filter_fills_reads_its_limit_and_not_an_ulp_more() -> None:
    """At a threshold the sum of floats may round beyond the limit, which the filter proves all the same."""
    for epsilon in (0.1, 0.3, 1.0, 3.0, 700.0, 1e5):
        book = Limit(exact(epsilon), Fraction(1, 10**6), "renyi")
        for j, most in enumerate(_terms(book).renyi):
            if most > 0:
                renyi = tuple(most if k == j else math.inf for k in range(len(ORDERS)))
                spent = Amounts(pure=math.inf, mu2=math.inf, renyi=renyi)
                assert admits(book, spent)
                assert reading(book, spent).epsilon <= epsilon
