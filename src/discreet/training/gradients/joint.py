"""Several uses of one tensor are one gradient: their norms together, and what they were made of.

Cross terms count: a table that is also an output layer, a weight used at every step of a sequence. Where both are
cheap, neither gradient is formed.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import extra
from discreet.training.gradients.rules.elementary import Rows
from discreet.training.gradients.rules.handlers import KEPT, Handler
from discreet.training.gradients.rules.outer_products import LinearWeight, Outer, outer_norms
from discreet.training.gradients.uses import Use

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["as_one_weight", "joint_norms", "pull_back"]


def joint_norms(uses: list[Use]) -> Tensor:
    """Squared norms of the sum of several uses' gradients."""
    if len(uses) == 1:
        return uses[0].squared_norms()
    if all(use.instances is None and isinstance(use.handler, Outer) for use in uses):
        _join(uses)
        return joint_norms(uses)
    if (small := _tied(uses)) is not None:  # a tensor, whose truth is another question
        return small
    uses[:] = [Use(uses[0].target, Handler(), None, None, _merge(uses))]
    return joint_norms(uses)


def _merge(uses: list[Use]) -> Tensor:
    """Each record's gradient, of all uses: rows of a table are added where an output layer's gradients lie, which are
    nobody else's."""
    looked_up = [type(use.handler) is Rows and use.instances is None for use in uses]
    others = [use for use, table in zip(uses, looked_up, strict=True) if not table]
    if len(others) != 1 or not isinstance(others[0].handler, Outer):
        return sum(use.formed() for use in uses)  # type: ignore[return-value]
    found = others[0].formed()
    for use in (use for use, table in zip(uses, looked_up, strict=True) if table):
        assert isinstance(use.handler, Rows)
        assert use.gradients is not None
        use.handler.add_instances(use.activations, use.gradients, found)
    return found


class _Joined(Outer):
    """Several outer products of one tensor are one, over all their steps."""

    def factors(self, activations: Any, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """As they were joined."""
        return output_gradients, activations


def _join(uses: list[Use]) -> None:
    pairs = [use.handler.factors(use.activations, use.gradients) for use in uses]  # type: ignore[attr-defined]
    u, v = (torch.cat(parts, dim=1) for parts in zip(*pairs, strict=True))
    handler = _Joined()
    instances = handler.instantiate(v, u) if handler.prefers_instances(v, u) else None
    uses[:] = [Use(uses[0].target, handler, v, u, instances)]


def _tied(uses: list[Use]) -> Tensor | None:
    r"""A table that is also an output layer: norms of both and twice their inner product, without forming either.

    .. math:: \langle G, G'\rangle = \sum_{t,n} u_t[\mathrm{row}_n] \langle v_t, g_n\rangle
    """
    tables = [use for use in uses if type(use.handler) is Rows and use.instances is None]
    outers = [use for use in uses if isinstance(use.handler, Outer) and use.instances is None]
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
    u, v = use.handler.factors(use.activations, use.gradients)  # type: ignore[attr-defined]
    values = gradients if coefficients is None else gradients * coefficients[:, None]
    products = torch.bmm(values.view(count, -1, values.shape[1]), v.transpose(1, 2))  # [B, S, T]
    picked = u[records, :, rows].view_as(products)
    squared, terms = outer_norms(u, v)
    use.note_terms(terms)
    apart = [squared, table.squared_norms()]
    found = apart[0] + apart[1] + 2 * (products * picked).flatten(1).sum(1)
    uses[:] = [use, table]  # in this order the product is written, and the table's few rows added
    doubtful = found < 2.0**-10 * (apart[0] + apart[1])  # they cancel: what rounding may hide counts too
    return torch.where(doubtful, 2.0**-10 * (apart[0] + apart[1]), found)


def as_one_weight(uses: list[Use]) -> Use:
    """Weights that got the same output gradients u are one weight, of their inputs side by side: the squared norm of
    (u v'ᵀ, u v″ᵀ) is that of u (v', v″)ᵀ, and u is compared with itself once. Only to be measured."""
    inputs = torch.cat([use.activations for use in uses], dim=2)
    return Use(uses[0].target, LinearWeight(), inputs, uses[0].gradients)


def pull_back(tensor: Tensor, parameters: list[Tensor], instances: Any) -> list[Tensor | None]:
    """Each record's gradient of the parameters a tensor was made of."""

    def back(gradients: Tensor, batched: bool) -> Any:
        found = torch.autograd.grad(
            tensor,
            parameters,
            gradients.to(tensor.dtype),
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=batched,
        )
        return [None if g is None else g.to(torch.promote_types(g.dtype, torch.float32)) for g in found]

    try:
        return back(instances, True)  # type: ignore[no-any-return]
    except RuntimeError:
        each = [back(g, False) for g in instances]
        return [None if parts[0] is None else torch.stack(parts) for parts in zip(*each, strict=True)]
