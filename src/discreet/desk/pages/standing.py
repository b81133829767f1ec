"""Where the books stand, in lines, and whether asking may go on: a verdict with its reasons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from discreet.desk.service import Service
from discreet.ledger.snapshot import Standing
from discreet.reporting import words

__all__ = ["BookLine", "GoOn", "book_lines", "may_go_on"]


@dataclass(frozen=True, slots=True)
class BookLine:
    """A book with what was spent of it; those inside it come after it."""

    name: str
    inside: bool
    spent: str
    limit: str
    left: str
    share: float
    delta: float
    charges: int
    seeded: int
    last: str
    raised: bool

    @classmethod
    def of(cls, book: Standing) -> BookLine:
        """The line of a book's standing."""
        limit, delta = book.limit
        spent, whole, left = words.balance(book.spent.epsilon, limit)
        return cls(book.name, "/" in book.name, spent, whole, left, 100 * min(1.0, book.spent.epsilon / limit), delta,
                   book.charges, book.seeded, book.last.at if book.last else "",
                   limit > book.terms.epsilon)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GoOn:
    """Whether questions may go on being asked: the answer, what it rests on, and what it leaves to a person."""

    answer: bool
    title: str
    reasons: tuple[tuple[bool, str], ...]


def book_lines(service: Service) -> list[BookLine]:
    """Every book of the desk's ledger, each before those inside it."""
    lines = [BookLine.of(book) for book in service.ledger.overview().books]
    newest = {
        line.name: max(each.last for each in lines if f"{each.name}/".startswith(f"{line.name}/")) for line in lines
    }
    return [replace(line, last=newest[line.name]) for line in lines]


def may_go_on(service: Service, lines: list[BookLine]) -> GoOn:
    """What an officer asks first. The chain holds, or the books could not have been read at all."""
    head: Any = service.ledger.head()
    number = head.partition(":")[0]
    frozen = service.state.fact("frozen")
    outer = [line for line in lines if not line.inside]
    full = [line.name for line in outer if line.share >= 100]
    seeded = sum(line.seeded for line in outer)
    raised = [line.name for line in outer if line.raised]
    reasons = [
        (True, f"The chain of the ledger holds up to entry {number}."),
        (not full, f"Nothing is left in {', '.join(full)}: every further question is refused." if full
         else "Every book is within its limit, and the desk refuses what would exceed it."),
        (not seeded, f"{seeded:,} releases were made with a seed, and are not private." if seeded
         else "Every release drew its noise from the system's entropy."),
        (not raised, f"The limit was raised of {', '.join(raised)}: read why in the ledger." if raised
         else "No limit was raised after answers had been seen."),
    ]  # fmt: skip
    if frozen:
        reasons.insert(0, (False, f"The owner has frozen the desk: {frozen}"))
    answer = not frozen and not seeded and len(full) < len(outer)
    title = "Yes, this may go on" if answer else "No, not as it stands"
    return GoOn(answer, title, tuple(reasons))
