"""The figures the library is measured by: certified, and to the digits known."""

from __future__ import annotations

import pytest

import discreet as dp
from discreet import events as ev


def sampled(rate: float, noise_multiplier: float) -> ev.Event:
    return ev.PoissonSampled(rate=rate, event=ev.Gaussian(noise_multiplier=noise_multiplier))


TABLE = [
    (sampled(0.01, 4) * 10_000, 1e-5, 0.9468668),
    (sampled(256 / 60_000, 1.1) * 14_062, 1e-5, 2.3815969),
    (sampled(0.001, 0.8) * 100_000, 1e-6, 2.9144783),
    (sampled(0.02, 0.6) * 5_000, 1e-5, 33.8933632),
    (sampled(1, 30) * 1_000, 1e-6, 5.1890366),
    (sampled(1e-4, 0.7) * 1_000_000, 1e-8, 1.4035458),
    (sampled(0.01, 4) * 10_000, 1e-18, 2.1753794),
]


@pytest.mark.parametrize(("event", "delta", "expected"), TABLE)
def test_sampled_gaussians_are_known_to_seven_digits(event, delta, expected):
    low, high = dp.epsilon_bounds(event, delta)
    assert low - 6e-8 <= expected <= high + 6e-8
    assert 0 <= high - low <= 1e-5 * high


def test_the_number_of_distinct_events_does_not_cost_accuracy():
    events = [sampled(0.002 + 1e-5 * i, 0.9 + 0.002 * i) for i in range(200)]
    low, high = dp.epsilon_bounds(sum(events), 1e-5)
    assert 0 < low <= high <= low * (1 + 1e-4)


def test_a_hundred_laplace_queries_by_every_accountant():
    event = ev.Laplace(noise_multiplier=10) * 100
    by = {
        name: dp.epsilon(event, 1e-6, accountant=name)
        for name in ("pld", "rdp", "optimal", "basic", "advanced", "zcdp")
    }
    assert by["pld"] == pytest.approx(4.69267, abs=1e-5)
    assert by["basic"] == pytest.approx(10)
    assert by["rdp"] == pytest.approx(4.985, abs=1e-3)
    assert by["optimal"] == pytest.approx(4.7746, abs=1e-4)
    assert by["pld"] < by["optimal"] < by["rdp"] < by["zcdp"] < by["advanced"] < by["basic"]


def test_adjacency_changes_epsilon():
    one = ev.Gaussian(noise_multiplier=1.0)
    assert dp.epsilon(one, 1e-5) == pytest.approx(4.3772, abs=1e-4)
    assert dp.epsilon(one, 1e-5, adjacency="replace") == pytest.approx(10.00, abs=5e-3)


def test_the_ladder_of_composition():
    step = sampled(0.01, 4)
    assert dp.epsilon(step * 10_000, 1e-5, accountant="rdp") == pytest.approx(1.0356, abs=1e-3)
    assert dp.epsilon(ev.Gaussian(noise_multiplier=4), 1e-5) == pytest.approx(0.9263, abs=1e-4)
