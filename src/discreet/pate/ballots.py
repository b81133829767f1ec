r"""The votes of one step of a generator's training: many questions at once, one Gaussian release.

Each of the teachers casts one vote for each of q questions. A record more or less changes one teacher, which moves one
vote of every question: √2 in L2 a question, √(2q) together, and twice that where a record is replaced, since it may
leave one teacher and enter another. The noisy counts of a step are one Gaussian release; whatever is made of them (the
largest, whether it is large enough, a mean) is post-processing. So q questions cost what q answers of ``GNMax`` do:

.. math:: \text{Gaussian}\bigl(\sigma / \sqrt{2q}\bigr) = q \times \text{Gaussian}\bigl(\sigma / \sqrt 2\bigr)

How many steps there are is said beforehand, and the noise follows from that and the budget: nothing that training shows
can make it longer, shorter or dearer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adjacency import Adjacency, changed_records
from discreet.errors import whole
from discreet.events import Event
from discreet.mechanisms.budget import AdditiveMechanism, Budget
from discreet.random import Rng

__all__ = ["Ballots"]


@dataclass(frozen=True)
class Ballots:
    """``steps`` ballots of ``questions`` with ``options`` each, which together cost ``budget``.

    >>> ballots = Ballots(Budget(epsilon=1.0, delta=1e-5, noise="gaussian"), steps=100, questions=8, options=2)
    >>> print(ballots.event)
    100 x Gaussian(noise_multiplier=37.3063)
    >>> round(ballots.deviation)
    149
    """

    budget: Budget
    steps: int
    questions: int
    options: int
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("questions", 1), ("options", 2)):
            whole(name, getattr(self, name), low=least)
        if self.adjacency not in (Adjacency.ADD_REMOVE, Adjacency.REPLACE):
            raise ValueError(f"adjacency is {str(self.adjacency)!r}, but must be 'add-remove' or 'replace'.")

    @cached_property
    def mechanism(self) -> AdditiveMechanism:
        """The noise on one step's counts."""
        teachers = changed_records(self.adjacency)  # whose votes a neighbour moves
        return self.budget.part(1 / self.steps).additive(
            2 * teachers * self.questions,
            self.questions * self.options,
            square=2 * teachers**2 * self.questions,
            adjacency=self.adjacency,
        )

    @property
    def event(self) -> Event:
        """The cost of all steps."""
        return self.mechanism.event * self.steps

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a count, in votes."""
        return self.mechanism.deviation

    def noisy(self, votes: NDArray[Any], rng: Rng) -> NDArray[np.float64]:
        """The noisy counts of one step, (questions, options), of votes for an option each, (teachers, questions)."""
        counts = np.stack([(votes == option).sum(axis=0) for option in range(self.options)], axis=1)
        if counts.shape != (self.questions, self.options):
            raise ValueError("The votes are not one for each question of a ballot.")
        return np.asarray(self.mechanism.draw(counts.astype(np.float64), rng))
