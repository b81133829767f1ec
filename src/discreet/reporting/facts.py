"""Everything the report says, gathered from a book as plain data: the JSON report is this, the HTML one shows it."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from discreet import accounting
from discreet.ledger.chain import Entry, library_version
from discreet.ledger.filters import POLICIES
from discreet.ledger.snapshot import Snapshot, Standing
from discreet.reporting import words
from discreet.reporting.attacker import trade_off, true_positive_rate
from discreet.reporting.charges import alone, epsilon_asked
from discreet.reporting.deployments import scale
from discreet.reporting.findings import Finding
from discreet.reporting.hazards import hazards

__all__ = ["gather"]

ALARMS = (0.01, 0.001)

ASSUMPTIONS = (
    "Every release from this data was charged to this book before the data was read. What was released elsewhere is "
    "not counted here.",
    "Each event states what its mechanism did: sensitivities, noise and sampling as declared. The library computes "
    "them for its own operations; events written by hand are taken at their word.",
    "One unit of privacy is as stated, and every release was made in it. Whoever contributes several units is "
    "protected less: the guarantee degrades with their number.",
    "Bounds, categories, sizes and the names and labels in this report are public: they were not taken from the data.",
)
ENTROPY = "Noise was drawn from the operating system's entropy."


def gather(
    seen: Snapshot,
    findings: Sequence[Finding] = (),
    *,
    dataset: str = "",
    purpose: str = "",
    recipients: str = "",
    author: str = "",
    room: str = "",
) -> dict[str, Any]:
    """The facts, JSON-ready; infinities become null."""
    facts = _gathered(seen, findings)
    balance = words.balance(seen.book.spent.epsilon, seen.book.limit[0])
    spent = facts["spent"]
    facts |= {"dataset": dataset, "purpose": purpose, "recipients": recipients, "author": author, "room": room}
    return facts | {
        "verdict": _verdict(seen, dataset, balance),
        "scale": scale(seen.book.name, spent["epsilon"], spent["delta"], facts["whom"]),
        "hazards": hazards(facts, dict(seen.units)),
    }


def _gathered(seen: Snapshot, findings: Sequence[Finding]) -> dict[str, Any]:
    book, terms = seen.book, seen.book.terms
    most, delta = book.limit
    return {
        "book": book.name,
        "generated": seen.at.isoformat(timespec="seconds"),
        "ledger": {"address": seen.ledger, **words.chain_facts(seen.head, seen.broken)},
        "chain": words.chain(seen.head, seen.broken),
        "seeded": book.seeded,
        "unit": terms.unit,
        "rows_per_unit": terms.rows_per_unit,
        "whom": words.whom(terms.unit),
        "adjacency": str(terms.adjacency),
        "neighbours": words.neighbours(terms.adjacency, terms.unit),
        "limit": {"epsilon": most, "delta": delta, "filter": terms.filter},
        "at_opening": {"epsilon": terms.epsilon, "delta": terms.delta},
        "ceiling": None if terms.max_epsilon is None else {"epsilon": terms.max_epsilon, "delta": terms.max_delta},
        "raises": [_raise(entry) for entry in seen.raises],
        **_guarantees(book),
        **_attacker(seen),
        "trail": [
            {"seq": entry.seq, "at": entry.at, "epsilon": _finite(then.epsilon), "filter_used": _finite(then.fraction)}
            for entry, then in seen.readings
        ],
        "findings": [asdict(found) for found in findings],
        "books": [_inner(inner) for inner in seen.inside],
        "theorems": _theorems(book),
        "entries": [_entry(entry, book) for entry in seen.entries],
        "assumptions": [
            *ASSUMPTIONS,
            *_entropy(seen),
            *_statements(seen),
            *([words.raise_text(terms.max_epsilon is not None)] if seen.raises else []),
        ],
        "glossary": words.GLOSSARY,
        "together": [words.ASKED, words.TOGETHER],
        "versions": {
            "discreet": library_version(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "written_by": sorted({entry.version for entry in seen.entries}),
        },
    }


def _verdict(seen: Snapshot, dataset: str, balance: tuple[str, str, str]) -> str:
    spent, unit = seen.book.spent, seen.book.terms.unit
    if seen.broken:
        return "Nothing on this page is vouched for: the chain of the ledger is broken."
    return words.verdict(dataset, balance, spent.delta, unit, spent.entries, seen.book.seeded)


def _entropy(seen: Snapshot) -> list[str]:
    """Where the noise came from, as far as the ledger knows."""
    book = seen.book
    if book.seeded:
        return [f"{words.seeds(book.seeded, book.charges).capitalize()}: whoever knows the seed can take it away."]
    if unknown := seen.unknown_seeds:
        return [
            f"{ENTROPY} For {unknown:,} of the releases this is assumed: a version wrote them that recorded no seeds."
        ]
    return [f"{ENTROPY} A release made with a seed would be recorded as such, and named here."]


def _guarantees(book: Standing) -> dict[str, Any]:
    spent = book.spent
    proved, whole, left = words.balance(spent.epsilon, book.limit[0])
    return {
        "spent": {
            "epsilon": _finite(spent.epsilon),
            "delta": spent.delta,
            "proof": spent.proof,
            "filter_used": _finite(spent.fraction),
            "charges": spent.entries,
        },
        "remaining": {"epsilon": book.remaining.epsilon},
        "balance": {"proved": proved, "limit": whole, "left": left},
    }


def _attacker(seen: Snapshot) -> dict[str, Any]:
    """What could be learnt now, and at the limit."""
    pairs, source = _pairs(seen)
    most, delta = seen.book.limit
    limit = [(delta, most)]
    rates, misses = trade_off(pairs)
    return {
        "attacker": [
            {"false_positive_rate": x, "now": true_positive_rate(x, pairs), "at_limit": true_positive_rate(x, limit)}
            for x in ALARMS
        ],
        "curve": [{"delta": delta, "epsilon": _finite(epsilon)} for delta, epsilon in pairs],
        "curve_source": source,
        "trade_off": {
            "false_positive_rate": rates,
            "false_negative_rate_now": misses,
            "false_negative_rate_at_limit": trade_off(limit)[1],
        },
    }


def _statements(seen: Snapshot) -> list[str]:
    """What rests on somebody's word about the unit: the owner's on its rows, the analyst's on what a record is."""
    unit, rows = words.whom(seen.book.terms.unit), seen.book.terms.rows_per_unit
    found = []
    if seen.units.get("converted"):
        found.append(
            f"One unit has at most {rows:,} row{'s' * (rows != 1)}, as was declared when the book was opened and is "
            "not checked: releases that protect one row were restated for so many."
        )
    if said := seen.units.get("said"):
        found.append(
            f"For {said:,} of the releases it was said, and is not checked, that each of their records is {unit}."
        )
    if silent := seen.units.get(""):
        found.append(
            f"{silent:,} of the releases were written by a version that kept no unit: who is protected by them is not "
            "recorded."
        )
    return found


def _pairs(seen: Snapshot) -> tuple[list[tuple[float, float]], str]:
    """(delta, epsilon) pairs that are proved now, from small deltas to large, and how."""
    book = seen.book
    deltas = [float(f"{x:.3g}") for x in np.logspace(-12, -1, 45)]
    if book.limit[1]:
        deltas = sorted({*deltas, book.limit[1]})
    planned = _only_plan(seen)
    if planned is not None and (event := planned.cost):
        rows = planned.unit.rows if planned.unit else 1
        guarantee = accounting.guarantee(event, adjacency=book.terms.adjacency, group_size=rows)
        return [(delta, guarantee.epsilon(delta)) for delta in deltas], "the tight account of the plan"
    amounts = book.amounts
    pure = math.inf if amounts.planned or amounts.delta or amounts.quoted else amounts.pure
    pairs = [(0.0, float(pure)), *((delta, book.reading_at(delta).epsilon) for delta in deltas)]
    # what is proved at a delta holds at every larger one
    best = np.minimum.accumulate([epsilon for _, epsilon in pairs])
    proved = [(delta, float(epsilon)) for (delta, _), epsilon in zip(pairs, best, strict=True)]
    return proved, "the accounting rules, read at each delta"


def _only_plan(seen: Snapshot) -> Entry | None:
    """The charge of a book that holds one plan and nothing else; after a second, the choice of it has seen answers."""
    amounts = seen.book.amounts
    if amounts.adaptive or not amounts.planned or seen.book.charges != 1:
        return None
    return seen.first_charge


def _theorems(book: Standing) -> list[dict[str, Any]]:
    shares, stage = POLICIES[book.terms.filter], book.stage
    left = float(stage.limit.less(stage.amounts).delta)
    listed: list[dict[str, Any]] = []
    if stage.before_epsilon or stage.before_delta:
        listed.append({"text": words.theorem("raise"), "delta": float(stage.before_delta)})
    if stage.amounts.planned:
        listed.append({"text": words.theorem("plan"), "delta": float(stage.amounts.planned_delta)})
    listed.append({"text": words.theorem("pure"), "delta": 0.0})
    for kind, part in shares.items():
        if part and left:
            listed.append({"text": words.theorem(kind), "delta": left * float(part)})
    return listed


def _inner(book: Standing) -> dict[str, Any]:
    spent = book.spent
    return {
        "name": book.name,
        "kind": book.terms.kind,
        "epsilon": _finite(spent.epsilon),
        "limit": book.limit[0],
        "delta": book.limit[1],
        "charges": spent.entries,
    }


def _entry(entry: Entry, book: Standing) -> dict[str, Any]:
    event, terms = entry.cost, (book.terms.adjacency, book.limit[1])
    own, asked = alone(entry, *terms), epsilon_asked(entry, *terms)
    return {
        "seq": entry.seq,
        "at": entry.at,
        "who": entry.who,
        "book": entry.book,
        "kind": entry.kind,
        "label": entry.label,
        "unit": words.unit_text(entry),
        "seeded": entry.seeded,
        "what": str(event) if event else words.agreement_text(entry),
        "event": event.to_dict() if event else None,
        "epsilon_alone": None if own is None else _finite(own),
        "epsilon_asked": None if asked is None else _finite(asked),
        "epsilon": _finite(float(entry.epsilon)) if entry.epsilon else None,
        "delta": float(entry.delta) if entry.delta else None,
        "proof": entry.proof,
        "hash": entry.hash,
    }


def _raise(entry: Entry) -> dict[str, Any]:
    epsilon, delta = entry.increment
    return {"seq": entry.seq, "at": entry.at, "who": entry.who, "why": entry.label, "epsilon": epsilon, "delta": delta}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
