"""Public tables in which rows look something up by one key: each row finds one line, or none.

A public table that has a key twice would multiply rows, and with them what one record counts for: it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.schema import Value
from discreet.tables.choices import Lookup
from discreet.tables.nodes import Node

with extra("tables"):
    import narwhals as nw

__all__ = ["PublicTable"]

MOST_LINES = 10_000


@dataclass(frozen=True)
class PublicTable:
    """The columns of a public frame; names are found whatever their case."""

    columns: dict[str, list[Any]]

    @classmethod
    def of(cls, frame: Any) -> PublicTable:
        """Of a pandas, polars or pyarrow frame, or a mapping of columns."""
        if isinstance(frame, dict):
            return cls({name: list(map(_as_python, values)) for name, values in frame.items()})
        try:
            found = nw.from_native(frame, eager_only=True)
        except TypeError:
            raise ValueError(f"A public table is a {type(frame).__name__}, but must be a frame in memory.") from None
        return cls({name: list(map(_as_python, found[name].to_list())) for name in found.columns})

    def _column_named(self, name: str) -> str:
        found = {column.lower(): column for column in self.columns}.get(name.lower())
        if found is None:
            raise ValueError(f"The public table has no column {name!r}. It has: {', '.join(self.columns)}.")
        return found

    def keys(self, key: str) -> tuple[Value, ...]:
        """The values of a key, each of which is there once."""
        values = [value for value in self.columns[self._column_named(key)] if value is not None]
        if len(values) > MOST_LINES:
            raise ValueError(
                f"The public table has {len(values):,} lines, but may have {MOST_LINES:,} to be looked up."
            )
        if len(set(values)) < len(values):
            raise ValueError(
                f"The public table has a value of {key!r} twice, so that one row would count several times: keep one "
                "line of each."
            )
        return tuple(values)

    def lookups(self, key: str, inner: Node) -> dict[str, Node]:
        """What each other column says of ``inner``."""
        own, found = self._column_named(key), dict[str, Node]()
        self.keys(key)
        for name, values in self.columns.items():
            pairs = [
                (k, v)
                for k, v in zip(self.columns[own], values, strict=True)
                if k is not None and v is not None and v == v
            ]
            if name == own or not pairs:
                continue
            if len({isinstance(value, str) for _, value in pairs}) > 1:
                raise ValueError(f"Column {name!r} of the public table mixes text and numbers.")
            if not isinstance(pairs[0][1], (str, int, float)):
                continue  # dates and others are not looked up
            found[name] = Lookup(inner, tuple(k for k, _ in pairs), tuple(v for _, v in pairs))
        return found


def _as_python(value: Any) -> Any:
    """NumPy's numbers as Python's, of which alone a look-up is made."""
    return value.item() if isinstance(value, np.generic) else value
