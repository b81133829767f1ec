"""Where the synthesiser's settings come from: average 3-way errors on tables that no figure is reported for.

Three development tables: census records of Fulton County (16 columns), patients on warfarin (20), and a random network
of 15 columns with as many cells as Adult has. Each variant changes some constants of the room; the table shows the
ratio of its error to that of the settings in force, geometric mean over seeds.

    python -m experiments synthesis_settings            every variant, about an hour of CPU
    python -m experiments.synthesis_settings NAME ...   the named ones
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np

from discreet import synthesis
from discreet.schema import Categories, Schema
from discreet.synthesis import plan, raking
from experiments import _results
from experiments._data import pums, warfarin

Codes = dict[str, Any]
DELTA, SEEDS = 1e-9, 2
SIZES = (15, 9, 14, 16, 16, 7, 15, 6, 5, 2, 12, 10, 12, 42, 2)


def census() -> Codes:
    """Fulton County: numbers in round bins."""
    rows = dict(pums())
    edges = [1, 5000, 10_000, 15_000, 20_000, 30_000, 40_000, 50_000, 60_000, 80_000, 100_000, 150_000, 300_000]
    rows["age"], rows["income"] = (rows["age"] - 15) // 5, np.searchsorted(edges, rows["income"], side="right")
    return {name: _ranked(values) for name, values in rows.items() if name not in ("state", "fips")}


def patients() -> Codes:
    """Warfarin: 20 columns, numbers in round bins, missing values as a category."""
    rows = warfarin()
    found: Codes = {}
    for name, width in (("Height (cm)", 5), ("Weight (kg)", 10), ("Therapeutic Dose of Warfarin", 5)):
        numbers = np.array([float(v) if v not in ("", "NA") else -1.0 for v in rows[name]])
        found[name] = _ranked(np.minimum(numbers // width, 60))
    names = [n for n in rows if n and len(set(rows[n])) <= 13 and (rows[n] == "NA").mean() < 0.9][:17]
    return found | {name: _ranked(rows[name]) for name in names}


def network(rows: int = 40_000) -> Codes:
    """A random network: each column depends on up to two earlier ones, sharply or hardly."""
    rng = np.random.default_rng(2026)
    found: Codes = {}
    for i, size in enumerate(SIZES):
        parents = rng.choice(list(found), size=min(i, int(rng.integers(1, 3))), replace=False) if i else []
        group = np.zeros(rows, np.int64)
        for name in parents:
            group = group * SIZES[int(name[1:])] + found[name]
        base = rng.dirichlet(np.full(size, 0.5))
        laws = rng.dirichlet(base * float(rng.choice([1.0, 5.0, 30.0])) + 1e-3, size=int(group.max()) + 1)
        sums = np.cumsum(laws, axis=1)[group]
        found[f"c{i}"] = np.minimum((rng.random(rows)[:, None] > sums).sum(axis=1), size - 1)
    return found


def _ranked(values: Any) -> Any:
    return np.unique(values, return_inverse=True)[1]


TABLES: dict[str, tuple[Callable[[], Codes], tuple[float, ...]]] = {
    "census": (census, (0.1, 1.0, 10.0)),
    "patients": (patients, (1.0, 10.0)),
    "network": (network, (0.1, 1.0, 10.0)),
}


def error(real: Codes, drawn: Codes) -> float:
    """Total variation of 3-way marginals, averaged over all of them."""
    sizes = {name: int(values.max()) + 1 for name, values in real.items()}
    found = []
    for names in combinations(real, 3):
        shape = tuple(sizes[name] for name in names)
        shares = [
            np.bincount(np.ravel_multi_index([t[n] for n in names], shape), minlength=math.prod(shape))
            / len(t[names[0]])
            for t in (real, drawn)
        ]
        found.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(found))


def measured(real: Codes, epsilon: float, seed: int) -> float:
    """The error of one fit."""
    schema = Schema({name: Categories(range(int(values.max()) + 1)) for name, values in real.items()})
    model = synthesis.TableSynthesizer(epsilon, DELTA).fit(real, schema=schema, rng=100 + seed)
    return error(real, model.sample(len(next(iter(real.values()))), rng=seed))


Change = tuple[Any, str, Any]


@contextmanager
def changed(changes: list[Change]) -> Iterator[None]:
    """With other constants in the room's modules."""
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    for module, name, value in changes:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def shares(**parts: float) -> Change:
    """Other shares of the budget."""
    return plan, "SHARES", plan.SHARES | {name.replace("_", " "): part for name, part in parts.items()}


VARIANTS: dict[str, list[Change]] = {
    "as it is": [],
    "softer": [(raking, "_SOFTNESS", 2.0)],
    "harder": [(raking, "_SOFTNESS", 0.5)],
    "columns 0.15": [shares(columns=0.15)],
    "columns 0.35": [shares(columns=0.35, pairs=0.3)],
    "pairs 0.25": [shares(pairs=0.25)],
    "pairs 0.5": [shares(pairs=0.5, columns=0.2)],
    "errors 0.04": [shares(first_errors=0.04, second_errors=0.04)],
    "errors 0.12": [shares(first_errors=0.12, second_errors=0.12)],
}


def main(quick: bool = False, chosen: list[str] | None = None) -> None:
    """One line per variant; quickly, of the first two, on the first table and with one seed."""
    loaded = {name: (make(), epsilons) for name, (make, epsilons) in list(TABLES.items())[: 1 if quick else None]}
    base: dict[tuple[str, float], list[float]] = {}
    for variant in chosen or list(VARIANTS)[: 2 if quick else None]:
        told = []
        with changed(VARIANTS[variant]):
            for name, (real, epsilons) in loaded.items():
                for eps in epsilons:
                    found = [measured(real, eps, seed) for seed in range(1 if quick else SEEDS)]
                    known = base.setdefault((name, eps), found)
                    ratio = math.exp(np.mean(np.log(found)) - np.mean(np.log(known)))
                    told.append(f"{name} {eps:g}: {np.mean(found):.4f} ({ratio:.3f})")
        print(f"{variant:16s} " + "  ".join(told), flush=True)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--quick"]
    main(_results.begin(__doc__), words or None)
