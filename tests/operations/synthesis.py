"""The operations of ``discreet.synthesis``."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.schema import Bounded, Categories, Declaration, Schema
from discreet.synthesis import CellVariations, Evolve, PrivateBins, TableSynthesizer
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


def evolved(population: Any) -> tuple[Any, ...]:
    return population.candidates, population.classes, population.votes


def votes_of(facts: Any) -> Any:
    return Evolve(CellVariations(facts), epsilon=1.0, delta=1e-6, rounds=2, candidates=4, threshold=0.0).operation()


OPERATIONS = [
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
