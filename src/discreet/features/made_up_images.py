r"""Images by a random number generator: what one may ask how features hang together without asking private records.

``strokes``
    One or two smooth curves drawn with a pen, in the middle of the image: as letters, digits and signs are.
``leaves``
    Dead leaves: shapes of all sizes that cover one another, each of one colour with some shading. Their sizes follow
    a power law, so that edges and flat areas are as frequent at each scale as in photographs.

References: Lee, Mumford and Huang (2001), "Occlusion models for natural images"; for private learning with such
images, Tang et al. (2023), "Differentially private image classification by learning priors from random processes".
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["leaves", "strokes"]

Floats = NDArray[np.float32]
_KNOTS, _POINTS = 4, 48  # of a Bézier curve
_LEAVES = 60
_SMALLEST = 0.08  # radius, in sides of the image; its density is 1/r³ from there to 1


def strokes(height: int, width: int, chance: np.random.Generator) -> Floats:
    """An image from 0 (paper) to 1 (ink): one curve in two of five, two in the others, two thirds of the side long."""
    side, curves = min(height, width), 1 if chance.random() < 0.4 else 2
    points = (_bernstein() @ chance.standard_normal((curves, _KNOTS + 1, 2))).reshape(-1, 2)
    low, high = points.min(axis=0), points.max(axis=0)
    middle = np.array([height - 1, width - 1]) / 2 + chance.standard_normal(2) * side / 28
    points = (points - (low + high) / 2) / (high - low).max() * side * 9 / 14 + middle
    radius = (0.4 + chance.random()) * side / 28
    down = (np.arange(height)[:, None] - points[:, 0]) ** 2
    across = (np.arange(width)[:, None] - points[:, 1]) ** 2
    distance = np.sqrt((down[:, None] + across[None]).min(axis=2))
    ink: Floats = np.clip(1 - (distance - radius) / (1.2 * side / 28), 0, 1).astype(np.float32)
    return ink


@cache
def _bernstein() -> NDArray[np.float64]:
    """Weights of the corners of a Bézier curve at points along it."""
    steps = np.linspace(0, 1, _POINTS)
    return np.stack([math.comb(_KNOTS, k) * steps**k * (1 - steps) ** (_KNOTS - k) for k in range(_KNOTS + 1)], axis=1)


def leaves(height: int, width: int, channels: int, chance: np.random.Generator) -> Floats:
    """An image of ``channels`` numbers a pixel, from 0 to 1."""
    side = max(height, width)
    down, across = np.arange(height)[:, None] / side, np.arange(width)[None] / side
    image = np.full((height, width, channels), chance.random(), np.float32)
    for _ in range(_LEAVES):  # from the back to the front
        radius = _SMALLEST / math.sqrt(1 - chance.random() * (1 - _SMALLEST**2))
        turn, slant = chance.random() * math.pi, 0.3 + 0.7 * chance.random()
        y, x = down - chance.random() * height / side, across - chance.random() * width / side
        along, aside = math.cos(turn) * x + math.sin(turn) * y, (math.cos(turn) * y - math.sin(turn) * x) / slant
        inside = np.abs(along) + np.abs(aside) < radius if chance.random() < 0.5 else np.hypot(along, aside) < radius
        grey, tint = chance.random(), 0.15 * chance.standard_normal(channels) * (channels > 1)
        shade = grey + tint + 0.3 * chance.standard_normal() * along[..., None]
        image[inside] = np.clip(shade, 0, 1)[inside]
    return image
