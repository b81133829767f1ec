"""Torch functions that need a word of their own: those that are opened, those that only ask, those that work in
place."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Any

from discreet.errors import extra
from discreet.training.gradients import recurrent

with extra("torch"):
    import torch.nn.functional as F
    from torch import Tensor

__all__ = ["OPENED", "QUESTIONS", "out_of_place"]


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


OPENED: dict[Any, Callable[..., Any]] = {
    F.multi_head_attention_forward: _inside(F.multi_head_attention_forward),
    **recurrent.OPENED,
}
"""Functions whose inner calls are watched instead."""

QUESTIONS = {
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
def out_of_place(func: Any) -> Any:
    """The ordinary form of an in-place method, if it is one."""
    name = getattr(func, "__name__", "")
    if name.startswith("__i") and name.endswith("__") and name not in ("__index__", "__int__", "__invert__"):
        return getattr(Tensor, f"__{name[3:]}", None)
    if name.endswith("_") and not name.endswith("__") and getattr(Tensor, name, None) is func:
        return getattr(Tensor, name[:-1], None)
    return None
