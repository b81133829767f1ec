r"""The ratio of a known signal to unknown noise, from one run: an exact bound in finite samples, without thresholds.

A run is observed through M numbers, each in units of the noise that is claimed for it,

.. math:: y_i = A s_i + \nu g_i,\qquad g_i \sim \mathcal N(0, 1)\ \text{independent},

where :math:`s_i` is what canaries add (known afterwards: their coins and the steps they were drawn for). The claim is
:math:`A \le 1` (nobody adds more than a clip norm) and :math:`\nu \ge 1` (the noise is there), so that
:math:`\theta = A/\nu \le 1`. The run's noise multiplier, in units of what a record really adds, is the claimed one
divided by :math:`\theta`.

**Theorem.** Let :math:`U = \langle s, y\rangle/\|s\|`, :math:`V = \|y\|^2 - U^2` and
:math:`T = U / \sqrt{V/(M-1)}`. With :math:`G_\theta(t) = \Pr[\,t' \ge t\,]` for :math:`t'` noncentral t of M − 1
degrees of freedom and noncentrality :math:`\theta\|s\|`, the number :math:`L = \sup\{\theta: G_\theta(T) \le \alpha\}`
exceeds :math:`A/\nu` with probability at most :math:`\alpha`, for every A, ν > 0 and M > 1.

*Proof.* Conditionally on s, complete :math:`s/\|s\|` to an orthonormal basis; rotations leave independent normal
numbers independent, so :math:`U \sim \mathcal N(A\|s\|, \nu^2)` and :math:`V \sim \nu^2\chi^2_{M-1}` are independent,
and T, from which ν cancels, is noncentral t as stated. :math:`G_\theta(t)` is continuous, strictly increasing in θ: so
:math:`L > A/\nu` implies :math:`G_{A/\nu}(T) \le \alpha`. The probability of that is at most α, because
:math:`G_{A/\nu}` is the survival function of T. It holds for every s, hence on average. ∎

Noise that is correlated over steps (:math:`C^{-1}z`) is whitened first, by the claimed matrix C, and so is the signal.

What is assumed: that noise is Gaussian, independent after whitening, and of one relative scale over the run. The bound
is of this form; ``single_run.audit_run`` bounds without it, and reaches less.

References: the two-sample t of Student, here with a known design; the idea of a likelihood over canaries' inner
products in "Let's Ask Gauss" (2026) and Andrew, Kairouz, Oh et al. (2024).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["ratio_lower_bound", "tail_of_ratio"]

_NODES = (
    400  # of a quadrature over the quantiles of chi-square: its error is below 1e-6, also for one degree of freedom
)


@cache
def _lengths(freedom: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values of √(χ²/freedom) and their weights."""
    from scipy.stats import chi2

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    share = (nodes + 1) / 2
    smooth = share**2 * (3 - 2 * share)  # more nodes in both tails
    return np.sqrt(chi2.ppf(smooth, freedom) / freedom), weights / 2 * 6 * share * (1 - share)


def tail_of_ratio(t: float, freedom: int, noncentrality: float) -> float:
    """The chance that a noncentral t is at least ``t``.

    >>> from scipy.stats import nct
    >>> bool(abs(tail_of_ratio(2.0, 30, 1.0) - nct.sf(2.0, 30, 1.0)) < 1e-6)
    True
    """
    from scipy.special import ndtr

    lengths, weights = _lengths(freedom)
    return float(weights @ ndtr(noncentrality - t * lengths))


def ratio_lower_bound(product: float, energy: float, squares: float, count: int, alarm: float) -> float:
    """The bound of the theorem: from ⟨s, y⟩, ‖s‖², ‖y‖² and M, wrong with probability at most ``alarm``; at least 0.

    >>> ratio_lower_bound(product=100.0, energy=100.0, squares=10_100.0, count=10_000, alarm=0.05)
    0.83...
    """
    if energy <= 0 or count < 2:
        return 0.0
    size = math.sqrt(energy)
    u = product / size
    rest = max(squares - u * u, 0.0)
    if rest == 0.0:
        return math.inf if u > 0 else 0.0
    t = u / math.sqrt(rest / (count - 1))
    low, high = 0.0, 1.0
    if tail_of_ratio(t, count - 1, 0.0) > alarm:
        return 0.0
    while tail_of_ratio(t, count - 1, high * size) <= alarm and high < 1e12:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if tail_of_ratio(t, count - 1, middle * size) <= alarm else (low, middle)
    return low
