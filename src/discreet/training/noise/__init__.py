"""Noise on clipped sums: a part of a run, handed to ``make_private(..., noise=...)``.

>>> Independent()
Independent()
"""

from __future__ import annotations

from discreet.training.noise.base import Noise, Step
from discreet.training.noise.gaussians import Gaussians
from discreet.training.noise.independent import Independent

__all__ = ["Gaussians", "Independent", "Noise", "Step"]
