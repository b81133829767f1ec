"""The mark of a private run in its optimiser's state: which run it is, and how many of its steps were made.

Who resumes by habit saves ``model.state_dict()`` and ``optimizer.state_dict()``, calls ``make_private`` again and loads
both: without a mark the run would count its steps from zero once more, and a model of two plans would be stated at the
price of one. The mark lies in the first parameter group, where an optimiser that is not private yet keeps it, so that
it is met whether the state is loaded before ``make_private`` or after.

Decision 417.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["MARK", "mark_of", "with_mark", "without_mark"]

MARK = "discreet: private run"
"""The name of a parameter group's entry that holds the mark."""

Groups = Sequence[Mapping[str, Any]]


def mark_of(groups: Groups) -> dict[str, Any] | None:
    """The mark in parameter groups; none where they are of no private run.

    >>> mark_of([{"lr": 0.1}]), mark_of([{"lr": 0.1, MARK: {"steps": 3}}])
    (None, {'steps': 3})
    """
    return next((dict(group[MARK]) for group in groups if MARK in group), None)


def with_mark(groups: Groups, mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The groups with a mark in the first, in place of any other."""
    first, *others = without_mark(groups)
    return [{**first, MARK: dict(mark)}, *others]


def without_mark(groups: Groups) -> list[dict[str, Any]]:
    """The groups without a mark."""
    return [{key: value for key, value in group.items() if key != MARK} for group in groups]
