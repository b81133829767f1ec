"""The one place where noise meets a private value, so that it can be watched.

Every mechanism hands the value it is about to noise to ``noised``, with the distance it promises to protect and a
function that draws the output. Ordinarily that function is called and nothing else happens. Under record-and-replay
(``discreet.auditing.replay``) a listener sees the value, and may force the output of an earlier run instead.
Random coins that belong to records (batch sampling) go through ``coins`` for the same reason.

Write ``noised`` around the noise of your own mechanism and replay can check it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.random.source import Rng

__all__ = ["Listener", "Norm", "coins", "listening", "noised"]

T = TypeVar("T")
Norm = Literal["l1", "l2", "linf", "hamming"]


class Listener(Protocol):
    """Who is told of every value that meets noise."""

    def noised(self, what: object, value: Any, norm: Norm, limit: Any, draw: Callable[[], Any]) -> Any:
        """See ``value`` and whose it is; return ``draw()`` or an output of one's own."""
        ...

    def coins(self, keys: Sequence[object]) -> NDArray[np.uint64]:
        """One word per record, the same whenever the record and the step are."""
        ...


_listener: ContextVar[Listener | None] = ContextVar("discreet_noise_listener", default=None)


def noised(what: object, value: Any, norm: Norm, limit: Any, draw: Callable[[], T]) -> T:
    """Draw the output for ``value``, whose ``norm`` distance between neighbours must not exceed ``limit``.

    >>> noised("a coin", 3, "l1", 1, lambda: "heads")
    'heads'
    """
    listener = _listener.get()
    return draw() if listener is None else listener.noised(what, value, norm, limit, draw)


def coins(keys: Sequence[object], rng: Rng) -> NDArray[np.uint64]:
    """One random word for each record; ``keys`` name the records, so that replay can give a record its coin again."""
    listener = _listener.get()
    return rng.words(len(keys)) if listener is None else listener.coins(keys)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let ``listener`` hear everything that is noised inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
