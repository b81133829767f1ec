"""Facts of samplers: what amplification by a secret sample proves, and under which adjacency.

A sampler amplifies by mixing two outcomes of one record, "in the sample" and "not in it". What runs inside must be
proved for the comparison that this makes:

================  ====================  ==========================  ===========================  =======================
sampler           compares, per record  add-remove                  replace                      zero-out
================  ====================  ==========================  ===========================  =======================
Poisson,          in the sample with    amplifies what is proved    Gaussian noise proved under  as replace: a null is
truncated         absent from it        under add-remove            add-remove: both records     another record in the
Poisson                                                             against absence; the rest    same place
                                                                    is refused
fixed size        in the sample with    refused: the size of the    amplifies what holds under   refused: what holds
                  another in its place  sample tells that of data   replace                      there may know no nulls
shuffled          (no amplification)    refused, as above           one event a pass             refused, as above
balls in bins     in a batch with       amplifies what has a        one event a pass             one event a pass
(``bins``)        absent from it        pair under add-remove
================  ====================  ==========================  ===========================  =======================

Nothing proved under zero-out is amplified by a Poisson sample. It compares a record with a null *in the sample*: it may
reveal how many were drawn, as randomized response does, and then a sample without the record looks like neither. An
event of epsilon 1 at rate 0.01 still costs 1. State it under add-remove, if it protects the size of its input too.

``sampling`` has the pairs. References: Zhu, Dong and Wang (2022) for Poisson samples; Balle, Barthe and Gaboardi (2018)
for a fixed size; Chua et al. (2024) for truncated batches.

Decision 221.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from discreet import events as ev
from discreet.accounting.binomial import binomial_tail
from discreet.accounting.facts import LARGEST_MU, Facts, computable, register, stated_mu
from discreet.accounting.neighbours import refusal, resolve
from discreet.accounting.outward import SMALLEST, product, times
from discreet.accounting.parts import Leaf, Resolved
from discreet.accounting.pld.atoms import too_large
from discreet.accounting.pld.composite import composed_pair, gaussian_mu
from discreet.accounting.pld.pairs import Pair
from discreet.accounting.pld.replaced import ReplaceSampledGaussian
from discreet.accounting.pld.sampling import Sampled, Symmetric
from discreet.accounting.sums import pure_epsilon
from discreet.adjacency import Adjacency

__all__: list[str] = []

_UP = 1 + 1e-14

# --- what is to be priced --------------------------------------------------------------------------------------------


def _poisson(event: ev.PoissonSampled, count: int, wanted: Adjacency, group: int) -> Resolved:
    if event.rate in (0, 1):
        return _all_or_none(event, count, wanted, group)
    event = _merge_samples(event)
    refuse_groups(event, wanted, group)
    if others := set(proved_under(event.event)) - {Adjacency.ADD_REMOVE}:
        named = ", ".join(sorted(repr(str(relation)) for relation in others))
        raise refusal(
            event,
            wanted,
            f"the event inside was proved under {named}, but a Poisson sample compares a record with its absence: only "
            "events proved under 'add-remove' are amplified",
        )
    if wanted is not Adjacency.ADD_REMOVE and not _all_gaussian(event.event):
        raise refusal(event, wanted, "inside a Poisson sample that pair is proved for Gaussian noise only")
    return Resolved((Leaf(event, wanted, count),), is_loose=_holds_passes(event.event))


def _holds_passes(event: ev.Event) -> bool:
    """Whether there are passes inside, which may be priced without amplification: then nothing follows from below."""
    return any(isinstance(leaf, (ev.BallsInBins, ev.Shuffled)) for leaf in ev.leaves(event))


def _truncated(event: ev.TruncatedPoissonSampled, count: int, wanted: Adjacency, group: int) -> Resolved:
    ideal = _poisson(ev.PoissonSampled(rate=event.rate, event=event.event), count, wanted, group)
    return Resolved(ideal.ideal, min(1.0, ideal.slack + times(_overflow(event), count)))


def _fixed_size(event: ev.FixedSizeSampled, count: int, wanted: Adjacency, group: int) -> Resolved:
    if event.rate in (0, 1):
        return _all_or_none(event, count, wanted, group)
    refuse_groups(event, wanted, group)
    if wanted is not Adjacency.REPLACE:
        raise refusal(event, wanted, "sampling a fixed number is proved under 'replace' only")
    return Resolved((Leaf(event, wanted, count),), is_loose=_holds_passes(event.event))


def _all_or_none(event: Any, count: int, wanted: Adjacency, group: int) -> Resolved:
    """At rate one the sample is the data; at rate zero nothing is ever read."""
    return resolve(event.event * count, wanted, group) if event.rate else Resolved(())


def refuse_groups(event: ev.Event, wanted: Adjacency, group: int) -> None:
    if group > 1:
        raise refusal(event, wanted, "a group shares the sample; ask for the group's guarantee of the whole instead")


def _overflow(event: ev.TruncatedPoissonSampled) -> float:
    """The probability that a sample of one more than ``dataset_size`` records is cut, rounded up."""
    if event.rate == 0 or event.max_batch_size > event.dataset_size:
        return 0.0
    if event.dataset_size > 1 << 50:
        return 1.0  # beyond what floats can tell apart
    return binomial_tail(event.max_batch_size + 1, event.dataset_size + 1, event.rate)


def _merge_samples(event: ev.PoissonSampled) -> ev.PoissonSampled:
    """A Poisson sample of a Poisson sample is one at the product of the rates, rounded up."""
    inside = ev.leaves(event.event)
    only = next(iter(inside), None)
    if not (isinstance(only, ev.PoissonSampled) and inside == {only: 1}):
        return event
    rate = min(event.rate, only.rate, math.nextafter(event.rate * only.rate, 1.0))
    return _merge_samples(ev.PoissonSampled(rate=rate, event=only.event))


def proved_under(event: ev.Event) -> Iterator[Adjacency]:
    """What everything in an event was proved under, however deep: inside a sample nothing is restated."""
    for leaf in ev.leaves(event):
        if hasattr(leaf, "adjacency"):
            yield leaf.adjacency
        for part in getattr(leaf, "events", (getattr(leaf, "event", None),)):
            if part is not None:
                yield from proved_under(part)


def _all_gaussian(event: ev.Event) -> bool:
    """Whether every leaf is as hard to test as a shifted Gaussian, which is all that the replace pair's proof needs."""
    return all(stated_mu(Leaf(leaf, Adjacency.ADD_REMOVE)) is not None for leaf in ev.leaves(event))


# --- what it costs ---------------------------------------------------------------------------------------------------


def _pure(event: Any, adjacency: Adjacency) -> float:
    """log(1 + q(e^ε - 1)): Poisson for add-remove, fixed size for replace (Balle, Barthe and Gaboardi 2018)."""
    return _amplified_epsilon(pure_epsilon(event.event, adjacency), event.rate) if event.rate else 0.0


def _amplified_epsilon(epsilon: float, rate: float) -> float:
    """log(1 + q(e^ε - 1)), rounded up.

    Where e^ε leaves floats, log(1 + q·e^ε) with log q + ε rounded up, which keeps its digits near zero too.
    """
    if epsilon == 0 or not math.isfinite(epsilon):
        return epsilon
    if epsilon < 300:
        value = math.log1p(product(rate, math.expm1(epsilon))) * _UP
    else:
        log = math.log(rate) + epsilon
        log += 1e-15 * (epsilon - math.log(rate))  # more than both can have lost
        value = (max(log, 0.0) + math.log1p(math.exp(-abs(log)))) * _UP
    return min(epsilon, value + SMALLEST)


def _poisson_pair(event: ev.PoissonSampled, adjacency: Adjacency) -> Pair:
    if adjacency is Adjacency.ADD_REMOVE:
        return Sampled(computable(event.rate), composed_pair(event.event, adjacency))
    if adjacency not in (Adjacency.REPLACE, Adjacency.ZERO_OUT):  # a blanked record is a replaced one
        raise refusal(event, adjacency, "no pair of a sample is known there")
    mu = gaussian_mu(resolve(event.event, Adjacency.ADD_REMOVE).parts)
    assert mu is not None  # _poisson admits Gaussians only
    if mu > LARGEST_MU:
        return too_large(event.rate)
    return ReplaceSampledGaussian(computable(event.rate), 1 / computable(mu))


def _fixed_size_pair(event: ev.FixedSizeSampled, adjacency: Adjacency) -> Pair:
    return Symmetric(Sampled(computable(event.rate), composed_pair(event.event, Adjacency.REPLACE)))


register(ev.PoissonSampled, Facts(pure=_pure, pair=_poisson_pair, restated=_poisson))
register(ev.FixedSizeSampled, Facts(pure=_pure, pair=_fixed_size_pair, restated=_fixed_size))
register(ev.TruncatedPoissonSampled, Facts(restated=_truncated))
