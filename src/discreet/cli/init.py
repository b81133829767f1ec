"""``discreet init``: a schema to be filled in, drafted from names and types of a file's columns; no value is read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli import show
from discreet.cli.help import LEARN, example
from discreet.cli.options import Data, out_option
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.text_form import DateFormat, Decimal, Separator, Thousands, ask_form, form_lines, form_of

if TYPE_CHECKING:
    from discreet.schema import TextForm

__all__ = ["draft", "init", "register"]

_HEAD = """\
# What is publicly known of {name}. Only the names of its columns, and the types that the file declares, were read.
#
# Write down what you know without looking at the data (a questionnaire, a law, common sense): whatever is read off
# the data instead is a leak that nobody pays for. A column that is not declared is not used: take the # away from
# those that you need, with one of
#
#   {{ bounds = [0, 100] }}                            a number: what lies outside counts as the nearer bound; a cell
#                                                    that is empty, or no number, does not count (missing = 0: as 0)
#   {{ bounds = [0, 50], whole = true }}               a whole number: others count as the nearest one
#   {{ range = [1, 16] }}                              whole numbers that are categories, both ends included
#   {{ categories = ["f", "m"], other = "unknown" }}   the values there are
#   {{ dates = ["2023-01-01", "2024-12-31"] }}         days, from the first to the last
#   {{ times = ["2023-01-01", "2024-12-31"] }}         the same with the time of day, for its hours and minutes
#   {{ unlisted = true }}                              names, postcodes: values that are private themselves

{unit}{form}
[columns]
"""
_FORMS = {
    "number": "{ bounds = [LOW, HIGH] }",
    "text": '{ categories = ["...", "..."] }',
    "day": '{ dates = ["YYYY-MM-DD", "YYYY-MM-DD"] }',
    "time": '{ times = ["YYYY-MM-DD", "YYYY-MM-DD"] }',
    "": "{ ... }",
}
_KINDS = ("number", "category", "date", "time", "private", "none")
_ASKED = "number, category, date, time, private or none"

Out = Annotated[str, out_option("Where the schema goes, as TOML.", show_default=True)]
Ask = Annotated[
    bool | None,
    typer.Option(
        "--ask/--no-ask", help="Ask for each column what is known; by default in a terminal.", show_default=False
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=LEARN, epilog=example("discreet init people.csv --out people.toml"))(init)


def init(
    data: Data,
    out: Out = "schema.toml",
    ask: Ask = None,
    separator: Separator = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    date_format: DateFormat = None,
    force: ForceOption = False,
) -> None:
    """Draft the schema of a file: names and types of its columns, and what you say is public. No value is read.

    Of a text file only the first line is read. It shows what separates entries, but not how numbers and days are
    written: say that by the options below, or remove the # from its line in the draft.
    """
    from discreet.encoding.files import declared_types
    from discreet.schema import parse_schema

    form = form_of(data, separator, decimal, date_format, thousands)
    columns = declared_types(data, form.separator if form else None)
    asking = sys.stdin.isatty() if ask is None else ask
    if form is not None and (values := _like_values(columns)):
        show.warn(
            f"{values} of the {len(columns)} names in the first line are numbers. If that line is a row, put a line of "
            "names above it: names of columns are public, and the first line is not read as a row."
        )
    with claim_path(out, force=force, inputs=[data]) as file:
        unit = _whose(columns) if asking else Unit()
        answers = {name: _ask_declaration(name) for name in columns if name != unit.column} if asking else {}
        form = ask_form(form, list(answers.values())) if form and asking else form
        text = draft(data, columns, answers, unit, form)
        if any(answers.values()):
            parse_schema(text)  # what was said must be a schema
        file.write_text(text, encoding="utf-8")
    apart = f", separated by {form.separator!r}" if form and form.separator else ""
    missing = "" if any(answers.values()) else "; it declares nothing yet: open it, and fill in what is public"
    show.say(f"wrote {out}: {len(columns)} columns{apart}{missing}")


def _like_values(names: Iterable[str]) -> int:
    """How many names of columns are numbers, where those are several, and neither years nor the columns' places.

    >>> _like_values(["39", " State-gov", "77516", "13"]), _like_values(["land", "2019", "2020"]), _like_values("012")
    (3, 0, 0)
    """
    numbers = [name.strip() for name in names if re.fullmatch(r"\s*[-+]?[0-9]+([.,][0-9]+)?\s*", name)]
    odd = [name for name in numbers if not re.fullmatch("(1[89]|2[01])[0-9]{2}", name)]
    counted = {int(name) for name in odd if name.isdigit()} <= set(range(len(odd) + 1)) and all(map(str.isdigit, odd))
    return 0 if counted or len(odd) < 2 else len(odd)


@dataclass(frozen=True)
class Unit:
    """Whose rows they are, as far as somebody said: the column of identifiers, and how many rows of each count."""

    column: str | None = None
    rows: int = 1
    said: bool = False  # that a row is a person's whole contribution

    def __str__(self) -> str:
        if self.column is not None:
            return (
                f"unit = {_text(self.column)}    # who is protected: all rows of one of them\n"
                f"max_rows_per_unit = {self.rows}    # how many rows of one of them count\n"
            )
        told = "as was said: each row is somebody else's" if self.said else "without it, a single row is protected"
        return f'# unit = "person_id"        # who is protected, by the column that says whose row it is; {told}\n' + (
            "" if self.said else "# max_rows_per_unit = 1     # how many rows of one of them count\n"
        )


def draft(
    name: str,
    columns: dict[str, str],
    answers: dict[str, str],
    unit: Unit | None = None,
    form: TextForm | None = None,
) -> str:
    """The file: whose rows they are, how its text is written, one line per declared column, and one to be filled in for
    each of the others.

    >>> print(draft("people.csv", {"age": "int64", "job": ""}, {"age": "{ bounds = [0, 100] }"}).splitlines()[-2:])
    ['age = { bounds = [0, 100] }', '# job = { ... }']
    """
    told = {column: answers.get(column) for column in columns}
    lines = [
        f"{_key(column)} = {told[column]}" if told[column] else f"# {_key(column)} = {_FORMS[_kind(declared)]}"
        for column, declared in columns.items()
    ]
    head = _HEAD.format(name=show.clean(name), unit=Unit() if unit is None else unit, form=form_lines(form))
    return head + "\n".join(lines) + "\n"


def _kind(declared: str) -> str:
    """What a type that a file declares suggests."""
    if declared.startswith("timestamp"):
        return "time"
    if declared.startswith("date"):
        return "day"
    if declared.startswith(("int", "uint", "float", "double", "half", "decimal")):
        return "number"
    return "text" if declared else ""


def _key(name: str) -> str:
    """A column's name as a key of TOML, on one line."""
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else _text(name)


def _text(value: str) -> str:
    """A text of TOML, on one line."""
    return '"' + "".join(_quote(sign) for sign in value) + '"'


def _quote(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    return sign if sign.isprintable() else f"\\U{ord(sign):08X}"


def _whose(columns: dict[str, str]) -> Unit:
    """Whose rows these are: the first thing to know, because it says who is protected."""
    typer.echo("Whose rows are these? Privacy protects whoever they belong to, with all of their rows.", err=True)
    while True:
        column = typer.prompt(
            "The column that says whose a row is, or 'none' if each row is somebody else's", default="none"
        )
        if column == "none":
            return Unit(said=True)
        if column in columns:
            break
        typer.echo(f"  There is no column {show.clean(column)!r}: there are {', '.join(columns)}.", err=True)
    rows = typer.prompt(f"  the most rows of one {show.clean(column)} that shall count", type=int, default=1)
    return Unit(column, max(rows, 1))


def _ask_declaration(name: str) -> str:
    """An answer that is a declaration, asked for until it is one."""
    from discreet.schema import parse_schema

    while True:
        answer = _answer(name)
        try:
            parse_schema(f"[columns]\n{_key(name)} = {answer}\n") if answer else None
        except ValueError as error:
            typer.echo(f"  {show.clean(str(error))} Once more, please.", err=True)
            continue
        return answer


def _answer(name: str) -> str:
    """What somebody knows of a column, as TOML; nothing where it is left out."""
    shown = show.clean(name)
    kind = typer.prompt(f"{shown}: {_ASKED}", default="none").strip().lower()
    while not any(word.startswith(kind) for word in _KINDS):
        kind = (
            typer.prompt(f"  {show.clean(kind)!r} is none of these. {shown}: {_ASKED}", default="none").strip().lower()
        )
    match kind[:1]:
        case "n" if kind not in ("no", "non", "none"):
            low, high = (typer.prompt(f"  {end} bound of {shown}", type=float) for end in ("lower", "upper"))
            return f"{{ bounds = [{low!r}, {high!r}] }}"
        case "c":
            values = [value.strip() for value in typer.prompt("  its values, with commas between").split(",")]
            listed = ", ".join('"' + "".join(map(_quote, value)) + '"' for value in values if value)
            return f"{{ categories = [{listed}] }}"
        case "d" | "t" as initial:
            first, last = (typer.prompt(f"  {end} day, as 2024-01-31") for end in ("first", "last"))
            return f'{{ {"dates" if initial == "d" else "times"} = ["{first.strip()}", "{last.strip()}"] }}'
        case "p":
            return "{ unlisted = true }"
    return ""
