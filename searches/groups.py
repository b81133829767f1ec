"""Prices for several rows at once against exact enumeration: random mechanisms of a count, at every distance up to k.

A mechanism is a random table of output probabilities, one row of it for each number of rows that a unit has. What it
costs for one row is computed exactly and stated as an event; the price of that event for k rows must then bound, in
every currency, what the table shows between inputs that are k or fewer apart.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import binom, norm

from discreet import events
from discreet.adjacency import Adjacency
from discreet.errors import UnsupportedEvent
from discreet.ledger import groups
from discreet.ledger.amounts import ORDERS, UNIT, Amounts
from searches import _cases

Array = NDArray[np.float64]
CURVE = tuple(sorted({*ORDERS, *(2.0 * order for order in ORDERS)}))
_UP = 1 + 1e-9


def main(size: int | None = None, seed: int = 12) -> None:
    """Try ``size`` random mechanisms; raise at the first price that is below the truth."""
    tried = Counter[str]()
    for number in range(500 if size is None else size):
        with _cases.saving("groups", seed + number):
            retry(seed + number, tried)
    print(f"groups: {dict(sorted(tried.items()))}; no price below the truth")


def retry(case: int, tried: Counter[str] | None = None) -> None:
    """The mechanism of a seed."""
    rng, tried = np.random.default_rng(case), Counter[str]() if tried is None else tried
    k = int(rng.integers(2, 6))
    table = _table(rng, k + 2)
    for kind, event, law in _stated(rng, table):
        tried[kind] += 1
        try:
            price = groups.price(event, Adjacency.ADD_REMOVE, rows=k)
        except UnsupportedEvent:
            tried[f"{kind}, refused"] += 1
            continue
        for p, q in _apart(law, k):
            _check(kind, price, p, q)
    if rng.random() < 0.05:  # so is its numerical account
        tried["whole"] += 1
        _check_whole(rng, table, k)


def _table(rng: np.random.Generator, inputs: int) -> Array:
    """Neighbouring rows are a random factor apart, from one part in a million to e^4."""
    scale = 10 ** rng.uniform(-6, 0.6)
    logs = np.cumsum(rng.uniform(-scale, scale, (inputs, int(rng.integers(2, 6)))), axis=0)
    return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))


def _apart(table: Array, k: int) -> Iterator[tuple[Array, Array]]:
    for distance in range(1, k + 1):
        for low, high in zip(table, table[distance:], strict=False):
            yield low, high
            yield high, low


def _stated(rng: np.random.Generator, table: Array) -> Iterator[tuple[str, events.Event, Array]]:
    """What the table costs for one row, as events of several kinds, with the law each of them describes."""
    pairs = list(_apart(table, 1))
    pure = max(float(np.max(np.log(p / q))) for p, q in pairs) * _UP + 1e-15
    yield "pure", events.PureDP(epsilon=pure), table
    yield "zcdp", events.ZCDP(rho=pure**2 / 2 * _UP), table
    epsilon = pure * rng.uniform(0, 1)
    delta = max(_stick(p, q, epsilon) for p, q in pairs) * _UP
    yield "approximate", events.ApproxDP(epsilon=epsilon, delta=delta), table
    curve = tuple(max(_renyi(p, q, order) for p, q in pairs) * _UP + 1e-15 for order in CURVE)
    yield "rdp", events.RDP(orders=CURVE, epsilons=curve), table
    if rng.random() < 0.1:  # its curve is computed on a grid
        yield "sampled", *_sampled(rng, pure, table)


def _sampled(rng: np.random.Generator, pure: float, table: Array) -> tuple[events.Event, Array]:
    """The same mechanism of a Poisson sample: the number of rows is thinned first."""
    rate, inputs = rng.uniform(0.05, 0.95), np.arange(len(table))
    thinned = binom.pmf(inputs[None, :], inputs[:, None], rate)
    return events.PoissonSampled(rate=rate, event=events.PureDP(epsilon=pure)), thinned @ table


def _stick(p: Array, q: Array, epsilon: float) -> float:
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


def _renyi(p: Array, q: Array, order: float) -> float:
    return max(0.0, float(logsumexp(order * np.log(p) + (1 - order) * np.log(q))) / (order - 1))


def _check(kind: str, price: Amounts, p: Array, q: Array) -> None:
    if price.delta:  # approximate: fails with probability delta, and is pure otherwise
        found = _stick(p, q, float(price.pure)) - float(price.delta)
        _refuse(kind, "approximate", found, p, q)
        return
    _refuse(kind, "pure", float(np.max(np.log(p / q))) - float(price.pure), p, q)
    for order, paid in zip(ORDERS, price.renyi, strict=True):
        _refuse(kind, f"order {order}", _renyi(p, q, order) - paid / UNIT, p, q)
    if price.mu2 < math.inf:
        mu = math.sqrt(price.mu2 / UNIT)
        for epsilon in (0.0, mu / 2, mu, 2 * mu):
            allowed = (
                norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) if mu else 0.0
            )
            _refuse(kind, "gaussian", _stick(p, q, epsilon) - float(allowed), p, q)


def _check_whole(rng: np.random.Generator, table: Array, k: int) -> None:
    """The certified profile of a sampled event, restated for the group, at a random delta."""
    pure = max(float(np.max(np.log(p / q))) for p, q in _apart(table, 1)) * _UP + 1e-15
    event, law = _sampled(rng, pure, table)
    delta = 10 ** rng.uniform(-9, -1)
    price = groups.planned_price(event, Adjacency.ADD_REMOVE, Fraction(delta), k)
    if price is None:
        return
    for p, q in _apart(law, k):
        _refuse("whole", "profile", _stick(p, q, float(price.planned_epsilon)) - delta, p, q)


def _refuse(kind: str, currency: str, excess: float, p: Array, q: Array) -> None:
    if excess > 1e-12:
        raise AssertionError(
            f"{kind}: the {currency} price is {excess:g} too low between {p.tolist()} and {q.tolist()}."
        )
