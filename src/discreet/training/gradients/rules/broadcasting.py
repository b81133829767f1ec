"""Parameters that are spread over records and added or multiplied: positions, biases, scales, masks of attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.rules.elementary import Spread
from discreet.training.gradients.rules.handlers import Call, Handler, Layout, PendingUse, register
from discreet.training.gradients.trace.functions import spread_over, written

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Scaled", "Shaped", "broadcast_use"]


class Shaped(Handler):
    """A handler whose gradients get back dimensions of size one."""

    eager = True

    def __init__(self, handler: Handler, shape: torch.Size) -> None:
        self.handler, self.shape = handler, shape

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """As the handler, reshaped."""
        found = self.handler.instantiate(activations, output_gradients)
        return found.reshape(found.shape[0], *self.shape)


class Scaled(Spread):
    """A shared tensor that records are multiplied by: output gradients times data, summed to its shape."""

    def instantiate(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """Broadcasting, backwards; activations have as many dimensions as gradients."""
        return super().instantiate(None, output_gradients * activations)


def broadcast_use(
    target: Tensor, where: Layout, dims: int, *, data: Tensor | None = None, scale: float = 1.0
) -> PendingUse | None:
    """The use of a tensor that is spread over an output of ``dims`` dimensions, added or multiplied with ``data``.

    None where the target has a dimension of its own in the records' place.
    """
    shape, place = list(target.shape), where.dim - dims
    if len(shape) >= -place:
        if shape[place] != 1:
            return None
        if where.fold == 1:
            del shape[len(shape) + place]
    kind = Spread if data is None else Scaled
    handler: Handler = kind(torch.Size(shape))
    if len(shape) < target.dim():
        handler = Shaped(handler, target.shape)

    def view(g: Tensor) -> Tensor:
        found = where.apart(g)
        return found if scale == 1 else found * scale

    # conj: of a complex product the gradient has the conjugate of the other factor; a real one is its own
    return PendingUse(target, handler, None if data is None else where.apart(data.detach().conj()), view)


def _operands(call: Call) -> tuple[Tensor, Tensor, Layout] | None:
    """The shared operand, and the data with all dimensions of the output."""
    one, two = call.arguments["input"], call.arguments["other"]
    if not (isinstance(one, Tensor) and isinstance(two, Tensor)) or call.is_shared(one) == call.is_shared(two):
        return None
    shared, data = (one, two) if call.is_shared(one) else (two, one)
    layout, more = call.layout(data), max(0, shared.dim() - data.dim())
    where = None if layout is None else layout.at(layout.dim + more)
    return None if where is None else (shared, data[(None,) * more] if more else data, where)


def _sum(call: Call, signs: tuple[float, float]) -> list[PendingUse] | None:
    found = _operands(call)
    if found is None:
        return None
    shared, data, where = found
    scale = signs[0] if shared is call.arguments["input"] else signs[1] * call.arguments.get("alpha", 1)
    use = broadcast_use(shared, where, data.dim(), scale=scale)
    return None if use is None else [use]


def _product(call: Call) -> list[PendingUse] | None:
    found = _operands(call)
    if found is None:
        return None
    shared, data, where = found
    use = broadcast_use(shared, where, data.dim(), data=data)
    return None if use is None else [use]


@register(spread_over)
def _spread_over(call: Call) -> list[PendingUse] | None:
    x, *others = (call.arguments[name] for name in ("x", "one", "two", "three"))
    layout = next((found for other in others if (found := call.layout(other)) is not None), None)
    if not call.is_shared(x):  # the others only lend their rows
        return []
    if layout is None or layout.dim != 0:
        return None
    use = broadcast_use(x, layout, others[0].dim())
    return None if use is None else [use]


@register(written)
def _write(call: Call) -> list[PendingUse] | None:
    """What was there has no part in what is written over it."""
    x, value = call.arguments["x"], call.arguments["value"]
    layout = call.layout(x)
    if not call.is_shared(value):
        return []
    use = None if layout is None else broadcast_use(value, layout, x.dim())
    return None if use is None else [use]


def _chosen(call: Call) -> list[PendingUse] | None:
    """``where`` with a parameter for one of the two, or ``masked_fill``: it is what it is where it is taken."""
    given = call.arguments
    taken, one = given["condition"], given["input"]
    shared = [x for x in (one, given.get("other")) if call.is_shared(x)]
    if len(shared) != 1 or not isinstance(taken, Tensor) or call.layout(taken) is None:
        return None
    (target,) = shared
    keep = taken if target is one and not given.get("inverted") else ~taken
    dims = max(x.dim() for x in (one, given.get("other"), taken) if isinstance(x, Tensor))
    layout, more = call.layout(taken), dims - taken.dim()
    where = None if layout is None else layout.at(layout.dim + more)
    keep = keep[(None,) * more] if more else keep
    use = None if where is None else broadcast_use(target, where, dims, data=keep.to(target.dtype))
    return None if use is None else [use]


def _mask(call: Call) -> list[PendingUse] | None:
    return _chosen(replace(call, arguments={**call.arguments, "inverted": True}))


_function: Any
register(torch.where, ("condition", "input", "other"))(_chosen)
register(Tensor.where, ("input", "condition", "other"))(_chosen)
for _function in (torch.masked_fill, Tensor.masked_fill):
    register(_function, ("input", "condition", "value"))(_mask)
for _function in (torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__):
    register(_function, ("input", "other"))(lambda call: _sum(call, (1.0, 1.0)))
for _function in (torch.sub, Tensor.sub, Tensor.__sub__):
    register(_function, ("input", "other"))(lambda call: _sum(call, (1.0, -1.0)))
register(Tensor.__rsub__, ("other", "input"))(lambda call: _sum(call, (1.0, -1.0)))
for _function in (torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__):
    register(_function, ("input", "other"))(_product)
