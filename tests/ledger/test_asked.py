"""A book counts releases at no more than what they were asked for with, and what it then reads is proved."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
import torch

import discreet as dp
from discreet import events
from discreet.adjacency import Adjacency
from discreet.ledger import ChainBroken, Ledger, LedgerError, groups, rules
from discreet.ledger.amounts import NOTHING, ORDERS, Amounts, exact
from discreet.ledger.filters import Limit, admits, reading
from discreet.reporting.facts import _pairs
from searches import asked

GAUSSIAN = events.Gaussian(noise_multiplier=5.2)  # about (1, 1e-7)
ADD_REMOVE = Adjacency.ADD_REMOVE


def opened(**terms: object) -> dp.ledger.Book:
    return Ledger("sqlite://").open("b", **({"epsilon": 3.0, "delta": 1e-6} | terms))  # type: ignore[arg-type]


@pytest.mark.parametrize("block", range(4))
def test_no_sequence_shows_more_than_the_plain_sum_of_what_was_asked(block: int) -> None:
    """Typical releases, asked with deltas that add up to half of the book's at most; a small part of the search."""
    assert sum(asked.retry(seed) for seed in range(25 * block, 25 * (block + 1))) > 50


def test_a_first_release_shows_what_was_asked() -> None:
    book = opened()
    book.release(dp.statistics.Mean(bounds=(0, 1), epsilon=1.0, delta=1e-7), [0.5] * 100, rng=1)
    assert 0.99 < book.spent().epsilon <= 1
    assert book.spent().proof == "sum of what was asked"
    assert book.entries()[-1].asked == (1.0, 1e-7)
    assert book.entries()[0].asked is None  # the book was opened


def test_tables_models_and_training_say_what_they_were_asked_for_with() -> None:
    """Each of three releases adds no more than its epsilon, in the order in which they came."""
    frame = pl.DataFrame({"a": [0.1, 0.4, 0.7, 0.9] * 25})
    rows, goal = np.full((100, 2), 0.5), np.arange(100) % 2
    book = opened()
    dp.table(frame, schema={"a": dp.Bounded(0, 1)}).sum("a").release(
        epsilon=0.4, delta=1e-7, noise="gaussian", book=book
    )
    assert book.spent().epsilon <= 0.4
    dp.linear.LogisticRegression(epsilon=0.5, delta=1e-7, feature_norm=1.0, classes=(0, 1)).fit(rows, goal, book=book)
    assert book.spent().epsilon <= 0.9
    torch.manual_seed(0)
    data = (torch.tensor(rows, dtype=torch.float32), torch.tensor(goal))
    dp.training.fit(torch.nn.Linear(2, 2), data, epsilon=1.0, delta=1e-7, epochs=1, batch_size=50, book=book)
    assert book.spent().epsilon <= 1.9
    assert [entry.asked for entry in book.entries()[1:]] == [(0.4, 1e-7), (0.5, 1e-7), (1.0, 1e-7)]


def test_without_a_word_about_it_the_price_is_what_it_was() -> None:
    book = opened()
    book.charge(GAUSSIAN)
    assert book.spent().epsilon > 1.1
    assert book.entries()[-1].asked is None


def test_what_each_charge_added_sums_up_to_what_is_spent() -> None:
    book = opened()
    inner = book.sub("inner", epsilon=2.0, delta=5e-7)
    made = [one.charge(GAUSSIAN, asked=(1.0, 1e-7)) for one in (book, inner, book)]
    added = book.additions()
    assert list(added) == [entry.seq for entry in made]
    assert sum(added.values()) == pytest.approx(book.spent().epsilon)
    assert all(value > 0 for value in added.values())


@pytest.mark.parametrize("bad", [(1.0,), (0.0, 1e-7), (1.0, 1.0), (1.0, -1e-9), (math.nan, 0.0), "no"])
def test_what_cannot_have_been_asked_is_refused_before_the_charge(bad: object) -> None:
    book = opened()
    with pytest.raises(ValueError, match="asked"):
        book.charge(GAUSSIAN, asked=bad)  # type: ignore[arg-type]
    assert len(book.entries()) == 1


def test_what_was_asked_is_never_believed() -> None:
    """An operation that says it asked for little is counted at what its event costs."""
    book = opened()
    book.charge(GAUSSIAN, asked=(1e-3, 1e-7))
    assert book.spent().epsilon >= dp.epsilon(GAUSSIAN, 1e-7)


def test_a_delta_beyond_the_share_is_quoted_at_the_share() -> None:
    book = opened()
    book.charge(GAUSSIAN, asked=(1.0, 1e-6))
    assert book.spent().epsilon == pytest.approx(dp.epsilon(GAUSSIAN, 5e-7), rel=1e-9)


def test_units_of_several_rows_are_quoted_for_so_many() -> None:
    book = opened(epsilon=9.0, unit="patient", rows_per_unit=3)
    book.charge(GAUSSIAN, asked=(1.0, 1e-7))
    assert book.spent().epsilon >= dp.epsilon(GAUSSIAN, 1e-7, group_size=3)
    assert book.spent().proof == "sum of what was asked"
    book.ledger.verify()


# --- the proof, by enumeration


def leak(epsilon: float, delta: float) -> Amounts:
    """The price of an answer that tells all with probability delta, and else is a randomised response."""
    return Amounts(pure=exact(epsilon), quoted=exact(delta), mu2=math.inf, renyi=(math.inf,) * len(ORDERS))


def runs(limit: Limit, tells: float, depth: int, spent: Amounts = NOTHING, p: float = 1.0, q: float = 1.0,
         ahead: int = 0, count: int = 0) -> Iterator[tuple[float, float, Amounts]]:  # fmt: skip
    """All transcripts of an analyst who stops when ahead, asks for more where the answers point one way, and now and
    then asks a pure question."""
    epsilon = 0.6 if ahead > 0 else 0.3
    price = groups.price(events.PureDP(epsilon=epsilon), ADD_REMOVE) if count % 3 == 2 else leak(epsilon, tells)
    if ahead >= 3 or count == depth or not admits(limit, spent + price):
        yield p, q, spent
        return
    leaks = float(price.quoted)
    yield p * leaks, 0.0, spent + price  # told: the other neighbour would never say this
    truth = (1 - leaks) / (1 + math.exp(-epsilon))
    for chance, other, step in ((truth, 1 - leaks - truth, 1), (1 - leaks - truth, truth, -1)):
        yield from runs(limit, tells, depth, spent + price, p * chance, q * other, ahead + step, count + 1)


@pytest.mark.parametrize("tells", [0.004, 0.01, 0.02])
def test_the_sum_of_what_was_asked_holds_wherever_the_analyst_stops(tells: float) -> None:
    """Exact, over every transcript: the divergence at the readings, and at the limit, is within the book's delta."""
    limit = Limit(exact(3.0), exact(0.05), "asked")
    ends = list(runs(limit, tells, depth=9))
    assert sum(p for p, _, _ in ends) == pytest.approx(1)
    assert sum(max(0.0, p - math.exp(reading(limit, spent).epsilon) * q) for p, q, spent in ends) <= 0.05
    assert sum(max(0.0, p - math.exp(3.0) * q) for p, q, _ in ends) <= 0.05


def test_the_enumeration_catches_a_sum_whose_deltas_are_not_counted() -> None:
    """Power: without the rule that quotes stay within their share, the same analyst learns more than was promised."""
    limit = Limit(exact(6.0), exact(0.05), "asked")
    price = leak(0.3, 0.02)
    spent = price * 4
    told = 1 - (1 - 0.02) ** 4  # the chance that one of four tells all
    assert told > 0.05
    assert reading(limit, spent).epsilon == math.inf
    assert not admits(limit, spent)
    assert reading(limit, price * 1).epsilon == pytest.approx(0.3)


def test_what_may_fail_outright_is_counted_among_what_was_asked() -> None:
    limit = Limit(exact(9.0), exact(1e-6), "asked")
    approximate = groups.price(events.ApproxDP(epsilon=0.1, delta=5e-8), ADD_REMOVE)
    assert reading(limit, leak(1.0, 4.5e-7) + approximate).proof == "sum of what was asked"
    assert reading(limit, leak(1.0, 4.6e-7) + approximate).epsilon == math.inf


# --- the chain


def test_a_quote_is_computed_again_by_who_verifies() -> None:
    quote = groups.price(GAUSSIAN, ADD_REMOVE, quote=1e-7)
    text = GAUSSIAN.to_json()
    assert rules.check_price(text, quote.to_json(), ADD_REMOVE, rules.CURRENT) == quote
    for wrong in (replace(quote, pure=quote.pure * Fraction(9, 10)), replace(quote, quoted=quote.quoted / 10)):
        with pytest.raises(ChainBroken):
            rules.check_price(text, wrong.to_json(), ADD_REMOVE, rules.CURRENT)
    with pytest.raises(ChainBroken, match="quote"):
        rules.check_price(text, quote.to_json(), ADD_REMOVE, rules.UNQUOTED)


def test_amounts_without_quotes_are_written_as_before() -> None:
    price = groups.price(GAUSSIAN, ADD_REMOVE)
    assert "quoted" not in json.loads(price.to_json())
    quote = groups.price(GAUSSIAN, ADD_REMOVE, quote=1e-7)
    assert Amounts.from_json(quote.to_json()) == quote != price


def test_a_book_of_an_earlier_division_is_opened_as_it_is_and_keeps_it() -> None:
    ledger = Ledger("sqlite://")
    ledger.open("old", epsilon=3.0, delta=1e-6, filter="mixed")
    book = ledger.open("old", epsilon=3.0, delta=1e-6)
    assert book.terms.filter == "mixed"
    book.charge(GAUSSIAN, asked=(1.0, 1e-7))
    assert book.spent().proof.startswith("Rényi")
    with pytest.raises(LedgerError, match="filter"):
        ledger.open("old", epsilon=3.0, delta=1e-6, filter="renyi")


def test_a_sum_of_quotes_is_not_shown_as_pure() -> None:
    """The report's curve has no finite epsilon at delta zero."""
    book = opened()
    book.charge(GAUSSIAN, asked=(1.0, 1e-7))
    pairs, _ = _pairs(book.snapshot())
    assert pairs[0] == (0.0, math.inf)


def test_passes_in_bins_that_were_charged_before_they_were_amplified_still_verify() -> None:
    """They cost more then than today; what is cheaper than today's price is no price of theirs."""
    bins = events.BallsInBins(bins=10, event=GAUSSIAN)
    text, then, now = bins.to_json(), groups.price(GAUSSIAN, ADD_REMOVE), groups.price(bins, ADD_REMOVE)
    assert max(a - b for a, b in zip(then.renyi, now.renyi, strict=True)) > 0
    assert rules.check_price(text, then.to_json(), ADD_REMOVE, rules.UNQUOTED) == then
    with pytest.raises(ChainBroken):
        rules.check_price(text, then.to_json(), ADD_REMOVE, rules.CURRENT)
    cheaper = replace(now, renyi=tuple(value // 2 for value in now.renyi))
    with pytest.raises(ChainBroken):
        rules.check_price(text, cheaper.to_json(), ADD_REMOVE, rules.UNQUOTED)


@pytest.mark.parametrize(
    "parts",
    [GAUSSIAN | events.Laplace(noise_multiplier=1.0), events.BallsInBins(bins=10, event=GAUSSIAN)],
    ids=["parallel parts", "a pass"],
)
def test_what_was_charged_by_a_coarser_lattice_still_verifies(parts: events.Event) -> None:
    """They cost a little more then than today; less than today's price is no price of theirs."""
    text, now = parts.to_json(), groups.price(parts, ADD_REMOVE, quote=1e-7)
    then = replace(now, pure=now.pure * Fraction(100_001, 100_000))
    assert rules.check_price(text, now.to_json(), ADD_REMOVE, rules.CURRENT) == now
    assert rules.check_price(text, then.to_json(), ADD_REMOVE, rules.ONE_LATTICE) == then
    cheaper = replace(now, pure=now.pure * Fraction(99_999, 100_000))
    for price, named in ((then, rules.CURRENT), (cheaper, rules.ONE_LATTICE)):
        with pytest.raises(ChainBroken):
            rules.check_price(text, price.to_json(), ADD_REMOVE, named)
    alone = groups.price(GAUSSIAN, ADD_REMOVE, quote=1e-7)
    dearer = replace(alone, pure=alone.pure * Fraction(100_001, 100_000))
    with pytest.raises(ChainBroken):  # nothing else cost more
        rules.check_price(GAUSSIAN.to_json(), dearer.to_json(), ADD_REMOVE, rules.ONE_LATTICE)
