"""What a fork copies: which process this is, and a lock that a fork waits for.

A fork copies everything that is held in memory; a copy must not spend what it holds. And it copies the state of
SQLite: if another thread is in the middle of a transaction, the child inherits locks that nobody will ever release.

Decision 92.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Turn", "here"]

PATIENCE = 5.0  # seconds for which a fork waits for other threads
_mark = object()


def here() -> tuple[int, object]:
    """Something that differs in every forked child, even when the operating system uses a number again.

    >>> here() == here()
    True
    """
    return os.getpid(), _mark


class Turn:
    """A lock for the threads of one process, which a fork waits for: a moment, not for ever.

    A child that was forked all the same, in the middle of somebody's turn, may not take one, and neither may anything
    made in it later for the same ``resource`` (nothing else is meant by an empty one). Whoever cannot have one is
    told so by the ``refusal``.
    """

    def __init__(self, resource: str, refusal: type[Exception]) -> None:
        self.resource = resource
        self._refusal = refusal
        self.cut_off = resource in _cut_off
        self._lock = threading.RLock()
        self._depth = 0
        _turns.add(self)

    @contextmanager
    def hold(self, patience: float) -> Iterator[None]:
        """Hold the lock inside the block, or raise the refusal if it cannot be had."""
        if self.cut_off:
            raise self._refusal(
                "The ledger was in use by another thread when this process was forked, and cannot be used here. "
                "Nothing was charged. Fork before charging, or start processes by 'spawn'."
            )
        lock = self._lock
        if not lock.acquire(timeout=patience):
            raise self._refusal(
                f"Another thread held the ledger for more than {patience:g} seconds. Nothing was charged."
            )
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            lock.release()

    def pause(self, patience: float) -> bool:
        """Before a fork: take the lock, and say whether it was nobody's, not even this thread's."""
        taken = self._lock.acquire(timeout=max(0.0, patience))
        if taken and self._depth:
            self._lock.release()
        return taken and not self._depth

    def resume(self) -> None:
        """After a fork, in the parent: let go."""
        self._lock.release()

    def renew(self, whole: bool) -> None:
        """After a fork, in the child: a lock of its own."""
        self._lock, self._depth = threading.RLock(), 0
        self.cut_off = self.cut_off or not whole
        if self.cut_off and self.resource:
            _cut_off.add(self.resource)


_turns: weakref.WeakSet[Turn] = weakref.WeakSet()
_cut_off: set[str] = set()
_forking = threading.Lock()  # two threads that fork at once would each wait for the other
_paused: dict[Turn, bool] = {}


def _before() -> None:
    _forking.acquire()
    deadline = time.monotonic() + PATIENCE
    _paused.update({turn: turn.pause(deadline - time.monotonic()) for turn in list(_turns)})


def _in_parent() -> None:
    for turn, whole in _paused.items():
        if whole:
            turn.resume()
    _paused.clear()
    _forking.release()


def _in_child() -> None:
    global _forking, _mark
    _forking, _mark = threading.Lock(), object()
    for turn in list(_turns):
        turn.renew(_paused.get(turn, False))
    _paused.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
