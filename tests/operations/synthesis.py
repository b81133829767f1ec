"""The operations of ``discreet.synthesis``."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.schema import Bounded, Categories, Declaration, Schema
from discreet.synthesis import CellVariations, Evolve, LinkedSynthesizer, PrivateBins, TableSynthesizer
from tests.operations.contract import Case, Worst
from tests.operations.linear import spied_columns

COLUMNS: dict[str, list[Any]] = {
    "age": [20.0, 35.0, None, 71.0] * 12,
    "sex": ["f", "m", "f", "?"] * 12,
    "sick": ["no", "yes", "no", "yes"] * 12,
    "seen": ["2024-02-29", None, "2023-01-05", "soon"] * 12,
    "who": list(range(48)),
}
FEWER = {name: values[1:] for name, values in COLUMNS.items()}
MOVED = {name: [*values[:-1], values[0]] for name, values in COLUMNS.items()} | {"who": COLUMNS["who"]}
FACTS = Schema(age=Bounded(0, 100), sex=Categories(["f", "m"], other="?"), sick=Categories(["no", "yes"]))


FEW = {"sick": ["yes"] * 8, "sex": ["f"] * 8, "who": list(range(8))}
LESS, OTHER = {name: values[1:] for name, values in FEW.items()}, FEW | {"sick": ["no", *["yes"] * 7]}
SMALL = Schema(sick=Categories(["no", "yes"]))


def drawn_from(model: Any) -> Any:
    return np.concatenate([np.ravel(table) for table in model.tables])


def published(model: Any) -> tuple[Any, ...]:
    return model.domain, model.tree.cliques, list(model.tables), model.statement


HOMES: dict[str, list[Any]] = {"home": list(range(12)), "rooms": [1.0, 2.0, None, 5.0] * 3, "town": ["n", "s", "?"] * 4}
VISITS: dict[str, list[Any]] = {
    "home": [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 99, None, 5, 5, 11, 11, 11, 11],
    "day": [3.0, 9.0, 4.0, None, 8.0, 8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 1.0, 9.0, None, 2.0, 0.0, 9.0, 5.0],
    "sick": ["no", "yes", "no", "yes", "what"] * 4,
}
HOME_FACTS = Schema(rooms=Bounded(0, 9), town=Categories(["n", "s"], other="?"))
VISIT_FACTS = Schema(sick=Categories(["no", "yes"]), day=Bounded(0, 9, whole=True))


def without_root(key: Any, tables: Any = (HOMES, VISITS)) -> Any:
    """The pair of tables without the rows of one key."""
    rows = [[i for i, own in enumerate(table["home"]) if own != key] for table in tables]
    pairs = zip(tables, rows, strict=True)
    return tuple({name: [values[i] for i in kept] for name, values in table.items()} for table, kept in pairs)


TOWNS = Schema(town=Categories(["n", "s"]))
LONE = {"home": list(range(6)), "town": ["n"] * 6}, {"home": list(range(6)), "sick": ["yes"] * 6}


def exchanged_root(key: int) -> Any:
    """The pair of tables with other rows of one key."""
    parents, children = without_root(key)
    rows = {"home": [key, key], "day": [0.0, 9.0], "sick": ["yes", "yes"]}
    parents = {name: [*values, {"home": key, "rooms": 9.0, "town": "n"}[name]] for name, values in parents.items()}
    return parents, {name: [*values, *rows[name]] for name, values in children.items()}


def linked(**settings: Any) -> Any:
    made = LinkedSynthesizer(1.0, 1e-6, **{"max_children": 3, **settings})
    return made.operation(HOME_FACTS, VISIT_FACTS, "home")


def spied_tables(data: Any, log: Any) -> Any:
    parents, children = data
    return spied_columns(parents, log), spied_columns(children, log)


def published_links(model: Any) -> tuple[Any, ...]:
    later = () if model.later is None else (model.later.tree.cliques, list(model.later.tables))
    children = model.children, model.gap, model.first.tree.cliques, list(model.first.tables)
    return *published(model.parents), *children, *later, model.statement


def counts_of_roots(model: Any) -> Any:
    return model.parents.marginal(["town", "number of children"]).ravel()


def evolved(population: Any) -> tuple[Any, ...]:
    return population.candidates, population.classes, population.votes


def votes_of(facts: Any) -> Any:
    return Evolve(CellVariations(facts), epsilon=1.0, delta=1e-6, rounds=2, candidates=4, threshold=0.0).operation()


OPERATIONS = [
    Case(
        "LinkedFit",
        linked,
        (HOMES, VISITS),
        without_root(3),
        spy=spied_tables,
        sized=True,
        result=published_links,
        worst=Worst(
            LONE,
            without_root(5, LONE),
            lambda: LinkedSynthesizer(1.0, 1e-6, max_children=1).operation(TOWNS, SMALL, "home"),
            trials=100,
            read=counts_of_roots,
        ),
    ),
    Case(
        "LinkedFit of ordered children, replace",
        lambda: linked(order="day", adjacency="replace", total=12, child={"bins": PrivateBins(3)}),
        (HOMES, VISITS),
        exchanged_root(3),
        spy=spied_tables,
        sized=True,
        result=published_links,
        worst=Worst(
            LONE,
            ({**LONE[0], "town": [*["n"] * 5, "s"]}, LONE[1]),
            lambda: LinkedSynthesizer(1.0, 1e-6, max_children=1, adjacency="replace", total=6).operation(
                TOWNS, SMALL, "home"
            ),
            trials=100,
            read=counts_of_roots,
        ),
    ),
    Case(
        "EvolveFit",
        lambda: Evolve(
            CellVariations(Declaration(FACTS, unit="who"), bins=3, target="sick"),
            epsilon=1.0,
            delta=1e-6,
            rounds=3,
            candidates=12,
        ).operation(),
        COLUMNS,
        FEWER,
        spy=spied_columns,
        sized=True,
        result=evolved,
        worst=Worst(FEW, LESS, lambda: votes_of(SMALL), trials=400, read=lambda population: population.votes),
    ),
    Case(
        "SynthesisFit",
        lambda: TableSynthesizer(1.0, 1e-6, bins=3).operation(FACTS),
        COLUMNS,
        FEWER,
        spy=spied_columns,
        sized=True,
        result=published,
        worst=Worst(FEW, LESS, lambda: TableSynthesizer(1.0, 1e-6).operation(SMALL), trials=400, read=drawn_from),
    ),
    Case(
        "SynthesisFit of people, dates, chosen bins",
        lambda: TableSynthesizer(
            1.0,
            1e-6,
            bins=PrivateBins(3),
            dates={"seen": ("2023-01-01", "2024-12-31")},
            constraints=["seen >= age + 19600"],  # days since 1970: cells that are cut privately rule out rows
        ).operation(Declaration(FACTS, unit="who")),
        COLUMNS,
        FEWER,
        spy=spied_columns,
        sized=True,
        result=published,
        worst=Worst(
            FEW,
            LESS,
            lambda: TableSynthesizer(1.0, 1e-6).operation(Declaration(SMALL, unit="who")),
            trials=400,
            read=drawn_from,
        ),
    ),
    Case(
        "SynthesisFit, replace, declared total, impossible rows",
        lambda: TableSynthesizer(
            1.0,
            1e-6,
            bins=3,
            adjacency="replace",
            total=48,
            structural_zeros={("sex", "sick"): [("f", "yes")]},
        ).operation(FACTS),
        COLUMNS,
        MOVED,
        spy=spied_columns,
        sized=True,
        result=published,
        worst=Worst(
            FEW,
            OTHER,
            lambda: TableSynthesizer(1.0, 1e-6, adjacency="replace", total=8).operation(SMALL),
            trials=400,
            read=drawn_from,
        ),
    ),
]
