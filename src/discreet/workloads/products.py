"""Kronecker products: one workload and one strategy per attribute, every combination of their queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.workloads.strategy import Strategy, round_up
from discreet.workloads.workload import DENSE_LIMIT, Floats, Norm, Workload

__all__ = ["Product", "ProductStrategy"]


def _along(apply: Callable[[Any], Any], x: Any, axis: int) -> Any:
    """Apply to one axis, brought to the front and put back."""
    return np.moveaxis(apply(np.moveaxis(x, axis, 0)), 0, axis)


def _kron(a: Floats, b: Floats) -> Floats:
    return np.kron(a, b)


@dataclass(frozen=True)
class Product(Workload):
    """Every product of a query from each factor, over the product of their domains.

    >>> from discreet.workloads.ranges import Prefix
    >>> from discreet.workloads.workload import Identity
    >>> Product((Identity(2), Prefix(3))).apply(np.array([[1, 2, 3], [4, 5, 6]])).tolist()
    [1, 3, 6, 4, 9, 15]
    """

    factors: tuple[Workload, ...]

    def __post_init__(self) -> None:
        factors = tuple(self.factors)
        if not factors or not all(isinstance(f, Workload) and len(f.shape) == 1 for f in factors):
            raise ValueError("factors must be one or more workloads, each over cells in a row.")
        object.__setattr__(self, "factors", factors)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """One axis per factor."""
        return tuple(f.shape[0] for f in self.factors)

    @property
    def queries(self) -> int:
        """The product of the factors'."""
        return math.prod(f.queries for f in self.factors)

    def apply(self, x: NDArray[Any]) -> NDArray[Any]:
        """One factor after another, along its own axis."""
        for axis, factor in enumerate(self.factors):
            x = np.apply_along_axis(factor.apply, axis, x)
        return x.reshape(-1)

    def _row(self, i: int) -> Floats:
        places = np.unravel_index(i, tuple(f.queries for f in self.factors))
        rows = [factor.row(int(place)) for factor, place in zip(self.factors, places, strict=True)]
        return reduce(np.multiply.outer, rows)

    def gram(self) -> Floats:
        """The Kronecker product of the factors' Gram matrices."""
        if self.size > DENSE_LIMIT:
            raise ValueError(f"A dense Gram matrix is limited to {DENSE_LIMIT} cells; this domain has {self.size}.")
        return reduce(_kron, [f.gram() for f in self.factors])

    def gram_apply(self, v: Floats) -> Floats:
        """One factor after another, along its own axis."""
        table = v.reshape(*self.shape, *v.shape[1:])
        for axis, factor in enumerate(self.factors):
            table = _along(factor.gram_apply, table, axis)
        return np.asarray(table.reshape(v.shape))

    def gram_diagonal(self) -> Floats:
        """Outer product of the factors' diagonals."""
        return reduce(_kron, [f.gram_diagonal() for f in self.factors])

    def nuclear_norm(self) -> float:
        """Singular values multiply."""
        return math.prod(f.nuclear_norm() for f in self.factors)

    def column_norm(self, norm: Norm) -> float:
        """Norms of columns multiply."""
        return math.prod(f.column_norm(norm) for f in self.factors)

    def products(self) -> list[tuple[Workload, ...]]:
        """Itself."""
        return [self.factors]


@dataclass(frozen=True, eq=False)
class ProductStrategy(Strategy):
    r"""The Kronecker product of strategies. For a product workload under Gaussian noise, optimal factors make an
    optimum: the conditions of optimality (see ``workloads.filters``) are products of the factors' conditions.

    Rounding: the error r of one factor's answers passes through the next, whose rows have L1 norm at most m, as m·r.
    """

    factors: Sequence[Strategy]
    name: str = "product"

    def for_noise(self, noise: str) -> Strategy:
        """Each factor's."""
        factors = tuple(factor.for_noise(noise) for factor in self.factors)
        return (
            self if all(a is b for a, b in zip(factors, self.factors, strict=True)) else replace(self, factors=factors)
        )

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """One axis per factor."""
        return tuple(f.shape[0] for f in self.factors)

    @property
    def rows(self) -> int:
        """The product of the factors'."""
        return math.prod(f.rows for f in self.factors)

    @property
    def bits(self) -> int:
        """The sum of the factors'."""
        return sum(f.bits for f in self.factors)

    @property
    def row_sum(self) -> float:
        """The product of the factors'."""
        return math.prod(max(f.row_sum, 1.0) for f in self.factors)

    @property
    def rounding(self) -> float:
        """Each factor's own, and what it makes of the ones before."""
        loss = 0.0
        for f in self.factors:
            loss = f.row_sum * loss + f.rounding
        return loss

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """One factor after another, on whole numbers."""
        for axis, f in enumerate(self.factors):
            x = _along(f.exact, x, axis)
        return x.reshape(-1)

    def _each(self, name: str, v: Floats) -> Floats:
        for axis, f in enumerate(self.factors):
            v = _along(getattr(f, name), v, axis)
        return v

    def _table(self, y: Floats) -> Floats:
        return y.reshape(*[f.rows for f in self.factors], *y.shape[1:])

    def adjoint(self, y: Floats) -> Floats:
        """Factor by factor."""
        return self._each("adjoint", self._table(y))

    def gram_apply(self, v: Floats) -> Floats:
        """Factor by factor."""
        return self._each("gram_apply", v)

    def covariance(self, v: Floats) -> Floats:
        """Factor by factor."""
        return self._each("covariance", v)

    def estimate(self, y: Floats) -> Floats:
        """Factor by factor."""
        return self._each("estimate", self._table(y))

    def column_norm(self, norm: Norm) -> float:
        """Norms of columns multiply."""
        return round_up(math.prod(f.column_norm(norm) for f in self.factors), len(self.factors))

    def closed_form(self, workload: Workload) -> float | None:
        """Errors of product workloads multiply, and those of unions add."""
        parts = workload.products()
        if not parts:
            return None
        return sum(math.prod(f.trace(w) for f, w in zip(self.factors, part, strict=True)) for part in parts)
