"""Search spaces: the public list of candidates that a search draws from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from discreet.errors import extra, whole

__all__ = ["Params", "candidates"]

Params = dict[str, Any]


def candidates(
    space: Mapping[str, Any] | Iterable[Mapping[str, Any]], *, size: int = 32, seed: int = 0
) -> list[Params]:
    """The candidates of a space, in a fixed order: public, and known before anything is read or charged.

    A mapping from names to lists is a grid. Where an entry is a law that can be sampled (one of ``scipy.stats``),
    ``size`` candidates are drawn, by a public seed. Anything else is a list of candidates already.

    >>> candidates({"lr": [0.1, 1.0], "depth": [2]})
    [{'depth': 2, 'lr': 0.1}, {'depth': 2, 'lr': 1.0}]
    """
    if isinstance(space, Mapping):
        with extra("sklearn"):
            from sklearn.model_selection import ParameterGrid, ParameterSampler
        sampled = any(hasattr(values, "rvs") for values in space.values())
        drawn = ParameterSampler(dict(space), whole("size", size, low=1), random_state=whole("seed", seed))
        found = [dict(each) for each in (drawn if sampled else ParameterGrid(dict(space)))]
    else:
        found = [dict(each) for each in space]
    if not found:
        raise ValueError("space is empty, but must hold at least one candidate.")
    return found
