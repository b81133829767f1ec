"""The Tulap mechanism: its law, its cut, its guarantee."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

import discreet as dp
from discreet.mechanisms import Tulap

FALSE_ALARM = 1e-9


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, None), (1.0, 1e-3), (0.1, 0.01), (2.0, 0.3)])
def test_noise_has_the_law_that_is_stated(epsilon, delta):
    mechanism, rng = Tulap(epsilon=epsilon, delta=delta), dp.random.seeded(7)
    noise = np.array([mechanism.draw(5, rng) for _ in range(1500)]) - 5
    assert kstest(noise, mechanism.cdf).pvalue > FALSE_ALARM
    assert kstest(noise, Tulap(epsilon=1.5 * epsilon, delta=delta).cdf).pvalue < 1e-3
    assert (np.abs(noise) <= mechanism.cut).all()


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.1, 0.01), (2.0, 0.3), (1.0, 1e-12)])
def test_neighbours_are_as_near_as_is_claimed(epsilon, delta):
    """The mass beyond e^epsilon times the law that is shifted by one, from the masses at each uniform part; and that
    a cut one nearer would leave more than delta.
    """

    def beyond(cut):
        u, k = np.linspace(-0.5, 0.5, 4001)[:-1, None] + 1 / 8000, np.arange(-400, 401)
        mass = np.exp(-epsilon * np.abs(k)) * (np.abs(k + u) <= cut)
        mass /= mass.sum(axis=1).mean()
        return np.maximum(mass[:, 1:] - np.exp(epsilon) * mass[:, :-1], 0.0).sum(axis=1).mean()

    cut = Tulap(epsilon=epsilon, delta=delta).cut
    assert 0.99 * delta <= beyond(cut) <= delta * (1 + 1e-3)  # 1e-3: the grid of the uniform part
    assert beyond(cut - 1) > delta


def test_the_cost_is_what_was_asked_for():
    assert dp.epsilon(Tulap(epsilon=0.5).event, delta=0) <= 0.5
    assert dp.epsilon(Tulap(epsilon=0.5, delta=1e-3).event, delta=1e-3) <= 0.5


def test_the_error_is_a_quantile():
    mechanism = Tulap(epsilon=0.7, delta=0.01)
    assert float(mechanism.cdf(mechanism.error(0.9)) - mechanism.cdf(-mechanism.error(0.9))) == pytest.approx(0.9)


def test_next_to_no_noise_is_half_a_unit():
    assert abs(Tulap(epsilon=1e6).release(3, rng=1).value - 3) <= 0.5
    assert abs(Tulap(epsilon=1e6, delta=1e-9).release(3, rng=1).value - 3) <= 0.5


@pytest.mark.parametrize(
    ("options", "data", "said"),
    [
        ({"epsilon": 0.1, "delta": 0.2}, 1, "at most epsilon"),
        ({"epsilon": 1e-18}, 1, "at least 2.-50"),
        ({"epsilon": 1.0}, [1, 2], "max_size=1"),
        ({"epsilon": 1.0}, 1.5, "whole numbers"),
    ],
)
def test_public_mistakes_are_named(options, data, said):
    with pytest.raises(ValueError, match=said):
        Tulap(**options).release(data)
