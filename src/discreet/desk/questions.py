"""A question as it travels: which data, what is asked, for how much. Read by calling the same builder that people call,
so that every check of it is made again; SQL is read by our own parser. Nothing that runs is ever sent.

Decision 570.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.desk.expressions import read_expression, write_expression
from discreet.desk.json_text import canonical
from discreet.desk.row_work import refuse_long_work
from discreet.desk.whole_tables import (
    FitQuestion,
    MarginalsQuestion,
    SynthesisQuestion,
    WholeTableOperation,
    read_whole_table,
)
from discreet.errors import choice, is_whole_text, probability
from discreet.errors import positive as positive_number
from discreet.schema import Declaration
from discreet.tables.aggregates import Aggregate, Count, Mean, Sum, Variance
from discreet.tables.binned import CountDistinct, Histogram, Quantile, Quantiles
from discreet.tables.covariances import Covariance
from discreet.tables.expressions import Expression
from discreet.tables.lists import take_out_lists
from discreet.tables.operation import TableOperation
from discreet.tables.query import TableQuery
from discreet.tables.table import Table

__all__ = ["BuilderCall", "DeskBudget", "DeskQuestion", "check_label", "count_numbers"]

OF_TABLES = dict.fromkeys(("filter", "derive", "select", "group_by"))
AGGREGATES = (
    "count",
    "sum",
    "mean",
    "variance",
    "deviation",
    "covariance",
    "correlation",
    "quantile",
    "quantiles",
    "median",
    "histogram",
    "count_distinct",
)
OF_QUERIES = dict.fromkeys((*AGGREGATES, "totals", "order_by", "limit"))
MOST_STEPS = 200
DESKS_WORDS = ("[approved by", "[raised by")  # which it writes behind a label or a reason
MOST_NUMBERS = 200_000  # in an answer, which is kept as text
LONGEST_SQL = 20_000  # characters: reading them takes the time of everybody
MOST_BRACKETS = 200  # in SQL, one for each aggregate at least: 700 of those took twenty seconds to price
_FAILURES = (TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError, AssertionError)
_UNREADABLE = "The question cannot be built: check the names and kinds of its arguments."


@dataclass(frozen=True, slots=True)
class BuilderCall:
    """One call of the builder: ``group_by("ward")``."""

    call: str
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        options = {name: _write(value) for name, value in self.options.items()}
        return {"call": self.call, "args": [_write(value) for value in self.args], "options": options}

    @classmethod
    def from_dict(cls, wire: Any) -> BuilderCall:
        """From JSON, or a ``ValueError``."""
        match wire:
            case {"call": str(call), "args": list(args), "options": dict(options), **rest} if not rest:
                return cls(call, tuple(map(_read, args)), {name: _read(value) for name, value in options.items()})
        raise ValueError("A step is an object with call, args and options.")

    def apply(self, asked: Table | TableQuery) -> Table | TableQuery:
        """The call itself, of a method that is listed here."""
        known = OF_TABLES | OF_QUERIES if isinstance(asked, Table) else OF_QUERIES
        choice("call", self.call, known)
        if isinstance(asked, Table) and self.call not in OF_TABLES:
            asked = asked.group_by()
        method = getattr(asked, self.call)
        inspect.signature(method).bind(*self.args, **self.options)
        return method(*self.args, **self.options)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class DeskBudget:
    """What a question may cost: the words of ``Budget``, checked here, and made one there."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    noise: str = "auto"

    def __post_init__(self) -> None:
        for name in ("epsilon", "rho"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive_number(name, getattr(self, name)))
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("A budget is epsilon, with or without delta, or rho.")
        if self.delta is not None:
            object.__setattr__(self, "delta", probability("delta", self.delta))
        choice("noise", self.noise, {"auto": 0, "laplace": 0, "gaussian": 0})

    def to_dict(self) -> dict[str, Any]:
        """As keyword arguments of a query's ``operation``."""
        return {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho, "noise": self.noise}


@dataclass(frozen=True, slots=True)
class DeskQuestion:
    """What is asked of a data set, by steps of the builder, by SQL or of the table as a whole, and for how much."""

    dataset: str
    budget: DeskBudget
    steps: tuple[BuilderCall, ...] = ()
    sql: str | None = None
    errors: bool = True
    label: str = ""
    whole: MarginalsQuestion | SynthesisQuestion | FitQuestion | None = None

    @property
    def is_job(self) -> bool:
        """Whether it takes long, and waits for the owner whatever it costs."""
        return self.whole is not None and self.whole.is_job

    def __str__(self) -> str:
        """What is asked, as its owner reads it."""
        if self.sql is not None:
            return self.sql
        if self.whole is not None:
            return canonical(self.whole.to_dict())
        return " ".join(f".{step.call}({_as_text(step)})" for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """As JSON: what a client posts."""
        operation: dict[str, Any]
        if self.whole is not None:
            operation = {**self.whole.to_dict(), "dataset": self.dataset}
        elif self.sql is not None:
            operation = {"type": "sql", "dataset": self.dataset, "sql": self.sql}
        else:
            operation = {"type": "table", "dataset": self.dataset, "steps": [step.to_dict() for step in self.steps]}
        budget = {name: value for name, value in self.budget.to_dict().items() if value is not None}
        return {"version": 1, "operation": operation, "budget": budget, "errors": self.errors, "label": self.label}

    @classmethod
    def from_dict(cls, wire: Mapping[str, Any]) -> DeskQuestion:
        """From JSON, or a ``ValueError`` that says what is wrong with it."""
        if unknown := sorted(set(wire) - {"version", "operation", "budget", "errors", "label"}):
            raise ValueError(f"A question has no {unknown[0]!r}: there are version, operation, budget, errors, label.")
        if wire.get("version") != 1 or isinstance(wire.get("version"), bool):
            raise ValueError("version must be 1: this desk speaks no other.")
        errors = wire.get("errors", True)
        if errors is not True and errors is not False:
            raise ValueError("errors must be true or false.")
        budget = wire.get("budget")
        if not isinstance(budget, dict) or set(budget) - {"epsilon", "delta", "rho", "noise"}:
            raise ValueError("budget must be an object with epsilon, delta, rho or noise.")
        parts = _read_operation(wire.get("operation"))
        return cls(budget=DeskBudget(**budget), errors=errors, label=check_label(wire.get("label", "")), **parts)

    def digest(self, person: str) -> str:
        """What an approval and a key are bound to: operation, budget and analyst."""
        return hashlib.sha256(canonical([person, self.to_dict()]).encode()).hexdigest()

    def build(self, table: Table) -> TableQuery:
        """The question, asked of ``table``; whatever is wrong with it is a ``ValueError``."""
        if self.whole is not None:
            raise ValueError("This question is of the table as a whole, and no query.")
        try:
            if self.sql is not None:
                query = table.parse(self.sql)
                _refuse_other_tables(self.sql, self.dataset)
                return query
            asked: Table | TableQuery = table
            for step in self.steps:
                asked = step.apply(asked)
        except _FAILURES:
            raise ValueError(_UNREADABLE) from None
        if not isinstance(asked, TableQuery):
            raise ValueError("The question has no aggregate: add count(), sum(), mean() or another.")
        return asked

    def _refuse_large(self, query: TableQuery) -> None:
        if (numbers := count_numbers(query)) > MOST_NUMBERS:
            raise ValueError(f"The answer would have {numbers:,} numbers, but a desk sends {MOST_NUMBERS:,} at most.")

    def operation(
        self, table: Table, declared: Declaration | None = None, data: Any = None
    ) -> TableOperation | WholeTableOperation | Any:
        """The question with its budget: its event is known, nothing is read.

        One of the table as a whole needs what is ``declared`` of it, and, where it is to be released, its ``data``.
        """
        if self.whole is not None:
            return self._whole_table(declared, data)
        query = self.build(table)
        try:
            self._refuse_large(query)
            refuse_long_work(query.rows)
            operation = query.operation(**self.budget.to_dict(), errors=self.errors)
            assert operation.event is not None
        except _FAILURES:
            raise ValueError(_UNREADABLE) from None
        return operation

    def _whole_table(self, declared: Declaration | None, data: Any) -> WholeTableOperation:
        if self.whole is None or declared is None:
            raise ValueError("This question is of the table as a whole: its declaration is needed.")
        try:
            operation = WholeTableOperation(self.whole, declared, self.budget.to_dict(), data)
            assert operation.event is not None
        except _FAILURES:
            raise ValueError(_UNREADABLE) from None
        if (numbers := count_numbers(operation)) > MOST_NUMBERS:
            raise ValueError(f"The answer would have {numbers:,} numbers, but a desk sends {MOST_NUMBERS:,} at most.")
        return operation


def count_numbers(asked: TableQuery | TableOperation | WholeTableOperation) -> int:
    """How many numbers an answer has, as far as that is public."""
    if isinstance(asked, WholeTableOperation):
        return asked.numbers
    return asked.rows.public_groups * sum(_numbers_of(aggregate) for _, aggregate in asked.aggregates)


def _refuse_other_tables(sql: str, dataset: str) -> None:
    """Refuse a SELECT from another name than the data set's: a parser with one table takes any name for it, but a desk
    has several, and who asks of one and is answered about another has paid for a wrong number.
    """
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(take_out_lists(sql)[0], dialect="duckdb")
    inner = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for source in tree.find_all(exp.Table):
        if source.db or source.name.lower() not in {dataset.lower(), *inner}:
            named = ".".join(part.name for part in source.parts)
            raise ValueError(f"FROM {named!r} is not what is asked about here: write {dataset!r} after FROM.")


def _as_text(step: BuilderCall) -> str:
    wire = step.to_dict()
    named = (f"{name}={value}" for name, value in wire["options"].items())
    return ", ".join([*map(str, wire["args"]), *named])


def _numbers_of(aggregate: Aggregate) -> int:
    """How many numbers of each group an aggregate answers."""
    match aggregate:
        case Histogram(bins=int(bins)):
            return bins
        case Histogram(bins=tuple(edges)):
            return len(edges)
        case Quantiles(q=q):
            return len(q)
        case Count() | Sum() | Mean() | Variance() | Covariance() | CountDistinct() | Quantile():
            return 1
    raise ValueError(f"{type(aggregate).__name__} is an aggregate whose answers' size is not known here.")


def check_label(label: Any) -> str:
    """A label: text of one line."""
    if not is_whole_text(label) or len(label) > 200 or not (label.isprintable() or not label):
        raise ValueError("label must be text of one line, of at most 200 characters.")
    if any(words in label.casefold() for words in DESKS_WORDS):
        raise ValueError(
            "label must not say who approved or raised something: the desk writes that into the chain itself."
        )
    return str(label)


def _read_operation(wire: Any) -> dict[str, Any]:
    match wire:
        case {"type": "sql", "dataset": str(dataset), "sql": str(sql), **rest} if not rest:
            if not is_whole_text(sql) or len(sql) > LONGEST_SQL:
                raise ValueError(f"sql must be whole characters, at most {LONGEST_SQL:,}: longer lists go by is_in().")
            if sql.count("(") > MOST_BRACKETS:
                raise ValueError(f"sql has more than {MOST_BRACKETS} brackets: ask in several questions.")
            return {"dataset": dataset, "sql": sql}
        case {"type": "table", "dataset": str(dataset), "steps": list(steps), **rest} if not rest:
            if len(steps) > MOST_STEPS:
                raise ValueError(f"A question has at most {MOST_STEPS} steps.")
            return {"dataset": dataset, "steps": tuple(map(BuilderCall.from_dict, steps))}
        case {"type": "statistic", "dataset": str(dataset), "statistic": str(name), **rest} if not (
            set(rest) - {"column", "options"}
        ):
            choice("statistic", name, dict.fromkeys(AGGREGATES))
            column = [rest["column"]] if "column" in rest else []
            call = {"call": name, "args": column, "options": rest.get("options", {})}
            return {"dataset": dataset, "steps": (BuilderCall.from_dict(call),)}
        case {"type": "marginals" | "synthesis" | "fit", "dataset": str(dataset)}:
            return {"dataset": dataset, "whole": read_whole_table(wire)}
    raise ValueError(
        "operation must be tagged: type 'table' with steps, 'sql' with sql, 'statistic' with a column, 'marginals' "
        "with sets, 'synthesis' with rows, or 'fit' with a target."
    )


def _write(value: Any) -> Any:
    if isinstance(value, Expression):
        return {"expression": write_expression(value)}
    if isinstance(value, (list, tuple, range)):
        return [_write(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    if callable(getattr(value, "item", None)):  # NumPy's numbers are Python's
        return _write(value.item())
    raise ValueError(f"A {type(value).__name__} cannot be sent to a desk: write a number, a text or an expression.")


def _read(value: Any) -> Any:
    match value:
        case {"expression": wire, **rest} if not rest:
            return read_expression(wire)
        case dict():
            raise ValueError("An argument is a number, a text, a list of them, or an expression.")
        case list():
            return [_read(item) for item in value]
    return value
