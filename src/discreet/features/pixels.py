"""Images of any container as numbers from 0 to 1, channels last."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["channels_of", "read_images"]

Floats = NDArray[np.float32]
MOST_CHANNELS = 4


def channels_of(shape: Any) -> tuple[tuple[int, int], int]:
    """Height and width, and the number of channels, of images of that shape.

    >>> channels_of((28, 28)), channels_of((3, 32, 32)), channels_of((32, 32, 3))
    (((28, 28), 1), ((32, 32), 3), ((32, 32), 3))
    """
    sides = tuple(int(side) for side in shape)
    match sides:
        case (height, width):
            channels = 1
        case (channels, height, width) if channels <= MOST_CHANNELS < width:
            pass
        case (height, width, channels) if channels <= MOST_CHANNELS < height:
            pass
        case _:
            raise ValueError(
                f"shape is {shape!r}, but must be that of one image: (height, width), or with at most "
                f"{MOST_CHANNELS} channels first or last."
            )
    if min(sides) < 1 or min(height, width) < 4:
        raise ValueError(f"shape is {shape!r}, but each side must have 4 pixels or more.")
    return (height, width), channels


def read_images(images: Any, shape: tuple[int, ...], white: float | None) -> Floats:
    """Images × height × width × channels, from 0 to 1; what is no number is 0.

    ``white`` is the value of a white pixel: by default 255 for whole numbers, 1 for fractions; the type decides.
    """
    array = np.asarray(images.detach().cpu() if hasattr(images, "detach") else images)
    if array.dtype.kind not in "buif":
        raise ValueError(f"The images hold {array.dtype}, but must be numbers: an array, a tensor or rows of pixels.")
    (height, width), channels = channels_of(shape)
    size = height * width * channels
    if array.ndim < 2 or int(np.prod(array.shape[1:])) != size:
        raise ValueError(f"Images have shape {array.shape[1:]}, but shape is {tuple(shape)}: {size} numbers.")
    if array.ndim > 2 and tuple(side for side in array.shape[1:] if side > 1) != tuple(s for s in shape if s > 1):
        raise ValueError(
            f"Images have shape {array.shape[1:]}, but shape is {tuple(shape)}: name the axes in their order."
        )
    if white is None:
        white = 255.0 if array.dtype.kind in "ui" else 1.0
    levels: Floats = np.nan_to_num(array.astype(np.float32) / np.float32(white), nan=0.0)
    levels = np.clip(levels, 0.0, 1.0)
    if len(shape) == 3 and tuple(shape[1:]) == (height, width):
        return np.moveaxis(levels.reshape(-1, channels, height, width), 1, -1)
    return levels.reshape(-1, height, width, channels)
