"""A kind that a table does not know is refused by name, wherever one is asked for: no last branch answers for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.tables import operation as operations
from discreet.tables.calendar import Part, Truncated, steps_of
from discreet.tables.conditions import Compare, Logic
from discreet.tables.intervals import arithmetic
from discreet.tables.mistakes import declaration_name
from discreet.tables.nodes import Binary, Column, Function, Number, Text, integral
from discreet.tables.number_functions import FUNCTIONS, number_function
from discreet.tables.texts import Contains, TextFunction

SCHEMA = dp.Schema(x=dp.Bounded(0, 1))


@dataclass(frozen=True)
class Later:
    """A declaration that tables have not heard of."""

    name: str = "later"


class LaterSchema(dict[str, Any]):
    """A schema that holds one."""


ODD: dict[str, Callable[[], Any]] = {
    "function": lambda: Function("exp", Column("x")),
    "function by name": lambda: number_function("exp"),
    "comparison": lambda: Compare("<>", Column("x"), Number(1.0)),
    "logic": lambda: Logic("^", (Column("x"),)),
    "arithmetic of intervals": lambda: arithmetic("^", (0.0, 1.0), (0.0, 1.0)),
    "arithmetic": lambda: Binary("^", Number(1.0), Number(2.0)).bounds(SCHEMA),
    "function of a text": lambda: TextFunction("reverse", Text("ab")).apply("ab"),  # type: ignore[arg-type]
    "place in a text": lambda: Contains("anywhere", Text("ab"), "a").apply("ab"),  # type: ignore[arg-type]
    "part of a date": lambda: Part("second", Number(0.0, moment=True)).apply(0.0),
    "step of a calendar": lambda: Truncated("decade", Number(0.0, moment=True)).apply(0.0),
    "column's bounds": lambda: Column("x").bounds(LaterSchema(x=Later())),  # type: ignore[arg-type]
    "column's kind": lambda: Column("x").kind(LaterSchema(x=Later())),  # type: ignore[arg-type]
    "column's domain": lambda: Column("x").domain(LaterSchema(x=Later())),  # type: ignore[arg-type]
    "word of a schema file": lambda: declaration_name(Later()),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("ask", ODD.values(), ids=ODD)
def test_an_unknown_kind_is_refused(ask: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"is no|declared as Later|joins no"):
        ask()


def test_an_unknown_step_has_no_length() -> None:
    with pytest.raises(KeyError):
        steps_of("decade", 0.0, 1.0)


@pytest.mark.parametrize("name", FUNCTIONS)
@given(low=st.floats(-1e3, 1e3), size=st.floats(0, 1e3), share=st.floats(0, 1))
def test_a_value_lies_within_the_bounds_of_its_function(name: str, low: float, size: float, share: float) -> None:
    """And what says that it is whole is whole."""
    kind = FUNCTIONS[name]
    value = kind.value(min(low + share * size, low + size))
    least, most = kind.bounds((low, low + size))
    assert value is None or least <= value <= most
    assert integral(Function(name, Column("x"))) == (kind.domain == "whole")
    assert kind.domain != "whole" or (value is not None and value.is_integer())


def test_a_release_plans_what_it_measures_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And explains itself once."""
    calls: dict[str, int] = {"measured": 0, "explain": 0}
    plan, explain = operations.measured_aggregates, operations.TableOperation.explain

    def planned(*asked: Any) -> Any:
        calls["measured"] += 1
        return plan(*asked)

    def explained(self: Any) -> Any:
        calls["explain"] += 1
        return explain(self)

    monkeypatch.setattr(operations, "measured_aggregates", planned)
    monkeypatch.setattr(operations.TableOperation, "explain", explained)
    table = dp.table(pl.DataFrame({"x": [0.0, 1.0]}), schema=SCHEMA)
    book = dp.Ledger("sqlite://").open("b", epsilon=5.0, delta=1e-6)
    table.median("x").mean("x").release(epsilon=1.0, book=book)
    assert calls == {"measured": 1, "explain": 1}
