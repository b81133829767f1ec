r"""The trade-off function of f-DP, what an attacker can do: false negatives against false positives.

Each point of the privacy profile is a line every test must stay above,

.. math:: f(x) \ge 1 - \delta(\epsilon) - e^{\epsilon}x, \qquad f(x) \ge e^{-\epsilon}(1 - \delta(\epsilon) - x),

and the trade-off curve is the largest of them (Dong, Roth and Su 2022, Proposition 6). Finitely many lines give a
lower bound on the attacker's errors, so the curve here is certified, and sharp to the spacing of the lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.accounting.arrays import Array
from discreet.accounting.views import Account
from discreet.errors import extra

__all__ = ["TradeOff"]

_LINES = 48
_NEAR_ZERO = 1e-12  # an epsilon as good as zero: a profile may be at rest from the smallest positive number on
_DELTAS = [0.0, *np.geomspace(1e-12, 0.1, _LINES // 2).tolist(), *np.linspace(0.1, 1, _LINES // 2)[1:].tolist()]


@dataclass(frozen=True)
class TradeOff:
    """A trade-off curve as the upper envelope of the lines of a privacy profile."""

    epsilons: Array
    deltas: Array

    @classmethod
    def of(cls, account: Account) -> TradeOff:
        """Sample the profile of an account where it moves: from epsilon zero to where delta is about 1e-12.

        Of an account that knows epsilons alone, at deltas: each is a line as well, and one question instead of dozens.
        """
        if account.inverts:
            return cls.from_pairs((delta, account.epsilon(delta)) for delta in _DELTAS)
        start = account.delta(0.0)
        if start <= 0:
            return cls(np.zeros(1), np.zeros(1))
        if start >= 1:
            return cls(np.zeros(1), np.ones(1))
        epsilons = _reach(account, start) * np.linspace(0, 1, _LINES) ** 1.5
        return cls(epsilons, np.array([start, *(account.delta(float(e)) for e in epsilons[1:])]))

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[float, float]]) -> TradeOff:
        """The curve of what satisfies all of some (delta, epsilon) at once; an infinite epsilon says nothing."""
        lines = [(epsilon, delta) for delta, epsilon in pairs if math.isfinite(epsilon)] or [(0.0, 1.0)]
        return cls(*(np.array(column) for column in zip(*lines, strict=True)))

    def __call__(self, fpr: float) -> float:
        """Smallest false-negative rate at a false-positive rate."""
        keep = 1 - self.deltas
        with np.errstate(over="ignore", invalid="ignore"):
            steep = keep - np.where(fpr > 0, np.exp(np.minimum(self.epsilons, 700.0)) * fpr, 0.0)
            flat = np.exp(-self.epsilons) * (keep - fpr)
        return float(min(1.0 - fpr, max(0.0, steep.max(), flat.max())))

    def advantage(self) -> float:
        """The largest difference between an attacker's true- and false-positive rates: where the two lines of a point
        of the profile cross, rounded up.
        """
        growth = np.expm1(np.minimum(self.epsilons, 700.0))
        return min(1.0, float(np.min((growth + 2 * self.deltas) / (growth + 2))) * (1 + 1e-12))

    def plot(self, path: str | None, *, ax: Any, title: str) -> Any:
        """A figure that says what the curve means."""
        with extra("report"):
            from matplotlib.figure import Figure
        if ax is None:
            figure = Figure(figsize=(5.2, 4.6), layout="constrained")
            ax = figure.add_subplot()
        x = np.unique(np.concatenate([np.geomspace(1e-6, 1, 300), np.linspace(0, 1, 301)]))
        y = [self(float(value)) for value in x]
        ax.plot([0, 1], [1, 0], color="0.55", linestyle="--", linewidth=1.2, label="perfect privacy (guessing)")
        ax.plot([0, 0, 1], [1, 0, 0], color="0.55", linestyle=":", linewidth=1.2, label="no privacy")
        ax.plot(x, y, color="#1f5fa8", linewidth=2.2, label="no attacker is below this curve")
        ax.fill_between(x, y, 1 - x, color="#1f5fa8", alpha=0.12, linewidth=0)
        ax.set(xlim=(-0.01, 1), ylim=(-0.01, 1.01), title=title)
        ax.set(xlabel="false-positive rate", ylabel="false-negative rate")
        ax.set_aspect("equal")
        ax.legend(frameon=False, loc="upper right", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
        if path is not None:
            ax.figure.savefig(path, dpi=150)
        return ax.figure


def _reach(account: Account, start: float) -> float:
    """The epsilon where delta is 1e-9 of its ``start``; where delta never falls so far, that where it comes to rest."""
    epsilon = account.epsilon(start * 1e-9)
    if epsilon < math.inf:
        return epsilon
    points = [float(point) for point in np.geomspace(1e-3, 700.0, 28)]
    deltas = [account.delta(point) for point in points]
    rest = min(deltas) * (1 + 1e-9)
    last = next(i for i, delta in enumerate(deltas) if delta <= rest)
    low, high = points[last - 1] if last else 0.0, points[last]
    while high - low > max(1e-8 * high, _NEAR_ZERO):
        middle = (low + high) / 2
        low, high = (low, middle) if account.delta(middle) <= rest else (middle, high)
    return high
