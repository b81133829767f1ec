"""What every mechanism is: an operation of floor 0 that knows its cost before it sees a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar

from discreet.events import Event
from discreet.random import Rng, RngLike, as_rng
from discreet.release import ONE_RECORD, Release

__all__ = ["Mechanism", "usual_error"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism(ABC, Generic[T]):
    """A small frozen value, made of public facts, that turns something private into something noisy.

    A new one says what it costs (``event``) and how it draws (``draw``); if it can tell from public facts what it
    cannot read, it says that too (``check``). The rest is here, once: ``release`` is check, draw, and one ``Release``
    of it. Where a mechanism serves a larger operation, that calls ``draw`` and makes the release itself.

    ``unit`` is the caller's word for whom a record is all of.
    """

    unit: str = ONE_RECORD

    label: ClassVar[str] = ""  # what it is called in a book that is told no other name

    @property
    @abstractmethod
    def event(self) -> Event:
        """The cost, known from public facts alone."""

    @property
    def stated_error(self) -> Any:
        """The error with 95 % confidence that a release carries; none where it depends on what is not public yet."""
        return None

    def check(self, data: Any) -> None:
        """Refuse what is publicly wrong about the data's container: its type or its shape. No record is looked at."""
        return

    @abstractmethod
    def draw(self, data: Any, rng: Rng) -> T:
        """Read the data and return the noisy answer."""

    def prepare(self, data: Any = None, rng: RngLike = None) -> Callable[[], Release[T]]:
        """Refuse what public facts can tell, read nothing, and return what reads."""
        self.check(data)
        source = as_rng(rng)
        return lambda: Release(
            self.draw(data, source),
            self.event,
            reproducible=source.reproducible,
            label=self.label,
            unit=self.unit,
            error=self.stated_error,
        )

    def release(self, data: Any = None, rng: RngLike = None) -> Release[T]:
        """Read the data and return the noisy answer (see ``draw``), with what it cost."""
        return self.prepare(data, rng)()


@lru_cache(maxsize=1024)
def usual_error(mechanism: Any) -> float:
    """What the noise on one entry stays within with 95 % confidence, worked out once for equal mechanisms."""
    return float(mechanism.error())
