"""Torch functions that need a word of their own: those that are opened, those that only ask, those that work in
place."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.rules import recurrent
from discreet.training.gradients.trace.assignment import assign, written

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor
    from torch.overrides import handle_torch_function, has_torch_function

__all__ = ["OPENED", "WITH_PARAMETERS", "only_asks", "out_of_place", "spread_over"]


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


OPENED: dict[Any, Callable[..., Any]] = {
    F.multi_head_attention_forward: _inside(F.multi_head_attention_forward),
    **recurrent.OPENED,
}
"""Functions whose inner calls are watched instead."""

WITH_PARAMETERS: dict[Any, Callable[..., Any]] = {
    **OPENED,
    F.scaled_dot_product_attention: _attention,
    Tensor.__setitem__: assign,
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


def only_asks(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether a call computes nothing; ``x.type()`` asks, ``x.type(torch.float64)`` does not."""
    name = getattr(func, "__name__", "")
    return name in _QUESTIONS and (name != "type" or len(args) + len(kwargs) == 1)


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
