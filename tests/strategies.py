"""Hypothesis strategies for events: any leaf, any tree. Import them as ``from tests import strategies``."""

from __future__ import annotations

from hypothesis import strategies as st

from discreet import events as ev
from discreet.adjacency import Adjacency

ADD_REMOVE = Adjacency.ADD_REMOVE

positives = st.floats(min_value=1e-6, max_value=1e6)
epsilons = st.floats(min_value=0, max_value=1e3)
rates = st.floats(min_value=0, max_value=1)
adjacencies = st.sampled_from(Adjacency)
local_adjacencies = st.sampled_from([Adjacency.REPLACE, Adjacency.ZERO_OUT])
small_counts = st.integers(min_value=0, max_value=1_000)
sensitivities = st.integers(min_value=1, max_value=9)


@st.composite
def rdp_curves(draw: st.DrawFn, adjacency: st.SearchStrategy[Adjacency]) -> ev.RDP:
    orders = draw(st.lists(st.floats(min_value=1.01, max_value=512), min_size=1, max_size=5, unique=True))
    prices = draw(st.lists(epsilons, min_size=len(orders), max_size=len(orders)))
    return ev.RDP(orders=tuple(orders), epsilons=tuple(prices), adjacency=draw(adjacency))


def mechanisms(adjacency: st.SearchStrategy[Adjacency] = adjacencies) -> st.SearchStrategy[ev.Event]:
    """Leaves that no sampler wraps, under adjacencies from the given strategy."""
    return st.one_of(
        st.builds(ev.Laplace, noise_multiplier=positives, adjacency=adjacency),
        st.builds(ev.Gaussian, noise_multiplier=positives, adjacency=adjacency),
        st.builds(ev.DiscreteLaplace, scale=positives, sensitivity=sensitivities, adjacency=adjacency),
        st.builds(ev.DiscreteGaussian, sigma=positives, sensitivity=sensitivities, adjacency=adjacency),
        st.builds(ev.Exponential, epsilon=epsilons, adjacency=adjacency),
        st.builds(ev.PureDP, epsilon=epsilons, adjacency=adjacency),
        st.builds(ev.ApproxDP, epsilon=epsilons, delta=rates, adjacency=adjacency),
        st.builds(ev.ZCDP, rho=epsilons, adjacency=adjacency),
        st.builds(ev.GDP, mu=epsilons, adjacency=adjacency),
        rdp_curves(adjacency),
    )


def compositions(leaves: st.SearchStrategy[ev.Event]) -> st.SearchStrategy[ev.Event]:
    """Trees over leaves: composed, repeated, parallel."""
    return st.recursive(
        leaves,
        lambda children: st.one_of(
            st.builds(ev.Composed, events=st.lists(children, max_size=4).map(tuple)),
            st.builds(ev.Repeated, event=children, count=small_counts),
            st.builds(ev.Parallel, events=st.lists(children, min_size=1, max_size=3).map(tuple)),
        ),
        max_leaves=6,
    )


def samplers(inside: st.SearchStrategy[ev.Event]) -> st.SearchStrategy[ev.Event]:
    """Samplers that compare a record's presence with its absence, over events proved for that."""
    sizes = st.integers(min_value=1, max_value=10**6)
    return st.one_of(
        st.builds(ev.PoissonSampled, rate=rates, event=inside),
        st.builds(ev.TruncatedPoissonSampled, rate=rates, max_batch_size=sizes, dataset_size=sizes, event=inside),
        st.builds(ev.BallsInBins, bins=st.integers(min_value=1, max_value=1_000), event=inside),
    )


def leaves() -> st.SearchStrategy[ev.Event]:
    """Any single leaf of the walk, sampled ones included."""
    anything = mechanisms()
    return st.one_of(
        anything,
        st.builds(
            ev.RandomizedResponse,
            epsilon=epsilons,
            categories=st.integers(min_value=2, max_value=50),
            adjacency=local_adjacencies,
        ),
        st.just(ev.NonPrivate()),
        samplers(mechanisms(st.just(ADD_REMOVE))),
        st.builds(ev.FixedSizeSampled, rate=rates, event=anything),
        st.builds(ev.Shuffled, event=anything),
        st.builds(ev.ProvedUnder, adjacency=adjacencies, event=anything),
    )


def events() -> st.SearchStrategy[ev.Event]:
    """Any event tree."""
    return compositions(leaves())
