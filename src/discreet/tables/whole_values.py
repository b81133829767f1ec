"""Whether an expression gives whole numbers alone, by public facts, so that answers made of it are shown as such.

No guarantee rests on it: noisy numbers are rounded after the release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.schema import Bounded, Categories
from discreet.tables.calendar import Part
from discreet.tables.choices import Among, AsNumber, Case, Coalesce, Extreme, Lookup
from discreet.tables.nodes import Binary, Clip, Column, Function, Node, Number
from discreet.tables.number_functions import number_function
from discreet.tables.possible_groups import derived_columns, with_columns_replaced
from discreet.tables.texts import Length

if TYPE_CHECKING:
    from discreet.tables.passes import GroupedRows

__all__ = ["as_whole", "holds_integers", "holds_whole_numbers", "is_integer", "is_whole", "widen_to_whole"]

_LARGEST = 2.0**62
_OF_INTEGERS = {"rint", "trunc", "abs"}  # a cast, a quotient by //, and what keeps the type
ColumnTest: TypeAlias = Callable[[str], bool]


def holds_whole_numbers(rows: GroupedRows, name: str) -> bool:
    """Whether a column, of the table or derived, has no value but whole numbers."""
    if name in rows.derived:
        return is_whole(rows.derived[name].node, lambda inner: holds_whole_numbers(rows, inner))
    declared = rows.schema.get(name)
    if isinstance(declared, Categories):
        return name not in rows.moments and _all_whole(declared.labels)
    return isinstance(declared, Bounded) and rows.whole(name)


def holds_integers(rows: GroupedRows, node: Node) -> bool:
    """Whether SQL would type an expression over a table's columns as an integer, by public facts."""
    written_out = with_columns_replaced(node, derived_columns(rows.derived))
    return is_integer(written_out, lambda name: holds_whole_numbers(rows, name))


def is_integer(node: Node, of_column: ColumnTest = frozenset[str]().__contains__) -> bool:
    """The same, where ``of_column`` tells which columns are integers: FLOOR and ROUND give whole numbers, but doubles.

    >>> is_integer(Function("rint", Column("n"))), is_integer(Function("floor", Column("n")))
    (True, False)
    """
    parts = [node]
    while parts:
        part = parts.pop()
        if isinstance(part, Function) and part.name not in _OF_INTEGERS:
            return False
        parts += part.children()
    return is_whole(node, of_column)


def is_whole(node: Node, of_column: ColumnTest) -> bool:
    """Whether a number comes out that is whole, where ``of_column`` tells which columns hold whole numbers.

    >>> double = Binary("*", Column("n"), Number(2.0))
    >>> is_whole(double, {"n"}.__contains__), is_whole(Binary("/", double, Number(2.0)), {"n"}.__contains__)
    (True, False)
    """

    def all_whole(nodes: Iterable[Node]) -> bool:
        return all(is_whole(part, of_column) for part in nodes)

    match node:
        case Number(constant=constant, moment=moment):
            return constant.is_integer() and not moment
        case Column(name=name):
            return of_column(name)
        case Function(name=name, inner=inner):
            return number_function(name).domain == "whole" or (name == "abs" and is_whole(inner, of_column))
        case Binary(sign=sign, left=left, right=right):
            return sign in "+-*%" and all_whole((left, right))
        case Clip(inner=inner, low=low, high=high):
            return is_whole(inner, of_column) and low.is_integer() and high.is_integer()
        case Case(values=values, otherwise=otherwise):
            return all_whole(values if otherwise is None else (*values, otherwise))
        case Coalesce(parts=parts) | Extreme(parts=parts):
            return all_whole(parts)
        case AsNumber(inner=inner):
            return inner.logical() or is_whole(inner, of_column)
        case Lookup(found=values):
            return _all_whole(values)
        case Among(listed=values, other=other):
            return _all_whole(values if other is None else (*values, other))
        case Part() | Length():
            return True
    return False  # a text, a date, a root, a condition: shown as it is


def _all_whole(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int) for value in values)


def as_whole(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers as the nearest whole ones, unless one is too large for 64 bits."""
    return np.rint(values).astype(np.int64) if _fits(values) else values


def widen_to_whole(ends: NDArray[np.float64]) -> NDArray[Any]:
    """The ends of intervals as whole numbers, each moved outward."""
    if not _fits(ends):
        return ends
    return np.stack([np.floor(ends[:, 0]), np.ceil(ends[:, 1])], axis=1).astype(np.int64)


def _fits(values: NDArray[Any]) -> bool:
    return bool(np.all(np.abs(np.asarray(values, np.float64)) < _LARGEST))  # neither NaN nor infinite
