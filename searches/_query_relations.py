"""Random relations: the table, joins, sub-queries, aliases with lists of columns, WITH."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from searches._query_expressions import Expressions
from searches._query_rows import COLUMNS

__all__ = ["Relations"]


@dataclass
class Relations(Expressions):
    """Draws what stands after FROM; ``ctes`` are the names that a WITH has made, and their columns."""

    ctes: dict[str, Mapping[str, str]] = field(default_factory=dict)

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
