"""How answers look: numbers rounded to the safe side, JSON, tables, and a trade-off curve in characters."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["as_json", "ceiling", "curve", "floor", "say", "table"]


def ceiling(value: float, digits: int = 7) -> str:
    """An upper bound as text, rounded up: what is printed is still an upper bound.

    >>> ceiling(0.94686681), ceiling(math.inf), ceiling(5.0)
    ('0.9468669', 'inf', '5')
    """
    return _rounded(value, digits, ROUND_CEILING)


def floor(value: float, digits: int = 7) -> str:
    """A lower bound as text, rounded down."""
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    exact = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    plain = exact == 0 or Decimal("1e-4") <= abs(exact) < Decimal(10) ** digits
    text = f"{exact:f}" if plain else f"{exact:e}"
    return text.rstrip("0").rstrip(".") if plain and "." in text else text


def as_json(values: dict[str, Any]) -> None:
    """One JSON object on standard output; an infinite bound is the text "inf", which JSON has no number for."""
    print(json.dumps(_finite(values), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def say(text: str) -> None:
    """One line for a person."""
    Console(highlight=False, soft_wrap=True).print(text, markup=False)


def table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table; the last column may wrap."""
    grid = Table(title=Text(title), title_justify="left")
    for number, header in enumerate(headers):
        grid.add_column(header, no_wrap=number + 1 < len(headers), overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))  # Text: a bracket in a reason is a bracket, not markup
    Console().print(grid)


# --- a plot in characters -------------------------------------------------------------------------------------------

COLUMNS, ROWS = 48, 14
# A braille character has 2 x 4 dots; these are their bits, by row and column.
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def curve(xs: Sequence[float], ys: Sequence[float], *, below: str, beside: str) -> str:
    """A curve on the unit square in braille dots, with the diagonal of a blind guess thinly drawn."""
    bits = [[0] * COLUMNS for _ in range(ROWS)]
    wide, high = 2 * COLUMNS - 1, 4 * ROWS - 1
    for dot in range(0, wide + 1, 4):
        _mark(bits, dot, round(high * dot / wide))
    for dot in range(10 * wide + 1):
        x = dot / (10 * wide)
        _mark(bits, round(x * wide), round((1 - _interpolated(x, xs, ys)) * high))
    lines = ["".join(chr(0x2800 + cell) for cell in row) for row in bits]
    edge = ["1 ┤", *["  │"] * (ROWS - 2), "0 ┤"]
    body = [f"{side}{line}" for side, line in zip(edge, lines, strict=True)]
    return "\n".join([f"  {beside}", *body, f"  └{'─' * COLUMNS}", f"   0{below:^{COLUMNS - 2}}1"])


def _mark(bits: list[list[int]], x: int, y: int) -> None:
    bits[y // 4][x // 2] |= DOTS[y % 4][x % 2]


def _interpolated(x: float, xs: Sequence[float], ys: Sequence[float]) -> float:
    after = next((i for i, at in enumerate(xs) if at >= x), len(xs) - 1)
    if after == 0 or xs[after] == xs[after - 1]:
        return ys[after]
    share = (x - xs[after - 1]) / (xs[after] - xs[after - 1])
    return ys[after - 1] + min(share, 1.0) * (ys[after] - ys[after - 1])
