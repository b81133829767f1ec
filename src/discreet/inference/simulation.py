"""Null laws by parametric simulation: what a test would have shown of data like these if the null hypothesis held.

Data are drawn from the model that the noisy totals fit, with the noise that the mechanism adds, and put through the
same function as the released totals. All of it is post-processing: the draws are from a public stream of a fixed seed,
so that one release has one p-value. Reference: Gaboardi, Lim, Rogers and Vadhan (2016), Algorithm 1; for intervals,
Ferrando, Wang and Sheldon (2022).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import choice
from discreet.mechanisms.budget import AdditiveMechanism

__all__ = ["Array", "noise_like", "public_generator", "simplex", "tail_probability", "toward"]

Array = NDArray[Any]

_SEED = 1710  # Arbuthnot's test of the sexes of the christened; any public number would do
_FARTHEST = 40  # of a discrete Gaussian, in deviations: the mass beyond is below 1e-300


def public_generator() -> np.random.Generator:
    """The same public draws for every test: no record, and no noise, is near them."""
    return np.random.default_rng(_SEED)


def noise_like(mechanism: AdditiveMechanism, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Numbers with the law of a mechanism's noise, from a public stream: for simulation, never for a release."""
    return np.asarray(choice("mechanism", type(mechanism).__name__, _LAWS)(mechanism, shape, generator))


def _discrete_laplace(mechanism: Any, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    stop = -np.expm1(-1 / mechanism.scale)
    return np.asarray(generator.geometric(stop, shape) - generator.geometric(stop, shape))


def _discrete_gaussian(mechanism: Any, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    reach = int(_FARTHEST * mechanism.sigma) + 1
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * mechanism.sigma**2))
    edges = np.cumsum(weights / weights.sum())
    return np.asarray(np.searchsorted(edges, generator.random(shape) * edges[-1], side="right") - reach)


_LAWS: dict[str, Callable[[Any, tuple[int, ...], np.random.Generator], Array]] = {
    "Laplace": lambda mechanism, shape, generator: generator.laplace(0.0, mechanism.scale, shape),
    "Gaussian": lambda mechanism, shape, generator: generator.normal(0.0, mechanism.sigma, shape),
    "DiscreteLaplace": _discrete_laplace,
    "DiscreteGaussian": _discrete_gaussian,
}


def tail_probability(observed: Array, simulated: Array) -> Array:
    """The Monte Carlo p-value (1 + #{T* ≥ T}) / (1 + B), with the B simulated statistics on the last axis.

    It is never zero, and a test of this level is exact where the null law is: Davison and Hinkley (1997), section 4.2.

    >>> float(tail_probability(np.array(3.0), np.array([1.0, 2.0, 4.0])))
    0.5
    """
    near = 1e-9 * np.maximum(1.0, np.abs(observed))[..., None]  # what is equal but for rounding counts as equal
    return np.asarray((1 + (simulated >= observed[..., None] - near).sum(-1)) / (1 + simulated.shape[-1]))


def toward(statistic: Array, alternative: str) -> Array:
    """The signed statistic turned so that large values speak for the alternative."""
    turns: dict[str, Callable[[Array], Array]] = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}
    return choice("alternative", alternative, turns)(statistic)


def simplex(counts: Array) -> Array:
    """The nearest counts that are not negative and have the same total (at least 1), along the last axis.

    >>> simplex(np.array([5.0, -1.0, 2.0])).tolist()
    [4.5, 0.0, 1.5]
    """
    total = np.maximum(counts.sum(-1, keepdims=True), 1.0)
    ordered = -np.sort(-counts, axis=-1)
    excess = (np.cumsum(ordered, axis=-1) - total) / np.arange(1, counts.shape[-1] + 1)
    last = np.maximum((ordered > excess).sum(-1, keepdims=True) - 1, 0)
    nearest = np.maximum(counts - np.take_along_axis(excess, last, -1), 0.0)
    # beyond 2^53 a total of 1 is lost in rounding: evenly then, since there must be a law
    return np.asarray(np.where(nearest.sum(-1, keepdims=True) > 0, nearest, total / counts.shape[-1]))
