"""Conditions that no declared value meets, as of a category that is misspelt: said before anything is charged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from discreet.dates import Dates, Times, moment
from discreet.schema import Categories
from discreet.tables.choices import Lookup
from discreet.tables.conditions import Compare, Condition, IsIn, Logic, Missing
from discreet.tables.expressions import Expression, columns
from discreet.tables.mistakes import nearest
from discreet.tables.nodes import Column, Node, Number
from discreet.tables.passes import GroupedRows
from discreet.tables.possible_groups import ColumnDomains, derived_columns, truths_of, with_columns_replaced
from discreet.tables.texts import Contains, Like

__all__ = ["unmet_conditions"]

_MOST_VALUES = 1 << 12  # of a column that are tried in a condition
_MOST_TRIES = 1 << 18  # in all: some tenths of a second
_MOST_SHOWN = 5
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


def unmet_conditions(rows: GroupedRows, used: Iterable[str], having: Node | None = None) -> tuple[str, ...]:
    """A sentence for each condition that no declared value meets: in WHERE, on keys in HAVING, and of texts in ``used``
    columns too.

    >>> import polars as pl
    >>> from discreet.tables.table import table
    >>> visits = table(pl.DataFrame({"ward": ["North"]}), schema={"ward": Categories(["North", "South"])})
    >>> asked = visits.parse("SELECT COUNT(*) FROM visits WHERE LOWER(ward) = 'nort' OR ward = 'South'")
    >>> unmet_conditions(asked.rows, [])
    ("ward: no declared value meets = 'nort'; did you mean 'north'?",)
    """
    made = derived_columns(rows.derived)
    joined = {part.keys for node in made.values() for part in _parts(node) if isinstance(part, Lookup)}
    domains, tries = ColumnDomains(rows, ()), 0
    conditions = [leaf for each in rows.conditions for leaf in _leaves(with_columns_replaced(each.node, made))]
    conditions = [leaf for leaf in conditions if not (isinstance(leaf, IsIn) and leaf.values in joined)]
    after = [] if having is None else list(_leaves(having))
    conditions += [leaf for leaf in after if columns(Expression(leaf)) <= set(rows.keys)]
    texts = [part for name in sorted(used) if name in made for part in _parts(made[name]) if _is_of_text(part)]
    found = [line for leaf in conditions for line in _undeclared(leaf, rows)]
    for leaf in (*conditions, *texts):
        if tries > _MOST_TRIES:
            break
        tries += len(_few_values(leaf, domains) or ())
        found += _unmet(leaf, domains)
    lines = list(dict.fromkeys(found))
    more = [f"... and {len(lines) - _MOST_SHOWN:,} more conditions"] if len(lines) > _MOST_SHOWN else []
    return (*lines[:_MOST_SHOWN], *more)


def _parts(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children():
        yield from _parts(child)


def _leaves(node: Node) -> Iterator[Node]:
    """The conditions that AND, OR and NOT join."""
    if isinstance(node, Logic):
        for part in node.parts:
            yield from _leaves(part)
    elif isinstance(node, Condition) and not isinstance(node, Missing):
        yield node


def _is_of_text(node: Node) -> bool:
    return isinstance(node, (Like, Contains)) or (isinstance(node, IsIn) and isinstance(node.values[0], str))


def _few_values(leaf: Node, domains: ColumnDomains) -> tuple[Any, ...] | None:
    """What the only column of a condition may hold, missing too; none if it has several columns, or many values."""
    used = columns(Expression(leaf))
    values = domains.values_left(used.pop()) if len(used) == 1 else None
    return None if values is None or len(values) > _MOST_VALUES else values


def _unmet(leaf: Node, domains: ColumnDomains) -> Iterator[str]:
    used = columns(Expression(leaf))
    if len(used) != 1:
        return
    (name,) = used
    values = _few_values(leaf, domains)
    if values is None:
        if ColumnDomains(domains.rows, [leaf]).interval_left(name) is None:
            yield _outside(name, leaf, domains.schema[name])
        return
    truths = truths_of(leaf, used)
    if any(True in truths({name: value}) for value in values):
        return
    inner, constants = _compared(leaf)
    outputs = list(dict.fromkeys(inner.value({name: value}) for value in values if value is not None))
    yield f"{name}: no declared value meets {_words(leaf)}{_meant(constants, [v for v in outputs if v is not None])}"


def _undeclared(leaf: Node, rows: GroupedRows) -> Iterator[str]:
    """Numbers of a list that are no categories, though others are."""
    if not isinstance(leaf, IsIn) or not isinstance(leaf.inner, Column) or isinstance(leaf.values[0], str):
        return
    declared = rows.schema[leaf.inner.name]
    known = set(declared.values) if isinstance(declared, Categories) else set()
    if isinstance(declared, Categories) and known & set(leaf.values):
        for value in [value for value in leaf.values if value not in known][: _MOST_SHOWN + 1]:
            yield f"{leaf.inner.name}: {value:g} is not declared{_meant([value], declared.values)}"


def _compared(leaf: Node) -> tuple[Node, Sequence[Any]]:
    """What is compared, and with which constants."""
    match leaf:
        case IsIn(inner=inner, values=values):
            return inner, values
        case Like(inner=inner, pattern=pattern):
            return inner, [pattern.replace("%", "").replace("_", "")]
        case Contains(inner=inner, part=part):
            return inner, [part]
        case (
            Compare(left=inner, right=Number(constant=constant)) | Compare(left=Number(constant=constant), right=inner)
        ):
            return inner, [constant]
    return leaf, []


def _words(leaf: Node) -> str:
    """A condition as SQL writes it, without what is compared."""
    match leaf:
        case IsIn(values=(value,)):
            return f"= {_word(value)}"
        case IsIn(values=values):
            return f"IN ({', '.join(map(_word, values[:_MOST_SHOWN]))}{', ...' if len(values) > _MOST_SHOWN else ''})"
        case Like(pattern=pattern):
            return f"LIKE {pattern!r}"
        case Contains(where=where, part=part):
            before, after = ("" if where == "start" else "%"), ("" if where == "end" else "%")
            return f"LIKE {before + part + after!r}"
        case Compare(sign=sign, right=Number() as constant):
            return f"{sign.replace('==', '=')} {_constant(constant)}"
        case Compare(sign=sign, left=Number() as constant):
            return f"{_MIRRORED[sign].replace('==', '=')} {_constant(constant)}"
    return "the condition"


def _constant(node: Number) -> str:
    return str(moment(node.constant)).removesuffix(" 00:00:00") if node.moment else f"{node.constant:g}"


def _word(value: Any) -> str:
    return repr(value) if isinstance(value, str) else f"{value:g}"


def _meant(constants: Sequence[Any], values: Sequence[Any]) -> str:
    """What may have been meant, or what there is."""
    texts = [value for value in values if isinstance(value, str)]
    if texts and constants and isinstance(constants[0], str):
        near = next((found for constant in constants if (found := nearest(constant, texts))), "")
        listed = ", ".join(map(repr, texts[:_MOST_SHOWN])) + (", ..." if len(texts) > _MOST_SHOWN else "")
        return f"; did you mean {near!r}?" if near else f"; there are {listed}"
    if values and not texts and constants and not isinstance(constants[0], str):
        return f"; the nearest is {min(values, key=lambda value: abs(value - constants[0])):g}"
    return ""


def _outside(name: str, leaf: Node, declared: Any) -> str:
    if isinstance(declared, (Dates, Times)):
        return f"{name}: what meets {_words(leaf)} lies outside {declared.first} to {declared.last}, and is missing"
    ends = f"{declared.low:g} to {declared.high:g}"
    return f"{name}: nothing from {ends} meets {_words(leaf)}, and values outside count as the nearer end"
