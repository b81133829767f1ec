r"""The Rényi divergence of the sampled Gaussian mechanism, of any real order above one, certified from above.

The divergence of order :math:`\alpha = 1 + c` is :math:`K(c)/c` for the log-moment-generating function K of the privacy
loss, that of a mixture of two Gaussians against one of them (against another mixture, where a record is replaced). K is
computed by the certified quadrature of :mod:`discreet.accounting.pld.mixtures`, whose error is added.

Reference: Mironov, Talwar and Zhang (2019), who compute it at whole orders by the binomial theorem.
"""

from __future__ import annotations

import numpy as np

from discreet.accounting.arrays import Array
from discreet.accounting.pld.mixtures import Kind, Mixtures
from discreet.accounting.pld.pairs import GaussianShift, Pair
from discreet.accounting.pld.replaced import ReplaceSampledGaussian
from discreet.accounting.pld.sampling import Reversed, Sampled
from discreet.errors import NotCertified

__all__ = ["sampled_gaussian_curve"]


def sampled_gaussian_curve(pair: Pair, alpha: Array) -> Array | None:
    """Upper bounds at the orders ``alpha`` in one direction, or none for a pair that is no sampled Gaussian.

    >>> sampled_gaussian_curve(Sampled(0.01, GaussianShift(1.0)), np.array([2.0])).round(6).tolist()
    [0.000172]
    >>> sampled_gaussian_curve(GaussianShift(1.0), np.array([2.0])) is None
    True
    """
    match pair:
        case Sampled(rate, GaussianShift(mu)) if mu > 0 and 0 < rate < 1:
            return _mixture_curve("remove", rate, 1 / mu, alpha)
        case Reversed(Sampled(rate, GaussianShift(mu))) if mu > 0 and 0 < rate < 1:
            return _mixture_curve("add", rate, 1 / mu, alpha)
        case ReplaceSampledGaussian(rate, sigma):
            return _mixture_curve("replace", rate, sigma, alpha)
    return None


def _mixture_curve(kind: Kind, rate: float, sigma: float, alpha: Array) -> Array:
    mixtures = Mixtures(kind, np.array([rate]), np.array([sigma]), np.ones(1))
    result = np.full(len(alpha), np.inf)
    for i, order in enumerate(alpha):
        c = float(order - 1)
        try:
            rule = mixtures.rule(c, 0.0, 34.0)
        except NotCertified:
            break  # higher orders are harder still; infinity is a valid bound
        slack = float(rule.error(np.zeros(1))[0, 0] + rule.log_m_rounding[0])
        result[i] = (max(float(rule.log_m[0]), 0.0) + slack) / c
    return result
