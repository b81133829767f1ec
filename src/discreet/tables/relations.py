"""What a SELECT stands on: the table, an inner SELECT that filters rows or computes columns, a public table beside."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from discreet.errors import extra
from discreet.tables.choices import Lookup
from discreet.tables.conditions import IsIn
from discreet.tables.expressions import Expression
from discreet.tables.lookups import PublicTable
from discreet.tables.measures import is_aggregate
from discreet.tables.mistakes import at, nearest
from discreet.tables.nodes import Column, Node
from discreet.tables.where import Lists, Reader, only
from discreet.tables.whole_values import holds_integers

if TYPE_CHECKING:
    from discreet.tables.table import Table

with extra("tables"):
    from sqlglot import exp

__all__ = ["CLAUSES", "FORM", "Relation", "Sources", "nothing_else", "relation"]

FORM = "give one SELECT ... FROM ... [WHERE ...] [GROUP BY ...]."
# Clauses that are refused, with the nearest thing that is not.
CLAUSES: Mapping[str, str] = {
    "laterals": "LATERAL is not supported: prepare the columns in the engine first.",
    "distinct": "SELECT DISTINCT is not supported: use GROUP BY, or COUNT(DISTINCT column).",
    "qualify": "QUALIFY is not supported: max_rows_per_unit in the schema bounds the rows of a unit.",
    "windows": "WINDOW is not supported: use GROUP BY.",
    "sample": "TABLESAMPLE is not supported: read the whole table.",
    "pivots": "PIVOT is not supported: use GROUP BY, and turn the answer after the release.",
    "into": "INTO is not supported: write the answer after the release.",
}
_INNER = (
    "An inner SELECT may filter rows and compute columns, but has {}: ask it of the outer one, or release it by itself."
)
_NAMED = {"this", "db", "catalog", "alias"}  # the parts of a table's name


def nothing_else(node: exp.Expression, known: Collection[str]) -> None:
    """Refuse every clause but those that are read: one that was passed over in silence would be answered wrongly."""
    for clause, value in node.args.items():
        if value and clause not in known:
            raise ValueError(CLAUSES.get(clause, f"{clause.strip('_').upper()} is not supported: {FORM}"))


@dataclass(frozen=True)
class Relation:
    """Rows of a table, and how a query names their columns."""

    table: Table
    names: Mapping[str, str]  # in small letters, to the table's
    lists: Lists = field(default_factory=dict)
    aliases: frozenset[str] = frozenset()
    columns: tuple[str, ...] | None = None  # the names in their order; none where a file's columns decide it
    held: tuple[Node, ...] | None = None  # conditions on rows, where they are kept apart from the table's own

    @classmethod
    def of(cls, table: Table, lists: Lists) -> Relation:
        """All columns of a table, by their names; those that differ in case alone keep theirs."""
        names = list(table.schema)
        small = [name.lower() for name in names]
        single = {name.lower(): name for name in names if small.count(name.lower()) == 1}
        return cls(table, {**single, **{name: name for name in names}}, lists)

    @property
    def reader(self) -> Reader:
        """What reads expressions over these columns."""
        unit, rows = self.table.limit.unit or "", self.table.group_by().rows
        return Reader(self.names, self.lists, self.aliases, unit, lambda node: holds_integers(rows, node))

    def where(self, condition: exp.Expression | None) -> Relation:
        """The rows for which a condition holds."""
        if condition is None:
            return self
        try:
            return self.filter(self.reader.node(condition))
        except ValueError:
            parts: list[Any] = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
            for part in parts:
                with at(f"WHERE {part.sql(dialect='duckdb')}"):
                    self.table.filter(self.reader.expression(part))
            raise

    def filter(self, condition: Node) -> Relation:
        """The same, with the condition among the table's, or beside it."""
        table = self.table.filter(Expression(condition))
        return replace(self, table=table) if self.held is None else replace(self, held=(*self.held, condition))

    def with_column(self, name: str, expression: Expression) -> tuple[Table, str]:
        """The table with one more column, and what it is called there."""
        own = name
        while own in self.table.declared:
            own = f"{own} "  # a name that no query writes
        return self.table.derive(**{own: expression}), own

    def called(self, alias: str, columns: Sequence[str]) -> Relation:
        """The same under an alias, with new names for its first columns where the alias lists them."""
        out = replace(self, aliases=frozenset([alias.lower()] if alias else []))
        if not columns:
            return out
        listed = f"{alias}({', '.join(columns)})"
        if self.columns is None:
            raise ValueError(
                f"{listed} is not supported over *, whose order a schema does not say: list the columns in the SELECT."
            )
        if len(columns) > len(self.columns):
            raise ValueError(f"{listed} names {len(columns)} columns, but there are {len(self.columns)}.")
        names = (*(name.lower() for name in columns), *self.columns[len(columns) :])
        _refuse_twice(names)
        owned = dict(zip(names, (self.names[name] for name in self.columns), strict=True))
        return replace(out, names=owned, columns=names)


@dataclass(frozen=True)
class Sources:
    """What FROM and JOIN may name: the table, whatever it is called, CTEs and public tables."""

    base: Relation
    inner: Mapping[str, Relation] = field(default_factory=dict)  # by names in small letters
    public: Mapping[str, PublicTable] = field(default_factory=dict)
    tables: set[str] = field(default_factory=set)  # what the query calls the table

    def within(self, tree: exp.Expression) -> Sources:
        """The same with the CTEs of a WITH before ``tree``, each of which sees those before it."""
        out, with_ = self, tree.args.get("with_")
        if with_ is None:
            return out
        if with_.args.get("recursive"):
            raise ValueError("WITH RECURSIVE is not supported: a CTE may filter rows and compute columns.")
        for cte in with_.expressions:
            made = read_projection(cte.this, out).called(cte.alias, cte.alias_column_names)
            out = replace(out, inner={**out.inner, cte.alias.lower(): made})
        return out

    def named(self, node: exp.Table) -> Relation:
        """What a name after FROM stands for."""
        name = node.name.lower()
        if name in self.inner and not node.db:
            return self.inner[name]
        if name in self.public:
            raise ValueError(f"FROM {node.name} is not supported: it is public, and may be looked up in by JOIN.")
        self.tables.add(name)
        if len(self.tables) > 1:
            one, other = sorted(self.tables)
            near = nearest(name, self.inner)
            remedy = f"did you mean {near!r}?" if near else "a name that no WITH defines is that of the table."
            raise ValueError(f"FROM names different tables, {one!r} and {other!r}, but one is open: {remedy}")
        return self.base


def relation(tree: exp.Select, sources: Sources) -> Relation:
    """The rows that FROM, JOIN and WHERE name."""
    source = tree.args.get("from_")
    if source is None:
        raise ValueError("There is no FROM: give one SELECT ... FROM people.")
    found = _source(source.this, sources)
    for join in tree.args.get("joins") or []:
        found = _read_join(found, join, sources.public)
    where = tree.args.get("where")
    return found.where(None if where is None else where.this)


def _source(node: exp.Expression, sources: Sources) -> Relation:
    if isinstance(node, exp.Subquery):
        only(node, "this", "alias", "with_")
        return read_projection(node.this, sources.within(node)).called(node.alias, node.alias_column_names)
    if not isinstance(node, exp.Table):
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported after FROM: write a name.")
    nothing_else(node, {*_NAMED, "joins"} if not node.args.get("joins") else _NAMED)
    if not isinstance(node.this, exp.Identifier):
        raise ValueError(
            f"FROM {node.sql(dialect='duckdb')} is not supported: write FROM and a name; the table is open already."
        )
    return sources.named(node).called(node.alias or node.name, node.alias_column_names)


_READ = {"expressions", "from_", "where", "joins", "with_"}


def read_projection(tree: exp.Expression, sources: Sources) -> Relation:
    """An inner SELECT: rows filtered, columns kept, renamed or computed."""
    if isinstance(tree, exp.Subquery):
        only(tree, "this", "with_")
        return read_projection(tree.this, sources.within(tree))
    if not isinstance(tree, exp.Select):
        raise ValueError(f"{type(tree).__name__.upper()} is not supported inside: {FORM}")
    for clause, words in {"group": "GROUP BY", "having": "HAVING", "order": "ORDER BY", "limit": "LIMIT"}.items():
        if tree.args.get(clause):
            raise _per_unit(tree, sources.base) or ValueError(_INNER.format(words))
    nothing_else(tree, _READ)
    found = relation(tree, sources.within(tree))
    names: dict[str, str] = {}
    listed: list[str] = []
    ordered = True
    for item in tree.expressions:
        alias, node = (item.alias, item.this) if isinstance(item, exp.Alias) else (item.name, item)
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            every, ordered = _all_columns(node, found), ordered and found.columns is not None
            names |= every
            listed += found.columns or every
            continue
        if is_aggregate(node) or any(is_aggregate(part) for part in node.walk()):
            raise ValueError(_INNER.format(node.sql()))
        name = alias or node.sql()
        if isinstance(node, exp.Column):
            names[name.lower()] = found.reader.column(node)
        else:
            with at(node.sql(dialect="duckdb")):
                table, own = found.with_column(name, found.reader.expression(node))
            found, names[name.lower()] = replace(found, table=table), own
        listed.append(name.lower())
    _refuse_twice(listed)
    return replace(found, names=names, columns=tuple(listed) if ordered else None)


def _refuse_twice(names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"Two columns of an inner SELECT are called {twice[0]!r}: give one another name with AS.")


def _per_unit(tree: exp.Select, base: Relation) -> ValueError | None:
    """What to write instead of an aggregate of each unit, of which the outer SELECT takes the average."""
    unit, group = base.table.limit.unit or "", tree.args.get("group")
    keys = [] if group is None else group.expressions
    inner = [item.unalias() for item in tree.expressions if isinstance(item.unalias(), (exp.Count, exp.Sum))]
    if len(keys) != 1 or not isinstance(keys[0], exp.Column) or len(inner) != 1 or tree.args.get("having"):
        return None
    key = keys[0].name
    if unit.lower() != key.lower() if unit else key.lower() in base.names:
        return None
    rest = " ".join(part.sql(dialect="duckdb") for part in (tree.args.get("from_"), tree.args.get("where")) if part)
    opened = "" if unit else f"open the table with unit={key!r}, and "
    return ValueError(
        f"An inner SELECT with GROUP BY {key} is not supported, because a row of it is all of one {key}. For the "
        f"average of them, {opened}write SELECT {inner[0].sql(dialect='duckdb')} / COUNT(DISTINCT {key}) "
        f"{rest.strip()}; "
        "max_rows_per_unit must be as large as what one may have."
    )


def _all_columns(node: exp.Expression, found: Relation) -> Mapping[str, str]:
    """What * stands for, or v.* where there is nothing but v."""
    if isinstance(node, exp.Column):
        only(node, "this", "table")
        if found.aliases != {node.table.lower()}:
            named = " and ".join(sorted(found.aliases))
            raise ValueError(
                f"{node.sql(dialect='duckdb')} is not supported where FROM names {named}: write *, or the columns."
            )
        node = node.this
    only(node)
    return found.names


# --- joins with what is public -------------------------------------------------------------------------------------


def _read_join(found: Relation, join: exp.Join, public: Mapping[str, PublicTable]) -> Relation:
    only(join, "this", "on", "using", "side", "kind")
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    other = join.this
    name = other.name.lower() if isinstance(other, exp.Table) else ""
    if name not in public:
        raise ValueError(
            f"JOIN {other.sql(dialect='duckdb')} is not supported: a public lookup table {name!r} was not given "
            f"(--public {name}=FILE, public={{{name!r}: frame}}), and two private tables are joined on their unit "
            "before, by Table.join."
        )
    if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
        raise ValueError(f"{side} {kind} JOIN is not supported: there are JOIN and LEFT JOIN with a public table.")
    alias = (other.alias or other.name).lower()
    left, right = _join_columns(found, join, alias)
    looked = public[name].lookups(right, Column(left))
    keys = public[name].declared_keys(right, left, dict(found.table.schema).get(left))
    inner = side != "LEFT"
    names = dict(found.names)
    if inner:
        found = found.filter(IsIn(Column(left), keys))
    found = replace(found, aliases=found.aliases | {alias}, columns=None)
    for column, node in looked.items():
        if column.lower() in names:
            raise ValueError(f"Both sides of JOIN have a column {column!r}: rename it in the public table.")
        table, own = found.with_column(column, Expression(node))
        found, names[column.lower()] = replace(found, table=table), own
    key = left
    if not inner:  # where the public table has no such line, its key is missing
        table, key = found.with_column(f"{alias}.{right}", Expression(Lookup(Column(left), keys, keys)))
        found = replace(found, table=table)
    names.setdefault(right.lower(), key)
    return replace(found, names={**names, f"{alias}.{right}".lower(): key})


def _join_columns(found: Relation, join: exp.Join, alias: str) -> tuple[str, str]:
    """The column of the table, and that of the public one, which must be equal."""
    if using := join.args.get("using"):
        if len(using) != 1:
            raise ValueError("USING takes one column, by which the public table is looked up.")
        return found.names.get(using[0].name.lower(), using[0].name), using[0].name
    on: Any = join.args.get("on")
    on = on.unnest() if on is not None else None
    if not isinstance(on, exp.EQ) or not all(isinstance(part, exp.Column) for part in (on.this, on.expression)):
        raise ValueError("JOIN needs ON with one equality of columns, or USING (column): a lookup by one key.")
    mine, theirs = on.this, on.expression
    if mine.table.lower() == alias:
        mine, theirs = theirs, mine
    if theirs.table.lower() != alias:
        raise ValueError(f"Write the public column as {alias}.{theirs.name} in {on.sql()}.")
    return found.reader.column(mine), theirs.name
