"""SELECT, read with sqlglot onto the methods of a query. What is not supported is refused by name.

>>> import pandas as pd
>>> from discreet.schema import Bounded, Categories, Schema
>>> from discreet.tables.table import table
>>> rows = pd.DataFrame({"educ": [1, 2], "income": [10.0, 20.0]})
>>> people = table(rows, schema=Schema(educ=Categories([1, 2]), income=Bounded(0, 100)))
>>> parse("SELECT educ, AVG(income) AS pay, COUNT(*) FROM people WHERE income > 5 GROUP BY educ", people)
TableQuery(pay, count by educ)
>>> parse("SELECT MAX(income) FROM people", people)
Traceback (most recent call last):
...
ValueError: MAX(income) is not supported, because one row decides it: ask for a high quantile, QUANTILE_CONT...
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.errors import extra
from discreet.tables.grammar import refuse_unread
from discreet.tables.lists import take_out_lists
from discreet.tables.lookups import PublicTable
from discreet.tables.mistakes import at, nearest
from discreet.tables.query import TableQuery
from discreet.tables.relations import FORM, Relation, Sources, nothing_else, relation
from discreet.tables.select import select
from discreet.tables.unions import union
from discreet.tables.where import only

if TYPE_CHECKING:
    from discreet.tables.table import Table

with extra("tables"):
    import sqlglot
    from sqlglot import exp

__all__ = ["parse"]

LONGEST = 2_000_000  # characters; a list of 10^5 values has less than half of them
_WORDS = (
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "DISTINCT",
    "BETWEEN",
    "COUNT",
    "CASE",
    "WHEN",
)
_READ = {"expressions", "from_", "where", "group", "having", "order", "limit", "offset", "with_", "joins"}


def parse(query: str, table: Table, public: Mapping[str, Any] | None = None) -> TableQuery:
    """The question that a SELECT asks of ``table``; any table name is accepted after FROM.

    ``public`` holds public tables by name, in which rows may look something up by JOIN.
    """
    if len(query) > LONGEST:
        raise ValueError(f"The query has {len(query):,} characters, but may have {LONGEST:,} at most.")
    try:
        with at(""):
            return _read_query(
                query, table, {name.lower(): PublicTable.of(frame) for name, frame in (public or {}).items()}
            )
    except RecursionError:
        raise ValueError(
            "The query is nested too deeply: use IN for lists of values, WITH for computed columns."
        ) from None


def _read_query(query: str, table: Table, public: Mapping[str, PublicTable]) -> TableQuery:
    query, lists = take_out_lists(query)
    tree = _parse(query)
    asked = _read(tree, Sources(Relation.of(table, lists), public=public))
    refuse_unread(tree)
    return asked


def _read(tree: Any, sources: Sources) -> TableQuery:
    if isinstance(tree.unnest(), exp.Union):
        return union(tree, sources)
    sources = sources.within(tree)
    if isinstance(tree, exp.Subquery):
        only(tree, "this", "with_")
        return _read(tree.this, sources)
    nothing_else(tree, _READ)
    return select(tree, relation(tree, sources))


def _parse(query: str) -> Any:
    try:
        trees = sqlglot.parse(query, dialect="duckdb")
    except sqlglot.errors.SqlglotError as error:
        raise ValueError(_unreadable(query, error)) from None
    trees = trees[:-1] if len(trees) > 1 and trees[-1] is None else trees  # a semicolon at the end
    if len(trees) != 1:
        raise ValueError(f"There are several statements, but only one is answered: {FORM}")
    if not isinstance(trees[0].unnest() if trees[0] is not None else None, (exp.Select, exp.Union)):
        if isinstance(trees[0], (exp.Condition, exp.Alias)):  # a name, a number, a formula
            raise ValueError(f"The query is no SELECT: {FORM}")
        kind = "An empty query" if trees[0] is None else type(trees[0]).__name__.upper()
        raise ValueError(f"{kind} is not supported: {FORM}")
    return trees[0]


def _unreadable(query: str, error: Any) -> str:
    """What is wrong with a query that is no SQL, as far as that can be told."""
    bare = re.sub("'[^']*'", "", query)
    if (quote := next((sign for sign in ("'", '"') if bare.count(sign) % 2), "")) and not getattr(
        error, "errors", None
    ):
        return f"The query cannot be read: a quote {quote} is not closed. Text stands in single quotes, as 'north'."
    words = re.findall("[A-Za-z]+", bare[:5_000])
    if not words or nearest(words[0], ("SELECT", "WITH")) == "":
        return f"The query cannot be read: {FORM}"
    words = [word for word in words if word.upper() not in _WORDS]
    if re.search(r"\bTOP\s+[0-9]", bare, re.IGNORECASE):
        return "The query cannot be read: there is no TOP, write LIMIT 5 at the end."
    meant = [f"{word} is no word of SQL, did you mean {near}?" for word in words if (near := nearest(word, _WORDS))]
    found = (getattr(error, "errors", None) or [{}])[0]
    told = str(found.get("description") or "it is no SQL")
    inner = "missing for <class" in told or "<Token" in told  # names of the parser's own
    told = "something is missing" if inner else told.partition(" / ")[0].lower()
    where = f" at {found['highlight']!r} (line {found['line']}, column {found['col']})" if "line" in found else ""
    return f"The query cannot be read{where}: {told}. {meant[0] if meant else FORM[0].upper() + FORM[1:]}"
