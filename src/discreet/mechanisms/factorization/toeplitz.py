r"""Lower-triangular Toeplitz matrices as power series: a matrix is its first column.

Products, transposed products and inverses of such matrices are products, correlations and reciprocals of series, cut at
n coefficients. Products go through the Fourier transform, so they are for errors and gradients, whose last digits do
not matter; sensitivities are never computed by them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.linalg import toeplitz
from scipy.signal import lfilter

__all__ = ["Floats", "inverse", "matrix", "power_series", "product", "root", "single", "transpose_product"]

Floats = NDArray[np.float64]


def matrix(column: ArrayLike) -> Floats:
    """The n x n matrix of a first column.

    >>> matrix([1, 2, 3])
    array([[1., 0., 0.],
           [2., 1., 0.],
           [3., 2., 1.]])
    """
    c = np.asarray(column, np.float64)
    return np.asarray(toeplitz(c, np.zeros(len(c))), np.float64)


def product(x: Floats, y: Floats) -> Floats:
    """The first column of T(x)·T(y), which is T(x)·y."""
    n, size = len(x), next_fast_len(2 * len(x), real=True)
    return np.asarray(irfft(rfft(x, size) * rfft(y, size), size)[:n])


def transpose_product(x: Floats, y: Floats) -> Floats:
    """T(x)ᵀ·y: entry j is the sum of x[i - j]·y[i] over i."""
    return product(x, y[::-1])[::-1]


def inverse(c: Floats) -> Floats:
    """The first column of T(c)⁻¹, in time n times the number of bands."""
    impulse = np.zeros(len(c))
    impulse[0] = 1.0
    return np.asarray(lfilter([1.0], np.trim_zeros(c, "b"), impulse))


def single(values: ArrayLike) -> Floats:
    """Rounded to single precision: what tensors of it are multiplied by. Where an inverse or a power adds such an error
    up over the steps, the matrix that is priced must be that of the rounded numbers."""
    return np.asarray(values, np.float32).astype(np.float64)


def power_series(exponent: float, n: int) -> Floats:
    """The first n coefficients of (1 - x)^exponent.

    >>> power_series(0.5, 5)
    array([ 1.       , -0.5      , -0.125    , -0.0625   , -0.0390625])
    """
    j = np.arange(1, n)
    return np.concatenate([[1.0], np.cumprod((j - 1 - exponent) / j)])


def root(w: Floats) -> Floats:
    """The first column of the Toeplitz matrix whose square is T(w)."""
    s = np.zeros(len(w))
    s[0] = np.sqrt(w[0])
    for j in range(1, len(w)):
        s[j] = (w[j] - s[1:j] @ s[1:j][::-1]) / (2 * s[0])
    return s
