"""``discreet predict``: what a saved model says about the rows of a file."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated, TextIO

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli import show
from discreet.cli.fit import Data, read_columns

__all__ = ["predict"]

Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model that 'discreet fit' saved. Loading runs code from the "
                                      "file: open only models you trust.", show_default=False)]
Out = Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write a CSV there instead of printing.",
                                         show_default=False)]
Statement = Annotated[bool, typer.Option("--statement", help="Print the model's privacy statement, and predict nothing.")]


def predict(model: Model, data: Data = "", out: Out = None, statement: Statement = False) -> None:
    """Predict with a saved model: one line a row. Predictions cost nothing more."""
    with extra("sklearn"):
        import joblib

    from discreet.linear.tabular import TableModel

    if not Path(model).is_file():
        raise ValueError(f"The model {model!r} is not there.")
    loaded = joblib.load(model)
    if not isinstance(loaded, TableModel):
        raise ValueError(f"The file {model!r} holds no model made by 'discreet fit'.")
    if statement:
        show.as_json(loaded.statement)
        return
    if not data:
        raise ValueError("DATA is missing: name the file to predict for, or ask for --statement.")
    found = loaded.predict(read_columns(data)).tolist()
    if out is None:
        _write(sys.stdout, loaded.target, found)
        return
    with open(out, "w", newline="", encoding="utf-8") as file:
        _write(file, loaded.target, found)
    show.say(f"wrote {out}: {len(found)} predictions of {loaded.target}")


def _write(file: TextIO, target: str, found: list[object]) -> None:
    lines = csv.writer(file, lineterminator="\n")
    lines.writerow([target])
    lines.writerows([value] for value in found)
