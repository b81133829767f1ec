r"""Strategies: what is measured in place of the workload, and how its answers are computed without rounding risk.

A strategy is a linear map A from the histogram to the values that meet noise. One record adds 1 to one cell, so the
sensitivity is the largest norm of a column (add-remove, zero-out) or of a difference of two columns (replace).

**Arithmetic.** A product A x in floating point rounds by amounts that grow with x, so its true sensitivity is that of A
plus an error that no public bound covers. Here answers are computed on whole numbers. A strategy states ``bits``: its
computed answers are whole multiples of 2^-bits; and ``rounding``: with x whole, however large, every computed answer is
within ``rounding`` of the linear answer. Strategies with weights of few bits (trees, marginals, matrices) have
``rounding`` 0. Strategies with a recursion inside (filters, Fourier) compute it in fixed point on integers of any
length, where one step loses less than one unit *whatever the size of x*; they state the sum of these losses.

**Proof of the widening.** Let B x be the computed answers to k queries, |B x - A x| ≤ r in each entry. For neighbours
x, x′

.. math:: \lVert Bx - Bx'\rVert \le \lVert A(x - x')\rVert + \lVert Bx - Ax\rVert + \lVert Bx' - Ax'\rVert
          \le \Delta + 2 r\,c, \qquad c = k \text{ in L1}, \ \sqrt{k} \text{ in L2},

which is what ``sensitivity`` returns. Answers finer than 2^-30 are rounded to that, which adds 2^-31 to r; the
mechanism then adds its own price for its grid. Norms of columns are computed from positive terms only, where k
operations in doubles err by a factor of at most 1 + k·2^-52, and are raised by more than that.

Decision 30.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adjacency import Adjacency, changed_records
from discreet.mechanisms.values import check_numbers, numbers
from discreet.workloads.workload import DENSE_LIMIT, Floats, Norm, Workload, power_of

__all__ = ["MOST_ROWS", "Measured", "Strategy", "answers", "check_histogram", "counts", "round_up"]

_BITS = 30  # finer answers are rounded to multiples of 2^-30, so that counts below 2^23 stay exact doubles
MOST_ROWS = 1 << 22  # values that are measured at once
_LONGEST = 1 << 200  # of a count


class Measured(ABC):
    """A linear map A whose noisy answers are known: it knows its least-squares estimate and that estimate's error."""

    name: str
    shape: tuple[int, ...]

    @abstractmethod
    def adjoint(self, y: Floats) -> Floats:
        """Aᵀ y."""

    @abstractmethod
    def gram_apply(self, v: Floats) -> Floats:
        """AᵀA v."""

    @abstractmethod
    def covariance(self, v: Floats) -> Floats:
        """C v, where C is the covariance of the estimate under unit noise; (AᵀA)⁻¹ v unless the domain is padded."""

    def estimate(self, y: Floats) -> Floats:
        """The least-squares histogram for noisy answers ``y``."""
        return self.covariance(self.adjoint(y))

    def closed_form(self, workload: Workload) -> float | None:
        """tr(WᵀW C) where a formula is known."""
        return None

    def trace(self, workload: Workload) -> float:
        """tr(WᵀW C): the expected total squared error of ``workload`` under noise of unit variance."""
        if workload.shape != self.shape:
            raise ValueError(
                f"The workload is over cells of shape {workload.shape}, but the strategy is over {self.shape}."
            )
        found = self.closed_form(workload)
        if found is not None:
            return found
        if workload.size > DENSE_LIMIT:
            raise ValueError(
                f"No closed form is known for {type(workload).__name__} under {self.name}, and a dense one is "
                f"limited to {DENSE_LIMIT} cells; this domain has {workload.size}. Choose another strategy."
            )
        gram = workload.gram()
        columns = self.covariance(gram.reshape(*self.shape, -1)).reshape(gram.shape)
        return float(np.trace(columns))


class Strategy(Measured):
    """A linear map that is to be measured. It knows its sensitivity too, and answers without rounding risk.

    Strategies over cells in a row act on the first axis of what they are given, so that products can use them.
    """

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many values are measured."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """Computed answers are whole multiples of 2^-bits."""

    @property
    def rounding(self) -> float:
        """How far a computed answer may be from the linear one."""
        return 0.0

    def for_noise(self, noise: str) -> Strategy:
        """The strategy for this kind of noise, where whoever made it left that open; otherwise itself."""
        return self

    @property
    @abstractmethod
    def row_sum(self) -> float:
        """A bound on the L1 norm of every row: how much an answer can exceed the largest cell."""

    @abstractmethod
    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """The answers to whole numbers, as whole multiples of 2^-bits."""

    @abstractmethod
    def column_norm(self, norm: Norm) -> float:
        """The largest norm of a column of A, rounded up."""

    def difference_norm(self, norm: Norm) -> float:
        """The largest norm of a difference of two columns, rounded up: at most twice a column's."""
        return 2 * self.column_norm(norm)

    def sensitivity(self, norm: Norm, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> float:
        """How far one record moves the computed answers, rounding included."""
        moved = self.column_norm(norm)
        if changed_records(adjacency) == 2:  # where nothing can move (one cell), a token keeps the noise well defined
            moved = max(self.difference_norm(norm), moved * 2.0**-40)
        loss = self.rounding + (2.0 ** -(_BITS + 1) if self.bits > _BITS else 0.0)
        return round_up(moved + 2 * loss * self.rows ** (1 / power_of(norm)), 8)


def round_up(x: float, operations: int) -> float:
    """``x`` raised by more than the rounding of that many operations on positive doubles.

    >>> round_up(1.0, 4) > 1.0
    True
    """
    return x * (1 + (operations + 1) * 2.0**-51)


def check_histogram(histogram: Any, shape: tuple[int, ...]) -> None:
    """Refuse, by shape and type alone, what is no histogram over cells of this shape. No count is looked at."""
    if (given := check_numbers(histogram, "histogram")) != shape:
        raise ValueError(f"histogram has shape {given}, but the workload is over cells of shape {shape}.")


def counts(histogram: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """A histogram as whole numbers, of 64 bits or of any length. Never shows a value, never fails on one.

    Integers are kept up to ±2^200, so that inference can square them. Other numbers are rounded down, what is none is
    an empty cell, and in an array of floats what lies beyond ±2^53 is moved there: each of these changes a cell by at
    most one when one record changes it by one.
    """
    check_histogram(histogram, shape)
    array = numbers(histogram)
    if array.dtype.kind == "f":
        limit = 2.0**53
        return np.asarray(np.floor(np.clip(array, -limit, limit)).astype(np.int64))
    if array.dtype.kind in "iub" and array.dtype != np.uint64:
        return array.astype(np.int64)
    exact = np.empty(array.size, object)
    exact[:] = [max(-_LONGEST, min(math.floor(v), _LONGEST)) for v in array.reshape(-1).tolist()]
    return exact.reshape(shape)


def answers(strategy: Strategy, x: NDArray[Any]) -> NDArray[Any]:
    """The strategy's answers for the noise: doubles where these are exact, otherwise fractions."""
    largest = max(abs(int(x.max())), abs(int(x.min())))
    small = (largest + 1) * math.ceil(strategy.row_sum + 1) << strategy.bits < 1 << 62
    y, bits = strategy.exact(x if small else x.astype(object)).reshape(-1), strategy.bits
    if bits > _BITS:
        shift = bits - _BITS
        y, bits = (y + (1 << shift - 1)) >> shift, _BITS
    if max(abs(int(y.max())), abs(int(y.min()))) < 1 << 53:
        return y.astype(np.float64) * 2.0**-bits
    return np.array([Fraction(int(v), 1 << bits) for v in y], object)
