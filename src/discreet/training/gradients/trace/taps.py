"""A place in autograd's graph where the gradient of a call's output is handed over.

The gradient must be the one that comes from outside the call, whatever follows: functions in place, hooks on the
tensor, other outputs of the same call that are computed from this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from discreet.errors import extra

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["differentiable", "tap"]

Receive = Callable[[Tensor], None]


def differentiable(x: Tensor) -> bool:
    """Whether numbers are of a kind that has gradients."""
    return x.is_floating_point() or x.is_complex()


def tap(output: Tensor, inputs: Sequence[Tensor], receive: Receive, anchor: Tensor, *, alone: bool = True) -> Tensor:
    """The output of a call on ``inputs``, which will hand its gradient over; ``alone`` says that it is the only one.

    Before the function itself, after every hook on the tensor: what these change counts.
    """
    if not output.requires_grad:
        if output._is_view():  # a view of a parameter must not be marked as changed
            output = output.clone()
        return GradientReceiver.apply(output, anchor, receive)
    if not alone:  # of a cell's two outputs one is made of the other, so its own place gets gradients of both
        output = output.clone()
    if not output._is_view():
        _hook(output, receive)
        return output
    # A function in place after this would make the view's place in the graph anew, and that of its base stays.
    base = output._base
    known = {id(x) for x in inputs} | {id(x._base) for x in inputs if x._is_view()}
    if base is None or id(base) in known or not (base.is_contiguous() and base.numel() == output.numel()):
        output = output.clone()
        _hook(output, receive)
        return output
    shape, stride, start = output.shape, output.stride(), output.storage_offset() - base.storage_offset()
    plain = output.is_contiguous()

    def of_view(gradient: Tensor) -> None:
        if plain:
            receive(gradient.reshape(shape))
            return
        gradient = gradient.contiguous()
        receive(gradient.as_strided(shape, stride, gradient.storage_offset() + start))

    _hook(base, of_view)
    return output


def _hook(x: Tensor, receive: Receive) -> None:
    place = x.output_nr
    x.grad_fn.register_prehook(lambda g: None if g[place] is None else receive(g[place]))  # type: ignore[union-attr]


class GradientReceiver(torch.autograd.Function):
    """Gives a tensor that nothing requires a gradient of a place in the graph.

    Marked as changed in place, so that the tensor itself goes on and in-place functions may follow.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, receive: Receive) -> Tensor:
        """The tensor itself."""
        ctx.mark_dirty(x)
        ctx.receive = receive
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[None, None, None]:
        """Hand the gradient over; it goes no further."""
        ctx.receive(gradients[0])
        return None, None, None
