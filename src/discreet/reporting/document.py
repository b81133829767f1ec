"""One file a privacy officer can read, and the same facts for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import extra, whole
from discreet.ledger.book import Book
from discreet.reporting import facts as _facts
from discreet.reporting import words
from discreet.reporting.findings import Finding

__all__ = ["Report", "report"]


@dataclass(frozen=True, slots=True)
class Report:
    """What a book has released and proved, at one moment."""

    facts: dict[str, Any]

    def html(self) -> str:
        """One self-contained page: styles and figures inside, no script, nothing fetched."""
        with extra("report"):
            import jinja2

            from discreet.reporting import figures
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("discreet.reporting"), autoescape=True, undefined=jinja2.StrictUndefined
        )
        environment.filters |= {
            "number": _number,
            "percent": words.percent,
            "alike": words.alike,
            "day": _day,
            "hour": _hour,
        }
        drawn = {
            "burn_down": figures.burn_down(self.facts),
            "epsilon_of_delta": figures.epsilon_of_delta(self.facts),
            "trade_off": figures.trade_off(self.facts),
            "findings": [figures.finding(found, f"finding{n}") for n, found in enumerate(self.facts["findings"])],
        }
        return environment.get_template("report.html.j2").render(figures=drawn, **self.facts)

    def json(self) -> str:
        """The facts, for machines."""
        return json.dumps(self.facts, indent=2, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> Path:
        """Write HTML, or JSON if the name ends in ``.json``."""
        target = Path(path)
        target.write_text(self.json() if target.suffix == ".json" else self.html(), encoding="utf-8")
        return target


def report(book: Book, *, entries: int = 500, findings: Sequence[Finding] = ()) -> Report:
    """The privacy report of a book: what was released, at what cost, and what an attacker could learn.

    Lists the newest ``entries`` lines of the history; the totals cover all of it. Every number is what the book's
    filters prove, not a recount of the events that happened to be charged. ``findings`` are released numbers to show
    beside it; the book does not keep answers, so that they are taken at their word.
    """
    return Report(_facts.gather(book.snapshot(newest=whole("entries", entries, low=1)), findings))


def _number(value: float | None) -> str:
    return "∞" if value is None else words.number(value)


def _day(at: str) -> str:
    return at[:10]


def _hour(at: str) -> str:
    return at[11:16]
