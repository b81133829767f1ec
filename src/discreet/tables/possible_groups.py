"""Which public groups a row that meets WHERE may be in, by public facts alone: no other group is listed.

Plain SQL lists the groups that have rows. Which do is private, but not what a condition on a key excludes: of WHERE
ward IN ('A', 'B') the groups are A and B. Whatever is not understood here excludes nothing.

Decision 355.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.dates import Times, moment
from discreet.schema import Bounded, Categories, Schema
from discreet.tables.conditions import Compare, IsIn, Logic
from discreet.tables.expressions import Expression, columns
from discreet.tables.nodes import MOST_VALUES, Column, Node, Number, whole_numbers

if TYPE_CHECKING:
    from discreet.tables.passes import GroupedRows

__all__ = [
    "MOST_ROWS",
    "ColumnDomains",
    "can_no_row_meet",
    "conjuncts",
    "derived_columns",
    "possible_places",
    "refuse_endless",
    "truths_of",
    "with_columns_replaced",
]

MOST_ROWS = 1 << 17  # of values that are tried in a condition: some tenths of a second
MOST_PARTS = 50_000  # of an expression that is written out: some seconds
Truths: TypeAlias = frozenset[bool | None]
ANY: Truths = frozenset([True, False, None])
_NARROWEST = 1e-280  # as wide as bounds must be
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


def can_no_row_meet(rows: GroupedRows) -> bool:
    """Whether a condition fails whatever the row, or the conditions on some column leave none of its values."""
    return bool(rows.conditions) and ColumnDomains(rows, _written_out(rows)).nothing_left()


def _written_out(rows: GroupedRows) -> list[Node]:
    """The conditions of rows in terms of the table's own columns, all of which must hold."""
    made = derived_columns(rows.derived)
    return conjuncts(with_columns_replaced(condition.node, made) for condition in rows.conditions)


def possible_places(rows: GroupedRows) -> NDArray[np.int64] | None:
    """The places, among all combinations of the keys' labels, of the groups that may hold a row; none: all may."""
    derived_keys = [key for key in rows.keys if key in rows.derived]
    if not rows.keys or not (rows.conditions or derived_keys) or rows.private_keys or rows.combinations > MOST_VALUES:
        return None
    made = derived_columns(rows.derived)
    conditions = _written_out(rows)
    labels = {key: rows.columns.labels_of(key) for key in rows.keys}
    mask = np.ones([len(values) for values in labels.values()], bool)
    domains = ColumnDomains(rows, conditions)
    if domains.nothing_left():
        return np.zeros(0, np.int64)
    for keys in _keys_that_share_columns({key: made.get(key, Column(key)) for key in labels}):
        allowed = domains.values_of(keys)
        if allowed is not None:
            axes = [list(labels).index(key) for key in keys]
            cells = product(*([_value(rows, key, label) for label in labels[key]] for key in keys))
            known = np.array([cell in allowed for cell in cells], bool).reshape([mask.shape[axis] for axis in axes])
            mask &= _along(axes, mask.ndim, known)
    computed: dict[Node, Node] = {node: Column(key) for key, node in made.items() if key in labels}
    for condition in conditions:
        met = _with_nodes_replaced(condition, computed)
        axes = [axis for axis, key in enumerate(labels) if key in columns(Expression(met))]
        sizes = [mask.shape[axis] for axis in axes]
        if not axes or math.prod(sizes) > MOST_ROWS:
            continue
        named = [list(labels)[axis] for axis in axes]
        truths = truths_of(met, named)
        cells = product(*([_value(rows, key, label) for label in labels[key]] for key in named))
        held = [True in truths(dict(zip(named, cell, strict=True))) for cell in cells]
        mask &= _along(axes, mask.ndim, np.array(held, bool).reshape(sizes))
    return None if mask.all() else np.flatnonzero(mask)


def _keys_that_share_columns(keys: Mapping[str, Node]) -> list[dict[str, Node]]:
    """Keys in parts: two that look at one column are in one part, as a ward and its region are."""
    parts: list[tuple[set[str], dict[str, Node]]] = []
    for key, node in keys.items():
        used, together = columns(Expression(node)), {key: node}
        apart = []
        for others, part in parts:
            if used & others:
                used, together = used | others, {**part, **together}
            else:
                apart.append((others, part))
        parts = [*apart, (used, together)]
    order = list(keys)
    return [dict(sorted(part.items(), key=lambda item: order.index(item[0]))) for _, part in parts]


def _along(axes: Sequence[int], count: int, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """A mask over some axes of ``count``, to be broadcast along the others."""
    sizes = iter(mask.shape)
    return mask.reshape([next(sizes) if axis in axes else 1 for axis in range(count)])


def _value(rows: GroupedRows, key: str, label: Any) -> Any:
    """What an expression sees in rows of a group: missing, in the group of all that is not declared."""
    declared = rows.schema[key]
    gathered = isinstance(declared, Categories) and declared.other is not None and label == declared.other
    return None if gathered else label


# --- derived columns -------------------------------------------------------------------------------------------------


def derived_columns(derived: Mapping[str, Expression]) -> dict[str, Node]:
    """Each derived column in terms of the table's own."""
    made: dict[str, Node] = {}
    for name, expression in derived.items():  # each is made of earlier ones
        made[name] = with_columns_replaced(expression.node, made)
    return made


def refuse_endless(nodes: Iterable[Node], derived: Mapping[str, Expression]) -> None:
    """Refuse expressions that have too many parts with the columns they stand on written out: the last of sixty, each
    of which names the one before it twice, would have 2^60.
    """
    sizes: dict[str, int] = {}
    for name, expression in derived.items():
        sizes[name] = _written_out_size(expression.node, sizes)
    if sum(sizes.values()) + sum(_written_out_size(node, sizes) for node in nodes) > MOST_PARTS:
        raise ValueError(
            f"Conditions and derived columns have more than {MOST_PARTS:,} parts when the columns that they stand on "
            "are written out in them: name each of those once."
        )


def _written_out_size(node: Node, sizes: Mapping[str, int]) -> int:
    if isinstance(node, Column):
        return sizes.get(node.name, 1)
    return 1 + sum(_written_out_size(child, sizes) for child in node.children())


def with_columns_replaced(node: Node, made: Mapping[str, Node]) -> Node:
    """The node, with some columns written out."""
    return _with_nodes_replaced(node, {Column(name): other for name, other in made.items()}) if made else node


def _with_nodes_replaced(node: Node, others: Mapping[Node, Node]) -> Node:
    if node in others:
        return others[node]
    changed: dict[str, Any] = {}
    for field in fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        if isinstance(value, Node):
            changed[field.name] = _with_nodes_replaced(value, others)
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            changed[field.name] = tuple(_with_nodes_replaced(part, others) for part in value)
    return replace(node, **changed) if changed else node  # type: ignore[type-var]


# --- conditions ------------------------------------------------------------------------------------------------------


def conjuncts(conditions: Iterable[Node]) -> list[Node]:
    """Conditions that must all hold, none of which is an AND."""
    parts: list[Node] = []
    for node in conditions:
        parts += conjuncts(node.parts) if isinstance(node, Logic) and node.sign == "&" else [node]
    return parts


def truths_of(node: Node, known: Iterable[str]) -> Callable[[Mapping[str, Any]], Truths]:
    """A function that says what a condition may be of a row, given the values of its ``known`` columns alone.

    >>> either = Logic("|", (Compare("<", Column("age"), Number(18.0)), IsIn(Column("sex"), ("f",))))
    >>> may_be = truths_of(either, ["age"])
    >>> may_be({"age": 7}) == {True}, may_be({"age": 20}) == {True, False, None}
    (True, True)
    """
    match node:
        case Logic(sign="~", parts=(inner,)):
            opposite = truths_of(inner, known)
            return lambda row: frozenset(None if truth is None else not truth for truth in opposite(row))
        case Logic(sign=sign, parts=parts):
            sides = [truths_of(part, known) for part in parts]
            return lambda row: _joined_truths(sign == "|", [side(row) for side in sides])
    if not columns(Expression(node)) <= set(known):
        return lambda row: ANY
    if isinstance(node, IsIn):  # of many values
        members, value = frozenset(node.values), node.inner.value

        def is_in(row: Mapping[str, Any]) -> Truths:
            found = value(row)
            return frozenset([None if found is None else found in members])

        return is_in
    return lambda row: frozenset([node.value(row)])


def _joined_truths(decisive: bool, sides: Sequence[Truths]) -> Truths:
    """What OR (``decisive`` is true) or AND may be of what its sides may be, each by itself."""
    out: set[bool | None] = set()
    if any(decisive in side for side in sides):
        out.add(decisive)
    if all((not decisive) in side for side in sides):
        out.add(not decisive)
    if any(None in side for side in sides) and all(side & {None, not decisive} for side in sides):
        out.add(None)
    return frozenset(out)


# --- the values that conditions leave --------------------------------------------------------------------------------


class ColumnDomains:
    """What conditions on single columns leave of each: some of few values, or a part of an interval."""

    def __init__(self, rows: GroupedRows, conditions: Sequence[Node]) -> None:
        self.rows, self.schema = rows, rows.schema
        self.single: dict[str, list[Node]] = {}
        self.constants_hold = True
        for condition in conditions:
            used = columns(Expression(condition))
            if not used:  # as 1 = 0
                self.constants_hold &= condition.value({}) is True
            elif len(used) == 1:
                self.single.setdefault(used.pop(), []).append(condition)
        self._values: dict[str, tuple[Any, ...] | None] = {}

    def nothing_left(self) -> bool:
        """Whether no row can meet the conditions without a column, or those on some column."""
        empty = (self.values_left(name) == () or self.interval_left(name) is None for name in self.single)
        return not self.constants_hold or any(empty)

    def values_of(self, keys: Mapping[str, Node]) -> frozenset[tuple[Any, ...]] | None:
        """The values that some keys may have together, missing ones too; none if that is not known."""
        nodes = list(keys.values())
        used = sorted(set[str]().union(*(columns(Expression(node)) for node in nodes)))
        free = not any(name in self.single for name in used)
        if not used or (free and len(nodes) == 1 and isinstance(nodes[0], Column)):
            return None
        values = [self.values_left(name) for name in used]
        few = [some for some in values if some is not None]
        if len(few) == len(values) and math.prod(map(len, few)) <= MOST_ROWS:
            rows = (dict(zip(used, row, strict=True)) for row in product(*few))
            return frozenset(tuple(node.value(row) for node in nodes) for row in rows)
        if free or len(nodes) > 1:
            return None
        schema = Schema({**self.schema, **{name: self.interval_left(name) for name in used}})
        domain = nodes[0].domain(schema)
        return None if domain is None else frozenset((value,) for value in (*domain, None))

    def values_left(self, name: str) -> tuple[Any, ...] | None:
        """The values of a column with few of them that meet the conditions on it alone."""
        if name not in self._values:
            domain = Column(name).domain(self.schema)
            declared = self.schema[name]
            if isinstance(declared, Bounded) and not declared.auto and self.rows.whole(name):
                domain = whole_numbers(declared.low, declared.high)
            few = None if domain is None or len(domain) > MOST_ROWS else (*domain, None)
            self._values[name] = few if few is None else tuple(v for v in few if self._may_be(name, v))
        return self._values[name]

    def _may_be(self, name: str, value: Any) -> bool:
        return all(True in truths_of(condition, [name])({name: value}) for condition in self.single.get(name, []))

    def interval_left(self, name: str) -> Any:
        """The column's declaration with narrower bounds; none if nothing lies between them."""
        declared = self.schema[name]
        if not isinstance(declared, (Bounded, Times)) or (isinstance(declared, Bounded) and declared.auto):
            return declared
        low, high = declared.low, declared.high
        for condition in self.single.get(name, []):
            least, most = _ends(condition, name, whole=isinstance(declared, Bounded) and self.rows.whole(name))
            low, high = max(low, least), min(high, most)
        if low > high:
            return None
        if isinstance(declared, Times):
            return Times(moment(low), moment(max(high, low + 1)))
        return Bounded(low, max(high, math.nextafter(low, math.inf), low + _NARROWEST))


def _ends(condition: Node, name: str, *, whole: bool) -> tuple[float, float]:
    """The numbers between which a column lies if a condition holds."""
    match condition:
        case Compare(sign=sign, left=Column(name=one), right=Number(constant=end)) if one == name:
            pass
        case Compare(sign=mirrored, left=Number(constant=end), right=Column(name=one)) if one == name:
            sign = _MIRRORED[mirrored]
        case IsIn(inner=Column(name=one), values=values) if one == name and not isinstance(values[0], str):
            return float(min(values)), float(max(values))
        case _:
            return -math.inf, math.inf
    if sign == "==":
        return end, end
    if sign in ("<", "<="):
        below = (math.ceil(end) - 1.0 if whole else math.nextafter(end, -math.inf)) if sign == "<" else end
        return -math.inf, below
    if sign in (">", ">="):
        above = (math.floor(end) + 1.0 if whole else math.nextafter(end, math.inf)) if sign == ">" else end
        return above, math.inf
    raise ValueError(f"sign is {sign!r}, for which no bounds of a column are known.")
