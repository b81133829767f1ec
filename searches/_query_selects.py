"""Random columns of a SELECT with groups: aggregates, what is computed of them, keys, HAVING and ORDER BY.

What noise would decide (a rounded mean, a comparison with a noisy sum) is not composed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from searches._query_relations import Relations

__all__ = ["Item", "Selects"]


@dataclass(frozen=True)
class Item:
    """One column of a SELECT."""

    text: str
    alias: str = ""
    loose: bool = False
    wide: float = 0.0
    counts: bool = False  # whether noise cannot change it
    name: str | None = None

    def __str__(self) -> str:
        return f"{self.text} AS {self.alias}" if self.alias else self.text


class Selects(Relations):
    """Draws the parts of a SELECT with groups."""

    def aggregate(self) -> Item:
        filtered = f" FILTER (WHERE {self.condition(1)})" if self.chance(0.2) else ""
        kind = self.rng.random()
        if kind < 0.4 or not self.of("number"):
            anything = self.pick(list(self.columns))
            text = self.pick(["COUNT(*)", "COUNT(*)", "COUNT(1)", f"COUNT({anything})"])
            if self.chance(0.15):  # of no rows NULL, in DuckDB
                return Item(f"COUNT_IF({self.condition(1)})", counts=True, loose=True)
            return Item(f"{text}{filtered}", counts=True)
        x = self.number(self.pick([0, 1, 1, 2]))
        if kind < 0.6:
            return Item(f"SUM({x}){filtered}", loose=True, wide=2.0)
        if kind < 0.85:
            return Item(f"AVG({x}){filtered}", loose=True, wide=0.05)
        if kind < 0.92:
            name = self.pick(["VAR_POP", "STDDEV", "STDDEV_POP", "VAR_SAMP"])
            # squares of incomes up to 1,000 have noise of about ten in a group of one or two rows
            return Item(f"{name}({self.pick(self.of('number'))})", loose=True, wide=60.0)
        if kind < 0.96 and "age" in self.columns:
            return Item(
                f"COUNT(DISTINCT {self.pick([c for c in ('sex', 'educ', 'region', 'age') if c in self.columns])})",
                wide=1.5,
            )
        return Item(f"SUM(CASE WHEN {self.condition(1)} THEN 1 ELSE 0 END)", loose=True, wide=0.05)

    def of_aggregates(self) -> Item:
        """A column that is computed of what was released."""
        one = self.aggregate()
        if self.chance(0.7):
            return one
        other = self.aggregate()
        forms = [
            lambda: replace(
                one,
                text=f"{one.text} + {other.text}",
                loose=one.loose or other.loose,
                counts=one.counts and other.counts,
            ),
            lambda: replace(one, text=f"2 * {one.text}"),
            lambda: replace(one, text=f"-{one.text}"),
            lambda: Item(f"{one.text} / COUNT(*)", loose=True, wide=one.wide),
            lambda: Item("COUNT(*) // 7", counts=True),
            lambda: Item("COUNT(*) % 5", counts=True),
            lambda: Item("ROUND(COUNT(*) / 8, 1)", counts=True),
            lambda: Item("CASE WHEN COUNT(*) > 60 THEN 'many' ELSE 'few' END", counts=True),
            lambda: Item("CASE WHEN COUNT(*) > 60 THEN COUNT(*) END", counts=True),
            lambda: Item("COUNT(*) > 60", counts=True),
            lambda: Item("NULLIF(COUNT(*) % 2, 0)", counts=True),
            lambda: Item(f"CAST(COUNT(*) / 4 AS {self.pick(['INTEGER', 'DOUBLE', 'DECIMAL(9, 2)'])})", counts=True),
            lambda: Item("SUM(COUNT(*)) OVER ()", counts=True),
            lambda: Item(self.pick(["1", "'all'", "0.5"]), counts=True),
        ]
        made: Item = self.pick(forms)()
        return replace(made, wide=max(made.wide, one.wide + other.wide))

    def key(self) -> str:
        """What rows are grouped by; nothing where no column serves."""
        own = self.columns
        forms = [name for name in ("sex", "educ", "region", "married", "zone") if name in own]
        if "age" in own:
            forms += [
                "FLOOR(age / 25)",
                "CAST(age AS INTEGER) // 30",
                "CAST(age AS INTEGER) % 3",
                "age >= 50",
                "ROUND(age / 32)",
                "CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END",
                "CASE WHEN age < 30 THEN 1 WHEN age < 60 THEN 2 END",
            ]
        if "day" in own:
            forms += [
                "year(day)",
                "date_trunc('quarter', day)",
                "quarter(day)",
                "dayofweek(day)",
                "date_diff('year', DATE '2022-05-01', day)",
            ]
        if "region" in own:
            forms += ["LEFT(region, 1)", "UPPER(region)", "LENGTH(region)"]
        if "city" in own and self.chance(0.3):
            forms += ["city", "LOWER(city)"]
        return str(self.pick(forms)) if forms else ""

    def having(self, items: list[Item], keys: list[str]) -> str:
        tests = ["COUNT(*) > 30", "COUNT(*) BETWEEN 5 AND 150", "COUNT(*) % 2 = 0", "NOT COUNT(*) < 20"]
        tests += [f"{item.alias} > 10" for item in items if item.alias and item.text == "COUNT(*)"]
        return str(self.pick(tests))

    def ordered(self, items: list[Item], keys: list[str]) -> tuple[list[str], list[str], list[bool]]:
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
