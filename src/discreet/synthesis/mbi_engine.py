"""The engine "mbi": inference in a graphical model by the library of that name, on JAX.

It fits the same noisy counts along the same tree, by mirror descent in double precision. The tables of the cliques are
taken from it, and records are drawn by ``drawing``: its own sampling uses NumPy's global generator.

Reference: McKenna, Sheldon and Miklau (2019), "Graphical-model based estimation and inference for differential
privacy".
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import extra
from discreet.synthesis.counting import Columns
from discreet.synthesis.raking import Target
from discreet.synthesis.trees import JunctionTree

with extra("mbi"):
    import jax

    with warnings.catch_warnings():  # about single precision and caches, which are seen to below
        warnings.simplefilter("ignore", UserWarning)
        import mbi
        from mbi import marginal_oracles

__all__ = ["estimate_tables"]

Floats = NDArray[np.float64]


def estimate_tables(
    tree: JunctionTree, targets: Sequence[Target], total: float, possible: Sequence[Floats | None], last: bool
) -> list[Floats]:
    """The tables of the tree's cliques, which agree and add up to the total."""
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        names = [f"c{i}" for i in range(len(tree.sizes))]
        domain = mbi.Domain(names, tree.sizes)

        def names_of(columns: Sequence[int]) -> tuple[str, ...]:
            return tuple(names[i] for i in columns)

        measured = [
            mbi.LinearMeasurement(t.counts.ravel(), names_of(t.columns), stddev=math.sqrt(t.variance)) for t in targets
        ]
        constraints = [
            mbi.Constraint(domain.project(names_of(columns)), invalid=impossible)
            for columns, impossible in _impossible(tree, possible)
        ]
        model = mbi.estimation.MirrorDescent().estimate(
            domain, measured, known_total=total, constraints=constraints, iters=1000 if last else 200
        )
        # The model's own project() forgets the constraints for a clique that was not measured as such.
        cliques = [names_of(clique) for clique in tree.cliques]
        beliefs = marginal_oracles.message_passing_shafer_shenoy(
            model.potentials.expand(cliques), total, constraints=constraints
        )
        tables = [_table(beliefs[clique], clique) for clique in cliques]
    return [table * (total / max(float(table.sum()), 1e-250)) for table in tables]


def _impossible(tree: JunctionTree, possible: Sequence[Floats | None]) -> Iterator[tuple[Columns, NDArray[np.int64]]]:
    """For each clique with structural zeros, the columns that they concern, and the cells, one a row."""
    for clique, mask in zip(tree.cliques, possible, strict=True):
        if mask is not None:
            concerned = tuple(i for i, size in zip(clique, mask.shape, strict=True) if size > 1)
            yield concerned, np.argwhere(np.squeeze(mask) == 0)


def _table(factor: Any, clique: tuple[str, ...]) -> Floats:
    values = np.asarray(factor.transpose(clique).datavector(flatten=False), np.float64)
    return np.maximum(values, 0.0)
