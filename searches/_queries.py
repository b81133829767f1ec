"""Random SELECTs from the whole grammar that tables claim to read, each with what plain DuckDB is asked in its place.

Expressions are typed: numbers, texts, conditions, points in time, over the columns that a relation has at that place.
Constants are halves and whole numbers, so that decimals and doubles agree; what noise would decide (a rounded mean, a
comparison with a noisy sum) is not composed.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

import discreet as dp

__all__ = ["PUBLIC", "ROWS", "SCHEMA", "Query", "draw_query"]

SCHEMA = dp.Schema(
    age=dp.Bounded(0, 100),
    income=dp.Bounded(0, 1000),
    hours=dp.Bounded(-20, 60),
    sex=dp.Categories(["f", "m"]),
    educ=dp.Categories(range(1, 6)),
    region=dp.Categories(["north", "south", "east", "west"]),
    married=dp.Categories([False, True]),
    city=dp.Unlisted(),
    day=dp.Dates("2023-01-01", "2024-12-31"),
    seen=dp.Times("2023-01-01", "2024-12-31"),
)
PUBLIC = {
    "regions": pl.DataFrame({"region": ["north", "south", "east"], "zone": ["cold", "warm", "warm"], "tax": [1, 2, 4]})
}
COLUMNS: dict[str, str] = {
    "age": "number",
    "income": "number",
    "hours": "number",
    "sex": "text",
    "educ": "number",
    "region": "text",
    "married": "truth",
    "city": "text",
    "day": "moment",
    "seen": "moment",
}
WORDS = {"sex": ["f", "m"], "region": ["north", "south", "east", "west"], "city": ["Lyon", "lyon", " Nice", "Paris"]}


def _rows(size: int = 700) -> pl.DataFrame:
    """Visits within the declarations, with missing values where no key needs one."""
    rng = np.random.default_rng(11)
    start = dt.datetime(2023, 1, 1)
    at = [start + dt.timedelta(seconds=int(s)) for s in rng.integers(0, 730 * 86_400, size)]

    def gaps(values: Any) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in np.asarray(values).tolist()]

    return pl.DataFrame(
        {
            "age": rng.integers(0, 100, size),
            "income": gaps(rng.integers(0, 2000, size) / 2),
            "hours": gaps(rng.integers(-20, 61, size) * 1.0),
            "sex": rng.choice(["f", "m"], size),
            "educ": rng.integers(1, 6, size),
            "region": rng.choice(["north", "south", "east", "west"], size),
            "married": rng.random(size) < 0.4,
            "city": pl.Series(gaps(rng.choice(["Lyon", "lyon", " Nice", "Paris", "Oslo"], size)), dtype=pl.String),
            "day": [moment.date() for moment in at],
            "seen": pl.Series([None if i % 9 == 0 else moment for i, moment in enumerate(at)], dtype=pl.Datetime("us")),
        }
    )


ROWS = _rows()


@dataclass(frozen=True)
class Query:
    """What is asked here, and what plain DuckDB is asked: without LIMIT, with the keys of the order as further columns.

    ``loose`` are columns where a NULL of no rows is no number here; ``shown`` is how many columns are seen.
    """

    asked: str
    plain: str
    shown: int
    names: tuple[str | None, ...]  # as they must be; none where a column has no alias
    loose: tuple[bool, ...]
    wide: tuple[float, ...]  # what a column may be off by
    limit: int | None = None
    offset: int = 0
    exact_order: tuple[bool, ...] = ()  # which keys of the order noise leaves alone
    empty_groups: bool = False  # whether public groups of no rows are shown here, and rows without a key dropped
    private: bool = False  # whether the keys are private


@dataclass(frozen=True)
class _Item:
    """One column of a SELECT."""

    text: str
    alias: str = ""
    loose: bool = False
    wide: float = 0.02
    counts: bool = False  # whether noise cannot change it
    name: str | None = None

    def __str__(self) -> str:
        return f"{self.text} AS {self.alias}" if self.alias else self.text


@dataclass
class _Draw:
    rng: np.random.Generator
    columns: Mapping[str, str] = field(default_factory=lambda: COLUMNS)
    ctes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    made: int = 0

    # --- choices -----------------------------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, options: Any) -> Any:
        options = list(options)
        return options[int(self.rng.integers(len(options)))]

    def of(self, kind: str) -> list[str]:
        return [name for name, other in self.columns.items() if other == kind]

    def name(self, stem: str = "c") -> str:
        self.made += 1
        return f"{stem}{self.made}"

    # --- expressions of a row ----------------------------------------------------------------------------------------

    def number(self, depth: int = 2) -> str:
        own = self.of("number")
        if depth <= 0 or self.chance(0.3):
            return self.pick(own) if own and self.chance(0.85) else self.pick(["1", "2", "0.5", "10", "-3"])
        a: Callable[[], str] = lambda: self.number(depth - 1)  # noqa: E731
        forms = [
            lambda: f"({a()} {self.pick('+-')} {a()})",
            lambda: f"{self.pick(['2', '0.5', '3', '-1'])} * {a()}",
            lambda: f"({a()}) / {self.pick(['2', '4', '10', '0'])}",
            lambda: f"CAST({a()} AS INTEGER) // {self.pick(['2', '5', '20'])}",
            lambda: f"({a()}) % {self.pick(['2', '7', '10'])}",
            lambda: f"ABS({a()})",
            lambda: f"{self.pick(['FLOOR', 'CEIL', 'ROUND', 'TRUNC'])}(({a()}) / {self.pick(['2', '4', '16'])})",
            lambda: f"ROUND({a()} / 8, {self.pick(['1', '2', '0'])})",
            lambda: f"SIGN({a()})",
            lambda: f"SQRT(ABS({a()}))",
            lambda: f"LN(1 + ABS({a()}))",
            lambda: f"POWER({a()}, 2) / 100",
            lambda: f"{self.pick(['LEAST', 'GREATEST'])}({a()}, {a()})",
            lambda: f"COALESCE({a()}, {a()})",
            lambda: f"NULLIF({a()}, {self.pick(['0', '1', '10'])})",
            lambda: f"CASE WHEN {self.condition(depth - 1)} THEN {a()} ELSE {a()} END",
            lambda: f"CASE WHEN {self.condition(depth - 1)} THEN {a()} END",
            lambda: f"IF({self.condition(depth - 1)}, {a()}, {a()})",
            lambda: f"CAST({a()} AS {self.pick(['INTEGER', 'DOUBLE', 'BIGINT', 'DECIMAL(9, 1)'])})",
            lambda: f"CAST({self.condition(depth - 1)} AS INTEGER)",
            lambda: f"-({a()})",
            lambda: f"LENGTH({self.text(depth - 1)})" if self.of("text") else a(),
            lambda: f"{self.pick(['year', 'month', 'day', 'quarter', 'dayofweek', 'week'])}({self.moment()})",
            lambda: f"EXTRACT({self.pick(['HOUR', 'MINUTE', 'DOY', 'ISODOW'])} FROM {self.moment()})",
            lambda: (
                f"date_diff('{self.pick(['day', 'month', 'week', 'year', 'hour'])}', {self._date()}, {self.moment()})"
            ),
        ]
        return str(self.pick(forms)())

    def text(self, depth: int = 1) -> str:
        own = self.of("text")
        if not own:
            return "'x'"
        if depth <= 0 or self.chance(0.4):
            return str(self.pick(own))
        a: Callable[[], str] = lambda: self.text(depth - 1)  # noqa: E731
        forms = [
            lambda: f"{self.pick(['LOWER', 'UPPER', 'TRIM'])}({a()})",
            lambda: f"LEFT({a()}, {self.pick(['1', '2', '0'])})",
            lambda: f"SUBSTR({a()}, {self.pick(['1', '2', '3'])}, {self.pick(['1', '2', '9'])})",
            lambda: f"{a()} || '-' || {a()}",
            lambda: f"COALESCE({a()}, 'none')",
            lambda: f"CASE WHEN {self.condition(depth - 1)} THEN 'yes' ELSE {a()} END",
        ]
        return str(self.pick(forms)())

    def moment(self) -> str:
        own = self.of("moment")
        if not own:
            return self._date()
        forms = [
            lambda: self.pick(own),
            lambda: self.pick(own),
            lambda: f"date_trunc('{self.pick(['month', 'week', 'quarter', 'day', 'year'])}', {self.pick(own)})",
            lambda: (
                f"{self.pick(own)} {self.pick('+-')} INTERVAL {self.pick(['1', '10'])} {self.pick(['DAY', 'HOUR'])}"
            ),
        ]
        return str(self.pick(forms)())

    def _date(self) -> str:
        return str(self.pick(["DATE '2023-06-01'", "DATE '2024-02-29'", "TIMESTAMP '2023-12-31 18:30:00'"]))

    def condition(self, depth: int = 2) -> str:
        if depth > 0 and self.chance(0.35):
            a: Callable[[], str] = lambda: self.condition(depth - 1)  # noqa: E731
            return str(self.pick([f"({a()} AND {a()})", f"({a()} OR {a()})", f"NOT ({a()})"]))
        forms = [
            lambda: f"{self.number(depth)} {self.pick(['<', '<=', '>', '>=', '=', '<>'])} {self.pick([5, 20, 33, 50])}",
            lambda: f"{self.number(1)} BETWEEN {self.pick([0, 10])} AND {self.pick([40, 70])}",
            lambda: f"{self.number(1)} {self.pick(['IN', 'NOT IN'])} (1, 2, 5, 30)",
            lambda: f"{self.number(1)} IS {self.pick(['', 'NOT '])}NULL" if self.of("number") else "TRUE",
            lambda: f"{self.moment()} {self.pick(['<', '>=', '<='])} {self._date()}",
            lambda: f"({self.number(1)} > 20) IS {self.pick(['TRUE', 'FALSE'])}" if self.of("number") else "1 = 1",
            lambda: self.pick(["TRUE", "1 = 1", "2 > 1"]),
        ]
        if self.of("text"):
            forms += [
                lambda: f"{self._word_compared()}",
                lambda: (
                    f"{self.text()} {self.pick(['LIKE', 'NOT LIKE', 'ILIKE'])} {self.pick(['%n%', 'L%', '_o%', 'f'])!r}"
                ),
                lambda: f"{self.pick(self.of('text'))} IS {self.pick(['', 'NOT '])}NULL",
                lambda: f"starts_with({self.text()}, 'n')",
                lambda: f"contains({self.text()}, 'o')",
            ]
        if self.of("truth"):
            forms += [lambda: self.pick(self.of("truth"))] * 2
        return str(self.pick(forms)())

    def _word_compared(self) -> str:
        name = self.pick(self.of("text"))
        words = WORDS.get(name, ["north", "f"])
        if self.chance(0.5):
            return f"{name} {self.pick(['=', '<>'])} {self.pick(words)!r}"
        return f"{name} {self.pick(['IN', 'NOT IN'])} ({', '.join(map(repr, words[:2]))})"

    # --- relations ---------------------------------------------------------------------------------------------------

    def relation(self, depth: int = 2) -> str:
        """What stands after FROM; ``columns`` are then what it has."""
        kind = self.rng.random()
        if self.ctes and kind < 0.35:
            name = self.pick(self.ctes)
            self.columns = self.ctes[name]
            return f"{name}{self.pick(['', '', f' AS {name}x'])}"
        if depth and kind < 0.6:
            inner = self.inner(depth)
            if self.chance(0.25):
                listed = [self.name("r") for _ in self.columns]
                some = listed[: int(self.rng.integers(1, len(listed) + 1))]
                kinds = list(self.columns.items())
                self.columns = {
                    **{new: kind for new, (_, kind) in zip(some, kinds, strict=False)},
                    **dict(kinds[len(some) :]),
                }
                return f"({inner}) AS {self.name('s')}({', '.join(some)})"
            return self.pick([f"({inner})", f"({inner}) AS {self.name('s')}"])
        self.columns = COLUMNS
        base = "people"
        if kind > 0.9:
            joined = self.pick(["JOIN regions USING (region)", "LEFT JOIN regions USING (region)"])
            self.columns = {**COLUMNS, "zone": "text", "tax": "number"}
            return f"{base} {joined}"
        if kind > 0.85:
            side = self.pick(["JOIN", "LEFT JOIN", "INNER JOIN"])
            self.columns = {**COLUMNS, "r.region": "text", "zone": "text", "tax": "number"}
            self.columns = {("p.region" if name == "region" else name): kind for name, kind in self.columns.items()}
            return f"{base} AS p {side} regions AS r ON p.region = r.region"
        return base

    def inner(self, depth: int) -> str:
        """A SELECT of rows, perhaps with a WITH of its own."""
        outer, with_ = dict(self.ctes), ""
        if self.chance(0.3):
            with_ = self.with_(depth - 1)
        source = self.relation(depth - 1)
        where = f" WHERE {self.condition(1)}" if self.chance(0.5) else ""
        columns = dict(self.columns)
        if self.chance(0.4) and not any("." in name for name in columns):
            made = {self.name(): kind for kind in self.pick([(), ("number",), ("truth",)])}
            items = ["*", *(f"{self._made(kind)} AS {name}" for name, kind in made.items())]
            self.columns = {**columns, **made}
        else:
            items, kept = [], dict[str, str]()
            for name, kind in columns.items():
                if self.chance(0.75):
                    bare = name.rpartition(".")[2]
                    alias = bare if bare not in kept and self.chance(0.7) else self.name()
                    items.append(f"{name} AS {alias}" if alias != name else name)
                    kept[alias] = kind
            for kind in ("number", "text"):
                if self.chance(0.3):
                    alias = self.name()
                    items.append(f"{self._made(kind)} AS {alias}")
                    kept[alias] = kind
            if not kept:
                items, kept = ["age"], {"age": "number"} if "age" in columns else {}
                if not kept:
                    alias = next(iter(columns))
                    items, kept = [f"{alias} AS only_one"], {"only_one": columns[alias]}
            self.columns = kept
        self.ctes = outer
        return f"{with_}SELECT {', '.join(items)} FROM {source}{where}"

    def _made(self, kind: str) -> str:
        return {"number": self.number, "text": self.text, "truth": self.condition, "moment": self.moment}[kind]()

    def with_(self, depth: int) -> str:
        """A WITH; ``ctes`` are then what may be named."""
        parts = []
        for _ in range(self.pick([1, 1, 2])):
            name, inner = self.name("w"), self.inner(max(depth, 0))
            columns = dict(self.columns)
            listed = ""
            if self.chance(0.2) and "*" not in inner.split(" FROM ")[0]:
                new = [self.name("r") for _ in columns]
                listed, columns = f"({', '.join(new)})", dict(zip(new, columns.values(), strict=True))
            parts.append(f"{name}{listed} AS ({inner})")
            self.ctes[name] = columns
        return f"WITH {', '.join(parts)} "

    # --- aggregates --------------------------------------------------------------------------------------------------

    def aggregate(self) -> _Item:
        filtered = f" FILTER (WHERE {self.condition(1)})" if self.chance(0.2) else ""
        kind = self.rng.random()
        if kind < 0.4 or not self.of("number"):
            anything = self.pick(list(self.columns))
            text = self.pick(["COUNT(*)", "COUNT(*)", "COUNT(1)", f"COUNT({anything})"])
            if self.chance(0.15):  # of no rows NULL, in DuckDB
                return _Item(f"COUNT_IF({self.condition(1)})", counts=True, loose=True)
            return _Item(f"{text}{filtered}", counts=True)
        x = self.number(self.pick([0, 1, 1, 2]))
        if kind < 0.6:
            return _Item(f"SUM({x}){filtered}", loose=True, wide=2.0)
        if kind < 0.85:
            return _Item(f"AVG({x}){filtered}", loose=True, wide=0.05)
        if kind < 0.92:
            name = self.pick(["VAR_POP", "STDDEV", "STDDEV_POP", "VAR_SAMP"])
            return _Item(f"{name}({self.pick(self.of('number'))})", loose=True, wide=3.0)
        if kind < 0.96 and "age" in self.columns:
            return _Item(
                f"COUNT(DISTINCT {self.pick([c for c in ('sex', 'educ', 'region', 'age') if c in self.columns])})",
                wide=1.5,
            )
        return _Item(f"SUM(CASE WHEN {self.condition(1)} THEN 1 ELSE 0 END)", loose=True, wide=0.05)

    def of_aggregates(self) -> _Item:
        """A column that is computed of what was released."""
        one = self.aggregate()
        if self.chance(0.7):
            return one
        other = self.aggregate()
        forms = [
            lambda: replace(one, text=f"{one.text} + {other.text}", loose=one.loose or other.loose),
            lambda: replace(one, text=f"2 * {one.text}"),
            lambda: replace(one, text=f"-{one.text}"),
            lambda: _Item(f"{one.text} / COUNT(*)", loose=True, wide=one.wide),
            lambda: _Item("COUNT(*) // 7", counts=True),
            lambda: _Item("COUNT(*) % 5", counts=True),
            lambda: _Item("ROUND(COUNT(*) / 8, 1)", counts=True),
            lambda: _Item("CASE WHEN COUNT(*) > 60 THEN 'many' ELSE 'few' END", counts=True),
            lambda: _Item("CASE WHEN COUNT(*) > 60 THEN COUNT(*) END", counts=True),
            lambda: _Item("COUNT(*) > 60", counts=True),
            lambda: _Item("NULLIF(COUNT(*) % 2, 0)", counts=True),
            lambda: _Item(f"CAST(COUNT(*) / 4 AS {self.pick(['INTEGER', 'DOUBLE', 'DECIMAL(9, 2)'])})", counts=True),
            lambda: _Item("SUM(COUNT(*)) OVER ()", counts=True),
            lambda: _Item(self.pick(["1", "'all'", "0.5"]), counts=True),
        ]
        made: _Item = self.pick(forms)()
        return replace(made, wide=max(made.wide, one.wide + other.wide))

    # --- questions ---------------------------------------------------------------------------------------------------

    def key(self) -> tuple[str, bool]:
        """What rows are grouped by, and whether it may be missing."""
        own = self.columns
        forms = [(name, True) for name in ("sex", "educ", "region", "married", "zone") if name in own]
        if "age" in own:
            forms += [
                ("FLOOR(age / 25)", True),
                ("CAST(age AS INTEGER) // 30", True),
                ("CAST(age AS INTEGER) % 3", True),
                ("age >= 50", True),
                ("ROUND(age / 32)", True),
                ("CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END", True),
                ("CASE WHEN age < 30 THEN 1 WHEN age < 60 THEN 2 END", True),
            ]
        if "day" in own:
            forms += [
                ("year(day)", True),
                ("date_trunc('quarter', day)", True),
                ("quarter(day)", True),
                ("dayofweek(day)", True),
                ("date_diff('year', DATE '2022-05-01', day)", True),
            ]
        if "region" in own:
            forms += [("LEFT(region, 1)", True), ("UPPER(region)", True), ("LENGTH(region)", True)]
        if "city" in own and self.chance(0.3):
            forms += [("city", True), ("LOWER(city)", True)]
        return self.pick(forms) if forms else ("", False)

    def having(self, items: list[_Item], keys: list[str]) -> str:
        tests = ["COUNT(*) > 30", "COUNT(*) BETWEEN 5 AND 150", "COUNT(*) % 2 = 0", "NOT COUNT(*) < 20"]
        tests += [f"{item.alias} > 10" for item in items if item.alias and item.text == "COUNT(*)"]
        return str(self.pick(tests))

    def ordered(self, items: list[_Item], keys: list[str]) -> tuple[list[str], list[str], list[bool]]:
        """ORDER BY as it is written, the same by expressions, and which keys noise leaves alone."""
        written, plain, exact = list[str](), list[str](), list[bool]()
        places = list(range(len(items)))
        self.rng.shuffle(places)
        for place in places[: self.pick([1, 1, 2, 3])]:
            item = items[place]
            if "OVER" in item.text or item.text in ("1", "'all'", "0.5"):
                continue
            forms = [str(place + 1), item.text, *([item.alias] if item.alias else [])]
            end = self.pick(["", "", " ASC", " DESC", " DESC NULLS LAST", " NULLS FIRST", " DESC NULLS FIRST"])
            written.append(f"{self.pick(forms)}{end}")
            plain.append(f"{item.text}{end}")
            exact.append(item.counts)
        if keys and self.chance(0.3):
            end = self.pick(["", " DESC"])
            written.append(f"{keys[0]}{end}")
            plain.append(f"{keys[0]}{end}")
            exact.append(True)
        return written, plain, exact


def draw_query(rng: np.random.Generator) -> Query:
    """A query, and what plain DuckDB is asked."""
    draw = _Draw(rng)
    if draw.chance(0.12):
        return _union(draw)
    with_ = draw.with_(2) if draw.chance(0.35) else ""
    source = draw.relation(2)
    where = f" WHERE {draw.condition(2)}" if draw.chance(0.6) else ""
    keys = [key for key, _ in (draw.key() for _ in range(draw.pick([0, 1, 1, 2]))) if key]
    keys = list(dict.fromkeys(keys))
    private = any("city" in key for key in keys)
    items: list[_Item] = []
    for key in keys:
        bare = key.isidentifier()
        alias = "" if bare and draw.chance(0.5) else draw.name("k")
        items.append(_Item(key, alias, counts=True, name=key if bare else None))
    shown_keys = len(items)
    for number in range(draw.pick([1, 1, 2, 3])):
        item = draw.aggregate() if not number else draw.of_aggregates()
        if not keys and "OVER" in item.text:
            item = _Item("COUNT(*)", counts=True)
        items.append(replace(item, alias=draw.name("n") if draw.chance(0.7) else ""))
    if draw.chance(0.2):
        rng.shuffle(items)  # type: ignore[arg-type]
        shown_keys = 0
    items = [item for number, item in enumerate(items) if item.text not in {other.text for other in items[:number]}]
    group, tests = "", []
    if keys:
        group = " GROUP BY " + ", ".join(
            draw.pick([key, *([item.alias, item.alias] if (item := _of(items, key)).alias else [])])
            if number >= shown_keys or draw.chance(0.7)
            else str(items.index(_of(items, key)) + 1)
            for number, key in enumerate(keys)
        )
    every = bool(keys) and draw.chance(0.1)
    empty = bool(keys) and draw.chance(0.15)
    if keys and not empty:
        tests = ["COUNT(*) > 0", *(f"({key}) IS NOT NULL" for key in keys)]
    if draw.chance(0.25) and (keys or draw.chance(0.3)):
        tests.append(draw.having(items, keys))
    having = f" HAVING {' AND '.join(tests)}" if tests else ""
    written, plain, exact = draw.ordered(items, keys) if draw.chance(0.65) else ([], [], [])
    order = f" ORDER BY {', '.join(written)}" if written else ""
    limit = offset = None
    tail = ""
    if order and not empty and draw.chance(0.4):
        limit = draw.pick([0, 1, 2, 3, 10])
        tail = draw.pick([f" LIMIT {limit}", f" FETCH FIRST {limit} ROWS ONLY"])
        if tail.startswith(" LIMIT") and draw.chance(0.4):
            offset = draw.pick([0, 1, 2])
            tail += f" OFFSET {offset}"
    if draw.chance(0.05):
        tail = draw.pick(ODD_TAILS)
    body = f" FROM {source}{where}{group}{having}"
    select = draw.pick(["SELECT"] * 30 + ["SELECT DISTINCT"])
    extra = [f"{re.sub(_DIRECTION, '', text)} AS o{number}" for number, text in enumerate(plain)]
    asked = f"{with_}{select} {', '.join(map(str, items))}{body}{order}{tail}"
    asked = asked.replace(group, " GROUP BY ALL") if every else asked
    expected = f"{with_}SELECT {', '.join([*map(str, items), *extra])}{body}" + (
        f" ORDER BY {', '.join(plain)}" if plain else ""
    )
    if tail in ODD_TAILS or select != "SELECT":
        expected = asked
    return Query(
        asked,
        expected,
        len(items),
        tuple(item.alias or item.name for item in items),
        tuple(item.loose for item in items),
        tuple(item.wide for item in items),
        limit,
        offset or 0,
        tuple(exact),
        empty,
        private,
    )


_DIRECTION = "( ASC| DESC)?( NULLS FIRST| NULLS LAST)?$"
ODD_TAILS = (" LIMIT 50%", " ORDER BY ALL", " LIMIT ALL", " USING SAMPLE 10", " QUALIFY COUNT(*) > 1")


def _of(items: list[_Item], key: str) -> _Item:
    return next(item for item in items if item.text == key)


def _union(draw: _Draw) -> Query:
    """Two or three SELECTs without groups, one below the other."""
    shared = draw.with_(1) if draw.chance(0.3) else ""
    outer = dict(draw.ctes)
    width, parts = draw.pick([1, 2]), []
    word = draw.pick([" UNION ALL "] * 8 + [" UNION ALL BY NAME ", " UNION ", " EXCEPT "])
    kinds: list[_Item] = []
    for number in range(draw.pick([2, 2, 3])):
        draw.ctes = dict(outer)
        own = draw.with_(1) if draw.chance(0.25) else ""
        source = draw.relation(1)
        where = f" WHERE {draw.condition(1)}" if draw.chance(0.7) else ""
        items = [draw.aggregate() for _ in range(width)]
        if draw.chance(0.4):
            items[0] = _Item(f"'part {number}'", counts=True) if all("'" in str(k) for k in kinds[:1]) else items[0]
        named = [replace(item, alias=f"u{place}") for place, item in enumerate(items)]
        kinds = kinds or named
        text = f"{own}SELECT {', '.join(map(str, named))} FROM {source}{where}"
        parts.append(f"({text})" if own or draw.chance(0.2) else text)
    asked = shared + word.join(parts)
    return Query(asked, asked, width, tuple(f"u{place}" for place in range(width)), (True,) * width, (4.0,) * width)
