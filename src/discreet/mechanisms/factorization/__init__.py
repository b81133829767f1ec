"""Correlated noise as matrices: strategies, workloads, participations. Numbers only; training and statistics use them.

A *workload* is what a run makes of noisy sums, a *pattern* in which steps one record may take part, a *strategy* the
matrix C through which noise is correlated: x + C⁻¹z. Each knows its sensitivity and error before any data.

>>> strategy = BLT.optimised(Workload(1000), Pattern.passes(1000, 100), buffers=3)
>>> independent = Banded([1.0], 1000)
>>> [round(s.loss(Workload(1000), Pattern.passes(1000, 100)), 1) for s in (strategy, independent)]
[12.2, 70.7]

Decision 420.
"""

from __future__ import annotations

from discreet.mechanisms.factorization.banded import Banded, NormalisedBanded
from discreet.mechanisms.factorization.banded_inverse import BandedInverse
from discreet.mechanisms.factorization.blt import BLT
from discreet.mechanisms.factorization.dense import Dense, nuclear_bound
from discreet.mechanisms.factorization.kept_bins import kept_bins_event, why_not_amplified
from discreet.mechanisms.factorization.lambda_cgd import LambdaCGD
from discreet.mechanisms.factorization.participation import Bound, Pattern
from discreet.mechanisms.factorization.square_root import SquareRoot
from discreet.mechanisms.factorization.strategy import Measure, Strategy, noise_matrix
from discreet.mechanisms.factorization.tree import Tree
from discreet.mechanisms.factorization.workload import Workload

__all__ = [
    "BLT",
    "Banded",
    "BandedInverse",
    "Bound",
    "Dense",
    "LambdaCGD",
    "Measure",
    "NormalisedBanded",
    "Pattern",
    "SquareRoot",
    "Strategy",
    "Tree",
    "Workload",
    "kept_bins_event",
    "noise_matrix",
    "nuclear_bound",
    "why_not_amplified",
]
