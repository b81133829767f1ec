"""Small images: histograms of oriented gradients (features that no data set was needed for), a network, random
changes."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Strong", "Weak", "hog", "network"]

Array = NDArray[np.float32]


def _maps(images: Array, bins: int) -> Array:
    """The gradient's length at each pixel, shared between the two directions nearest to its own."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    across = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    length, turn = np.hypot(across, down), np.arctan2(down, across) / (2 * np.pi) * bins
    low = np.floor(turn)
    share, low = (turn - low).astype(np.float32), low.astype(np.int64)
    found = np.zeros((*images.shape, bins), np.float32)
    np.put_along_axis(found, (low % bins)[..., None], (length * (1 - share))[..., None], axis=-1)
    np.put_along_axis(found, ((low + 1) % bins)[..., None], (length * share)[..., None], axis=-1)
    return found


def _blocks(maps: Array, cell: int) -> Array:
    """Sums over cells that overlap by half, in blocks of 2 × 2 neighbours, each block of length one."""
    n, side, _, bins = maps.shape
    half = cell // 2
    small = maps.reshape(n, side // half, half, side // half, half, bins).sum(axis=(2, 4))
    cells = small[:, :-1, :-1] + small[:, 1:, :-1] + small[:, :-1, 1:] + small[:, 1:, 1:]
    blocks = np.concatenate([cells[:, :-2, :-2], cells[:, 2:, :-2], cells[:, :-2, 2:], cells[:, 2:, 2:]], axis=-1)
    blocks = blocks[:, ::2, ::2]
    blocks = blocks / np.sqrt((blocks**2).sum(axis=-1, keepdims=True) + (0.1 * cell) ** 2)
    return np.minimum(blocks, 0.3).reshape(n, -1)


def hog(images: NDArray[np.uint8], bins: int = 8, batch: int = 2000) -> Array:
    """Features of images of 28 × 28 grey levels, each image by itself."""
    parts = []
    for start in range(0, len(images), batch):
        maps = _maps(images[start : start + batch].astype(np.float32) / 255, bins)
        parts.append(np.concatenate([_blocks(maps, 4), _blocks(maps, 14)], axis=1))
    return np.concatenate(parts)


# --- a student -----------------------------------------------------------------------------------------------------


def network() -> nn.Module:
    """Of rows of 784 numbers from 0 to 1, three convolutions and a linear layer."""
    layers: list[nn.Module] = [nn.Unflatten(1, (1, 28, 28))]
    for inside, outside in ((1, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(576, 10))


class Weak:
    """Turned, stretched and moved a little."""

    turn, stretch, move = 0.1, 0.08, 0.07

    def __call__(self, rows: Tensor, chance: torch.Generator) -> Tensor:
        size = len(rows)

        def spread(width: float) -> Tensor:
            return (torch.rand(size, generator=chance) * 2 - 1) * width

        angle, across, down, lean = (
            spread(self.turn),
            1 + spread(self.stretch),
            1 + spread(self.stretch),
            spread(self.turn),
        )
        cos, sin = torch.cos(angle), torch.sin(angle)
        first = torch.stack([cos * across, -sin + lean, spread(self.move)], dim=1)
        second = torch.stack([sin, cos * down, spread(self.move)], dim=1)
        grid = functional.affine_grid(torch.stack([first, second], dim=1), [size, 1, 28, 28], align_corners=False)
        return functional.grid_sample(rows.view(-1, 1, 28, 28), grid, align_corners=False).view(size, 784)


class Strong(Weak):
    """Turned, stretched and moved more, with a square missing."""

    turn, stretch, move = math.pi / 7, 0.25, 0.18

    def __call__(self, rows: Tensor, chance: torch.Generator) -> Tensor:
        images = super().__call__(rows, chance).view(-1, 28, 28)
        centre = torch.randint(0, 28, (len(images), 2, 1), generator=chance)
        near = (torch.arange(28) - centre).abs() <= 4
        return (images * ~(near[:, 0, :, None] & near[:, 1, None, :])).view(-1, 784)
