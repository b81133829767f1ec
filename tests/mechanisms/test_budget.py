"""A budget means one thing: read once, divided without a remainder, and never exceeded by what it pays for."""

import pytest

import discreet as dp
from discreet import events
from discreet.mechanisms import Budget, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "nothing given, but exactly one of epsilon, rho"),
        ({"epsilon": 1.0, "rho": 1.0}, "epsilon and rho given, but exactly one"),
        ({"rho": 1.0, "delta": 1e-6}, "delta given with rho"),
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"epsilon": float("inf")}, "epsilon is inf"),
        ({"rho": 0.0}, "rho is 0.0"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta is 1.0"),
        ({"epsilon": 1.0, "delta": -1e-9}, "delta is -1e-09"),
        ({"epsilon": 1.0, "noise": "cauchy"}, "noise is 'cauchy'"),
        ({"epsilon": 1.0, "noise": "gaussian"}, "needs delta= or rho="),
        ({"epsilon": 1.0, "delta": 0, "noise": "gaussian"}, "needs delta= or rho="),
        ({"rho": 1.0, "noise": "laplace"}, "rho= is for Gaussian noise"),
    ],
)
def test_what_is_no_budget_is_refused_with_the_reason(words, message):
    with pytest.raises(ValueError, match=message):
        Budget(**words)


def test_delta_zero_is_no_delta():
    assert Budget(epsilon=1, delta=0) == Budget(epsilon=1.0) == Budget(epsilon=1.0, delta=None)
    assert Budget(epsilon=1.0, delta=0.0).pure
    assert not Budget(epsilon=1.0, delta=1e-9).pure
    assert not Budget(rho=1.0, delta=0).pure


@pytest.mark.parametrize(
    ("budget", "whole", "kind"),
    [
        (Budget(epsilon=1.0), False, Laplace),
        (Budget(epsilon=1.0), True, DiscreteLaplace),
        (Budget(epsilon=1.0, delta=1e-6), True, Gaussian),
        (Budget(epsilon=1.0, delta=1e-6, noise="laplace"), True, DiscreteLaplace),
        (Budget(rho=0.4), True, Gaussian),
        (Budget(rho=0.6), True, DiscreteGaussian),  # a deviation below 1: rounding would cost more
        (Budget(rho=0.6), False, Gaussian),
        (Budget(rho=0.6, noise="gaussian"), True, Gaussian),
    ],
)
def test_the_noise_is_the_one_the_budget_is_for(budget, whole, kind):
    mechanism = budget.additive(1, 10, whole=whole)
    assert type(mechanism) is kind
    assert budget.norm == ("l1" if kind in (Laplace, DiscreteLaplace) else "l2")


@pytest.mark.parametrize(
    "budget", [Budget(epsilon=0.7), Budget(epsilon=0.7, delta=1e-6), Budget(rho=0.3), Budget(rho=3.0)]
)
def test_one_release_costs_the_budget_and_hardly_less(budget):
    event = budget.additive(3, 5, square=4, whole=True).event
    if budget.rho is not None:
        rho = event.rho if isinstance(event, events.ZCDP) else 0.5 / event.noise_multiplier**2
        assert budget.rho * (1 - 1e-9) < rho <= budget.rho
    else:
        assert budget.epsilon * (1 - 1e-6) < dp.epsilon(event, delta=budget.delta or 0) <= budget.epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(10.0, 1e-6), (3.0, 0.1), (0.5, 1e-6)])
@pytest.mark.parametrize("kinds", [["additive"], ["additive"] * 3, ["additive", "selecting"], ["additive", "keys"]])
@pytest.mark.parametrize("noise", ["auto", "gaussian", "laplace"])
def test_shares_of_epsilon_and_delta_together_cost_no_more(epsilon, delta, kinds, noise):
    """Whole counts too: the discrete Gaussian's delta is not the continuous one's, for which the shares were cut."""
    shares = Budget(epsilon=epsilon, delta=delta, noise=noise).shares(kinds)
    spent = {
        "selecting": lambda share: events.Exponential(epsilon=share.selection()),
        "additive": lambda share: share.additive(1, 10, whole=True).event,
        "keys": lambda share: events.ApproxDP(epsilon=share.epsilon, delta=share.delta),
    }
    total = [spent[kind](share) for kind, share in zip(kinds, shares, strict=True)]
    assert dp.epsilon(events.Composed(events=tuple(total)), delta=delta) <= epsilon * (1 + 1e-9)


def test_parts_for_gaussian_noise_add_up_exactly_and_pay_for_nothing_else():
    budget = Budget(epsilon=1.0, delta=1e-6)
    total = sum((budget.part(share).additive(1).event for share in (0.1, 0.3, 0.6)), start=events.Composed(events=()))
    assert 0.999999 < dp.epsilon(total, delta=1e-6) <= 1.0
    with pytest.raises(ValueError, match="for Gaussian noise"):
        budget.part(0.5).selection()
    assert Budget(epsilon=1.0).part(0.5) == Budget(epsilon=0.5)
    assert Budget(epsilon=1.0, delta=1e-6, noise="laplace").part(0.5).pure
    with pytest.raises(ValueError, match=r"share is 1\.5"):
        budget.part(1.5)


def test_equal_parts_divide_everything():
    assert Budget(epsilon=1.0, delta=1e-6).divide(2) == [Budget(epsilon=0.5, delta=5e-7)] * 2
    assert Budget(rho=1.0).divide(4) == [Budget(rho=0.25)] * 4
    with pytest.raises(ValueError, match="count is 0"):
        Budget(rho=1.0).divide(0)


@pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(epsilon=1.0, delta=1e-6), Budget(rho=0.1)])
@pytest.mark.parametrize("count", [1, 7])
def test_selections_together_cost_no_more_than_the_budget(budget, count):
    each = budget.selection(count)
    event = events.Exponential(epsilon=each) * count
    if budget.rho is not None:
        assert count * each**2 / 8 <= budget.rho
        assert budget.selection(count, bounded_range=False) == pytest.approx(each / 2)
    else:
        assert dp.epsilon(event, delta=budget.delta or 0) <= budget.epsilon
        assert each * count >= budget.epsilon * (1 - 1e-9)


def test_keys_need_a_delta():
    with pytest.raises(ValueError, match="delta is missing"):
        Budget(epsilon=1.0).shares(["keys"])
    assert Budget(epsilon=1.0).shares([]) == []
