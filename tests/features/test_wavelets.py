"""The scattering transform, beside a convolution written out."""

import math

import numpy as np
import pytest

from discreet.features.made_up_images import strokes
from discreet.features.wavelets import Wavelets

CHANCE = np.random.default_rng(3)


def morlet(scale: int, angle: float, side: int) -> np.ndarray:
    """A Morlet wavelet in space, wrapped around a square."""
    width, frequency, slant = 0.8 * 2**scale, 0.75 * math.pi / 2**scale, 0.5
    wave, flat = np.zeros((2, side, side), complex)
    for turn in np.ndindex(7, 7):
        down, across = (np.arange(side) + (turn[axis] - 3) * side for axis in (0, 1))
        along = math.cos(angle) * across[None] + math.sin(angle) * down[:, None]
        aside = math.cos(angle) * down[:, None] - math.sin(angle) * across[None]
        bell = np.exp(-(along**2 + (slant * aside) ** 2) / (2 * width**2)) * slant / (2 * math.pi * width**2)
        wave += bell * np.exp(1j * frequency * along)
        flat += bell
    return wave - flat * (wave.sum() / flat.sum())


def convolve(image: np.ndarray, filter: np.ndarray) -> np.ndarray:
    """Around the edges of the square, term by term."""
    return sum(
        image[at] * np.roll(filter, at, axis=(0, 1))
        for at in np.ndindex(*image.shape)  # type: ignore[return-value]
    )


@pytest.mark.parametrize("scale", [0, 1])
def test_first_order_maps_are_averaged_lengths_of_wavelet_coefficients(scale):
    wavelets = Wavelets(12, 12, scales=2, angles=4)
    image = CHANCE.random((12, 12)).astype(np.float32)
    maps = wavelets.scatter(image)
    padded = np.pad(image, 2, mode="reflect").astype(float)
    places, centres = np.arange(16) - 2, (np.arange(3) + 0.5) * 4 - 0.5
    for turn in range(4):
        lengths = np.abs(convolve(padded, morlet(scale, math.pi * turn / 4, 16)))[:: 2**scale, :: 2**scale]
        bells = np.exp(-(((places[:: 2**scale] - centres[:, None]) / 1.6) ** 2) / 2)
        bells /= bells.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(maps[1 + 4 * scale + turn], bells @ lengths @ bells.T, atol=2e-4)


def test_a_flat_image_has_a_mean_and_no_waves():
    maps = Wavelets(20, 14, scales=2, angles=6).scatter(np.full((20, 14), 0.7, np.float32))
    np.testing.assert_allclose(maps[0], 0.7, rtol=1e-5)
    assert np.abs(maps[1:]).max() < 1e-5


def test_a_turned_image_has_turned_maps():
    wavelets = Wavelets(16, 16, scales=2, angles=8)
    image = CHANCE.random((16, 16)).astype(np.float32)
    upright, turned = wavelets.scatter(image), wavelets.scatter(np.ascontiguousarray(image.T))
    mirrored = [0, *(1 + (4 - k) % 8 for k in range(8))]  # an angle a of a wave becomes 90° - a
    np.testing.assert_allclose(turned[:9], upright[mirrored].transpose(0, 2, 1), atol=1e-5)


@pytest.mark.parametrize(
    ("height", "width", "scales", "shape"),
    [
        (28, 28, 2, (81, 7, 7)),
        (32, 32, 2, (81, 8, 8)),
        (64, 48, 3, (217, 8, 6)),
        (17, 23, 2, (81, 5, 6)),
        (8, 4, 1, (9, 4, 2)),
    ],
)
def test_any_size_gives_maps_of_cells(height, width, scales, shape):
    wavelets = Wavelets(height, width, scales=scales, angles=8)
    assert wavelets.shape == shape == wavelets.scatter(np.zeros((height, width), np.float32)).shape


def test_maps_hardly_move_with_the_image():
    wavelets = Wavelets(28, 28, scales=2, angles=8)
    image = strokes(28, 28, CHANCE)
    still, moved = wavelets.scatter(image), wavelets.scatter(np.roll(image, 1, axis=1))
    pixels = np.linalg.norm(image - np.roll(image, 1, axis=1)) / np.linalg.norm(image)
    assert np.linalg.norm(still - moved) / np.linalg.norm(still) < pixels / 2
