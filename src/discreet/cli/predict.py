"""``discreet predict``: what a saved model says about the rows of a file."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli import show
from discreet.cli.help import LEARN, example
from discreet.cli.options import Data, Json, out_option
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.waiting import waiting

if TYPE_CHECKING:
    from discreet.encoding import Design

__all__ = ["predict", "register"]

SHOWN = 10  # numbers of lines in a warning
FIRST = 10  # predictions that a terminal is shown; a file or a pipe gets all
EXAMPLE = example("discreet predict income.json new.csv --out predictions.csv")

Model = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="A model that 'discreet fit' or 'discreet train' saved.", show_default=False),
]
Out = Annotated[str | None, out_option("Write a CSV there; a terminal is shown the first lines only.")]
Probabilities = Annotated[bool, typer.Option("--probabilities", "-p", help="Also give the probability of each label.")]
Statement = Annotated[
    bool, typer.Option("--statement", help="Print the model's privacy statement, and predict nothing.")
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust-pickle",
        help="Read the model as joblib, which runs whatever code the file "
        "holds: only for files that you made yourself.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=LEARN, epilog=EXAMPLE)(predict)


def predict(
    model: Model,
    data: Data = "",
    out: Out = None,
    probabilities: Probabilities = False,
    statement: Statement = False,
    force: ForceOption = False,
    trust_pickle: Trust = False,
    json: Json = False,
) -> None:
    """Predict with a saved model: one line per row.

    Nothing more is charged, but a prediction is computed from its row: predictions for private rows are as sensitive
    as those rows. The model itself may be given away.
    """
    loaded = _load_pickle(model) if trust_pickle else _load_model(model)  # of 'fit', or of 'train'
    if statement:
        show.as_json(loaded.statement)
        return
    if not data:
        raise ValueError("DATA is missing: name the file to predict for, or ask for --statement.")
    if out is None:
        with waiting("predicting", silent=json):
            columns = _columns(loaded, data, probabilities)
        if json:
            _, *likely = columns
            chances = {"probabilities": {name: columns[name] for name in likely}} if likely else {}
            show.as_json({"target": loaded.target, "predictions": columns[loaded.target], **chances})
        else:
            _print(columns)
    else:
        with claim_path(out, force=force, inputs=[model, data]) as file, waiting("predicting", silent=json):
            columns = _columns(loaded, data, probabilities)
            file.write_text(_csv(columns), encoding="utf-8", newline="")
        many = len(columns[loaded.target])
        told = f"wrote {out}: {many:,} predictions of {loaded.target}"
        show.as_json({"out": out, "target": loaded.target, "rows": many}) if json else show.say(told)
    _tell_left_out(data, loaded.design)
    _tell_unread(data, loaded.design)


def _columns(loaded: Any, data: str, probabilities: bool) -> dict[str, list[object]]:
    """The predictions, and with ``probabilities`` a column for each label."""
    columns: dict[str, list[object]] = {loaded.target: loaded.predict(data).tolist()}
    if not probabilities:
        return columns
    labels, chances = loaded.probabilities(data)
    likely = {f"{loaded.target}={label}": chances[:, place].tolist() for place, label in enumerate(labels)}
    return columns | likely


def _print(columns: dict[str, list[object]]) -> None:
    """All predictions for another program; for a person at a terminal the first, and how to get the others."""
    many = len(next(iter(columns.values())))
    if not sys.stdout.isatty() or many <= FIRST:
        show.data(_csv(columns))
        return
    show.data(_csv({name: values[:FIRST] for name, values in columns.items()}))
    show.warn(f"... and {many - FIRST:,} more: --out FILE writes all of them.")


def _tell_left_out(data: str, design: Design) -> None:
    """Predictions stand in the order of the rows; a line that is no row has none."""
    from discreet.encoding.sources import unreadable_lines

    if lines := unreadable_lines(data, design.declaration.text, tuple(design.features)):
        many = "1 line has" if len(lines) == 1 else f"{len(lines):,} lines have"
        listed = ", ".join(map(str, lines[:SHOWN])) + (", ..." if len(lines) > SHOWN else "")
        show.warn(f"{many} no prediction, because of too few fields or bytes that are no text: {listed}")


def _tell_unread(data: str, design: Design) -> None:
    """In how many rows an entry was not read, of the user's own file: their predictions know less than others'."""
    from discreet.encoding.inspection import count_unread_rows

    counts = count_unread_rows(data, design.declaration, tuple(design.features))
    if counts.unread:
        listed = ", ".join(f"{name} in {many:,}" for name, many in list(counts.columns.items())[:SHOWN])
        more = ", ..." if len(counts.columns) > SHOWN else ""
        show.warn(
            f"{counts.unread:,} of {counts.rows:,} rows have entries that are empty or cannot be read as the model's "
            f"schema says ({listed}{more}). There a number counts as the schema's missing = ... or, without it, as the "
            "middle of the bounds, and a category counts as none of the declared ones. Is this file written like the "
            "one that the model was fitted to (separator, decimal sign, spelling of categories)?"
        )


def _load_model(path: str) -> Any:
    from discreet.linear.saved import LONGEST, loads

    if Path(f"{path}.json").is_file():  # the statement beside a network's weights
        from discreet.cli.network import load_network

        return load_network(path)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LONGEST + 1)
    except FileNotFoundError:
        raise ValueError(f"The model {path!r} is not there.") from None
    except UnicodeDecodeError:
        raise ValueError(
            f"The file {path!r} holds no model made by 'discreet fit': it is not text. If it is a pickle of "
            "yours, --trust-pickle reads it, and runs whatever code it holds."
        ) from None
    if len(text) > LONGEST:
        raise ValueError(f"The file {path!r} is larger than any model.")
    return loads(text)


def _load_pickle(path: str) -> Any:
    with extra("sklearn"):
        import joblib

    from discreet.linear.tabular import TableModel

    if not Path(path).is_file():
        raise ValueError(f"The model {path!r} is not there.")
    loaded = joblib.load(path)
    if not isinstance(loaded, TableModel):
        raise ValueError(f"The file {path!r} holds no model made by 'discreet fit'.")
    return loaded


def _csv(columns: dict[str, list[object]]) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
