r"""What the noise of a run is felt through: the sums over steps that an optimiser makes of noisy gradients.

After step t the model has moved by row t of A times the gradients. Plain descent has prefix sums. Momentum β and a
weight decay that keeps a share α of the model at every step give the Toeplitz matrix of
:math:`w_j = \sum_{i \le j} \alpha^i \beta^{j-i}`; a schedule of step sizes χ multiplies column i by χ_i.

Reference: Kalinin and Lampert (2024), Section 2, for momentum and weight decay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from discreet.errors import nonnegative, number, whole
from discreet.mechanisms.factorization.toeplitz import Floats

__all__ = ["Workload"]


@dataclass(frozen=True, slots=True)
class Workload:
    """The lower-triangular matrix A of ``steps`` steps; prefix sums unless more is said.

    >>> Workload(3).matrix()
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    >>> Workload(3, momentum=0.5, rates=(1.0, 1.0, 0.1)).matrix()
    array([[1.  , 0.  , 0.  ],
           [1.5 , 1.  , 0.  ],
           [1.75, 1.5 , 0.1 ]])
    """

    steps: int
    momentum: float = 0.0
    decay: float = 1.0  # the share of the model that a step keeps: 1 - step size times weight decay
    rates: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        whole("steps", self.steps, low=1)
        number("momentum", self.momentum, low=0, high=1, open_high=True)
        number("decay", self.decay, low=0, high=1, open_low=True)
        if self.rates is not None:
            object.__setattr__(self, "rates", tuple(nonnegative("rates", rate) for rate in self.rates))
            if len(self.rates or ()) != self.steps:
                raise ValueError(f"rates has {len(self.rates or ())} entries, but needs one for each of the steps.")

    @property
    def is_toeplitz(self) -> bool:
        """Whether it is the matrix of ``coefficients`` alone."""
        return self.rates is None or len(set(self.rates)) == 1

    @property
    def is_prefix(self) -> bool:
        """Whether it is prefix sums."""
        return (
            self.is_toeplitz
            and self.momentum == 0.0
            and self.decay == 1.0
            and self.rates in (None, (1.0,) * self.steps)
        )

    @property
    def coefficients(self) -> Floats:
        """The first column, where it is Toeplitz; without the rates otherwise."""
        kept = self.decay ** np.arange(self.steps)
        w = np.asarray(lfilter([1.0], [1.0, -self.momentum], kept))
        return w * self.rates[0] if self.rates is not None and self.is_toeplitz else w

    def matrix(self) -> Floats:
        """A, dense."""
        return self.apply(np.eye(self.steps))

    def apply(self, rows: Floats) -> Floats:
        """A times a matrix of so many rows, in time of its size."""
        given = rows if self.rates is None else rows * np.asarray(self.rates)[:, None]
        moved = lfilter([1.0], [1.0, -self.momentum], given, axis=0) if self.momentum else given
        return np.asarray(lfilter([1.0], [1.0, -self.decay], moved, axis=0))
