"""``discreet ledger verify``, ``export`` and ``plot``: what a ledger gives to those who check it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli import colours
from discreet.cli.books import DEFAULT, Address, Anyway, Name, open_ledger, vouch
from discreet.cli.colours import Painted
from discreet.cli.options import out_option
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.show import data, say
from discreet.cli.waiting import waiting

if TYPE_CHECKING:
    from discreet.ledger import Entry, Overview

__all__ = ["export", "plot", "verify"]


class Format(StrEnum):
    """How history is exported."""

    JSON = "json"
    CSV = "csv"


def verify(
    head: Annotated[
        str | None, typer.Option(help="A fingerprint (head) that you kept, 'number:hash', or a file with it.")
    ] = None,
    ledger: Address = DEFAULT,
) -> None:
    """Recompute everything from the entries; with a fingerprint (head) that you kept, find a rewritten history too."""
    from discreet.reporting import words

    if head is not None and ":" not in head and Path(head).is_file():
        head = Path(head).read_text(encoding="utf-8").strip()
    with open_ledger(ledger) as books, waiting("checking entries") as told:
        found = books.verify(head, progress=told)
    against = " against the fingerprint that you kept" if found.anchored else ""
    many = f"{found.entries:,} entries in {found.books:,} book{'' if found.books == 1 else 's'}"
    say(Painted(f"{many} verified{against}", colours.GOOD), words.last_entry(found.head))


def export(
    name: Annotated[str | None, typer.Argument(metavar="BOOK", help="A book; without it, the whole ledger.")] = None,
    format: Annotated[Format, typer.Option("--format", "-f", help="json or csv.")] = Format.JSON,
    out: Annotated[Path | None, out_option("A file instead of the terminal.")] = None,
    force: ForceOption = False,
    anyway: Anyway = False,
    ledger: Address = DEFAULT,
) -> None:
    """Write every entry with every column, and whether the chain is intact; refused if its history was altered."""
    with open_ledger(ledger, anyway=anyway) as books, waiting("checking entries"):
        entries = books.entries() if name is None else books.book(name).entries()
        seen = books.overview(name)
    vouch(seen.head, seen.broken, data=out is None)
    text = {Format.CSV: _csv, Format.JSON: _json}[format](entries, seen)
    if out is None:
        data(text)
        return
    with claim_path(out, force=force) as file:
        file.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    say(f"wrote {out}: {len(entries):,} entr{'y' if len(entries) == 1 else 'ies'}")


def plot(
    name: Name,
    out: Annotated[Path, out_option("Where the SVG figure goes.", show_default=True)] = Path("burn-down.svg"),
    force: ForceOption = False,
    anyway: Anyway = False,
    ledger: Address = DEFAULT,
) -> None:
    """Draw how the budget was used, as SVG; refused if its history was altered."""
    from discreet.reporting import figures, report

    with open_ledger(ledger, anyway=anyway) as books, waiting("checking entries"):
        facts = report(books.book(name), entries=1).facts
    vouch(facts["ledger"]["head"], facts["ledger"]["problem"] or "")
    with claim_path(out, force=force) as file:
        file.write_text(figures.burn_down(facts), encoding="utf-8", errors="backslashreplace")
    say(str(out))


def _json(entries: list[Entry], seen: Overview) -> str:
    from discreet.reporting import words

    facts = {"chain": words.chain_facts(seen.head, seen.broken), "head": seen.head}
    return json.dumps(facts | {"entries": [entry.to_dict() for entry in entries]}, indent=2) + "\n"


def _csv(entries: list[Entry], seen: Overview) -> str:
    """Columns as written, and whether the chain holds, in each line: a table has no top. A cell that a spreadsheet
    would run as a formula gets a quote in front.
    """
    from discreet.ledger import Entry

    columns = [field.name for field in fields(Entry)]
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([*columns, "chain"])
    chain = "BROKEN" if seen.broken else f"verified up to entry {seen.head.partition(':')[0]}"
    for entry in entries:
        writer.writerow([*(_inert(getattr(entry, column)) for column in columns), chain])
    return buffer.getvalue()


def _inert(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else value
