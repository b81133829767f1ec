r"""A unit of several rows has one gradient, the sum over its rows: :math:`\sum_u \mathrm{clip}(\sum_{i \in u} G_i)`.

Uses of rows become uses of units before anything is measured, so that norms, clipping and claims are those of units:
the steps of a unit's rows are steps of one record, as if it had been longer. A unit whose rows do not fit in one piece
is added up whole, piece by piece, and clipped when its last piece has come (``UnitInParts``).

Decision 445.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from discreet.errors import extra
from discreet.training.errors import MixedRecords
from discreet.training.gradients.clipping import Clipping
from discreet.training.gradients.contraction import Contraction
from discreet.training.gradients.rules.elementary import Rows
from discreet.training.gradients.rules.handlers import Folded, Handler
from discreet.training.gradients.rules.outer_products import LinearWeight, Outer
from discreet.training.gradients.uses import Use

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Owners", "UnitInParts", "by_unit"]

NOBODY = -1


@dataclass(frozen=True)
class Owners:
    """Whose the rows of a piece are: units are numbered from zero, placeholders are nobody's (-1).

    A piece that holds a part of one unit names it (``part_of``), and is ``open`` if more of it comes.
    """

    of: Tensor
    part_of: int | None = None
    open: bool = False

    @cached_property
    def units(self) -> int:
        """How many units there are."""
        return int(self.of.max()) + 1 if len(self.of) else 0

    @property
    def in_parts(self) -> bool:
        """Whether the piece holds a part of one unit."""
        return self.part_of is not None

    def rows(self, unit: int) -> tuple[int, ...]:
        """The rows of a unit."""
        return tuple((self.of == unit).nonzero().flatten().tolist())

    @cached_property
    def places(self) -> Tensor:
        """[units, most rows of one]: the rows of each unit, -1 where it has fewer."""
        each = [self.rows(unit) for unit in range(self.units)]
        most = max(map(len, each), default=0)
        padded = [[*rows, *[NOBODY] * (most - len(rows))] for rows in each]
        return torch.tensor(padded, dtype=torch.long).view(self.units, most)

    def added(self, x: Tensor) -> Tensor:
        """[units, ...] from [rows, ...]: sums over the rows of each unit."""
        of = self.of.to(x.device)
        own = of != NOBODY
        return x.new_zeros(self.units, *x.shape[1:]).index_add_(0, of[own], x[own])

    def side_by_side(self, x: Tensor) -> Tensor:
        """[units, most rows · steps, ...] from [rows, steps, ...]; zeros where a unit has fewer rows."""
        places = self.places.to(x.device)
        missing = (places == NOBODY).view(*places.shape, *[1] * (x.dim() - 1))
        return x[places.clamp(min=0)].masked_fill(missing, 0).flatten(1, 2)


def by_unit(uses: Sequence[Use], owners: Owners) -> list[Use]:
    """Uses by rows as uses by units; of nobody there are none."""
    if not owners.units:
        return []
    with torch.no_grad():
        apart = [part for use in uses for part in ([use] if use.bias is None else [use, use.without_bias()])]
        return [_group(use, owners) for use in apart]


def _group(use: Use, owners: Owners) -> Use:
    rows = len(owners.of)
    handler, fold = (use.handler.handler, use.handler.fold) if isinstance(use.handler, Folded) else (use.handler, 1)
    if use.instances is None and isinstance(handler, Outer):
        u, v = (_of_rows(x.unflatten(0, (-1, fold)).flatten(1, 2), rows) for x in _factors(handler, use))
        return Use(use.target, LinearWeight(), owners.side_by_side(v), owners.side_by_side(u))
    if use.instances is None and type(use.handler) is Rows:
        return _looked_up(use, owners)
    return Use(use.target, Handler(), None, None, owners.added(_of_rows(use.formed(), rows)))


def _factors(handler: Outer, use: Use) -> tuple[Tensor, Tensor]:
    assert use.gradients is not None
    return handler.factors(use.activations, use.gradients)


def _looked_up(use: Use, owners: Owners) -> Use:
    """Rows of a table: in order, the same number of look-ups for each unit, where each row of the batch has."""
    records, rows, coefficients, count = use.activations
    gradients = use.gradients
    assert gradients is not None
    _of_rows(owners.of[:count], len(owners.of))
    each = len(rows) // count
    regular = torch.arange(count, device=records.device).repeat_interleave(each)
    if each * count == len(rows) and torch.equal(records, regular):
        looked, back, *scale = (
            owners.side_by_side(x.unflatten(0, (count, each))).flatten(0, 1)
            for x in (rows, gradients, *([] if coefficients is None else [coefficients]))
        )
        units = torch.arange(owners.units, device=rows.device).repeat_interleave(len(looked) // owners.units)
        return Use(use.target, use.handler, (units, looked, scale[0] if scale else None, owners.units), back)
    of = owners.of.to(records.device)[records]
    own = of != NOBODY
    kept = None if coefficients is None else coefficients[own]
    return Use(use.target, use.handler, (of[own], rows[own], kept, owners.units), gradients[own])


def _of_rows(x: Tensor, rows: int) -> Tensor:
    if len(x) != rows:
        raise MixedRecords(
            "A parameter was used on another number of records than the batch has. Call the model on the batch as the "
            "loader gave it."
        )
    return x


class UnitInParts:
    """The gradient of one unit whose rows come in several pieces: added up, and clipped once it is whole."""

    def __init__(self, contraction: Contraction, clipping: Clipping) -> None:
        self._contraction, self._clipping = contraction, clipping
        self._sum: list[Tensor] | None = None
        self._unit: int | None = None

    def add(self, unit: int | None, part: list[Tensor]) -> None:
        """The gradient of some more of its rows, one tensor a parameter.

        What is there of another unit, whose last piece a loop passed over, is dropped: two are never clipped as one.
        """
        if self._sum is None or self._unit != unit:
            self._sum, self._unit = part, unit
        else:
            torch._foreach_add_(self._sum, part)

    def clipped(self, clip_norm: float) -> tuple[list[Tensor], Tensor]:
        """The whole gradient, block by block at most the clip norm long, and its first block's squared norm."""
        whole, self._sum = self._sum, None
        assert whole is not None
        found = self._contraction.scaled(whole)
        norms = [float(norm) for norm in torch._foreach_norm([part.double() for part in found])]
        blocks, shares = self._contraction.block, self._contraction.shares
        squares = torch.zeros(len(shares), dtype=torch.float64)
        for norm, block in zip(norms, blocks, strict=True):
            squares[block] += norm**2
        if not bool(torch.isfinite(squares).all()):  # a unit is kept whole or not at all
            return [torch.zeros_like(part) for part in found], squares[:1]
        factors = [
            float(self._clipping.factors(squares[i : i + 1], clip_norm * share)) for i, share in enumerate(shares)
        ]
        for part, block in zip(found, blocks, strict=True):
            part.mul_(factors[block])
        return found, squares[:1]
