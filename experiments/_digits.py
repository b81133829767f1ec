"""Histograms of oriented gradients of small images: features that no data set was needed for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["shifted", "hog"]

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


def shifted(images: NDArray[np.uint8], down: int, right: int) -> NDArray[np.uint8]:
    """Images moved by whole pixels; what comes in is black."""
    moved = np.roll(images, (down, right), axis=(1, 2))
    if down:
        moved[:, :down] = 0 if down > 0 else moved[:, :down]
        moved[:, down:] = 0 if down < 0 else moved[:, down:]
    if right:
        moved[:, :, :right] = 0 if right > 0 else moved[:, :, :right]
        moved[:, :, right:] = 0 if right < 0 else moved[:, :, right:]
    return moved
