"""What every mechanism is: an operation of floor 0 that knows its cost before it sees a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from discreet.events import Event
from discreet.random import Rng, RngLike, as_rng
from discreet.release import ONE_RECORD, Release

__all__ = ["Mechanism", "usual_error"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism(ABC, Generic[T]):
    """A small frozen value that turns something private into something noisy.

    ``draw`` is the law: the noisy answer itself, for an operation that makes its own release of it. ``release`` is that in
    a ``Release``. ``unit`` is the caller's word for whom a record is all of.
    """

    unit: str = ONE_RECORD

    @property
    @abstractmethod
    def event(self) -> Event:
        """The cost, known from public parameters alone."""

    @abstractmethod
    def draw(self, data: Any, rng: Rng) -> T:
        """The noisy answer."""

    @property
    def stated_error(self) -> float | None:
        """The error with 95 % confidence that a release of it carries; none where it depends on more than the mechanism."""
        return None

    def prepared(self, data: Any = None, rng: RngLike = None) -> Callable[[], Release[T]]:
        """Refuse a source of randomness that is none, and return what reads ``data``."""
        source = as_rng(rng)
        return lambda: Release(self.draw(data, source), self.event, reproducible=source.reproducible, unit=self.unit,
                               error=self.stated_error)

    def release(self, data: Any, rng: RngLike = None) -> Release[T]:
        """The noisy answer for ``data``: see ``draw``."""
        return self.prepared(data, rng)()


@lru_cache(maxsize=1024)
def usual_error(mechanism: Any) -> float:
    """What the noise on one entry stays within with 95 % confidence, worked out once for equal mechanisms."""
    return float(mechanism.error())
