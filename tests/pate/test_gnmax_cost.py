"""Data-dependent costs: equal to an independent computation, below the event, orders below it under consensus; smooth
sensitivities that hold for real neighbours; a type that nobody takes for a price.
"""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet import pate
from discreet.pate import smooth
from discreet.pate.gnmax_cost import divergence, laplace_divergence, log_wrong, log_wrong_laplace

ORDERS = np.array([1.5, 2.0, 3.0, 8.0, 20.0, 64.0])


def histograms(teachers=60, classes=5):
    """Votes of so many teachers, from unanimous to spread."""
    return st.lists(st.integers(0, classes - 1), min_size=teachers, max_size=teachers).flatmap(
        lambda votes: st.integers(0, teachers).map(
            lambda same: np.bincount([0] * same + votes[same:], minlength=classes)[None]
        )
    )


# --- an independent computation, in sixty digits and without logarithms --------------------------------------------


def oracle_q(counts, sigma):
    *others, top = sorted(map(int, counts))
    q = mpmath.fsum(mpmath.erfc(mpmath.mpf(top - n) / (2 * mpmath.mpf(sigma))) / 2 for n in others)
    return min(q, 1 - mpmath.mpf(1) / len(counts))


def oracle_gaussian(q, sigma, order, swapped=False):
    """Theorem 6 as it is printed; or with ε₁ and ε₂ in each other's place."""
    sigma, order = mpmath.mpf(sigma), mpmath.mpf(float(order))
    free = order / sigma**2
    mu2 = sigma * mpmath.sqrt(mpmath.log(1 / q))
    mu1 = mu2 + 1
    e1, e2 = (mu2 / sigma**2, mu1 / sigma**2) if swapped else (mu1 / sigma**2, mu2 / sigma**2)
    if not (mu1 >= order and mu2 > 1 and q * mpmath.exp(e2) < 1):
        return free
    if q > mpmath.exp((mu2 - 1) * e2) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2:
        return free
    a = (1 - q) / (1 - (q * mpmath.exp(e2)) ** ((mu2 - 1) / mu2))
    b = mpmath.exp(e1) / q ** (1 / (mu1 - 1))
    return min(free, mpmath.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1))


def oracle_laplace(counts, scale, order):
    (*others, top), scale, order = sorted(map(int, counts)), mpmath.mpf(scale), mpmath.mpf(float(order))
    behind = [mpmath.mpf(top - n) / scale for n in others]
    q = min(mpmath.fsum((2 + x) / (4 * mpmath.exp(x)) for x in behind), 1 - mpmath.mpf(1) / len(counts))
    pure = 2 / scale
    free = min(pure, pure**2 * order / 2)
    if q > 1 / (mpmath.exp(pure) + 1):
        return free
    inner = (1 - q) * ((1 - q) / (1 - mpmath.exp(pure) * q)) ** (order - 1) + q * mpmath.exp(pure * (order - 1))
    return min(free, mpmath.log(inner) / (order - 1))


def agrees(found, exact):
    return abs(mpmath.mpf(float(found)) - exact) <= mpmath.mpf("1e-9") * (abs(exact) + mpmath.mpf("1e-12"))


GRID = [np.bincount([0] * same + list(range(1, 5)) * ((60 - same) // 4), minlength=5) for same in range(0, 61, 4)]


@pytest.mark.parametrize("sigma", [1.0, 4.0, 10.0, 40.0])
def test_costs_of_answers_match_an_independent_computation(sigma):
    with mpmath.workdps(60):
        for counts in GRID:
            found = divergence(log_wrong(counts[None], sigma), sigma, ORDERS)[0]
            q = oracle_q(counts, sigma)
            assert all(agrees(f, oracle_gaussian(q, sigma, a)) for f, a in zip(found, ORDERS, strict=True))


@pytest.mark.parametrize("scale", [1.0, 5.0, 20.0])
def test_costs_of_laplace_answers_match_an_independent_computation(scale):
    with mpmath.workdps(60):
        for counts in GRID:
            found = laplace_divergence(log_wrong_laplace(counts[None], scale), scale, ORDERS)[0]
            assert all(agrees(f, oracle_laplace(counts, scale, a)) for f, a in zip(found, ORDERS, strict=True))


def test_costs_of_a_confident_run_match_an_independent_computation():
    counts = np.array(GRID)
    votes = pate.ConfidentGNMax(sigma=6.0, threshold=40.0, sigma_threshold=8.0, queries=len(counts))
    answers = votes.release(counts, rng=1).value
    assert 0 < answers.answered.sum() < len(counts)
    found = pate.data_dependent_cost(votes, counts, answers, ORDERS).curve
    with mpmath.workdps(60):
        for value, order in zip(found, ORDERS, strict=True):
            exact = mpmath.mpf(0)
            for row, answered in zip(counts, answers.answered, strict=True):
                distance = abs(mpmath.mpf(int(row.max())) - 40) / 8
                q = mpmath.erfc(distance / mpmath.sqrt(2)) / 2
                exact += oracle_gaussian(q, 8 * mpmath.sqrt(2), order)
                exact += oracle_gaussian(oracle_q(row, 6.0), 6.0, order) if answered else 0
            assert agrees(value, exact)


def test_the_slip_that_swaps_the_orders_is_found():
    """Power of the comparison."""
    with mpmath.workdps(60):
        q = oracle_q(GRID[12], 4.0)
        assert not agrees(oracle_gaussian(q, 4.0, 3.0, swapped=True), oracle_gaussian(q, 4.0, 3.0))


# --- laws ----------------------------------------------------------------------------------------------------------


@given(histograms(), st.floats(0.5, 60), st.floats(1.01, 200))
@settings(max_examples=60, deadline=None)
def test_no_cost_exceeds_the_events_own(counts, sigma, order):
    orders = np.array([order])
    gaussian = divergence(log_wrong(counts, sigma), sigma, orders)[0, 0]
    assert 0 <= gaussian <= order / sigma**2
    laplace = laplace_divergence(log_wrong_laplace(counts, sigma), sigma, orders)[0, 0]
    assert 0 <= laplace <= min(2 / sigma, 2 * order / sigma**2) * (1 + 1e-15)


@given(st.integers(0, 59), st.floats(1, 30), st.floats(1.1, 40))
@settings(max_examples=50, deadline=None)
def test_more_agreement_costs_no_more(same, sigma, order):
    pair = np.array([[same, 60 - same, 0], [same + 1, 59 - same, 0]])
    pair = pair if same >= 30 else pair[::-1]
    less, more = divergence(log_wrong(pair, sigma), sigma, np.array([order]))[:, 0]
    assert more <= less * (1 + 1e-9)


def test_consensus_costs_orders_of_magnitude_less():
    counts = np.tile([245, 3, 2], (500, 1))
    votes = pate.GNMax(sigma=25.0, queries=500)
    cost = pate.data_dependent_cost(votes, counts, votes.release(counts, rng=1).value)
    at = int(np.searchsorted(cost.orders, 8.0))
    assert cost.curve[at] < 1e-3 * 500 * cost.orders[at] / 25.0**2
    assert cost.epsilon(1e-5) < dp.epsilon(votes.event, delta=1e-5) / 4


# --- no price ------------------------------------------------------------------------------------------------------


@pytest.fixture
def priced():
    counts = np.array([[50, 6, 4], [58, 1, 1], [30, 20, 10]])
    votes = pate.GNMax(sigma=8.0, queries=3)
    answers = votes.release(counts, rng=1).value
    return votes, counts, answers, pate.data_dependent_cost(votes, counts, answers)


def test_no_book_accountant_or_report_takes_the_cost_for_a_price(priced):
    votes, counts, answers, cost = priced
    figure = pate.SanitisedCost(aggregator=votes, answers=answers, order=4.0).release(counts, rng=1).value
    book = dp.Ledger("sqlite://").open("mail", epsilon=1.0)
    for value in (cost, figure):
        assert not isinstance(value, dp.Event)
        assert not hasattr(value, "event")
        with pytest.raises(ValueError, match="must be an Event"):
            book.charge(value)
        for judge in (dp.epsilon, dp.delta, dp.guarantee):
            with pytest.raises((ValueError, TypeError, AttributeError)):
                judge(value, 1e-5) if judge is not dp.guarantee else judge(value)
        with pytest.raises((ValueError, TypeError, AttributeError)):
            dp.report(value)
    assert len(book.entries()) == 1


def test_the_cost_shows_no_number_of_itself(priced):
    text = repr(priced[3]) + str(priced[3]) + f"{priced[3]}"
    assert "private, not to be published" in text
    assert not any(sign.isdigit() for sign in text)


# --- smooth sensitivity --------------------------------------------------------------------------------------------


def parts_of(votes, counts, order):
    made = pate.SanitisedCost(
        aggregator=votes,
        answers=pate.VoteAnswers(np.zeros(len(counts)), np.ones(len(counts), bool), np.ones(len(counts), bool)),
        order=order,
    )
    return made._margins(counts)


@given(st.lists(histograms(30, 4), min_size=1, max_size=3), st.data())
@settings(max_examples=25, deadline=None)
def test_smooth_bounds_hold_for_real_neighbours(rows, data):
    """One teacher moves a vote in every query: the sum moves by at most the bound, the bound by at most e^b."""
    counts = np.concatenate(rows)
    moved = counts.copy()
    for row in moved:
        source = data.draw(st.sampled_from(np.nonzero(row)[0].tolist()))
        target = data.draw(st.integers(0, 3))
        row[source] -= 1
        row[target] += 1
    votes = pate.ConfidentGNMax(
        sigma=data.draw(st.sampled_from([1.0, 2.5, 6.0])), threshold=18.0, sigma_threshold=3.0, queries=len(counts)
    )
    order, smoothness = data.draw(st.sampled_from([2.0, 5.0, 12.0])), 0.1
    here, there = (parts_of(votes, table, order) for table in (counts, moved))
    sums = [sum(part.cost(part.margins).sum() for part in parts) for parts in (here, there)]
    bounds = [smooth.smooth_bound(parts, smoothness) for parts in (here, there)]
    assert abs(sums[0] - sums[1]) <= min(bounds) * (1 + 1e-9) + 1e-12
    assert max(bounds) <= min(bounds) * math.exp(smoothness) * (1 + 1e-6) + 1e-12


def test_margins_give_back_the_costs_of_the_votes():
    votes, counts = pate.GNMax(sigma=8.0, queries=3), np.array([[50, 6, 4], [58, 1, 1], [30, 20, 10]])
    (part,) = parts_of(votes, counts, 4.0)
    direct = divergence(log_wrong(counts, 8.0), 8.0, np.array([4.0]))[:, 0]
    assert part.cost(part.margins) == pytest.approx(direct, rel=1e-9)


def test_a_bound_is_far_below_the_worst_case_under_consensus():
    counts = np.tile([245, 3, 2], (300, 1))
    bound = smooth.smooth_bound(parts_of(pate.GNMax(sigma=25.0, queries=300), counts, 8.0), 0.05)
    assert bound < 0.05 * 300 * 8.0 / 25.0**2


def test_the_sanitised_figure_is_unbiased_and_its_limit_holds():
    """60 figures: the mean lies within six deviations (false alarm 2e-9 for normal means); of the limits at 95 %, 43
    or fewer holding has probability below 1e-7 even at exactly 95 %.
    """
    counts = np.tile([235, 10, 5], (200, 1))
    votes = pate.GNMax(sigma=30.0, queries=200)
    answers = votes.release(counts, rng=1).value
    exact = pate.data_dependent_cost(votes, counts, answers, [8.0]).curve[0]
    operation = pate.SanitisedCost(aggregator=votes, answers=answers, order=8.0)
    found = [operation.release(counts, rng=seed).value for seed in range(60)]
    values = np.array([figure.divergence for figure in found])
    assert abs(values.mean() - exact) < 6 * values.std() / math.sqrt(60)
    assert values.std() > 0
    assert sum(figure.limit >= exact for figure in found) > 43
    assert found[0].epsilon(1e-5) >= 0


def test_a_figure_for_laplace_noise_or_soft_votes_is_refused_before_the_charge(priced):
    votes, counts, answers, _ = priced
    with pytest.raises(ValueError, match="Gaussian noise only"):
        pate.SanitisedCost(aggregator=pate.LNMax(scale=2.0), answers=answers, order=4.0)
    book = dp.Ledger("sqlite://").open("mail", epsilon=9.0, delta=1e-5)
    operation = pate.SanitisedCost(aggregator=votes, answers=answers, order=4.0)
    with pytest.raises(ValueError, match="whole votes"):
        book.release(operation, counts * 0.5)
    with pytest.raises(ValueError, match="3 answers to 2 queries"):
        book.release(operation, counts[:2])
    assert len(book.entries()) == 1


def test_settings_at_which_the_cost_is_not_monotone_are_refused():
    bumpy = smooth.Margins(np.zeros(3), 0.5, lambda t: np.exp(-(t**2)) * (1.2 + np.sin(9 * t)), -math.inf)
    with pytest.raises(dp.NotCertified, match="not monotone"):
        smooth.smooth_bound([bumpy], 0.1)
