"""``discreet test``: a private test of two columns of a file."""

from __future__ import annotations

from typing import Annotated, Any

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli import show
from discreet.cli.books import Recorded, book_to_charge
from discreet.cli.fit import EpsilonOption
from discreet.cli.help import LEARN, example
from discreet.cli.options import (
    BookOption,
    Data,
    Json,
    LedgerOption,
    NoBookOption,
    SchemaFile,
    Seed,
    confidence_option,
    delta_option,
)
from discreet.cli.waiting import waiting

__all__ = ["register", "run_test"]

By = Annotated[
    str | None,
    typer.Option(
        "--by", help="The column of groups, or the first of two; none for a test of one column.", show_default=False
    ),
]
Of = Annotated[str, typer.Option("--of", help="The column that is compared.", show_default=False)]
Events = Annotated[
    str | None, typer.Option("--events", help="For log-rank: the column that says whether the event was seen.")
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--test",
        help="welch, anova, mann-whitney, kolmogorov-smirnov, two-proportions, paired, independence, correlation or "
        "log-rank, or of one column one-sample or quantile; without it, what the columns' kinds suggest.",
        show_default=False,
    ),
]
Null = Annotated[
    float | None,
    typer.Option("--null", help="For tests of means and of a quantile: the value that is tested.", show_default=False),
]
Alternative = Annotated[str, typer.Option("--alternative", help="two-sided, greater or less.")]
Confidence = Annotated[float, confidence_option("Confidence of the interval.")]
DeltaOption = Annotated[float | None, delta_option()]

EXAMPLE = example(
    "discreet test people.csv --schema people.toml --by sex --of age \\",
    "  --epsilon 1 --ledger budget.db",
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("test", rich_help_panel=LEARN, epilog=EXAMPLE)(run_test)


def run_test(
    data: Data,
    schema: SchemaFile,
    of: Of,
    epsilon: EpsilonOption,
    by: By = None,
    delta: DeltaOption = None,
    kind: Kind = None,
    events: Events = None,
    null: Null = None,
    alternative: Alternative = "two-sided",
    confidence: Confidence = 0.95,
    ledger: LedgerOption = None,
    book: BookOption = None,
    no_book: NoBookOption = False,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Test two columns of a file privately: a p-value and an interval that account for the noise."""
    from discreet.encoding import one_row_note
    from discreet.inference import compare
    from discreet.schema import read_schema

    declared = read_schema(schema)
    show.note(one_row_note(declared), silent=json)
    asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "alternative": alternative, "confidence": confidence}
    if null is not None:
        asked["null"] = null
    columns = [name for name in (by, of, events) if name is not None]
    with book_to_charge(ledger, book, no_book, delta) as account, waiting("reading", silent=json):
        answer = compare(data, *columns, schema=declared, test=kind, book=Recorded(account), rng=seed, **asked)
    low, high = answer.interval
    if json:
        facts = {
            "p_value": answer.p_value,
            "least_p_value": answer.least_p_value,
            "effect": answer.effect,
            "effect_name": answer.effect_name,
            "interval": [low, high],
            "note": answer.note,
        }
        show.as_json({"test": answer.label, **facts, "event": answer.event.to_dict(), "reproducible": seed is not None})
        return
    sides = "" if alternative == "two-sided" else "two-sided "  # the test is one-sided, its interval never
    remarks = [answer.alternative] if answer.alternative else []
    if answer.p_relation == "≤":
        remarks.append("as small as the simulated draws can say")
    show.say(
        answer.label,
        f"p {answer.p_relation} {answer.p_value:.4g}{' (' + '; '.join(remarks) + ')' if remarks else ''}",
        f"{answer.effect_name} = {answer.effect:.4g}, {100 * confidence:g} % {sides}interval {low:.4g} to {high:.4g}",
        f"assumes: {answer.assumes}",
        *([answer.note] if answer.note else []),
    )
    if seed is not None:
        show.say("made with a seed: for tests, not private")
