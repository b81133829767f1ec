"""A ledger as a state machine: whatever is done to it, in whatever order, it keeps what it promised.

Charges, plans, reservations, sub-books, partitions, reopening, forks, kills in the middle of a charge and tampering, in
random order, beside a model that knows only what was told to whom. After every step: the history is exactly what was
admitted; nothing that was told goes beyond a limit, or beyond what a book says it has proved; what surely fits is
admitted; what was tampered with refuses the next charge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from discreet import events
from discreet.errors import BudgetExceeded, UnitMismatch
from discreet.events import Event
from discreet.ledger import Book, Ledger, LedgerError, Reservation, schema
from discreet.ledger.amounts import exact
from discreet.release import ONE_RECORD
from tests.ledger.adversary import GRID, Shelf, Told
from tests.ledger.children import in_child
from tests.ledger.tampering import change, dump, restore, unguarded

LIMITS = st.sampled_from([0.5, 1.0, 3.0])
DELTAS = st.sampled_from([0.0, 1e-6, 1e-6, 1e-2])
FILTERS = st.sampled_from(["asked", "asked", "mixed", "gaussian", "renyi", "basic"])
EVENTS = st.sampled_from(
    [
        *(events.PureDP(epsilon=step / GRID) for step in (0, 1, 1, 2, 4)),
        *(events.Gaussian(noise_multiplier=noise) for noise in (1.5, 5.0, 20.0, 80.0, 200.0)),
        events.ApproxDP(epsilon=0.05, delta=1e-8),
        events.ApproxDP(epsilon=0.0, delta=1e-3),
    ]
)
UNITS = st.sampled_from([(ONE_RECORD, None)] * 3 + [("patient", None), ("patient", 1), ("patient", 2), ("patient", 3)])
COUNTS = st.integers(1, 6)
INDEX = st.integers(0, 10**6)
KINDS = st.sampled_from(["charge", "charge", "charge", "plan", "reserve"])
CHARGES = st.tuples(INDEX, EVENTS, COUNTS, st.sampled_from([None, None, 1e-8]), KINDS, st.integers(0, 4).map(bool))


@dataclass
class Job:
    """A reservation, and what the model says is left of it."""

    reservation: Reservation
    event: Event
    left: int
    unit: str


@dataclass
class Tried:
    """How often each thing was done, over all runs of a search."""

    counts: Counter[str] = field(default_factory=Counter)


TRIED = Tried()


class LedgerMachine(RuleBasedStateMachine):
    """``address`` makes the url of an empty ledger; a subclass gives it."""

    address: Callable[[], str]

    def __init__(self) -> None:
        super().__init__()
        self.shelves: dict[str, Shelf] = {}
        self.labels: list[str] = []  # of every admitted charge, in order
        self.jobs: list[Job] = []
        self.opened = 0
        self.heads: list[str] = []

    @initialize(epsilon=LIMITS, delta=DELTAS, filter=FILTERS, whom=UNITS)
    def start(self, epsilon: float, delta: float, filter: str, whom: tuple[str, int | None]) -> None:
        self.url = type(self).address()
        self.ledgers = [Ledger(self.url, who="one"), Ledger(self.url, who="other")]
        self.heads = [self.ledgers[0].head()]
        self.open_book(epsilon, delta, filter, whom)

    def teardown(self) -> None:
        if hasattr(self, "ledgers"):
            self.ledgers[0].verify()
            for ledger in self.ledgers:
                ledger.close()

    # --- books -----------------------------------------------------------------------------------------------------

    def books_named(self, index: int, which: int = 0) -> Book:
        names = [name for name, shelf in self.shelves.items() if shelf.kind != "partition"]
        return self.ledgers[which].book(names[index % len(names)])

    @rule(epsilon=LIMITS, delta=DELTAS, filter=FILTERS, whom=UNITS)
    @precondition(lambda self: len(self.shelves) < 8)
    def open_another(self, epsilon: float, delta: float, filter: str, whom: tuple[str, int | None]) -> None:
        self.open_book(epsilon, delta, filter, whom)

    def open_book(self, epsilon: float, delta: float, filter: str, whom: tuple[str, int | None]) -> None:
        name, (unit, rows) = f"book {self.opened}", whom
        self.ledgers[0].open(name, epsilon=epsilon, delta=delta, filter=filter, unit=unit, rows_per_unit=rows)
        self.shelves[name] = Shelf(epsilon, delta, unit=unit, rows=rows)
        self.opened += 1
        TRIED.counts["book"] += 1

    @rule(index=INDEX, epsilon=LIMITS, delta=DELTAS)
    @precondition(lambda self: 0 < len(self.shelves) < 8)
    def open_inside(self, index: int, epsilon: float, delta: float) -> None:
        above = self.books_named(index)
        inner = above.sub(f"sub {self.opened}", epsilon=epsilon, delta=delta)
        self.place(above.name, inner.name, Shelf(epsilon, delta))
        TRIED.counts["sub-book"] += 1

    @rule(index=INDEX)
    @precondition(lambda self: 0 < len(self.shelves) < 6)
    def split(self, index: int) -> None:
        above = self.books_named(index)
        name = f"{above.name}/parts {self.opened}"
        parts = above.split(name.rsplit("/")[-1], ["north", "south"])
        self.place(above.name, name, Shelf(above.terms.epsilon, above.terms.delta, "partition"))
        for part in parts.values():
            self.place(name, part.name, Shelf(part.terms.epsilon, part.terms.delta, "part"))
        TRIED.counts["partition"] += 1

    def place(self, above: str, name: str, shelf: Shelf) -> None:
        shelf.unit, shelf.rows = self.shelves[above].unit, self.shelves[above].rows
        self.shelves[above].inside.append(shelf)
        self.shelves[name] = shelf
        self.opened += 1

    # --- charges ---------------------------------------------------------------------------------------------------

    @rule(asked=st.lists(CHARGES, min_size=1, max_size=5), which=st.integers(0, 1))
    @precondition(lambda self: self.shelves)
    def charge(self, asked: list[tuple[int, Event, int, float | None, str, bool]], which: int) -> None:
        for one in asked:
            self.charge_once(which, *one)

    def charge_once(
        self, which: int, index: int, event: Event, count: int, delta: float | None, kind: str, own: bool
    ) -> None:
        """In the book's own unit, or in another, which is refused unless the book knows how many rows a unit has."""
        book = self.books_named(index, which)
        shelf = self.shelves[book.name]
        unit = shelf.unit if own else "patient" if shelf.unit == ONE_RECORD else ONE_RECORD
        rows = 1 if own else shelf.rows if unit == ONE_RECORD else None
        told = (event, count, rows or 1)
        surely = kind == "charge" and delta is None and rows is not None and self.surely_fits(book.name, told)
        before = self.ledgers[0].head()
        asked = {"asked": (0.5, (1e-8, 1e-7, 0.5)[index % 3])} if kind == "charge" and index % 4 else {}
        try:
            made: Any = getattr(book, kind)(
                event * count, label=f"charge {len(self.labels)}", delta=delta, unit=unit, **asked
            )
        except BudgetExceeded:
            assert not surely, "what fits by the plain sum is admitted"
            assert self.ledgers[0].head() == before
            TRIED.counts["refused"] += 1
            return
        except UnitMismatch:
            assert rows is None, "a unit that the book keeps, or can convert, is not refused"
            assert self.ledgers[0].head() == before
            TRIED.counts["refused: another unit"] += 1
            return
        assert rows is not None, "a charge that protects somebody else is refused"
        self.admit(book.name, told)
        if kind != "charge":
            self.jobs.append(Job(made, event, count, unit))
        TRIED.counts[kind if rows == 1 else f"{kind}, converted"] += 1

    @rule(index=INDEX, epsilon=st.sampled_from([0.0, 0.5, 1.0]), delta=st.sampled_from([0.0, 0.0, 1e-6]))
    @precondition(lambda self: self.shelves)
    def raise_limit(self, index: int, epsilon: float, delta: float) -> None:
        """What was promised grows by exactly this, for what was told before and what is told after."""
        book = self.books_named(index)
        if epsilon or delta:
            book.raise_limit(epsilon=epsilon, delta=delta, why="asked for")
            shelf = self.shelves[book.name]
            shelf.epsilon, shelf.delta, shelf.raised = shelf.epsilon + epsilon, shelf.delta + delta, True
            TRIED.counts["raise"] += 1

    def admit(self, name: str, told: Told) -> None:
        self.shelves[name].told.append(told)
        self.labels.append(f"charge {len(self.labels)}")

    def surely_fits(self, name: str, told: Told) -> bool:
        """Whether only pure events were told on the way up, and their plain sum stays within every limit."""
        if not isinstance(told[0], events.PureDP):
            return False
        shelf = self.shelves[name]
        shelf.told.append(told)
        parts = name.split("/")
        way = [self.shelves["/".join(parts[:length])] for length in range(1, len(parts) + 1)]
        known = [(above, one) for above in way for one in above.knowledge()]
        shelf.told.pop()
        if any(above.raised for above in way):  # a raised book pays for every part in full
            return False
        return all(not one.mu2 and one.safe == 1 and one.worst <= above.epsilon * GRID for above, one in known)

    @rule(index=INDEX, count=COUNTS, event=EVENTS, same=st.booleans())
    @precondition(lambda self: self.jobs)
    def draw(self, index: int, count: int, event: Event, same: bool) -> None:
        job = self.jobs[index % len(self.jobs)]
        event = job.event if same else event
        try:
            job.reservation.charge(event * count, label="drawn", unit=job.unit)
        except BudgetExceeded:
            assert event != job.event or count > job.left
            return
        assert event == job.event
        job.left -= count
        assert job.left >= 0
        TRIED.counts["draw"] += 1

    # --- processes -------------------------------------------------------------------------------------------------

    @rule(index=INDEX)
    @precondition(lambda self: self.jobs)
    def draw_in_a_child(self, index: int) -> None:
        job = self.jobs[index % len(self.jobs)]

        def work(say: Callable[[str], None]) -> None:
            try:
                job.reservation.charge(job.event, unit=job.unit)
                say("drawn")
            except BudgetExceeded:
                say("refused")

        assert in_child(work) == ["refused"]
        TRIED.counts["draw in a child"] += 1

    @rule(
        index=INDEX, event=EVENTS, count=COUNTS, copied=st.booleans(), patience=st.one_of(st.none(), st.integers(0, 3))
    )
    @precondition(lambda self: self.shelves)
    def charge_in_a_child(self, index: int, event: Event, count: int, copied: bool, patience: int | None) -> None:
        """By the copied ledger or by one of its own; perhaps killed after so many words, wherever it is then."""
        name, first = self.books_named(index).name, len(self.labels)
        ledger, unit = self.ledgers[0], self.shelves[name].unit

        def work(say: Callable[[str], None]) -> None:
            book = (ledger if copied else Ledger(self.url)).book(name)
            for turn in range(3 if patience is None else 10**6):
                try:
                    book.charge(event * count, label=f"charge {first + turn}", unit=unit)
                except BudgetExceeded:
                    return say("refused")
                say(f"charge {first + turn}")

        said = in_child(work, patience)
        found = [entry.label for entry in self.ledgers[1].entries() if entry.kind not in ("open", "raise")][first:]
        acknowledged = [word for word in said if word != "refused"]
        assert found[: len(acknowledged)] == acknowledged, "an acknowledged charge is there"
        assert len(found) - len(acknowledged) <= (patience is not None), "at most one was cut off before its word"
        for _ in found:
            self.admit(name, (event, count, 1))
        TRIED.counts["fork" if patience is None else "kill"] += 1
        TRIED.counts["charge in a child"] += len(found)

    @rule(which=st.integers(0, 1))
    @precondition(lambda self: self.labels)
    def reopen(self, which: int) -> None:
        self.ledgers[which].close()
        self.ledgers[which] = Ledger(self.url, who="again", create=False)
        TRIED.counts["reopening"] += 1

    # --- tampering -------------------------------------------------------------------------------------------------

    @rule(
        index=INDEX,
        number=INDEX,
        other=INDEX,
        column=st.sampled_from(sorted(schema.entries.columns.keys())),
        way=st.sampled_from(
            [
                "edit",
                "delete",
                "swap",
                "cut",
                "copy",
                "totals",
                "terms",
                "count",
                "row",
                "head",
                "hash",
                "two heads",
                "free",
                "refund",
                "limit",
            ]
        ),
    )
    @precondition(lambda self: self.shelves)
    def tamper(self, index: int, number: int, other: int, column: str, way: str) -> None:
        """Whatever changes anything refuses the next charge, of the running process and of one that starts then."""
        book = self.books_named(index)
        engine = self.ledgers[0]._store._engine.execution_options()
        outside = sa.create_engine(
            engine.url, connect_args=self.ledgers[0]._store.address.arguments, poolclass=sa.NullPool
        )
        with outside.begin() as connection:
            unguarded(connection)
            before = dump(connection)
            change(connection, way, book.name, number, other, column)
            after = dump(connection)
        try:
            if after != before:
                self.refuses(book.name, self.ledgers[number % 2])
                TRIED.counts[f"tampering: {way}"] += 1
        finally:
            with outside.begin() as connection:
                restore(connection, before)
            outside.dispose()

    def refuses(self, name: str, running: Ledger) -> None:
        """A running ledger, whoever wrote what it has not read yet, and a fresh one."""
        fresh = Ledger(self.url, create=False)
        for ledger in (running, fresh):
            TRIED.counts["tampering, running" if ledger is running else "tampering, fresh"] += 1
            attempts: list[Callable[[], object]] = [
                lambda ledger=ledger: ledger.book(name).charge(
                    events.PureDP(epsilon=0.0), unit=self.shelves[name].unit
                ),
                lambda ledger=ledger: ledger.open("after tampering", epsilon=1.0),
                ledger.verify,
            ]  # type: ignore[assignment]
            for attempt in attempts:
                try:
                    attempt()
                except LedgerError:
                    continue
                raise AssertionError("tampering was not refused")
        fresh.close()

    # --- what must hold --------------------------------------------------------------------------------------------

    @invariant()
    def the_history_is_what_was_admitted(self) -> None:
        if not self.shelves:
            return
        TRIED.counts["step"] += 1
        entries = self.ledgers[1].entries()
        assert [entry.label for entry in entries if entry.kind not in ("open", "raise")] == self.labels
        for name, shelf in self.shelves.items():
            spent = self.ledgers[1].book(name).spent()
            inside = [entry for entry in entries if entry.price and f"{entry.book}/".startswith(f"{name}/")]
            assert spent.entries == len(inside)
            if shelf.kind == "partition":
                continue
            assert exact(spent.epsilon) <= exact(shelf.epsilon)
            for known in shelf.knowledge():
                for claimed in {spent.epsilon, shelf.epsilon}:
                    within(known, claimed, shelf.delta)

    @rule(number=INDEX)
    @precondition(lambda self: self.labels)
    def verify(self, number: int) -> None:
        """Against any head that was ever seen."""
        self.heads.append(self.ledgers[0].head())
        assert self.ledgers[1].verify(head=self.heads[number % len(self.heads)]).anchored
        TRIED.counts["verification"] += 1


def within(known: Any, epsilon: float, delta: float) -> None:
    """What was told is (epsilon, delta)-DP, exactly where that is a matter of whole numbers."""
    if delta == 0:
        assert known.mu2 == 0
        assert known.safe == 1
        assert Fraction(known.worst, GRID) <= exact(epsilon)
    else:
        assert known.delta(epsilon) <= delta * (1 + 1e-9) + 1e-15
