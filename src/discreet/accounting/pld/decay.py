r"""How fast the characteristic function of a tilted sampled-Gaussian loss must decay: proved envelopes.

The contour sum stops at some height t; what it leaves out is bounded here in two ranges.

Far: write the tilted loss as a density g on the loss axis, g = p(u)/|L'(u)|. On the cells right of any point of the
u axis :math:`|\int g e^{it\ell}| \le (g_{end} + TV(g))/t`, and left of it the integral is at most the mass there, so

.. math:: |\varphi(t)| \le 1 - \mu(u \ge u_k) + \frac{g(u_k) + TV_{u \ge u_k}(g)}{t} \qquad \text{for every } k.

Masses are lower Riemann sums, maxima and variations upper ones, by bounds on the slope of log p and log g in a cell.

Near: with :math:`f = |\varphi|^2`, :math:`|f''| \le 2 Var(L)`, so between two computed points f exceeds their larger
value by at most :math:`\Delta^2 Var(L)/4`. Rare large losses would make the variance useless, so they are set apart:
:math:`\varphi` is the part of the common ones plus at most the mass m of the rare ones.
"""

from __future__ import annotations

import numpy as np

from discreet.accounting.arrays import Array
from discreet.accounting.pld.mixtures import Rule

__all__ = ["far_envelope", "near_envelope"]


def _slopes(rule: Rule) -> tuple[Array, Array]:
    """Largest |d log p/du| and |d log g/du| inside each cell, by monotonicity of the posterior odds."""
    _, beta, _, beta_b = rule._logs
    c, kind = rule.c, rule.mixtures.kind
    sigma = rule.mixtures.sigmas[:, None]
    x = -c if kind == "add" else c + 1
    y = c if kind == "replace" else 0.0
    left, right = slice(None, -1), slice(1, None)
    pull_low = np.minimum(x * beta[:, left], x * beta[:, right]) + y * beta_b[:, right]
    pull_high = np.maximum(x * beta[:, left], x * beta[:, right]) + y * beta_b[:, left]
    low = -rule.u[:, right] + pull_low / sigma
    high = -rule.u[:, left] + pull_high / sigma
    # d log|L'|/du lies in [0, (1-beta)/sigma] for one factor and in [-1, 1]/sigma for two.
    jump_high = (1 - beta[:, left]) / sigma if kind != "replace" else 1 / sigma
    jump_low = (1 - beta[:, right]) / sigma if kind != "replace" else -1 / sigma
    slope_p = np.maximum(np.abs(low), np.abs(high))
    slope_g = np.maximum(np.abs(low - jump_high), np.abs(high - jump_low))
    return slope_p, slope_g


def far_envelope(rule: Rule, t: Array) -> Array:
    """Upper bounds on |φ| that hold at t and everywhere beyond it; one row a mixture."""
    _, beta, _, beta_b = rule._logs
    slope_p, slope_g = _slopes(rule)
    s = rule.spacing[:, None]
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        p = rule.tilted
        g = p / s * rule.mixtures.sigmas[:, None] / (beta + beta_b)
        mass = (p[:, :-1] + p[:, 1:]) / 2 * np.exp(-slope_p * s / 2)
        top = np.maximum(g[:, :-1], g[:, 1:]) * np.exp(np.minimum(slope_g * s / 2, 300))
        variation = np.nan_to_num(top * slope_g * s, nan=np.inf, posinf=np.inf)
        inside = np.cumsum(mass[:, ::-1], axis=1)[:, ::-1]
        spread = np.cumsum(variation[:, ::-1], axis=1)[:, ::-1] + np.nan_to_num(top, nan=np.inf, posinf=np.inf)
    starts = np.unique(np.linspace(0, mass.shape[1] - 1, 96).astype(int))
    inside, spread = inside[:, starts], spread[:, starts]
    return np.stack([np.clip(1 - inside + spread / x, 1e-300, 1.0).min(axis=1) for x in t], axis=1)


def near_envelope(rule: Rule, t: Array) -> Array:
    """Upper bounds on |φ| over each interval [t[i], t[i+1]]; one row a mixture."""
    value, slip = rule.modulus(t)
    value = np.maximum(value[:, :-1], value[:, 1:])
    widths = np.diff(t) ** 2 / 4
    size = np.abs(rule.centred)
    best = np.ones_like(value)
    for cut in np.geomspace(1e-3, 300.0, 12) * np.median(size):
        common = size <= cut
        mass = (rule.tilted * ~common).sum(axis=1)[:, None]
        spread = (rule.tilted * size**2 * common).sum(axis=1)[:, None] * (1 + 1e-9)
        best = np.minimum(best, mass + np.sqrt((value + mass) ** 2 + widths * spread))
    return np.asarray(np.minimum(best + slip[:, 1:], 1.0))
