"""``discreet pate``: teachers, votes and a student, described by a TOML file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli import show
from discreet.cli.books import Recorded
from discreet.cli.books import book_to_charge as charged_book
from discreet.cli.help import LEARN, example
from discreet.cli.options import BookOption, Json, LedgerOption, NoBookOption, QuietOption, Seed, out_option
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.toml import read_sections
from discreet.cli.waiting import waiting
from discreet.release import charged
from discreet.schema import read_schema

if TYPE_CHECKING:  # --help must not wait for scikit-learn
    from discreet.pate.aggregation import Aggregator
    from discreet.pate.tabular import TablePATE

__all__ = ["pate", "register"]

_SECTIONS = {
    "data": {"private", "public", "schema", "target"},
    "teachers": {"number", "model", "jobs"},
    "aggregation": {"kind", "scale", "sigma", "threshold", "sigma_threshold", "queries", "answers"},
    "privacy": {"delta"},
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=LEARN, epilog=example("discreet pate votes.toml --ledger budget.db"))(pate)


def pate(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="A TOML file with the sections data, teachers, aggregation and privacy.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, out_option("Where the student goes, as JSON.", show_default=True)] = Path("student.json"),
    ledger: LedgerOption = None,
    book: BookOption = None,
    no_book: NoBookOption = False,
    seed: Seed = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    json: Json = False,
) -> None:
    """Train teachers on private rows, let them label public rows by noisy votes, and save a student's model."""
    from discreet.encoding import one_row_note
    from discreet.linear.saved import dumps

    asked = read_sections(file, _SECTIONS)
    operation, private, inputs = _operation(asked, file.parent)
    show.note(one_row_note(operation.declaration), silent=json)
    with (
        claim_path(out, force=force, inputs=[file, *inputs]) as written,
        charged_book(ledger, book, no_book, operation.delta) as account,
        waiting("training teachers", silent=quiet or json) as told,
    ):
        payer = Recorded(account)
        model = charged(
            replace(operation, progress=told or False), private, book=payer, label=f"student of {file.name}", rng=seed
        ).value
        model.stated["charged"] = payer.head
        written.write_text(dumps(model), encoding="utf-8")
    if json:
        show.as_json(model.statement | {"model": str(out)})
        return
    stated = model.statement
    show.say(
        f"wrote {out}: {operation.target} from {', '.join(model.features)}, after {stated['answered']} answers",
        f"guarantee: epsilon = {model.epsilon:.4g} at delta = {model.delta:g} ({stated['adjacency']}) for "
        f"{stated['unit']}",
    )
    if seed is not None:
        show.say("made with a seed: for tests, not private")


def _operation(asked: dict[str, dict[str, Any]], folder: Path) -> tuple[TablePATE, str, list[str]]:
    from discreet.pate.tabular import TablePATE

    data, teachers = asked["data"], asked["teachers"]
    if absent := [name for name in ("private", "public", "schema", "target") if not isinstance(data.get(name), str)]:
        raise ValueError(f"data.{absent[0]} is missing: a file's name, or for target a column's.")
    private, public, schema = (str(folder / data[name]) for name in ("private", "public", "schema"))
    aggregation = dict(asked["aggregation"])
    queries = aggregation.pop("queries", None)
    operation = TablePATE(
        read_schema(schema),
        data["target"],
        public,
        _aggregator(aggregation),
        n_teachers=teachers.get("number", 100),
        teacher=teachers.get("model", "logistic"),
        n_jobs=teachers.get("jobs"),
        queries=queries,
        delta=asked["privacy"].get("delta", 1e-6),
    )
    return operation, private, [private, public, schema]


def _aggregator(facts: dict[str, Any]) -> Aggregator:
    from discreet.pate import ConfidentGNMax, GNMax, LNMax

    kinds: dict[str, Any] = {"LNMax": LNMax, "GNMax": GNMax, "ConfidentGNMax": ConfidentGNMax}
    kind = facts.pop("kind", "GNMax")
    if kind not in kinds:
        raise ValueError(f"aggregation.kind is {kind!r}, but must be one of {', '.join(kinds)}.")
    try:
        made: Aggregator = kinds[kind](**facts)
    except TypeError:
        needed = {"LNMax": "scale", "GNMax": "sigma", "ConfidentGNMax": "sigma, threshold, sigma_threshold and answers"}
        raise ValueError(f"aggregation of kind {kind} takes {needed[kind]}, but has {', '.join(facts)}.") from None
    return made
