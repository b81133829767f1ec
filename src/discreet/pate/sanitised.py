"""The data-dependent cost as a figure that may be shown: with noise by its smooth sensitivity, at a price of its
own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import number, positive
from discreet.mechanisms import Laplace, SmoothSensitivity
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.pate import smooth
from discreet.pate.aggregation import Aggregator, GNMax, VoteAnswers
from discreet.pate.confident import InteractiveGNMax, Tested
from discreet.pate.gnmax_cost import data_dependent_cost, log_wrong, test_margins

__all__ = ["CostFigure", "SanitisedCost"]

_RESOLUTION = 2.0**-40
_LEAST = 2.0**-30  # of a smooth bound, so that it has a logarithm


class CostFigure(NamedTuple):
    """A noisy data-dependent divergence at an order that was fixed beforehand, and a limit it stays below with
    ``confidence``. It may be shown; it is a statement about one data set and no guarantee.
    """

    order: float
    divergence: float
    limit: float
    confidence: float

    def epsilon(self, delta: float) -> float:
        """The figure in terms of (epsilon, delta), by the usual conversion; not a guarantee."""
        from discreet.accounting.conversion import rdp_to_epsilon

        return rdp_to_epsilon([self.order], [max(0.0, self.divergence)], delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class SanitisedCost(Mechanism[CostFigure]):
    r"""Releases the data-dependent cost of ``answers`` that an ``aggregator`` gave, at one ``order``.

    ``release(data)`` takes the counts (with ``InteractiveGNMax``, the pair) that gave the answers. The figure has
    Laplace noise in proportion to its smooth sensitivity, so it is unbiased; its limit uses the logarithm of that
    sensitivity, which a neighbour moves by at most the smoothness, released as well.

    Guarantee: (``epsilon``, ``delta``)-DP for the figure and ``epsilon_limit``-DP for the limit, under add-remove.
    Refused for ``LNMax`` and for soft votes, whose smooth sensitivity is not proved here.

    Reference: Papernot et al. (2018), Appendix B; Nissim, Raskhodnikova and Smith (2007), Lemma 2.9.

    >>> votes, counts = GNMax(sigma=40.0, queries=1), np.array([[240, 6, 4]])
    >>> figure = SanitisedCost(aggregator=votes, answers=votes.release(counts, rng=1).value, order=8.0)
    >>> print(figure.event)
    ApproxDP(epsilon=0.5, delta=1e-06) + Laplace(noise_multiplier=4)
    """

    aggregator: Aggregator
    answers: VoteAnswers
    order: float
    epsilon: float = 0.5
    delta: float = 1e-6
    epsilon_limit: float = 0.25
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not isinstance(self.aggregator, (GNMax, Tested)):
            raise ValueError(
                f"aggregator is a {type(self.aggregator).__name__}, but the smooth sensitivity of a cost is proved for "
                "Gaussian noise only: GNMax, ConfidentGNMax, InteractiveGNMax."
            )
        store(
            self,
            order=number("order", self.order, low=1, high=1e4, open_low=True),
            epsilon_limit=positive("epsilon_limit", self.epsilon_limit),
            delta=number("delta", self.delta, low=0, high=1, open_low=True, open_high=True),
            confidence=number("confidence", self.confidence, low=0, high=1, open_low=True, open_high=True),
        )
        assert self._figure
        assert self._scale

    @property
    def _figure(self) -> SmoothSensitivity:
        return SmoothSensitivity(
            epsilon=self.epsilon,
            delta=self.delta,
            resolution=_RESOLUTION,
            adjacency=Adjacency.ADD_REMOVE,
            unit=self.unit,
        )

    @property
    def _scale(self) -> Laplace:
        return Laplace(sensitivity=self._figure.beta, epsilon=self.epsilon_limit, max_size=1, unit=self.unit)

    @property
    def event(self) -> events.Event:
        """The price of the figure and of its limit."""
        return self._figure.event + self._scale.event

    def check(self, data: Any) -> None:
        """Refuse what is publicly not the votes that gave these answers, and soft votes."""
        counts = data[0] if isinstance(self.aggregator, InteractiveGNMax) else data
        self.aggregator.check(data)
        if counts.dtype.kind == "f":
            raise ValueError("counts are shares of votes, but the smooth sensitivity is proved for whole votes only.")
        if len(self.answers.labels) != counts.shape[0]:
            raise ValueError(f"There are {len(self.answers.labels)} answers to {counts.shape[0]} queries.")
        for part in self._parts(counts.shape[1], np.empty(0), np.empty(0)):
            smooth.changes(part)  # refuses settings for which the bound is not proved

    def draw(self, data: Any, rng: random.Rng) -> CostFigure:
        """The noisy divergence and its limit."""
        figure, scale = self._figure, self._scale
        exact = data_dependent_cost(self.aggregator, data, self.answers, [self.order]).curve[0]
        bound = max(_LEAST, smooth.smooth_bound(self._margins(data), figure.beta))
        noisy = figure.draw((exact, bound), rng)
        log_bound = scale.draw(math.log(bound), rng)
        each = 1 - (1 - self.confidence) / 2
        beyond = figure.error(each, smooth_bound=math.exp(min(700.0, log_bound + scale.error(each))))
        return CostFigure(self.order, noisy, noisy + beyond, self.confidence)

    def _margins(self, data: Any) -> list[smooth.Margins]:
        aggregator = self.aggregator
        assert isinstance(aggregator, (GNMax, Tested))
        counts = np.asarray(data[0] if isinstance(aggregator, InteractiveGNMax) else data)
        tests = test_margins(aggregator, data, self.answers) if isinstance(aggregator, Tested) else np.empty(0)
        return self._parts(counts.shape[1], log_wrong(counts[self.answers.answered], aggregator.sigma), tests)

    def _parts(self, classes: int, log_q: Any, tests: Any) -> list[smooth.Margins]:
        aggregator = self.aggregator
        assert isinstance(aggregator, (GNMax, Tested))
        parts = [smooth.answers(log_q, aggregator.sigma, classes, self.order)]
        if isinstance(aggregator, Tested):
            parts.append(smooth.tests(tests, aggregator.sigma_threshold, self.order))
        return parts
