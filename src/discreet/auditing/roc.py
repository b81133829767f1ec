"""How well an attack tells members from others: true against false accusations, with intervals, beside the claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.auditing.lower_bounds import clopper_pearson
from discreet.errors import extra, probability

__all__ = ["ROC"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ROC:
    """Scores of records that were ``inside`` the training data and of others; larger says "inside".

    >>> roc = ROC.of([2.0, 3.0, 4.0], [0.0, 1.0, 2.5])
    >>> round(roc.auc, 3), roc.tpr_at(0.34)
    (0.889, 1.0)
    """

    inside: Floats
    outside: Floats

    @classmethod
    def of(cls, inside: ArrayLike, outside: ArrayLike) -> ROC:
        """Sorted; what is not a number accuses nobody."""
        found = [np.sort(np.nan_to_num(np.asarray(x, np.float64).ravel(), nan=-np.inf)) for x in (inside, outside)]
        if not all(map(len, found)):
            raise ValueError("There must be at least one score of either kind.")
        return cls(*found)

    @property
    def auc(self) -> float:
        """The chance that a member scores above another; ties count half."""
        left, right = (np.searchsorted(self.outside, self.inside, side=side) for side in ("left", "right"))
        return float((left + right).mean() / (2 * len(self.outside)))

    def threshold(self, fpr: float) -> float:
        """The score above which at most this share of the others lies."""
        allowed = int(probability("fpr", fpr) * len(self.outside))
        return -np.inf if allowed >= len(self.outside) else float(self.outside[len(self.outside) - allowed - 1])

    def rates(self, threshold: float) -> tuple[float, float]:
        """True and false accusations above a threshold."""
        return tuple(float((x > threshold).mean()) for x in (self.inside, self.outside))  # type: ignore[return-value]

    def tpr_at(self, fpr: float) -> float:
        """The share of members that are found while at most this share of the others is accused."""
        return self.rates(self.threshold(fpr))[0]

    def interval(self, fpr: float, confidence: float = 0.95) -> tuple[float, float]:
        """An exact interval for that share, given the threshold."""
        hits = int((self.inside > self.threshold(fpr)).sum())
        return clopper_pearson(hits, len(self.inside), (1 - confidence) / 2)

    def plot(
        self, claimed: Callable[[float], float] | None = None, path: str | None = None, *, label: str = "attack"
    ) -> Any:
        """On logarithmic axes; ``claimed`` is the largest rate that is proved possible, as ``Guarantee.tpr_at``."""
        with extra("report"):
            from matplotlib.figure import Figure
        figure = Figure(figsize=(5.0, 4.6), layout="constrained")
        ax = figure.add_subplot()
        grid = np.geomspace(0.5 / len(self.outside), 1, 200)
        low, high = np.array([self.interval(float(x)) for x in grid]).T
        ax.plot(grid, [self.tpr_at(float(x)) for x in grid], color="#c2571a", label=f"{label}, AUC {self.auc:.3f}")
        ax.fill_between(grid, np.maximum(low, 1e-9), high, color="#c2571a", alpha=0.18, linewidth=0)
        ax.plot(grid, grid, color="0.55", linestyle="--", linewidth=1.1, label="guessing")
        if claimed is not None:
            ax.plot(
                grid, [claimed(float(x)) for x in grid], color="#1f5fa8", linewidth=2, label="no attack is above this"
            )
        least = 0.5 / max(len(self.inside), len(self.outside))
        ax.set(xscale="log", yscale="log", xlim=(grid[0], 1), ylim=(least, 1.05))
        ax.set(xlabel="false-positive rate", ylabel="true-positive rate")
        ax.legend(frameon=False, loc="lower right", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure
