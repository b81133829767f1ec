"""Features of images that no private record was needed for: a linear model on them learns from pictures, privately.

Nothing here has a cost, because nothing here is learnt from the images it is given.
"""

from __future__ import annotations

from discreet.features.scattering import Scattering

__all__ = ["Scattering"]
