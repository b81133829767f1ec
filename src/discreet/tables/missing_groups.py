"""Whether a computed key has a group for what is missing, as NULL is one in SQL: after LEFT JOIN, of CASE without ELSE.

A key whose columns alone may be missing has none: what a declaration does not list is in no group.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

from discreet.schema import Schema, Unlisted
from discreet.tables.calendar import Part, Truncated
from discreet.tables.choices import Among, AsNumber, Case, Coalesce, Extreme, Lookup
from discreet.tables.conditions import Condition
from discreet.tables.expressions import Expression, columns
from discreet.tables.nodes import Binary, Clip, Column, Function, Node, Number, Text
from discreet.tables.possible_groups import MOST_ROWS, derived_columns
from discreet.tables.texts import Joined, Length, TextFunction

__all__ = ["has_missing_group"]


def has_missing_group(key: str, derived: Mapping[str, Expression], schema: Schema) -> bool:
    """Whether a derived key may be missing in a row whose columns are not, by public facts.

    >>> from discreet.schema import Categories
    >>> wed = Case((Column("married"),), (Column("married"),))  # nothing of who is not
    >>> schema = Schema(married=Categories([False, True]), wed=Categories([True]))
    >>> has_missing_group("wed", {"wed": Expression(wed)}, schema)
    True
    """
    if isinstance(schema[key], Unlisted):
        return False
    node = derived_columns(derived)[key]
    if not _may_be_missing(node):
        return False
    used = sorted(columns(Expression(node)))
    domains = [Column(name).domain(schema) for name in used]
    few = [domain for domain in domains if domain is not None]
    if len(few) < len(domains) or math.prod(map(len, few)) > MOST_ROWS:
        return True
    return any(node.value(dict(zip(used, row, strict=True))) is None for row in product(*few))


def _may_be_missing(node: Node) -> bool:
    """Whether nothing may come out though all columns have a value, by the look of it."""
    match node:
        case Lookup() | Among(other=None):
            return True
        case Among():
            return False
        case Case(values=values, otherwise=otherwise):
            return otherwise is None or any(map(_may_be_missing, (*values, otherwise)))
        case Coalesce(parts=parts) | Extreme(parts=parts):
            return all(map(_may_be_missing, parts))
        case (
            Column()
            | Number()
            | Text()
            | Binary()
            | Clip()
            | Function()
            | Condition()
            | AsNumber()
            | Part()
            | Truncated()
            | TextFunction()
            | Joined()
            | Length()
        ):
            return any(map(_may_be_missing, node.children()))
    raise ValueError(f"{type(node).__name__} says nothing of when it has no value.")
