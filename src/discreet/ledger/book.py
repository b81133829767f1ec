"""A book: a budget that is charged before data is read, and refuses what would exceed it.

Decisions 272 and 274.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.adjacency import Adjacency
from discreet.errors import BudgetExceeded, UnsupportedAdjacency, UnsupportedEvent, is_whole_text, nonnegative, number
from discreet.events import Event
from discreet.ledger import chain, groups, pricing, tree
from discreet.ledger.admission import count_affordable, plan_prices
from discreet.ledger.amounts import Amounts
from discreet.ledger.balance import balance
from discreet.ledger.chain import Entry
from discreet.ledger.errors import AlreadyCharged, LedgerError
from discreet.ledger.filters import quoted_at
from discreet.ledger.refusals import pure_only, refusal
from discreet.ledger.reservation import Reservation
from discreet.ledger.snapshot import Remaining, Snapshot, Spent, Standing, snapshot
from discreet.ledger.terms import Terms, check_name
from discreet.ledger.tree import BookNode, charge_path
from discreet.ledger.units import Charged, charged_unit, checked_asked, checked_key
from discreet.release import ONE_RECORD, Operation, Release, charged

if TYPE_CHECKING:
    from discreet.ledger.integrity import Keys
    from discreet.ledger.ledger import Ledger

__all__ = ["Book"]

_NO_PARTITION = {
    Adjacency.REPLACE: "a replaced record may leave one part and enter another, and then costs both.",
    Adjacency.ZERO_OUT: "a record that is blanked is no longer in the part it was in, which is then smaller, but what "
    "holds under 'zero-out' holds for data of the same size.",
}


class _Asked(NamedTuple):
    """A charge as it was asked for."""

    event: Event
    label: str
    kind: str
    delta: float | None
    unit: Charged  # and whether the release has a seed, and what it was asked for with

    def price(self, terms: Terms) -> Amounts:
        """The price leaf by leaf or, with a delta, of the whole; for as many rows at once as the unit may have. What
        was asked for with a delta is quoted there, or at as much as the book quotes at."""
        quotes = self.kind == "charge" and self.delta is None
        quote = quoted_at(self.unit.asked, terms.limit) if self.unit.asked and quotes else 0.0
        return groups.price(self.event, terms.adjacency, self.delta, self.unit.rows, quote)

    def usual_price(self, terms: Terms) -> Amounts | None:
        """The price of one more event, which needs no look at the book; none for what only a plan has a price."""
        try:
            return self.price(terms)
        except UnsupportedEvent:
            return None


class Book:
    """A budget in a ledger, from ``Ledger.open``; it satisfies the ``Book`` protocol of ``discreet.release``."""

    records_asked = True  # ``charge`` takes ``asked``

    def __init__(self, ledger: Ledger, name: str, terms: Terms) -> None:
        self.ledger = ledger
        self.name = name
        self.terms = terms

    def __repr__(self) -> str:
        return f"<Book {self.name!r}: {self.terms.describe()}>"

    def _repr_html_(self) -> str:
        standing = Standing.of(self._path()[0])
        spent, limit, left = balance(standing.spent.epsilon, standing.limit[0])
        facts = {
            "book": self.name,
            "spent": f"ε = {spent} of {limit} at δ = {standing.limit[1]:g}, {standing.spent.entries:,} charges",
            "left": f"ε = {left}",
            "protects": f"{self.terms.unit} ({self.terms.adjacency})",
        }
        rows = "".join(f"<tr><th>{name}</th><td>{escape(fact)}</td></tr>" for name, fact in facts.items())
        return f"<table>{rows}</table>"

    # --- charging --------------------------------------------------------------------------------------------------

    def charge(
        self,
        event: Event,
        label: str = "",
        *,
        unit: str = ONE_RECORD,
        delta: float | None = None,
        reproducible: bool = False,
        asked: tuple[float, float] | None = None,
        key: str | None = None,
    ) -> Entry:
        """Record the cost durably, before data is read, or raise ``BudgetExceeded`` and change nothing.

        The event may be chosen after seeing earlier answers. ``unit`` says whom it protects: an operation's ``unit``,
        or the caller's word; another than the book's is refused (``UnitMismatch``), or restated where the book knows
        how many rows a unit has. With ``delta``, the whole event is priced by the tight account at that part of the
        book's delta, instead of leaf by leaf. The first charge of a fresh book, if no filter admits it, is taken as a
        plan: it was fixed before any answer was seen. ``reproducible`` says that the release is made with a seed: it
        costs the same, and the history and the report say that it is not private. ``asked`` is the (epsilon, delta)
        that the release was asked for with: the book then counts it at no more than that, if the delta is a small part
        of its own. ``key`` names this one charge: a second one under it, by whatever process, is refused
        (``AlreadyCharged``), so that whoever asks again after a crash is not charged again.
        """
        return self._charge(event, label, "charge", unit, delta, reproducible, asked, key)

    def charged_under(self, key: str) -> int | None:
        """The number of the entry that charged this book under a key; none if nothing did."""
        with self.ledger._integrity.reading([]) as (_, seen):
            return seen.keys.get((self.name, key))

    def release(self, operation: Operation, data: Any = None, *, label: str = "", rng: Any = None) -> Release[Any]:
        """Charge what the operation states, then let it read the data: the one path, ``discreet.release.charged``.

        What public facts can refuse is refused before the charge; a refused charge leaves nothing, and nothing read.
        """
        return charged(operation, data, book=self, label=label, rng=rng)

    def plan(
        self,
        event: Event,
        label: str = "",
        *,
        unit: str = ONE_RECORD,
        delta: float | None = None,
        reproducible: bool = False,
    ) -> Reservation:
        """Charge everything that will be done, declared up front, at the price of the tight account.

        The tight account holds for events fixed in advance, so it is used while the book has no adaptive charge; later
        a plan is charged like any other event. By default a plan takes half of the book's delta, or all of it if it
        fits only so; ``delta`` says otherwise. Draw on the plan with its own ``charge``.
        """
        return Reservation(self._charge(event, label, "plan", unit, delta, reproducible), event, unit, reproducible)

    def reserve(
        self,
        event: Event,
        label: str = "",
        *,
        unit: str = ONE_RECORD,
        delta: float | None = None,
        reproducible: bool = False,
    ) -> Reservation:
        """Charge a long job before it starts; the job draws on the reservation with its own ``charge``.

        A crash keeps the charge, and so does leaving the block early: there are no refunds.
        """
        return Reservation(self._charge(event, label, "reserve", unit, delta, reproducible), event, unit, reproducible)

    def _charge(
        self,
        event: Event,
        label: str,
        kind: str,
        unit: str,
        delta: float | None,
        reproducible: bool,
        asked_for: tuple[float, float] | None = None,
        key: str | None = None,
    ) -> Entry:
        if not isinstance(event, Event):
            raise ValueError(f"event is a {type(event).__name__}, but must be an Event, such as an operation's .event.")
        self._refuse_partition()
        if not is_whole_text(label):
            raise ValueError(f"label is a {type(label).__name__}, but must be text, of whole characters.")
        charged = charged_unit(self.name, self.terms, unit, label, bool(reproducible))
        if asked_for is not None:
            charged = replace(charged, asked=checked_asked(asked_for))
        if key is not None:
            charged = replace(charged, key=checked_key(key))
        asked = _Asked(event, label, kind, delta, charged)
        price = None if kind == "plan" else asked.usual_price(self.terms)
        while True:
            if price and (entry := self._record(asked, price)):
                return entry
            # not admitted as an adaptive event, or someone else charged in between: look at what is left
            price = self._price(self._path(), asked)

    def _price(self, path: list[BookNode], asked: _Asked) -> Amounts:
        """The price at which the books on the path admit the event, or the refusal. Books only fill up, so a refusal
        by a state that is a moment old is still right; an admission is checked again under the lock."""
        pricing.refuse_nonprivate(asked.event)
        plans = plan_prices(path, asked.event, asked.delta, asked.unit.rows)
        if asked.kind == "plan" and (price := next(plans, None)):
            return price
        try:
            price = asked.price(self.terms)
        except UnsupportedEvent as reason:
            if fallback := next(plans, None):
                return fallback
            if not isinstance(reason, UnsupportedAdjacency) and (without := pure_only(path, asked.label)):
                raise BudgetExceeded(without) from None
            raise
        if charge_path(path, price):
            return price
        if fallback := next(plans, None):
            return fallback
        raise BudgetExceeded(refusal(path, price, asked.label, asked.unit.rows))

    def _record(self, asked: _Asked, price: Amounts) -> Entry | None:
        """Write the charge at this price, under the lock; nothing where a book on the path does not admit it."""
        with self.ledger._integrity.writing([self.name]) as writing:
            self._refuse_second(writing.keys, asked.unit.key)
            path = tree.path(writing.nodes, self.name)
            if path[0].terms != self.terms:  # the price was worked out for other terms
                raise LedgerError(
                    f"Book {self.name!r} has {path[0].terms.describe()}, but was opened here with "
                    f"{self.terms.describe()}: another ledger has taken its place. Nothing was charged. "
                    "Open the book again."
                )
            moved = charge_path(path, price)
            if moved is None:
                return None
            return writing.advance(
                moved,
                kind=asked.kind,
                label=asked.label,
                event=asked.event.to_json(),
                price=price.to_json(),
                terms=asked.unit.to_json(),
            )

    def _refuse_second(self, keys: Keys, key: str | None) -> None:
        if key is not None and (seq := keys.get((self.name, key))) is not None:
            raise AlreadyCharged(
                f"Book {self.name!r} was charged under this key before, by entry {seq}. Nothing was charged.", seq
            )

    # --- raising ---------------------------------------------------------------------------------------------------

    def raise_limit(self, *, epsilon: float = 0.0, delta: float = 0.0, why: str) -> Entry:
        """Raise the limit by (epsilon, delta), as the owner of the data decides; the ledger records who did it and why.

        What was charged so far keeps its part of the limit, the whole delta with it; what is charged from now on has a
        filter of its own, with the rest of epsilon and with this delta (``stages`` has the proof). With ``delta=0``
        only pure events are admitted from now on. Neither the books inside nor those above are raised, nor may a
        ceiling be passed.
        """
        self._refuse_partition()
        epsilon, delta = nonnegative("epsilon", epsilon), number("delta", delta, low=0, high=1, open_high=True)
        if not epsilon and not delta:
            raise ValueError("epsilon and delta are 0, but a raise adds to at least one of them.")
        if not is_whole_text(why) or not why.strip():
            raise ValueError(
                "why is empty, or not of whole characters, but a raise needs its reason: the report repeats it."
            )
        with self.ledger._integrity.writing([self.name]) as writing:
            node = tree.path(writing.nodes, self.name)[0].raise_limit(epsilon, delta)
            terms = json.dumps({"delta": delta, "epsilon": epsilon}, sort_keys=True, separators=(",", ":"))
            return writing.advance([node], kind="raise", label=why, terms=terms)

    # --- reading ---------------------------------------------------------------------------------------------------

    def snapshot(self, *, newest: int = 500, points: int = 400) -> Snapshot:
        """The book, all in it and its history, as they stand together, in one read transaction.

        It has the newest entries, and what was proved at up to so many points; its totals cover the whole history.
        """
        at = self.ledger.now()
        with self.ledger._integrity.reading() as (connection, seen):
            return snapshot(connection, seen, self.name, ledger=self.ledger.name, at=at, newest=newest, points=points)

    def _path(self) -> list[BookNode]:
        with self.ledger._integrity.reading(tree.lineage(self.name)) as (connection, seen):
            return tree.known_path(connection, seen.nodes, self.name)

    def spent(self) -> Spent:
        """What is guaranteed for all charges so far together, even if each was chosen after earlier answers."""
        return Standing.of(self._path()[0]).spent

    @property
    def limit(self) -> tuple[float, float]:
        """Epsilon and delta that may be spent in all: those at opening, and what raises added."""
        return Standing.of(self._path()[0]).limit

    def remaining(self) -> Remaining:
        """What is left. ``affords`` says how many charges of a given event would fit."""
        return Standing.of(self._path()[0]).remaining

    def affords(self, event: Event, *, unit: str = ONE_RECORD) -> int:
        """How many more times ``event`` could be charged, if nothing else were, up to a million."""
        return count_affordable(self._path(), event, unit)

    def entries(self, *, below: bool = True, newest: int | None = None) -> list[Entry]:
        """The history in order: this book's and, unless ``below`` is false, that of the books in it."""
        with self.ledger._integrity.reading(tree.lineage(self.name)) as (connection, _):
            return list(chain.read(connection, book=self.name, below=below, newest=newest))

    def additions(self) -> dict[int, float]:
        """By entry number: how much each charge, to this book or one inside it, added to what this book has spent."""
        added, before = {}, 0.0
        for entry, reading in self.snapshot(newest=1, points=10**9).readings:
            added[entry.seq], before = max(0.0, reading.epsilon - before), reading.epsilon
        return added

    # --- books inside ----------------------------------------------------------------------------------------------

    def sub(self, name: str, *, epsilon: float, delta: float = 0.0) -> Book:
        """A sub-book for one analyst or purpose: what is charged to it is charged to this book as well."""
        terms = self._inherit(epsilon, delta, "book")
        return self.ledger._open({f"{self.name}/{check_name(name)}": terms})[0]

    def split(self, name: str, parts: Sequence[str], *, epsilon: float | None = None, delta: float | None = None
              ) -> dict[str, Book]:  # fmt: skip
        """Books over disjoint parts of the records, all declared now: this book pays for the costliest part only.

        Which part a record is in must be a fixed function of the record and, where the book keeps a larger unit, of the
        unit: all records of one are in the same part. Refused under replace adjacency, where a record may leave one
        part and enter another; and under zero-out, where a blanked record has no part any more: it is missing from the
        one it was in, while what is charged there was proved for parts of the same size.
        """
        if reason := _NO_PARTITION.get(self.terms.adjacency):
            raise ValueError(f"adjacency is '{self.terms.adjacency}', but a partition needs 'add-remove': {reason}")
        if not parts or len(set(parts)) != len(parts):
            raise ValueError(f"parts has {len(parts)} names, {len(set(parts))} distinct, but needs distinct ones.")
        path = f"{self.name}/{check_name(name)}"
        wanted = {path: self._inherit(None, None, "partition")}
        wanted |= {f"{path}/{check_name(part)}": self._inherit(epsilon, delta, "part") for part in parts}
        return dict(zip(parts, self.ledger._open(wanted, partition=path)[1:], strict=True))

    def books(self) -> list[Book]:
        """The books directly inside this one."""
        return self.ledger.books(self)

    def _refuse_partition(self) -> None:
        """A partition stands at the largest of its declared parts; nothing else may be charged or opened there."""
        if self.terms.kind == "partition":
            raise ValueError(
                f"{self.name!r} is a partition, whose parts are fixed: use one of them, or the book above."
            )

    def _inherit(self, epsilon: float | None, delta: float | None, kind: str) -> Terms:
        self._refuse_partition()
        return Terms(
            epsilon=self.terms.epsilon if epsilon is None else epsilon,
            delta=self.terms.delta if delta is None else delta,
            adjacency=self.terms.adjacency,
            unit=self.terms.unit,
            rows_per_unit=self.terms.rows_per_unit,
            filter=self.terms.filter,
            kind=kind,
        )
