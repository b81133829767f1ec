"""Tensors and numbers in nested arguments. Plain recursion: a step has many small calls, and general tree tools are
slow on them."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import numpy as np

from discreet.errors import extra

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["detached", "differentiable", "mapped", "numbers", "renumber", "same_bits", "tensors"]

MANY = 1 << 12  # numbers, from which on the time to compare them counts


def tensors(tree: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists and dictionaries, in order."""
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, (tuple, list)):
        return []
    found: list[Tensor] = []
    for part in tree:
        if isinstance(part, Tensor):
            found.append(part)
        elif isinstance(part, (tuple, list, dict)):
            found += tensors(part)
    return found


def differentiable(x: Tensor) -> bool:
    """Whether numbers are of a kind that has gradients."""
    return x.is_floating_point() or x.is_complex()


def mapped(change: Callable[[Tensor], Tensor], tree: Any) -> Any:
    """The same nested arguments with every tensor changed."""
    if isinstance(tree, Tensor):
        return change(tree)
    if isinstance(tree, dict):
        return {key: mapped(change, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(change, part) for part in tree))
    if type(tree) in (tuple, list):
        return type(tree)([mapped(change, part) for part in tree])
    return tree


def detached(tree: Any, shared: Container[int]) -> Any:
    """The same arguments with the shared tensors cut from their graph."""
    if type(tree) is tuple:
        parts = []
        for x in tree:  # most arguments are no trees
            parts.append(x.detach() if id(x) in shared else detached(x, shared) if isinstance(x, _TREES) else x)
        return tuple(parts)
    return mapped(lambda x: x.detach() if id(x) in shared else x, tree) if tree else tree


_TREES = tuple, list, dict


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether many numbers are known to be the same to the last bit: several times as fast as ``torch.equal``.

    >>> import torch
    >>> same_bits(torch.zeros(5000), torch.zeros(5000)), same_bits(torch.zeros(5000), -torch.zeros(5000))
    (True, False)
    """
    if one.numel() < MANY or one.shape != other.shape or one.dtype != other.dtype:
        return False
    one, other = one.detach(), other.detach()
    if not all(type(x) is Tensor and x.is_cpu and x.is_contiguous() and not x.is_conj() for x in (one, other)):
        return False
    if one.is_neg() or other.is_neg():
        return False
    # by dlpack: memory that ``numpy()`` has looked at cannot be given back, as fully_shard does with a parameter's
    a, b = (np.from_dlpack(x.view(-1).view(torch.uint8)) for x in (one, other))
    words = len(a) // 8 * 8
    return bool((a[:words].view(np.int64) == b[:words].view(np.int64)).all() and (a[words:] == b[words:]).all())


Change = Callable[[int, float], float]


def renumber(tree: Any, change: Change) -> Any:
    """The same nested arguments with every number changed; ``change`` is told which one of them it is."""
    place = -1

    def walk(x: Any) -> Any:
        nonlocal place
        if isinstance(x, dict):
            return {key: walk(part) for key, part in x.items()}
        if isinstance(x, range):
            return range(walk(x.start), walk(x.stop), walk(x.step))
        if isinstance(x, slice):
            return slice(walk(x.start), walk(x.stop), walk(x.step))
        if isinstance(x, (tuple, list)) and not hasattr(x, "_fields"):
            return type(x)([walk(part) for part in x]) if type(x) in (tuple, list) else tuple(map(walk, x))
        if isinstance(x, (int, float, np.number)) and not isinstance(x, bool):
            place += 1
            now = change(place, x)  # type: ignore[arg-type]
            return x if now == x else type(x)(now)  # type: ignore[arg-type]
        return x

    return walk(tree)


def numbers(tree: Any) -> list[float]:
    """The numbers in nested arguments, in order.

    >>> numbers((2, [0.5, slice(None, 3)], {"dim": True}, range(4)))
    [2.0, 0.5, 3.0, 0.0, 4.0, 1.0]
    """
    found: list[float] = []

    def note(_: int, x: float) -> float:
        found.append(float(x))
        return x

    renumber(tree, note)
    return found
