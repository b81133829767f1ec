r"""The scattering transform of an image: what wavelets find in it, and what wavelets find in that, averaged over cells.

With wavelets :math:`\psi_{j,\theta}` of J scales and L angles and a low pass :math:`\phi`, it is

.. math:: x * \phi, \quad |x * \psi_{j,\theta}| * \phi, \quad ||x * \psi_{j,\theta}| * \psi_{k,\eta}| * \phi
          \quad (k > j),

that is 1 + JL + L²J(J-1)/2 maps with a number for each cell of 2^J × 2^J pixels. Nothing in it is learnt.

An image is transformed alone, by operations that are rounded the same way whatever else is in memory, so that its
features do not depend on any other image, down to the last bit.

Reference: Bruna and Mallat (2013), "Invariant Scattering Convolution Networks".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import fft

__all__ = ["Wavelets"]

Floats = NDArray[np.float32]

# Morlet wavelets as the field draws them: an octave each, and half as wide across the wave as along it.
_WIDTH, _FREQUENCY, _SLANT = 0.8, 0.75 * math.pi, 0.5
_TURNS = np.arange(-2, 3) * 2 * math.pi  # a sampled wavelet's spectrum repeats; what lies further out is nothing


@dataclass(frozen=True)
class Wavelets:
    """Filters for images of ``height`` × ``width`` pixels; ``scatter`` applies them.

    >>> Wavelets(28, 28, scales=2, angles=8).shape
    (81, 7, 7)
    """

    height: int
    width: int
    scales: int
    angles: int

    @property
    def cells(self) -> tuple[int, int]:
        """Cells of 2^J pixels that cover the image."""
        return -(-self.height >> self.scales), -(-self.width >> self.scales)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of what comes out: maps, and cells down and across."""
        pairs = self.scales * (self.scales - 1) // 2
        return 1 + self.scales * self.angles + pairs * self.angles**2, *self.cells

    @property
    def size(self) -> int:
        """Numbers that come out."""
        return math.prod(self.shape)

    @property
    def padding(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Pixels to add before and after: half a cell at least, and so many that each side is whole cells."""
        return _padding(self.height, self.scales), _padding(self.width, self.scales)

    @cached_property
    def _padded(self) -> tuple[int, int]:
        (top, bottom), (left, right) = self.padding
        return self.height + top + bottom, self.width + left + right

    @cached_property
    def _bank(self) -> dict[tuple[int, int], Floats]:
        """By scale of the wavelets and of what they are applied to (thinned to every 2^j-th pixel): their spectra."""
        return {(k, j): self._spectra(k, j) for k in range(self.scales) for j in range(k + 1)}

    def _spectra(self, scale: int, thinned: int) -> Floats:
        """Morlet wavelets of one scale, one for each angle, by their (real) Fourier transforms."""
        width, frequency = _WIDTH * 2**scale, _FREQUENCY / 2**scale
        rows, columns = (_frequencies(side, thinned) for side in self._padded)
        down, across = rows[:, None, :, None], columns[None, :, None, :]
        spectra = []
        for angle in math.pi * np.arange(self.angles) / self.angles:
            along = math.cos(angle) * across + math.sin(angle) * down
            aside = math.cos(angle) * down - math.sin(angle) * across
            wave, flat = (
                np.exp(-(width**2) * ((along - centre) ** 2 + (aside / _SLANT) ** 2) / 2).sum(axis=(2, 3))
                for centre in (frequency, 0.0)
            )
            spectra.append(wave - flat * (wave[0, 0] / flat[0, 0]))  # a flat image has no waves
        return np.stack(spectra).astype(np.float32)

    @cached_property
    def _averages(self) -> dict[int, tuple[Floats, Floats]]:
        """By how far what is averaged is thinned: bells over the cells, down and across."""
        sides = [(self.height, self.padding[0]), (self.width, self.padding[1])]
        return {
            j: tuple(_bells(side, padding, self.scales, j) for side, padding in sides)  # type: ignore[misc]
            for j in range(self.scales)
        }

    def scatter(self, image: Floats) -> Floats:
        """Maps × cells of one image of a single channel."""
        padded = np.pad(image, self.padding, mode="reflect" if min(image.shape) > 1 else "edge")
        spectrum = fft.fft2(padded)
        maps = [self._average(padded[None], 0)]
        lengths = [self._lengths(spectrum[None], scale, 0) for scale in range(self.scales)]
        maps += [self._average(each, scale) for scale, each in enumerate(lengths)]
        for scale in range(self.scales - 1):
            again = fft.fft2(lengths[scale])
            for coarser in range(scale + 1, self.scales):
                maps.append(self._average(self._lengths(again, coarser, scale), coarser))
        return np.concatenate(maps)

    def _lengths(self, spectra: NDArray[np.complex64], scale: int, thinned: int) -> Floats:
        """What the wavelets of a scale find in each image, without its phase, at every 2^scale-th pixel."""
        filtered = spectra[:, None] * self._bank[scale, thinned]
        waves = fft.ifft2(_fold(filtered, 1 << (scale - thinned)), overwrite_x=True)
        lengths = np.sqrt(waves.real * waves.real + waves.imag * waves.imag)  # each operation rounds for itself
        return lengths.reshape(-1, *lengths.shape[2:])

    def _average(self, maps: Floats, thinned: int) -> Floats:
        down, across = self._averages[thinned]
        return np.stack([down @ each @ across.T for each in maps])


def _padding(side: int, scales: int) -> tuple[int, int]:
    half, cell = 1 << (scales - 1), 1 << scales
    total = -(-(side + 2 * half) // cell) * cell - side
    return total // 2, total - total // 2


def _frequencies(side: int, thinned: int) -> NDArray[np.float64]:
    """Frequencies a sampled row tells apart, with those it takes for them: in parts of a pixel of the image."""
    pixel = 1 << thinned
    return (fft.fftfreq(side // pixel)[:, None] * 2 * math.pi + _TURNS) / pixel


def _fold(spectra: NDArray[np.complex64], factor: int) -> NDArray[np.complex64]:
    """The spectra of images of which every ``factor``-th pixel is kept."""
    if factor == 1:
        return spectra
    *outer, rows, columns = spectra.shape
    split = spectra.reshape(*outer, factor, rows // factor, factor, columns // factor)
    folded: NDArray[np.complex64] = split.sum(axis=(-4, -2)) / np.float32(factor**2)
    return folded


def _bells(side: int, padding: tuple[int, int], scales: int, thinned: int) -> Floats:
    """Cells × thinned pixels of the padded side: a bell in the middle of each cell of the image."""
    pixel, cells = 1 << thinned, -(-side // (1 << scales))
    places = np.arange((side + sum(padding)) // pixel) * pixel - padding[0]
    centres = (np.arange(cells) + 0.5) * side / cells - 0.5
    width = _WIDTH * 2 ** (scales - 1)
    bells = np.exp(-(((places - centres[:, None]) / width) ** 2) / 2)
    return np.asarray(bells / bells.sum(axis=1, keepdims=True), np.float32)
