"""Totals in the tree: what one record can have cost, whichever part it is in."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from discreet.ledger.amounts import NOTHING, ORDERS, Amounts
from discreet.ledger.terms import Terms
from discreet.ledger.tree import BookNode, advance, lineage

KINDS = {
    "b": "book",
    "b/sub": "book",
    "b/p": "partition",
    "b/p/x": "part",
    "b/p/y": "part",
    "b/p/y/q": "partition",
    "b/p/y/q/1": "part",
    "b/p/y/q/2": "part",
    "b/r": "partition",
    "b/r/u": "part",
    "b/r/v": "part",
}
CHARGEABLE = [name for name, kind in KINDS.items() if kind != "partition"]


def cost(pure: int, renyi: int) -> Amounts:
    """Two currencies that need not agree on which part is the costliest."""
    return Amounts(pure=Fraction(pure, 10), mu2=renyi, renyi=(renyi,) * len(ORDERS))


def worst(name: str, charged: dict[str, list[Amounts]]) -> Amounts:
    """By definition: own charges, plus sub-books, plus the largest part of each partition, in each currency."""
    inside = [worst(child, charged) for child in KINDS if lineage(child)[1:2] == [name]]
    if KINDS[name] == "partition":
        total = NOTHING
        for amounts in inside:
            total = total.join(amounts)
        return total
    return sum([*inside, *charged.get(name, [])], start=NOTHING)


@given(st.lists(st.tuples(st.sampled_from(CHARGEABLE), st.integers(0, 9), st.integers(0, 9)), max_size=25))
def test_running_totals_are_the_worst_case_by_definition(charges: list[tuple[str, int, int]]) -> None:
    nodes = {name: BookNode(name, Terms(epsilon=1.0, delta=0.0, kind=kind)) for name, kind in KINDS.items()}
    charged: dict[str, list[Amounts]] = {}
    for name, pure, renyi in charges:
        price = cost(pure, renyi)
        charged.setdefault(name, []).append(price)
        nodes |= {node.name: node for node in advance([nodes[each] for each in lineage(name)], price)}
    for name, node in nodes.items():
        assert node.amounts == worst(name, charged)
        assert node.entries == sum(len(prices) for other, prices in charged.items() if name in lineage(other))
