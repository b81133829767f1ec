"""An expression held against a schema before data is read: kinds agree, columns are there, or it is refused.

Constants take the kind of what they stand beside: a text beside a date is a date, a number added to a date counts days,
a column of truth values is a condition.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from discreet.dates import DAY, seconds
from discreet.encoding.values import NUMERAL as SPELLED
from discreet.schema import Dates, Schema, Unlisted
from discreet.tables.calendar import Part, Truncated
from discreet.tables.choices import Among, AsNumber, Case, Coalesce, Extreme, Lookup
from discreet.tables.conditions import Compare, Condition, IsIn, Logic, Missing
from discreet.tables.expressions import Expression, columns
from discreet.tables.mistakes import mistake
from discreet.tables.nodes import Binary, Clip, Column, Function, Node, Number, Text, integral
from discreet.tables.texts import Contains, Joined, Length, Like, TextFunction

__all__ = ["condition_of", "refuse_unclear_halves", "resolve_constants", "text_columns"]

NUMERAL = re.compile(SPELLED)
MOST_PARTS, DEEPEST = 4_000, 100  # of an expression; the values of is_in do not count
_VALUE = "A value stands where a condition is needed: write "
_CONDITION = "A condition stands where a number is needed: compare numbers, combine conditions with "
_DATE = "A date or a time stands where a number is needed: take its year, or a difference in days"


def text_columns(kinds: Mapping[str, str], derived: Iterable[str]) -> frozenset[str]:
    """The columns that an expression may take for text: by their type in the source, or by their expression."""
    return frozenset({name for name, kind in kinds.items() if kind == "text"} | set(derived))


def resolve_constants(
    expression: Expression, schema: Schema, texts: Collection[str], *, condition: bool = False
) -> Expression:
    """The expression with its constants resolved; ``texts`` are the columns that hold text by their type."""
    _small(expression.node)
    node = _resolve(expression.node, schema, texts)
    refuse_unclear_halves(node)
    return Expression(condition_of(node, schema) if condition else node)


def refuse_unclear_halves(node: Node) -> None:
    """Refuse a cast to whole numbers of what SQL may compute in decimals: of those a half goes away from zero, of
    doubles to the even number, and a column's type, which decides it, is no public fact."""
    level = [node]
    while level:
        if any(isinstance(part, Function) and part.name == "rint" and _may_be_decimal(part.inner) for part in level):
            said = "A number with a decimal point is cast to a whole one, and the type of a column decides where a half"
            raise mistake(f"{said} goes: use round() or floor().", f"{said} goes: write ROUND(...) or FLOOR(...).")
        level = [child for part in level for child in part.children()]


def _may_be_decimal(node: Node) -> bool:  # decision 356
    match node:
        case Number(constant=constant):
            return not constant.is_integer()
        case Binary(sign="/", left=Function(name="round"), right=Number(constant=scale)):
            return scale > 1  # a cast to DECIMAL, or a rounding that keeps the type
        case Binary(sign="/"):
            return False
        case Case(values=values, otherwise=otherwise):
            return any(map(_may_be_decimal, values if otherwise is None else (*values, otherwise)))
        case Binary() | Coalesce() | Extreme() | AsNumber() | Clip() | Function(name="abs"):
            return any(map(_may_be_decimal, node.children()))
        case (
            Column()
            | Function()
            | Condition()
            | Text()
            | TextFunction()
            | Joined()
            | Length()
            | Part()
            | Truncated()
            | Among()
            | Lookup()
        ):
            return False  # doubles, whole numbers, and what is no number
    raise ValueError(f"{type(node).__name__} does not say whether SQL computes it in decimals.")


def _small(whole: Node) -> None:
    """Refuse what is larger or deeper than an engine plans in seconds."""
    count, level, depth = 1, [whole], 0
    while level := [child for part in level for child in part.children()]:
        count, depth = count + len(level), depth + 1
        if count > MOST_PARTS or depth > DEEPEST:
            raise ValueError(
                f"The expression has more than {MOST_PARTS:,} parts or is nested more than {DEEPEST} deep: use "
                "a list of values (is_in, IN), or prepare the column in the engine first."
            )


def _resolve(node: Node, schema: Schema, texts: Collection[str]) -> Node:
    changed: dict[str, Any] = {}
    for field in fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        if isinstance(value, Node):
            changed[field.name] = _resolve(value, schema, texts)
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            changed[field.name] = tuple(_resolve(part, schema, texts) for part in value)
    node = replace(node, **changed) if changed else node  # type: ignore[type-var]
    found = _fit_to_types(node, schema, texts)
    found.bounds(schema)  # refuses categories that are not declared
    return found


def _fit_to_types(node: Node, schema: Schema, texts: Collection[str]) -> Node:
    match node:
        case Column(name=name):
            if isinstance(schema[name], Unlisted) and name not in texts:
                raise mistake(
                    f"Column {name!r} is Unlisted and no text, but an expression needs Bounded or Categories.",
                    f"Column {name!r} is declared as unlisted and holds no text, but an expression needs bounds or "
                    f"categories: declare {name} = {{ bounds = [low, high] }}.",
                )
        case Compare():
            return _resolve_comparison(node, schema)
        case IsIn(inner=inner, values=values) if inner.kind(schema) == "moment" and isinstance(values[0], str):
            return IsIn(inner, tuple(_moment(str(value)) for value in values))
        case Logic(parts=parts):
            return replace(node, parts=tuple(condition_of(part, schema) for part in parts))
        case Case(conditions=conditions, values=values, otherwise=otherwise):
            held = tuple(condition_of(part, schema) for part in conditions)
            every = _alike([*values, *([] if otherwise is None else [otherwise])], schema)
            return Case(held, tuple(every[: len(values)]), None if otherwise is None else every[-1])
        case Coalesce(parts=parts) | Extreme(parts=parts):
            return replace(node, parts=tuple(_alike(parts, schema)))
        case AsNumber(inner=inner) if not inner.logical():
            return _number(inner, schema)
        case Binary():
            return _resolve_arithmetic(node, schema)
        case Clip(inner=inner) | Function(inner=inner):
            _number(inner, schema)
        case TextFunction() | Contains() | Like() | Joined() | Length():
            if other := [child for child in node.children() if child.kind(schema) != "text"]:
                raise ValueError(f"Here {_describe(other[0], schema)} stands where a text is needed.")
        case Part(inner=inner) | Truncated(inner=inner):
            if inner.kind(schema) != "moment":
                raise mistake(
                    "A date or a time is needed here: declare the column as Dates(first, last) or Times.",
                    f"A date or a time is needed here; {_describe(inner, schema)} is none. Declare a column as "
                    '{ dates = ["2023-01-01", "2024-12-31"] }, or as times.',
                )
            if not all(-6e10 < end < 2.5e11 for end in inner.bounds(schema)):
                raise ValueError("The date lies beyond the calendar's years 70 to 9890, by its declared bounds.")
            _refuse_time_of_days(node, inner, schema)
        case Among(inner=inner, listed=listed) | Lookup(inner=inner, keys=listed):
            if not listed or {isinstance(value, str) for value in listed} != {inner.kind(schema) == "text"}:
                raise ValueError(
                    "The listed values are not of the kind of what is looked up: all text, or all numbers."
                )
        case Number() | Text() | IsIn() | Missing() | AsNumber():
            pass  # nothing in them waits for its kind
        case _:
            raise ValueError(f"{type(node).__name__} says nothing of the kinds of what it is made of.")
    return node


def _refuse_time_of_days(node: Part | Truncated, inner: Node, schema: Schema) -> None:
    """Refuse the hour of a column that is declared as days, which would be 0 in each row, whatever the cells say."""
    step = node.name if isinstance(node, Part) else node.step
    days = sorted(name for name in columns(Expression(inner)) if isinstance(schema[name], Dates))
    if step in ("hour", "minute") and days and _whole_days(inner, schema):
        said = f"Column {days[0]!r} is declared as days, which have no {step}: declare "
        first, last = schema[days[0]].first, schema[days[0]].last  # type: ignore[union-attr]
        raise mistake(
            f"{said}it as Times('{first}', '{last}').",
            f'{said}{days[0]} = {{ times = ["{first}", "{last}"] }}.',
        )


def condition_of(node: Node, schema: Schema) -> Node:
    """The node as a condition; a column of truth values is one."""
    if node.logical():
        return node
    if node.kind(schema) == "number" and set(node.domain(schema) or (2,)) <= {0, 1}:
        return Compare("==", node, Number(1.0))
    raise mistake(
        f"{_VALUE}for example col('age') >= 18, in parentheses beside & and |.", f"{_VALUE}a comparison, as age >= 18."
    )


def _describe(node: Node, schema: Schema) -> str:
    """What a node is, in words."""
    word = {"text": "a text", "number": "a number", "moment": "a date or a time", "truth": "a condition"}
    kind = word["truth" if node.logical() else node.kind(schema)]
    if isinstance(node, Column):
        return f"column {node.name!r}, {kind},"
    return repr(node.constant) if isinstance(node, Text) else kind


def _number(node: Node, schema: Schema) -> Node:
    kind = node.kind(schema)
    if kind == "text":
        raise _no_number(node, schema)
    if kind == "truth":
        raise mistake(f"{_CONDITION}& | ~.", f"{_CONDITION}AND, OR, NOT.")
    if kind == "moment":
        raise mistake(f"{_DATE}.", f"{_DATE}, as date_diff('day', DATE '2024-01-31', ...).")
    return node


def _no_number(node: Node, schema: Schema) -> ValueError:
    """Text where a number belongs."""
    if isinstance(node, Column) and isinstance(schema[node.name], Unlisted):
        name = f"Column {node.name!r} is"
        return mistake(
            f"{name} Unlisted, but a number is needed here: declare Bounded or Categories.",
            f"{name} declared as unlisted, but a number is needed here: declare it, as {node.name} = "
            "{ bounds = [low, high] }.",
        )
    name = f"Column {node.name!r}" if isinstance(node, Column) else "The expression"
    if isinstance(node, Text):
        name = repr(node.constant)
        if NUMERAL.fullmatch(node.constant):
            return ValueError(f"{name} is text, but a number is needed here: write {node.constant.strip()}, no quotes.")
    said = f"{name} is text, but a number is needed here; text can be compared with "
    return mistake(f"{said}== and is_in.", f"{said}=, <> and IN.")


def _moment(text: str) -> float:
    found = seconds(text)
    if found is None:
        raise ValueError(
            f"{text!r} is compared with a date, but spells none: write '2024-01-31' or '2024-01-31 18:30'."
        )
    return found


def _alike(parts: Sequence[Node], schema: Schema) -> list[Node]:
    """Nodes of one kind: truth values as numbers, text beside dates as dates."""
    parts = [AsNumber(part) if part.logical() else part for part in parts]
    if any(part.kind(schema) == "moment" for part in parts):
        parts = [Number(_moment(part.constant), moment=True) if isinstance(part, Text) else part for part in parts]
    if len({part.kind(schema) for part in parts}) > 1:
        said = "Values of different kinds stand side by side: all must be numbers, all text, or all dates"
        dated = any(part.kind(schema) == "moment" for part in parts)
        raise mistake(
            f"{said}.", f"{said}; a date is written '2024-01-31', its year is year(...)." if dated else f"{said}."
        )
    return list(parts)


def _resolve_comparison(node: Compare, schema: Schema) -> Node:
    if "moment" in (node.left.kind(schema), node.right.kind(schema)):
        left, right = _alike([node.left, node.right], schema)
        return Compare(node.sign, left, right)
    if node.left.kind(schema) == node.right.kind(schema) == "text" and node.sign == "==":
        left, right = (node.right, node.left) if isinstance(node.left, Text) else (node.left, node.right)
        return IsIn(left, (right.constant,)) if isinstance(right, Text) else Compare("==", left, right)
    parts = [AsNumber(part) if part.logical() else _number(part, schema) for part in (node.left, node.right)]
    return Compare(node.sign, *parts)


def _resolve_arithmetic(node: Binary, schema: Schema) -> Node:
    """A difference of dates is in days, and so is what is added to one."""
    left, right = node.left.kind(schema), node.right.kind(schema)
    if "moment" not in (left, right):
        _number(node.left, schema)
        _number(node.right, schema)
        return node
    if node.sign == "-" and left == right:
        days = Binary("/", replace(node), Number(DAY))
        whole = _whole_days(node.left, schema) and _whole_days(node.right, schema)
        return Function("floor", days) if whole else days  # which changes nothing, but tells that keys are few
    if node.sign in "+-" and left == "moment" and right == "number":
        return Binary(node.sign, node.left, Binary("*", node.right, Number(DAY)))
    if node.sign == "+" and left == "number":
        return Binary("+", node.right, Binary("*", node.left, Number(DAY)))
    raise mistake(f"{_DATE}.", f"{_DATE}, as date_diff('day', DATE '2024-01-31', ...).")


def _whole_days(node: Node, schema: Schema) -> bool:
    """Whether it is a day, without a time, by the look of it."""
    match node:
        case Column(name=name):
            return isinstance(schema[name], Dates)
        case Number(constant=constant, moment=True):
            return constant % DAY == 0
        case Truncated(step=step):
            return step not in ("hour", "minute")
        case Binary(left=left, right=Binary(sign="*", left=days, right=Number(constant=size))) if size == DAY:
            return _whole_days(left, schema) and integral(days)
    return False
