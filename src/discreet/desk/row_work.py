"""How much work one row can cause, at most, as a question is written: what a tick would not hide is refused.

A question can be written so that it is quick for every row but one: ``CASE WHEN name = 'ada' THEN ...`` and, in that
branch, a text of a million characters that is looked for in another. Whether its answer is late then tells, for any
epsilon, whether the row is there. Pattern matching takes up to the product of both lengths; everything else is linear.

Reference: Haeberlen, Pierce and Narayan (2011), "Differential privacy under fire", section 3.2.

Decision 578.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from discreet.errors import choice
from discreet.tables.choices import AsNumber
from discreet.tables.conditions import Condition
from discreet.tables.nodes import Binary, Clip, Column, Function, Node, Number
from discreet.tables.passes import GroupedRows
from discreet.tables.texts import Contains, Length, Like

__all__ = ["refuse_long_work", "row_work"]

TEXT = 1_000  # characters that a text of the data is taken to have: a longer one takes longer in proportion
_SIZES = {"text": TEXT, "number": 1, "integer": 1}
_NUMBERS = (Condition, AsNumber, Binary, Clip, Function, Length, Number)  # what comes out is a number or a truth value
MOST_WORK = 10_000_000  # characters that one row makes an engine look at: some hundredths of a second


def refuse_long_work(rows: GroupedRows) -> None:
    """Refuse rows whose conditions and derived columns could keep the engine at one of them for long."""
    if (work := row_work(rows)) > MOST_WORK:
        raise ValueError(
            f"One row may take {work:,} steps with these texts and patterns, but {MOST_WORK:,} are the most, for how "
            "long an answer takes must not tell whether a row is there: use shorter texts."
        )


def row_work(rows: GroupedRows) -> int:
    """Characters that are looked at for one row, at most."""
    sizes = {name: choice("kind", kind, _SIZES) for name, kind in rows.source.kinds.items()}
    work = 0
    for name, expression in rows.derived.items():
        sizes[name] = _size(expression.node, sizes)
        work += _work(expression.node, sizes)
    return work + sum(_work(condition.node, sizes) for condition in rows.conditions)


def _size(node: Node, sizes: Mapping[str, int]) -> int:
    """Characters of what comes out of a node, at most: of a text, or a choice of texts, those of all that goes in."""
    if isinstance(node, Column):
        return sizes.get(node.name, TEXT)
    if isinstance(node, _NUMBERS):
        return 1
    return _own_characters(node) + sum(_size(child, sizes) for child in node.children())


def _own_characters(node: Node) -> int:
    values = [getattr(node, field.name) for field in fields(node)]  # type: ignore[arg-type]
    flat = [item for value in values for item in (value if isinstance(value, tuple) else (value,))]
    return sum(len(item) for item in flat if isinstance(item, str))


def _work(node: Node, sizes: Mapping[str, int]) -> int:
    own = _own_characters(node) + sum(_size(child, sizes) for child in node.children())
    if isinstance(node, (Like, Contains)):  # the pattern may be tried at every character
        own = len(node.pattern if isinstance(node, Like) else node.part) * _size(node.inner, sizes)
    return 1 + own + sum(_work(child, sizes) for child in node.children())
