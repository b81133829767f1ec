r"""The clipped sum: :math:`\sum_i w_i\,\mathrm{clip}(G_i)` in one flat tensor, with a known bound on each record's part.

From the uses a ``Watch`` collected, in three passes: every parameter's squared norms (several uses of one parameter are
one gradient: their cross terms count), the factors, and one weighted contraction a use. Records whose gradient is not
finite contribute zero, and nothing says how many there were.

Guarantee: in exact arithmetic a record moves the sum by at most the clip norm. ``sensitivity(clip_norm)`` widens that by a
thousandth in single precision, which is far more than rounding was ever seen to add (its errors are of both signs), and
noise is scaled to the widened bound. It is not the worst case over all inputs and orders of summation, which no float
sum of many terms can promise: like the noise itself (``discreet.random.fast``), training is private up to float rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from discreet.errors import extra
from discreet.training.gradients.calls import Folded
from discreet.training.gradients.clipping import Clipping
from discreet.training.gradients.handlers import KEPT, Rows, Rule
from discreet.training.gradients.outer_products import Outer, outer_norms
from discreet.training.gradients.uses import Use
from discreet.training.gradients.watch import Watch
from discreet.training.memory import buffer
from discreet.training.refusals import MixedRecords

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["ClippedSum", "Reduction"]

Reduction = Literal["mean", "sum", "none"]
ROUNDING = {torch.float64: 2.0**-40}
WIDENED = 2.0**-10  # of the clip norm, in single precision or less


class ClippedSum:
    """Collects clipped gradients of one logical batch, piece by piece.

    ``loss_reduction`` says what the loss does with the records of a piece: ``"mean"`` divides by their number (so the
    gradients that come back are multiplied by it), ``"sum"`` and ``"none"`` do not.
    """

    def __init__(self, parameters: Mapping[str, Tensor], clipping: Clipping, loss_reduction: Reduction,
                 checks: int = 0) -> None:
        if loss_reduction not in ("mean", "sum", "none"):
            raise ValueError(f"loss_reduction is {loss_reduction!r}, but must be 'mean', 'sum' or 'none': what the loss "
                             "does with the records of a batch.")
        self.parameters, self.clipping, self.reduction = dict(parameters), clipping, loss_reduction
        self.watch = Watch(parameters, checks)
        self.watch.reduction = loss_reduction
        self.block, self.shares = clipping.blocks(list(parameters))
        self.sizes = [p.numel() for p in parameters.values()]
        self.dtype = torch.float64 if any(p.dtype == torch.float64 for p in parameters.values()) else torch.float32
        self._place = {id(p): i for i, p in enumerate(parameters.values())}
        self.total: Tensor | None = None
        self.unclipped = 0.0  # the centred count that adaptive clipping releases with noise
        self.local = False  # whether to note what is not private, for the eyes of who trains
        self.clip_rate = math.nan

    def sensitivity(self, clip_norm: float) -> float:
        """The most a record can move the sum, rounding included: that of the coarsest parameter."""
        return clip_norm * (1 + max(ROUNDING.get(p.dtype, WIDENED) for p in self.parameters.values()))

    def begin(self) -> None:
        """A new logical batch: whatever was left of another is dropped."""
        self.watch.clear()
        self.total, self.unclipped = None, 0.0

    def add(self, weights: Tensor | None, clip_norm: float) -> None:
        """Clip what the last backward passes brought and add it; ``weights`` are zero for placeholders."""
        by_name = self._pulled_back()
        records = self.watch.records
        self.watch.clear()
        if not by_name or records is None:
            if self.total is None:
                self.total = torch.zeros(sum(self.sizes), dtype=self.dtype)
            return
        with torch.inference_mode():
            found = self._clipped(by_name, records, weights, clip_norm)
            self.total = found if self.total is None else self.total.add_(found)

    def _clipped(self, by_name: dict[int, list[Use]], records: int, weights: Tensor | None, clip_norm: float) -> Tensor:
        scale = float(records) if self.reduction == "mean" else 1.0
        squares = self._squares(by_name, records)
        lost = None
        if not all(math.isfinite(float(square.sum())) for square in squares):  # a sum that overflows only makes us look closer
            lost = ~torch.isfinite(torch.stack(squares)).all(0)
        self._count(squares[0], lost, weights, clip_norm / scale)
        if self.local:
            over = [square > (clip_norm * share / scale) ** 2 for square, share in zip(squares, self.shares, strict=True)]
            self.clip_rate = float(torch.stack(over).any(0).float().mean())
        factors = [self._kept(self.clipping.factors(square, clip_norm * share, scale), lost, weights)
                   for square, share in zip(squares, self.shares, strict=True)]
        return self._contracted(by_name, factors, lost)

    @staticmethod
    def _kept(factors: Tensor, lost: Tensor | None, weights: Tensor | None) -> Tensor:
        if lost is not None:
            factors = factors.masked_fill(lost, 0.0)  # a record is kept whole or not at all
        return factors if weights is None else factors * weights

    # --- the passes ----------------------------------------------------------------------------------------------

    def _pulled_back(self) -> dict[int, list[Use]]:
        """The uses of each parameter; those of a tensor made of parameters go back through how it was made."""
        found: dict[int, list[Use]] = {}
        made: dict[int, list[Use]] = {}
        for use in self._apart(self.watch.uses):
            place = self._place.get(id(use.target))
            if place is None:
                made.setdefault(id(use.target), []).append(use)
                continue
            found.setdefault(place, []).append(use)
            if use.bias is not None:
                found[self._place[id(use.bias)]] = []  # nothing of its own
        for uses in made.values():
            tensor = uses[0].target
            instances = sum(use.formed() for use in uses)
            ours = [p for p in self.parameters.values() if p.requires_grad]
            for parameter, gradient in zip(ours, _pull(tensor, ours, instances), strict=True):
                if gradient is not None:
                    found.setdefault(self._place[id(parameter)], []).append(Use(parameter, Rule(), None, None, gradient))
        return found

    def _apart(self, uses: list[Use]) -> list[Use]:
        """The uses, with a bias apart from its weight where one of them may be used again, or is clipped in another block."""
        met = [self._place.get(id(x)) for use in uses for x in (use.target, use.bias) if x is not None]
        again = None in met or len(set(met)) < len(met)  # none: something made of parameters, perhaps of these
        return uses + [use.without_bias() for use in uses if use.bias is not None and (again or not self._together(use))]

    def _together(self, use: Use) -> bool:
        weight, bias = (self.block[self._place[id(x)]] for x in (use.target, use.bias))
        return weight == bias

    def _squares(self, by_name: dict[int, list[Use]], records: int) -> list[Tensor]:
        """Each block's squared norms, never negative: a Gram sum may round below zero."""
        found: list[Tensor | None] = [None] * len(self.shares)
        for place, uses in by_name.items():
            if not uses:
                continue
            part, block = _joint_norms(uses), self.block[place]
            if part.shape[0] != records:
                raise MixedRecords(f"Parameter {list(self.parameters)[place]!r} was used on {part.shape[0]} records in a "
                                   f"batch of {records}. Call the model on the batch as the loader gave it.")
            before = found[block]
            part = part if part.dtype == self.dtype else part.to(self.dtype)
            found[block] = part if before is None else before + part
        device = next(iter(self.parameters.values())).device
        return [torch.zeros(records, dtype=self.dtype, device=device) if square is None else square.clamp(min=0)
                for square in found]

    def _count(self, squares: Tensor, lost: Tensor | None, weights: Tensor | None, clip_norm: float) -> None:
        if self.clipping.adaptive is None:
            return
        within = (squares.sqrt() <= clip_norm).to(self.dtype) - 0.5
        if lost is not None:
            within[lost] = -0.5
        self.unclipped += float((within if weights is None else within * weights).sum())

    def _contracted(self, by_name: dict[int, list[Use]], factors: list[Tensor], lost: Tensor | None) -> Tensor:
        total = buffer(sum(self.sizes), self.dtype, factors[0].device)
        outs = total.split_with_sizes(self.sizes)
        for place, (out, parameter) in enumerate(zip(outs, self.parameters.values(), strict=True)):
            uses = by_name.get(place)
            if uses is None:
                out.zero_()
                continue
            weights = factors[self.block[place]]
            if weights.dtype != parameter.dtype:  # half precision is summed in single
                weights = weights.to(torch.promote_types(parameter.dtype, torch.float32))
            for use in uses:
                if lost is not None:
                    _blank(use, lost)
                if use is uses[0]:
                    use.weigh(weights, out, None if use.bias is None else outs[self._place[id(use.bias)]])
                else:
                    out += use.weighted(weights).reshape(-1)
                use.activations = use.gradients = use.instances = None
        return total


def _joint_norms(uses: list[Use]) -> Tensor:
    """Squared norms of the sum of several uses' gradients."""
    if len(uses) == 1:
        return uses[0].squared_norms()
    if all(use.instances is None and isinstance(use.rule, Outer) for use in uses):
        _join(uses)
        return _joint_norms(uses)
    if (small := _tied(uses)) is not None:  # a tensor, whose truth is another question
        return small
    merged = sum(use.formed() for use in uses)
    uses[:] = [Use(uses[0].target, Rule(), None, None, merged)]  # type: ignore[arg-type]
    return _joint_norms(uses)


class _Joined(Outer):
    """Several outer products of one tensor are one, over all their steps."""

    def factors(self, activations: Any, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """As they were joined."""
        return output_gradients, activations


def _join(uses: list[Use]) -> None:
    pairs = [use.rule.factors(use.activations, use.gradients) for use in uses]  # type: ignore[attr-defined]
    u, v = (torch.cat(parts, dim=1) for parts in zip(*pairs, strict=True))
    joined = Use(uses[0].target, _Joined(), v, u)
    if joined.rule.prefers_instances(v, u):
        joined.instances = joined.rule.instantiate(v, u)
    uses[:] = [joined]


def _tied(uses: list[Use]) -> Tensor | None:
    r"""A table that is also an output layer: norms of both and twice their inner product, without forming either.

    .. math:: \langle G, G'\rangle = \sum_{t,n} u_t[\mathrm{row}_n] \langle v_t, g_n\rangle
    """
    tables = [use for use in uses if type(use.rule) is Rows and use.instances is None]
    outers = [use for use in uses if isinstance(use.rule, Outer) and use.instances is None]
    if len(tables) != 1 or len(tables) + len(outers) != len(uses):
        return None
    table, (records, rows, coefficients, count) = tables[0], tables[0].activations
    gradients = table.gradients
    assert gradients is not None
    if count * table.target.numel() <= KEPT or len(rows) % count:
        return None
    if not torch.equal(records.view(count, -1), torch.arange(count)[:, None].expand(count, len(rows) // count)):
        return None
    if len(outers) > 1:
        _join(outers)
    use = outers[0]
    u, v = use.rule.factors(use.activations, use.gradients)  # type: ignore[attr-defined]
    values = gradients if coefficients is None else gradients * coefficients[:, None]
    products = torch.bmm(values.view(count, -1, values.shape[1]), v.transpose(1, 2))  # [B, S, T]
    picked = u[records, :, rows].view_as(products)
    apart = [outer_norms(u, v), table.rule.squared_norms(table.activations, gradients)]
    found = apart[0] + apart[1] + 2 * (products * picked).flatten(1).sum(1)
    uses[:] = [table, use]
    doubtful = found < 2.0**-10 * (apart[0] + apart[1])  # they cancel: what rounding may hide counts too
    return torch.where(doubtful, 2.0**-10 * (apart[0] + apart[1]), found)


def _pull(tensor: Tensor, parameters: list[Tensor], instances: Any) -> list[Tensor | None]:
    """Each record's gradient of the parameters a tensor was made of."""
    def back(gradients: Tensor, batched: bool) -> Any:
        found = torch.autograd.grad(tensor, parameters, gradients.to(tensor.dtype), retain_graph=True, allow_unused=True,
                                    is_grads_batched=batched)
        return [None if g is None else g.to(torch.promote_types(g.dtype, torch.float32)) for g in found]

    try:
        return back(instances, True)  # type: ignore[no-any-return]
    except RuntimeError:
        each = [back(g, False) for g in instances]
        return [None if parts[0] is None else torch.stack(parts) for parts in zip(*each, strict=True)]


def _blank(use: Use, lost: Tensor) -> None:
    """Zeros in place of what a lost record brought: zero times not-a-number is not zero."""
    if use.instances is not None:
        use.instances = _without(use.instances, lost)
        return
    assert use.gradients is not None
    if isinstance(use.rule, Rows):
        records = use.activations[0]
        use.gradients = use.gradients.masked_fill(lost[records][:, None], 0.0)
        if use.activations[2] is not None:
            blanked = use.activations[2].masked_fill(lost[records], 0.0)
            use.activations = (*use.activations[:2], blanked, use.activations[3])
        return
    each = use.rule.fold if isinstance(use.rule, Folded) else 1
    gone = lost.repeat_interleave(each)
    use.gradients = _without(use.gradients, gone)
    if isinstance(use.activations, Tensor):
        use.activations = _without(use.activations, gone)


def _without(x: Tensor, lost: Tensor) -> Tensor:
    return x.masked_fill(lost.view(-1, *[1] * (x.dim() - 1)), 0.0)
