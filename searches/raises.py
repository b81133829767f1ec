"""Adversaries who choose the next question, and ask for raises, by the answers they saw: exact, over every transcript.

A policy is random: after each answer it picks one of three coins of randomised response and whether to ask for one of
three raises. A book with a ceiling is run along all transcripts; the hockey-stick divergence at the ceiling must stay
within the ceiling's delta, and so must the one at the odometer's readings, in both directions.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from discreet import events
from discreet.adjacency import Adjacency
from discreet.errors import BudgetExceeded
from discreet.ledger import pricing, tree
from discreet.ledger.stages import Stage
from discreet.ledger.terms import Terms
from discreet.ledger.tree import BookNode
from searches import _cases

DEPTH = 9
End = tuple[float, float, Stage]  # probability with the record, log-ratio, where the book stood


def main(size: int | None = None, seed: int = 14) -> None:
    """Try ``size`` random policies; raise at the first that learns more than was promised."""
    tried, closest = Counter[str](), 0.0
    for number in range(100 if size is None else size):
        with _cases.saving("raises", seed + number):
            closest = max(closest, retry(seed + number, tried))
    print(f"raises: {dict(tried)}; at most {closest:.3f} of the delta was lost")


def retry(case: int, tried: Counter[str] | None = None) -> float:
    """The policy of a seed: the largest share of the delta that it loses."""
    rng, tried, closest = np.random.default_rng(case), Counter[str]() if tried is None else tried, 0.0
    terms, policy = _terms(rng), rng.integers(0, 2**31)
    ends = _run(BookNode("book", terms), int(policy), (), 1.0, 0.0)
    tried["policies"] += 1
    tried["transcripts"] += len(ends)
    tried["raised"] += sum(stage.raised for _, _, stage in ends)
    assert terms.max_epsilon is not None
    assert terms.max_delta is not None
    for sign in (1, -1):  # with the record against without it, and the other way round
        law = ends if sign == 1 else [(p * math.exp(-loss), -loss, stage) for p, loss, stage in ends]
        for promised in (terms.max_epsilon, None):
            lost = sum(p * max(0.0, 1 - math.exp((promised or stage.read().epsilon) - loss)) for p, loss, stage in law)
            closest = max(closest, lost / terms.max_delta)
            if lost > terms.max_delta * (1 + 1e-9):
                raise AssertionError(f"{terms.describe()}: {lost:g} is lost under policy {policy}.")
    return closest


def _terms(rng: np.random.Generator) -> Terms:
    epsilon, delta = rng.uniform(0.1, 0.4), 10 ** rng.uniform(-1.5, -0.5)
    return Terms(
        epsilon=epsilon,
        delta=delta,
        filter=str(rng.choice(["mixed", "renyi", "gaussian"])),
        max_epsilon=epsilon * rng.uniform(1, 2),
        max_delta=delta * rng.uniform(1, 3),
    )


def _run(node: BookNode, policy: int, answers: tuple[int, ...], p: float, loss: float) -> list[End]:
    coin = np.random.default_rng([policy, len(answers), sum(answer << i for i, answer in enumerate(answers))])
    if (asked := int(coin.integers(0, 6))) < 3:
        node = _raised(node, ((0.05, 0.0), (0.1, 0.02), (0.0, 0.05))[asked])
    epsilon = (0.05, 0.1, 0.2)[int(coin.integers(0, 3))]
    after = tree.advance([node], pricing.price(events.PureDP(epsilon=epsilon), Adjacency.ADD_REMOVE))[0]
    if len(answers) == DEPTH or not after.within:
        return [(p, loss, node.stage)]
    heads = 1 / (1 + math.exp(-epsilon))
    return [
        *_run(after, policy, (*answers, 1), p * heads, loss + epsilon),
        *_run(after, policy, (*answers, 0), p * (1 - heads), loss - epsilon),
    ]


def _raised(node: BookNode, increment: tuple[float, float]) -> BookNode:
    try:
        return node.raise_limit(*increment)
    except BudgetExceeded:
        return node
