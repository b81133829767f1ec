"""Facts of mechanisms that add noise. k changes of the data are one change at k times the sensitivity."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from discreet import events as ev
from discreet.accounting.facts import LARGEST, LARGEST_MU, Facts, half_square, register, within
from discreet.accounting.outward import inverse, share, times
from discreet.accounting.pld.atoms import Atoms, DiscreteGaussianShift, binary, too_large
from discreet.accounting.pld.pairs import SMALLEST, LaplaceShift, Pair
from discreet.errors import UnsupportedEvent

__all__: list[str] = []

_MAX_ATOMS = 200_000


def _discrete_laplace_pair(event: ev.DiscreteLaplace) -> Pair:
    k, s = event.sensitivity, event.scale
    if k > _MAX_ATOMS:
        raise UnsupportedEvent(
            f"The pld accountant cannot price DiscreteLaplace of sensitivity {k}, above {_MAX_ATOMS}."
        )
    if not k / s <= LARGEST:
        return too_large()
    if k / s < SMALLEST:
        return binary(SMALLEST)
    x = np.arange(k, -1, -1)  # P is centred at 0, Q at k; the ends gather a geometric tail
    decay = math.exp(-1 / s)
    with np.errstate(under="ignore"):
        masses = np.exp(-x / s) * -math.expm1(-1 / s) / (1 + decay)
    masses[0] /= -math.expm1(-1 / s)
    masses[-1] /= -math.expm1(-1 / s)
    return Atoms((k - 2 * x) / s, masses / masses.sum(), mirrored=True)


def _discrete_gaussian_pair(event: ev.DiscreteGaussian) -> Pair:
    k, sigma = event.sensitivity, event.sigma
    if k > LARGEST_MU * sigma or sigma < 1e-3:
        return too_large()
    reach = math.ceil(min(40 * sigma, _MAX_ATOMS)) + 1
    if 2 * reach > _MAX_ATOMS:
        raise UnsupportedEvent(
            f"The pld accountant cannot price DiscreteGaussian with sigma {sigma:g}: too many atoms. "
            "Use accountant='rdp'."
        )
    x = np.arange(reach, -reach - 1, -1.0)
    with np.errstate(under="ignore"):
        masses = np.exp(-(x**2) / (2 * sigma**2))
    losses = k * (k - 2 * x) / (2 * sigma**2)
    return DiscreteGaussianShift(losses, masses / masses.sum(), rho=(k / sigma) ** 2 / 2)


def _discrete_gaussian_rho(event: ev.DiscreteGaussian) -> float:
    """As of the Gaussian: Canonne, Kamath and Steinke (2020), Proposition 5."""
    return half_square(times(inverse(event.sigma), event.sensitivity))


register(
    ev.Gaussian,
    Facts(
        mu=lambda event, adjacency: inverse(event.noise_multiplier),
        enlarged=lambda event, k: replace(event, noise_multiplier=share(event.noise_multiplier, k)),
    ),
)

register(
    ev.Laplace,
    Facts(
        pure=lambda event, adjacency: inverse(event.noise_multiplier),
        quotient=lambda event, adjacency: (1, event.noise_multiplier),
        pair=lambda event, adjacency: within(inverse(event.noise_multiplier), LARGEST, LaplaceShift),
        enlarged=lambda event, k: replace(event, noise_multiplier=share(event.noise_multiplier, k)),
    ),
)

register(
    ev.DiscreteLaplace,
    Facts(
        pure=lambda event, adjacency: times(inverse(event.scale), event.sensitivity),
        quotient=lambda event, adjacency: (event.sensitivity, event.scale),
        pair=lambda event, adjacency: _discrete_laplace_pair(event),
        enlarged=lambda event, k: replace(event, sensitivity=event.sensitivity * k),
    ),
)

register(
    ev.DiscreteGaussian,
    Facts(
        rho=lambda event, adjacency: _discrete_gaussian_rho(event),
        curve=lambda event, adjacency, orders: _discrete_gaussian_rho(event) * orders,
        pair=lambda event, adjacency: _discrete_gaussian_pair(event),
        enlarged=lambda event, k: replace(event, sensitivity=event.sensitivity * k),
    ),
)
