"""The best of a random number of runs: prices against enumerated mechanisms, published figures and limits."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from scipy.special import logsumexp

import discreet as dp
from discreet.accounting.rdp import ORDERS, rdp_curve
from discreet.accounting.selection import Runs, mean_runs, success
from discreet.events import (
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    OneOf,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Selected,
    TruncatedPoissonSampled,
)

SHAPES = [-0.5, 0.0, 0.5, 1.0, 3.0, math.inf]


def hockey(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


class Enumerated:
    """The exact profile of two laws on finitely many outputs, both directions."""

    def __init__(self, p: np.ndarray, q: np.ndarray) -> None:
        self.p, self.q = p, q

    def delta(self, epsilon: float) -> float:
        return max(hockey(self.p, self.q, epsilon), hockey(self.q, self.p, epsilon))

    def epsilon(self, delta: float) -> float:
        raise NotImplementedError

    def divergence(self, orders: np.ndarray) -> np.ndarray:
        return np.max([divergence(self.p, self.q, orders), divergence(self.q, self.p, orders)], axis=0)


def divergence(p: np.ndarray, q: np.ndarray, orders: np.ndarray) -> np.ndarray:
    logs = np.log(p) - np.log(q)
    return np.array([float(logsumexp((a - 1) * logs, b=p)) / (a - 1) for a in orders])


def best_of(law: np.ndarray, runs: Runs) -> np.ndarray:
    """The law of the best of K outputs, ranked by their index; for Poisson, none at all comes first."""
    heads = np.concatenate([[0.0], np.cumsum(law)])
    values = np.array([np.real(generating(runs, min(1.0, float(q)))) for q in heads])
    values[-1] = 1.0
    return np.diff(values) if math.isfinite(runs.shape) else np.concatenate([values[:1], np.diff(values)])


@pytest.mark.parametrize("shape", SHAPES)
def test_no_enumerated_mechanism_is_above_the_profile_bound_or_the_curve(shape: float) -> None:
    rng = np.random.default_rng(7)
    orders = np.array([1.1, 1.5, 2.0, 4.0, 16.0, 64.0])
    for _ in range(50):
        size = int(rng.integers(2, 6))
        p = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0]))) * 0.999 + 0.001 / size
        q = p * np.exp(rng.uniform(-1, 1, size) * rng.choice([0.1, 0.5, 1.5]))
        q /= q.sum()
        runs = Runs(float(rng.choice([1.0, 1.3, 3.0, 10.0, 100.0])), shape)
        account = Enumerated(p, q)
        bound = runs.delta(account, runs.shift(account))
        best, other = best_of(p, runs), best_of(q, runs)
        chosen = Enumerated(best, other)
        assert chosen.delta(0.0) <= runs.distance(account) + 1e-12
        for epsilon in np.linspace(0, 4, 15):
            assert chosen.delta(epsilon) <= bound(epsilon) + 1e-12
        known = ORDERS[:120:8]
        curve = runs.curve(orders, account.divergence(orders), known, account.divergence(known), account)
        assert (chosen.divergence(orders) <= curve + 1e-9).all()


def test_the_profile_bound_is_nearly_attained_by_a_rare_best_output() -> None:
    """So the search above has power: half of the shift would be too little."""
    runs = Runs(10.0, 0.0)
    p, q = np.array([0.999, 0.001]), np.array([0.999 + 0.001 * (1 - math.exp(-1)), 0.001 * math.exp(-1)])
    shift = runs.shift(Enumerated(p, q))
    low = runs.delta(Enumerated(p, q), shift / 2 - 1)
    worst = max(Enumerated(best_of(p, runs), best_of(q, runs)).delta(e) - low(e) for e in np.linspace(0, 2, 200))
    assert worst > 0


@pytest.mark.parametrize(
    ("mu", "law", "mean", "rdp", "profile"),
    [
        (0.142211, "logarithmic", 10, 0.9977, 0.8966),
        (0.142211, "geometric", 10, 1.2155, 1.0467),
        (0.268051, "logarithmic", 10, 1.9166, 1.5128),
        (0.268051, 0.5, 10, 2.1247, 1.8781),
        (0.268051, "geometric", 10, 2.3104, 1.6254),
        (0.268051, "poisson", 10, 2.0458, 2.2098),
        (0.268051, "logarithmic", 100, 2.2865, 1.8902),
        (0.268051, "geometric", 100, 2.9130, 2.6355),
        (0.501552, "logarithmic", 10, 3.6501, 3.3057),
    ],
)
def test_published_figures_are_met_or_beaten(
    mu: float, law: str | float, mean: float, rdp: float, profile: float
) -> None:
    event = Selected(event=Gaussian(noise_multiplier=1 / mu), mean=mean, law=law)
    assert dp.epsilon(event, 1e-5, accountant="rdp") == pytest.approx(rdp, rel=3e-4)
    assert dp.epsilon(event, 1e-5, accountant="pld") <= profile + 1e-4
    assert dp.epsilon(event, 1e-5) <= min(rdp, profile) * (1 + 1e-4)


@pytest.mark.parametrize("law", ["logarithmic", "geometric", "poisson", 0.5])
def test_one_certain_run_costs_a_run_and_more_runs_cost_more(law: str | float) -> None:
    run = Gaussian(noise_multiplier=4.0)
    one, ten, many = (dp.epsilon(Selected(event=run, mean=m, law=law), 1e-6) for m in (1, 10, 1000))
    assert dp.epsilon(run, 1e-6) * (1 - 1e-9) <= one < ten < many
    if law != "poisson":
        assert one == pytest.approx(dp.epsilon(run, 1e-6), rel=1e-6)


def test_pure_runs_stay_pure_and_cost_less_than_the_classical_bound() -> None:
    event = Selected(event=PureDP(epsilon=1.0), mean=10)
    assert 1.0 < dp.epsilon(event, 0.0) < 2.0
    assert dp.epsilon(Selected(event=PureDP(epsilon=1.0), mean=10, law="geometric"), 0.0) < 3.0


def test_randomized_response_selected_for_telling_the_truth_stays_below_the_price() -> None:
    epsilon, runs = 1.0, Runs(10.0, 0.0)
    p = np.array([1.0, math.exp(epsilon)]) / (1 + math.exp(epsilon))
    truth = Enumerated(best_of(p, runs), best_of(p[::-1], runs))
    event = Selected(event=RandomizedResponse(epsilon=epsilon), mean=10)
    for delta in (0.3, 0.1, 0.01):
        price = dp.epsilon(event, delta, adjacency="replace")
        assert truth.delta(price) <= delta


def test_selections_compose_with_everything_else() -> None:
    event = Selected(event=Gaussian(noise_multiplier=5.0), mean=5)
    alone, noise = dp.epsilon(event, 1e-6), Laplace(noise_multiplier=2.0)
    both = dp.epsilon(event + noise, 1e-6)
    assert alone < both <= alone + 0.5 + 1e-6
    assert dp.epsilon(event, 1e-5) < dp.epsilon(event * 2, 1e-5) < 2 * dp.epsilon(event, 0.5e-5) + 1e-6
    assert dp.epsilon(PoissonSampled(rate=0.1, event=event), 1e-6) < alone


def test_a_truncated_sampler_inside_is_priced_with_its_overflow() -> None:
    def priced(size: int) -> float:
        inside = PureDP(epsilon=1.0)
        step = TruncatedPoissonSampled(rate=0.01, max_batch_size=size, dataset_size=1000, event=inside)
        return dp.epsilon(Selected(event=step, mean=10), 1e-5)

    assert priced(1001) < priced(30) < math.inf
    assert priced(12) == math.inf


def test_the_adjacency_of_a_run_is_the_selections() -> None:
    run = PureDP(epsilon=1.0, adjacency="replace")
    assert dp.epsilon(Selected(event=run, mean=2), 1e-6, adjacency="replace") < 2
    with pytest.raises(dp.errors.UnsupportedAdjacency, match="replace"):
        dp.epsilon(Selected(event=run, mean=2), 1e-6)
    assert dp.epsilon(Selected(event=PureDP(epsilon=0.5), mean=2), 1e-6, adjacency="replace") > 1.0


def test_groups_are_priced_as_a_whole_and_unprotected_runs_not_at_all() -> None:
    event = Selected(event=Gaussian(noise_multiplier=20.0), mean=3)
    assert dp.epsilon(event, 1e-6, group_size=3) > 3 * dp.epsilon(event, 1e-6)
    assert dp.epsilon(Selected(event=NonPrivate(), mean=3), 1e-6) == math.inf
    assert dp.epsilon(Selected(event=PureDP(epsilon=0.0), mean=3), 0.0) == 0.0


def test_a_selection_is_written_and_read_back() -> None:
    event = Selected(event=Gaussian(noise_multiplier=2.0) * 3, mean=10, law=0.25)
    assert Event.from_json(event.to_json()) == event
    assert "Selected(" in str(event)
    with pytest.raises(ValueError, match="law is 'uniform'"):
        Selected(event=event, mean=10, law="uniform")
    with pytest.raises(ValueError, match=r"mean is 0\.5"):
        Selected(event=event, mean=0.5)


@pytest.mark.parametrize("shape", SHAPES[:-1])
def test_success_gives_the_mean_back(shape: float) -> None:
    for mean in (1.0, 1.0001, 2.0, 37.0, 1e3):
        assert mean_runs(success(mean, shape), shape) == pytest.approx(mean, rel=1e-9) if mean > 1 else True


@pytest.mark.parametrize(
    "wrong",
    [{"law": 1e300}, {"law": math.nan}, {"law": -1.0}, {"mean": 1e308}, {"cap": 10**400}, {"cap": 0}],
    ids=range(6),
)
def test_what_no_search_can_draw_is_no_event(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} is "):
        Selected(**({"event": PureDP(epsilon=1.0), "mean": 3.0} | wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", SHAPES[:-1])
@pytest.mark.parametrize("more", [3e-16, 1e-12, 1e-9, 1e-6])
def test_a_mean_hardly_above_one_has_a_law(shape: float, more: float) -> None:
    """From three terms of the law: Pr[K > 1] is about mean - 1."""
    gamma = success(1 + more, shape)
    assert (1 + shape) / 2 * (1 - gamma) == pytest.approx(more, rel=1e-3, abs=2e-16)
    assert dp.epsilon(Selected(event=PureDP(epsilon=1.0), mean=1 + more, law=shape), 0.0) < 1.001


@pytest.mark.parametrize("mean", [math.nextafter(1.0, 2.0), 1 + 4e-16, 1 + 1e-15])
def test_a_mean_of_the_next_float_above_one_has_a_law_whatever_the_shape(mean: float) -> None:
    for shape in (-0.99, 1e-9, 30.0, 100.0):
        assert abs(mean - 1 - (1 + shape) / 2 * (1 - success(mean, shape))) < (4 + shape) * 2.0**-53
        assert 1.0 <= dp.epsilon(Selected(event=PureDP(epsilon=1.0), mean=mean, law=shape), 0.0) < 1.001
        assert 0 <= Runs(mean, shape).beyond(1) < 1e-14


@pytest.mark.parametrize("shape", [5e-324, -5e-324, 1e-310, -1e-300])
def test_a_shape_that_floats_cannot_tell_from_zero_is_the_logarithmic_law(shape: float) -> None:
    """Products with it have lost their digits, or are zero."""
    best = Selected(event=PureDP(epsilon=1.0), mean=30.0, law=shape, cap=50)
    assert best == Selected(event=PureDP(epsilon=1.0), mean=30.0, law="logarithmic", cap=50)


@pytest.mark.parametrize("shape", [1e-290, -1e-290])
def test_the_smallest_shapes_have_the_chances_of_the_logarithmic_law(shape: float) -> None:
    for mean in (1 + 1e-15, 1.3, 1e6):
        assert success(mean, shape) == pytest.approx(success(mean, 0.0), rel=1e-11)
        assert Runs(mean, shape).beyond(50) == pytest.approx(Runs(mean, 0.0).beyond(50), rel=1e-9)


def test_the_distance_of_rare_differences_is_that_of_exact_arithmetic() -> None:
    class Tiny:
        def delta(self, epsilon: float) -> float:
            return 1e-15

    with mp.workdps(60):
        for shape in (-0.9, -0.6, -0.1, 0.0, 0.5, 3.0):
            runs = Runs(1e4 if shape > -0.9 else 100.0, shape)
            gamma, eta = mp.mpf(success(runs.mean, shape)), mp.mpf(shape)
            rest = gamma + (1 - gamma) * mp.mpf(1e-15)
            same = mp.log(rest) / mp.log(gamma) if eta == 0 else (rest**-eta - 1) / (gamma**-eta - 1)
            assert 1 - same <= runs.distance(Tiny()) <= (1 - same) * (1 + 1e-7)


def test_the_curve_alone_grows_with_the_order() -> None:
    event = Selected(event=Gaussian(noise_multiplier=4.0), mean=10)
    assert rdp_curve(event, [8.0, 64.0]).shape == (2,)
    assert (rdp_curve(event, [64.0]) > rdp_curve(Gaussian(noise_multiplier=4.0), [64.0])).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_chance_of_more_runs_than_the_cap_is_bounded_by_the_law_itself(shape: float) -> None:
    for mean in (1.5, 10.0):
        runs = Runs(mean, shape)
        size = 2000
        roots = np.exp(2j * np.pi * np.arange(size) / size)
        law = np.real(np.fft.fft([generating(runs, z) for z in roots])) / size  # the coefficients of f
        for cap in (1, 3, 30):
            truth = 1 - law[: cap + 1].sum()
            assert truth - 1e-9 <= runs.beyond(cap) <= max(12 * truth, 1e-6)


@pytest.mark.parametrize(
    ("mean", "shape", "cap", "loose"),
    [
        (1e6, 1.000001, 5 * 10**8, 1e-8),
        (1e6, 1.00000005, 10**8, 1e-8),
        (1e6, 0.999999, 3 * 10**8, 1e-8),
        (1e4, 3.5, 10**5, 0.1),
        (1e3, -0.5, 10**7, 0.5),
        (1e6, math.inf, 1_006_000, 1e-8),
        (1e6, math.inf, 1_020_000, 1e-8),
        (2.0, math.inf, 12, 1e-8),
    ],
)
def test_the_chance_of_more_runs_than_a_large_cap_is_not_below_the_truth(
    mean: float, shape: float, cap: int, loose: float
) -> None:
    """Differences of logarithms of large factorials are wrong in the seventh digit, and so is scipy's Poisson tail."""
    runs, k = Runs(mean, shape), mp.mpf(cap + 1)
    with mp.workdps(40):
        if math.isinf(shape):  # an incomplete gamma function, as is the tail of a sum of exponential waiting times
            log = k * mp.log(mean) - mp.loggamma(k)
            rest = _integral(lambda v: (k - 1) * mp.log1p(-v) - mean * (1 - v), max(k - mean, mp.sqrt(k)))
        else:  # an incomplete beta function, over the chance that there is a run at all
            gamma, eta = mp.mpf(success(mean, shape)), mp.mpf(shape)
            log = k * mp.log1p(-gamma) + mp.loggamma(k + eta) - mp.loggamma(k)
            log -= mp.log((1 - gamma**eta) * mp.gamma(eta))
            rest = _integral(lambda v: (k - 1) * mp.log1p(-v) + (eta - 1) * mp.log(gamma + (1 - gamma) * v), k)
        truth = mp.exp(log) * rest
        assert truth <= runs.beyond(cap) <= truth * (1 + loose)


def _integral(log_of: Callable[[mp.mpf], mp.mpf], speed: mp.mpf) -> mp.mpf:
    """Of exp(log_of(v)) over [0, 1], where it falls at about this speed."""
    ends = [end / speed for end in (0, 1, 3, 8, 20, 50, 100) if end < speed]
    return mp.quad(lambda v: mp.exp(log_of(v)), [*ends, min(mp.mpf(1), 200 / speed)])


@pytest.mark.parametrize("epsilon", [1e-60, 1e-17, 3e-17, 1e-16, 1e-13])
def test_the_best_of_runs_that_hardly_lose_anything_is_not_free(epsilon: float) -> None:
    """e^ε is one for floats there: two points of the profile were taken for one, with a delta of zero at zero."""
    event = Selected(event=PureDP(epsilon=epsilon), mean=2.0, law="geometric")
    # of two outcomes; the better one is shown where any of the runs has it
    truth = mp.mpf(epsilon) * 4 / 3
    assert truth < dp.epsilon(event, 1e-300) < 2.5 * truth
    assert truth / 3 <= dp.delta(event, 0.0)
    assert truth < dp.epsilon_bounds(event, 1e-300)[1]


def generating(runs: Runs, z: complex) -> complex:
    if math.isinf(runs.shape):
        return np.exp(runs.mean * (z - 1))
    gamma = success(runs.mean, runs.shape)
    if gamma == 1:
        return z
    rest = 1 - (1 - gamma) * z
    return np.log(rest) / math.log(gamma) if runs.shape == 0 else (rest**-runs.shape - 1) / (gamma**-runs.shape - 1)


def test_a_cap_costs_the_chance_that_it_is_met() -> None:
    free = Selected(event=Gaussian(noise_multiplier=4.0), mean=3, law="geometric")
    loose, tight = (Selected(event=free.event, mean=3, law="geometric", cap=cap) for cap in (60, 10))
    assert dp.epsilon(free, 1e-6) < dp.epsilon(loose, 1e-6) < math.inf
    assert dp.epsilon(tight, 1e-6) == math.inf


def test_one_of_several_costs_the_costliest_and_never_their_sum() -> None:
    small, large = Gaussian(noise_multiplier=4.0), Laplace(noise_multiplier=1.0)
    one = OneOf(events=(small, large, small))
    assert one.events == (small, large)
    for delta in (1e-2, 1e-6):
        worst = max(dp.epsilon(small, delta), dp.epsilon(large, delta))
        assert dp.epsilon(one, delta) == pytest.approx(worst, rel=1e-3)
        assert dp.epsilon(one, delta) >= worst * (1 - 1e-9)
    assert dp.epsilon(OneOf(events=(large,)), 0.0, adjacency="replace") == pytest.approx(2.0)
