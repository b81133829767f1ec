"""What is made of an answer after its release: columns computed of columns, rows kept, order, a limit.

Everything here is a function of noisy answers and of keys that were released with them, so it costs nothing. Ties, and
a limit without an order, follow the order of the keys, which no record decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from discreet.dates import seconds
from discreet.tables.expressions import Expression, columns
from discreet.tables.nodes import Column, Node
from discreet.tables.possible_groups import conjuncts
from discreet.tables.whole_values import is_whole

__all__ = ["Order", "Presentation"]


@dataclass(frozen=True, slots=True)
class Order:
    """By what rows are sorted; rows without a value come last, unless first is asked for."""

    node: Node
    descending: bool = False
    missing_first: bool = False


@dataclass(frozen=True, slots=True)
class Presentation:
    """Columns of what is shown, each with what it is computed of; several ``rows`` show each group several times."""

    names: tuple[str, ...]
    rows: tuple[tuple[Node, ...], ...]
    having: Node | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    dated: frozenset[str] = frozenset()  # columns that are computed, and points in time
    sums: tuple[tuple[str, Node], ...] = ()  # of all groups that are kept, under names that other nodes use

    @property
    def shows_nothing(self) -> bool:
        """Whether no row is shown, whatever the answers are: LIMIT 0, or HAVING 1 = 0."""
        held = [] if self.having is None else conjuncts([self.having])
        constants = (node for node in held if not columns(Expression(node)))
        return self.limit == 0 or not all(node.value({}) is True for node in constants)

    def columns_shown(self, answers: Mapping[str, Sequence[Any]], size: int) -> dict[str, list[Any]]:
        """The columns that are shown, of the answers' columns, which have one entry per group."""
        groups = [{name: column[place] for name, column in answers.items()} for place in range(size)]
        kept = [group for group in groups if self.having is None or self.having.value(group) is True]
        for name, node in self.sums:
            values = [value for group in kept if (value := node.value(group)) is not None]
            kept = [{**group, name: sum(values) if values else None} for group in kept]
        for order in reversed(self.order):  # sorting is stable, in reverse too, so the first comes last
            valued = [(order.node.value(group), group) for group in kept]
            missing = [group for value, group in valued if value is None]
            ranked = sorted(
                ((value, group) for value, group in valued if value is not None),
                key=lambda pair: _rank(pair[0]),
                reverse=order.descending,
            )
            rest = [group for _, group in ranked]
            kept = missing + rest if order.missing_first else rest + missing
        last = None if self.limit is None else self.offset + self.limit
        lines = [[node.value(group) for node in row] for group in kept for row in self.rows][self.offset : last]
        return {name: [line[place] for line in lines] for place, name in enumerate(self.names)}

    def uncut(self) -> Presentation:
        """The same of every group."""
        return replace(self, having=None, limit=None, offset=0)

    def with_ends(self, known: Sequence[str]) -> Presentation:
        """The same with two columns after each that shows a ``known`` answer as it is: the ends of its interval."""
        names: list[str] = []
        rows: list[list[Node]] = [[] for _ in self.rows]
        for place, name in enumerate(self.names):
            shown = [row[place] for row in self.rows]
            plain = all(isinstance(node, Column) and node.name in known for node in shown)
            names += [name, *([f"{name}_low", f"{name}_high"] if plain else [])]
            for line, node in zip(rows, shown, strict=True):
                ends = [Column(f"{node.name}_{end}") for end in ("low", "high")] if plain else []  # type: ignore[attr-defined]
                line += [node, *ends]
        return replace(self, names=tuple(names), rows=tuple(map(tuple, rows)))

    def whole_columns(self, is_column_whole: Callable[[str], bool]) -> set[str]:
        """Which of the columns show whole numbers alone, where that is known of what they are made of."""
        sums = {name: is_whole(node, is_column_whole) for name, node in self.sums}

        def is_known(name: str) -> bool:
            return sums[name] if name in sums else is_column_whole(name)

        shown = zip(self.names, zip(*self.rows, strict=True), strict=True)
        return {name for name, nodes in shown if all(is_whole(node, is_known) for node in nodes)}

    def made_of(self, keys: Iterable[str]) -> set[str]:
        """Which of the columns show keys, or what is computed of keys alone."""
        known = set(keys)
        shown = zip(self.names, zip(*self.rows, strict=True), strict=True)
        return {name for name, nodes in shown if all(columns(Expression(node)) <= known for node in nodes)}

    def moments(self, keys: frozenset[str]) -> set[str]:
        """Which of the columns show a point in time: a key that is one, or what is computed of one."""
        return set(self.dated) | {
            name
            for place, name in enumerate(self.names)
            if all(isinstance(row[place], Column) and row[place].name in keys for row in self.rows)  # type: ignore[attr-defined]
        }


def _rank(value: Any) -> tuple[int, Any, str]:
    """Numbers, of NumPy's kinds too, then moments, then texts, then anything else: private keys of pandas may be of
    several kinds, and nothing fails.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (Real, Decimal)):
        return 0, value, ""
    if isinstance(value, str):
        return 2, 0.0, value
    moment = seconds(value)
    return (3, 0.0, repr(value)) if moment is None else (1, moment, "")
