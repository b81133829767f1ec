"""Texts that look right, made of a fuzzer's bytes: they reach behind a parser,
where most bytes end at its first check.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from discreet.cli.parse import NAMES
from discreet.events.tree import _BY_TAG

NUMBERS = [
    "0",
    "1",
    "2",
    "-1",
    "0.5",
    "1e-300",
    "1e300",
    "1e308",
    "5e-324",
    "9007199254740993",
    "10000000000",
    "9" * 400,
    "-0.0",
]
WORDS = ["add-remove", "replace", "zero-out", "x", "", "é\x1b", "a'b\"c", "drop"]


class Bytes:
    """Choices, one byte each; when the bytes are used up, always the first."""

    def __init__(self, data: bytes) -> None:
        self._left = iter(data)

    def below(self, count: int) -> int:
        return next(self._left, 0) % count

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]

    def some(self, make: Callable[[], Any], most: int = 3) -> list[Any]:
        return [make() for _ in range(self.below(most + 1))]


def _json(draw: Bytes, depth: int = 4) -> Any:
    kind = draw.below(8)
    if kind < 4 and depth:
        tag = draw.pick([*_BY_TAG])
        names = [field.name for field in fields(_BY_TAG[tag])]  # type: ignore[arg-type]
        left_out = draw.pick([None, None, None, *names])
        return {"type": tag} | {name: _json_field(draw, name, depth - 1) for name in names if name != left_out}
    if kind == 4:
        return draw.some(lambda: _json(draw, depth - 1)) if depth else []
    return draw.pick([None, True, draw.pick(WORDS), float(draw.pick(NUMBERS)), int(float(draw.pick(NUMBERS[:11])))])


def _json_field(draw: Bytes, name: str, depth: int) -> Any:
    if draw.below(8) == 7:
        return _json(draw, depth)
    if name == "event":
        return {"type": "Gaussian", "noise_multiplier": 2.0} if not depth else _json(draw, depth)
    if name == "events":
        return draw.some(lambda: _json(draw, depth)) if depth else []
    if name == "adjacency":
        return draw.pick(WORDS)
    if name in ("orders", "epsilons"):
        return draw.some(lambda: float(draw.pick(NUMBERS)))
    return draw.pick([float(draw.pick(NUMBERS)), int(float(draw.pick(NUMBERS[:11])))])


def event_json(draw: Bytes) -> str:
    return json.dumps(_json(draw))


def event_text(draw: Bytes, depth: int = 5) -> str:
    kind = draw.below(8)
    if kind < 4 and depth:
        inner = draw.some(
            lambda: (
                draw.pick(["", "", f"{draw.pick(['rate', 'event', 'adjacency', 'count', 'epsilon'])}="])
                + event_text(draw, depth - 1)
            ),
            most=4,
        )
        return f"{draw.pick([*NAMES])}({', '.join(inner)})"
    if kind < 6 and depth:
        left, right = event_text(draw, depth - 1), event_text(draw, depth - 1)
        return left + draw.pick([" + ", " * ", " | ", " - ", "/", " ** ", ", "]) + right
    if kind == 6:
        return draw.pick(["x", "-", "[", "]", "(1, 2)", "[2, 3]", *map(repr, WORDS)])
    return draw.pick(NUMBERS)


def schema_toml(draw: Bytes) -> str:
    def value(depth: int = 2) -> str:
        if depth and not draw.below(3):
            return f"[{', '.join(draw.some(lambda: value(depth - 1)))}]"
        number, word = draw.pick(NUMBERS), json.dumps(draw.pick(WORDS))
        return draw.pick([number, word, "true", "inf", "nan", "1979-05-27", "[0, 1]", "[1, 100]"])

    def facts() -> str:
        keys = draw.some(lambda: draw.pick(["bounds", "missing", "categories", "range", "other", "unlisted"]))
        return ", ".join(f"{key} = {value()}" for key in dict.fromkeys(keys))

    names = ["unit", "max_rows_per_unit", "max_groups_per_unit", "colums"]
    top = [f"{draw.pick(names)} = {value()}"] * draw.below(2)
    columns = [f"c{number} = {{ {facts()} }}" for number in range(draw.below(4))]
    return "\n".join([*top, "[columns]", *columns])


def sql(draw: Bytes) -> str:
    """A SELECT of columns a, b and c; a quarter are answered, and what is odd stands where it is met late."""
    items = draw.some(lambda: _item(draw)) or ["COUNT(*)"]
    where = f" WHERE {_condition(draw)}" * draw.below(2)
    tails = ["", "", " GROUP BY b", " GROUP BY b, c", " GROUP BY c", " GROUP BY a", " HAVING 1", " LIMIT 1"]
    return f"SELECT {', '.join(items)} FROM t{where}{draw.pick(tails)}"


def _item(draw: Bytes) -> str:
    name = draw.pick(["COUNT", "SUM", "AVG", "VAR_POP", "MEDIAN", "MAX", "STDDEV", "MODE"])
    inner = draw.pick(["a", "a", "a", "c", "b", "*", "1", "a, 0.5", "DISTINCT b", "DISTINCT a", "@"])
    odd = ["b", "*", _number(draw, 1), f"{name}({_number(draw, 1)})"] if not draw.below(8) else []
    asked = f"{name}({inner})"
    return draw.pick([asked, "COUNT(*)", f"{asked} AS m", f"QUANTILE_CONT(a, {draw.pick(NUMBERS)})", *odd])


def _number(draw: Bytes, depth: int = 2) -> str:
    kind = draw.below(8) if depth else 7
    if kind < 3:
        sign = draw.pick(["+", "-", "*", "/", "+", "-", "*", "/", "%", "||", "//", "^"])
        return f"{_number(draw, depth - 1)} {sign} {_number(draw, depth - 1)}"
    if kind < 5:
        name = draw.pick(["ABS", "FLOOR", "SQRT", "LN", "-", "ABS", "FLOOR", "@", "ROUND", "CAST", "CASE WHEN"])
        return f"{name}({_number(draw, depth - 1)})"
    return draw.pick(["a", "a", "c", "a", "d", "NULL", "'x'", *NUMBERS])


def _condition(draw: Bytes, depth: int = 3) -> str:
    kind = draw.below(10) if depth else 9
    if kind < 3:
        return f"{_condition(draw, depth - 1)} {draw.pick(['AND', 'OR'])} {_condition(draw, depth - 1)}"
    if kind == 3:
        return f"NOT ({_condition(draw, depth - 1)})"
    if kind == 4:
        return f"b {draw.pick(['=', '<>', '<', 'LIKE'])} {draw.pick(['x', 'y', 'z', 'a'])!r}"
    if kind == 5:
        return f"{_number(draw, 1)} IN ({', '.join([_number(draw, 0), *draw.some(lambda: _number(draw, 0))])})"
    if kind == 6:
        return f"{draw.pick('abc')} {draw.pick(['IS NULL', 'IS NOT NULL', 'BETWEEN 1 AND 2', 'IS TRUE', 'IN ()'])}"
    return f"{_number(draw)} {draw.pick(['<', '<=', '>', '>=', '=', '<>', '!='])} {_number(draw)}"


def ledger_url(draw: Bytes) -> str:
    pieces = [
        "sqlite",
        "postgresql",
        "+psycopg",
        "mysql",
        "://",
        ":",
        "/",
        "///",
        "@",
        "user",
        "p%40",
        "host",
        "[::1]",
        ":5432",
        "?",
        "sslmode=require",
        "&",
        "password=x",
        "=",
        "%",
        "%zz",
        "é",
        "..",
        "budget.db",
        ":memory:",
        "file:",
        "mode=memory",
        " ",
        "\0",
    ]
    return "".join(draw.some(lambda: draw.pick(pieces), most=12))


GRAMMARS: Mapping[str, Callable[[Bytes], str]] = {
    make.__name__: make for make in (event_json, event_text, schema_toml, sql, ledger_url)
}
