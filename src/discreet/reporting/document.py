"""One file a privacy officer can read, and the same facts for machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.errors import extra, is_whole_text, whole
from discreet.ledger.book import Book
from discreet.reporting import facts as _facts
from discreet.reporting.charges import room_for_more
from discreet.reporting.findings import Finding
from discreet.reporting.page import Page, render
from discreet.reporting.registry import registry

__all__ = ["Report", "report"]


@dataclass(frozen=True, slots=True)
class Report(Page):
    """What a book has released, and what is guaranteed for it, at one moment."""

    def html(self) -> str:
        """One self-contained page: styles and figures inside, no script, nothing fetched."""
        with extra("report"):
            from discreet.reporting import figures
        drawn = {
            "burn_down": figures.burn_down(self.facts),
            "epsilon_of_delta": figures.epsilon_of_delta(self.facts),
            "trade_off": figures.trade_off(self.facts),
            "findings": [figures.finding(found, f"finding{n}") for n, found in enumerate(self.facts["findings"])],
        }
        return render("report.html.j2", figures=drawn, **self.facts)

    def _repr_html_(self) -> str:
        """A few lines for a notebook: what is spent and left, and the newest releases."""
        return render("notebook.html.j2", **self.facts)

    def registry(self) -> dict[str, Any]:
        """The same as an entry for the public registry of deployments; what only the curator knows is None."""
        return registry(self.facts)


def report(
    book: Book,
    *,
    entries: int = 500,
    findings: Sequence[Finding] = (),
    dataset: str = "",
    purpose: str = "",
    recipients: str = "",
    author: str = "",
) -> Report:
    """The privacy report of a book: what was released, at what cost, and what an attacker could learn.

    Lists the newest ``entries`` lines of the history; the totals cover all of it. Every number is what the book's
    accounting rules guarantee, not a recount of the events that happened to be charged. ``findings`` are released
    numbers to show beside it; the book does not keep answers, so that they are taken at their word. ``dataset`` and
    ``purpose`` say what the releases were made from and what for, in words of yours; ``recipients`` who gets them, and
    ``author`` who answers for this report, by name.
    """
    seen = book.snapshot(newest=whole("entries", entries, low=1))
    said = {"dataset": dataset, "purpose": purpose, "recipients": recipients, "author": author}
    room = "" if seen.broken else room_for_more(seen.book)
    return Report(
        _facts.gather(seen, findings, room=room, **{name: _text_of(name, text) for name, text in said.items()})
    )


def _text_of(name: str, value: str) -> str:
    if not is_whole_text(value):
        raise ValueError(f"{name} is a {type(value).__name__}, but must be text, of whole characters.")
    return value.strip()
