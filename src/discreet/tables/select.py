"""One SELECT as a question: rows of a relation, keys, aggregates, and what is made of the answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from discreet.dates import Times, moment
from discreet.errors import extra
from discreet.schema import Bounded, Schema
from discreet.tables.after import Order, Presentation
from discreet.tables.aggregates import Count, Sum
from discreet.tables.binned import CountDistinct, Quantiles
from discreet.tables.conditions import Logic
from discreet.tables.expressions import Expression, columns
from discreet.tables.measures import Add, Measures, is_aggregate
from discreet.tables.mistakes import at
from discreet.tables.nodes import Column, Node
from discreet.tables.query import TableQuery
from discreet.tables.relations import Relation
from discreet.tables.resolve import resolve_constants
from discreet.tables.where import Reader
from discreet.tables.whole_values import holds_integers, is_integer

with extra("tables"):
    from sqlglot import exp

__all__ = ["Select", "answer_schema", "fitted", "is_dated", "refuse_lists", "select"]

_ANY = Bounded(-1e150, 1e150)  # a number of the answer


def select(tree: exp.Select, relation: Relation) -> TableQuery:
    """The question that a SELECT asks of a relation, whose rows are filtered already."""
    return Select(tree, relation).query()


@dataclass
class Select:
    """A SELECT that is being read: its aggregates are noted with names that are not ``taken``."""

    tree: exp.Select
    relation: Relation
    taken: frozenset[str] = frozenset()
    measures: Measures = field(init=False)
    keys: dict[str, str] = field(default_factory=dict)  # a key's text, to its column
    added: dict[str, tuple[str, Add]] = field(default_factory=dict)  # an aggregate's text, to its name in the answer
    over: dict[str, Node] = field(default_factory=dict)  # sums over all groups, by their text
    levels: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        held = self.relation.held
        self.measures = Measures(self.relation.table, self.relation.reader, Logic("&", held) if held else None)
        items = [
            (item.alias, item.this) if isinstance(item, exp.Alias) else ("", item) for item in self.tree.expressions
        ]
        if any(
            isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
            for _, node in items
        ):
            raise ValueError(
                "SELECT * is not supported, because rows never leave: select aggregates and grouped columns."
            )
        self.items = items

    def query(self) -> TableQuery:
        """The question."""
        self._group()
        shown = self.shown()
        having = self.tree.args.get("having")
        kept = None if having is None else self._after(self._without_aliases(having.this), "HAVING")
        orders = [(self._order_key(item.this), item) for item in self._orders()]
        if not self.added:
            raise ValueError(
                "The SELECT has no aggregate, and rows never leave: add COUNT(*), SUM(x), AVG(x), MEDIAN(x)."
            )
        query = self.measures.table.group_by(*self.keys.values())
        for name, add in self.added.values():
            query = add(query, name)
        if self.levels and self.over:
            raise ValueError(f"{next(iter(self.over))} is not supported beside ROLLUP, which has that total as a row.")
        if self.levels:
            query = self._totals(query)
        return self._with_presentation(query, shown, kept, orders)

    def shown(self) -> list[tuple[str, Node]]:
        """The columns of the answer, with what each is made of."""
        made = [self._after(node, "SELECT", alias) for alias, node in self.items]
        shown = [(alias or self._name(node), after) for (alias, node), after in zip(self.items, made, strict=True)]
        names = [name.lower() for name, _ in shown]
        if twice := next((name for name, _ in shown if names.count(name.lower()) > 1), None):
            raise ValueError(f"Two columns of the answer are called {twice!r}: give one another name with AS.")
        return shown

    # --- keys --------------------------------------------------------------------------------------------------------

    def _group(self) -> None:
        group = self.tree.args.get("group")
        if group is None:
            return
        if group.args.get("all"):
            for _, node in self.items:
                if not any(is_aggregate(part) for part in node.walk()):
                    self._key(node)
            return
        if not group.expressions:
            raise ValueError("GROUP BY names nothing: write the columns, as GROUP BY ward, or leave it out.")
        for node in group.expressions:
            if isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets)):
                self._grouping(node)
            else:
                self._key(node)
        if self.levels and len(group.expressions) > 1:
            raise ValueError(
                f"GROUP BY {group.expressions[-1].sql()} is not supported beside other keys: put them inside."
            )

    def _grouping(self, node: exp.Expression) -> None:
        """ROLLUP, CUBE and GROUPING SETS: which keys each set of totals keeps."""
        if isinstance(node, exp.GroupingSets):
            sets = [part.expressions if isinstance(part, exp.Tuple) else [part.unnest()] for part in node.expressions]
            self.levels = tuple(tuple(self._key(part) for part in level) for level in sets)
            return
        keys = [self._key(part) for part in node.expressions]
        sizes = range(len(keys), -1, -1)
        rollup = isinstance(node, exp.Rollup)
        self.levels = tuple(
            level for size in sizes for level in ([tuple(keys[:size])] if rollup else combinations(keys, size))
        )

    def _key(self, node: exp.Expression) -> str:
        node = self._resolve_alias(node)
        alias = next((alias for alias, item in self.items if alias and self._text(item) == self._text(node)), "")
        declared = self.measures.table.declared
        name = alias if alias and alias not in declared else self._name(node)
        with at(f"GROUP BY {node.sql(dialect='duckdb')}"):
            column = self.measures.column(self.relation.reader.node(node), name)
            self.measures.table.group_by(column)  # refuses what is no key, here where its place is known
        self.keys[self._text(node)] = column
        return column

    def _resolve_alias(self, node: exp.Expression, clause: str = "GROUP BY") -> exp.Expression:
        """What an ordinal or an alias stands for."""
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.this) if node.this.isdecimal() and len(node.this) < 9 else 0
            if not 1 <= place <= len(self.items):
                raise ValueError(f"{clause} {node.this} is not supported: the SELECT has {len(self.items)} column(s).")
            found: exp.Expression = self.items[place - 1][1]
            return found
        named = {alias.lower(): item for alias, item in self.items if alias}
        name = node.name.lower() if isinstance(node, exp.Column) and not node.table else ""
        return named[name] if name in named and name not in self.relation.reader.names else node

    def _text(self, node: exp.Expression) -> str:
        """A node in words that are the same for equal ones: columns by the names that the table has for them."""

        def own(part: exp.Expression) -> exp.Expression:
            if not isinstance(part, exp.Column) or isinstance(part.this, exp.Star):
                return part
            return exp.column(self.relation.reader.column(part), quoted=True)

        return node.copy().transform(own).sql(dialect="duckdb")

    def _name(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Column):
            return node.name if self._text(node) not in self.keys else self._shown_key(node)
        return self.added[self._text(node)][0] if self._text(node) in self.added else node.sql(dialect="duckdb")

    def _shown_key(self, node: exp.Column) -> str:
        column = self.keys[self._text(node)]
        return node.name if column.lower() != node.name.lower() else column

    # --- the answer --------------------------------------------------------------------------------------------------

    def _after(self, node: exp.Expression, clause: str, alias: str = "") -> Node:
        """An expression over keys and aggregates, which are noted on the way."""
        bare = is_aggregate(node)

        def place_part(part: exp.Expression) -> exp.Expression:
            if self._text(part) in self.keys:
                return exp.column(self.keys[self._text(part)], quoted=True)
            if isinstance(part, exp.Window) and isinstance(part.this, exp.Sum) and clause != "HAVING":
                return exp.column(self._over_all(part), quoted=True)
            if is_aggregate(part):
                return exp.column(self._note(part, alias if bare else ""), quoted=True)
            if isinstance(part, exp.Column):
                unknown = part.find_ancestor(exp.Anonymous)
                self.relation.reader.node(part)  # is there such a column at all
                raise ValueError(
                    f"{unknown.name.upper()}(...) is no aggregate: there are COUNT, SUM, AVG, MEDIAN, VARIANCE."
                    if unknown
                    else f"Column {part.name!r} stands in {clause} but is not grouped by: add it to GROUP BY, or "
                    f"aggregate it, as {'AVG' if self._numeric(part) else 'COUNT'}({part.name})."
                )
            return part

        found = node.copy().transform(place_part)
        names = {name: name for name in (*self.keys.values(), *(name for name, _ in self.added.values()), *self.over)}
        return Reader(
            names, self.relation.reader.lists, is_integer=lambda node: is_integer(node, self._is_integer_answer)
        ).node(found)

    def _is_integer_answer(self, name: str) -> bool:
        """Whether SQL types a column of the answer as an integer: a median is a double, whatever it is of."""
        query = self.measures.table.group_by(*self.keys.values())
        if name in self.over:
            return is_integer(self.over[name], self._is_integer_answer)
        add = next((add for known, add in self.added.values() if known == name), None)
        if add is None:
            return holds_integers(query.rows, Column(name))
        aggregate = add(query, name).aggregates[-1][1]
        return isinstance(aggregate, (Count, CountDistinct)) or (
            isinstance(aggregate, Sum) and holds_integers(query.rows, Column(aggregate.column))
        )

    def _over_all(self, node: exp.Window) -> str:
        """The sum of an answer over all groups that are shown, which is made of what was released."""
        text = node.sql(dialect="duckdb")
        if not any(is_aggregate(part) for part in node.this.this.walk()) or any(
            node.args.get(part) for part in ("partition_by", "order", "spec", "alias", "first")
        ):
            raise ValueError(f"{text} is not supported: there is SUM(COUNT(*)) OVER (), the total of all groups.")
        if text not in self.over:
            self.over[text] = self._after(node.this.this, "SELECT")
        return text

    def _numeric(self, node: exp.Column) -> bool:
        return isinstance(self.measures.table.schema.get(self.relation.reader.column(node)), Bounded)

    def _note(self, node: exp.Expression, alias: str) -> str:
        text = self._text(node)
        if text not in self.added:
            add = self.measures.read(node)
            name = alias or self._own_name(add)
            taken = {*self.taken, *self.keys.values(), *(name for name, _ in self.added.values())}
            while name in taken:
                name = f"{name} again"
            self.added[text] = name, add
        return self.added[text][0]

    def _own_name(self, add: Add) -> str:
        return add(self.measures.table.group_by(), None).aggregates[-1][0]

    def _without_aliases(self, node: exp.Expression) -> exp.Expression:
        named = {alias.lower(): item for alias, item in self.items if alias}

        def without_alias(part: exp.Expression) -> exp.Expression:
            # inside of an aggregate a name is a column's
            inside = part.find_ancestor(exp.AggFunc, exp.Filter, exp.WithinGroup)
            plain = isinstance(part, exp.Column) and not part.table and not inside
            return named[part.name.lower()].copy() if plain and part.name.lower() in named else part

        return node.copy().transform(without_alias)

    def _orders(self) -> list[exp.Ordered]:
        order = self.tree.args.get("order")
        return [] if order is None else list(order.expressions)

    def _order_key(self, node: exp.Expression) -> Node:
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._after(self._resolve_alias(node, "ORDER BY"), "ORDER BY")
        return self._after(self._without_aliases(node), "ORDER BY")

    def _totals(self, query: TableQuery) -> TableQuery:
        if unsummed := [name for name, aggregate in query.aggregates if not aggregate.summable]:
            raise ValueError(f"{unsummed[0]!r} cannot be added up over groups: ask for it in a query without ROLLUP.")
        query.totals(*self.levels)  # refuses private keys
        return replace(query, levels=self.levels)

    def _with_presentation(
        self,
        query: TableQuery,
        shown: list[tuple[str, Node]],
        kept: Node | None,
        orders: list[tuple[Node, exp.Ordered]],
    ) -> TableQuery:
        plain = [(key, Column(key)) for key in query.rows.keys] + [(name, Column(name)) for name, _ in query.aggregates]
        limit, offset = (self._count(clause) for clause in ("limit", "offset"))
        if shown == plain and kept is None and not orders and limit is None and offset is None:
            return query
        schema = answer_schema(query)
        sums = tuple((name, fitted(node, schema)) for name, node in self.over.items())
        schema = Schema({**schema, **dict.fromkeys(self.over, _ANY)})
        refuse_lists(query, [node for _, node in shown] + [node for node, _ in orders] + ([kept] if kept else []))
        made = tuple(fitted(node, schema) for _, node in shown)
        held = None if kept is None else fitted(kept, schema, condition=True)
        order = tuple(
            Order(fitted(node, schema), bool(item.args.get("desc")), bool(item.args.get("nulls_first")))
            for node, item in orders
        )
        names = tuple(name for name, _ in shown)
        dated = frozenset(name for name, node in zip(names, made, strict=True) if is_dated(node, schema))
        after = Presentation(names, (made,), held, order, limit, offset or 0, dated, sums)
        return replace(query, after=after)

    def _count(self, clause: str) -> int | None:
        found = self.tree.args.get(clause)
        if found is None:
            return None
        options = found.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            raise ValueError(f"{found.sql(dialect='duckdb').strip()} is not supported: write LIMIT and a whole number.")
        count = found.args.get("count") or exp.Literal.number(1) if isinstance(found, exp.Fetch) else found.expression
        with at(clause.upper()):
            value = self.relation.reader.number(count)
        if not value.is_integer() or value < 0:
            raise ValueError(f"{clause.upper()} {value:g} is not supported: give a whole number.")
        return int(value)


def fitted(node: Node, schema: Schema, *, condition: bool = False) -> Node:
    """An expression over the answer's columns, held against what is known of them."""
    return resolve_constants(Expression(node), schema, tuple(schema), condition=condition).node


def answer_schema(query: TableQuery) -> Schema:
    """The answer's columns as public facts."""
    rows = query.rows
    columns: dict[str, Any] = {key: rows.schema[key] for key in rows.keys}
    ends = {key: Column(key).bounds(rows.schema) for key in rows.moments}
    times = {key: Times(moment(low), moment(max(high, low + 1))) for key, (low, high) in ends.items()}
    return Schema({**columns, **times, **{name: _ANY for name, _ in query.aggregates}})


def is_dated(node: Node, schema: Schema) -> bool:
    """Whether it is computed, and a point in time; refuses what may lie beyond the calendar."""
    if isinstance(node, Column) or node.kind(schema) != "moment":
        return False
    return all(moment(end) for end in node.bounds(schema))


def refuse_lists(query: TableQuery, nodes: list[Node]) -> None:
    """Several quantiles are shown as a list, but no number is made of one: to be said before anything is charged."""
    lists = {name for name, aggregate in query.aggregates if isinstance(aggregate, Quantiles)}
    for node in nodes:
        if not isinstance(node, Column) and (found := sorted(columns(Expression(node)) & lists)):
            raise ValueError(f"{found[0]} is a list, but a number is needed: ask for each quantile by itself.")
