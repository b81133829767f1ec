"""One palette for all commands: verdicts, errors, warnings, amounts.

Colours are for a person at a terminal. A pipe, a dumb terminal and the variable NO_COLOR get none; FORCE_COLOR asks for
them where no terminal is seen, and NO_COLOR is stronger. JSON and data for other programs never have any. The codes are
the sixteen that a terminal's own theme decides about.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["AMOUNT", "BAD", "CAREFUL", "GOOD", "Colour", "Painted", "highlight_amounts", "wants_colour"]


@dataclass(frozen=True, slots=True)
class Colour:
    """A meaning, as a terminal's code and as the name that rich has for it."""

    code: str
    name: str

    def paint(self, text: str) -> str:
        """The text in this colour, and what follows it in none."""
        return f"\x1b[{self.code}m{text}\x1b[0m" if text else text


GOOD = Colour("32", "green")  # a claim that stands, a budget with room
CAREFUL = Colour("33", "yellow")  # a warning, a budget nearly used up
BAD = Colour("1;31", "bold red")  # an error, a claim refuted, a budget used up
AMOUNT = Colour("1;36", "bold cyan")  # what a release costs

_NUMBER = r"(?:\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?|inf\b|∞)"
_AMOUNT = re.compile(rf"(?:\b(?:epsilon|delta|rho)|[εδρ])\s?(?:=|>=)\s?{_NUMBER}")


class Painted(str):
    """A line, or a cell of a table, that has one colour as a whole.

    >>> Painted("consistent", GOOD).colour.name
    'green'
    """

    colour: Colour

    def __new__(cls, text: str, colour: Colour) -> Painted:
        """The same text, with a colour."""
        made = super().__new__(cls, text)
        made.colour = colour
        return made


def wants_colour(stream: Any) -> bool:
    """Whether colours are to be written there."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return os.environ.get("TERM") != "dumb" and bool(stream.isatty())


def highlight_amounts(text: str) -> str:
    r"""A line with its amounts in their colour.

    >>> highlight_amounts("guarantee: epsilon = 1 at delta = 1e-06, no more")
    'guarantee: \x1b[1;36mepsilon = 1\x1b[0m at \x1b[1;36mdelta = 1e-06\x1b[0m, no more'
    """
    return _AMOUNT.sub(lambda found: AMOUNT.paint(found[0]), text)
