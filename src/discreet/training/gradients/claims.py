"""What the engine says of a few records, and who is told: their gradients, by the contraction that makes the sum.

Decision 415.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.contraction import Contraction, UsesOf
from discreet.training.gradients.units import Owners

with extra("torch"):
    import torch
    from torch import Tensor, nn

__all__ = ["Claim", "Subscriber", "claims"]


class Subscriber:
    """Is told of a batch's course, in this order, and may stop it by an error, as verification does; this one does
    nothing.

    The engine knows nothing else of it.
    """

    @property
    def wants_claims(self) -> bool:
        """Whether it asks for claims about the current batch."""
        return False

    def attach(self, model: nn.Module) -> None:
        """The model that is watched."""

    def begin(self, records: int, yielded: Any, alone: Callable[..., Any] | None, owners: Owners | None) -> None:
        """A batch comes, as the loader gives it."""

    def forget(self) -> None:
        """Backward passes so far do not count."""

    def before_sum(self) -> None:
        """What the backward passes brought is about to be added up."""

    def claim(self, uses_of: UsesOf, squares: Sequence[Tensor], lost: Tensor | None, weights: Tensor | None) -> None:
        """The uses of the parameters and the records' squared norms, from which ``claims`` follow."""

    def after_sum(self, records: int, weights: Tensor | None) -> None:
        """It was added up."""


FEW = 4  # a copy of one in so many rows is no great part of what a batch takes


@dataclass(frozen=True, slots=True)
class Claim:
    """What the engine says of one record: its gradient, one tensor a parameter, and the norm of each block.

    Or of some records: the gradient is the sum, and its norm is only claimed where they are one unit.
    """

    row: int
    gradient: list[Tensor]
    norms: list[float]
    largest: list[float]  # of all records' norms, block by block
    others: tuple[int, ...] = ()  # records that it is about, too

    @property
    def several(self) -> bool:
        """Whether it is about several units, whose norms together nobody clips by."""
        return math.isinf(self.norms[0])

    def by(self, owners: Owners) -> Claim:
        """The same of all rows, where what was taken for rows are units."""
        row, *others = (row for unit in (self.row, *self.others) for row in owners.rows(unit))
        return replace(self, row=row, others=tuple(others))


def claims(
    contraction: Contraction,
    uses_of: UsesOf,
    squares: Sequence[Tensor],
    lost: Tensor | None,
    rows: Sequence[tuple[int, ...]],
) -> list[Claim]:
    """The claims about these rows, or several of them together, by the contraction that makes the sum: all other
    records weigh nothing."""
    found = []
    kept = [square if lost is None else square.masked_fill(lost, 0) for square in squares]
    largest = [math.sqrt(float(square.max())) for square in kept]
    for row, *others in rows:
        chosen = torch.tensor([row, *others])
        weights = torch.zeros_like(squares[0])
        weights[chosen] = 1.0
        gradient = [
            torch.zeros(p.shape, dtype=torch.promote_types(p.dtype, torch.float32)) for p in contraction.parameters
        ]
        for place, uses in uses_of.items():
            parameter = contraction.parameters[place]
            whole = weights.to(parameter.device, torch.promote_types(parameter.dtype, torch.float32))
            for use in uses:
                if lost is not None:
                    use.blank(lost)
                # few rows: those that weigh nothing are left out, where that is known to be the same
                apart = use.in_rows and FEW * len(chosen) <= len(whole)
                few, of = (use.of(chosen.to(whole.device)), whole[chosen]) if apart else (use, whole)
                gradient[place] += few.weighted(of).reshape(parameter.shape)
                if few.bias is not None:
                    at = next(i for i, p in enumerate(contraction.parameters) if p is few.bias)
                    assert few.gradients is not None
                    gradient[at] += (of @ few.gradients).reshape(few.bias.shape)
        norms = [math.inf if others else math.sqrt(float(square[row])) for square in squares]
        found.append(Claim(row, gradient, norms, largest, tuple(others)))
    return found
