"""What a model is beside its calls: parameters, buffers, plain attributes of its modules, and globals they use.

A ``State`` is a copy of all that at one moment. It can be put back, and two can be compared: what differs between runs
on different records was written from them.
"""

from __future__ import annotations

import copy
import dis
from collections import deque
from collections.abc import Container, Iterator
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.training.gradients.trace.trees import same_bits, tensors

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.nn import Parameter

__all__ = ["State", "named_tensors", "path_of"]

PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)
CONTAINERS = (list, tuple, dict, set, deque)
LIBRARIES = ("torch.", "transformers.", "peft.")
DEPTH, LONGEST = 4, 10_000  # of containers that are looked into
_GONE = object()
_INTERNAL = frozenset(nn.Module().__dict__)


class State:
    """The state of a model and all it holds, as it is now."""

    def __init__(self, model: nn.Module) -> None:
        self._tensors = {
            place: (owner, key, owner[key], owner[key].detach().clone()) for place, owner, key in named_tensors(model)
        }
        self._owners = {place: (owner, key, owner[key], _copy(owner[key])) for place, owner, key in _attributes(model)}
        self._items = {
            place: copy.copy(value)
            for place, (_, _, value, _) in self._owners.items()
            if type(value) in (list, dict, set, deque)
        }
        self._missing = {place: module.__dict__ for place, module in model.named_modules()}

    def restore(self) -> None:
        """Put everything back; what was not changed is not touched."""
        with torch.no_grad():
            for owner, key, x, before in self._tensors.values():
                if owner.get(key) is not x:
                    owner[key] = x
                if not _same(x, before):
                    x.detach().copy_(before)
        for place, (owner, key, value, before) in self._owners.items():
            if key not in owner or owner[key] is not value or not _same(value, before):
                owner[key] = self._again(place, value, before) if isinstance(value, CONTAINERS) else value
                _put_back(value, before)
        for place, owner in self._missing.items():
            for key in self._new(place, owner):
                del owner[key]

    def _again(self, place: tuple[str, str], value: Any, before: Any) -> Any:
        """A container as it was: the same one with the same things in it, unless those were changed themselves."""
        items = self._items.get(place)
        if items is None or not _same(items, before):
            return _copy(before)
        value.clear()
        (value.extend if isinstance(value, (list, deque)) else value.update)(items)
        return value

    def changed_now(self) -> list[str]:
        """What differs at this moment, by name."""
        found = [
            path_of(place)
            for place, (owner, key, x, before) in self._tensors.items()
            if not _same(owner.get(key), before)
        ]
        for place, (owner, key, value, before) in self._owners.items():
            now = owner.get(key, _GONE)
            if (now is not value or not _same(value, before)) and (now is _GONE or not _same(now, before)):
                found.append(path_of(place))
        for place, owner in self._missing.items():
            found += [path_of((place, key)) for key in self._new(place, owner)]
        return found

    def places(self, names: Container[str] | None = None) -> set[int]:
        """Where the tensors of these names lie, or all of them but parameters."""
        held = [
            (path_of(place), x)
            for place, (_, _, x, _) in self._tensors.items()
            if names or not isinstance(x, Parameter)
        ]
        held += [(path_of(place), x) for place, (_, _, value, _) in self._owners.items() for x in tensors(value)]
        return {x.data_ptr() for name, x in held if names is None or name in names} - {0}

    def _new(self, place: str, owner: dict[str, Any]) -> list[str]:
        return [
            k for k, value in owner.items() if k not in _INTERNAL and (place, k) not in self._owners and _plain(value)
        ]

    def changed_since(self, other: State) -> list[str]:
        """What differs from another state, by name: parameters, buffers, attributes."""
        found = [path_of(place) for place, one in self._tensors.items() if not _same(one[3], other._tensors[place][3])]
        for place, (*_, value) in self._owners.items():
            if place not in other._owners or not _same(value, other._owners[place][3]):
                found.append(path_of(place))
        return found + [path_of(place) for place in other._owners if place not in self._owners]


def path_of(place: tuple[str, str]) -> str:
    """The name of a parameter, buffer or attribute, from its module's path and its own name."""
    return ".".join(part for part in place if part)


Place = tuple[tuple[str, str], dict[str, Any], str]


def named_tensors(model: nn.Module) -> Iterator[Place]:
    """Parameters and buffers: where each is, and what holds it."""
    for path, module in model.named_modules():
        for owner in (module._parameters, module._buffers):
            for key, x in owner.items():
                if x is not None:
                    yield (path, key), owner, key


def _attributes(model: nn.Module) -> Iterator[Place]:
    """Plain attributes of modules, and the globals that their own ``forward`` names."""
    for path, module in model.named_modules():
        for key, value in module.__dict__.items():
            if key not in _INTERNAL and _plain(value):
                yield (path, key), module.__dict__, key
        code = getattr(type(module).forward, "__code__", None)
        if code is not None and not type(module).__module__.startswith(LIBRARIES):
            space = type(module).forward.__globals__
            for key in _globals(code):
                if key in space and isinstance(space[key], (list, dict, set, deque, np.ndarray, Tensor)):
                    yield (f"global {space.get('__name__')}", key), space, key


@cache
def _globals(code: CodeType) -> tuple[str, ...]:
    """The globals that a function's own code names; ``co_names`` has the attributes it names, too."""
    names = (step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "STORE_GLOBAL"))
    return tuple(dict.fromkeys(names))


def _plain(value: Any) -> bool:
    return isinstance(value, (*PLAIN, Tensor, np.ndarray, *CONTAINERS))


def _copy(value: Any, depth: int = DEPTH) -> Any:
    """A copy that later writes do not reach."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray):
        return value.copy()
    if not isinstance(value, CONTAINERS) or not depth or len(value) > LONGEST:
        return value
    if isinstance(value, dict):
        return type(value)((k, _copy(v, depth - 1)) for k, v in value.items()) if type(value) is dict else value.copy()
    if isinstance(value, deque):
        return deque((_copy(v, depth - 1) for v in value), value.maxlen)
    if hasattr(value, "_fields") or type(value) not in (list, tuple, set):
        return value
    return type(value)(_copy(v, depth - 1) for v in value)


def _put_back(value: Any, before: Any) -> None:
    if isinstance(value, Tensor) and value.shape == before.shape and not _same(value, before):
        with torch.no_grad():
            value.detach().copy_(before)
    if isinstance(value, np.ndarray) and value.shape == before.shape and not _same(value, before):
        np.copyto(value, before)


def _same(one: Any, other: Any, depth: int = DEPTH) -> bool:
    """Whether two values are equal; of kinds that are not known nothing is said."""
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        if not (isinstance(one, Tensor) and isinstance(other, Tensor)):
            return False
        one, other = one.detach(), other.detach()
        return one.shape == other.shape and one.dtype == other.dtype and bool(_equal(one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
    if isinstance(one, PLAIN) and isinstance(other, PLAIN):
        return type(one) is type(other) and (one == other or one != one)
    if isinstance(one, CONTAINERS) and isinstance(other, CONTAINERS):
        if not depth:
            return True
        if type(one) is not type(other) or len(one) != len(other):
            return False
        if isinstance(one, dict) and isinstance(other, dict):
            return one.keys() == other.keys() and all(_same(v, other[k], depth - 1) for k, v in one.items())
        if isinstance(one, set):
            return one == other
        return all(_same(a, b, depth - 1) for a, b in zip(one, other, strict=True))
    return not any(isinstance(x, (*PLAIN, np.ndarray, *CONTAINERS)) for x in (one, other))


def _equal(one: Tensor, other: Tensor) -> bool:
    if same_bits(one, other) or torch.equal(one, other):
        return True
    return one.is_floating_point() and bool(((one == other) | (one.isnan() & other.isnan())).all())
