"""The process's own generators (Python's, NumPy's, torch's), lent to somebody else's code and given back as they were.

A teacher, a candidate or an augmentation may draw from them: a bootstrap, initial weights, dropout. Where several such
pieces run one after another, a record more in the first moves the generators for all later ones, so that one record
changes what everybody draws. Inside ``process_generators(seed)`` each piece starts from a seed of its own.
"""

from __future__ import annotations

import random as _python
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["process_generators"]


@contextmanager
def process_generators(seed: int) -> Iterator[None]:
    """Every global generator starts from ``seed`` (64 bits) in the block, and is as it was before afterwards.

    torch's are set where torch is loaded when the block begins, on every device it has used.

    >>> before = _python.getstate()
    >>> with process_generators(7): first = _python.random(), np.random.rand()
    >>> with process_generators(7): again = _python.random(), np.random.rand()
    >>> first == again, _python.getstate() == before
    (True, True)
    """
    torch = sys.modules.get("torch")
    python_state, numpy_state = _python.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002
    devices = _used_devices(torch)
    torch_states = [(device, _generator(torch, device).get_state()) for device in devices]
    try:
        _python.seed(seed)
        np.random.seed([seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF])  # noqa: NPY002 - whoever draws chose that one
        for device in devices:
            _generator(torch, device).manual_seed(seed >> 1)
        yield
    finally:
        _python.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        for device, state in torch_states:
            _generator(torch, device).set_state(state)


def _used_devices(torch: Any) -> list[int | None]:
    """None stands for the processor; the others are numbers of CUDA devices."""
    if torch is None:
        return []
    used = torch.cuda.is_available() and torch.cuda.is_initialized()
    return [None, *(range(torch.cuda.device_count()) if used else ())]


def _generator(torch: Any, device: int | None) -> Any:
    return torch.default_generator if device is None else torch.cuda.default_generators[device]
