"""``discreet ledger``: open, charge, raise, show, history; and what checks a ledger, in ``ledger_files``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from discreet.errors import extra
from discreet.release import ONE_RECORD

with extra("cli"):
    import typer

from discreet.cli.books import DEFAULT, Address, Json, Name, opened
from discreet.cli.help import BOOKS
from discreet.cli.ledger_files import export, plot, verify
from discreet.cli.options import Description, EventFile, Expression
from discreet.cli.show import as_json as print_json
from discreet.cli.show import say, table

if TYPE_CHECKING:  # the ledger and the report are extras of their own: loaded by the commands that need them
    from discreet.ledger import Book, Entry, Standing

__all__ = ["app", "register"]

app = typer.Typer(help="Budgets that hold: open books, read them, find what was changed.", no_args_is_help=True)


def register(commands: typer.Typer) -> None:
    """Add the group of commands."""
    commands.add_typer(app, name="ledger", rich_help_panel=BOOKS)


@app.command("open")
def open_book(
    name: Annotated[
        str, typer.Argument(metavar="BOOK", help="Name of the book; 'census/alice' makes a sub-book of 'census'.")
    ],
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
    with opened(ledger, create=True) as books:
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

    with opened(ledger) as books:
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
def charge(
    name: Name,
    expression: Expression = None,
    event: EventFile = None,
    label: Annotated[str, typer.Option(help="What was released, in the history and the report.")] = "",
    unit: Annotated[str, typer.Option(help="Whom the release protects.")] = ONE_RECORD,
    ledger: Address = DEFAULT,
) -> None:
    """Charge a release that another program will make: run this first, and release only if it succeeds."""
    from discreet.reporting import words

    cost = Description(expression, event).event()
    with opened(ledger) as books:
        books.book(name).charge(cost, label, unit=unit)
        seen = books.overview(name)
    spent, limit, left = words.balance(seen.books[0].spent.epsilon, seen.books[0].limit[0])
    say(f"{name}: charged {cost}", f"epsilon={spent} of {limit} proved, epsilon={left} left", f"head {seen.head}")


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(metavar="BOOK", help="A book; without it, all of them.")] = None,
    as_json: Json = False,
    ledger: Address = DEFAULT,
) -> None:
    """What each book has proved, and what is left."""
    from discreet.reporting import words

    with opened(ledger) as books:
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
    from discreet.reporting.charges import alone

    with opened(ledger) as books:
        book = books.book(name)
        entries, (_, delta), adjacency = book.entries(newest=newest), book.limit, book.terms.adjacency
    own = [alone(entry, adjacency, delta) for entry in entries]
    if as_json:
        print_json([entry.to_dict() | {"epsilon_alone": cost} for entry, cost in zip(entries, own, strict=True)])
        return
    table(
        "",
        ("no.", "when (UTC)", "who", "book", "kind", "label", "unit", "event", "ε alone", "ε after"),
        [_line(entry, cost) for entry, cost in zip(entries, own, strict=True)],
    )
    say(f"ε alone: what each charge would cost by itself, at delta = {delta:g}; they are not to be added up")


def _line(entry: Entry, own: float | None) -> tuple[str, ...]:
    from discreet.reporting import words

    return (
        str(entry.seq),
        f"{entry.time:%Y-%m-%d %H:%M:%S}",
        entry.who,
        entry.book,
        entry.kind,
        entry.label,
        words.protected(entry),
        str(entry.cost) if entry.cost else words.agreed(entry),
        "" if own is None else words.number(own),
        words.number(float(entry.epsilon)) if entry.epsilon else "",
    )


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


for check in (verify, export, plot):
    app.command()(check)
