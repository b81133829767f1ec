"""Legal events at the ends of floats and integers: a bound, possibly infinite, or a refusal; and in few questions."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

import discreet as dp
from discreet import events as ev
from discreet.accounting import calibrate, guarantee
from discreet.accounting.basic import Basic
from discreet.accounting.pld.composition import PLD
from discreet.accounting.pld.pairs import GaussianShift
from discreet.accounting.views import smallest_delta
from discreet.errors import NotCertified
from discreet.events import Event, tree


def laplace(z: float) -> Event:
    return ev.Laplace(noise_multiplier=z)


def gaussian(z: float) -> Event:
    return ev.Gaussian(noise_multiplier=z)


@pytest.mark.parametrize(("ask", "bound"), [
    (lambda: dp.epsilon(laplace(2.0) + laplace(1e-6) * 2, 1e-9), pytest.approx(2e6, rel=1e-5)),
    (lambda: dp.delta(laplace(2.0) + sum(ev.ApproxDP(epsilon=e, delta=1.0) for e in (1.0, 2.0)), 1.0), 1.0),
    (lambda: dp.epsilon((laplace(1.0) * 10**400) | gaussian(1.0), 1e-6), math.inf),
    (lambda: dp.epsilon(ev.PureDP(epsilon=1e308), 1e-6, adjacency="replace"), math.inf),
    (lambda: dp.epsilon(ev.Exponential(epsilon=1e308), 1e-6, adjacency="replace"), math.inf),
    (lambda: dp.epsilon(ev.ApproxDP(epsilon=1e308, delta=1e-9), 1e-6, adjacency="replace"), math.inf),
    (lambda: dp.epsilon(ev.GDP(mu=1e308), 1e-6, adjacency="replace"), math.inf),
    (lambda: dp.epsilon(ev.RDP(orders=(1.5, 4.0), epsilons=(1e308, 1e308)), 1e-6, adjacency="replace"), math.inf),
    (lambda: dp.epsilon(laplace(5e-324), 1e-6, adjacency="replace"), math.inf),
    (lambda: dp.epsilon(gaussian(5e-324), 1e-6, adjacency="replace"), math.inf),
    (lambda: dp.epsilon(ev.ZCDP(rho=1e308), 1e-6, adjacency="replace"), math.inf),
    (lambda: dp.epsilon(ev.PureDP(epsilon=1.0), 0, group_size=10**400), math.inf),
    (lambda: dp.epsilon(ev.PoissonSampled(rate=0.1, event=gaussian(1.0)), 1e-6, group_size=10**400), math.inf),
    (lambda: dp.epsilon(ev.PureDP(epsilon=1e-300), 0, group_size=10**200), pytest.approx(1e-100)),
])  # fmt: skip
def test_a_parameter_beyond_floats_has_a_bound(ask, bound):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask() == bound


@pytest.mark.parametrize("ask", [
    lambda: dp.epsilon(ev.PoissonSampled(rate=0.1, event=laplace(1.0) * 10**400), 1e-6),
    lambda: dp.epsilon(ev.Selected(event=gaussian(20.0), mean=1e6, law=-0.99), 1e-3),
    lambda: dp.epsilon(ev.DiscreteLaplace(scale=1.0), 0, group_size=10**400),
])  # fmt: skip
def test_what_cannot_be_computed_is_refused(ask):
    with pytest.raises((dp.UnsupportedEvent, NotCertified)):
        ask()


def test_a_selection_of_the_largest_shape_has_a_tail():
    """Its terms leave floats; its logarithms do not."""
    event = ev.Selected(event=gaussian(20.0), mean=1e6, law=100.0, cap=10**9)
    assert dp.epsilon(event, 1e-3) == pytest.approx(
        dp.epsilon(ev.Selected(event=gaussian(20.0), mean=1e6, law=100.0), 1e-3)
    )


# --- lower bounds


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_nothing_is_proved_from_below_of_a_truncated_sample(delta):
    """Any two batches of one record move a Laplace sum by at most 2: (inf, inf) was certified, and 0.62."""
    event = ev.TruncatedPoissonSampled(rate=0.5, max_batch_size=1, dataset_size=1000, event=laplace(1.0))
    low, high = dp.epsilon_bounds(event, delta)
    assert low == 0 < 2 <= high


def test_nothing_is_proved_from_below_of_the_best_of_several_runs():
    """Scores that do not depend on the data select nothing: the pure price is an upper bound only."""
    low, high = dp.epsilon_bounds(ev.Selected(event=laplace(1.0), mean=10), 0.0)
    assert low == 0 < high
    low, _ = dp.epsilon_bounds(ev.Selected(event=laplace(1.0), mean=10) + laplace(2.0), 0.0)
    assert low == 0.5


@pytest.mark.parametrize("alone", [gaussian(1.7e308), ev.GDP(mu=1e160), gaussian(2.0), ev.NonPrivate()])
def test_what_has_no_largest_loss_has_none_beside_anything_else(alone):
    """Gaussians whose pair is rounded up were left out of the lower bound, which fell from infinity to 0.5."""
    assert dp.epsilon_bounds(alone, 0.0) == (math.inf, math.inf)
    assert dp.epsilon_bounds(alone + laplace(2.0), 0.0) == (math.inf, math.inf)


def test_a_report_that_is_replaced_costs_its_own_odds_once():
    """It was taken for two changes, and twice its epsilon for attained."""
    response = ev.RandomizedResponse(epsilon=1.0, categories=3, adjacency="zero-out")
    assert dp.epsilon_bounds(response, 0.0, adjacency="replace") == (1.0, 1.0)


@pytest.mark.parametrize("delta", [1e-300, 1e-15, 1e-6])
def test_a_part_alone_is_a_lower_bound_of_the_whole(delta):
    part = ev.DiscreteGaussian(sigma=0.5)
    low, _ = dp.epsilon_bounds(part, delta)
    more, _ = dp.epsilon_bounds(part + ev.DiscreteLaplace(scale=1.5), delta)
    assert more >= low > 0


# --- few questions


def test_a_tradeoff_curve_and_a_nested_selection_take_few_questions(monkeypatch):
    """They took a hundred thousand: every line of a curve was sought by sums made of the profile itself."""
    asked: list[str] = []
    for name in ("epsilon", "delta"):
        plain = getattr(PLD, name)
        monkeypatch.setattr(PLD, name, lambda self, x, plain=plain, name=name: asked.append(name) or plain(self, x))
    rate = guarantee(ev.Selected(event=gaussian(1.0), mean=10)).tpr_at(0.01)
    assert rate == pytest.approx(0.4737, abs=1e-3)
    assert len(asked) < 4_000
    asked.clear()
    nested = ev.Selected(event=ev.Selected(event=gaussian(5.0), mean=3), mean=3)
    assert dp.epsilon(nested, 1e-6) == pytest.approx(1.4015, abs=1e-3)
    assert len(asked) < 8_000


def test_the_profile_of_many_runs_takes_few_transforms(monkeypatch):
    """Of 10^9 answers each has a million points, and there were dozens, of which most said that epsilon is zero."""
    from discreet.accounting.pld import convolution

    sizes: list[int] = []
    plain = convolution.fft.irfft
    monkeypatch.setattr(convolution.fft, "irfft", lambda law, size: sizes.append(size) or plain(law, size))
    best = ev.Selected(event=laplace(1000.0) * 1000, mean=30.0)
    assert dp.epsilon(best, 1e-9) == pytest.approx(0.238595750, abs=1e-8)
    assert 0 < len(sizes) < 30


def test_selections_inside_what_only_sums_can_price_take_few_questions(monkeypatch):
    """Each level asked some hundred times for the one below: 106 seconds for one bound. Refusals are remembered too."""
    asked: list[float] = []
    plain = Basic.epsilon
    monkeypatch.setattr(Basic, "epsilon", lambda self, delta: asked.append(delta) or plain(self, delta))
    worst = ev.OneOf(events=(ev.RDP(orders=(2.0, 8.0), epsilons=(0.03, 0.1)), ev.ApproxDP(epsilon=0.3, delta=1e-9)))
    inner = ev.Selected(event=ev.ZCDP(rho=1e-4) + laplace(40.0), mean=20, law=2.5)
    assert dp.epsilon(ev.Selected(event=inner + worst, mean=3), 1e-3) < 10
    assert 0 < len(asked) < 6_000


@pytest.mark.parametrize("delta", [1e-6, 1e-60])
def test_a_gaussian_beyond_floats_is_at_least_a_smaller_one(delta):
    """Its lower bound was 0, where that of a part was 1e34."""
    low, high = dp.epsilon_bounds(ev.GDP(mu=1e17) + ev.GDP(mu=1e160), delta)
    assert high == math.inf
    assert low >= dp.epsilon_bounds(ev.GDP(mu=1e17), delta)[0] > 1e33


def test_a_loss_beyond_a_tiny_shift_leaks_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not GaussianShift(1e-60).tails(np.array([1e300]))[0].any()


def test_the_smallest_delta_is_met_from_above_in_few_questions():
    asked: list[float] = []

    def epsilon_of(delta: float) -> float:
        asked.append(delta)
        return math.inf if delta < 1e-9 else -math.log(delta) if delta else math.inf

    assert smallest_delta(epsilon_of, 3.0) == pytest.approx(math.exp(-3), rel=1e-8)
    assert epsilon_of(smallest_delta(epsilon_of, 3.0)) <= 3.0
    assert smallest_delta(epsilon_of, 30.0) == pytest.approx(1e-9, rel=1e-6)
    assert epsilon_of(smallest_delta(epsilon_of, 30.0)) <= 30.0
    assert len(asked) < 160


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_an_impossible_target_is_seen_in_a_few_dozen_questions(delta):
    asked: list[float] = []

    def family(z: float) -> Event:
        asked.append(z)
        step = ev.PoissonSampled(rate=0.01, event=gaussian(z))
        return step * 1000 if delta == 0 else ev.PureDP(epsilon=2.0)  # a family that does not change

    with pytest.raises(ValueError, match="No parameter"):
        calibrate(family, epsilon=1.0, delta=delta)
    assert len(asked) < 40


# --- one text


def test_equal_events_have_equal_text(monkeypatch):
    """-0.0 equals 0.0; a kind of somebody else's may check nothing."""
    monkeypatch.setattr(tree, "_BY_TAG", dict(tree._BY_TAG))  # no other test knows of the kind that is made here

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Unchecked(Event):
        level: float
        levels: tuple[float, ...] = ()

    pairs = [
        (ev.PureDP(epsilon=0.0), ev.PureDP(epsilon=-0.0)),
        (ev.ApproxDP(epsilon=0.0, delta=0.0), ev.ApproxDP(epsilon=-0.0, delta=-0.0)),
        (ev.ZCDP(rho=0.0), ev.ZCDP(rho=-0.0)),
        (ev.GDP(mu=0.0), ev.GDP(mu=-0.0)),
        (ev.Exponential(epsilon=0.0), ev.Exponential(epsilon=-0.0)),
        (ev.RandomizedResponse(epsilon=0.0), ev.RandomizedResponse(epsilon=-0.0)),
        (ev.RDP(orders=(2,), epsilons=(0.0,)), ev.RDP(orders=(2.0,), epsilons=(-0.0,))),
        (ev.PoissonSampled(rate=0.0, event=gaussian(1.0)), ev.PoissonSampled(rate=-0.0, event=gaussian(1.0))),
        (ev.FixedSizeSampled(rate=0.0, event=gaussian(1.0)), ev.FixedSizeSampled(rate=-0.0, event=gaussian(1.0))),
        (ev.Selected(event=gaussian(1.0), mean=2, law=0.0), ev.Selected(event=gaussian(1.0), mean=2.0, law=-0.0)),
        (Unchecked(level=0.0, levels=(0.0,)), Unchecked(level=-0.0, levels=(-0.0,))),
    ]
    for one, other in pairs:
        assert one == other
        assert one.to_json() == other.to_json()


def test_the_worst_of_several_is_as_sharp_as_each_of_them():
    """At delta 1e-15 the worst of two was priced above itself with something added."""
    one = ev.OneOf(events=(laplace(38.0), gaussian(0.4257)))
    assert dp.epsilon(one, 1e-15) <= dp.epsilon(one + gaussian(80.0), 1e-15)
    assert dp.epsilon(one, 1e-15) == pytest.approx(dp.epsilon(gaussian(0.4257), 1e-15), rel=1e-6)


# --- what is added lowers no bound


def test_nothing_is_added_to_a_bound_that_is_zero():
    """The contour moved outward, to 1e-13, from a point that was proved already."""
    event = (
        ev.PureDP(epsilon=1.5, adjacency="add-remove")
        + ev.Gaussian(noise_multiplier=4.4)
        + ev.Laplace(noise_multiplier=2.0)
    )
    assert dp.epsilon_bounds(event, 0.999) == (0.0, 0.0)


def test_a_million_tiny_answers_beside_one_take_nothing_off_its_lower_bound():
    """The offset of a lattice was chosen among multiples of 1e-5 of its step, a million times."""
    one = ev.DiscreteLaplace(sensitivity=1, scale=0.53)
    low, high = dp.epsilon_bounds(one, 1e-9)
    beside = dp.epsilon_bounds(one + laplace(1e60) * 10**6, 1e-9)
    assert low * (1 - 1e-7) <= beside[0] <= beside[1] <= high * (1 + 1e-7)


def test_a_wide_interval_is_not_below_what_some_of_its_parts_prove():
    """Two parts of three prove more than all of them do on a lattice that the third makes coarse."""
    some = ev.Gaussian(noise_multiplier=0.76, adjacency="replace") + ev.Laplace(
        noise_multiplier=1.6, adjacency="replace"
    )
    many = ev.RandomizedResponse(epsilon=0.64, categories=9, adjacency="replace") * 10**9
    low, high = dp.epsilon_bounds(some + many, 0.1, adjacency="replace")
    assert low >= dp.epsilon_bounds(some, 0.1, adjacency="replace")[0] * (1 - 1e-4)
    assert high > 1e6 * low


def test_losses_beyond_floats_are_left_to_the_curves():
    """At a loss of 900 exp(-loss) is zero in floats: the plain sum was reported, ln 0.4 above the truth."""
    event = ev.DiscreteLaplace(sensitivity=3, scale=1 / 300)
    truth = 900 + math.log(0.4)
    assert truth <= dp.epsilon(event, 0.6) < truth + 0.01
    assert truth <= dp.epsilon_bounds(event, 0.6)[1] < truth + 0.01


def test_lower_bounds_compose_the_options_of_a_parallel_part_once(monkeypatch):
    """Each of dozens of lower laws composed them again: four seconds for one bound."""
    from discreet.accounting.pld import composite

    calls = []
    composite._supremum.cache_clear()
    monkeypatch.setattr(composite, "compose", lambda parts, real=composite.compose: calls.append(1) or real(parts))
    options = (ev.Exponential(epsilon=0.06), ev.Exponential(epsilon=0.78), ev.Gaussian(noise_multiplier=1.7))
    dp.epsilon_bounds(ev.Parallel(events=options), 1e-60, adjacency="replace")
    assert 0 < len(calls) < 40


def test_the_optimal_account_lists_only_sums_that_have_a_probability():
    """A million binary answers have some forty thousand sums above exp(-700); one question took half a second."""
    from discreet.accounting.optimal_kov import _binary_losses

    losses, masses, unlisted = _binary_losses([0.5], [10**6])
    assert len(losses) < 40_000
    assert 0 < unlisted < 1e-300
    assert masses.sum() == pytest.approx(1, abs=1e-9)
    few, sums = dp.epsilon(ev.PureDP(epsilon=0.01) * 5000, 1e-6, accountant="optimal"), np.arange(5001)
    law = binom.pmf(sums, 5000, 1 / (1 + math.exp(-0.01)))
    loss = (2 * sums - 5000) * 0.01
    assert float(law @ np.maximum(0, -np.expm1(np.minimum(few - loss, 0)))) == pytest.approx(1e-6, rel=1e-6)
