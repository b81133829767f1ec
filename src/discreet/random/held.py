"""Generators that users' objects hold: ``self.rng = np.random.default_rng(0)`` in a dataset, and the like.

They are looked for in attributes, containers, closures, defaults, partial functions, and among the globals that
functions name; as far as ``DEPTH`` and ``MOST`` go, and not in containers of more than ``LONGEST`` things, which hold
records. What is hidden deeper, or in compiled code, is not found.
"""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from discreet.random.process import twister
from discreet.random.source import Rng

__all__ = ["generators_in", "key_each"]

DEPTH, MOST, LONGEST = 8, 10_000, 100
_LEAVES = (str, bytes, int, float, complex, type(None), np.ndarray, np.generic, ModuleType, Rng)


def generators_in(*holders: Any) -> list[Any]:
    """The generators that objects hold, but for the process's own.

    >>> class Data:
    ...     def __init__(self):
    ...         self.noise = partial(np.random.default_rng(0).normal, 0.0)
    >>> generators_in(Data())
    [Generator(PCG64) at 0x...]
    """
    left, seen, held = deque((holder, 0) for holder in holders), dict[int, Any](), []
    while left and len(seen) < MOST:
        value, depth = left.popleft()  # what lies near comes first
        if id(value) in seen or depth > DEPTH:
            continue
        seen[id(value)] = value
        if _is_generator(value):
            held.append(value)
        else:
            left += [(part, depth + 1) for part in _parts(value) if not isinstance(part, _LEAVES)]
    return held


def _is_generator(value: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Generator):
        return not any(value is own for own in (torch.default_generator, *torch.cuda.default_generators))
    if isinstance(value, random.Random):
        return value is not random._inst and not isinstance(value, random.SystemRandom)
    return isinstance(value, np.random.Generator | np.random.RandomState) and value is not np.random.mtrand._rand


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, type):
        functions = [f for kind in value.__mro__ for f in vars(kind).values() if isinstance(f, FunctionType)]
        return [named for f in functions for named in _globals_of(f)]
    if hasattr(type(value), "data_ptr"):  # a tensor
        return ()
    if isinstance(value, dict):
        return value.values() if len(value) <= LONGEST else ()
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return value if len(value) <= LONGEST else ()
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    if isinstance(value, MethodType):
        return value.__self__, value.__func__
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
        return [*cells, value.__defaults__, value.__kwdefaults__, *_globals_of(value)]
    if isinstance(value, BuiltinMethodType):  # such as a generator's own
        return (value.__self__,)
    return [type(value), *getattr(value, "__dict__", {}).values()]


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _globals_of(function: FunctionType) -> list[Any]:
    """The generators among the globals that a function names; not all of what it names, which would be everything."""
    space = function.__globals__
    return [space[name] for name in function.__code__.co_names if name in space and _is_generator(space[name])]


def key_each(generators: Sequence[Any], rng: Rng) -> Callable[[], None]:
    """Give each a state from ``rng``; returns what puts back the states that they had."""
    return _all_of([_key(each, rng) for each in generators])


def _all_of(restorers: list[Callable[[], None]]) -> Callable[[], None]:
    def restore() -> None:
        for each in restorers:
            each()

    return restore


def _key(each: Any, rng: Rng) -> Callable[[], None]:
    secret = int.from_bytes(rng.words(4).tobytes())
    if isinstance(each, random.Random):
        before = each.getstate()
        each.seed(secret)
        return partial(each.setstate, before)
    if isinstance(each, np.random.RandomState):
        legacy = each.get_state(legacy=False)
        each.set_state(np.random.RandomState(np.random.MT19937(np.random.SeedSequence(secret))).get_state())
        return partial(each.set_state, legacy)
    if isinstance(each, np.random.Generator):
        bits = each.bit_generator
        state = bits.state
        bits.state = type(bits)(np.random.SeedSequence(secret)).state
        return partial(setattr, bits, "state", state)
    held = each.get_state()
    each.set_state(twister(rng)) if each.device.type == "cpu" else each.manual_seed(rng.word() >> 1)
    return partial(each.set_state, held)
