"""The best of a random number of runs, and a run that is one of several: what tuning hyper-parameters costs."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import number, whole
from discreet.events.tree import Event, an_event, assign

__all__ = ["OneOf", "Selected"]

_NAMED = {0.0: "logarithmic", 1.0: "geometric"}
_MOST = 10**9
_SMALLEST = 1e-290  # shapes below it have the logarithmic law's chances, to more digits than floats have


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf(Event):
    """One of ``events``, chosen without looking at the data: whichever it is, the costliest covers it."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        distinct = tuple(dict.fromkeys(an_event(event) for event in self.events))
        if not distinct:
            raise ValueError("events is empty, but must hold at least one event.")
        assign(self, events=distinct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected(Event):
    """The best of K independent runs of ``event``, by a score each run releases itself; K is secret, of mean ``mean``.

    ``law`` is K's: ``"logarithmic"``, ``"geometric"``, ``"poisson"``, or a number above -1, up to 100, the shape of a
    truncated negative binomial (0 is the logarithmic law, 1 the geometric). Each run is of a candidate drawn afresh
    from a public list: a run's event is ``OneOf`` theirs. With a ``cap`` no more than so many runs are made, and the
    chance that K is larger is charged. Reference: Papernot and Steinke (2022).

    >>> Selected(event=Event.from_json('{"type":"PureDP","epsilon":1.0}'), mean=10, law=1.0).law
    'geometric'
    """

    event: Event
    mean: float
    law: str | float = "logarithmic"
    cap: int | None = None

    def __post_init__(self) -> None:
        assign(
            self,
            event=an_event(self.event),
            mean=number("mean", self.mean, low=1, high=1e6),
            law=_known_law(self.law),
            cap=None if self.cap is None else _cap(self.cap),
        )


def _known_law(law: object) -> str | float:
    if isinstance(law, str):
        if law not in (*_NAMED.values(), "poisson"):
            raise ValueError(f"law is {law!r}, but must be 'logarithmic', 'geometric', 'poisson', or a shape above -1.")
        return law
    shape = number("law", law, low=-1, high=100, open_low=True)
    return _NAMED[0.0] if abs(shape) < _SMALLEST else _NAMED.get(shape, shape)


def _cap(cap: object) -> int:
    found = whole("cap", cap, low=1)
    if found > _MOST:
        raise ValueError(f"cap is more than {_MOST}, but no search makes so many runs.")
    return found
