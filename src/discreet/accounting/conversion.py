r"""From Rényi divergences to (epsilon, delta), tightly.

If :math:`D_\alpha(P\|Q) \le r(\alpha)` then for every order

.. math:: \delta \le \frac{e^{(\alpha-1)(r(\alpha)-\epsilon)}}{\alpha}\left(1-\frac1\alpha\right)^{\alpha-1}
          \quad\text{and}\quad
          \epsilon \le r(\alpha) + \log\frac{\alpha-1}{\alpha} - \frac{\log\delta + \log\alpha}{\alpha-1}.

Reference: Canonne, Kamath and Steinke (2020), Proposition 12; Asoodeh et al. (2021). The older
:math:`\epsilon = r(\alpha) + \log(1/\delta)/(\alpha-1)` of Mironov (2017) is what many slides show.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.outward import FLOOR

__all__ = ["rdp_to_delta", "rdp_to_epsilon"]

_UP = 1 + 1e-12  # rounds outward


def rdp_to_epsilon(orders: ArrayLike, curve: ArrayLike, delta: float) -> float:
    """Smallest epsilon that any order of the curve proves at delta > 0.

    >>> rdp_to_epsilon([2.0, 4.0], [0.1, 0.2], delta=1.0)
    0.0
    """
    alpha, r = np.asarray(orders, float), np.asarray(curve, float)
    price = (-math.log(delta) - np.log(alpha)) / (alpha - 1)
    with np.errstate(over="ignore"):  # beyond floats an order proves nothing
        values = r + np.log1p(-1 / alpha) + price
        # more than the sum can have lost
        values = values + 1e-15 * (np.abs(values) + np.abs(r) + np.abs(price) + 1 / alpha)
    return float(max(0.0, np.min(values)))


def rdp_to_delta(orders: ArrayLike, curve: ArrayLike, epsilon: float) -> float:
    """Smallest delta that any order of the curve proves at epsilon ≥ 0."""
    alpha, r = np.asarray(orders, float), np.asarray(curve, float)
    with np.errstate(over="ignore", invalid="ignore"):
        logs = (alpha - 1) * (r - epsilon + np.log1p(-1 / alpha)) - np.log(alpha)
        logs = logs + 1e-15 * ((alpha - 1) * (np.abs(r) + epsilon + 1 / alpha) + np.log(alpha))  # the same
    logs = np.where(np.isnan(logs), np.inf, logs)  # infinities of both signs: nothing is proved
    return float(min(1.0, math.exp(min(0.0, float(np.min(logs)))) * _UP + FLOOR))
