"""What opening a file gives, before a row of it is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Opened", "check_once"]


class Opened(NamedTuple):
    """Rows not yet read; what each of their columns is called in them; the columns of whose type the files say nothing;
    whether all text in them is text, for sure.
    """

    rows: Any
    called: Mapping[str, str]
    untyped: frozenset[str] = frozenset()
    mended: bool = False


def check_once(names: Sequence[str], declared: Collection[str]) -> None:
    """Refuse a declared column whose name two columns have; of others it does not matter."""
    if twice := [name for name in declared if names.count(name) > 1]:
        raise ValueError(f"Two columns are called {twice[0]!r}, which the schema declares: rename one of them.")
