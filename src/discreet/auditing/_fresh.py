"""Copies of an operation and its data, so that what a run keeps does not meet the next run.

Copied are: what a function closes over, its defaults and attributes; the object of a bound method; the caches of
``functools``; and the dictionaries, lists, sets and caches that the function, or a function of the same module that it
calls, names as globals. Not copied: what other modules keep, and what hides inside classes.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

__all__ = ["fresh"]

_Cached: Any = type(functools.cache(int))


def fresh(value: Any) -> Any:
    """A copy of an operation or of data that shares no state with it; ``ValueError`` if there can be none."""
    try:
        return _copy(value, {})
    except Exception as error:
        raise ValueError(
            f"A {type(value).__name__} cannot be copied for each run ({type(error).__name__}), so what one run keeps "
            "would reach the next unseen. Create what cannot be copied inside the operation, or say fresh=False."
        ) from None


def _copy(value: Any, memo: dict[int, Any]) -> Any:
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, FunctionType):
        return _function(value, memo)
    if isinstance(value, _Cached):
        return functools.lru_cache(**value.cache_parameters())(_copy(value.__wrapped__, memo))
    if isinstance(value, MethodType):
        return MethodType(_copy(value.__func__, memo), _copy(value.__self__, memo))
    if isinstance(value, functools.partial):
        return functools.partial(
            _copy(value.func, memo),
            *(_copy(x, memo) for x in value.args),
            **{name: _copy(x, memo) for name, x in value.keywords.items()},
        )
    return value if isinstance(value, (ModuleType, type)) else copy.deepcopy(value, memo)


def _function(function: FunctionType, memo: dict[int, Any]) -> FunctionType:
    world = dict(function.__globals__)
    cells = tuple(CellType() for _ in function.__closure__ or ())
    twin = FunctionType(function.__code__, world, function.__name__, None, cells or None)
    memo[id(function)] = twin  # before its parts: it may name itself
    for cell, original in zip(cells, function.__closure__ or (), strict=True):
        try:
            held = original.cell_contents
        except ValueError:
            continue  # not filled yet
        cell.cell_contents = _copy(held, memo)
    twin.__defaults__, twin.__kwdefaults__ = (
        _copy(function.__defaults__, memo),
        _copy(function.__kwdefaults__, memo),
    )
    twin.__dict__.update(_copy(function.__dict__, memo))
    for name in _names(function.__code__):
        if name in world and _may_keep(world[name], function.__module__):
            try:
                world[name] = _copy(world[name], memo)
            except Exception:  # a table of connections, say: a global of that kind is used as it is
                continue
    return twin


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _may_keep(value: Any, module: str) -> bool:
    if isinstance(value, (dict, list, set, _Cached)):
        return True
    return isinstance(value, FunctionType) and value.__module__ == module
