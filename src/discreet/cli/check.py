"""``discreet check``: how a file meets its schema, for its owner, in a terminal; not private."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli import colours, show
from discreet.cli.help import LEARN, example
from discreet.cli.options import Data, SchemaFile

if TYPE_CHECKING:
    from discreet.encoding.inspection import ColumnCounts

__all__ = ["check", "register"]

NOT_PRIVATE = (
    "NOT PRIVATE: these are exact counts of the data, charged to no book. For its owner's eyes: do not share, copy or "
    "write them down."
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=LEARN, epilog=example("discreet check people.csv --schema people.toml"))(check)


def check(data: Data, schema: SchemaFile) -> None:
    """Show the owner of a file how well it fits its schema: empty, unreadable and outlying cells, rows per unit.

    Exact counts, so not private: they are shown in a terminal only, and never charged.
    """
    from discreet.encoding.inspection import count_problems, count_units
    from discreet.encoding.sources import unreadable_lines
    from discreet.schema import read_schema

    if not sys.stdout.isatty():
        raise ValueError(
            "'discreet check' shows exact counts of the data, which are not private: in a terminal only, not in a "
            "file or a pipe. 'discreet query' gives numbers that may be shared."
        )
    declared = read_schema(schema)
    show.warn(NOT_PRIVATE, colours.BAD)
    counts = count_problems(data, declared)
    if counts:
        rows = [_line(each) for each in counts]
        headers: tuple[str, ...] = ("column", "rows", "empty", "not readable", "outside", "look at")
        shown = len(headers) if any(row[-1] for row in rows) else len(headers) - 1
        show.table("", headers[:shown], [row[:shown] for row in rows], prose=True)
    if lines := unreadable_lines(data, declared.text, [*declared.schema, declared.unit or ""]):
        show.say(
            f"lines that hold no row, and count nowhere: {len(lines):,} (the first is line {lines[0]:,}). They have "
            "too few or too many entries, or are not UTF-8 (in Excel, save as CSV UTF-8)"
        )
    units = count_units(data, declared)
    if units is not None:
        most = declared.max_rows_per_unit
        show.say(
            f"{units.units:,} different {declared.unit!r}; the most rows of one: {units.most:,}. max_rows_per_unit = "
            f"{most} leaves out {units.lost:,} row{'' if units.lost == 1 else 's'}, of {units.over:,} of them"
        )
    show.warn(NOT_PRIVATE, colours.BAD)


def _line(counts: ColumnCounts) -> tuple[str, ...]:
    numbers = (counts.rows, counts.empty, counts.unreadable, counts.outside)
    return (counts.name, *(f"{number:,}" for number in numbers), _advice(counts))


def _advice(counts: ColumnCounts) -> str:
    """What to look at, where much of a column is not read as meant."""
    if counts.rows and counts.unreadable > counts.rows / 20:
        return "separator, decimal and date_format of the schema"
    if counts.rows and counts.outside > counts.rows / 20:
        return "the bounds, or the categories"
    return ""
