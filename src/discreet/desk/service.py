"""What a desk does for a person: explains, charges once, answers once, keeps what it answered, waits for the owner.

A question with a key is charged once. The decision is the ledger's: the entry bears the key, in the sub-book of who
asks, and a second charge under it is refused in the same transaction that would make it. What comes after it can fail
in one way only: the answer is withheld, and says so for ever, for a second draw would be a second release.

Decision 570.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import sleep
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

from discreet.accounting import epsilon as epsilon_of
from discreet.desk.approvals import is_over
from discreet.desk.charging import Charge, Withdrawal, open_books, sub_book
from discreet.desk.configuration import Configuration, Dataset
from discreet.desk.errors import NOT_THERE, Refusal
from discreet.desk.people import add_person, new_token, raise_limit
from discreet.desk.public_tables import empty_table, read_declaration
from discreet.desk.questions import DeskQuestion, count_numbers
from discreet.desk.replies import BUSY, Reply, reply_of
from discreet.desk.sources import bind_sources
from discreet.desk.state import Asking, DeskState, Person
from discreet.desk.workers import Job, Workers
from discreet.errors import DiscreetError
from discreet.events import Event
from discreet.ledger import Book, ChainBroken, Ledger, LedgerError
from discreet.ledger.chain import parse_head
from discreet.tables.table import Table

__all__ = ["Service"]

Result = TypeVar("Result")

KEY_TAKEN = "Another question was asked under this key: choose a new one."
MOST_WAITING = 8  # questions of one person that are queued at once
MOST_UNDECIDED = 20  # that wait for the owner
_ROOM, _BYTES_A_NUMBER = 8192, 90  # of an answer, each number with the two ends of its interval


class Service:
    """A desk without its address: the configuration, the books, the state, the workers."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._in_flight: set[int] = set()  # numbers of questions whose reply has not left
        self._withdrawals: dict[int, Withdrawal] = {}  # of questions that run, by number
        self._claims: Counter[tuple[str, str]] = Counter()  # how often each person's key is at work, in this process
        self._turns: dict[str, asyncio.Lock] = {}
        self._waiting: dict[str, int] = {}
        with ExitStack() as opened:
            self.ledger = Ledger(configuration.ledger, who="desk")
            opened.callback(self.ledger.close)
            self.state = DeskState(configuration.state)
            opened.callback(self.state.close)
            self.books = open_books(self.ledger, configuration)
            self.workers = self._start_workers()
            opened.callback(self.workers.close)
            self.facts = self.workers.facts
            if self.workers.schemas != self.contents:
                raise DiscreetError("A schema was edited while the desk started: start it anew.")
            bind_sources(self.state, configuration, self.contents, self.facts, self.workers.places)
            self.tables: dict[str, Table] = {
                name: empty_table(name, self.contents[name], self.facts[name]) for name in configuration.datasets
            }
            self._refuse_older_ledger()
            self._withhold_interrupted()
            self._opened = opened.pop_all()

    def _start_workers(self) -> Workers:
        read = {name: read_declaration(each.schema) for name, each in self.configuration.datasets.items()}
        self.declared = {name: declared for name, (declared, _) in read.items()}
        self.contents = {name: contents for name, (_, contents) in read.items()}
        files: dict[str, tuple[str | None, ...]] = {
            name: (str(each.source), str(each.schema), each.table) for name, each in self.configuration.datasets.items()
        }
        options = self.configuration
        return Workers(options.workers, files, options.memory, unconfined=options.unconfined)

    def close(self) -> None:
        """End the workers, and give the connections back."""
        self._opened.close()

    def _refuse_older_ledger(self) -> None:
        """Refuse a ledger that lacks a charge whose answer was kept: it was put back to an earlier day."""
        answered = self.state.questions(state="answered")
        head = max((asking.answer["head"] for asking in answered), key=lambda text: parse_head(text)[0], default=None)
        try:
            self.ledger.verify(head)
        except ChainBroken as error:
            raise DiscreetError(
                f"The ledger does not hold what this desk has answered: {error} Nothing is served: its budget would be "
                "spent twice. Put the newest ledger back."
            ) from None

    def _withhold_interrupted(self) -> None:
        """What ran when the desk last stopped: charged, it is withheld; not charged, it was never asked."""
        for asking in self.state.questions(state="running", most=None):
            with suppress(Refusal):  # the asker's book is not there: that is said when it is asked again
                self._take_back(asking)

    def book(self, dataset: Dataset, person: str) -> Book:
        """The sub-book that a person's questions about a data set are charged to."""
        return sub_book(self.ledger, dataset, person)

    # --- what is public ----------------------------------------------------------------------------------------------

    def dataset(self, person: Person, name: str) -> Dataset:
        """A data set that the person may ask about; another is not there."""
        dataset = self.configuration.datasets.get(name)
        if dataset is None or not person.may_see(name):
            raise Refusal(404, "not_found", NOT_THERE)
        return dataset

    def describe(self, person: Person, name: str) -> dict[str, Any]:
        """The public facts of a data set, its limits, and what the person has left."""
        dataset = self.dataset(person, name)
        book = self.books[name] if person.role != "analyst" else self.book(dataset, person.name)
        limit, left = book.limit, book.remaining()
        return {
            "name": name,
            "schema": self.contents[name],
            "facts": self.facts[name],
            "limit": {"epsilon": limit[0], "delta": limit[1]},
            "left": {"epsilon": left.epsilon},
            "largest_epsilon": _finite(dataset.largest_epsilon),
            "approval_above": _finite(dataset.approval_above),
            "tick": self.configuration.tick,
            "deadline": self.configuration.deadline,
        }

    def operation(self, question: DeskQuestion) -> Any:
        """The question as an operation on no rows: its cost and its errors are those of the records; or a refusal."""
        name = question.dataset
        return _public(lambda: question.operation(self.tables[name], self.declared[name]))

    def explain(self, person: Person, question: DeskQuestion) -> dict[str, Any]:
        """What a question would do and cost; nothing is charged."""
        dataset = self.dataset(person, question.dataset)
        operation = self.operation(question)
        explanation = operation.explain()
        return {
            "text": str(explanation),
            "event": operation.event.to_dict(),
            "unit": str(operation.unit),
            "errors": dict(explanation.errors),
            "needs_approval": _waits(question, self._epsilon(question, operation.event, dataset), dataset),
        }

    def _epsilon(self, question: DeskQuestion, event: Event, dataset: Dataset) -> float:
        """What is compared with the limits of one question: the epsilon that is asked for, or what rho comes to."""
        if question.budget.epsilon is not None:
            return question.budget.epsilon
        if not dataset.delta:
            raise Refusal(422, "invalid", "rho needs a delta, but the book of this data set has none: ask by epsilon.")
        return float(epsilon_of(event, delta=dataset.delta))

    # --- what an owner does ------------------------------------------------------------------------------------------

    def people(self) -> list[dict[str, Any]]:
        """Everybody, with how many tokens they have that have not expired."""
        return [
            {"name": each.name, "role": each.role, "datasets": list(each.datasets),
             "tokens": self.state.token_count(each.name)}
            for each in self.state.people()
        ]  # fmt: skip

    def add_person(self, name: str, role: str, shares: Mapping[str, tuple[float, float]], *, days: float = 90.0) -> str:
        """Add a person, with a sub-book of each data set in ``shares``: their token, which is shown once."""
        return _owners(lambda: add_person(self.ledger, self.state, self.configuration, name, role, shares, days=days))

    def new_token(self, name: str, *, days: float = 90.0) -> str:
        """One more token for somebody who is there: shown once."""
        return _owners(lambda: new_token(self.state, name, days=days))

    def revoke(self, name: str) -> int:
        """Take back every token of a person, who may ask nothing from now on; how many there were."""
        return self.state.revoke(name)

    def raise_limit(
        self, by: Person, name: str, person: str | None, *, epsilon: float = 0.0, delta: float = 0.0, why: str
    ) -> dict[str, Any]:
        """Raise what a person, or for none everybody together, may spend on a data set: an entry in the chain."""
        dataset = self.dataset(by, name)
        options: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "why": why, "by": by.name}
        entry = _owners(lambda: raise_limit(self.ledger, dataset, person, **options))
        return {"entry": entry.seq, "head": f"{entry.seq}:{entry.hash}"}

    # --- asking ------------------------------------------------------------------------------------------------------

    async def release(self, person: Person, key: str, question: DeskQuestion) -> Reply:
        """The answer to a question: charged now, or stored when it was asked before."""
        if self._claims[person.name, key]:
            return await asyncio.to_thread(self._reply_at_work, person, key, question)
        with self._claimed(person.name, key):
            asking = await asyncio.to_thread(self._admit, person, key, question)
            return asking if isinstance(asking, Reply) else await self._run(person, asking, question)

    async def stored(self, person: Person, key: str) -> Reply:
        """What is said of a question that was asked before."""
        at_work = self._claims[person.name, key] > 0
        with self._claimed(person.name, key):
            known = await asyncio.to_thread(self.state.question, person.name, key)
            if known is not None and not at_work:
                known = await asyncio.to_thread(self._settle_interrupted, known)
        if known is None:
            raise Refusal(404, "not_found", NOT_THERE)
        return reply_of(self.shown(known))

    @contextmanager
    def _claimed(self, person: str, key: str) -> Iterator[None]:
        """As long as it lasts, a question that runs under this key is at work here, and was not interrupted."""
        self._claims[person, key] += 1
        try:
            yield
        finally:
            self._claims[person, key] -= 1
            if not self._claims[person, key]:
                del self._claims[person, key]

    def _reply_at_work(self, person: Person, key: str, question: DeskQuestion) -> Reply:
        """What is said where another request with this key is at work."""
        known = self.state.question(person.name, key)
        if known is None:
            raise Refusal(409, "busy", BUSY)
        if known.digest != question.digest(person.name):
            raise Refusal(409, "key_taken", KEY_TAKEN)
        return reply_of(self.shown(known))

    def _settle_interrupted(self, known: Asking) -> Asking | None:
        """What became of a question that runs, as its state says, but not here: its books or its state were out of
        reach when it ended. The ledger says whether it was charged (decision 575).
        """
        if known.state != "running":
            return known
        self._take_back(known)
        return self.state.question_number(known.number)

    def _admit(self, person: Person, key: str, question: DeskQuestion) -> Asking | Reply:
        """A question that may run now; or the reply to one that was asked before, waits, or is refused."""
        known = self.state.question(person.name, key)
        if known is not None and known.digest != question.digest(person.name):
            raise Refusal(409, "key_taken", KEY_TAKEN)
        if known is not None and (known := self._settle_interrupted(known)) is not None:
            return self._resume(known, person, question)
        dataset, size, numbers = self._admissible(person, question)
        state = "waiting" if _waits(question, size, dataset) else "running"
        if state == "waiting" and len(self.state.questions(person.name, "waiting")) >= MOST_UNDECIDED:
            raise Refusal(429, "too_many_waiting", f"{MOST_UNDECIDED} questions of yours wait for the owner.")
        room = _ROOM + _BYTES_A_NUMBER * numbers
        new = self.state.begin(person.name, key, question.digest(person.name), question.to_dict(), state, room=room)
        asking = self.state.question(person.name, key)
        if asking is None or not new:
            raise Refusal(409, "busy", BUSY)
        return asking if state == "running" else reply_of(asking)

    def _admissible(self, person: Person, question: DeskQuestion) -> tuple[Dataset, float, int]:
        """The data set of a question that this person may ask now, the epsilon that limits are compared with, and how
        many numbers its answer has.
        """
        if person.role == "officer":
            raise Refusal(404, "not_found", NOT_THERE)
        dataset = self.dataset(person, question.dataset)
        self._refuse_frozen()
        self.book(dataset, person.name)
        operation = self.operation(question)
        size = self._epsilon(question, operation.event, dataset)
        if size > dataset.largest_epsilon:
            limit = f"{dataset.largest_epsilon:g}"
            raise Refusal(422, "too_large", f"A question about {dataset.name!r} costs at most epsilon={limit}.")
        return dataset, size, count_numbers(operation)

    def _still_may(self, person: Person, question: DeskQuestion, withdrawal: Withdrawal) -> None:
        """Refuse what was admitted, and waited, where the owner or the asker has changed their mind meanwhile."""
        self._refuse_frozen()
        now = self.state.person(person.name)
        if now is None or now.role == "officer" or not now.may_see(question.dataset):
            raise Refusal(404, "not_found", NOT_THERE)
        if not self.state.token_count(person.name):
            raise Refusal(401, "no_token", "Every token of who asked was taken back. Nothing was charged.")
        withdrawal.begin_charge()

    def _refuse_frozen(self) -> None:
        if (why := self.state.fact("frozen")) is not None:
            raise Refusal(409, "frozen", f"The owner has stopped all questions: {why}")

    def _resume(self, known: Asking, person: Person, question: DeskQuestion) -> Asking | Reply:
        """What is said, or done, about a question that is known already."""
        if known.state == "approved":
            self._admissible(person, question)  # roles and limits may have changed since
            if is_over(known):
                self.state.move(known, "approved", "expired")
            elif self.state.move(known, "approved", "running"):
                return self._again(known)
        return reply_of(self.shown(self._again(known)))

    def has_not_left(self, number: int) -> bool:
        """Whether the reply to the question of that number still waits for its tick."""
        return number in self._in_flight

    def shown(self, asking: Asking) -> Asking:
        """What may be seen of a question: until its reply has left at a tick, that it runs, to whoever looks."""
        return replace(asking, state="running", answer={}) if self.has_not_left(asking.number) else asking

    def _again(self, known: Asking) -> Asking:
        asking = self.state.question_number(known.number)
        if asking is None:
            raise Refusal(409, "busy", BUSY)
        return asking

    async def _run(self, person: Person, asking: Asking, question: DeskQuestion) -> Reply:
        """Wait for a worker, charge, answer, keep the answer, and let it leave at a tick."""
        if self._waiting.get(person.name, 0) >= MOST_WAITING:
            await asyncio.to_thread(self._take_back, asking)
            raise Refusal(429, "queue_full", f"{MOST_WAITING} questions of yours are waiting: let some be answered.")
        self._waiting[person.name] = self._waiting.get(person.name, 0) + 1
        withdrawal = self._withdrawals[asking.number] = Withdrawal()
        has_started = False
        try:  # one at a time for each person, so that nobody's queue keeps others waiting
            async with self._turns.setdefault(person.name, asyncio.Lock()):
                has_started = True
                return await asyncio.shield(asyncio.create_task(self._answer(person, asking, question, withdrawal)))
        except asyncio.CancelledError:  # who asked is gone: what has not begun was never asked
            if not has_started:
                self._withdrawals.pop(asking.number, None)
                self._take_back(asking)
            raise
        finally:
            self._waiting[person.name] -= 1

    async def _answer(self, person: Person, asking: Asking, question: DeskQuestion, withdrawal: Withdrawal) -> Reply:
        with self._claimed(asking.person, asking.key):  # also where who asked is gone
            return await self._answer_claimed(person, asking, question, withdrawal)

    async def _answer_claimed(
        self, person: Person, asking: Asking, question: DeskQuestion, withdrawal: Withdrawal
    ) -> Reply:
        dataset = self.configuration.datasets[question.dataset]
        books = self.book(dataset, asking.person), self.books[dataset.name]
        operation = self.operation(question)
        charge = Charge(asking, question, operation, books, lambda: self._still_may(person, question, withdrawal))
        clock = self.configuration.job_clock if question.is_job else self.configuration.clock
        job = Job(question.to_dict(), charge, clock.deadline)
        self._in_flight.add(asking.number)
        self.workers.put(job)
        try:
            outcome = await asyncio.wrap_future(job.outcome)
            try:
                reply = await asyncio.to_thread(self._settle, asking, charge, outcome)
            except DiscreetError:  # a full disk: what is not kept does not leave
                reply = Refusal(503, "unavailable", "The desk cannot keep what it answers: ask its owner.")
            leaves = job.started + clock.leaving_time(time.monotonic() - job.started)
            await sleep(max(0.0, leaves - time.monotonic()))
        finally:
            self._in_flight.discard(asking.number)
            self._withdrawals.pop(asking.number, None)
            job.done.set()
        if isinstance(reply, Refusal):
            raise reply
        return reply

    def _settle(self, asking: Asking, charge: Charge, outcome: Mapping[str, Any] | None) -> Reply | Refusal:
        """What a question comes to: an answer that is kept before it leaves, one withheld for ever, or a refusal."""
        if charge.entry is None:
            self._take_back(asking)
            return charge.refusal or Refusal(
                503, "unavailable", "The question could not be asked. Nothing was charged."
            )
        answer = None if outcome is None else outcome.get("answer")
        if isinstance(answer, dict):
            self.state.move(asking, "running", "answered", answer=charge.entry | answer)
        else:
            self.state.move(asking, "running", "withheld", answer=charge.entry)
        return reply_of(self._again(asking))

    def _take_back(self, asking: Asking) -> None:
        """A question that has no answer: where the ledger says that it was charged, it is withheld; where not, its key
        is free again, and what was approved stays so.
        """
        dataset = self.configuration.datasets.get(asking.question["operation"]["dataset"])
        if dataset is None:  # no longer configured: until it is, nobody asks about it
            return
        entry = self.book(dataset, asking.person).charged_under(asking.key)
        if entry is not None:
            self.state.move(asking, "running", "withheld", answer={"entry": entry})
        elif asking.decision:
            self.state.move(asking, "running", "approved")
        else:
            self.state.forget(asking)

    def cancel(self, person: Person, key: str) -> None:
        """Take back a question that waits, for the owner or for its turn: before it is charged, and never after."""
        asking = self.state.question(person.name, key)
        if asking is None:
            raise Refusal(404, "not_found", NOT_THERE)
        withdrawal = self._withdrawals.get(asking.number)
        may = ("waiting", "approved", "running") if withdrawal and withdrawal.take_back() else ("waiting", "approved")
        if not any(self.state.move(asking, old, "cancelled") for old in may):
            raise Refusal(409, "too_late", "The question is no longer waiting: what was charged stays charged.")


def _public(build: Any) -> Any:
    """What is built of public facts; what is wrong with it is the asker's to mend."""
    try:
        return build()
    except Refusal:
        raise
    except (ValueError, DiscreetError) as error:
        raise Refusal(422, "invalid", str(error)) from None
    except Exception:  # of an engine: it had public facts alone, but its words may hold a path
        raise Refusal(422, "invalid", "The question cannot be built from these parts.") from None


def _owners(act: Callable[[], Result]) -> Result:
    """What an owner does; what is wrong with it is theirs to mend, and what fails in the books is said as such."""
    try:
        return act()
    except ValueError as error:
        raise Refusal(422, "invalid", str(error)) from None
    except ChainBroken:
        raise
    except LedgerError as error:
        raise Refusal(409, "refused", str(error)) from None


def _waits(question: DeskQuestion, size: float, dataset: Dataset) -> bool:
    """Whether the owner is asked first: of what is large, and of every job (decision 574)."""
    return question.is_job or size > dataset.approval_above


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None
