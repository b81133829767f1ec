r"""The clipped sum: :math:`\sum_i w_i\,\mathrm{clip}(G_i)`, one tensor a parameter, with a known bound on each record's
part.

A ``Watch`` collects the uses of the parameters in one forward and one backward pass; a ``Contraction`` turns them into
norms and the sum. Records whose gradient is not finite contribute zero, and nothing says how many there were.

Where a unit has several rows (``units``), it is the sum of their gradients that is clipped, and what is said here of
records holds for units.

Guarantee: in exact arithmetic a record moves the sum by at most the clip norm. ``sensitivity(clip_norm)`` widens that
by a thousandth in single precision, which is far more than rounding was ever seen to add (its errors are of both
signs), and noise is scaled to the widened bound. It is not the worst case over all inputs and orders of summation,
which no float sum of many terms can promise: like the noise itself (``discreet.random.fast``), training is private up
to float rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from discreet.errors import extra
from discreet.training.gradients.claims import Subscriber
from discreet.training.gradients.clipping import Clipping
from discreet.training.gradients.contraction import Contraction, UsesOf
from discreet.training.gradients.one_pass import in_one_pass
from discreet.training.gradients.trace.watch import Watch
from discreet.training.gradients.units import Owners, UnitInParts, by_unit
from discreet.training.gradients.uses import exactly

with extra("torch"):
    import torch
    from torch import Tensor, nn

__all__ = ["ClippedSum", "Reduction"]

Reduction = Literal["mean", "sum", "none"]
DIVIDES = {"mean": True, "sum": False, "none": False}
"""Whether a loss of this reduction divides by the number of records."""
ROUNDING = {torch.float64: 2.0**-40}
WIDENED = 2.0**-10  # of the clip norm, in single precision or less


class ClippedSum:
    """Collects clipped gradients of one logical batch, piece by piece.

    ``loss_reduction`` says what the loss does with the records of a piece: ``"mean"`` divides by their number (so the
    gradients that come back are multiplied by it), ``"sum"`` and ``"none"`` do not. Whoever subscribes is told what is
    claimed of records. ``admit_wrapper`` says what may be around the model.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        clipping: Clipping,
        loss_reduction: Reduction,
        *,
        admit_wrapper: Callable[[Any], None] | None = None,
    ) -> None:
        if loss_reduction not in DIVIDES:
            raise ValueError(
                f"loss_reduction is {loss_reduction!r}, but must be 'mean', 'sum' or 'none': what the loss "
                "does with the records of a batch."
            )
        self.parameters, self.clipping, self.mean = dict(parameters), clipping, DIVIDES[loss_reduction]
        self._rounding = max(ROUNDING.get(p.dtype, WIDENED) for p in self.parameters.values())
        self.watch = Watch(parameters, admit_wrapper)
        self.contraction = Contraction(parameters, clipping)
        self._in_parts: UnitInParts | None = None  # of the unit that comes in several pieces, if one does
        self._subscriber = Subscriber()
        self.total: list[Tensor] | None = None
        self.unclipped = 0.0  # the centred count that adaptive clipping releases with noise
        self.local = False  # whether to note what is not private, for the eyes of who trains
        self.clip_rate = math.nan

    def sensitivity(self, clip_norm: float) -> float:
        """The most a record can move the sum, rounding included: that of the coarsest parameter."""
        return clip_norm * (1 + self._rounding)

    def scale(self, scales: Sequence[Tensor] | None) -> None:
        """Multiply gradients, coordinate by coordinate, before they are clipped: by public numbers alone."""
        self.contraction.scale(scales)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell somebody of every batch, and of what is claimed of its records."""
        self._subscriber = subscriber

    def attach(self, model: nn.Module) -> None:
        """See every call of the model or of one of its modules."""
        self.watch.attach(model)
        self._subscriber.attach(model)

    def note_clip_rate(self, wanted: bool) -> None:
        """Whether to note how many records are clipped, which is not private: for the eyes of who trains."""
        self.local = wanted

    def begin(self) -> None:
        """A new logical batch: whatever was left of another is dropped."""
        self.watch.clear()
        self._in_parts, self.total, self.unclipped = None, None, 0.0

    def expect(
        self, records: int, yielded: Any, alone: Callable[..., Any] | None = None, owners: Owners | None = None
    ) -> None:
        """A piece of the batch is about to come, as the loader gives it; some are verified."""
        self.watch.begin(records, yielded)
        self._subscriber.begin(records, yielded, alone, owners)

    @property
    def derives(self) -> bool:
        """Whether something that is made of parameters was seen, such as a normed weight."""
        return self.contraction.derives

    @property
    def waiting(self) -> bool:
        """Whether a backward pass brought something that was not added yet."""
        return bool(self.watch.uses)

    def forget(self) -> None:
        """Drop what backward passes brought since the last ``add``."""
        self.watch.clear()
        self._subscriber.forget()

    def add(self, weights: Tensor | None, clip_norm: float, owners: Owners | None = None) -> None:
        """Clip what the last backward passes brought and add it; ``weights`` are zero for placeholders, ``owners`` say
        which rows are clipped together."""
        self._subscriber.before_sum()
        in_parts = owners is not None and owners.in_parts
        with exactly():
            uses = self.watch.uses if owners is None or in_parts else by_unit(self.watch.uses, owners)
            uses_of, rows = self.contraction.of_parameters(uses), self.watch.records
        self.watch.end()
        found = self.contraction.room()  # outside inference mode: it becomes the gradient
        if not uses_of or rows is None:
            for part in found:
                part.zero_()
        elif in_parts:
            with torch.inference_mode(), exactly():
                self.contraction.contract(uses_of, self._unclipped(rows), None, found)
            self._subscriber.after_sum(rows, weights)
        else:
            self._fill(found, uses_of, rows, weights, clip_norm, owners)
            self._subscriber.after_sum(rows, weights)
        if owners is not None and in_parts:
            self._in_parts = self._in_parts or UnitInParts(self.contraction, self.clipping)
            self._in_parts.add(owners.part_of, found)
            if owners.open:
                return
            found, squares = self._in_parts.clipped(clip_norm)
            self._count(squares, ~torch.isfinite(squares), None, clip_norm)
        if self.total is None:
            self.total = found
        else:
            torch._foreach_add_(self.total, found)

    def _scale(self, rows: int) -> float:
        """What undoes the loss's own division."""
        return float(rows) if self.mean else 1.0

    def _unclipped(self, rows: int) -> list[Tensor]:
        """Factors that leave each row's gradient as it is."""
        device, shares = self.contraction.parameters[0].device, self.contraction.shares
        return [torch.full((rows,), self._scale(rows), dtype=self.contraction.dtype, device=device)] * len(shares)

    def _fill(
        self,
        out: list[Tensor],
        uses_of: UsesOf,
        rows: int,
        weights: Tensor | None,
        clip_norm: float,
        owners: Owners | None,
    ) -> None:
        scale, shares = self._scale(rows), self.contraction.shares
        units, weights = (rows, weights) if owners is None else (owners.units, None)
        only = self.contraction.only_use(uses_of)
        if only is not None:
            filled = in_one_pass(*only, units, weights, self.clipping.terms(clip_norm, scale), out)
            if filled is not None:
                self._note(uses_of, [filled], None, weights, clip_norm / scale)
                return
        with torch.inference_mode(), exactly():
            squares, lost = self.contraction.squares(uses_of, units), None
            # one that overflows only makes us look closer
            if not all(math.isfinite(float(square.sum())) for square in squares):
                lost = ~torch.isfinite(torch.stack(squares)).all(0)
            self._note(uses_of, squares, lost, weights, clip_norm / scale)
            factors = [
                _keep(self.clipping.factors(square, clip_norm * share, scale), lost, weights)
                for square, share in zip(squares, shares, strict=True)
            ]
            self.contraction.contract(uses_of, factors, lost, out, clip_norm)

    def _note(
        self, uses_of: UsesOf, squares: list[Tensor], lost: Tensor | None, weights: Tensor | None, clip_norm: float
    ) -> None:
        """What else is made of the norms: claims, a count, and for local eyes a rate."""
        if self._subscriber.wants_claims:
            with torch.inference_mode(), exactly():
                self._subscriber.claim(uses_of, squares, lost, weights)
        self._count(squares[0], lost, weights, clip_norm)
        if self.local:
            shares = self.contraction.shares
            over = [square > (clip_norm * share) ** 2 for square, share in zip(squares, shares, strict=True)]
            self.clip_rate = float(torch.stack(over).any(0).float().mean())

    def _count(self, squares: Tensor, lost: Tensor | None, weights: Tensor | None, clip_norm: float) -> None:
        if self.clipping.adaptive is None:
            return
        within = (squares.sqrt() <= clip_norm).to(squares.dtype) - 0.5
        if lost is not None:
            within[lost] = -0.5
        self.unclipped += float((within if weights is None else within * weights).sum())


def _keep(factors: Tensor, lost: Tensor | None, weights: Tensor | None) -> Tensor:
    if lost is not None:
        factors = factors.masked_fill(lost, 0.0)  # a record is kept whole or not at all
    return factors if weights is None else factors * weights
