"""``discreet query``: a private SELECT over a file."""

from __future__ import annotations

import math
import os
import secrets
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli import answer_files, show
from discreet.cli.answers import SHOWN, Answer
from discreet.cli.answers import chart as bars
from discreet.cli.books import Recorded, book_to_charge
from discreet.cli.help import LEARN, example
from discreet.cli.options import (
    VARIABLE,
    BookOption,
    Json,
    LedgerOption,
    NoBookOption,
    SchemaOption,
    delta_option,
    epsilon_option,
    out_option,
    show_option,
)
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.waiting import waiting

if TYPE_CHECKING:
    from discreet.tables.query import TableQuery

__all__ = ["query", "register"]

Source = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A Parquet, Feather, CSV or JSON lines file, or a glob of them in quotes.",
        show_default=False,
    ),
]
Sql = Annotated[
    str,
    typer.Option(
        "--sql", help="SELECT aggregates FROM any_name [WHERE ...] [GROUP BY ...] [ORDER BY ...].", show_default=False
    ),
]
EpsilonOption = Annotated[float | None, epsilon_option("The budget; alone, pure DP.")]
DeltaOption = Annotated[float | None, delta_option("With --epsilon: the delta of (epsilon, delta).")]
RhoOption = Annotated[
    float | None, typer.Option("--rho", help="The budget as zCDP, instead of --epsilon.", show_default=False)
]
ErrorOption = Annotated[
    float | None,
    typer.Option(
        "--error",
        min=0.0,
        help="Instead of --epsilon: the largest error you can bear in 95 of 100 answers; epsilon is computed from it.",
        show_default=False,
    ),
]
RowsOption = Annotated[
    int | None,
    typer.Option("--rows", min=1, help="With --error, for averages: about how many rows a group has."),
]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Show plan, cost and error bars; read and spend nothing.")
]
ErrorsOption = Annotated[
    bool,
    typer.Option("--errors/--no-errors", help="The interval in which each answer lies without noise (95 %)."),
]
OutOption = Annotated[str | None, out_option("Write the answer: .csv, .parquet, .json or .html.")]
ShowOption = Annotated[int, show_option("How many rows are shown, the largest first")]
ChartOption = Annotated[bool, typer.Option("--chart", help="Draw bars of the groups below the answer.")]
KeepOption = Annotated[
    bool,
    typer.Option(
        "--keep/--no-keep", help="Keep the answer in a folder beside the ledger, and say so if it is asked again."
    ),
]
AgainOption = Annotated[bool, typer.Option("--again", help="Pay once more for a question that was answered.")]
PublicOption = Annotated[
    list[str] | None,
    typer.Option(
        "--public", metavar="NAME=FILE", help="A public table to JOIN: Parquet or CSV; repeatable.", show_default=False
    ),
]
DeskOption = Annotated[
    str | None,
    typer.Option(
        "--desk",
        metavar="URL",
        help="Ask the desk at this address: DATA is a data set there; DISCREET_DESK_TOKEN holds your token.",
        show_default=False,
    ),
]
TOKEN = "DISCREET_DESK_TOKEN"
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", help="Memory that DuckDB may use, such as 4GB; the rest goes to disk.", show_default=False
    ),
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
    sql: Sql,
    schema: SchemaOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    error: ErrorOption = None,
    rows: RowsOption = None,
    ledger: LedgerOption = None,
    book: BookOption = None,
    no_book: NoBookOption = False,
    explain: ExplainOption = False,
    errors: ErrorsOption = True,
    out: OutOption = None,
    show_rows: ShowOption = SHOWN,
    chart: ChartOption = False,
    keep: KeepOption = True,
    again: AgainOption = False,
    public: PublicOption = None,
    memory_limit: MemoryOption = None,
    desk: DeskOption = None,
    force: ForceOption = False,
    json: Json = False,
) -> None:
    """Answer a SELECT over a file, or over a data set of a desk, privately."""
    if desk is not None:
        named = None if ledger == os.environ.get(VARIABLE) else ledger  # by the variable: that is for files
        given = {"--schema": schema, "--ledger": named, "--book": book, "--public": public, "--rho": rho}
        _ask_desk(desk, source, sql, epsilon, delta, given | {"--error": error}, explain, errors, out, show_rows, chart,
                  again, force, json)  # fmt: skip
        return
    if schema is None:
        raise ValueError("--schema is missing: what is publicly known of the columns. 'discreet init' drafts it.")
    from discreet.tables import table
    from discreet.tables.canonical import canonical_form
    from discreet.tables.doubts import DoubtfulAnswer

    people = table(source, schema=schema, memory_limit=memory_limit)
    asked = people.parse(sql, _public(public or []))
    if error is not None:
        if epsilon is not None or rho is not None:
            raise ValueError("--error decides epsilon: leave --epsilon and --rho out.")
        epsilon = asked.epsilon_for(error, delta, rows=rows)
        if not json:
            show.say(f"for an error of at most {error:g} in 95 of 100 answers: epsilon = {epsilon:g}")
    elif epsilon is None and rho is None:
        raise ValueError(
            "--epsilon is missing: what the answer may cost, as 0.5. Or name an error that you can bear: --error 9."
        )
    elif rows is not None:
        raise ValueError("--rows says how large groups are, for --error: give both.")
    if explain:
        show.say(*str(asked.explain(epsilon, delta, rho=rho)).splitlines())
        return
    question = answer_files.KeptQuestion(canonical_form(asked), source, schema, tuple(public or ()))
    if out is not None:
        answer_files.check_ending(out)
    with ExitStack() as files:
        file = files.enter_context(claim_path(out, force=force, inputs=[source, schema])) if out is not None else None
        account = files.enter_context(book_to_charge(ledger, book, no_book, delta))
        folder = None if account is None else answer_files.folder_beside(str(ledger))
        name = "" if account is None else question.fingerprint(account.name)
        if not again:
            _refuse_repeated(folder, name)
        if folder is not None and keep:
            folder.mkdir(exist_ok=True)  # now: after the charge nothing may fail
        payer = Recorded(account)
        with warnings.catch_warnings(), waiting("reading", silent=json) as told:
            warnings.showwarning = _say_warning  # type: ignore[assignment]
            warnings.simplefilter("ignore", DoubtfulAnswer)  # the notes below the answer say it
            answer = asked.release(epsilon, delta, rho=rho, errors=errors, book=payer, label=sql, progress=told)
        shown = Answer(answer.value, asked)
        notes = shown.notes(answer.error, _size_shown(asked, epsilon, delta, rho))
        budget = {key: value for key, value in (("epsilon", epsilon), ("delta", delta), ("rho", rho)) if value}
        facts = {"question": sql, "data": source, **budget, "unit": str(answer.unit), "event": answer.event.to_dict()}
        if file is not None:
            answer_files.write(answer.value, facts | {"charged": payer.head}, notes, file)
        if folder is not None and keep and payer.head is not None:
            called = {"groups": [column for column in shown.names if column in shown.labels]}
            answer_files.keep(folder, name, payer.head["head"], answer.value, facts | called, notes)
    if json:
        show.as_json({"rows": answer.value.to_dicts(), "event": answer.event.to_dict(), "notes": notes})
        return
    shown.print(show_rows)
    show.say(*notes) if notes else None
    if chart:
        show.say(*bars(shown, show_rows))
    if out is not None:
        show.say(f"wrote {out}: {len(shown.rows):,} rows")


def _ask_desk(
    url: str,
    name: str,
    sql: str,
    epsilon: float | None,
    delta: float | None,
    given: Mapping[str, object],
    explain: bool,
    errors: bool,
    out: str | None,
    show_rows: int,
    chart: bool,
    again: bool,
    force: bool,
    json: bool,
) -> None:
    """The same over a data set of a desk, which has a schema and books of its own."""
    from discreet.desk import connect
    from discreet.desk.earlier import said_of

    if own := [option for option, value in given.items() if value]:
        raise ValueError(f"{own[0]} is for a file: a desk has a schema and books of its own.")
    if not (token := os.environ.get(TOKEN, "")):
        raise ValueError(f"{TOKEN} is not set: put the token there, where no list of processes shows it.")
    if out is not None:
        answer_files.check_ending(out)
    with connect(url, token) as desk, ExitStack() as files:
        asked = desk.table(name).parse(sql)
        if explain:
            show.say(*str(asked.explain(epsilon, delta)).splitlines())
            return
        if not again and (line := asked.earlier()) is not None:
            raise ValueError(
                f"{said_of(line)}: in Python, desk.release_of({line['key']!r}) gives that answer for nothing. Nothing "
                "was charged. Use that answer, or say --again to pay for another one."
            )
        file = files.enter_context(claim_path(out, force=force)) if out is not None else None
        key = secrets.token_urlsafe(16)  # without one, an earlier answer would be looked for again
        with waiting("asking", silent=json):
            answer = asked.release(epsilon, delta, errors=errors, label=" ".join(sql.split())[:200], key=key)
        shown = Answer(answer.value, asked.local)
        notes = [*shown.notes(answer.error, None), f"entry {answer.entry} of the desk's ledger, head {answer.head}"]
        if file is not None:
            facts = {"question": sql, "data": name, "desk": url, "event": answer.event.to_dict(), "unit": answer.unit}
            answer_files.write(answer.value, facts | {"charged": {"head": answer.head}}, notes, file)
    if json:
        show.as_json({"rows": answer.value.to_dicts(), "event": answer.event.to_dict(), "notes": notes})
        return
    shown.print(show_rows)
    show.say(*notes)
    if chart:
        show.say(*bars(shown, show_rows))


def _say_warning(message: Warning | str, *_: Any) -> None:
    """A warning as a line: where in our code it was raised helps nobody here."""
    show.warn(str(message))


def _refuse_repeated(folder: Path | None, fingerprint: str) -> None:
    """Refuse to pay twice by accident: noise is paid for once."""
    if (before := answer_files.kept_answer(folder, fingerprint)) is not None:
        path, when = before
        raise ValueError(
            f"This was asked before, on {when}: the answer is in {str(path)!r}. Nothing was charged. Use that answer, "
            "or say --again to pay for another one."
        )


def _size_shown(asked: TableQuery, epsilon: float | None, delta: float | None, rho: float | None) -> int | None:
    """The size of a group of unlisted values that is shown in 95 of 100 cases; none where all groups are public."""
    selection = getattr(asked.operation(epsilon, delta, rho=rho), "selection", None)
    return None if selection is None else math.ceil(selection.error(0.95))


def _public(given: list[str]) -> dict[str, Any]:
    """Public tables by name."""
    import polars as pl

    tables: dict[str, Any] = {}
    for entry in given:
        name, sign, path = entry.partition("=")
        if not name or not sign:
            raise ValueError(f"--public is {entry!r}, but must be NAME=FILE.")
        tables[name] = pl.read_parquet(path) if path.endswith((".parquet", ".pq")) else pl.read_csv(path)
    return tables
