"""Scattering features of images, seen along the principal axes of made-up images: rows for a linear model.

The thousands of numbers that the transform gives are far from independent, which is bad for descent with few noisy
steps. How they hang together is asked of images by a random number generator: their mean and principal axes are public
and cost nothing. Variances along the axes become their roots, so that the minor axes count without drowning the others,
and rows get length 1, so that clipping treats images alike.

References: Tramèr and Boneh (2021), "Differentially private learning needs better features (or much more data)"; Tang
et al. (2023), "Differentially private image classification by learning priors from random processes".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import choice, extra, number, whole
from discreet.features.made_up_images import leaves, strokes
from discreet.features.pixels import channels_of, read_images
from discreet.features.wavelets import Wavelets

with extra("sklearn"):
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted

__all__ = ["Scattering"]

KINDS = {"strokes": "writing and signs", "leaves": "photographs and things"}
_MADE_UP = 5_000  # images that axes are computed from
_KEPT = 500  # axes
_CELLS = 8  # a side, about: more scales for larger images
_GRAIN, _FINE = (
    1 << 10,
    1 << 16,
)  # parts of a feature and of an axis: products of 2^20 of them add up exactly in doubles
_LARGEST = 1 << 6  # of a feature in standard deviations; hardly any is longer than ten
Floats = NDArray[np.float32]


@dataclass(eq=False, repr=False, kw_only=True)
class Scattering(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Public features of images: a scattering transform along the principal axes of made-up images.

    Parameters
    ----------
    shape:
        Of one image: ``(height, width)``, or with channels first or last. Images may be given as rows of pixels too.
    images:
        What the made-up images are like: "strokes" (writing and signs) or "leaves" (photographs and things).
    n_components:
        Numbers a row has: more hold more, and need more data or a larger epsilon. By default 500, or half of what the
        transform of a small image gives.
    scales, angles:
        Of the wavelets; by default, scales are such that about 8 × 8 cells are left.
    largest:
        The value of a white pixel. By default 255 for whole numbers, which are bytes, and 1 for fractions.
    random_state:
        The seed of the made-up images, which are public.

    Guarantee: an image's row is computed from that image alone, and nothing is learnt from the images: it costs
    nothing, and one record changes one row. ``fit`` makes the axes; keep what was fitted with the model.

    >>> X = np.random.default_rng(0).integers(0, 256, (3, 8, 8), np.uint8)
    >>> rows = Scattering(shape=(8, 8), n_components=20).fit_transform(X)
    >>> rows.shape, np.linalg.norm(rows, axis=1).round(5).tolist()
    ((3, 20), [1.0, 1.0, 1.0])
    """

    shape: tuple[int, ...]
    images: str = "strokes"
    n_components: int | None = None
    scales: int | None = None
    angles: int = 8
    largest: float | None = None
    random_state: int = 0

    made_up: ClassVar[int] = _MADE_UP

    def fit(self, X: Any = None, y: Any = None) -> Scattering:
        """Make the axes; ``X`` is not looked at."""
        wavelets, channels = self._wavelets(), channels_of(self.shape)[1]
        size = channels * wavelets.size
        kept = min(_KEPT, size // 2) if self.n_components is None else self.n_components
        kept = whole("n_components", kept, low=1, high=min(self.made_up, size) - 1)
        choice("images", self.images, KINDS)
        chance = np.random.default_rng(whole("random_state", self.random_state, low=0))
        rows = np.stack([_scatter(wavelets, each) for each in self._make_images(wavelets, channels, chance)])
        self.mean_ = rows.mean(axis=0)
        rows -= self.mean_
        maps = rows.reshape(len(rows), -1, wavelets.shape[1] * wavelets.shape[2])
        variances = np.maximum(np.square(maps).mean(axis=(0, 2)), np.finfo(np.float32).tiny)
        self.scale_ = np.repeat(1 / np.sqrt(variances), maps.shape[2]).astype(np.float32)
        rows *= self.scale_
        lengths, axes = _principal_axes(rows, kept, chance)
        self.axes_, self.weights_ = np.rint(axes * _FINE), (lengths**2 / len(rows)) ** -0.25
        return self

    def transform(self, X: Any) -> Floats:
        """A row of length 1 for each image (of zeros, where an image is as the mean of the made-up ones)."""
        check_is_fitted(self)
        wavelets = self._wavelets()
        blocks = [self._rows(wavelets, block) for block in _blocks(read_images(X, self.shape, self._white()))]
        return np.concatenate(blocks) if blocks else np.empty((0, len(self.weights_)), np.float32)

    def _rows(self, wavelets: Wavelets, block: Floats) -> Floats:
        features = np.stack([_scatter(wavelets, image) for image in block])
        parts = np.rint(np.clip((features - self.mean_) * self.scale_, -_LARGEST, _LARGEST) * np.float32(_GRAIN))
        along = (parts.astype(np.float64) @ self.axes_) * (self.weights_ / (_GRAIN * _FINE))
        lengths = np.sqrt(np.square(along).sum(axis=1, keepdims=True))
        return np.asarray(along / np.where(lengths > 0, lengths, 1.0), np.float32)

    def _wavelets(self) -> Wavelets:
        (height, width), _ = channels_of(self.shape)
        scales = max(1, round(np.log2(min(height, width) / _CELLS))) if self.scales is None else self.scales
        scales = whole("scales", scales, low=1, high=max(1, int(np.log2(min(height, width)))))
        return Wavelets(height, width, scales=scales, angles=whole("angles", self.angles, low=1, high=64))

    def _white(self) -> float | None:
        return None if self.largest is None else number("largest", self.largest, low=2.0**-100, high=2.0**100)

    def _make_images(self, wavelets: Wavelets, channels: int, chance: np.random.Generator) -> Iterator[Floats]:
        for _ in range(self.made_up):
            if self.images == "leaves":
                yield leaves(wavelets.height, wavelets.width, channels, chance)
            else:
                yield np.repeat(strokes(wavelets.height, wavelets.width, chance)[..., None], channels, axis=2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def _scatter(wavelets: Wavelets, image: Floats) -> Floats:
    """All maps of all channels of one image, in one row; colours by lightness and two differences of colours."""
    channels = np.moveaxis(image, -1, 0)
    if len(channels) == 3:
        red, green, blue = channels
        channels = np.stack([(red + green + blue) / 3, red - green, blue - (red + green) / 2])
    return np.concatenate([wavelets.scatter(channel).ravel() for channel in channels])


def _blocks(images: Floats, size: int = 256) -> Iterator[Floats]:
    for start in range(0, len(images), size):
        yield images[start : start + size]


def _principal_axes(rows: Floats, kept: int, chance: np.random.Generator) -> tuple[Floats, Floats]:
    """Lengths and directions of the largest axes, by subspace iteration (Halko, Martinsson and Tropp 2011)."""
    sketch = np.linalg.qr(rows @ chance.standard_normal((rows.shape[1], kept + 20), np.float32))[0]
    for _ in range(2):
        sketch = np.linalg.qr(rows @ np.linalg.qr(rows.T @ sketch)[0])[0]
    _, lengths, axes = np.linalg.svd(sketch.T @ rows, full_matrices=False)
    return lengths[:kept], axes[:kept].T
