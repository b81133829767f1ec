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
