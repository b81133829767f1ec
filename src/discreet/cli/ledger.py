"""``discreet ledger``: open, show, history, verify, export, plot. Each command parses, calls the library and prints."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from discreet.errors import extra
from discreet.release import ONE_RECORD

with extra("cli"):
    import typer

from discreet.cli.books import VARIABLE
from discreet.cli.help import BOOKS
from discreet.cli.outputs import ForceOption, claimed
from discreet.cli.show import as_json as print_json
from discreet.cli.show import data, say, table

if TYPE_CHECKING:  # the ledger and the report are extras of their own: loaded by the commands that need them
    from discreet.ledger import Book, Entry, Ledger, Standing

__all__ = ["app", "register"]

app = typer.Typer(help="Budgets that hold: open books, read them, find what was changed.", no_args_is_help=True)


def register(commands: typer.Typer) -> None:
    """Add the group of commands."""
    commands.add_typer(app, name="ledger", rich_help_panel=BOOKS)


Address = Annotated[
    str, typer.Option("--ledger", "-l", envvar=VARIABLE, help="The ledger: a file, or a URL.", show_default=True)
]
Name = Annotated[str, typer.Argument(help="The book, by name or path: 'census', 'census/alice'.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
DEFAULT = "budget.db"


class Format(StrEnum):
    """How history is exported."""

    JSON = "json"
    CSV = "csv"


@app.command("open")
def open_book(
    name: Annotated[str, typer.Argument(help="Name of the book; 'census/alice' makes a sub-book of 'census'.")],
    epsilon: Annotated[float, typer.Option(help="Limit on epsilon.")],
    delta: Annotated[float, typer.Option(help="Limit on delta.")] = 0.0,
    adjacency: Annotated[str, typer.Option(help="add-remove, replace or zero-out.")] = "add-remove",
    unit: Annotated[
        str, typer.Option(help="Whom the book protects; charges for somebody else are refused.")
    ] = ONE_RECORD,
    rows_per_unit: Annotated[
        int | None,
        typer.Option(
            min=1, help="The most rows of one unit: charges for one row are restated for so many.", show_default=False
        ),
    ] = None,
    filter: Annotated[str, typer.Option(help="mixed, gaussian, renyi or basic: how delta is divided.")] = "mixed",
    max_epsilon: Annotated[
        float | None, typer.Option(help="A ceiling for raises of epsilon, promised now.", show_default=False)
    ] = None,
    max_delta: Annotated[float | None, typer.Option(help="A ceiling for raises of delta.", show_default=False)] = None,
    ledger: Address = DEFAULT,
) -> None:
    """Open a book; only a raise changes its limits. A sub-book takes adjacency, unit and filter from the book above."""
    with _ledger(ledger, create=True) as books:
        if "/" in name:
            above, inner = name.rsplit("/", 1)
            holder = books.book(above)
            own = {"adjacency": adjacency, "unit": unit, "rows_per_unit": rows_per_unit, "filter": filter}
            _refuse_own(own | {"max_epsilon": max_epsilon, "max_delta": max_delta}, holder)
            book = holder.sub(inner, epsilon=epsilon, delta=delta)
        else:
            book = books.open(
                name,
                epsilon=epsilon,
                delta=delta,
                adjacency=adjacency,
                unit=unit,
                rows_per_unit=rows_per_unit,
                filter=filter,
                max_epsilon=max_epsilon,
                max_delta=max_delta,
            )
        say(f"{book.name}: {book.terms.describe()}", f"head {books.head()}")


@app.command("raise")
def raise_limit(
    name: Name,
    why: Annotated[str, typer.Option(help="The reason, which the report repeats.", show_default=False)],
    epsilon: Annotated[float, typer.Option(help="What is added to the limit on epsilon.")] = 0.0,
    delta: Annotated[float, typer.Option(help="What is added to the limit on delta; 0 admits pure events only.")] = 0.0,
    ledger: Address = DEFAULT,
) -> None:
    """Raise the limit of a book, for the owner of the data: an entry that says who and why."""
    from discreet.reporting import words

    with _ledger(ledger) as books:
        books.book(name).raise_limit(epsilon=epsilon, delta=delta, why=why)
        seen = books.overview(name)
    (total, whole), proved = seen.books[0].limit, seen.books[0].spent.epsilon
    _, shown, left = words.balance(proved, total)
    say(
        f"{name}: epsilon={shown}, delta={whole:g} in all, epsilon={left} of it left",
        *([] if delta else ["This raise has no delta: from now on the book admits pure events only."]),
        f"head {seen.head}",
    )


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(help="A book; without it, all of them.")] = None,
    as_json: Json = False,
    ledger: Address = DEFAULT,
) -> None:
    """What each book has proved, and what is left."""
    from discreet.reporting import words

    with _ledger(ledger) as books:
        seen = books.overview(name)
    rows = [_state(book) for book in seen.books]
    if as_json:
        print_json({"head": seen.head, "books": rows})
        return
    table(
        "",
        ("book", "ε proved", "ε limit", "ε left", "δ", "charges", "unit", "adjacency", "proof"),
        [
            (
                row["book"],
                *words.balance(row["epsilon"], row["limit"]),
                words.number(row["delta"]),
                f"{row['charges']:,}",
                row["unit"],
                row["adjacency"],
                row["proof"],
            )
            for row in rows
        ],
    )
    say(f"head {seen.head}")


@app.command()
def history(
    name: Name,
    newest: Annotated[int, typer.Option("--newest", "-n", min=1, help="How many of the last entries.")] = 20,
    as_json: Json = False,
    ledger: Address = DEFAULT,
) -> None:
    """The last entries of a book and of the books inside it."""
    from discreet.reporting import words

    with _ledger(ledger) as books:
        entries = books.book(name).entries(newest=newest)
    if as_json:
        print_json([entry.to_dict() for entry in entries])
        return
    rows = []
    for entry in entries:
        what = str(entry.cost) if entry.cost else words.agreed(entry)
        after = words.number(float(entry.epsilon)) if entry.epsilon else ""
        rows.append(
            (
                str(entry.seq),
                f"{entry.time:%Y-%m-%d %H:%M:%S}",
                entry.who,
                entry.book,
                entry.kind,
                entry.label,
                words.protected(entry),
                what,
                after,
            )
        )
    table("", ("no.", "when (UTC)", "who", "book", "kind", "label", "unit", "event", "ε after"), rows)


@app.command()
def verify(
    head: Annotated[str | None, typer.Option(help="An anchored head, 'number:hash', or a file that holds one.")] = None,
    ledger: Address = DEFAULT,
) -> None:
    """Recompute everything from the entries; with an anchored head, find a cut or rewritten history too."""
    if head is not None and ":" not in head and Path(head).is_file():
        head = Path(head).read_text(encoding="utf-8").strip()
    with _ledger(ledger) as books:
        found = books.verify(head)
    against = " against the anchored head" if found.anchored else ""
    say(f"{found.entries:,} entries in {found.books:,} books verified{against}", f"head {found.head}")


@app.command()
def export(
    name: Annotated[str | None, typer.Argument(help="A book; without it, the whole ledger.")] = None,
    format: Annotated[Format, typer.Option("--format", "-f", help="json or csv.")] = Format.JSON,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of the terminal.")] = None,
    force: ForceOption = False,
    ledger: Address = DEFAULT,
) -> None:
    """Every entry, with every column, for other programs."""
    with _ledger(ledger) as books:
        entries = books.entries() if name is None else books.book(name).entries()
        head = books.head()
    text = _csv(entries) if format is Format.CSV else _json(entries, head)
    if output is None:
        data(text)
        return
    with claimed(output, force=force) as file:
        file.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")


@app.command()
def plot(
    name: Name,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the SVG figure goes.")] = Path("burn-down.svg"),
    force: ForceOption = False,
    ledger: Address = DEFAULT,
) -> None:
    """Draw how the budget was used, as SVG."""
    from discreet.reporting import figures, report

    with _ledger(ledger) as books:
        facts = report(books.book(name), entries=1).facts
    with claimed(output, force=force) as file:
        file.write_text(figures.burn_down(facts), encoding="utf-8", errors="backslashreplace")
    say(str(output))


def _refuse_own(asked: dict[str, object], holder: Book) -> None:
    """Refuse what a sub-book cannot have of its own, rather than forget it;
    what the book above has may be said again.
    """
    usual = {"adjacency": "add-remove", "unit": ONE_RECORD, "filter": "mixed"}
    for name, value in asked.items():
        inherited = None if name.startswith("max_") else getattr(holder.terms, name)
        if value not in (usual.get(name), inherited):
            raise ValueError(
                f"--{name.replace('_', '-')} is {value!r}, but a sub-book takes adjacency, unit and filter from "
                f"{holder.name!r}, and has no ceiling of its own: leave it out."
            )


def _ledger(address: str, create: bool = False) -> Ledger:
    from discreet.ledger import Ledger

    return Ledger(address, create=create)


def _state(book: Standing) -> dict[str, Any]:
    spent = book.spent
    return {
        "book": book.name,
        "kind": book.terms.kind,
        "epsilon": spent.epsilon,
        "limit": book.limit[0],
        "delta": book.limit[1],
        "adjacency": str(book.terms.adjacency),
        "unit": book.terms.unit,
        "rows_per_unit": book.terms.rows_per_unit,
        "filter": book.terms.filter,
        "proof": spent.proof,
        "left": book.remaining.epsilon,
        "charges": spent.entries,
    }


def _json(entries: list[Entry], head: str) -> str:
    return json.dumps({"head": head, "entries": [entry.to_dict() for entry in entries]}, indent=2) + "\n"


def _csv(entries: list[Entry]) -> str:
    """Columns as written. A cell that a spreadsheet would run as a formula gets a quote in front."""
    from discreet.ledger import Entry

    columns = [field.name for field in fields(Entry)]
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(columns)
    for entry in entries:
        writer.writerow(_inert(getattr(entry, column)) for column in columns)
    return buffer.getvalue()


def _inert(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else value
