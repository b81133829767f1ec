r"""Privacy losses of Poisson-sampled Gaussians: log-moment-generating functions with proved errors.

With :math:`x = \sigma u` and :math:`a(u) = \log(1-q+q\,e^{u/\sigma - 1/2\sigma^2})` three pairs of laws occur:

========  =================================  ======================  =============================================
kind      P                                  Q                       :math:`M(z) = E_P[e^{zL}]`
========  =================================  ======================  =============================================
remove    (1-q) N(0, σ²) + q N(1, σ²)        N(0, σ²)                :math:`E_u[e^{(z+1)a(u)}]`
add       N(0, σ²)                           (1-q) N(0) + q N(1)     :math:`E_u[e^{-z\,a(u)}]`
replace   (1-q) N(0, σ²) + q N(1, σ²)        (1-q) N(0) + q N(-1)    :math:`E_u[e^{(z+1)a(u) - z\,a(-u)}]`
========  =================================  ======================  =============================================

with u standard normal. The first two dominate every add/remove neighbour (Zhu, Dong and Wang 2022). The third
dominates every replacement: for order :math:`\alpha \ge 1` the divergence is :math:`q H_\gamma(N(v) \| \lambda N(v')
+ (1-\lambda) N(0))` with :math:`\gamma = 1 + (\alpha-1)/q`, and by the Neyman-Pearson lemma any set of probability y
under N(v) has at least :math:`\Phi(\Phi^{-1}(y) - \|v-w\|)` under N(w); that bound is smallest at the largest
distances, 2 and 1, and is attained by the pair above. Orders below one follow from the reversed pair, its mirror image.

The expectation is a trapezoid sum. The integrand is analytic in the strip |Im u| < πσ and there at most
:math:`e^{d^2/2 + |t| \kappa d/\sigma} \cos(d/2\sigma)^{-p}` times its value on the real line (κ = 1, 1, 2 and
p = 0, c, c for the three kinds, z = c + it), because :math:`|{\arg(1-q+qre^{i\theta})}| \le \theta` and
:math:`\cos(\theta/2) \le |1-q+qre^{i\theta}|/(1-q+qr) \le 1`. Trefethen and Weideman (2014), Theorem 5.1, turns
that into an error bound. Tails beyond the nodes are bounded by Gaussian tails, using M(c) ≥ 1 (Jensen).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from discreet.accounting.arrays import Array
from discreet.errors import NotCertified, choice

__all__ = ["Kind", "Mixtures", "Rule"]

Kind = Literal["remove", "add", "replace"]
_KINDS: dict[str, Kind] = {"remove": "remove", "add": "add", "replace": "replace"}

_UNIT = 2.0**-53
_MAX_NODES = 60_000
_MAX_CELLS = 1_500_000  # nodes of all mixtures together: what bounds the memory


@dataclass(frozen=True)
class Mixtures:
    """Distinct sampled Gaussians of one kind: sampling rates in (0, 1), noise multipliers, repetitions."""

    kind: Kind
    rates: Array
    sigmas: Array
    counts: Array

    def __post_init__(self) -> None:
        choice("kind", self.kind, _KINDS)  # what follows takes whatever is none of two for the third

    def pieces(self, size: int = 16) -> list[Mixtures]:
        """The same mixtures, at most ``size`` at a time, to bound memory."""
        cuts = [slice(i, i + size) for i in range(0, len(self.counts), size)]
        return [Mixtures(self.kind, self.rates[cut], self.sigmas[cut], self.counts[cut]) for cut in cuts]

    def rule(self, c: float, t_max: float, digits: float) -> Rule:
        """Nodes and weights that give every M(c + it), |t| ≤ t_max, to about exp(-digits) of M(c)."""
        left, right = self._range(c, digits)
        strip, spacing = self._spacing(c, t_max, digits)
        count = int(np.ceil(np.max((right - left) / spacing))) + 1
        if count > _MAX_NODES or count * len(self.sigmas) > _MAX_CELLS:
            raise NotCertified(
                f"the contour needs {count} quadrature nodes for the smallest noise multiplier, {self.sigmas.min():g}."
            )
        u = left[:, None] + spacing[:, None] * np.arange(count)
        return Rule(self, c, t_max, digits, strip, spacing, u)

    def _range(self, c: float, digits: float) -> tuple[Array, Array]:
        """Where the integrand lives: outside, its mass is below exp(-digits) of M(c)."""
        q, sigma = self.rates, self.sigmas
        out = c * -np.log1p(-q)
        if self.kind == "add":
            return -np.sqrt(2 * (digits + out)), np.sqrt(2 * digits) + 0.5 / sigma
        excess = np.minimum(c * (c + 1) / (2 * sigma**2), (c + 1) * -np.log(q))
        if self.kind == "replace":
            excess = excess + out
        return -np.sqrt(2 * digits) - 0.5 / sigma, (c + 1) / sigma + np.sqrt(2 * (digits + excess))

    def _strip_growth(self, c: float, t: float | Array, d: Array) -> Array:
        """Log of how much larger the integrand can be at Im u = d than on the real line."""
        kappa, power = (2.0 if self.kind == "replace" else 1.0), (0.0 if self.kind == "remove" else c)
        theta = d / self.sigmas
        return d**2 / 2 + np.abs(t) * kappa * theta - (power * np.log(np.cos(theta / 2)) if power else 0.0)

    def _spacing(self, c: float, t_max: float, digits: float) -> tuple[Array, Array]:
        """The widest spacing that meets the error bound, over a few widths of the strip."""
        best_d = best_s = np.zeros(len(self.sigmas))
        for share in (0.98, 0.8, 0.6, 0.4, 0.2, 0.1):
            d = np.minimum(share * np.pi * self.sigmas, share * np.sqrt(2 * digits + 40))
            s = 2 * np.pi * d / (self._strip_growth(c, t_max, d) + digits + 1)
            best_d, best_s = np.where(s > best_s, d, best_d), np.maximum(s, best_s)
        return best_d, best_s


@dataclass(frozen=True)
class Rule:
    """A trapezoid rule for one real part c, shared by all |Im z| ≤ t_max; rows are the distinct mixtures."""

    mixtures: Mixtures
    c: float
    t_max: float
    digits: float
    strip: Array
    spacing: Array
    u: Array

    def refine(self, spacing: float) -> Rule:
        """The same rule with nodes at most ``spacing`` apart."""
        times = np.ceil(np.max(self.spacing) / spacing)
        if times <= 1:
            return self
        fine = self.spacing / times
        count = int((self.u.shape[1] - 1) * times) + 1
        if count > _MAX_NODES:
            raise NotCertified(f"the envelope of the characteristic function needs {count} nodes.")
        return replace(self, spacing=fine, u=self.u[:, :1] + fine[:, None] * np.arange(count))

    @cached_property
    def _logs(self) -> tuple[Array, Array, Array, Array]:
        """a(u), its slope times σ (the posterior odds of having been sampled), and the same at -u (for replace)."""
        a, beta = self._log_ratio(self.u)
        if self.mixtures.kind == "replace":
            b, beta_b = self._log_ratio(-self.u)
        else:
            b = beta_b = np.zeros_like(a)
        return a, beta, b, beta_b

    def _log_ratio(self, u: Array) -> tuple[Array, Array]:
        q, sigma = self.mixtures.rates[:, None], self.mixtures.sigmas[:, None]
        v = u / sigma - 0.5 / sigma**2
        with np.errstate(under="ignore"):
            small = np.log1p(q * np.expm1(np.minimum(v, 1.0)))
            large = v + np.log(q + (1 - q) * np.exp(-np.maximum(v, 1.0)))
            a = np.where(v < 1.0, small, large)
            return a, q * np.exp(v - a)

    @cached_property
    def loss(self) -> Array:
        """The privacy loss at each node."""
        a, _, b, _ = self._logs
        return {"remove": a, "add": -a, "replace": a - b}[self.mixtures.kind]

    @cached_property
    def _tilt(self) -> Array:
        """log of dP/dN(0, 1) times exp(c·loss) at each node."""
        a, _, b, _ = self._logs
        c = self.c
        return {"remove": (c + 1) * a, "add": -c * a, "replace": (c + 1) * a - c * b}[self.mixtures.kind]

    @cached_property
    def _log_normal(self) -> Array:
        return np.asarray(-(self.u**2) / 2 + np.log(self.spacing / np.sqrt(2 * np.pi))[:, None])

    @cached_property
    def log_m(self) -> Array:
        """log M(c) of each mixture, through M(c) - 1 where that is small: repetitions multiply its absolute error."""
        tilt, log_normal = self._tilt, self._log_normal
        shift = (tilt + log_normal).max(axis=1)
        with np.errstate(under="ignore"):
            large = shift + np.log(np.exp(tilt + log_normal - shift[:, None]).sum(axis=1))
        small = np.log1p(np.where(large[:, None] < 0.5, self._excess, 0.0).sum(axis=1))
        return np.asarray(np.where(large < 0.5, small, large))

    @cached_property
    def _excess(self) -> Array:
        """The terms of M(c) - 1."""
        with np.errstate(under="ignore", over="ignore"):
            normal = np.exp(self._log_normal)
            return np.where(
                self._tilt < 1,
                normal * np.expm1(np.minimum(self._tilt, 1.0)),
                np.exp(self._tilt + self._log_normal) - normal,
            )

    @property
    def log_m_rounding(self) -> Array:
        """Bound on the rounding error of ``log_m``."""
        per_term = self.u.shape[1] + 8 + np.abs(self._tilt) + np.abs(self._log_normal)
        small = (np.abs(np.where(self.log_m[:, None] < 0.5, self._excess, 0.0)) * per_term).sum(axis=1)
        large = 8 * np.abs(self.log_m) + (self.tilted * per_term).sum(axis=1)
        return np.asarray(_UNIT * (2 + np.where(self.log_m < 0.5, small, large)))

    @cached_property
    def tilted(self) -> Array:
        """Probabilities of the nodes under the exponentially tilted law."""
        with np.errstate(under="ignore"):
            return np.asarray(np.exp(self._tilt + self._log_normal - self.log_m[:, None]))

    @cached_property
    def mean(self) -> Array:
        """Mean loss of each mixture under the tilted law: K'(c)."""
        return np.asarray((self.tilted * self.loss).sum(axis=1))

    @cached_property
    def variance(self) -> Array:
        """Variance of the loss of each mixture under the tilted law: K''(c)."""
        return np.asarray((self.tilted * (self.loss - self.mean[:, None]) ** 2).sum(axis=1))

    @cached_property
    def centred(self) -> Array:
        """The losses less their mean."""
        return self.loss - self.mean[:, None]

    def characteristic(self, h: float, count: int) -> Array:
        """E[exp(it(L - mean))] - 1 under the tilted law for t = 0, h, …, (count-1)·h; one row a mixture.

        exp(i(aB + b)hL) factors, so B + count/B exponentials a node and a matrix product suffice. All is written in
        terms of exp(·) - 1, so that the rounding error scales with the (small) losses.
        """
        block = max(1, int(np.sqrt(count)))
        rows = -(-count // block)
        phase, p = (h * self.centred)[:, None, :], self.tilted[:, None, :]
        (a, b) = (part * p for part in _expi_minus_one(phase * (block * np.arange(rows))[:, None]))
        (c, d) = (part.swapaxes(1, 2) for part in _expi_minus_one(phase * np.arange(block)[:, None]))
        # real products: complex ones of this size cost a hundred times as much when threads compete
        real = a.sum(axis=2)[:, :, None] + p @ c + (a @ c - b @ d)
        imaginary = b.sum(axis=2)[:, :, None] + p @ d + (a @ d + b @ c)
        return np.asarray((real + 1j * imaginary).reshape(len(self.u), -1)[:, :count])

    def modulus(self, t: Array) -> tuple[Array, Array]:
        """|E exp(itL)| under the tilted law and a bound on its error, in single precision where that suffices."""
        single = self.mixtures.counts.max() < 30
        kind = np.float32 if single else np.float64
        result = np.empty((len(self.u), len(t)))
        for j, (x, p) in enumerate(zip(self.centred.astype(kind), self.tilted.astype(kind), strict=True)):
            phase = np.outer(t.astype(kind), x)
            result[j] = np.hypot(np.cos(phase) @ p, np.sin(phase) @ p)
        size = (self.tilted * np.abs(self.centred)).sum(axis=1)[:, None]
        return result, self.error(t) + (2.0**-22 * (self.u.shape[1] + 4 * t * size) if single else 0.0)

    def error(self, t: Array) -> Array:
        """Bound on the error of ``characteristic`` at each t ≥ 0 (rows: mixtures), all sources added.

        Aliasing of the trapezoid rule; mass beyond the nodes; rounding of weights, phases and the matrix product.
        """
        growth = self.mixtures._strip_growth(self.c, t[:, None], self.strip).T
        nyquist = (2 * np.pi * self.strip / self.spacing)[:, None]
        aliasing = 2 * np.exp(np.minimum(growth - nyquist, 700.0)) / -np.expm1(-nyquist)
        beyond = 3 * np.exp(-self.digits)
        _, beta, _, beta_b = self._logs
        sigma = self.mixtures.sigmas[:, None]
        per_term = self.u.shape[1] + 24 + 2 * np.abs(self._tilt + self._log_normal)
        size = np.abs(self.centred)
        cap = 2 * (self.tilted * per_term).sum(axis=1)
        slope = (self.tilted * per_term * size).sum(axis=1)
        phase = 8 * (
            self.tilted * (np.abs(self.loss) + size + (beta + beta_b) * (np.abs(self.u) / sigma + 0.5 / sigma**2))
        ).sum(axis=1)
        rounding = _UNIT * (np.minimum(cap[:, None], slope[:, None] * t) + phase[:, None] * t + 4)
        return np.asarray(2 * (aliasing + beyond) + 2 * rounding)  # twice: numerator and normaliser


def _expi_minus_one(x: Array) -> tuple[Array, Array]:
    """Real and imaginary part of exp(ix) - 1, without cancellation."""
    half = np.sin(x / 2)
    return -2 * half * half, np.sin(x)
