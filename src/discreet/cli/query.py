"""``discreet query``: a private SELECT over a file."""

from __future__ import annotations

from typing import Annotated, Any

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli import show
from discreet.cli.books import BookOption, LedgerOption, NoBookOption, book_to_charge
from discreet.cli.help import LEARN, example
from discreet.cli.waiting import waiting

__all__ = ["JsonOption", "SchemaFile", "query", "register"]

Source = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A Parquet, Feather, CSV or JSON lines file, or a glob of them in quotes.",
        show_default=False,
    ),
]
SchemaFile = Annotated[
    str,
    typer.Option(
        "--schema", metavar="FILE", help="What is publicly known of the columns, as TOML.", show_default=False
    ),
]
Sql = Annotated[
    str,
    typer.Option(
        "--sql", help="SELECT aggregates FROM any_name [WHERE ...] [GROUP BY ...] [ORDER BY ...].", show_default=False
    ),
]
EpsilonOption = Annotated[
    float | None, typer.Option("--epsilon", help="The budget; alone, pure DP.", show_default=False)
]
DeltaOption = Annotated[
    float | None, typer.Option("--delta", help="With --epsilon: the delta of (epsilon, delta).", show_default=False)
]
RhoOption = Annotated[
    float | None, typer.Option("--rho", help="The budget as zCDP, instead of --epsilon.", show_default=False)
]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Show plan, cost and error bars; read and spend nothing.")
]
ErrorsOption = Annotated[
    bool, typer.Option("--errors", help="Columns beside the answers between which they lie without noise (95 %).")
]
PublicOption = Annotated[
    list[str] | None,
    typer.Option(
        "--public", metavar="NAME=FILE", help="A public table to JOIN: Parquet or CSV; repeatable.", show_default=False
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, with every digit and the event.")]
MemoryOption = Annotated[
    str | None, typer.Option("--memory-limit", help="What DuckDB may use, as 4GB; more is spilled.", show_default=False)
]

EXAMPLE = example(
    "discreet query people.csv --schema people.toml --epsilon 0.5 \\",
    '  --sql "SELECT sex, AVG(age) FROM people GROUP BY sex" --ledger budget.db',
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=LEARN, epilog=EXAMPLE)(query)


def query(
    source: Source,
    schema: SchemaFile,
    sql: Sql,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    ledger: LedgerOption = None,
    book: BookOption = None,
    no_book: NoBookOption = False,
    explain: ExplainOption = False,
    errors: ErrorsOption = False,
    public: PublicOption = None,
    memory_limit: MemoryOption = None,
    json: JsonOption = False,
) -> None:
    """The private answer to a SELECT over a file."""
    from discreet.tables import table

    people = table(source, schema=schema, memory_limit=memory_limit)
    asked = people.parse(sql, _public(public or []))
    if explain:
        show.say(*str(asked.explain(epsilon, delta, rho=rho)).splitlines())
        return
    with book_to_charge(ledger, book, no_book, delta) as account, waiting("reading", silent=json) as told:
        answer = asked.release(epsilon, delta, rho=rho, errors=errors, book=account, label=sql, progress=told)
    _print(answer.value, answer.event.to_dict() if json else None)


def _public(given: list[str]) -> dict[str, Any]:
    """Public tables by name."""
    import polars as pl

    found: dict[str, Any] = {}
    for entry in given:
        name, sign, path = entry.partition("=")
        if not name or not sign:
            raise ValueError(f"--public is {entry!r}, but must be NAME=FILE.")
        found[name] = pl.read_parquet(path) if path.endswith((".parquet", ".pq")) else pl.read_csv(path)
    return found


def _print(value: Any, event: dict[str, Any] | None) -> None:
    if event is not None:
        show.as_json({"rows": value.to_dicts(), "event": event})
        return
    rows = [[_cell(entry) for entry in row] for row in value.rows()]
    show.table("", value.columns, rows)


def _cell(entry: Any) -> str:
    return f"{entry:.6g}" if isinstance(entry, float) else str(entry)
