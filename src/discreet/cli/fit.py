"""``discreet fit``: a private linear model of a file, saved with its privacy statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli import show
from discreet.cli.books import Recorded, book_to_charge
from discreet.cli.help import LEARN, example
from discreet.cli.options import (
    BookOption,
    Data,
    Json,
    LedgerOption,
    NoBookOption,
    SchemaFile,
    Seed,
    delta_option,
    epsilon_option,
    out_option,
)
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.waiting import waiting

if TYPE_CHECKING:
    from discreet.linear.tabular import TableModel

__all__ = ["fit", "register"]

Target = Annotated[
    str,
    typer.Option(
        "--target",
        help="The column to predict; the schema says whether it is a category or a number.",
        show_default=False,
    ),
]
EpsilonOption = Annotated[float, epsilon_option("The budget.")]
DeltaOption = Annotated[float, delta_option(show_default=True)]
Out = Annotated[str, out_option("Where the model goes, as JSON.")]
Share = Annotated[
    float,
    typer.Option(
        "--score",
        min=0.0,
        max=0.9,
        help="Hold back this share of the rows (0.2, say), and measure privately how well the model predicts them.",
    ),
]

EXAMPLE = example(
    "discreet fit people.csv --schema people.toml --target income \\",
    "  --epsilon 1 --delta 1e-7 --out income.json --ledger budget.db",
)
UNSCORED = (
    "the quality of the model was not measured: --score 0.2 holds a fifth of the rows back and measures it, for no "
    "more epsilon"
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=LEARN, epilog=EXAMPLE)(fit)


def fit(
    data: Data,
    schema: SchemaFile,
    target: Target,
    epsilon: EpsilonOption,
    out: Out,
    delta: DeltaOption = 1e-6,
    ledger: LedgerOption = None,
    book: BookOption = None,
    no_book: NoBookOption = False,
    score: Share = 0.0,
    seed: Seed = None,
    force: ForceOption = False,
    json: Json = False,
) -> None:
    """Fit a private linear model to a file, and save it with its guarantee."""
    from discreet.encoding import one_row_note
    from discreet.linear.saved import dumps
    from discreet.linear.tabular import TableModel

    model = TableModel(schema, target=target, epsilon=epsilon, delta=delta, random_state=seed, score_share=score)
    show.note(one_row_note(model.declaration), silent=json)
    with (
        claim_path(out, force=force, inputs=[data, schema]) as file,
        book_to_charge(ledger, book, no_book, delta) as account,
        waiting("reading and fitting", silent=json),
    ):
        payer = Recorded(account)
        model.fit(data, book=payer)
        model.charge = payer.head
        file.write_text(dumps(model), encoding="utf-8")
    if json:
        show.as_json(model.statement | {"model": out})
        return
    stated = model.statement
    show.say(
        f"wrote {out}: {target} from {', '.join(model.features)}",
        f"guarantee: epsilon = {epsilon:g} at delta = {delta:g} ({stated['adjacency']}) for {stated['unit']}",
    )
    if unused := _unused(model):
        show.say(f"left out: {', '.join(unused)}, because dates, times and unlisted values are no features")
    if numbers := _needed_numbers(model):
        show.say(
            f"a row with no number for {' or '.join(numbers)} is not used to fit; its prediction takes the middle of "
            "the bounds instead, unless missing = ... in the schema names another number"
        )
    show.say(UNSCORED if model.score is None else f"score: {model.score}")
    if seed is not None:
        show.say("made with a seed: for tests, not private")


def _unused(model: TableModel) -> list[str]:
    """Declared columns that the model does not look at."""
    declared = model.declaration
    return [name for name in declared.schema if name not in (*model.features, model.target, declared.unit)]


def _needed_numbers(model: TableModel) -> list[str]:
    """The features whose numbers a row must have to be used: bounded columns without a ``missing`` number."""
    from discreet.schema import Bounded

    columns = model.features.items()
    return [name for name, column in columns if isinstance(column, Bounded) and column.missing == "drop"]
