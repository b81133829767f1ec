"""How one budget is divided among the parts of a query, and which noise each part then uses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from discreet.errors import number, positive
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace

__all__ = ["Additive", "Budget", "Share"]

Additive: TypeAlias = Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian

Noise = Literal["auto", "laplace", "gaussian"]


@dataclass(frozen=True, slots=True)
class Share:
    """One part's budget: pure epsilon, or rho of zero-concentrated DP; a delta for the selection of keys."""

    epsilon: float | None = None
    rho: float | None = None
    delta: float | None = None

    def additive(self, sensitivity: Fraction | int, size: int, *, whole: bool = False) -> Additive:
        """Noise for numbers whose change, in L1 and so in L2, is at most ``sensitivity``; whole noise for ``whole`` numbers.

        Rounded Laplace noise is worse than discrete Laplace noise at any price. Rounding adds 1/12 to the variance of Gaussian
        noise, while the discrete law's price is known only as zCDP for several numbers: it pays below a deviation of 1.
        """
        bound, size = _above(Fraction(sensitivity)), max(size, 1)
        if self.rho is not None:
            kind = DiscreteGaussian if whole and bound < math.sqrt(2 * self.rho) else Gaussian
            return kind(sensitivity=bound, rho=self.rho, max_size=size)
        if whole:
            return DiscreteLaplace(sensitivity=int(sensitivity), epsilon=self.epsilon, max_size=size)
        return Laplace(sensitivity=bound, epsilon=self.epsilon, max_size=size)

    def selecting(self, *, one_group: bool) -> float:
        """The epsilon of a selection by scores; a unit in ``one_group`` meets a single selection, of bounded range."""
        if self.rho is not None:  # bounded range epsilon is (epsilon²/8)-zCDP; anything pure is (epsilon²/2)-zCDP
            return math.sqrt((8 if one_group else 2) * self.rho) * (1 - 2.0**-40)
        assert self.epsilon is not None
        return self.epsilon


@dataclass(frozen=True, slots=True)
class Budget:
    """``epsilon`` alone is pure DP; with ``delta``, the better of Laplace and Gaussian noise; or ``rho``."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    noise: Noise = "auto"

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("Give exactly one of epsilon= (alone for pure DP, or with delta=) and rho=.")
        if self.rho is not None and self.delta is not None:
            raise ValueError("delta given with rho, but it belongs with epsilon.")
        if self.noise not in ("auto", "laplace", "gaussian"):
            raise ValueError(f"noise is {self.noise!r}, but must be 'auto', 'laplace' or 'gaussian'.")
        if self.epsilon is not None:
            positive("epsilon", self.epsilon)
        if self.rho is not None:
            positive("rho", self.rho)
        if self.delta is not None:
            number("delta", self.delta, low=0, high=1, open_low=True, open_high=True)
        if self.noise == "gaussian" and self.delta is None and self.rho is None:
            raise ValueError("noise is 'gaussian', but that needs delta= or rho=.")
        if self.noise == "laplace" and self.rho is not None:
            raise ValueError("noise is 'laplace', but rho= is for Gaussian noise: give epsilon=.")

    def shares(self, kinds: Sequence[Literal["additive", "selecting", "keys"]]) -> list[Share]:
        """Equal parts, one for each entry of ``kinds``."""
        if not kinds:
            return []
        if "keys" in kinds and self.delta is None:
            raise ValueError("delta is missing, but a group-by on Unlisted columns selects its keys privately, which needs "
                             "delta=. Declare Categories for them, or give epsilon= and delta=.")
        if self.rho is not None:
            return [Share(rho=self.rho / len(kinds)) for _ in kinds]
        assert self.epsilon is not None
        part = self.epsilon / len(kinds)
        additive = kinds.count("additive")
        gaussian = self._gaussian(additive, part, "keys" in kinds)
        keys = (self.delta or 0) / (2 if gaussian else 1)
        rules = {"additive": gaussian or Share(epsilon=part), "selecting": Share(epsilon=part),
                 "keys": Share(epsilon=part, delta=keys)}
        return [rules[kind] for kind in kinds]

    def _gaussian(self, count: int, part: float, with_keys: bool) -> Share | None:
        """Each of ``count`` parts with Gaussian noise, if that is asked for or has the smaller standard deviation."""
        if self.delta is None or not count or self.noise == "laplace":
            return None
        from discreet.accounting.gaussian import gaussian_noise_multiplier

        sigma = gaussian_noise_multiplier(epsilon=part * count, delta=self.delta / (2 if with_keys else 1) * (1 - 2.0**-40))
        # Laplace noise has deviation √2/part, Gaussian noise √count·sigma: independent Gaussians compose exactly.
        if self.noise == "auto" and math.sqrt(2) / part <= math.sqrt(count) * sigma:
            return None
        return Share(rho=0.5 / sigma**2 / count)


def _above(x: Fraction) -> float:
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)
