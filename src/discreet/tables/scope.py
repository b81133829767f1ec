"""Where expressions are computed, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.errors import extra

with extra("tables"):
    import narwhals as nw

__all__ = ["Scope"]


class Scope:
    """A frame that grows. What is used twice becomes a column, so that nested expressions are not written out again and again.

    ``column`` gives a declared column as the schema reads it.
    """

    def __init__(self, frame: Any, column: Callable[[str], nw.Expr]) -> None:
        self.frame, self.column = frame, column
        self.unclipped: dict[str, nw.Expr] = {}  # derived columns before they were clipped to their bounds
        self._made = 0

    def let(self, value: nw.Expr) -> nw.Expr:
        """The value, as a column of its own."""
        name, self._made = f"t{self._made}", self._made + 1
        self.frame = self.frame.with_columns(value.alias(name))
        return nw.col(name)

    def real(self, value: nw.Expr) -> nw.Expr:
        """The value, or missing where it is not a number."""
        for _ in range(2):  # twice: see ``Engine.number``
            value = self.let(value)
            value = nw.when(value.is_nan()).then(None).otherwise(value)
        return value
