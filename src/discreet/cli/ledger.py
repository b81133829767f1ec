"""``discreet ledger``: open, charge, raise, show, history; and what checks a ledger, in ``ledger_files``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from discreet.errors import extra
from discreet.release import ONE_RECORD

with extra("cli"):
    import typer

from discreet.cli import colours
from discreet.cli.books import DEFAULT, Address, Anyway, Name, OneName, only_name, open_ledger, vouch
from discreet.cli.colours import Painted
from discreet.cli.help import BOOKS, Sections, example
from discreet.cli.ledger_files import export, plot, verify
from discreet.cli.options import Description, EventFile, Expression, Json
from discreet.cli.show import as_json as print_json
from discreet.cli.show import say, table
from discreet.cli.waiting import waiting

if TYPE_CHECKING:  # the ledger and the report are extras of their own: loaded by the commands that need them
    from discreet.ledger import Book, Entry, Standing

__all__ = ["app", "register"]

EXAMPLES = {
    "open": ("discreet ledger open census --epsilon 3 --delta 1e-6",),
    "raise": ('discreet ledger raise census --epsilon 1 --why "a second wave"',),
    "charge": ('discreet ledger charge census "laplace(2)" --label "mean of incomes"',),
    "show": ("discreet ledger show census",),
    "history": ("discreet ledger history census --newest 5",),
    "verify": ("discreet ledger verify --ledger budget.db",),
    "export": ("discreet ledger export census --format csv --out history.csv",),
    "plot": ("discreet ledger plot census --out burn-down.svg",),
}
_Command = TypeVar("_Command", bound=Callable[..., Any])
LITTLE = 0.1  # of the limit: what is left is then shown with care
HEADINGS = ("book", "ε spent", "limit", "left", "δ", "releases", "protects")
app = typer.Typer(
    cls=Sections,
    help="Books are budgets that cannot be overspent: open them, read them, find changes.",
    no_args_is_help=True,
)


def register(commands: typer.Typer) -> None:
    """Add the group of commands."""
    commands.add_typer(app, name="ledger", rich_help_panel=BOOKS)


def command(name: str) -> Callable[[_Command], _Command]:
    """The command of a name, with its example."""
    return app.command(name, epilog=example(*EXAMPLES[name]))


@command("open")
def open_book(
    name: Annotated[
        str, typer.Argument(metavar="BOOK", help="Name of the book; 'census/alice' makes a sub-book of 'census'.")
    ],
    epsilon: Annotated[float, typer.Option(help="Limit on epsilon.")],
    delta: Annotated[float, typer.Option(help="Limit on delta.")] = 0.0,
    adjacency: Annotated[str, typer.Option(help="add-remove, replace or zero-out.")] = "add-remove",
    unit: Annotated[
        str, typer.Option(help="Who is protected; charges that protect somebody else are refused.")
    ] = ONE_RECORD,
    rows_per_unit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The most rows that one unit has: charges that protect one row are converted to this number.",
            show_default=False,
        ),
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option(help="The accounting rule: asked (usual), mixed, gaussian, renyi or basic.", show_default=False),
    ] = None,
    max_epsilon: Annotated[
        float | None,
        typer.Option(help="The highest limit on epsilon that raises may ever reach, promised now.", show_default=False),
    ] = None,
    max_delta: Annotated[
        float | None, typer.Option(help="The highest limit on delta that raises may ever reach.", show_default=False)
    ] = None,
    ledger: Address = DEFAULT,
) -> None:
    """Open a book: a budget that refuses to be overspent. Only a raise changes its limits.

    A sub-book takes adjacency, unit (who is protected) and accounting rule from the book above.
    """
    from discreet.reporting import words

    with open_ledger(ledger, create=True) as books, waiting("checking the ledger"):
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
        head = books.head()
    say(f"{book.name}: {book.terms.describe()}", words.last_entry(head))
    if not book.limit[1]:
        say("Without --delta it allows pure releases only, such as queries. Models and synthetic rows need one.")


@command("raise")
def raise_limit(
    name: Name,
    why: Annotated[str, typer.Option(help="The reason, which the report repeats.", show_default=False)],
    epsilon: Annotated[float, typer.Option(help="What is added to the limit on epsilon.")] = 0.0,
    delta: Annotated[float, typer.Option(help="What is added to the limit on delta; 0 allows pure events only.")] = 0.0,
    ledger: Address = DEFAULT,
) -> None:
    """Raise the limit of a book, as its owner decides. The ledger records who raised it, and why."""
    from discreet.reporting import words

    with open_ledger(ledger) as books, waiting("checking the ledger"):
        books.book(name).raise_limit(epsilon=epsilon, delta=delta, why=why)
        seen = books.overview(name)
    (total, whole), proved = seen.books[0].limit, seen.books[0].spent.epsilon
    _, shown, left = words.balance(proved, total)
    say(
        f"{name}: the limit is now epsilon={shown}, delta={whole:g}; epsilon={left} is left",
        *([] if delta else ["This raise has no delta: from now on the book allows pure events only."]),
        words.last_entry(seen.head),
    )


@command("charge")
def charge(
    name: Name,
    expression: Expression = None,
    event: EventFile = None,
    label: Annotated[str, typer.Option(help="What was released, in the history and the report.")] = "",
    unit: Annotated[str, typer.Option(help="Who is protected by the release.")] = ONE_RECORD,
    ledger: Address = DEFAULT,
) -> None:
    """Charge a release that another program will make: run this first, and release only if it succeeds."""
    from discreet.reporting import words

    cost = Description(expression, event).event()
    with open_ledger(ledger) as books, waiting("checking the ledger"):
        books.book(name).charge(cost, label, unit=unit)
        seen = books.overview(name)
    spent, limit, left = words.balance(seen.books[0].spent.epsilon, seen.books[0].limit[0])
    say(
        f"{name}: charged {cost}", f"spent epsilon={spent} of {limit}, left epsilon={left}", words.last_entry(seen.head)
    )


@command("show")
def show(
    name: Annotated[str | None, typer.Argument(metavar="BOOK", help="A book; without it, all of them.")] = None,
    as_json: Json = False,
    anyway: Anyway = False,
    ledger: Address = DEFAULT,
) -> None:
    """Show what each book (a budget) has spent, and what is left; refused if its history was altered."""
    from discreet.reporting import words
    from discreet.reporting.charges import room_for_more

    with open_ledger(ledger, anyway=anyway) as books, waiting("checking the ledger", silent=as_json):
        seen = books.overview(name)
        more = [] if as_json or seen.broken else [room_for_more(book) for book in seen.books]
    rows = [_state(book) for book in seen.books]
    vouch(seen.head, seen.broken, data=as_json)
    if as_json:
        print_json({"chain": words.chain_facts(seen.head, seen.broken), "head": seen.head, "books": rows})
        return
    table(
        "",
        HEADINGS,
        [
            (
                row["book"],
                *_figures(row),
                words.number(row["delta"]),
                f"{row['charges']:,}",
                row["unit"],
            )
            for row in rows
        ],
    )
    rules = [
        f"{row['book']}: guaranteed by {words.rule(row['proof'])}, for {row['adjacency']} neighbours"
        for row in rows
        if row["charges"]
    ]
    several = any(row["charges"] > 1 and row["proof"] != "pure sum" for row in rows)
    seeded = [f"{row['book']}: {words.seeds(row['seeded'], row['charges'])}" for row in rows if row["seeded"]]
    say(
        *(Painted(line, colours.BAD) for line in seeded),
        *(rules if name or len(rows) == 1 else []),
        *(f"{book.name}: {line}" for book, line in zip(seen.books, more, strict=False) if line),
        *([words.TOGETHER] if several else []),
    )


def _figures(row: dict[str, Any]) -> tuple[str, str, str]:
    """What is spent, the limit and what is left, as figures that subtract; in the colour of how much is left."""
    from discreet.reporting import words

    spent, limit, left = words.balance(row["epsilon"], row["limit"])
    share = row["left"] / row["limit"]
    colour = colours.BAD if left == "0" else colours.CAREFUL if share < LITTLE else colours.GOOD
    return Painted(spent, colours.AMOUNT), limit, Painted(left, colour)


@command("history")
def history(
    name: OneName = None,
    newest: Annotated[int, typer.Option("--newest", "-n", min=1, help="How many of the last entries.")] = 20,
    as_json: Json = False,
    anyway: Anyway = False,
    ledger: Address = DEFAULT,
) -> None:
    """List the last entries of a book and of the books inside it; refused if its history was altered."""
    from discreet.reporting import words
    from discreet.reporting.charges import alone, epsilon_asked

    with open_ledger(ledger, anyway=anyway) as books, waiting("checking the ledger", silent=as_json):
        name = only_name(books) if name is None else name
        book = books.book(name)
        entries, (_, delta), adjacency = book.entries(newest=newest), book.limit, book.terms.adjacency
        own = [alone(entry, adjacency, delta) for entry in entries]
        asked = [epsilon_asked(entry, adjacency, delta) for entry in entries]
        seen = books.overview(name)  # afterwards, so that its head is not before the last entry
    vouch(seen.head, seen.broken, data=as_json)
    if as_json:
        rows = [entry.to_dict() | {"epsilon_alone": cost} for entry, cost in zip(entries, own, strict=True)]
        print_json({"chain": words.chain_facts(seen.head, seen.broken), "head": seen.head, "entries": rows})
        return
    table(
        "",
        ("no.", "when (UTC)", "who", "book", "kind", "label", "unit", "event", "ε asked", "ε after"),
        [_line(entry, cost) for entry, cost in zip(entries, asked, strict=True)],
    )
    say(words.ASKED, words.TOGETHER)
    if said := words.seeds(seen.books[0].seeded, seen.books[0].charges):
        say(Painted(f"{name}: {said}", colours.BAD))


def _line(entry: Entry, asked: float | None) -> tuple[str, ...]:
    from discreet.reporting import words

    return (
        str(entry.seq),
        f"{entry.time:%Y-%m-%d %H:%M:%S}",
        entry.who,
        entry.book,
        "release" if entry.kind == "charge" else entry.kind,
        Painted(f"{entry.label} [{words.SEEDED}]".strip(), colours.BAD) if entry.seeded else entry.label,
        words.unit_text(entry),
        str(entry.cost) if entry.cost else words.agreement_text(entry),
        "" if asked is None else words.bound(asked),
        words.bound(float(entry.epsilon)) if entry.epsilon else "",
    )


def _refuse_own(asked: dict[str, object], holder: Book) -> None:
    """Refuse what a sub-book cannot have of its own, rather than forget it;
    what the book above has may be said again.
    """
    usual = {"adjacency": "add-remove", "unit": ONE_RECORD}
    for name, value in asked.items():
        inherited = None if name.startswith("max_") else getattr(holder.terms, name)
        if value not in (usual.get(name), inherited):
            raise ValueError(
                f"--{name.replace('_', '-')} is {value!r}, but a sub-book takes adjacency, unit and accounting rule "
                f"from {holder.name!r}, and has no ceiling of its own: leave it out."
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
        "seeded": book.seeded,
    }


for check in (verify, export, plot):
    command(check.__name__)(check)
