"""The tree that events form: the base of all kinds, composition, and the one walk over it.

Decision 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from discreet.adjacency import Adjacency
from discreet.errors import whole

__all__ = ["Composed", "Event", "Parallel", "Repeated", "leaves"]

_BY_TAG: dict[str, type[Event]] = {}


class Event:
    """Base of all events; composes with ``+``, ``*`` and ``|``."""

    __slots__ = ()
    tag: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        known = _BY_TAG.setdefault(cls.__name__, cls)
        if known.__module__ != cls.__module__:
            raise TypeError(
                f"There is already a kind of event called {cls.__name__} already: what is read back must be one."
            )
        _BY_TAG[cls.__name__] = cls  # slots make dataclass build the class twice; the second wins
        cls.tag = cls.__name__

    def __add__(self, other: Event) -> Event:
        if not isinstance(other, Event):
            return NotImplemented
        parts = (*_parts(self, Composed), *_parts(other, Composed))
        alone = len(parts) == 1 and not isinstance(parts[0], Composed)  # a nested one would be flattened by the next +
        return parts[0] if alone else Composed(events=parts)

    def __radd__(self, other: object) -> Event:
        return self if other == 0 else NotImplemented  # so that sum(events) works

    def __mul__(self, count: int) -> Event:
        return Repeated(event=self, count=count)

    __rmul__ = __mul__

    def __or__(self, other: Event) -> Event:
        if not isinstance(other, Event):
            return NotImplemented
        return Parallel(events=(*_parts(self, Parallel), *_parts(other, Parallel)))

    def __str__(self) -> str:
        """What was done, on one line: each leaf with its repetitions and the parameters that are not the default.

        Numbers have six digits; ``to_json`` has all of them, and every part of a long sum.

        >>> from discreet.events import Gaussian, Laplace, PoissonSampled
        >>> step = PoissonSampled(rate=0.01, event=Gaussian(noise_multiplier=4.0))
        >>> print(step * 10_000 + Laplace(noise_multiplier=2.5))
        Laplace(noise_multiplier=2.5) + 10000 x PoissonSampled(rate=0.01, Gaussian(noise_multiplier=4))
        """
        told = [f"{'' if count == 1 else f'{count} x '}{_describe(leaf)}" for leaf, count in leaves(self).items()]
        return _few(told, " + ") or "nothing"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary, with the event's kind under ``type``."""
        named = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {"type": self.tag} | {name: _encode(value) for name, value in named.items()}

    def to_json(self) -> str:
        """Canonical JSON: equal events give equal text."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Event:
        """The event a dictionary describes; kinds are looked up in a fixed table, never imported by name."""
        values = dict(data)
        kind = _BY_TAG.get(str(values.pop("type", None)))
        if kind is None:
            raise ValueError(f"type is {data.get('type')!r}, but must be one of {', '.join(sorted(_BY_TAG))}.")
        known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
        if unknown := sorted(set(values) - known):
            raise ValueError(
                f"{kind.tag} has no parameter {unknown[0]!r}; it takes {', '.join(sorted(known)) or 'none'}."
            )
        try:
            return kind(**{name: _decode_parameter(name, value) for name, value in values.items()})
        except TypeError as error:
            raise ValueError(f"{kind.tag} needs {', '.join(sorted(known))}: {error}.") from None

    @staticmethod
    def from_json(text: str) -> Event:
        """The event a JSON text describes."""
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError("An event's JSON is an object with a 'type'.")
        return Event.from_dict(data)


def _parts(event: Event, kind: type[Composed] | type[Parallel]) -> tuple[Event, ...]:
    return event.events if isinstance(event, kind) else (event,)


def _encode(value: Any) -> Any:
    if isinstance(value, Event):
        return value.to_dict()
    if isinstance(value, float):
        return value + 0.0  # -0.0 equals 0.0, and so must its text
    return [_encode(item) for item in value] if isinstance(value, tuple) else value


def _decode_parameter(name: str, value: Any) -> Any:
    """A parameter as it was: an adjacency is not its text, whatever the kind checks itself."""
    return Adjacency(value) if name == "adjacency" else _decode(value)


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return Event.from_dict(value)
    return tuple(_decode(item) for item in value) if isinstance(value, list) else value


def assign(target: Event, /, **values: Any) -> None:
    """Set checked values of a frozen event."""
    for name, value in values.items():
        object.__setattr__(target, name, value)


def an_event(value: object) -> Event:
    """The value, if it is an event."""
    if not isinstance(value, Event):
        raise ValueError(f"event is a {type(value).__name__}, but must be an Event.")
    return value


# --- composition ---------------------------------------------------------------------------------------------------


def _events(values: object) -> tuple[Event, ...]:
    return tuple(an_event(value) for value in values)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed(Event):
    """All of ``events`` on the same data; none of them costs nothing."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        assign(self, events=_events(self.events))


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated(Event):
    """``event`` run ``count`` times on the same data."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        assign(self, event=an_event(self.event), count=whole("count", self.count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel(Event):
    """Each of ``events`` on its own part of a partition that was fixed without looking at the data.

    Which part a record is in is a function of the record. One that is replaced, or blanked, may come back in another
    part: then what it left and what it entered are both charged, and every part must hold under add-remove.
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        assign(self, events=_events(self.events))
        if not self.events:
            raise ValueError("events is empty, but must hold at least one event.")


def _walk(event: Event, times: int) -> Iterator[tuple[Event, int]]:
    stack = [(event, times)]  # not recursion: a history built by + in a loop can be long
    while stack:
        node, count = stack.pop()
        if isinstance(node, Composed):
            stack.extend((part, count) for part in node.events)
        elif isinstance(node, Repeated):
            stack.append((node.event, count * node.count))
        elif isinstance(node, Parallel) and len(node.events) == 1:
            stack.append((node.events[0], count))
        elif count:
            yield node, count


def leaves(event: Event) -> dict[Event, int]:
    """Each distinct leaf of the tree with its number of repetitions, in an order that does not depend on the tree's."""
    counts: dict[Event, int] = {}
    for leaf, count in _walk(an_event(event), 1):
        counts[leaf] = counts.get(leaf, 0) + count
    return dict(sorted(counts.items(), key=lambda item: item[0].to_json())) if len(counts) > 1 else counts


# --- one line ------------------------------------------------------------------------------------------------------


def _describe(leaf: Event) -> str:
    if isinstance(leaf, Parallel):
        return f"({_few(list(map(str, leaf.events)), ' | ')})"
    named = [(f, getattr(leaf, f.name)) for f in fields(leaf)]  # type: ignore[arg-type]
    return f"{leaf.tag}({', '.join(_parameter(f.name, value) for f, value in named if value != f.default)})"


def _parameter(name: str, value: Any) -> str:
    if isinstance(value, Event):
        return str(value)
    told = f"({_few(list(map(_number, value)), ', ')})" if isinstance(value, tuple) else _number(value)
    return f"{name}={told}"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _few(parts: list[str], joint: str, most: int = 6) -> str:
    return joint.join([*parts[:most], *([f"... {len(parts) - most} more"] if len(parts) > most else [])])
