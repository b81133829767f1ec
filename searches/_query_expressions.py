"""Random expressions of a row: numbers, texts, conditions, points in time, over the columns that are at hand.

Constants are halves and whole numbers, so that decimals and doubles agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from searches._query_rows import COLUMNS, WORDS

__all__ = ["Expressions"]


@dataclass
class Expressions:
    """Draws expressions; ``columns`` are the names that may be used, and their kinds."""

    rng: np.random.Generator
    columns: Mapping[str, str] = field(default_factory=lambda: COLUMNS)
    made: int = 0

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
