"""What was paid for once answers in one place: one process, one thread at a time, no copy.

A session (a round of ``AboveThreshold``, a reservation, the noise of a training run) checks whether it may still
answer, draws, and notes that it has. Two threads between check and note would both be answered for one charge; a copy,
or a forked process, would answer again for nothing. So a session is a ``PaidOnce``, and what answers in it is
``one_at_a_time``: one lock, held from the check to the note.

Decision 210.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from discreet.forks import here

__all__ = ["PaidOnce", "one_at_a_time"]

_Session = TypeVar("_Session", bound="PaidOnce")
_Told = ParamSpec("_Told")
_Answer = TypeVar("_Answer")


class PaidOnce:
    """Base of what holds something that was paid for once.

    Guarantee: what is ``one_at_a_time`` runs for one caller at a time. Coroutines of one thread cannot come in between,
    because nothing inside awaits; a call from inside an answer (a value whose conversion asks again) is refused.
    """

    _forked = (
        "The process was forked since this was started, and what was paid for is the parent's. Start another here."
    )
    _copied = "What was started and paid for cannot be copied or pickled: the copy would answer for nothing."
    _refusal: type[Exception] = ValueError

    def __init__(self) -> None:
        self._home = here()
        self._lock = threading.RLock()
        self._answering = False

    def _turn(self) -> _Turn:
        """Check, draw and note as one."""
        return _Turn(self)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse ``copy``, ``deepcopy`` and ``pickle``."""
        raise TypeError(self._copied)


class _Turn:
    """A session's lock, from the check to the note. (A generator would do, but takes a while, and steps are short.)"""

    __slots__ = ("_session",)

    def __init__(self, session: PaidOnce) -> None:
        self._session = session

    def __enter__(self) -> None:
        session = self._session
        if session._home != here():  # before the lock, which another thread may have held when it was copied
            raise session._refusal(session._forked)
        session._lock.__enter__()
        if session._answering:
            session._lock.__exit__(None, None, None)
            raise session._refusal("This was asked again from inside its own answer. Wait for the answer, then ask.")
        session._answering = True

    def __exit__(self, *_: object) -> None:
        self._session._answering = False
        self._session._lock.__exit__(None, None, None)


def one_at_a_time(
    answer: Callable[Concatenate[_Session, _Told], _Answer],
) -> Callable[Concatenate[_Session, _Told], _Answer]:
    """A method of a session that checks, draws and notes as one."""

    @wraps(answer)
    def alone(self: _Session, /, *args: _Told.args, **kwargs: _Told.kwargs) -> _Answer:
        with self._turn():
            return answer(self, *args, **kwargs)

    return alone
