"""The one place where noise meets a private value, so that it can be watched.

Every mechanism hands the value it is about to noise to ``draw_output``, with the distance it promises to protect and a
function that draws the output. Ordinarily that function is called and nothing else happens. Under record-and-replay
(``discreet.auditing.replay``) a listener sees the value, and may force the output of an earlier run instead.
Random coins that belong to records (Poisson sampling) go through ``coins`` for the same reason.

Write ``draw_output`` around the noise of your own mechanism and replay can check it too: draw inside, by the samplers
of ``discreet.random``, and say what it costs (``event=``, unless ``what`` has an ``event``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.events import Event
from discreet.random.source import Rng

__all__ = ["Listener", "Norm", "coins", "draw_output", "heard", "listening", "poisson_sample", "unheard"]

T = TypeVar("T")
Norm = Literal["l1", "l2", "linf", "hamming"]


class Listener(Protocol):
    """Who is told of every value that meets noise."""

    def draw_output(
        self,
        what: object,
        value: Any,
        norm: Norm,
        limit: Any,
        draw: Callable[[], Any],
        event: Event | None,
        once: object,
    ) -> Any:
        """See ``value`` and whose it is; return ``draw()`` or an output of one's own."""
        ...

    def coins(self, keys: Sequence[object]) -> NDArray[np.uint64]:
        """One word per record, the same whenever the record and the step are."""
        ...

    def elsewhere(self) -> None:
        """A thread that the listener cannot follow was about to draw noise."""
        ...


_listener: ContextVar[Listener | None] = ContextVar("discreet_noise_listener", default=None)
_running: tuple[Listener, int] | None = None  # who listens, and in which thread: other threads have no context of it


def heard() -> Listener | None:
    """Who listens here, if anyone does: where nobody does, a value need not be put in the form that a listener
    reads."""
    listener = _listener.get()
    if listener is None and _running is not None and _running[1] != threading.get_ident():
        _running[0].elsewhere()
    return listener


def draw_output(
    what: object,
    value: Any,
    norm: Norm,
    limit: Any,
    draw: Callable[[], T],
    *,
    event: Event | None = None,
    once: object = None,
) -> T:
    """Draw the output for ``value``, whose ``norm`` distance between neighbours must not exceed ``limit``.

    ``event`` is what the step costs, ``what.event`` if it is left out; steps that name the same object in ``once`` are
    paid for together, by the event of one of them.

    >>> draw_output("a coin", 3, "l1", 1, lambda: "heads")
    'heads'
    """
    listener = heard()
    return draw() if listener is None else listener.draw_output(what, value, norm, limit, draw, event, once)


def coins(keys: Sequence[object], rng: Rng) -> NDArray[np.uint64]:
    """One random word for each record; ``keys`` name the records, so that replay can give a record its coin again."""
    listener = heard()
    return rng.words(len(keys)) if listener is None else listener.coins(keys)


def poisson_sample(keys: Sequence[object], rate: float, rng: Rng) -> NDArray[np.bool_]:
    """Which of the records that ``keys`` name take part: each with probability ⌊rate·2^64⌋/2^64, by a coin of its own.

    The probability is not above ``rate``, so the event at that rate covers it. At a rate of 1 all do, and no coin is
    drawn.

    >>> from discreet.random import seeded
    >>> int(poisson_sample(range(1000), 0.1, seeded(1)).sum())
    106
    """
    if rate >= 1:
        return np.ones(len(keys), bool)
    return coins(keys, rng) < np.uint64(int(rate * 2.0**64))


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let ``listener`` hear everything that is noised inside the block."""
    global _running
    token, before = _listener.set(listener), _running
    _running = (listener, threading.get_ident())
    try:
        yield
    finally:
        _listener.reset(token)
        _running = before


@contextmanager
def unheard() -> Iterator[None]:
    """Noise inside the block belongs to a step that is announced as a whole: no listener hears it."""
    token = _listener.set(None)
    try:
        yield
    finally:
        _listener.reset(token)
