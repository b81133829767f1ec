"""What a release may cost: read once, divided, and turned into noise or a choice.

``epsilon`` alone is pure differential privacy (``delta`` is ``None`` or 0, which mean the same everywhere); with
``delta`` it is approximate; ``rho`` is zero-concentrated. Every room reads these three words through ``Budget`` and
asks it for mechanisms, so that a budget means one thing whoever spends it.

Decision 132.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

from discreet import events
from discreet.adjacency import Adjacency
from discreet.errors import choice, number, positive
from discreet.errors import whole as whole_number
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.grid import above, double_root_above
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.parameters import one_of, store

__all__ = ["AdditiveMechanism", "Budget", "Kind", "Noise"]

AdditiveMechanism: TypeAlias = Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian
Noise = Literal["auto", "laplace", "gaussian"]
Kind = Literal["additive", "selecting", "keys"]

_INSIDE = 1 - 2.0**-40  # what is calibrated stays this far inside, so that no rounding of the account can exceed it


@dataclass(frozen=True, slots=True)
class Budget:
    """What a release may cost: ``epsilon`` (and ``delta``), or ``rho``; ``noise`` is the preferred kind.

    ``noise="gaussian"`` is the continuous Gaussian and nothing else: a part of (epsilon, delta) that ``shares`` or
    ``part`` made for Gaussian noise is such a budget, since only the costs of Gaussians add up exactly to what they
    were cut from.

    >>> budget = Budget(epsilon=1.0, delta=0)
    >>> budget.pure, budget.delta is None, budget.norm
    (True, True, 'l1')
    >>> type(budget.additive(1, whole=True)).__name__, type(Budget(rho=0.5).additive(1)).__name__
    ('DiscreteLaplace', 'Gaussian')
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    noise: Noise = "auto"

    def __post_init__(self) -> None:
        given = one_of(epsilon=self.epsilon, rho=self.rho)
        store(self, **{given: positive(given, getattr(self, given))})
        if self.delta is not None:
            delta = number("delta", self.delta, low=0, high=1, open_high=True)
            if delta and given == "rho":
                raise ValueError("delta given with rho, but it belongs with epsilon.")
            store(self, delta=delta or None)
        if self.noise not in ("auto", "laplace", "gaussian"):
            raise ValueError(f"noise is {self.noise!r}, but must be 'auto', 'laplace' or 'gaussian'.")
        if self.noise == "gaussian" and self.pure:
            raise ValueError("noise is 'gaussian', but that needs delta= or rho=.")
        if self.noise == "laplace" and self.rho is not None:
            raise ValueError("noise is 'laplace', but rho= is for Gaussian noise: give epsilon=.")

    @property
    def pure(self) -> bool:
        """Whether it is epsilon alone."""
        return self.rho is None and self.delta is None

    @property
    def gaussian(self) -> bool:
        """Whether ``additive`` gives Gaussian noise."""
        return choice("noise", self.noise, {"auto": True, "gaussian": True, "laplace": False}) and not self.pure

    @property
    def norm(self) -> Literal["l1", "l2"]:
        """In which norm ``additive`` needs the sensitivity."""
        return "l2" if self.gaussian else "l1"

    @property
    def noise_multiplier(self) -> float:
        """The noise multiplier (deviation over L2 sensitivity) of one Gaussian release that takes the whole budget."""
        if self.rho is not None:
            return 1 / math.sqrt(2 * self.rho)
        if self.pure or self.epsilon is None or self.delta is None:
            raise ValueError("epsilon is given alone, but Gaussian noise needs delta= or rho=.")
        return _noise_multiplier(self.epsilon, self.delta)

    def part(self, share: float) -> Budget:
        """A share of it, from 0 to 1; of (epsilon, delta), for Gaussian noise, of which shares add up exactly.

        >>> Budget(rho=0.5).part(0.25), Budget(epsilon=2.0).part(0.5).epsilon
        (Budget(epsilon=None, delta=None, rho=0.125, noise='auto'), 1.0)
        """
        share = number("share", share, low=0, high=1, open_low=True)
        if self.rho is not None:
            return Budget(rho=self.rho * share, noise=self.noise)
        if not self.gaussian:
            return Budget(epsilon=positive("epsilon", self.epsilon) * share, noise=self.noise)
        return Budget(rho=share / (2 * self.noise_multiplier**2), noise="gaussian")

    def divide(self, count: int) -> list[Budget]:
        """``count`` equal parts, which may pay for anything: of (epsilon, delta) both are divided."""
        count = whole_number("count", count, low=1)
        epsilon, delta, rho = (None if x is None else x / count for x in (self.epsilon, self.delta, self.rho))
        return [Budget(epsilon, delta, rho, self.noise)] * count

    def shares(self, kinds: Sequence[Kind]) -> list[Budget]:
        """Equal parts, one for each entry of ``kinds``; with ``delta``,
        additive ones take the better of the two noises.
        """
        if not kinds:
            return []
        if "keys" in kinds and self.delta is None:
            raise ValueError(
                "delta is missing, but a group-by on unlisted columns selects its keys privately, which needs one: "
                "give epsilon and delta, or declare the column's categories (in a schema file, categories = [...])."
            )
        if self.rho is not None:
            return [Budget(rho=self.rho / len(kinds))] * len(kinds)
        part = positive("epsilon", self.epsilon) / len(kinds)
        gaussian = self._gaussian_share(kinds.count("additive"), part, "keys" in kinds)
        pure = Budget(epsilon=part)
        rules = {"additive": gaussian or pure, "selecting": pure}
        if "keys" in kinds:
            rules["keys"] = Budget(epsilon=part, delta=(self.delta or 0) / (2 if gaussian else 1))
        return [rules[kind] for kind in kinds]

    def _gaussian_share(self, count: int, part: float, with_keys: bool) -> Budget | None:
        """Each of ``count`` parts with Gaussian noise, if that is asked for or has the smaller standard deviation."""
        if self.delta is None or not count or not self.gaussian:
            return None
        together = Budget(epsilon=part * count, delta=self.delta / (2 if with_keys else 1))
        # Laplace noise has deviation √2/part, Gaussian noise √count·sigma: independent Gaussians compose exactly.
        if self.noise == "auto" and math.sqrt(2) / part <= math.sqrt(count) * together.noise_multiplier:
            return None
        return together.part(1 / count)

    def additive(
        self,
        sensitivity: Fraction | float,
        size: int = 1,
        *,
        square: Fraction | float | None = None,
        whole: bool = False,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
    ) -> AdditiveMechanism:
        """Noise for ``size`` numbers that one record moves by ``sensitivity``; whole noise for ``whole`` ones, where
        better.

        ``sensitivity`` is in L1, and bounds L2 too unless ``square``, that of the change in L2, is given.

        Rounded Laplace noise is worse than discrete Laplace noise at any price. Rounding adds 1/12 to the variance of
        Gaussian noise, while the discrete law's price is known only as zCDP for several numbers: it pays below a
        deviation of 1, for a budget that is zCDP.
        """
        reach = Fraction(sensitivity)
        return _additive(self, reach, reach**2 if square is None else Fraction(square), max(size, 1), whole, adjacency)

    def selection(self, count: int = 1, *, bounded_range: bool = True) -> float:
        """The epsilon of each of ``count`` selections, whose events add up to the budget and no more.

        A selection of range ε is ε²/8-zCDP (Cesar and Rogers 2021); any that is ε-DP is ε²/2-zCDP, which holds where
        one record meets several that together are ε-DP (``bounded_range=False``).
        """
        if self.noise == "gaussian":
            raise ValueError("The budget is for Gaussian noise, but a selection has none: leave noise= out.")
        return _selection(self, whole_number("count", count, low=1), bounded_range)


@lru_cache(maxsize=256)
def _noise_multiplier(epsilon: float, delta: float) -> float:
    from discreet.accounting.gaussian import gaussian_noise_multiplier

    return gaussian_noise_multiplier(epsilon=epsilon, delta=delta * _INSIDE)


@lru_cache(maxsize=1024)
def _additive(
    budget: Budget, sensitivity: Fraction, square: Fraction, size: int, whole: bool, adjacency: Adjacency
) -> AdditiveMechanism:
    if not budget.gaussian:
        if whole:
            return DiscreteLaplace(
                sensitivity=int(sensitivity), epsilon=budget.epsilon, max_size=size, adjacency=adjacency
            )
        return Laplace(sensitivity=above(sensitivity), epsilon=budget.epsilon, max_size=size, adjacency=adjacency)
    reach, rho = double_root_above(square), budget.rho
    if (
        whole
        and rho is not None
        and budget.noise == "auto"
        and reach < math.sqrt(2 * rho)
        and (size > 1 or reach.is_integer())
    ):
        return DiscreteGaussian(sensitivity=reach, rho=rho, max_size=size, adjacency=adjacency)
    return Gaussian(
        sensitivity=reach, epsilon=budget.epsilon, delta=budget.delta, rho=rho, max_size=size, adjacency=adjacency
    )


@lru_cache(maxsize=256)
def _selection(budget: Budget, count: int, bounded_range: bool) -> float:
    if budget.rho is not None:
        return math.sqrt((8 if bounded_range else 2) * budget.rho / count) * _INSIDE
    epsilon = positive("epsilon", budget.epsilon)
    alone = epsilon if count == 1 else epsilon / count * (1 - 2.0**-50)
    if budget.delta is None or not bounded_range:
        return alone
    from discreet.accounting import calibrate

    def family(each: float) -> events.Event:
        return events.Exponential(epsilon=each) * count

    return max(alone, calibrate(family, epsilon=epsilon, delta=budget.delta, start=alone) * _INSIDE)
