"""Candidates for images: public ones, moved a little, with patches of one another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import extra
from discreet.synthesis.layouts import Images
from discreet.synthesis.variations import Candidates, LayoutVariations

__all__ = ["ImageVariations", "move_images"]

_TURN, _STRETCH, _SHIFT = 0.6, 0.35, 0.15  # radians, a share, a share of the side: at degree one
_PATCHED = 0.3  # the chance that a variation has a patch of another image


class ImageVariations(LayoutVariations):
    """Images like those of a public collection: turned, stretched, moved, with patches of one another.

    ``public`` are images that anyone may see, of the shape and bounds of ``facts``; their labels, if they have any, are
    not used: records vote. Grey images have two dimensions, coloured ones a third, last.

    >>> facts = Images(shape=(4, 4), bounds=(0, 255))
    >>> images = ImageVariations(np.full((3, 4, 4), 255.0), facts)
    >>> images.vary(images.draw(5, np.random.default_rng(1)), 0.1, np.random.default_rng(1)).shape
    (5, 4, 4)
    """

    def __init__(self, public: Any, facts: Images) -> None:
        super().__init__(facts)
        if len(facts.shape) not in (2, 3):
            raise ValueError(f"The images have shape {tuple(facts.shape)}, but must have two dimensions, or three.")
        pixels = np.asarray(public, np.float64)
        if pixels.ndim != len(facts.shape) + 1 or pixels.shape[1:] != tuple(facts.shape) or not len(pixels):
            raise ValueError(f"public has shape {pixels.shape}, but must be images of shape {tuple(facts.shape)}.")
        if not np.isfinite(pixels).all():
            raise ValueError("public has pixels that are no numbers.")
        low, high = facts.bounds
        self.public: NDArray[np.float32] = ((np.clip(pixels, low, high) - low) / (high - low)).astype(np.float32)

    def draw(self, n: int, rng: np.random.Generator) -> Candidates:
        """Public images."""
        return self.public[rng.integers(0, len(self.public), n)]

    def vary(self, candidates: Candidates, degree: float, rng: np.random.Generator) -> Candidates:
        """Moved, and some with a patch of another candidate at the same place."""
        moved = move_images(candidates, degree, rng)
        height, width = candidates.shape[1:3]
        for place in np.flatnonzero(rng.random(len(moved)) < _PATCHED):
            rows, columns = (max(1, round(side * (0.2 + 0.4 * degree))) for side in (height, width))
            top, left = rng.integers(0, height - rows + 1), rng.integers(0, width - columns + 1)
            other = candidates[rng.integers(0, len(candidates))]
            moved[place, top : top + rows, left : left + columns] = other[top : top + rows, left : left + columns]
        return moved

    def rows(self, candidates: Candidates) -> Any:
        """A pixel a number."""
        return candidates.reshape(len(candidates), -1)


def move_images(images: NDArray[np.float32], degree: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Each turned, stretched, leant and shifted by chance, about its middle; what comes in from outside is zero."""
    with extra("synthesis"):
        from scipy import ndimage
    moved, sides = np.empty_like(images), np.array(images.shape[1:3])
    middle = (sides - 1) / 2
    for place, image in enumerate(images):
        turn, lean = rng.normal(0, _TURN * degree, 2) * (1, 0.5)
        stretch = np.exp(rng.normal(0, _STRETCH * degree, 2))
        matrix = np.array([[np.cos(turn), -np.sin(turn) + lean], [np.sin(turn), np.cos(turn)]]) * stretch[:, None]
        offset = middle - matrix @ (middle + rng.normal(0, _SHIFT * degree, 2) * sides)
        layers = image[..., None] if image.ndim == 2 else image
        parts = [ndimage.affine_transform(layers[..., k], matrix, offset, order=1) for k in range(layers.shape[-1])]
        moved[place] = np.stack(parts, axis=-1).reshape(image.shape)
    return moved
