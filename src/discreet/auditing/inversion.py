r"""Model inversion: can a hidden attribute of a person be told from a released model and what else is known of them?

The attacker knows the model f, a person's other attributes x and outcome y, the public shares p(v) of the hidden
attribute's values, and how far the model errs. They choose the likeliest value,

.. math:: \arg\max_v\; p(v)\; \pi\bigl(y, f(x, v)\bigr),

with π the chance of outcome y where the model says f(x, v). What the same attacker guesses *without* the model, the
likeliest value alone, is the measure. Only what exceeds it is leaked, and some of that is science, not a breach:
it holds for people who were never in the data, too.

Reference: Fredrikson, Lantz, Jha, Lin, Page and Ristenpart (2014), "Privacy in pharmacogenetics".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import positive

__all__ = ["Inversion", "invert", "normal_errors"]

Likelihood = Callable[[NDArray[Any], NDArray[Any]], ArrayLike]


def normal_errors(deviation: float) -> Likelihood:
    """log π for outcomes that are normal around the prediction."""
    scale = positive("deviation", deviation)
    return lambda outcome, predicted: -(((outcome - predicted) / scale) ** 2) / 2


@dataclass(frozen=True, eq=False)
class Inversion:
    """The attacker's guesses, and what they would be without the model."""

    guesses: NDArray[Any]
    without: Any

    def accuracy(self, truth: ArrayLike) -> tuple[float, float]:
        """How often the guess is right, with the model and without it."""
        known = np.asarray(truth)
        return float((self.guesses == known).mean()), float((known == self.without).mean())


def invert(
    predict: Callable[[Any], ArrayLike],
    people: Callable[[Any], Any],
    outcomes: ArrayLike,
    shares: Mapping[Any, float],
    likelihood: Likelihood,
) -> Inversion:
    """Guess a hidden attribute of each person.

    ``people(v)`` gives everybody's attributes as they would be if the hidden one were v; ``predict`` is the model.
    ``shares`` are the public shares of the values, ``likelihood(outcomes, predictions)`` gives log π.

    >>> people = lambda v: np.array([[1.0, v], [2.0, v]])
    >>> found = invert(lambda X: X.sum(1), people, [1.1, 2.9], {0: 0.5, 1: 0.5}, normal_errors(0.5))
    >>> found.guesses.tolist(), found.accuracy([0, 1])
    ([0, 1], (1.0, 0.5))
    """
    if not shares or min(shares.values()) < 0 or sum(shares.values()) <= 0:
        raise ValueError("shares must hold a share of at least zero for each value, and some above.")
    values, seen = list(shares), np.asarray(outcomes)
    with np.errstate(divide="ignore"):
        prior = np.log([shares[v] for v in values])
    logs = np.array(
        [np.asarray(likelihood(seen, np.asarray(predict(people(v))))) + p for v, p in zip(values, prior, strict=True)]
    )
    best = np.argmax(np.nan_to_num(logs, nan=-np.inf), axis=0)
    return Inversion(np.array(values, dtype=object)[best], values[int(np.argmax(prior))])
