"""What a SELECT stands on: the table, an inner SELECT that filters rows or computes columns, a public table beside."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from discreet.errors import extra
from discreet.tables.conditions import IsIn
from discreet.tables.expressions import Expression
from discreet.tables.lookups import PublicTable
from discreet.tables.measures import is_aggregate
from discreet.tables.mistakes import at
from discreet.tables.nodes import Column
from discreet.tables.where import Lists, Reader, only

if TYPE_CHECKING:
    from discreet.tables.table import Table

with extra("tables"):
    from sqlglot import exp

__all__ = ["CLAUSES", "Relation", "nothing_else", "relation"]

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
        return Reader(self.names, self.lists, self.aliases, self.table.limit.unit or "")

    def where(self, condition: exp.Expression | None) -> Relation:
        """The rows for which a condition holds."""
        if condition is None:
            return self
        try:
            return replace(self, table=self.table.filter(self.reader.expression(condition)))
        except ValueError:
            parts: list[Any] = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
            for part in parts:
                with at(f"WHERE {part.sql(dialect='duckdb')}"):
                    self.table.filter(self.reader.expression(part))
            raise

    def with_column(self, name: str, expression: Expression) -> tuple[Table, str]:
        """The table with one more column, and what it is called there."""
        own = name
        while own in self.table.declared:
            own = f"{own} "  # a name that no query writes
        return self.table.derive(**{own: expression}), own


def relation(
    tree: exp.Select, base: Relation, inner: Mapping[str, Relation], public: Mapping[str, PublicTable]
) -> Relation:
    """The rows that FROM, JOIN and WHERE name."""
    source = tree.args.get("from_")
    if source is None:
        raise ValueError("There is no FROM: give one SELECT ... FROM people.")
    found = _source(source.this, base, inner, public)
    for join in tree.args.get("joins") or []:
        found = _read_join(found, join, public)
    where = tree.args.get("where")
    return found.where(None if where is None else where.this)


def _source(
    node: exp.Expression, base: Relation, inner: Mapping[str, Relation], public: Mapping[str, PublicTable]
) -> Relation:
    if isinstance(node, exp.Subquery):
        only(node, "this", "alias")
        return _with_alias(read_projection(node.this, base, inner, public), node.alias)
    if not isinstance(node, exp.Table):
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported after FROM: write a name.")
    nothing_else(node, {*_NAMED, "joins"} if not node.args.get("joins") else _NAMED)
    if not isinstance(node.this, exp.Identifier) or node.alias_column_names:
        raise ValueError(
            f"FROM {node.sql(dialect='duckdb')} is not supported: write FROM and a name; the table is open already."
        )
    return _with_alias(inner.get(node.name.lower(), base), node.alias or node.name)


def _with_alias(found: Relation, alias: str) -> Relation:
    return replace(found, aliases=frozenset([alias.lower()]) if alias else frozenset())


_READ = {"expressions", "from_", "where", "joins", "with_"}


def read_projection(
    tree: exp.Expression, base: Relation, inner: Mapping[str, Relation], public: Mapping[str, PublicTable]
) -> Relation:
    """An inner SELECT: rows filtered, columns kept, renamed or computed."""
    if not isinstance(tree, exp.Select):
        raise ValueError(f"{type(tree).__name__.upper()} is not supported inside: {FORM}")
    for clause, words in {"group": "GROUP BY", "having": "HAVING", "order": "ORDER BY", "limit": "LIMIT"}.items():
        if tree.args.get(clause):
            raise _per_unit(tree, base) or ValueError(_INNER.format(words))
    nothing_else(tree, _READ)
    found = relation(tree, base, inner, public)
    names: dict[str, str] = {}
    for item in tree.expressions:
        alias, node = (item.alias, item.this) if isinstance(item, exp.Alias) else (item.name, item)
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            names |= _all_columns(node, found)
        elif is_aggregate(node) or any(is_aggregate(part) for part in node.walk()):
            raise ValueError(_INNER.format(node.sql()))
        elif isinstance(node, exp.Column):
            names[alias.lower()] = found.reader.column(node)
        else:
            with at(node.sql(dialect="duckdb")):
                table, own = found.with_column(alias or node.sql(), found.reader.expression(node))
            found, names[(alias or node.sql()).lower()] = replace(found, table=table), own
    return replace(found, names=names)


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
    inner = side != "LEFT"
    table, names = found.table, dict(found.names)
    if inner:
        table = table.filter(Expression(IsIn(Column(left), public[name].keys(right))))
    found = replace(found, table=table, aliases=found.aliases | {alias})
    for column, node in looked.items():
        if column.lower() in names:
            raise ValueError(f"Both sides of JOIN have a column {column!r}: rename it in the public table.")
        table, own = found.with_column(column, Expression(node))
        found, names[column.lower()] = replace(found, table=table), own
    names.setdefault(right.lower(), left)
    return replace(found, names=names)


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
