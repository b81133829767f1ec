r"""One step's noise taken back in part at the next: C⁻¹ = 1 - λx, with C's coefficients λ^t.

The one draw that is remembered can be drawn again from its stream, so that nothing of a model's size is kept.

Reference: DP-λCGD (arXiv:2601.22334).
"""

from __future__ import annotations

from scipy.optimize import minimize_scalar

from discreet.errors import number
from discreet.mechanisms.factorization import toeplitz
from discreet.mechanisms.factorization.banded_inverse import BandedInverse
from discreet.mechanisms.factorization.participation import Pattern
from discreet.mechanisms.factorization.strategy import Measure
from discreet.mechanisms.factorization.workload import Workload

__all__ = ["LambdaCGD"]


class LambdaCGD(BandedInverse):
    """C⁻¹ of two bands, 1 and -λ.

    >>> from discreet.mechanisms.factorization.participation import Pattern
    >>> best = LambdaCGD.optimised(Workload(1024), Pattern.passes(1024, 64))
    >>> round(best.back, 2), round(best.loss(Workload(1024), Pattern.passes(1024, 64)), 1)
    (0.95, 20.0)
    """

    def __init__(self, back: float, steps: int) -> None:
        self.back = float(toeplitz.single(number("back", back, low=0, high=1, open_high=True)))
        super().__init__([1.0, -self.back], steps)

    @classmethod
    def optimised(  # type: ignore[override]
        cls, workload: Workload, pattern: Pattern, measure: Measure = "mean"
    ) -> LambdaCGD:
        """The best λ."""
        steps = workload.steps
        best = minimize_scalar(
            lambda u: cls(1 - 10.0**u, steps).loss(workload, pattern, measure), bounds=(-6, 0), method="bounded"
        )
        return cls(1 - 10.0 ** float(best.x), steps)
