"""A book is bound to its source: registered again, the same source has the same book, not a fresh budget.

What identifies a source is public: where it is, its declared columns with the types that it states, whom it protects.
Not what is in it: whether a file that looks different holds the same people is the owner's word, which is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from discreet.desk.configuration import Configuration
from discreet.desk.json_text import canonical
from discreet.desk.state import DeskState
from discreet.errors import DiscreetError

__all__ = ["bind_sources", "same_population"]

_CHANGED = (
    "The source of {name!r} is not the one that book {book!r} was bound to: its place, its columns, their types or its "
    "unit differ. If it holds the same people, the book must go on counting: discreet desk same-population {name} "
    "--why ... . If it holds others, give it a book of its own."
)


def bind_sources(
    state: DeskState,
    configuration: Configuration,
    contents: Mapping[str, Any],
    facts: Mapping[str, Any],
    places: Mapping[str, str | None] | None = None,
) -> None:
    """Bind each book to its source, or refuse where it was bound to another; and each source to its book.

    ``places`` is what databases call their tables: one table, by whatever address, is one source.
    """
    for name, dataset in configuration.datasets.items():
        place = (places or {}).get(name) or dataset.place
        said, word = f"source of {dataset.book}", f"same population of {dataset.book}"
        source = [place, contents[name].get("unit"), facts[name]]
        now = hashlib.sha256(canonical(source).encode()).hexdigest()
        before = state.fact(said)
        if before not in (None, now) and state.fact(word) is None:
            raise DiscreetError(_CHANGED.format(name=name, book=dataset.book))
        other = state.fact(f"book of {place}")
        if other not in (None, dataset.book):
            raise DiscreetError(
                f"The source of {name!r} is counted in book {other!r} already: a second book would be a second budget."
            )
        state.note(said, now)
        state.note(word, None)  # for this change, and no other
        state.note(f"book of {place}", dataset.book)


def same_population(state: DeskState, book: str, by: str, why: str) -> None:
    """The owner's word that what stands at the source now holds the same people, for the next start alone."""
    if not why.strip():
        raise ValueError("why is empty, but the owner must give a reason.")
    if state.fact(f"source of {book}") is None:
        raise DiscreetError(f"Book {book!r} is bound to no source yet: nothing has changed.")
    state.note(f"same population of {book}", {"by": by, "why": why})
