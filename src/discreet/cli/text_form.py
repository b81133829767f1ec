"""How the text file is written that ``discreet init`` drafts a schema of: its separator, its numbers, its dates.

The separator is seen in the first line, which holds the names of columns and is public. The others stand in rows,
which are not read: somebody says them, by an option, by an answer, or in the schema.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from discreet.errors import extra

with extra("cli"):
    import typer

if TYPE_CHECKING:
    from discreet.schema import TextForm

__all__ = ["DateFormat", "Decimal", "Separator", "Thousands", "ask_form", "form_lines", "form_of"]

_EXAMPLE = {"2024": "%Y", "31": "%d", "12": "%m", "24": "%y"}  # the parts of a day that tells them apart

Separator = Annotated[
    str | None,
    typer.Option("--separator", help="What separates entries, if the first line does not tell.", show_default=False),
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", help="The decimal sign of numbers: '.' or ','.", show_default=False)
]
Thousands = Annotated[
    str | None,
    typer.Option(
        "--thousands", help="What stands between the thousands of numbers, as ',' in 1,234.", show_default=False
    ),
]
DateFormat = Annotated[
    str | None, typer.Option("--date-format", help="How days are written: '%d/%m/%Y'.", show_default=False)
]


def form_of(
    path: str,
    separator: str | None = None,
    decimal: str | None = None,
    date_format: str | None = None,
    thousands: str | None = None,
) -> TextForm | None:
    """How a text file is written, as far as its first line and the options say; none for another kind of file."""
    from discreet.encoding.files import is_text_file
    from discreet.encoding.text_files import detect_separator
    from discreet.schema import TextForm

    options = {"--separator": separator, "--decimal": decimal, "--date-format": date_format}
    options["--thousands"] = thousands
    if not is_text_file(path):
        if needless := [name for name, value in options.items() if value is not None]:
            raise ValueError(f"{needless[0]} is for text files, but {path!r} is none.")
        return None
    sign = detect_separator(path) if separator is None else separator.replace("\\t", "\t")
    return TextForm(sign, decimal or ".", date_format, thousands)


def form_lines(form: TextForm | None) -> str:
    """What a schema says of it; what nobody said is a line to take the # away from."""
    if form is None:
        return ""
    said = form.as_facts()
    lines = [f"separator = {json.dumps(said['separator'])}"] if "separator" in said else []
    if "decimal" in said:
        lines.append('decimal = ","')
    elif form.separator not in (None, ", "):  # a comma that separates entries is no decimal sign
        lines.append('# decimal = ","              # if numbers are written as 12,5')
    if "thousands" in said:
        lines.append(f"thousands = {json.dumps(said['thousands'])}")
    elif "decimal" not in said:
        lines.append(
            '# thousands = ","            # if numbers are written as 1,234.50; otherwise such cells are missing'
        )
    if "date_format" in said:
        lines.append(f"date_format = {json.dumps(said['date_format'])}")
    else:
        lines.append('# date_format = "%d/%m/%Y"   # if days are written as 31/12/2024, and not as 2024-12-31')
    return "\n".join(lines) + "\n"


def ask_form(form: TextForm, declarations: list[str]) -> TextForm:
    """The form, with what somebody answers of numbers and days, where any are declared and no option said it."""
    if form.separator not in (None, ", ") and form.decimal == "." and any("bounds" in each for each in declarations):
        answer = typer.prompt("How is a large number written: 1234.5, 1,234.5, 1234,5 or 1.234,5", default="1234.5")
        last = next((sign for sign in reversed(answer) if sign in ".,"), ".")
        commas = "," if last == "." and "," in answer else None
        form = replace(form, decimal=last, thousands=form.thousands or commas)
    if form.date_format is None and any("dates" in each for each in declarations):
        form = replace(form, date_format=_ask_date_format())
    return form


def _ask_date_format() -> str | None:
    """By the spelling of one day, whose parts cannot be taken for each other; none for the usual one."""
    while True:
        answer = typer.prompt("How is the last day of 2024 written", default="2024-12-31").strip()
        for part, sign in _EXAMPLE.items():
            answer = answer.replace(part, sign, 1)
        if all(answer.count(sign) == 1 for sign in ("%d", "%m")) and answer.lower().count("%y") == 1:
            return None if answer == "%Y-%m-%d" else answer
        typer.echo("  That is not the 31st of the 12th month of 2024 in digits. Once more, please.", err=True)
