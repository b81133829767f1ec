r"""Records as the solvers see them: inside the declared bounds, with a column of ones, the unusable blanked.

A row is mapped by public numbers only. With ``bounds`` each feature is shifted and scaled to [-1, 1] and cut there;
then the row is shrunk, if need be, to ``feature_norm`` and divided by it. So every row has norm at most 1, the constant
column (the regularised intercept) adds 1, and R² = 2, or 1 without an intercept: R² = feature_norm² + 1 in units of
``feature_norm``, whatever the units of the data.

A record with a feature that is NaN or infinite, a label outside the declared classes, or a target that is not a finite
number is blanked: its row is zero, the intercept's entry included, and it contributes nothing anywhere. It raises no
error, since an error would tell whoever sees it that such a record exists.

Decision 69.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.bounds import per_feature
from discreet.errors import number
from discreet.linear.placing import place

__all__ = ["Map", "Records"]

_INSIDE = 1 - 2.0**-30  # rows are shrunk to this, so that no rounding of a norm can leave the unit ball


@dataclass(frozen=True, slots=True)
class Records:
    """Rows inside the unit ball, with the intercept's column; class numbers or scaled targets; which are usable."""

    rows: NDArray[np.float64]
    targets: NDArray[Any]
    usable: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return "Records(...)"

    def take(self, chosen: NDArray[Any]) -> Records:
        """Some of the records."""
        return Records(self.rows[chosen], self.targets[chosen], self.usable[chosen])

    def signs_or_targets(self, loss: str) -> NDArray[np.float64]:
        """Targets as the kernels of a loss of one score take them: numbers for the squared loss, otherwise -1 and 1 for
        classes; 0 for a record that is not usable.
        """
        labels = loss != "squared" and self.targets.dtype.kind in "iub"
        values = np.where(self.targets == 1, 1.0, -1.0) if labels else self.targets.astype(np.float64)
        return np.where(self.usable, values, 0.0)

    @property
    def keys(self) -> Sequence[bytes]:
        """Names of the records for sampling coins, made only when somebody asks."""
        return _ClassKeys(self)


class _ClassKeys(Sequence[bytes]):
    def __init__(self, records: Records) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: Any) -> Any:
        return self._records.rows[index].tobytes() + self._records.targets[index].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        return (self[i] for i in range(len(self)))


@dataclass(frozen=True, slots=True)
class Map:
    """The public map from a user's features to rows in the unit ball: (x - shift)/scale, cut, shrunk, divided."""

    shift: NDArray[np.float64] | float
    scale: NDArray[np.float64] | float
    norm: float
    bounded: bool
    intercept: bool

    @staticmethod
    def from_bounds(feature_norm: float | None, bounds: Any, features: int, intercept: bool, names: Any = None) -> Map:
        """The map that ``feature_norm`` and ``bounds`` declare for so many features, or columns of these names."""
        if bounds is None:
            return Map(0.0, 1.0, _norm(1.0 if feature_norm is None else feature_norm), False, intercept)
        low, high = per_feature(bounds, features, names)
        scale, norm = (high - low) / 2, _norm(math.sqrt(features) if feature_norm is None else feature_norm)
        if not (scale * norm >= 2.0**-960).all():  # or no double holds the coefficients
            raise ValueError(
                "bounds lie too close together: each lower one must be below its upper one by 1e-288 or more, "
                "times feature_norm if that is declared."
            )
        return Map((low + high) / 2, scale, norm, True, intercept)

    @property
    def square(self) -> float:
        """R², which no row's squared norm exceeds."""
        return 2.0 if self.intercept else 1.0

    def __call__(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows in the unit ball with the intercept's column; a row that is not finite comes back as NaN."""
        n, d = features.shape
        rows = np.empty((n, d + self.intercept))
        shift, scale = (
            np.ascontiguousarray(np.broadcast_to(side, (d,)), np.float64) for side in (self.shift, self.scale)
        )
        place(np.ascontiguousarray(features, np.float64), shift, scale, self.norm, self.bounded, _INSIDE, rows)
        return rows

    def inside(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Finite features as the map leaves them, cut and shrunk, in the user's units."""
        rows = self(features)[:, : features.shape[1]]
        return np.asarray(rows * self.norm * self.scale + self.shift)

    def records(self, features: NDArray[np.float64], targets: NDArray[Any]) -> Records:
        """Rows with the unusable blanked: a class number below 0, a target or a feature that is not finite."""
        rows = self(features)
        usable = np.isfinite(targets) if targets.dtype.kind == "f" else targets >= 0
        usable = usable & ~np.isnan(rows[:, 0]) if rows.shape[1] else usable
        rows[~usable] = 0.0
        return Records(rows, np.where(usable, targets, 0), usable)

    def outward(self, weights: NDArray[np.float64], features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Coefficients and intercepts in the user's units, of weights (p × k) in the unit ball's."""
        coefficients = weights[:features] / self.norm / np.broadcast_to(self.scale, (features,))[:, None]
        intercept = weights[features] if self.intercept else np.zeros(weights.shape[1])
        return coefficients.T, intercept - np.broadcast_to(self.shift, (features,)) @ coefficients


def _norm(value: object) -> float:
    return number("feature_norm", value, low=2.0**-500, high=2.0**500)
