"""Torch functions that need a word of their own: those that are opened, those that only ask, those that work in
place, those that a model's own code calls inside ``torch.vmap``."""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

from discreet.errors import extra
from discreet.training.errors import PrivateTrainingError
from discreet.training.gradients.rules import recurrent
from discreet.training.gradients.trace.trees import mapped

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor
    from torch._C import _functorch
    from torch._functorch.pyfunctorch import temporarily_pop_interpreter_stack
    from torch.autograd.graph import saved_tensors_hooks
    from torch.overrides import handle_torch_function, has_torch_function
    from torch.utils import _pytree as pytree

__all__ = [
    "OPENED",
    "WITH_PARAMETERS",
    "is_vectorised",
    "on_whole_tensors",
    "only_asks",
    "out_of_place",
    "spread_over",
    "whole",
    "without_saved_tensors",
    "written",
]


_ATTRIBUTES: dict[str, Callable[[Tensor], Tensor]] = {  # that compute something, as functions, which are seen
    "T": lambda x: x.permute(*reversed(range(x.dim()))),
    "H": lambda x: x.permute(*reversed(range(x.dim()))).conj(),
    "mT": lambda x: x.transpose(-2, -1),
    "mH": lambda x: x.transpose(-2, -1).conj(),
    "real": lambda x: torch.real(x),
    "imag": lambda x: torch.imag(x),
}


def _read(attribute: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda x, *_: attribute(x)  # the class, too, is given to ``__get__``


def _inside(function: Any) -> Any:
    """The same Python function without its first question, whether something wants to handle it."""
    copy = types.FunctionType(
        function.__code__,
        {**function.__globals__, "has_torch_function": lambda *_: False},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *rest: Any, **options: Any
) -> Any:
    """Attention with parameters inside (learned queries, a bias of positions): each record gets its own copy first, and
    its gradient is that of its copy."""
    given = query, key, value
    mask = None if attn_mask is None else spread_over(attn_mask, *given)
    query, key, value = (spread_over(x, *given) for x in given)
    return F.scaled_dot_product_attention(query, key, value, mask, *rest, **options)


def spread_over(x: Tensor, one: Tensor, two: Tensor, three: Tensor) -> Tensor:
    """A tensor repeated for every row of three others; itself, if it has these rows."""
    given = x, one, two, three
    if has_torch_function(given):
        return handle_torch_function(spread_over, given, *given)  # type: ignore[no-any-return]
    rows, more = max(len(one), len(two), len(three)), one.dim() - x.dim()
    return x.expand(rows, *[1] * (more - 1), *(x.shape if more else x.shape[1:]))


# --- parameters written into tensors: x[:, 0] = self.token, x[mask] = self.token, x.copy_(self.table) --------------
#
# Each is a function that is not in place, whose result is then copied to where it was wanted: a part of the tensor and
# what takes its place (``written``), or a choice between the two (``torch.where``). Both have rules.


def written(x: Tensor, value: Tensor, non_blocking: bool = False) -> Tensor:
    """What ``x.copy_(value)`` leaves in x."""
    if has_torch_function((x, value)):
        return handle_torch_function(written, (x, value), x, value)  # type: ignore[no-any-return]
    return value.to(x.dtype).expand_as(x)


def _assign(x: Tensor, index: Any, value: Any) -> Tensor:
    """``x[index] = value``; returns what was written to."""
    if not isinstance(value, Tensor):
        value = torch.as_tensor(value, dtype=x.dtype, device=x.device)
    parts = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(part, (Tensor, list)) for part in parts):
        part = x[index]
        while value.dim() > part.dim() and value.shape[0] == 1:  # as torch does
            value = value[0]
        return part.copy_(value)
    return x.copy_(torch.where(_mask(x, index), _trailing(x, parts, value), x))


def _mask(x: Tensor, index: Any) -> Tensor:
    """Where an index takes something."""
    mask = torch.zeros(x.shape, dtype=torch.bool, device=x.device)
    mask[index] = True
    return mask


def _trailing(x: Tensor, parts: tuple[Any, ...], value: Tensor) -> Tensor:
    """A value for every place alike: of dimensions that the index leaves alone, which come last."""
    taken = sum(part.dim() if isinstance(part, Tensor) and part.dtype == torch.bool else 1 for part in parts)
    while value.dim() and value.shape[0] == 1:
        value = value[0]
    if any(part is None or part is Ellipsis for part in parts) or value.dim() > x.dim() - taken:
        raise PrivateTrainingError(
            "forward writes a tensor made of parameters to places picked by a tensor (x[index] = value), with another "
            "value for each place: whose gradient it is cannot be told. Write torch.where(mask, value, x), with a mask "
            "and a value that have the records' dimension."
        )
    return value


# --- what is called in another way -----------------------------------------------------------------------------------

OPENED: dict[Any, Callable[..., Any]] = {
    F.multi_head_attention_forward: _inside(F.multi_head_attention_forward),
    **recurrent.OPENED,
}
"""Functions whose inner calls are watched instead."""

WITH_PARAMETERS: dict[Any, Callable[..., Any]] = {
    **OPENED,
    F.scaled_dot_product_attention: _attention,
    Tensor.__setitem__: _assign,
    **{getattr(Tensor, name).__get__: _read(attribute) for name, attribute in _ATTRIBUTES.items()},
}
"""Those, and functions that are written in another way where a parameter is among their arguments."""

_QUESTIONS = {
    "__get__",
    "__hash__",
    "__len__",
    "__repr__",
    "__set__",
    "data_ptr",
    "dim",
    "get_device",
    "is_complex",
    "is_contiguous",
    "is_floating_point",
    "ndimension",
    "nelement",
    "numel",
    "requires_grad_",
    "size",
    "stride",
    "type",
}
"""Methods that compute nothing a gradient goes through."""


@cache
def only_asks(func: Any, given: int) -> bool:
    """Whether a call of so many arguments computes nothing; ``x.type()`` asks, ``x.type(torch.float64)`` does not."""
    name = getattr(func, "__name__", "")
    return name in _QUESTIONS and (name != "type" or given == 1)


@cache
def out_of_place(func: Any) -> Any:
    """The ordinary form of an in-place method, if it is one."""
    if func is Tensor.copy_:
        return written
    name = getattr(func, "__name__", "")
    if name.startswith("__i") and name.endswith("__") and name not in ("__index__", "__int__", "__invert__"):
        return getattr(Tensor, f"__{name[3:]}", None)
    if name.endswith("_") and not name.endswith("__") and getattr(Tensor, name, None) is func:
        return getattr(Tensor, name[:-1], None)
    return None


def is_vectorised(inputs: list[Tensor]) -> bool:
    """Whether a call inside ``torch.vmap``, or another transform, is on mapped tensors.

    There a tensor has one dimension less than it really has: the mapped one is hidden. A call on a parameter is made on
    the whole tensors instead, where the records can be seen, by the same function under a ``vmap`` of our own.
    """
    return any(map(_functorch.is_functorch_wrapped_tensor, inputs))


def whole(x: Tensor) -> Tensor:
    """A tensor with its hidden dimension first; one that hides none, as it is."""
    return _functorch.get_unwrapped(x).movedim(_functorch.maybe_get_bdim(x), 0) if _hides(x) else x


def _hides(x: Any) -> bool:
    return isinstance(x, Tensor) and _functorch.is_batchedtensor(x)


def on_whole_tensors(call: Callable[[Any, Any], Any], func: Any, args: Any, kwargs: Any, location: str) -> Any:
    """The output of ``func``, by a ``call`` of the function that does the same to whole tensors."""
    if out_of_place(func) is not None:
        raise PrivateTrainingError(
            f"{getattr(func, '__name__', func)} at {location} changes a tensor in place by a parameter inside "
            "torch.vmap. Write it without: x = x + p in place of x += p."
        )
    top = _functorch.peek_interpreter_stack()
    leaves, tree = pytree.tree_flatten((args, kwargs))
    inner = [x for x in leaves if isinstance(x, Tensor) and _functorch.is_functorch_wrapped_tensor(x)]
    if any(
        not _hides(x) or _functorch.maybe_get_level(x) != top.level() or _hides(_functorch.get_unwrapped(x))
        for x in inner
    ):
        raise PrivateTrainingError(
            f"{getattr(func, '__name__', func)} at {location} uses a parameter inside torch.func.grad, jvp or a vmap "
            "in a vmap: there the records cannot be seen. Write it for the whole batch, without the transform."
        )
    given = [x for x in leaves if isinstance(x, Tensor)]
    dims = tuple(0 if _hides(x) else None for x in given)

    def vectorised(*rows: Tensor) -> Any:
        def one(*parts: Tensor) -> Any:
            each = iter(parts)
            own, named = pytree.tree_unflatten([next(each) if isinstance(x, Tensor) else x for x in leaves], tree)
            return func(*own, **named)

        return torch.vmap(one, in_dims=dims)(*rows)

    vectorised.__name__ = f"{getattr(func, '__name__', func)} in torch.vmap"
    rows, level = tuple(whole(x) for x in given), top.level()
    # outside of the user's vmap, so that the records' dimension is seen; what comes back is inside of it again
    with temporarily_pop_interpreter_stack():
        output = call(vectorised, rows)
    return mapped(lambda x: _functorch._add_batch_dim(x, 0, level), output)


def without_saved_tensors() -> Any:
    """What is saved for a backward pass stays out of sight of whoever counts it: gradient checkpointing would compute a
    whole block again for a graph of parameters alone."""
    if torch._C._autograd._top_saved_tensors_default_hooks(True) is None:  # type: ignore[attr-defined]
        return nullcontext()
    # Detached, because a node that saves its own output as it is would keep itself alive.
    return saved_tensors_hooks(Tensor.detach, lambda x: x)
