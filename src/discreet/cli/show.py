"""How answers look: numbers rounded to the safe side, JSON, tables that are never cut, and a trade-off curve in
characters.

Names, labels and keys come from files and from other people. Before they reach a terminal, what would move its cursor,
change its colours or turn the direction of writing is written as an escape.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from discreet.cli import colours
from discreet.cli.colours import Painted

__all__ = ["as_json", "ceiling", "clean", "curve", "data", "floor", "note", "say", "table", "warn"]


def ceiling(value: float, digits: int = 7) -> str:
    """An upper bound as text, rounded up: what is printed is still an upper bound.

    >>> ceiling(0.94686681), ceiling(math.inf), ceiling(5.0)
    ('0.9468669', 'inf', '5')
    """
    return _round_text(value, digits, ROUND_CEILING)


def floor(value: float, digits: int = 7) -> str:
    """A lower bound as text, rounded down."""
    return _round_text(value, digits, ROUND_FLOOR)


def _round_text(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    exact = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    plain = exact == 0 or Decimal("1e-4") <= abs(exact) < Decimal(10) ** digits
    text = f"{exact:f}" if plain else f"{exact:e}"
    return text.rstrip("0").rstrip(".") if plain and "." in text else text


def as_json(values: Any) -> None:
    """JSON on standard output, in ASCII; an infinite bound is the text "inf", which JSON has no number for."""
    print(json.dumps(_finite(values), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


# --- text for a terminal ----------------------------------------------------------------------------------------------

_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control, format (directions of writing), lone surrogates, ends of lines


def clean(text: str, keep: str = "") -> str:
    r"""The text with everything unseen as an escape: no label can act on a terminal, or look like another one. A mark
    that stands on nothing is unseen too: it has no width, and would join what is printed before it.

    >>> print(clean("a\x1b[31m\u202eb\ud800\n"), clean("\u0f35"))
    a\x1b[31m\u202eb\ud800\n \u0f35
    """
    bare = next((at for at, sign in enumerate(text) if unicodedata.category(sign)[0] != "M"), len(text))
    return "".join(
        _escape(sign) if at < bare or (sign not in keep and unicodedata.category(sign) in _UNSEEN) else sign
        for at, sign in enumerate(text)
    )


def _escape(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")


def say(*lines: str) -> None:
    """Lines for a person, with their amounts, or as a whole, in colour where that is wanted; a sign that the terminal
    has no code for is written as an escape.
    """
    print("\n".join(_colour(line, _wrap(_printable(line), sys.stdout), sys.stdout) for line in lines))


def note(text: str, *, silent: bool = False) -> None:
    """A line that is worth knowing, if there is one; on standard error where standard output holds data."""
    if text:
        warn(text) if silent else say(text)


def warn(text: str, colour: colours.Colour = colours.CAREFUL) -> None:
    """One line on standard error."""
    shown = _wrap(_encodable(clean(text), sys.stderr), sys.stderr)
    print(_colour(Painted(text, colour), shown, sys.stderr), file=sys.stderr)


def _wrap(text: str, stream: Any) -> str:
    """A long line on a terminal, cut between words; a file or a pipe gets it as it is."""
    width = shutil.get_terminal_size().columns
    if len(text) <= width or not stream.isatty():
        return text
    label = re.match(r"\S+ {2,}", text)  # of a list: what goes on stands below what it goes on from
    indent = " " * label.end() if label and label.end() < width else ""
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _colour(line: str, shown: str, stream: Any) -> str:
    """What is shown of a line, in its colours: put on last, so that nothing in the text can bring its own."""
    if not colours.wants_colour(stream):
        return shown
    return line.colour.paint(shown) if isinstance(line, Painted) else colours.highlight_amounts(shown)


def data(text: str) -> None:
    """Text for other programs, as it is; to a terminal, cleaned."""
    text = clean(text, keep="\n") if sys.stdout.isatty() else text
    sys.stdout.write(_encodable(text, sys.stdout))


def _printable(text: str) -> str:
    return _encodable(clean(text), sys.stdout)


def _encodable(text: str, stream: Any) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]], *, prose: bool = False) -> None:
    """A table where it fits the terminal; otherwise a block of lines per row, "header: value". No value is ever cut.

    With ``prose``, the last column may be wrapped between words.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    title, *headers = (_printable(text) for text in (title, *headers))
    inks = [[cell.colour if isinstance(cell, Painted) else None for cell in row] for row in rows]
    rows = [[_printable(cell) for cell in row] for row in rows]
    wanted = colours.wants_colour(sys.stdout)
    widths = [max(cell_len(cell) for cell in column) for column in zip(headers, *rows, strict=True)]
    if prose:
        widths[-1] = max(cell_len(word) for row in (headers, *rows) for word in row[-1].split(" "))
    if sum(widths) + 3 * len(widths) + 1 > shutil.get_terminal_size().columns:
        names = max(map(cell_len, headers))
        blocks = [
            "\n".join(
                f"{name}:{' ' * (names - cell_len(name))} {ink.paint(cell) if ink and wanted else cell}"
                for name, cell, ink in zip(headers, row, ink_row, strict=True)
            )
            for row, ink_row in zip(rows, inks, strict=True)
        ]
        print("\n\n".join([*([title] if title else []), *blocks]))
        return
    grid = Table(title=Text(title) if title else None, title_justify="left")
    for number, header in enumerate(headers):
        grid.add_column(Text(header), no_wrap=not prose or number + 1 < len(headers))
    for row, ink_row in zip(rows, inks, strict=True):  # Text: a bracket in a reason is a bracket, not markup
        grid.add_row(*(Text(cell, ink.name if ink else "") for cell, ink in zip(row, ink_row, strict=True)))
    system: Any = "standard" if wanted else None
    Console(width=shutil.get_terminal_size().columns, color_system=system, force_terminal=wanted).print(grid)


# --- a plot in characters -------------------------------------------------------------------------------------------

COLUMNS, ROWS = 48, 14
# A braille character has 2 x 4 dots; these are their bits, by row and column.
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def curve(xs: Sequence[float], ys: Sequence[float], *, below: str, beside: str) -> list[str]:
    """The lines of a curve on the unit square in braille dots, with the diagonal of a blind guess thinly drawn."""
    bits = [[0] * COLUMNS for _ in range(ROWS)]
    wide, high = 2 * COLUMNS - 1, 4 * ROWS - 1
    for dot in range(0, wide + 1, 4):
        _mark(bits, dot, round(high * dot / wide))
    for dot in range(10 * wide + 1):
        x = dot / (10 * wide)
        _mark(bits, round(x * wide), round((1 - _interpolate(x, xs, ys)) * high))
    lines = ["".join(chr(0x2800 + cell) for cell in row) for row in bits]
    edge = ["1 ┤", *["  │"] * (ROWS - 2), "0 ┤"]
    body = [f"{side}{line}" for side, line in zip(edge, lines, strict=True)]
    return [f"  {beside}", *body, f"  └{'─' * COLUMNS}", f"   0{below:^{COLUMNS - 2}}1"]


def _mark(bits: list[list[int]], x: int, y: int) -> None:
    bits[y // 4][x // 2] |= DOTS[y % 4][x % 2]


def _interpolate(x: float, xs: Sequence[float], ys: Sequence[float]) -> float:
    after = next((i for i, at in enumerate(xs) if at >= x), len(xs) - 1)
    if after == 0 or xs[after] == xs[after - 1]:
        return ys[after]
    share = (x - xs[after - 1]) / (xs[after] - xs[after - 1])
    return ys[after - 1] + min(share, 1.0) * (ys[after] - ys[after - 1])
