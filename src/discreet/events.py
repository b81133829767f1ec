"""What a private computation did, as a value: the vocabulary every other room speaks.

An event states the parameters of a mechanism, never an epsilon where something tighter is known. It is computed
from public parameters alone, before data is read; accountants turn it into guarantees.

Events form a tree. ``a + b`` runs both, ``a * n`` runs ``a`` n times, ``a | b`` runs each on its own disjoint part
of the data. ``leaves`` is the one walk over the tree; sampled and parallel nodes are leaves of that walk, because a
sampler wraps everything that runs on one sample. Every leaf carries the adjacency its guarantee was proved under.

>>> step = PoissonSampled(rate=0.01, event=Gaussian(noise_multiplier=4.0))
>>> leaves(step * 3 + step) == {step: 4}
True
>>> Event.from_json((step * 3).to_json()) == step * 3
True
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from math import inf
from typing import Any, ClassVar

from discreet.adjacency import Adjacency
from discreet.errors import nonnegative, number, positive, probability, whole

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "ApproxDP",
    "BallsInBins",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "FixedSizeSampled",
    "Gaussian",
    "Laplace",
    "NonPrivate",
    "Parallel",
    "PoissonSampled",
    "PureDP",
    "RandomizedResponse",
    "Repeated",
    "Shuffled",
    "TruncatedPoissonSampled",
    "leaves",
]

_BY_TAG: dict[str, type[Event]] = {}


class Event:
    """Base of all events; composes with ``+``, ``*`` and ``|``."""

    __slots__ = ()
    tag: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        _BY_TAG[cls.__name__] = cls  # slots make dataclass build the class twice; the second wins
        cls.tag = cls.__name__

    def __add__(self, other: Event) -> Event:
        if not isinstance(other, Event):
            return NotImplemented
        parts = (*_parts(self, Composed), *_parts(other, Composed))
        return parts[0] if len(parts) == 1 else Composed(events=parts)

    def __radd__(self, other: object) -> Event:
        return self if other == 0 else NotImplemented  # so that sum(events) works

    def __mul__(self, count: int) -> Event:
        return Repeated(event=self, count=count)

    __rmul__ = __mul__

    def __or__(self, other: Event) -> Event:
        if not isinstance(other, Event):
            return NotImplemented
        return Parallel(events=(*_parts(self, Parallel), *_parts(other, Parallel)))

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary, with the event's kind under ``type``."""
        return {"type": self.tag} | {f.name: _encode(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]

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
            return kind(**{name: _decode(value) for name, value in values.items()})
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
    return [_encode(item) for item in value] if isinstance(value, tuple) else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return Event.from_dict(value)
    return tuple(_decode(item) for item in value) if isinstance(value, list) else value


def _set(target: Event, /, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(target, name, value)


def _adjacency(event: Any) -> None:
    _set(event, adjacency=Adjacency(event.adjacency))


# --- additive noise --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Event):
    """Laplace noise of scale ``noise_multiplier`` times the L1 sensitivity; pure DP with epsilon 1/noise_multiplier."""

    noise_multiplier: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        _set(self, noise_multiplier=positive("noise_multiplier", self.noise_multiplier))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Event):
    """Gaussian noise of standard deviation ``noise_multiplier`` times the L2 sensitivity."""

    noise_multiplier: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        _set(self, noise_multiplier=positive("noise_multiplier", self.noise_multiplier))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(Event):
    """Integer noise with mass proportional to exp(-|x|/scale), on integers of L1 sensitivity ``sensitivity``."""

    scale: float
    sensitivity: int = 1
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        _set(self, scale=positive("scale", self.scale), sensitivity=whole("sensitivity", self.sensitivity, low=1))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian(Event):
    """Integer noise with mass proportional to exp(-x²/2sigma²), on one integer of sensitivity ``sensitivity``.

    For integer vectors only zCDP is proved: use ``ZCDP(rho=(l2_sensitivity/sigma)²/2)`` there.
    """

    sigma: float
    sensitivity: int = 1
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        _set(self, sigma=positive("sigma", self.sigma), sensitivity=whole("sensitivity", self.sensitivity, low=1))
        _adjacency(self)


# --- selection and local randomisers ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(Event):
    """A mechanism of bounded range ``epsilon``: its privacy losses lie in an interval of that length around zero."""

    epsilon: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        _set(self, epsilon=nonnegative("epsilon", self.epsilon))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(Event):
    """Each record reports its category truthfully with odds exp(epsilon) to 1 against each other category.

    Proved under replace: with one report a record, adding a record changes the number of reports.
    """

    epsilon: float
    categories: int = 2
    adjacency: Adjacency = Adjacency.REPLACE

    def __post_init__(self) -> None:
        _set(self, epsilon=nonnegative("epsilon", self.epsilon), categories=whole("categories", self.categories, low=2))
        _adjacency(self)
        if self.adjacency is Adjacency.ADD_REMOVE:
            raise ValueError(
                "adjacency is 'add-remove', but must be 'replace' or 'zero-out': randomized response "
                "reveals the number of records."
            )


# --- bare guarantees, for mechanisms the vocabulary does not know -------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PureDP(Event):
    """Anything that is epsilon-DP."""

    epsilon: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        _set(self, epsilon=nonnegative("epsilon", self.epsilon))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxDP(Event):
    """Anything that is (epsilon, delta)-DP."""

    epsilon: float
    delta: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        _set(self, epsilon=nonnegative("epsilon", self.epsilon), delta=probability("delta", self.delta))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZCDP(Event):
    """Anything that is rho-zero-concentrated DP: Rényi divergence at most rho·alpha at every order alpha > 1."""

    rho: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        _set(self, rho=nonnegative("rho", self.rho))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RDP(Event):
    """Anything whose Rényi divergence of order ``orders[i]`` is at most ``epsilons[i]``."""

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        orders = tuple(number("orders", a, low=1, high=inf, open_low=True, open_high=True) for a in self.orders)
        epsilons = tuple(nonnegative("epsilons", e) for e in self.epsilons)
        if not orders or len(orders) != len(epsilons):
            raise ValueError(
                f"orders has {len(orders)} and epsilons {len(epsilons)} entries, but both need the same "
                "number, at least one."
            )
        if len(set(orders)) != len(orders):
            raise ValueError("orders has a repeated entry, but each order may appear once.")
        pairs = sorted(zip(orders, epsilons, strict=True))
        _set(self, orders=tuple(a for a, _ in pairs), epsilons=tuple(e for _, e in pairs))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GDP(Event):
    """Anything at least as hard to test as N(0, 1) against N(mu, 1)."""

    mu: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        _set(self, mu=nonnegative("mu", self.mu))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class NonPrivate(Event):
    """Something was published without protection: no finite guarantee remains."""


# --- sampling ------------------------------------------------------------------------------------------------------


def _inside_poisson(sampler: Any) -> None:
    """Poisson amplification compares "in" with "out", so what runs inside must be proved for that comparison."""
    for leaf in leaves(sampler.event):
        if getattr(leaf, "adjacency", None) is Adjacency.REPLACE:
            raise ValueError(
                f"event contains {leaf.tag} under 'replace', but {sampler.tag} must hold events proved "
                "under 'add-remove' or 'zero-out'."
            )


def _event(value: object) -> Event:
    if not isinstance(value, Event):
        raise ValueError(f"event is a {type(value).__name__}, but must be an Event.")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSampled(Event):
    """``event`` on a sample that each record joins independently with probability ``rate``."""

    rate: float
    event: Event

    def __post_init__(self) -> None:
        _set(self, rate=probability("rate", self.rate), event=_event(self.event))
        _inside_poisson(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedPoissonSampled(Event):
    """Poisson sampling whose sample is cut to ``max_batch_size``; the probability of a cut is charged.

    ``dataset_size`` is a public upper bound on the number of records.
    """

    rate: float
    max_batch_size: int
    dataset_size: int
    event: Event

    def __post_init__(self) -> None:
        _set(
            self,
            rate=probability("rate", self.rate),
            event=_event(self.event),
            max_batch_size=whole("max_batch_size", self.max_batch_size, low=1),
            dataset_size=whole("dataset_size", self.dataset_size, low=1),
        )
        _inside_poisson(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSizeSampled(Event):
    """``event`` on a uniform sample without replacement that holds the fraction ``rate`` of the records.

    Proved under replace only. The price can be ten times that of Poisson sampling at the same rate.
    """

    rate: float
    event: Event

    def __post_init__(self) -> None:
        _set(self, rate=probability("rate", self.rate), event=_event(self.event))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled(Event):
    """One pass over shuffled batches, ``event`` on each: every record is in one batch, so the pass costs one event.

    Proved under replace only, and without amplification: none is claimed for the secrecy of the order.
    """

    event: Event

    def __post_init__(self) -> None:
        _set(self, event=_event(self.event))


@dataclass(frozen=True, slots=True, kw_only=True)
class BallsInBins(Event):
    """One pass over ``bins`` batches, each record in one of them at random, ``event`` on each batch."""

    bins: int
    event: Event

    def __post_init__(self) -> None:
        _set(self, bins=whole("bins", self.bins, low=1), event=_event(self.event))
        _inside_poisson(self)


# --- composition ---------------------------------------------------------------------------------------------------


def _events(values: object) -> tuple[Event, ...]:
    return tuple(_event(value) for value in values)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed(Event):
    """All of ``events`` on the same data; none of them costs nothing."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        _set(self, events=_events(self.events))


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated(Event):
    """``event`` run ``count`` times on the same data."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        _set(self, event=_event(self.event), count=whole("count", self.count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel(Event):
    """Each of ``events`` on its own part of a partition that was fixed without looking at the data."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        _set(self, events=_events(self.events))
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
    for leaf, count in _walk(_event(event), 1):
        counts[leaf] = counts.get(leaf, 0) + count
    return dict(sorted(counts.items(), key=lambda item: item[0].to_json())) if len(counts) > 1 else counts
