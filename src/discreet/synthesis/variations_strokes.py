"""Candidates for images of writing: curves of a pen, of which points move. No public image is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import positive, whole
from discreet.synthesis.layouts import Images
from discreet.synthesis.variations import Candidates, LayoutVariations

__all__ = ["StrokeVariations"]

_POINTS = 4  # of a cubic Bézier curve
_ALONG = 24  # places at which a curve is drawn
_MARGIN, _REACH = 0.15, 0.35  # of the side: where points begin, and how far they move at degree one
_BLOCK = 256  # images that are drawn at once: a speed knob


class StrokeVariations(LayoutVariations):
    """Grey images of ``strokes`` curves drawn by a pen as wide as ``pen`` pixels; a variation moves their points.

    Each curve is a cubic Bézier; one that begins where the last one ended is as likely as one that does not.

    >>> strokes = StrokeVariations(Images(shape=(8, 8), bounds=(0, 255)), strokes=2)
    >>> strokes.rows(strokes.draw(3, np.random.default_rng(1))).shape
    (3, 64)
    """

    def __init__(self, facts: Images, *, strokes: int = 3, pen: float = 1.0) -> None:
        super().__init__(facts)
        if len(facts.shape) != 2:
            raise ValueError(f"The images have shape {tuple(facts.shape)}, but strokes are grey: give two dimensions.")
        self.shape = facts.shape
        self.strokes, self.pen = whole("strokes", strokes, low=1), positive("pen", pen)

    def draw(self, n: int, rng: np.random.Generator) -> Candidates:
        """Points drawn evenly, away from the edge; half of the curves go on where the last one ended."""
        points = rng.uniform(_MARGIN, 1 - _MARGIN, (n, self.strokes, _POINTS, 2))
        for later in range(1, self.strokes):
            joined = rng.random(n) < 0.5
            points[joined, later, 0] = points[joined, later - 1, -1]
        return points

    def vary(self, candidates: Candidates, degree: float, rng: np.random.Generator) -> Candidates:
        """All points move a little together, and each by itself."""
        together = rng.normal(0, _REACH * degree / 2, (len(candidates), 1, 1, 2))
        alone = rng.normal(0, _REACH * degree, candidates.shape)
        return np.clip(candidates + together + alone, 0.0, 1.0)

    def rows(self, candidates: Candidates) -> Any:
        """Pixels by their distance to the nearest curve."""
        blocks = [self._drawn(candidates[at : at + _BLOCK]) for at in range(0, len(candidates), _BLOCK)]
        return np.concatenate([np.zeros((0, self.layout.numbers), np.float32), *blocks])

    def _drawn(self, points: NDArray[np.float64]) -> NDArray[np.float32]:
        height, width = self.shape
        t = np.linspace(0, 1, _ALONG)
        bernstein = np.stack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3], axis=1)
        curves = np.einsum("kp,nspc->nskc", bernstein, points).reshape(len(points), -1, 2)
        down = np.arange(height) - curves[..., :1] * (height - 1)
        across = np.arange(width) - curves[..., 1:] * (width - 1)
        near = np.exp(-(down**2) / (2 * self.pen**2)), np.exp(-(across**2) / (2 * self.pen**2))
        ink = (near[0][..., :, None] * near[1][..., None, :]).max(axis=1)
        return np.asarray(np.minimum(1.0, 1.4 * ink).reshape(len(points), -1), np.float32)
