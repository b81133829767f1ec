r"""The clipped sum: :math:`\sum_i w_i\,\mathrm{clip}(G_i)` in one flat tensor, with a known bound on each record's part.

From the uses a ``Watch`` collected, in three passes: every parameter's squared norms (several uses of one parameter are
one gradient: their cross terms count), the factors, and one weighted contraction a use. Records whose gradient is not
finite contribute zero, and nothing says how many there were.

Guarantee: a record moves the sum by at most ``sensitivity(clip_norm)``, which is the clip norm widened by what rounding
in the sum's precision can add; noise is scaled to the widened bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from discreet.errors import extra
from discreet.training.calls import Folded
from discreet.training.clipping import Clipping
from discreet.training.refusals import MixedRecords
from discreet.training.rules import KEPT, Outer, Rows, Rule, outer_norms
from discreet.training.watch import Use, Watch

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
        self.offsets = _offsets(self.parameters)
        self.total: Tensor | None = None
        self.unclipped = 0.0  # the centred count that adaptive clipping releases with noise

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the sum: double if a parameter is, otherwise single, also for parameters of half precision."""
        return torch.float64 if any(p.dtype == torch.float64 for p in self.parameters.values()) else torch.float32

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
                self.total = torch.zeros(self.offsets[-1], dtype=self.dtype)
            return
        with torch.inference_mode():
            found = self._clipped(by_name, records, weights, clip_norm)
            self.total = found if self.total is None else self.total.add_(found)

    def _clipped(self, by_name: dict[int, list[Use]], records: int, weights: Tensor | None, clip_norm: float) -> Tensor:
        scale = float(records) if self.reduction == "mean" else 1.0
        norms = self._norms(by_name, records)
        finite = math.isfinite(float(norms.sum()))  # a sum that overflows only makes the look closer
        lost = None if finite else ~torch.isfinite(norms).all(0)
        factors = self._factors(norms, lost, clip_norm, scale)
        if weights is not None:
            factors *= weights
        self._count(norms, lost, weights, clip_norm / scale)
        return self._contracted(by_name, factors, lost)

    def _factors(self, norms: Tensor, lost: Tensor | None, clip_norm: float, scale: float) -> Tensor:
        found = [self.clipping.factors(n, clip_norm * share, scale) for n, share in zip(norms, self.shares, strict=True)]
        factors = torch.stack(found) if len(found) > 1 else found[0].unsqueeze(0)
        return factors if lost is None else factors.masked_fill(lost, 0.0)  # a record is kept whole or not at all

    # --- the passes ----------------------------------------------------------------------------------------------

    def _pulled_back(self) -> dict[int, list[Use]]:
        """The uses of each parameter; those of a tensor made of parameters go back through how it was made."""
        names = {id(p): i for i, p in enumerate(self.parameters.values())}
        found: dict[int, list[Use]] = {}
        made: dict[int, list[Use]] = {}
        for use in self.watch.uses:
            (found if id(use.target) in names else made).setdefault(names.get(id(use.target), id(use.target)), []).append(use)
        for uses in made.values():
            tensor = uses[0].target
            instances = sum(_formed(use) for use in uses)
            ours = [p for p in self.parameters.values() if p.requires_grad]
            for parameter, gradient in zip(ours, _pull(tensor, ours, instances), strict=True):
                if gradient is not None:
                    found.setdefault(names[id(parameter)], []).append(Use(parameter, Rule(), None, None, gradient))
        return found

    def _norms(self, by_name: dict[int, list[Use]], records: int) -> Tensor:
        squares: list[Tensor | None] = [None] * len(self.shares)
        for place, uses in by_name.items():
            found, block = _joint_norms(uses), self.block[place]
            if found.shape[0] != records:
                raise MixedRecords(f"Parameter {list(self.parameters)[place]!r} was used on {found.shape[0]} records in a "
                                   f"batch of {records}. Call the model on the batch as the loader gave it.")
            before = squares[block]
            squares[block] = found.to(self.dtype) if before is None else before + found
        device = next(iter(self.parameters.values())).device
        known = [torch.zeros(records, dtype=self.dtype, device=device) if square is None else square for square in squares]
        return (torch.stack(known) if len(known) > 1 else known[0].unsqueeze(0)).clamp(min=0).sqrt_()

    def _count(self, norms: Tensor, lost: Tensor | None, weights: Tensor | None, clip_norm: float) -> None:
        if self.clipping.adaptive is None:
            return
        within = (norms[0] <= clip_norm).to(self.dtype) - 0.5
        if lost is not None:
            within[lost] = -0.5
        self.unclipped += float((within if weights is None else within * weights).sum())

    def _contracted(self, by_name: dict[int, list[Use]], factors: Tensor, lost: Tensor | None) -> Tensor:
        parts: list[Tensor] = []
        for place, parameter in enumerate(self.parameters.values()):
            whole: Tensor | None = None
            for use in by_name.get(place, ()):
                if lost is not None:
                    _blank(use, lost)
                weights = factors[self.block[place]].to(torch.promote_types(parameter.dtype, torch.float32))
                found = _weighted(use, weights).reshape(-1)
                whole = found if whole is None else whole + found
                use.activations = use.gradients = use.instances = None
            if whole is None:
                whole = torch.zeros(parameter.numel(), dtype=self.dtype, device=parameter.device)
            parts.append(whole.to(self.dtype))
        return torch.cat(parts)


def _offsets(parameters: Mapping[str, Tensor]) -> list[int]:
    ends = [0]
    for parameter in parameters.values():
        ends.append(ends[-1] + parameter.numel())
    return ends


def _formed(use: Use) -> Tensor:
    """The gradients of a use, formed if they were not."""
    if use.instances is None:
        assert use.gradients is not None
        found = use.rule.instantiate(use.activations, use.gradients)
        return found.view(found.shape[0], *use.target.shape)
    return use.instances.view(use.instances.shape[0], *use.target.shape)


def _weighted(use: Use, weights: Tensor) -> Tensor:
    if use.instances is not None:
        return weights @ use.instances.flatten(1)
    assert use.gradients is not None
    return use.rule.weighted_sum(use.activations, use.gradients, weights)


def _joint_norms(uses: list[Use]) -> Tensor:
    """Squared norms of the sum of several uses' gradients."""
    if len(uses) == 1:
        return uses[0].squared_norms()
    if all(use.instances is None and isinstance(use.rule, Outer) for use in uses):
        _join(uses)
        return _joint_norms(uses)
    if small := _tied(uses):
        return small
    merged = sum(_formed(use) for use in uses)
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
