r"""How much of a record's gradient is kept: the factor, the scope, and a clip norm that may follow the data privately.

A record's gradient is cut into blocks (the whole, a layer each, or named groups), each with a clip norm of its own, and
block j is multiplied by a factor that leaves it at most :math:`C_j` long. The record then moves the sum by at most
:math:`C = \sqrt{\sum_j C_j^2}`, whatever the record holds.

Decision 72.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from discreet.errors import extra, number, positive, probability
from discreet.training.gradients.scaling import Scale

with extra("torch"):
    from torch import Tensor

__all__ = ["Clipping", "Quantile"]

SMALLEST = 1e-30  # clip norm: eight digits above the last place of the smallest numbers of single precision
Scope = Literal["flat", "per-layer"] | Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    r"""Let the clip norm follow a quantile of the gradient norms.

    After each step :math:`C \leftarrow C\exp(-\eta(\tilde b - \gamma))`, where :math:`\tilde b` is a noisy share of the
    records that were not clipped. The count is centred (each record adds ±1/2), so its sensitivity is 1/2, and it is
    released together with the sum: both cost what one Gaussian of multiplier :math:`(z_\Sigma^{-2} +
    (2\sigma_b)^{-2})^{-1/2}` costs, and the noise on the sum is widened to make that the multiplier that was asked for.
    The divisor of the share is the expected batch size.

    Reference: Andrew, Thakkar, McMahan and Ramaswamy (2021), Theorem 1.
    """

    quantile: float = 0.5
    learning_rate: float = 0.2
    count_noise: float | None = None  # standard deviation on the count; none is a twentieth of the expected batch size
    smallest: float = 1e-6
    largest: float = 1e6

    def __post_init__(self) -> None:
        probability("quantile", self.quantile)
        positive("learning_rate", self.learning_rate)
        if self.count_noise is not None:
            positive("count_noise", self.count_noise)

    def sigma(self, expected: float) -> float:
        """The standard deviation on the count."""
        return self.count_noise if self.count_noise is not None else max(1.0, expected / 20)

    def sum_multiplier(self, total: float, expected: float) -> float:
        """The noise multiplier left for the sum, so that sum and count together cost ``total``."""
        share = 1 / (2 * self.sigma(expected))
        left = total**-2 - share**2
        if left <= 0:
            raise ValueError(
                f"count_noise is {self.sigma(expected):g}, but must exceed {total / 2:g}: the count alone would "
                f"cost more than the noise multiplier {total:g} allows."
            )
        return float(left**-0.5)

    def next_norm(self, norm: float, noisy_centred_count: float, expected: float) -> float:
        """The clip norm of the next step."""
        share = noisy_centred_count / expected + 0.5
        step = max(-1.0, min(1.0, self.learning_rate * (share - self.quantile)))
        return min(self.largest, max(self.smallest, norm * math.exp(-step)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Clipping:
    """What happens to each record's gradient.

    ``scope``
        ``"flat"``: one norm for the whole gradient. ``"per-layer"``: every module's own parameters are clipped to
        max_grad_norm/√layers. A mapping of parameter-name prefixes to norms: groups; ``max_grad_norm`` is then √Σnorm².
    ``factor``
        ``"abadi"``: min(1, C/‖g‖). ``"automatic"``: C/(‖g‖ + ``stability``), which needs no tuning of C
        (Bu, Wang, Zha and Karypis 2022).
    ``adaptive``
        A ``Quantile``, for the flat scope.
    ``scale``
        A ``PastGradients`` or a ``PublicScale``: gradients are multiplied by it before they are clipped, and what is
        released is divided by it. Every record's gradient is formed for it.

    >>> Clipping(scope={"features": 3.0, "head": 4.0}).max_grad_norm
    5.0
    """

    max_grad_norm: float = 1.0
    scope: Scope = "flat"
    factor: Literal["abadi", "automatic"] = "abadi"
    stability: float = 0.01
    adaptive: Quantile | None = None
    scale: Scale | None = None

    def __post_init__(self) -> None:
        norm = self.max_grad_norm
        if isinstance(self.scope, Mapping):
            norm = math.sqrt(math.fsum(positive(f"scope[{k!r}]", v) ** 2 for k, v in self.scope.items()))
        elif self.scope not in ("flat", "per-layer"):
            raise ValueError(
                f"scope is {self.scope!r}, but must be 'flat', 'per-layer' or a mapping of prefixes to norms."
            )
        if self.factor not in ("abadi", "automatic"):
            raise self._unknown_factor()
        if self.adaptive is not None and (self.scope != "flat" or self.factor != "abadi"):
            raise ValueError("adaptive is set, but needs scope='flat' and factor='abadi'.")
        if not isinstance(self.scale, Scale | None):
            raise ValueError(f"scale is a {type(self.scale).__name__}, but must be a Scale, such as PastGradients().")
        number("stability", self.stability, low=0, high=math.inf, open_low=True, open_high=True)
        if positive("max_grad_norm", norm) < SMALLEST:
            raise ValueError(
                f"max_grad_norm is {norm:g}, but must be at least {SMALLEST:g}: sums and noise are numbers of single "
                "precision, which end soon below. Multiply the loss by a constant instead."
            )
        object.__setattr__(self, "max_grad_norm", norm)

    def blocks(self, names: list[str]) -> tuple[list[int], list[float]]:
        """The block of each parameter, and each block's share of the clip norm (the squares of the shares add to
        one)."""
        if self.scope == "flat":
            return [0] * len(names), [1.0]
        if self.scope == "per-layer":
            keys = [name.rpartition(".")[0] for name in names]
            order = list(dict.fromkeys(keys))
            return [order.index(key) for key in keys], [1 / math.sqrt(len(order))] * len(order)
        assert isinstance(self.scope, Mapping)
        order = list(self.scope)
        block = []
        for name in names:
            found = [prefix for prefix in order if name == prefix or name.startswith(f"{prefix}.") or prefix == ""]
            if not found:
                raise ValueError(
                    f"scope has no group for parameter {name!r}, but every trained parameter needs one: add its "
                    "module's name, or '' for the rest."
                )
            block.append(order.index(max(found, key=len)))
        return block, [norm / self.max_grad_norm for norm in self.scope.values()]

    def terms(self, clip_norm: float, scale: float = 1.0) -> tuple[float, float, float]:
        """What ``factors`` are made of: the clip norm, what is added to a norm before it divides that, and the most."""
        match self.factor:
            case "abadi":
                return clip_norm, 0.0, scale
            case "automatic":
                return clip_norm, self.stability / scale, math.inf
        raise self._unknown_factor()

    def full_weight(self, share: float) -> float:
        """The norm up to which a gradient of a block counts for what it is; ``share`` is the block's."""
        match self.factor:
            case "abadi":
                return self.max_grad_norm * share
            case "automatic":
                return self.stability
        raise self._unknown_factor()

    def _unknown_factor(self) -> ValueError:
        return ValueError(f"factor is {self.factor!r}, but must be 'abadi' or 'automatic'.")

    def factors(self, squares: Tensor, clip_norm: float, scale: float = 1.0) -> Tensor:
        """``scale`` times what gradients are multiplied by whose squared norms are ``scale``² times these."""
        norm, more, most = self.terms(clip_norm, scale)
        # a zero norm gives infinity, and then the whole gradient
        lengths = squares.sqrt().add_(more).reciprocal_() if more else squares.rsqrt()
        return lengths.mul_(norm).clamp_(max=most)
