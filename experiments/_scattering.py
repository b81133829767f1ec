r"""Features of small images that no data set was needed for: a scattering transform, seen along the axes of made-up
pen strokes.

The scattering transform (Bruna and Mallat 2013) of an image x, with wavelets :math:`\psi` of 2 scales and 8 angles and
a low pass :math:`\phi`, is

.. math:: x * \phi, \quad |x * \psi_1| * \phi, \quad ||x * \psi_1| * \psi_2| * \phi,

81 maps of 8 × 8. Nothing in it is learned, and an image's features are its own.

Its 5,184 numbers are far from independent, which is bad for descent with few noisy steps. How they hang together is
asked of curves drawn by a random number generator, not of the digits: their mean and principal axes are public, and
cost nothing (the idea of Tang et al. 2023, "Differentially private image classification by learning priors from random
processes", for a linear map).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Axes", "scattering", "strokes"]

SIDE, PADDED, MAPS, CELLS = 28, 32, 81, 8
ANGLES = 8


# --- the transform ----------------------------------------------------------------------------------------------------


def _wavelets(scale: int) -> Tensor:
    """Morlet wavelets of one scale, one for each angle, by their (real) Fourier transforms on the padded square."""
    width, frequency, slant = 0.8 * 2**scale, 0.75 * math.pi / 2**scale, 0.5
    turns = torch.arange(-2, 3) * 2 * math.pi
    omega = torch.fft.fftfreq(PADDED) * 2 * math.pi
    down, across = omega[:, None, None, None] + turns[:, None], omega[:, None, None] + turns
    found = []
    for angle in range(ANGLES):
        cos, sin = math.cos(math.pi * angle / ANGLES), math.sin(math.pi * angle / ANGLES)
        along, aside = cos * across + sin * down, cos * down - sin * across

        def bell(centre: float, along: Tensor = along, aside: Tensor = aside) -> Tensor:
            return torch.exp(-(width**2) * ((along - centre) ** 2 + (aside / slant) ** 2) / 2)

        mean = math.exp(-((width * frequency) ** 2) / 2)  # so that a wavelet of a flat image is zero
        found.append((bell(frequency) - mean * bell(0.0)).sum(dim=(2, 3)))
    return torch.stack(found)


def _low_pass(side: int) -> Tensor:
    """A bell four pixels of the padded square apart, which also thins one side to CELLS numbers."""
    pixel = PADDED // side
    places, centres = (torch.arange(side) + 0.5) * pixel, (torch.arange(CELLS) + 0.5) * PADDED / CELLS
    width = 0.8 * 2
    return torch.exp(-((places - centres[:, None]) ** 2) / (2 * width**2)) * pixel / (width * math.sqrt(2 * math.pi))


@cache
def _filters() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Fine and coarse wavelets, and the low pass on the whole and on the half square."""
    return _wavelets(0), _wavelets(1), _low_pass(PADDED), _low_pass(PADDED // 2)


def _coarse(transformed: Tensor, wavelets: Tensor) -> Tensor:
    """Lengths of what coarse wavelets find, at every other pixel: the spectrum is folded before it is turned back."""
    half = PADDED // 2
    folded = (transformed[..., None, :, :] * wavelets).unflatten(-1, (2, half)).sum(-2)
    return torch.fft.ifft2(folded.unflatten(-2, (2, half)).sum(-3) / 4).abs()


def scattering(images: Tensor) -> Tensor:
    """Of images of 28 × 28 numbers from 0 to 1: rows of 81 · 8 · 8 numbers."""
    fine, coarse, low, low_half = _filters()
    edge = (PADDED - SIDE) // 2
    padded = torch.nn.functional.pad(images, (edge, edge, edge, edge))
    transformed = torch.fft.fft2(padded)
    first = torch.fft.ifft2(transformed[:, None] * fine).abs()
    coarser = torch.cat([_coarse(transformed, coarse), _coarse(torch.fft.fft2(first), coarse).flatten(1, 2)], dim=1)
    whole = low @ torch.cat([padded[:, None], first], dim=1) @ low.T
    return torch.cat([whole, low_half @ coarser @ low_half.T], dim=1).flatten(1)


# --- made-up strokes -------------------------------------------------------------------------------------------------


def strokes(count: int, seed: int) -> Tensor:
    """Images of one or two random smooth curves, 20 pixels long at most and in the middle, as written digits are."""
    chance = torch.Generator().manual_seed(seed)
    knots = 4
    steps = torch.linspace(0, 1, 48)
    basis = torch.stack([math.comb(knots, k) * steps**k * (1 - steps) ** (knots - k) for k in range(knots + 1)], dim=1)
    corners = torch.randn(count, 2, knots + 1, 2, generator=chance)
    curves = basis @ corners
    alone = torch.rand(count, generator=chance) < 0.4
    curves[alone, 1] = curves[alone, 0]  # one curve, drawn twice
    points = curves.flatten(1, 2)
    low, high = points.amin(dim=1, keepdim=True), points.amax(dim=1, keepdim=True)
    points = (points - (low + high) / 2) / (high - low).amax(dim=2, keepdim=True) * 18 + (SIDE - 1) / 2
    points = points + torch.randn(count, 1, 2, generator=chance)
    radius = 0.4 + 1.0 * torch.rand(count, 1, 1, generator=chance)
    place = torch.arange(SIDE, dtype=torch.float32)
    squares = (place - points[:, :, :1]) ** 2, (place - points[:, :, 1:]) ** 2
    distance = (squares[0][:, :, :, None] + squares[1][:, :, None, :]).amin(dim=1).sqrt()
    return (1 - (distance - radius) / 1.2).clamp(0, 1)


# --- axes -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axes:
    """The mean of made-up strokes, and their principal axes with the variances along them."""

    mean: Tensor
    directions: Tensor  # 5,184 × kept
    variances: Tensor

    @classmethod
    def of_strokes(cls, count: int = 10_000, kept: int = 500, seed: int = 0) -> Axes:
        """Each of the 81 maps has variance one first, so that the finer ones count."""
        rows = torch.cat([scattering(strokes(len(part), seed + int(part[0]))) for part in _parts(count)])
        mean = rows.mean(dim=0)
        rows -= mean
        scale = rows.unflatten(1, (MAPS, -1)).square().mean(dim=(0, 2)).rsqrt().repeat_interleave(CELLS**2)
        rows *= scale
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            _, lengths, directions = torch.pca_lowrank(rows, q=min(kept + 20, *rows.shape), center=False)
        return cls(mean, (scale[:, None] * directions)[:, :kept].contiguous(), lengths[:kept] ** 2 / count)

    def of(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Of images of 28 × 28 grey levels: rows of norm 1.

        Variances become their roots: axes are evened out half the way, so that descent gets along the minor ones too
        and they do not drown the others.
        """
        found = []
        for part in _parts(len(images)):
            chosen = torch.from_numpy(images[part]).float() / 255
            along = (scattering(chosen) - self.mean) @ self.directions / self.variances**0.25
            found.append(torch.nn.functional.normalize(along, dim=1))
        return torch.cat(found).numpy()


def _parts(count: int, size: int = 200) -> Iterator[NDArray[np.int64]]:
    for start in range(0, count, size):
        yield np.arange(start, min(start + size, count))
