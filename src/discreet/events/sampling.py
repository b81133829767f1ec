"""Wrappers: samplers, which own the comparison that amplification needs, and what narrows a proof to one adjacency.

Amplification by subsampling is ``PoissonSampled`` and ``FixedSizeSampled``, amplification by shuffling ``Shuffled``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.adjacency import Adjacency
from discreet.errors import nonnegative, positive, probability, whole
from discreet.events.tree import Event, an_event, assign, leaves

__all__ = [
    "BallsInBins",
    "FixedSizeSampled",
    "KeptBins",
    "PoissonSampled",
    "ProvedUnder",
    "Shuffled",
    "TruncatedPoissonSampled",
]


def _inside_poisson(sampler: Any) -> None:
    """Poisson amplification compares "in" with "out", so what runs inside must be proved for that comparison."""
    for leaf in leaves(sampler.event):
        if getattr(leaf, "adjacency", None) is Adjacency.REPLACE:
            raise ValueError(
                f"event contains {leaf.tag} under 'replace', but {sampler.tag} must hold events proved "
                "under 'add-remove' or 'zero-out'."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSampled(Event):
    """``event`` on a sample that each record joins independently with probability ``rate``.

    Amplifies what is proved under add-remove, which compares a record with its absence from the sample; what is proved
    under zero-out alone has no price here (:mod:`discreet.accounting.leaves.samplers` has the table).
    """

    rate: float
    event: Event

    def __post_init__(self) -> None:
        assign(self, rate=probability("rate", self.rate), event=an_event(self.event))
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
        assign(
            self,
            rate=probability("rate", self.rate),
            event=an_event(self.event),
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
        assign(self, rate=probability("rate", self.rate), event=an_event(self.event))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled(Event):
    """One pass over shuffled batches, ``event`` on each: every record is in one batch, so the pass costs one event.

    Proved under replace only, and without amplification: none is claimed for the secrecy of the order.
    """

    event: Event

    def __post_init__(self) -> None:
        assign(self, event=an_event(self.event))


@dataclass(frozen=True, slots=True, kw_only=True)
class BallsInBins(Event):
    """One pass over ``bins`` batches, each record in one of them at random and by itself, ``event`` on each batch.

    Bins are drawn anew in every pass: k passes are ``BallsInBins(...) * k``. A record that keeps its bin, with
    independent noise, sees the event k times in it: ``BallsInBins(bins=..., event=event * k)``.
    """

    bins: int
    event: Event

    def __post_init__(self) -> None:
        assign(self, bins=whole("bins", self.bins, low=1), event=an_event(self.event))
        _inside_poisson(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBins(Event):
    """A run with noise through a matrix that has no negative entry, each record in one bin that it keeps in all passes.

    ``products`` has, for every distance d, the largest inner product of what two bins that are d apart move, at unit
    noise: the first is the squared sensitivity, and a bin further than the last has none. ``smallest_products`` has the
    smallest, from which a lower bound follows; left out, they are zero. ``kept_bins_event`` of
    :mod:`discreet.mechanisms.factorization` makes it of a strategy.
    """

    bins: int
    products: tuple[float, ...]
    noise_multiplier: float
    smallest_products: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        products = tuple(nonnegative("products", value) for value in self.products)
        bins = whole("bins", self.bins, low=1)
        if not products or products[0] <= 0 or len(products) > bins:
            raise ValueError(
                f"products has {len(products)} entries for {bins} bins, but must have one for every distance between "
                "bins, at most, and the first must be above zero."
            )
        if max(products) > products[0]:
            raise ValueError(
                "products has an entry above its first, but no two bins have a larger product than the largest square."
            )
        smallest = tuple(nonnegative("smallest_products", value) for value in self.smallest_products)
        if len(smallest) > len(products) or any(s > p for s, p in zip(smallest, products, strict=False)):
            raise ValueError("smallest_products has an entry above that of products, or more entries than it.")
        noise_multiplier = positive("noise_multiplier", self.noise_multiplier)
        assign(self, bins=bins, products=products, noise_multiplier=noise_multiplier, smallest_products=smallest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvedUnder(Event):
    """``event`` inside something that is proved under ``adjacency`` alone, because it takes another fact as public.

    A step that divides by the number of records is private when a record is replaced, not when one is added, whatever
    its noise would be worth there. The price under ``adjacency`` is the event's; under any other there is none.
    """

    adjacency: Adjacency
    event: Event

    def __post_init__(self) -> None:
        assign(self, adjacency=Adjacency(self.adjacency), event=an_event(self.event))
