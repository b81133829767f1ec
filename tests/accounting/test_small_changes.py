"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

import math

import pytest

import discreet as dp

ev = dp.events


@pytest.mark.parametrize("epsilon", [29.5, 30.0, 30.5, 31.5])
def test_sampling_shifts_large_losses_by_the_log_of_the_rate(epsilon):
    """Two branches meet at a loss of 30; δ(ε) = q·δ₀(log(1 + (e^ε - 1)/q)) and Laplace noise has δ₀(x) = 1 - e^{(x - 40)/2}."""
    q, event = 0.5, ev.PoissonSampled(rate=0.5, event=ev.Laplace(noise_multiplier=1 / 40))
    exact = -q * math.expm1((math.log1p(math.expm1(epsilon) / q) - 40) / 2)
    assert dp.delta(event, epsilon=epsilon) == pytest.approx(exact, rel=1e-9)
