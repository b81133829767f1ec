r"""The square root of the workload: C = B = A^{1/2}, Toeplitz like A.

For prefix sums the coefficients are those of (1 - x)^{-1/2}, and the largest error at one participation is the least
that any Toeplitz matrix has. All of the run's noise is remembered.

Reference: Fichtenberger, Henzinger and Upadhyay (2023); Henzinger, Upadhyay and Upadhyay (2023); optimality: Dvijotham
et al. (2024).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.mechanisms.factorization import toeplitz
from discreet.mechanisms.factorization.banded_inverse import weighted_draws
from discreet.mechanisms.factorization.strategy import ToeplitzStrategy
from discreet.mechanisms.factorization.workload import Workload

__all__ = ["SquareRoot"]


class SquareRoot(ToeplitzStrategy):
    """The root of a Toeplitz workload.

    >>> from discreet.mechanisms.factorization.participation import Pattern
    >>> root = SquareRoot(Workload(512))
    >>> [round(root.loss(Workload(512), Pattern.single(512), m), 4) for m in ("mean", "max")]
    [2.8892, 3.0518]
    """

    def __init__(self, workload: Workload) -> None:
        n = workload.steps
        if workload.is_prefix:
            super().__init__(toeplitz.power_series(-0.5, n), toeplitz.power_series(0.5, n))
        elif workload.is_toeplitz:
            c = toeplitz.root(workload.coefficients)
            super().__init__(c / c[0], toeplitz.inverse(c / c[0]))
        else:
            raise ValueError("The step sizes differ, so the workload is not Toeplitz and has no such root: use Dense.")
        self.memory = n - 1

    def advance(self, step: int, draw: Callable[[], Any], memory: list[Any]) -> Any:
        """All earlier draws, weighted."""
        return weighted_draws(self.inverse_coefficients, draw(), memory, self.steps - 1)
