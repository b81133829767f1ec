"""Choosing among models that are there already: by public data, or by private scores of bounded sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from discreet import mechanisms
from discreet.adjacency import Adjacency
from discreet.random import RngLike
from discreet.release import ONE_RECORD, Chargeable, Operation, Release, charged
from discreet.tuning.space import Params, candidates

__all__ = ["exponential", "from_public"]

T = TypeVar("T")


def exponential(
    models: Sequence[T],
    scores: Any,
    *,
    sensitivity: float | Sequence[float],
    epsilon: float,
    monotone: bool = False,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    unit: str = ONE_RECORD,
    book: Chargeable | None = None,
    label: str = "choice of a model",
    rng: RngLike = None,
) -> Release[T]:
    """One of the models, by the exponential mechanism on private scores: larger is better.

    The models must be released already, each at its own price: the choice costs epsilon more. ``sensitivity`` is how
    far one record moves a score; with one number per model, the generalised mechanism is used, which does not let the
    most sensitive model spoil the choice for all.

    >>> exponential(["small", "large"], [10.0, 90.0], sensitivity=1.0, epsilon=1.0, rng=1).value
    'large'
    """
    operation = _mechanism(sensitivity, epsilon, monotone, adjacency, unit)
    count = len(models)
    if np.ndim(sensitivity) == 1 and len(sensitivity) != count:  # type: ignore[arg-type]
        raise ValueError(f"sensitivity has {len(sensitivity)} entries, but there are {count} models.")  # type: ignore[arg-type]
    if np.shape(scores) != (count,):
        raise ValueError(f"scores has shape {np.shape(scores)}, but there are {count} models: one score each.")
    chosen = charged(operation, scores, book=book, label=label, rng=rng)
    return Release(
        models[chosen.value],
        chosen.event,
        reproducible=chosen.reproducible,
        label=chosen.label,
        unit=chosen.unit,
        error=chosen.error,
    )


def _mechanism(sensitivity: Any, epsilon: float, monotone: bool, adjacency: Adjacency | str, unit: str) -> Any:
    shared: dict[str, Any] = {"epsilon": epsilon, "adjacency": Adjacency(adjacency), "unit": unit}
    if np.ndim(sensitivity) == 0:
        return mechanisms.Exponential(sensitivity=sensitivity, monotone=monotone, **shared)
    if monotone:
        raise ValueError("monotone is set, but the generalised mechanism compares scores, which is not monotone.")
    return mechanisms.GeneralizedExponential(sensitivities=tuple(sensitivity), **shared)


def from_public(
    train: Callable[[Params], Operation],
    space: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    public: Any,
    *,
    score: Callable[[Any, Any], float],
    repeats: int = 1,
    rng: RngLike = None,
) -> Params:
    """The parameters that do best on public data, to be transferred: no private record is read, nothing is charged.

    ``train(params)`` is the same operation that will run on the private data, noise included; ``score(model, public)``
    is any number, larger is better, averaged over ``repeats`` runs. A candidate that fails is out.
    """
    found = candidates(space)
    means = [_mean_score(train(dict(params)), public, score, repeats, rng) for params in found]
    best = max(range(len(found)), key=means.__getitem__)
    if means[best] == -math.inf:
        raise ValueError("Every candidate failed on the public data.")
    return found[best]


def _mean_score(
    operation: Operation, public: Any, score: Callable[[Any, Any], float], repeats: int, rng: RngLike
) -> float:
    total = 0.0
    for _ in range(repeats):
        try:
            total += float(score(operation.release(public, rng).value, public))
        except (ArithmeticError, ValueError, RuntimeError):
            return -math.inf
    return -math.inf if math.isnan(total) else total / repeats
