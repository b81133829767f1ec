r"""Fourier coefficients: the best strategy that treats all cells alike on a circle.

Rows are cosines and sines over a circle of m ≥ n cells (a power of two), weighted by frequency. AᵀA is circulant, its
diagonal is constant and its eigenvalues are the squared weights; with the workload's energy e_f at each frequency the
expected error under Gaussian noise is least for eigenvalues proportional to √e_f.

The transform is computed in fixed point on integers of any length: radix-2 butterflies whose twiddle factors are whole
multiples of 2^-52. A stage loses less than one unit of 2^-72 in each part of a number, at most √2 in modulus, and at
most doubles what was lost before: together less than 2m units.

Reference: Barak et al. (2007) for measuring Fourier coefficients; Li and Miklau (2012) for weights from the spectrum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.workloads.strategy import Strategy, round_up
from discreet.workloads.workload import Floats, Norm, Workload, power_of

__all__ = ["Fourier", "fixed_point_fft", "optimal_fourier"]

_STATE = 72
_TWIDDLE = 52
_WEIGHT = 30
_OUTPUT = 40


def fixed_point_fft(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Real and imaginary part of Σ xⱼ e^(-2πijf/m) along the first axis of m = 2^k whole numbers.

    >>> fixed_point_fft(np.array([1, 2, 3, 4], object))[0].tolist()
    [10, -2, -2, -2]
    """
    if len(x) == 1:
        return x, 0 * x
    (even, even_i), (odd, odd_i) = fixed_point_fft(x[::2]), fixed_point_fft(x[1::2])
    angles = -2 * np.pi * np.arange(len(odd)) / len(x)
    column = (-1, *[1] * (x.ndim - 1))
    cos, sin = (
        np.rint(f(angles) * 2.0**_TWIDDLE).astype(np.int64).astype(object).reshape(column) for f in (np.cos, np.sin)
    )
    real = cos * odd - sin * odd_i >> _TWIDDLE
    imaginary = cos * odd_i + sin * odd >> _TWIDDLE
    return np.concatenate([even + real, even - real]), np.concatenate([even_i + imaginary, even_i - imaginary])


def optimal_fourier(workload: Workload) -> Fourier:
    """Fourier coefficients with the weights that suit a workload over cells in a row under Gaussian noise.

    >>> from discreet.workloads.ranges import AllRanges
    >>> strategy = optimal_fourier(AllRanges(256))
    >>> round(math.sqrt(strategy.trace(AllRanges(256)) / AllRanges(256).queries) * strategy.column_norm("l2"), 2)
    2.97
    """
    n = workload.size
    m = 1 << (n - 1).bit_length()
    roots = np.sqrt(np.maximum(_energies(workload, m), 0.0))
    roots = np.maximum(roots, roots.max() * 1e-6)  # every frequency is measured, so that cells are determined
    return Fourier(n, np.sqrt(roots / roots.sum() * m))


def _energies(workload: Workload, m: int) -> Floats:
    """The energy of the workload at each frequency of a circle of m cells: (1/m) Σ G_jk cos(2πf(j - k)/m)."""
    sums = np.zeros(m)
    sums[: workload.size] = workload.diagonal_sums()
    energies: Floats = (2 * np.fft.fft(sums).real - sums[0]) / m
    return energies


@dataclass(frozen=True, eq=False)
class Fourier(Strategy):
    """Weighted Fourier coefficients; ``weights`` has one entry a frequency of the circle,
    symmetric around its middle.
    """

    n: int
    weights: Floats = field(repr=False)
    bits: int = _OUTPUT
    name: str = "fourier"

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The cells, without the padding."""
        return (self.n,)

    @property
    def circle(self) -> int:
        """The number of cells of the circle."""
        return int(self.weights.size)

    @property
    def rows(self) -> int:
        """Cosines and sines of every frequency up to the middle; the sines of the two real ones are dropped."""
        return self.circle

    @property
    def row_sum(self) -> float:
        """n times the largest coefficient."""
        return self.n * (float(self._gains.max()) + 1)

    @property
    def rounding(self) -> float:
        """2m units of the transform's state, times the largest gain, and one of the answer."""
        return 2 * self.circle * (float(self._gains.max()) + 1) * 2.0**-_STATE + 2.0**-_OUTPUT

    @property
    def _half(self) -> int:
        return self.circle // 2 + 1

    @property
    def _gains(self) -> Floats:
        """What a coefficient is multiplied with: weight/√m, and √2 for the frequencies that stand for two."""
        gains = self.weights[: self._half] / math.sqrt(self.circle)
        gains[1 : (self.circle + 1) // 2] *= math.sqrt(2)
        return np.rint(gains * 2.0**_WEIGHT) * 2.0**-_WEIGHT

    @property
    def _spectrum(self) -> Floats:
        """The eigenvalues of AᵀA, at every frequency: those of the rounded weights."""
        half = self._gains**2 * self.circle
        half[1 : (self.circle + 1) // 2] /= 2
        return np.concatenate([half, half[1 : (self.circle + 1) // 2][::-1]])

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """The transform in fixed point, times whole weights."""
        state = np.zeros((self.circle, *x.shape[1:]), object)
        state[: self.n] = x.astype(object) << _STATE
        real, imaginary = (part[: self._half] for part in fixed_point_fft(state))
        gains = (self._gains * 2.0**_WEIGHT).astype(np.int64).astype(object).reshape(-1, *[1] * (x.ndim - 1))
        cut = _STATE + _WEIGHT - _OUTPUT
        return np.concatenate([gains * real >> cut, (gains * imaginary >> cut)[1 : (self.circle + 1) // 2]])

    def adjoint(self, y: Floats) -> Floats:
        """An inverse real transform of the weighted answers."""
        column = (-1, *[1] * (y.ndim - 1))
        inner = slice(1, (self.circle + 1) // 2)
        gains = self._gains.copy()
        gains[inner] /= 2
        spectrum = (gains.reshape(column) * y[: self._half]).astype(complex)
        spectrum[inner] += 1j * gains[inner].reshape(column) * y[self._half :]
        back: Floats = np.fft.irfft(spectrum, self.circle, axis=0) * self.circle
        return back[: self.n]

    def _filter(self, v: Floats, spectrum: Floats) -> Floats:
        padded = np.zeros((self.circle, *v.shape[1:]))
        padded[: self.n] = v
        out: Floats = np.fft.ifft(np.fft.fft(padded, axis=0) * spectrum.reshape(-1, *[1] * (v.ndim - 1)), axis=0).real
        return out[: self.n]

    def gram_apply(self, v: Floats) -> Floats:
        """A circular convolution."""
        return self._filter(v, self._spectrum)

    def covariance(self, v: Floats) -> Floats:
        """The inverse convolution, on the circle."""
        return self._filter(v, 1 / self._spectrum)

    def estimate(self, y: Floats) -> Floats:
        """The inverse on the circle, of which the cells are a part."""
        whole = Fourier(self.circle, self.weights)
        return whole.covariance(whole.adjoint(y))[: self.n]

    def column_norm(self, norm: Norm) -> float:
        """L2: the mean eigenvalue, the same for every column. L1: |cos| + |sin| summed at every cell.

        Twiddle factors are within 2^-49 of their place, so after log₂ m stages coefficients are within (log₂ m)·2^-48.
        """
        slack = 64 * self.circle
        if power_of(norm) == 2:
            return round_up(math.sqrt(float(self._spectrum.sum()) / self.circle), slack)
        return round_up(max(float(self._absolute(j).sum()) for j in range(self.n)), slack)

    def _absolute(self, cell: int) -> Floats:
        angles = 2 * np.pi * (np.arange(self._half) * cell % self.circle) / self.circle
        inner = np.zeros(self._half)
        inner[1 : (self.circle + 1) // 2] = np.abs(np.sin(angles[1 : (self.circle + 1) // 2]))
        return self._gains * (np.abs(np.cos(angles)) + inner)

    def closed_form(self, workload: Workload) -> float | None:
        """Σ energy/eigenvalue over frequencies."""
        if len(workload.shape) != 1:
            return None
        return float((_energies(workload, self.circle) / self._spectrum).sum())
