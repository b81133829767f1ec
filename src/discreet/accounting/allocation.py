r"""Random allocation: a pass in which every record is in one of t batches, chosen at random and by itself.

**The pair.** Let (P₀, Q₀) dominate, for one removed record, what runs on a batch, and let ℓ = dP₀/dQ₀. Then

.. math:: P = \frac1t \sum_{i \le t} Q_0^{i-1} \times P_0 \times Q_0^{t-i}, \qquad Q = Q_0^t, \qquad
          \frac{dP}{dQ} = \frac{S}{t}, \quad S = \ell_1 + \dots + \ell_t

dominates the pass, also where batches run one after another and each may depend on what the earlier ones showed.

*Proof.* Records choose by themselves, so given the others' choices the record of interest is in batch i with
probability 1/t, and on average over those choices a divergence is at most the worst (joint convexity). Without the
record, let L_i be the likelihood ratio of batch i with the record against without it, given all outputs before. With it
the outputs have density (L_1 + … + L_t)/t. Every divergence that matters is E f of that mean for a convex f ≥ 0:
:math:`(s - e^\epsilon)_+` for removing and :math:`(1 - e^\epsilon s)_+` for adding. Given the past, L_t is below ℓ in
convex order: that is what domination of (P₀, Q₀) at all orders says. So E f(a + L_t/t) ≤ E f(a + ℓ/t) =: g(a), whatever
the past was; g is convex again, and the same holds of L_{t-1}, and so on to the first. ∎ (For Gaussian noise: Chua et
al. 2024, "Balls-and-Bins Sampling for DP-SGD", Theorem 3.2.) The pair is attained where (P₀, Q₀) is.

Where bins are kept and k events run in each, pass after pass, outputs have the density Σ_i L_i1 ⋯ L_ik / t. The same
induction holds from the last step to the first: a step of bin i multiplies one term, E f(a + w·L) ≤ E f(a + w·ℓ) for
every weight w ≥ 0 that the past and the (already replaced, independent) later factors give, and so ℓ_i may be the ratio
of all k events together. Samplers take a bin as 64 random bits modulo t: its probability is at most 1/t + 2^-64, which
raises a loss by no more than t·2^-64, less than what losses are moved outward by.

**The numbers.** Because both divergences are convex in every ℓ_i, spreading each ratio and each partial sum onto a
lattice with equal means bounds both from above, and contracting bounds both from below
(:mod:`discreet.accounting.allocation_lattice`). The lattice law, with P-probability m·x/t at a sum x of probability m
under Q, is a pair itself, which the grid engine composes with others. Errors of the masses go outward. Those of a
cell's mean, p/q by quotients of differences of tails, are relative, at most ``wrong``: a law whose points are
x(1 ± wrong) is a true spread (contraction), so every loss is moved outward by that much. What the lattice leaves out
has an infinite loss in either direction above, and none below.

**More bins cost less**: a mean of t + 1 exchangeable ratios is the conditional mean of a mean of t of them, so it is
below it in convex order. Beyond ``MOST_BINS`` the price is that of so many.

**Rényi divergences** are E f for f(s) = s^α and s^(1-α), so the upper law bounds them where all ratios are on the
lattice. On the event A that one is not, convexity and Hölder's inequality give, for every p > 1, :math:`E[f(S/t); A]
\le \max_i E[f(\ell_i); A] \le \Pr(A)^{1-1/p}\,(E f(\ell)^p)^{1/p}`. Divergences are never above those of one batch.

>>> from discreet.accounting.pld.pairs import GaussianShift
>>> pair = Allocation(Allocated(bins=100, pair=GaussianShift(1.0)))
>>> [round(float(side.profile(np.array([0.2]))[0]), 7) for side in (pair.attainable[0], pair)]
[0.0046357, 0.0046357]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from discreet.accounting.allocation_lattice import Blocks, power
from discreet.accounting.arrays import Array, Interval
from discreet.accounting.contraction import contract_atoms
from discreet.accounting.pld.atoms import NOTHING
from discreet.accounting.pld.composite import Composite
from discreet.accounting.pld.lattice import cells
from discreet.accounting.pld.pairs import Pair, Tails
from discreet.errors import NotCertified

__all__ = ["MOST_BINS", "Allocated", "Allocation", "MeanRatio"]

MOST_BINS = 10**6
_TINY = 1e-250  # cells with less mass are left out
_KNOWN = 1e-7  # and cells whose mass is not known so well
_FAR = 2000.0  # no ratio is beyond exp(±2000)
_UNIT = 2.0**-53


@dataclass(frozen=True)
class Precision:
    """How the law of a sum is computed: convolutions by plain sums or by transforms, what is cut off, points a row.

    ``FAST`` serves all but the smallest deltas, ``SHARP`` those, ``WIDE`` moments, which live in the tails; ``COARSE``,
    some 1e-4 above it in epsilon, is for what is an upper bound by more than that anyway.
    """

    exact: bool
    cut: float
    columns: int


FAST = Precision(exact=False, cut=1e-30, columns=8192)
SHARP = Precision(exact=True, cut=1e-90, columns=2048)
COARSE = Precision(exact=False, cut=1e-30, columns=1024)
WIDE = Precision(exact=True, cut=1e-200, columns=512)
_FAST_TAIL = 1e-18  # transforms are wrong by some 1e-14 altogether, which is to be small against 1e9 such tails
_FAST_DELTA = 1e-11


@dataclass(frozen=True, eq=False)
class Allocated:
    """The laws of the mean ratio of ``bins`` batches, each with the pair ``pair``: computed once, when asked for."""

    bins: int
    pair: Pair
    _laws: dict[tuple[Precision, bool], tuple[Blocks, float]] = field(default_factory=dict, repr=False)
    _atoms: dict[tuple[Precision, bool, bool], MeanRatio] = field(default_factory=dict, repr=False)

    def law(self, precision: Precision, *, above: bool) -> tuple[Blocks, float]:
        """The law of the sum from above or below, and what its points may be wrong by, relatively."""
        if not above and not self.pair.attained:
            raise NotCertified("the pair of one batch is an upper bound, and says nothing from below.")
        if (precision, above) not in self._laws:
            one, wrong = (_spread_ratio if above else _contracted_ratio)(self.pair, self.bins, precision)
            self._laws[precision, above] = power(one, self.bins), wrong
        return self._laws[precision, above]

    def atoms(self, precision: Precision, *, forward: bool, above: bool) -> MeanRatio:
        """The pair on the lattice, for a removed record (``forward``) or an added one."""
        key = precision, forward, above
        if key not in self._atoms:
            self._atoms[key] = self._pair(*key)
        return self._atoms[key]

    def _pair(self, precision: Precision, forward: bool, above: bool) -> MeanRatio:
        law, wrong = self.law(precision, above=above)
        points, masses = law.atoms()
        zero, some = float(masses[points <= 0].sum()), points > 0
        points, masses = points[some], masses[some]
        losses = np.log(points / self.bins)
        outward = wrong + 4 * _UNIT * (1 + np.abs(losses))
        losses = losses + (outward if above == forward else -outward)
        with np.errstate(under="ignore"):
            weighted = masses * np.exp(losses)
        q_lost, p_lost = (law.lost + zero, law.lost_mean / self.bins) if above else (0.0, 0.0)
        if forward:
            return MeanRatio(losses, weighted, p_lost, False, masses, q_lost)
        return MeanRatio(-losses[::-1], masses[::-1], q_lost, False, weighted[::-1], p_lost)

    def log_moment(self, c: Array, *, forward: bool, batch: Mapping[float, Array]) -> Array:
        """log E_P exp(cL), at most; ``batch`` has log E f^p of one batch, by p, for what the lattice leaves out."""
        law, pair = self.law(WIDE, above=True)[0], self.atoms(WIDE, forward=forward, above=True)
        losses, logs = pair.losses[pair.masses > 0], np.log(pair.masses[pair.masses > 0])
        exponents = (order * losses + logs for order in c)
        inside = np.array([float(x.max()) + math.log(float(np.exp(x - x.max()).sum())) for x in exponents])
        missed = math.log(law.lost + 1e-230)
        outside = np.min([(1 - 1 / p) * missed + logs / p for p, logs in batch.items()], axis=0)
        return np.asarray(np.logaddexp(inside, outside) + 1e-12)


class MeanRatio(Composite):
    """The pair on a lattice, either side."""

    @property
    def support(self) -> Interval:
        """Unbounded: few of the losses can be written down."""
        return -math.inf, math.inf

    @property
    def _sums(self) -> tuple[Tails, Tails]:
        if "sums" not in self.__dict__:
            p, q = self.masses.astype(np.longdouble), self.q_masses.astype(np.longdouble)
            up = [np.append(np.cumsum(x[::-1])[::-1], 0.0).astype(float) for x in (p, q)]
            down = [np.append(0.0, np.cumsum(x)).astype(float) for x in (p, q)]
            self.__dict__["sums"] = (up[0] + self.infinite, up[1]), (down[0], down[1] + self.missing)
        sums: tuple[Tails, Tails] = self.__dict__["sums"]
        return sums

    def contracted(self, losses: Array) -> Array | None:
        """Merged in the ratio exp(l), whose mean under Q is kept; on every second, fourth, ... loss where the lattice's
        points are as close as the atoms.
        """
        inside = (self.losses >= losses[0]) & (self.losses <= min(losses[-1], 600.0))
        atoms, masses = np.exp(self.losses[inside]), self.q_masses[inside]
        for coarser in (1, 2, 4, 8, 16, 32):
            points = losses[: (len(losses) - 1) // coarser * coarser + 1 : coarser]
            within = atoms <= np.exp(points[-1])
            q = contract_atoms(np.exp(points), atoms[within], masses[within])
            if q.sum() >= masses.sum() * (1 - 1e-9):
                result = np.zeros(len(losses))
                result[: len(points) * coarser : coarser] = q * np.exp(points)
                return result
        return None


@dataclass(frozen=True)
class Allocation(Pair):
    """The pair of a pass, from above; ``attainable`` is the same from below."""

    laws: Allocated
    forward: bool = True
    above: bool = True

    @property
    def mirror(self) -> Allocation:
        """P and Q exchanged."""
        return replace(self, forward=not self.forward)

    @property
    def attained(self) -> bool:
        """Not from above, where the law is rounded up; from below it is at most what some mechanism has."""
        return not self.above

    @property
    def attainable(self) -> tuple[Pair, ...]:
        """The law from below; nothing where there is none."""
        try:
            self.laws.law(FAST, above=False)
        except NotCertified:
            return (NOTHING,)
        return (self if not self.above else replace(self, above=False),)

    @property
    def raised(self) -> bool:
        """If the pair of a batch was, or there are more bins than are priced."""
        return self.laws.pair.raised or self.laws.bins >= MOST_BINS

    @property
    def infinity(self) -> float:
        """As for one batch."""
        return self.laws.pair.infinity if self.above else 0.0

    def sharpened(self, tail: float) -> MeanRatio:
        """The fast law, or, for the smallest probabilities, the one whose errors are relative."""
        precision = FAST if tail >= _FAST_TAIL else SHARP
        return self.laws.atoms(precision, forward=self.forward, above=self.above)

    def tails(self, losses: Array) -> Tails:
        """Of the fast law."""
        return self.sharpened(1.0).tails(losses)

    def heads(self, losses: Array) -> Tails:
        """Of the fast law."""
        return self.sharpened(1.0).heads(losses)

    def profile(self, losses: Array) -> Array:
        """The better of the two laws', or the fast one's where floats do not hold the other."""
        values = self.sharpened(1.0).profile(losses)
        if (values < _FAST_DELTA).any():
            try:
                sharp = self.sharpened(0.0)
            except NotCertified:
                return values
            values = (np.minimum if self.above else np.maximum)(values, sharp.profile(losses))
        return np.asarray(values)


# --- the ratio of one batch ------------------------------------------------------------------------------------------


def _frame(pair: Pair, bins: int, precision: Precision) -> tuple[float, int]:
    """Unit and rows of a lattice that reaches from where no sum is likely to lie to where no ratio is."""
    least = precision.cut if precision is WIDE else min(precision.cut ** (1.2 / bins), 0.1)  # of the largest term
    beyond = pair.infinity + max(precision.cut, 8 * _UNIT * pair.infinity)  # no tail is known better than its infinity
    low = _last(lambda loss: float(pair.heads(np.array([loss]))[1][0]) <= least)
    high = -_last(lambda loss: float(pair.tails(np.array([-loss]))[0][0]) <= beyond)
    exponent = math.floor(low / math.log(2)) - 10
    rows = max(1, math.ceil(high / math.log(2) - exponent - math.log2(precision.columns)) + 1)
    if exponent < -900 or rows > 400:
        raise NotCertified("the ratios of one batch span more than floats hold: its noise is too small.")
    return 2.0**exponent, rows


def _last(holds: Callable[[float], bool]) -> float:
    """About the last point where something holds that holds from the left up to there."""
    low, high = -_FAR, _FAR
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _points(unit: float, rows: int, columns: int) -> Array:
    first = np.arange(columns)
    return unit * np.concatenate([first, *(2.0**r * first[columns // 2 :] for r in range(1, rows))])


def _blocks(unit: float, masses: Array, precision: Precision, *, above: bool, lost: tuple[float, float]) -> Blocks:
    columns = precision.columns
    table = np.zeros((1 + (len(masses) - columns) // (columns // 2), columns))
    table[0] = masses[:columns]
    table[1:, columns // 2 :] = masses[columns:].reshape(-1, columns // 2)
    cut = 0.0 if precision is WIDE else precision.cut
    return Blocks(unit, 0, table, above, precision.exact, cut, 1.0, *lost)


def _cells_from(pair: Pair, edges: Array) -> tuple[Array, Array, float, tuple[float, float]]:
    """P- and Q-mass up to the first edge, then between edges; their largest relative errors; and what is left out.

    Left out are cells that may be rounding alone: between the atoms of a discrete pair.
    """
    p, q, p_error, q_error = cells(pair, edges)
    relative = p_error / np.maximum(p, _TINY) + q_error / np.maximum(q, _TINY)
    some = (p > _TINY) & (q > _TINY) & (relative < _KNOWN)
    lost = float((p + p_error)[~some].sum()), float((q + q_error)[~some].sum())
    wrong = float(np.max(np.where(some, relative, 0.0))) + 1e-13
    p_head, q_head = pair.heads(edges[:1])
    return np.append(p_head, np.where(some, p, 0.0)), np.append(q_head, np.where(some, q, 0.0)), wrong, lost


def _spread_ratio(pair: Pair, bins: int, precision: Precision) -> tuple[Blocks, float]:
    """The law of one ratio, spread onto the lattice, and the relative error of its points."""
    unit, rows = _frame(pair, bins, precision)
    points = _points(unit, rows, precision.columns)
    edges = np.log(points[1:])
    p, q, wrong, lost = _cells_from(pair, edges)
    beyond = pair.tails(edges[-1:])
    p_lost, q_lost = (float(x[0]) * (1 + 1e-9) + 1e-240 + y for x, y in zip(beyond, lost, strict=True))
    if precision is WIDE:  # ratios below the first point would be spread to zero
        p_lost, q_lost, q[0] = p_lost + float(p[0]), q_lost + float(q[0]), 0.0
    means = np.divide(p, q, out=points[:-1].copy(), where=q > 0)
    share = np.clip((means - points[:-1]) / np.diff(points), 0.0, 1.0)
    q = q * (1 + wrong)
    masses = np.append(q * (1 - share), 0.0) + np.append(0.0, q * share)
    return _blocks(unit, masses, precision, above=True, lost=(q_lost, p_lost)), 2 * wrong


def _contracted_ratio(pair: Pair, bins: int, precision: Precision) -> tuple[Blocks, float]:
    r"""The same, contracted.

    The tangents of U(k) = E(ℓ - k)₊ at points between the lattice's are below U, and so is the convex function through
    the lower of two neighbouring ones at each lattice point: the U of a law on the lattice. In masses: where a cell's
    excess e = p - xq is positive it takes e/gap from the cell on its left, where it is negative from that on its right.
    The first cell has all mass up to it and no positive excess.
    """
    unit, rows = _frame(pair, bins, precision)
    points = _points(unit, rows, precision.columns)
    gaps = np.diff(points)
    bounds = np.log(points[:-1] + gaps / 2)
    p_head, q_head = pair.heads(bounds)
    start = int(np.argmax((p_head <= points[:-1] * q_head) & (q_head > _TINY)))
    p, q, wrong, _ = _cells_from(pair, bounds[start:])
    gap, excess = gaps[start:], p - points[start:-1] * q
    from_left, from_right = np.maximum(excess, 0.0)[1:] / gap[:-1], np.maximum(-excess, 0.0) / gap
    masses = q + from_right
    masses[1:] += from_left - from_right[:-1]
    masses[:-1] -= from_left
    masses[-1] = 0.0  # its own neighbour is beyond the lattice
    if start == 0 or excess[0] > 0 or float(masses.min()) < -1e-15 * float(masses.max()):
        raise NotCertified("the ratio of one batch takes too few values for a contraction onto the lattice.")
    whole = np.zeros(len(points))
    whole[start:-1] = np.maximum(masses, 0.0) * (1 - wrong)
    return _blocks(unit, whole, precision, above=False, lost=(0.0, 0.0)), 2 * wrong
