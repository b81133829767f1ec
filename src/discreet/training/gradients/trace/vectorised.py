"""Parameters inside ``torch.vmap`` in a model's own code.

There a tensor has one dimension less than it really has: the mapped one is hidden. A call on a parameter is made on the
whole tensors instead, where the records can be seen, by the same function under a ``vmap`` of our own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.errors import extra
from discreet.training.errors import PrivateTrainingError
from discreet.training.gradients.trace.functions import out_of_place
from discreet.training.gradients.trace.trees import mapped

with extra("torch"):
    import torch
    from torch import Tensor
    from torch._C import _functorch
    from torch._functorch.pyfunctorch import temporarily_pop_interpreter_stack
    from torch.utils import _pytree as pytree

__all__ = ["is_vectorised", "on_whole_tensors", "whole"]


def is_vectorised(inputs: list[Tensor]) -> bool:
    """Whether a call is made inside ``torch.vmap`` on mapped tensors, or inside another transform."""
    return _functorch.peek_interpreter_stack() is not None and any(map(_functorch.is_functorch_wrapped_tensor, inputs))


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
    with temporarily_pop_interpreter_stack():
        output = call(vectorised, rows)
    return mapped(lambda x: _functorch._add_batch_dim(x, 0, level), output)
