"""``discreet synth``: a synthetic table of a file, that may be published."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from discreet.errors import extra, whole

with extra("cli"):
    import typer

from discreet.adjacency import Adjacency
from discreet.cli import show
from discreet.cli.books import Recorded, book_to_charge
from discreet.cli.fit import DeltaOption, EpsilonOption
from discreet.cli.help import LEARN, example
from discreet.cli.options import BookOption, Data, Json, LedgerOption, NoBookOption, SchemaFile, Seed, out_option
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.query import ExplainOption
from discreet.cli.waiting import waiting
from discreet.schema import Bounded, Declaration, Schema, Times, read_schema

__all__ = ["register", "synth"]

Out = Annotated[str, out_option("Where the rows go: a .parquet or .csv file.")]
Rows = Annotated[
    int | None,
    typer.Option(
        "--rows", help="How many rows to draw; without it, as many as the model's noisy total.", show_default=False
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="FILE",
        help="Save the fitted model too, to draw more rows from it later.",
        show_default=False,
    ),
]
Engine = Annotated[
    Literal["residual", "mbi"], typer.Option("--engine", help="What fits the model; mbi needs the extra of that name.")
]

EXAMPLE = example(
    "discreet synth people.csv --schema people.toml --epsilon 1 \\",
    "  --out synthetic.csv --ledger budget.db",
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=LEARN, epilog=EXAMPLE)(synth)


def synth(
    data: Data,
    schema: SchemaFile,
    epsilon: EpsilonOption,
    out: Out = "",
    delta: DeltaOption = 1e-9,
    rows: Rows = None,
    model: Model = None,
    engine: Engine = "residual",
    ledger: LedgerOption = None,
    book: BookOption = None,
    no_book: NoBookOption = False,
    explain: ExplainOption = False,
    seed: Seed = None,
    force: ForceOption = False,
    json: Json = False,
) -> None:
    """Draw a synthetic table that may be published: fit a private model to a file, and draw rows from it."""
    from discreet.encoding import one_row_note
    from discreet.synthesis import TableSynthesizer
    from discreet.synthesis.drawing import most_rows

    declared, timed = _without_times(read_schema(schema))
    estimator = TableSynthesizer(epsilon, delta, engine=engine)
    if explain:
        if rows is None:
            raise ValueError("--rows is missing, but the error depends on the number of records: give a rough one.")
        show.say(*str(estimator.explain(declared, n=rows)).splitlines())
        return
    show.note(one_row_note(declared), silent=json)
    show.note(f"left out: {', '.join(timed)}, because times of day are not modelled" if timed else "", silent=json)
    write = _writer(out)
    if rows is not None:
        whole("rows", rows, low=1, high=most_rows(len(declared.schema)))
    with ExitStack() as files:
        file = files.enter_context(claim_path(out, force=force, inputs=[data, schema]))
        kept = files.enter_context(claim_path(model, force=force, inputs=[data, schema])) if model else None
        with book_to_charge(ledger, book, no_book, delta) as account, waiting("fitting", silent=json) as told:
            payer = Recorded(account)
            fitted = estimator.fit(data, schema=declared, book=payer, label=f"synth {out}", rng=seed, progress=told)
        if kept is not None:
            fitted.save(kept)
        with waiting("drawing rows", silent=json):
            drawn = fitted.sample(rows, rng=None if seed is None else seed + 1)
            write(drawn, file)
    if json:
        facts = {"epsilon": epsilon, "delta": delta, "event": fitted.event_.to_dict(), "charge": payer.head}
        show.as_json({"out": out, "rows": len(drawn), "model": model, "reproducible": seed is not None} | facts)
        return
    unit = (
        "one row" if declared.unit is None else f"all rows with the same {declared.unit!r}, of which the first counts"
    )
    show.say(
        f"wrote {out}: {len(drawn):,} synthetic rows",
        f"guarantee: epsilon = {epsilon:g} at delta = {delta:g} ({Adjacency.ADD_REMOVE}) for {unit}",
    )
    if numbers := _with_decimals(declared, drawn):
        show.say(f"with decimals: {', '.join(numbers)}; whole = true in the schema makes whole numbers of them")
    if seed is not None:
        show.say("made with a seed: for tests, not private")


def _with_decimals(declared: Declaration, drawn: Any) -> list[str]:
    """Columns of floats whose bounds are whole numbers, as those of ages are."""
    with extra("tables"):
        import narwhals as nw

    kinds = nw.from_native(drawn, eager_only=True).schema
    numbers = {name: column for name, column in declared.schema.items() if isinstance(column, Bounded)}
    return [
        name
        for name, column in numbers.items()
        if kinds[name].is_float() and not column.auto and column.low.is_integer() and column.high.is_integer()
    ]


def _without_times(declared: Declaration) -> tuple[Declaration, list[str]]:
    """The declaration without its times, which no synthesizer models, and their names."""
    timed = [name for name, column in declared.schema.items() if isinstance(column, Times)]
    return replace(declared, schema=Schema({k: v for k, v in declared.schema.items() if k not in timed})), timed


def _writer(out: str) -> Any:
    """What writes a frame, by the ending of the file."""
    with extra("tables"):
        import narwhals as nw

    kinds = {".csv": "write_csv", ".parquet": "write_parquet"}
    if (ending := Path(out).suffix) not in kinds:
        raise ValueError(f"--out is {out!r}, but must name a file that ends in {' or '.join(kinds)}.")
    return lambda frame, file: getattr(nw.from_native(frame, eager_only=True), kinds[ending])(str(file))
