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


@cache
def _filters() -> tuple[Tensor, Tensor, Tensor]:
    """Fine and coarse wavelets, and the low pass that also thins 32 × 32 to 8 × 8 (one side of it)."""
    centres = torch.arange(CELLS) * 4 + 1.5
    low = torch.exp(-((torch.arange(PADDED) - centres[:, None]) ** 2) / (2 * 1.6**2))
    return _wavelets(0), _wavelets(1), low / (1.6 * math.sqrt(2 * math.pi))


def scattering(images: Tensor) -> Tensor:
    """Of images of 28 × 28 numbers from 0 to 1: rows of 81 · 8 · 8 numbers."""
    fine, coarse, low = _filters()
    edge = (PADDED - SIDE) // 2
    padded = torch.nn.functional.pad(images, (edge, edge, edge, edge))
    transformed = torch.fft.fft2(padded)
    first_fine = torch.fft.ifft2(transformed[:, None] * fine).abs()
    first_coarse = torch.fft.ifft2(transformed[:, None] * coarse).abs()
    again = torch.fft.fft2(first_fine)
    second = torch.fft.ifft2(again[:, :, None] * coarse).abs().flatten(1, 2)
    maps = torch.cat([padded[:, None], first_fine, first_coarse, second], dim=1)
    return (low @ maps @ low.T).flatten(1)


# --- made-up strokes ----------------------------------------------------------------------------------------------------


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
