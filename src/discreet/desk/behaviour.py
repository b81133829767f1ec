"""What an owner may find odd: refusals and bursts, counted by person since the server started. Public things only."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

__all__ = ["Behaviour"]

WINDOW = 3600.0  # seconds
MANY_REFUSALS, MANY_QUESTIONS = 20, 120  # an hour: beyond that an owner is told
KEPT = 5000  # moments a person


class Behaviour:
    """When each person asked, and when they were refused, in the last hours."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._asked: dict[str, deque[float]] = {}
        self._refused: dict[str, deque[tuple[float, int]]] = {}

    def note(self, person: str, route: str, status: int) -> None:
        """One reply to a person: what was asked for an answer, and what was refused."""
        now = self._clock()
        with self._lock:
            if route in ASKS:
                self._asked.setdefault(person, deque(maxlen=KEPT)).append(now)
            if status in (401, 402, 403, 404, 409, 422, 429):
                self._refused.setdefault(person, deque(maxlen=KEPT)).append((now, status))

    def hourly(self) -> dict[str, dict[str, Any]]:
        """By person: questions and refusals of the last hour, and whether that is odd."""
        since = self._clock() - WINDOW
        with self._lock:
            asked = {person: sum(at > since for at in times) for person, times in self._asked.items()}
            refused = {
                person: Counter(status for at, status in times if at > since) for person, times in self._refused.items()
            }
        names = sorted(asked.keys() | refused.keys())
        return {
            name: {
                "asked": asked.get(name, 0),
                "refused": sum(refused.get(name, Counter()).values()),
                "statuses": dict(refused.get(name, Counter())),
                "odd": _oddities(asked.get(name, 0), refused.get(name, Counter())),
            }
            for name in names
        }


ASKS = frozenset({"/v1/releases", "/data/{name}/release"})


def _oddities(asked: int, refused: Counter[int]) -> list[str]:
    found = []
    if asked > MANY_QUESTIONS:
        found.append(f"a burst: {asked} questions within an hour")
    if (count := sum(refused.values())) > MANY_REFUSALS:
        found.append(f"{count} refusals within an hour")
    if refused[404] > MANY_REFUSALS // 2:
        found.append(f"{refused[404]} addresses that are not there, or not for them")
    return found
