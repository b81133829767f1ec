"""The keywords that every statistic's function takes, declared once, and the one way from them to an answer.

A function states its own facts and ``**asked: Unpack[Asked]``: type checkers and editors know each keyword from there,
and ``spell_out`` shows them to ``help`` and ``inspect.signature``, with their defaults (decision 213).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypedDict, TypeVar, get_type_hints

from discreet.adjacency import Adjacency
from discreet.habits import BUDGETS, refuse_other_names
from discreet.random import RngLike
from discreet.release import ONE_RECORD, Chargeable, Release, charged

__all__ = ["Asked", "AskedWithoutDelta", "ask", "spell_out"]

_Told = ParamSpec("_Told")
_Answer = TypeVar("_Answer")


class AskedWithoutDelta(TypedDict, total=False):
    """A budget of ``epsilon`` or ``rho``; under which adjacency and for whom it holds; who pays, and as what."""

    epsilon: float | None
    rho: float | None
    adjacency: str
    unit: str
    book: Chargeable | None
    label: str
    rng: RngLike


class Asked(AskedWithoutDelta, total=False):
    """The same, where ``epsilon`` may come with a ``delta``."""

    delta: float | None


_DEFAULTS: dict[str, Any] = {
    "epsilon": None,
    "delta": None,
    "rho": None,
    "adjacency": str(Adjacency.ADD_REMOVE),
    "unit": ONE_RECORD,
    "book": None,
    "label": "",
    "rng": None,
}


def ask(kind: Any, values: Any, asked: Mapping[str, Any], **facts: Any) -> Release[Any]:
    """Make the operation from its facts and what was asked; charge the book, then read."""
    given = dict(asked)
    payment = {name: given.pop(name, _DEFAULTS[name]) for name in ("book", "label", "rng")}
    adjacency = Adjacency(given.pop("adjacency", _DEFAULTS["adjacency"]))
    return charged(kind(**facts, **given, adjacency=adjacency), values, **payment)


def spell_out(
    keywords: Any, label: str, further: Mapping[str, Any] | None = None
) -> Callable[[Callable[_Told, _Answer]], Callable[_Told, _Answer]]:
    """Show each keyword with its default, and refuse any other; ``label`` is what a book calls the release, ``further``
    the defaults of a room's own keywords.
    """
    known = get_type_hints(keywords)
    named = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=label if name == "label" else default, annotation=known[name]
        )
        for name, default in {**(further or {}), **_DEFAULTS}.items()
        if name in known
    ]

    def show(function: Callable[_Told, _Answer]) -> Callable[_Told, _Answer]:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        spelled = signature.replace(parameters=[*own, *named])

        @wraps(function)
        def answer(*args: _Told.args, **given: _Told.kwargs) -> _Answer:
            if unknown := sorted(given.keys() - spelled.parameters.keys()):
                refuse_other_names(function.__name__, unknown, BUDGETS)
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {unknown[0]!r}")
            return function(*args, **{"label": label, **given})  # type: ignore[arg-type]

        answer.__signature__ = spelled  # type: ignore[attr-defined]
        return answer

    return show
