"""Random SELECTs from the whole grammar that tables claim to read, each with what plain DuckDB is asked instead."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from searches._query_selects import Item, Selects

__all__ = ["Query", "draw_query"]


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
    wide: tuple[float, ...]  # what a column may be off by; zero where noise cannot change it
    limit: int | None = None
    offset: int = 0
    exact_order: tuple[bool, ...] = ()  # which keys of the order noise leaves alone
    empty_groups: bool = False  # whether public groups of no rows are shown here
    private: bool = False  # whether the keys are private


def draw_query(rng: np.random.Generator) -> Query:
    """A query, and what plain DuckDB is asked."""
    draw = Selects(rng)
    if draw.chance(0.12):
        return _union(draw)
    with_ = draw.with_(2) if draw.chance(0.35) else ""
    source = draw.relation(2)
    where = f" WHERE {draw.condition(2)}" if draw.chance(0.6) else ""
    keys = [key for key in (draw.key() for _ in range(draw.pick([0, 1, 1, 2]))) if key]
    keys = list(dict.fromkeys(keys))
    private = any("city" in key for key in keys)
    items: list[Item] = []
    for key in keys:
        bare = key.isidentifier()
        alias = "" if bare and draw.chance(0.5) else draw.name("k")
        items.append(Item(key, alias, counts=True, name=key if bare else None))
    shown_keys = len(items)
    for number in range(draw.pick([1, 1, 2, 3])):
        item = draw.aggregate() if not number else draw.of_aggregates()
        if (not keys or private) and "OVER" in item.text:  # of private groups, those that are shown are added up
            item = Item("COUNT(*)", counts=True)
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


def _of(items: list[Item], key: str) -> Item:
    return next(item for item in items if item.text == key)


def _union(draw: Selects) -> Query:
    """Two or three SELECTs without groups, one below the other."""
    shared = draw.with_(1) if draw.chance(0.3) else ""
    outer = dict(draw.ctes)
    width, parts = draw.pick([1, 2]), []
    word = draw.pick([" UNION ALL "] * 8 + [" UNION ALL BY NAME ", " UNION ", " EXCEPT "])
    kinds: list[Item] = []
    for number in range(draw.pick([2, 2, 3])):
        draw.ctes = dict(outer)
        own = draw.with_(1) if draw.chance(0.25) else ""
        source = draw.relation(1)
        where = f" WHERE {draw.condition(1)}" if draw.chance(0.7) else ""
        items = [draw.aggregate() for _ in range(width)]
        if draw.chance(0.4):
            items[0] = Item(f"'part {number}'", counts=True) if all("'" in str(k) for k in kinds[:1]) else items[0]
        named = [replace(item, alias=f"u{place}") for place, item in enumerate(items)]
        kinds = kinds or named
        text = f"{own}SELECT {', '.join(map(str, named))} FROM {source}{where}"
        parts.append(f"({text})" if own or draw.chance(0.2) else text)
    asked = shared + word.join(parts)
    return Query(asked, asked, width, tuple(f"u{place}" for place in range(width)), (True,) * width, (4.0,) * width)
