"""``discreet fit``: a private linear model of a file, saved with its privacy statement."""

from __future__ import annotations

import csv
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli import show
from discreet.cli.books import BookOption, LedgerOption, charged
from discreet.cli.query import JsonOption, SchemaFile
from discreet.schema import read_schema

__all__ = ["fit", "found", "read_columns"]

Data = Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file, with a header.", show_default=False)]
Target = Annotated[str, typer.Option("--target", help="The column to predict; the schema says whether it is a category or a "
                                     "number.", show_default=False)]
EpsilonOption = Annotated[float, typer.Option("--epsilon", help="The budget.", show_default=False)]
DeltaOption = Annotated[float, typer.Option("--delta", help="The delta of (epsilon, delta).")]
Out = Annotated[str, typer.Option("--out", metavar="FILE", help="Where the model goes, as joblib.", show_default=False)]
Seed = Annotated[int | None, typer.Option("--seed", help="Repeat a run, for tests: such a model is not private.",
                                          show_default=False)]


def fit(
    data: Data,
    schema: SchemaFile,
    target: Target,
    epsilon: EpsilonOption,
    out: Out,
    delta: DeltaOption = 1e-6,
    ledger: LedgerOption = None,
    book: BookOption = None,
    seed: Seed = None,
    json: JsonOption = False,
) -> None:
    """Fit a private linear model to a file and save it with what it guarantees."""
    with extra("sklearn"):
        import joblib

    from discreet.linear.tabular import TableModel

    model = TableModel(read_schema(schema), target=target, epsilon=epsilon, delta=delta, random_state=seed)
    with charged(ledger, book) as account:
        found(data)
        if account is not None:  # before the file is read
            account.charge(model.event, label=f"model of {target}", unit=model.unit)
        model.fit(read_columns(data))
    joblib.dump(model, out)
    statement = model.statement
    if json:
        show.as_json(statement | {"model": out})
        return
    show.say(f"wrote {out}: {target} from {', '.join(model.features)}")
    show.say(f"guarantee: epsilon = {epsilon:g} at delta = {delta:g} ({statement['adjacency']}) for {statement['unit']}")
    if seed is not None:
        show.say("made with a seed: for tests, not private")


def found(path: str) -> None:
    """Refuse a path where there is no file."""
    if not Path(path).is_file():
        raise ValueError(f"The file {path!r} is not there.")


def read_columns(path: str) -> dict[str, list[Any]]:
    """The columns of a CSV or Parquet file, by name; a short line's missing entries are missing values."""
    found(path)
    if path.endswith(".parquet"):
        with extra("tables"):
            reader = import_module("pyarrow.parquet")
        columns: dict[str, list[Any]] = reader.read_table(path).to_pydict()
        return columns
    csv.field_size_limit(sys.maxsize)
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            header = next(lines, [])
            rows = [line for line in lines if line]
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"The file {path!r} is not CSV in UTF-8.") from None
    return {name: [row[i] if i < len(row) else None for row in rows] for i, name in enumerate(header)}
