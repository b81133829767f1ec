"""Numbers, units and theorems in words a privacy officer can read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context

from discreet.adjacency import Adjacency
from discreet.ledger.balance import balance
from discreet.ledger.chain import Entry
from discreet.ledger.terms import Terms
from discreet.release import ONE_RECORD

__all__ = [
    "ASKED",
    "GLOSSARY",
    "SEEDED",
    "TOGETHER",
    "agreement_text",
    "alike",
    "balance",
    "bound",
    "chain",
    "chain_facts",
    "last_entry",
    "neighbours",
    "number",
    "percent",
    "raise_text",
    "rule",
    "seeds",
    "theorem",
    "unit_text",
    "verdict",
    "whom",
]

ASKED = (
    "“ε asked” is the ε that a release asked for; for one that was charged by hand, it is what its event costs alone."
)
TOGETHER = (
    "ε spent is what is guaranteed for all releases of a book together at its δ, even if each was chosen after seeing "
    "earlier answers. It is often less than the sum of what was asked: many releases cost less together than alone."
)
SEEDED = "made with a seed: not private"

_NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "with and without {unit}",
    Adjacency.REPLACE: "that differ in the contents of {unit}",
    Adjacency.ZERO_OUT: "with and without the contents of {unit}, of the same size",
}

_THEOREMS = {
    "pure": "Plain addition (pure filter): the privacy loss never exceeds the sum of the epsilons, whatever is chosen "
    "when. Rogers, Roth, Ullman and Vadhan (2016).",
    "gaussian": "Gaussian accounting rule (filter): a process whose squared GDP parameters sum to at most mu² is "
    "mu-GDP. Smith and Thakurta (2022); Koskela, Tobaben and Honkela (2023).",
    "renyi": "Rényi accounting rule (filter): at each order, the exponential of loss minus cost is a supermartingale, "
    "so its bound holds at every stopping time. Feldman and Zrnic (2021); Lécuyer (2021); Canonne, Kamath and "
    "Steinke (2020).",
    "approximate": "Approximate events: the chance that any fails outright is at most the sum of their deltas. "
    "Kairouz, Oh and Viswanath (2015); Whitehouse, Ramdas, Rogers and Wu (2023).",
    "asked": "Sum of what was asked: each release is (epsilon, delta)-DP by itself; the epsilons add up, and so do the "
    "deltas, which are kept within this part. Dwork and Roth (2014), Theorem 3.16; Rogers, Roth, Ullman and Vadhan "
    "(2016).",
    "raise": "Before the last raise: what the book had guaranteed by then counts with its whole delta, and the rules "
    "above are set up for the rest. Odometers of Rogers, Roth, Ullman and Vadhan (2016); basic composition.",
    "plan": "Plans: events fixed before any answer was seen, priced by numerical composition with certified error; "
    "composed with the rest by basic composition.",
}

_RULES = {
    "pure sum": "plain addition",
    "sum of what was asked": "plain addition of what was asked",
    "before the raise": "what had been spent before the raise",
    "plan": "the plan",
    "none": "no theorem",
    "nothing charged": "no theorem yet: nothing was charged",
}

# What a reader who is no mathematician meets on the page, in the order in which one would ask.
GLOSSARY = {
    "ε (epsilon)": "A limit on what everything released can tell about one unit. At 0 it tells nothing. At 1 it can "
    "change the odds of any statement about the unit by a factor of at most 2.72, at 2 by 2.72 × 2.72, and so on.",
    "δ (delta)": "The largest chance that the limit ε fails. It is kept far below one over the number of people.",
    "unit": "Who is protected: one record, or all records of one person.",
    "neighbours": "Two data sets that differ in one unit, and that an attacker tries to tell apart.",
    "book": "A budget: a limit on ε and δ for one data set. Every release is charged to it before the data is read; "
    "one that would exceed the limit is refused.",
    "event": "What a release does, exactly: which noise, how much, on what sample. Its cost is computed from that.",
    "release": "An answer, a table or a model that left the data with noise. Its cost was written into the book before "
    "the data was read. Nothing is ever refunded.",
    "spent": "What is guaranteed for everything released so far, together, however the questions were chosen. It is "
    "often less than the sum of what each release asked for: many together cost far less.",
    "accounting rule (filter)": "The theorem that allows releases up to a limit fixed in advance, and refuses the one "
    "that would cross it.",
    "odometer": "A theorem that says, at any moment, what is spent so far, whenever you decide to stop.",
    "plan": "Events that are declared together, before any answer is seen. Together they may cost less than "
    "one after the other.",
    "fingerprint of the last entry (head)": "Number and fingerprint of the ledger's last entry. Kept elsewhere, it "
    "shows whether history was changed.",
}


def number(value: float, digits: int = 4) -> str:
    """A number with few digits, and powers of ten the way people write them.

    >>> number(0.94691), number(1e-6), number(float("inf"))
    ('0.9469', '1e-6', '∞')
    """
    if math.isinf(value):
        return "∞"
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return f"{mantissa}e{int(exponent)}"


def bound(value: float, digits: int = 4) -> str:
    """An upper bound with few digits: rounded up, so that what is printed is still one.

    >>> bound(0.0999967), bound(2.08612), bound(3e-6), bound(float("inf"))
    ('0.1', '2.087', '3e-6', '∞')
    """
    if math.isinf(value):
        return "∞"
    up = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(value))
    return number(float(up), digits)


def alike(values: Sequence[float]) -> list[str]:
    """Numbers that stand beside each other, with as many decimals as give the largest four digits.

    >>> alike([10501.4, 51.2]), alike([85.179, 85.0])
    (['10,501', '51'], ['85.18', '85.00'])
    """
    largest = max(map(abs, values), default=0.0)
    if not 1e-4 <= largest < 1e9:
        return [number(value) for value in values]
    return [f"{value:,.{max(0, 3 - math.floor(math.log10(largest)))}f}" for value in values]


def percent(value: float) -> str:
    """A probability as a percentage, rounded up so that a bound stays one.

    >>> percent(0.01), percent(0.017321), percent(1.0)
    ('1 %', '1.74 %', '100 %')
    """
    return f"{min(100.0, math.ceil(value * 1e4 - 1e-6) / 100):g} %"


def whom(unit: str) -> str:
    """A unit of privacy, as something that is there or not.

    >>> whom("one record"), whom("patient")
    ('one record', 'all records of one patient')
    """
    return unit if unit == ONE_RECORD else f"all records of one {unit.removeprefix('one ')}"


def neighbours(adjacency: Adjacency, unit: str) -> str:
    """The two data sets an attacker tries to tell apart."""
    return _NEIGHBOURS[adjacency].format(unit=whom(unit))


def unit_text(entry: Entry) -> str:
    """The unit of a charge, and on whose word; nothing for entries that charge nothing."""
    if not entry.event:
        return ""
    return "not recorded" if entry.unit is None else str(entry.unit)


def agreement_text(entry: Entry) -> str:
    """What an entry that charges nothing did."""
    if entry.kind != "raise":
        return _opening_text(Terms.from_json(entry.terms))
    epsilon, delta = entry.increment
    return f"limit raised by ε = {number(epsilon)}, δ = {number(delta)}"


def _opening_text(terms: Terms) -> str:
    if terms.kind == "partition":
        return "opened as a partition, whose parts hold different records"
    ceiling = f", at most ε = {number(terms.max_epsilon)} by raises" if terms.max_epsilon is not None else ""
    return f"opened with the limit ε = {number(terms.epsilon)}, δ = {number(terms.delta)}{ceiling}"


def rule(proof: str) -> str:
    """By which theorem a total holds, as part of a sentence.

    >>> rule("pure sum"), rule("plan, then Rényi filter, order 9")
    ('plain addition', 'the plan and then the Rényi accounting rule of order 9')
    """
    first, _, rest = proof.replace("filter", "accounting rule").partition(", then ")
    parts = [_RULES.get(part, f"the {part.replace(', order', ' of order')}") for part in (first, rest) if part]
    return " and then ".join(parts)


def raise_text(ceiling: bool) -> str:
    """What raises mean for what was promised."""
    if ceiling:
        return (
            "The limit was raised after answers had been seen, within the ceiling that was declared when the book was "
            "opened: what was promised in advance is the ceiling, and it holds."
        )
    return (
        "The limit was raised after answers had been seen, and no ceiling was declared when the book was opened: the "
        "limit shown holds for what was released, but its size was not promised in advance."
    )


def theorem(kind: str) -> str:
    """What was applied, with its reference."""
    return _THEOREMS[kind]


def chain(head: str, broken: str) -> str:
    """Whether what follows stands on a chain that was verified: the first line of every reading.

    >>> print(chain("17:5f0c", ""))
    Chain verified up to entry 17; fingerprint of the last entry (head): 17:5f0c
    >>> print(chain("17:5f0c", "Entry 3 was edited."))
    THE CHAIN IS BROKEN, and nothing below can be relied on: Entry 3 was edited.
    """
    if broken:
        return f"THE CHAIN IS BROKEN, and nothing below can be relied on: {broken}"
    return f"Chain verified up to entry {head.partition(':')[0]}; {last_entry(head)}"


def last_entry(head: str) -> str:
    """What to keep elsewhere, as commands that write print it.

    >>> print(last_entry("17:5f0c"))
    fingerprint of the last entry (head): 17:5f0c
    """
    return f"fingerprint of the last entry (head): {head}"


def chain_facts(head: str, broken: str) -> dict[str, object]:
    """The same for machines."""
    return {"verified": not broken, "entries": int(head.partition(":")[0]), "head": head, "problem": broken or None}


def seeds(seeded: int, charges: int) -> str:
    """How many of the releases were made with a seed, if any.

    >>> seeds(2, 5), seeds(1, 1), seeds(0, 5)
    ('2 of 5 releases made with a seed: not private', 'the one release made with a seed: not private', '')
    """
    if not seeded:
        return ""
    many = "the one release" if charges == 1 else f"all {charges:,} releases" if seeded == charges else ""
    return f"{many or f'{seeded:,} of {charges:,} releases'} {SEEDED}"


def verdict(dataset: str, balance: tuple[str, str, str], delta: float, unit: str, charges: int, seeded: int = 0) -> str:
    """The report in one sentence; in two, where releases were made with a seed.

    >>> print(verdict("the census", ("2.156", "3", "0.844"), 1e-6, "one record", 4))
    All 4 releases from the census together are differentially private for one record, with ε = 2.156 at δ = 1e-6,
    within the limit of 3.
    >>> print(verdict("", ("0", "3", "3"), 0.0, "patient", 0))
    Nothing was released from the data.
    >>> print(verdict("", ("0.5", "3", "2.5"), 0.0, "one record", 3, 2))
    2 of the 3 releases from the data were made with a seed: not private, because whoever knows the seed can take the
    noise away. The other one is differentially private for one record, with ε = 0.5, within the limit of 3.
    """
    source = dataset or "the data"
    if not charges:
        return f"Nothing was released from {source}."
    price = f"ε = {balance[0]}" + (f" at δ = {number(delta)}" if delta else "")
    promise = f"differentially private for {whom(unit)}, with {price}, within the limit of {balance[1]}."
    every = "The one release" if charges == 1 else f"All {charges:,} releases"
    if not seeded:
        return f"{every} from {source} {'is' if charges == 1 else 'together are'} {promise}"
    rest = charges - seeded
    told = f"{f'{seeded:,} of the {charges:,} releases' if rest else every} from {source}"
    told += f" {'was' if seeded == 1 else 'were'} {SEEDED}, because whoever knows the seed can take the noise away."
    return f"{told} The other {'one is' if rest == 1 else f'{rest:,} together are'} {promise}" if rest else told
