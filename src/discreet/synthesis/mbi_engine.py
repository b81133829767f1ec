"""The engine "mbi": inference in a graphical model by the library of that name, on JAX.

It fits the same noisy counts along the same tree, by mirror descent in double precision. The tables of the cliques are
taken from it, and records are drawn by ``drawing``: its own sampling uses NumPy's global generator.

Reference: McKenna, Sheldon and Miklau (2019), "Graphical-model based estimation and inference for differential
privacy".
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import extra
from discreet.synthesis.raking import Target
from discreet.synthesis.trees import Tree

with extra("mbi"):
    import jax

    with warnings.catch_warnings():  # about single precision and caches, which are seen to below
        warnings.simplefilter("ignore", UserWarning)
        import mbi

__all__ = ["estimated"]

Floats = NDArray[np.float64]


def estimated(
    tree: Tree, targets: Sequence[Target], total: float, possible: Sequence[Floats | None], last: bool
) -> list[Floats]:
    """The tables of the tree's cliques, which agree and add up to the total."""
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        names = [f"c{i}" for i in range(len(tree.sizes))]
        domain = mbi.Domain(names, tree.sizes)

        def named(columns: Sequence[int]) -> tuple[str, ...]:
            return tuple(names[i] for i in columns)

        measured = [
            mbi.LinearMeasurement(t.counts.ravel(), named(t.columns), stddev=math.sqrt(t.variance)) for t in targets
        ]
        constraints = [
            mbi.Constraint(
                domain.project(named(clique)), invalid=np.argwhere(np.broadcast_to(mask, tree.shape(clique)) == 0)
            )
            for clique, mask in zip(tree.cliques, possible, strict=True)
            if mask is not None
        ]
        model = mbi.estimation.MirrorDescent().estimate(
            domain, measured, known_total=total, constraints=constraints, iters=1000 if last else 200
        )
        tables = [_table(model, named(clique), tree.shape(clique)) for clique in tree.cliques]
    return [table * (total / max(float(table.sum()), 1e-250)) for table in tables]


def _table(model: Any, clique: tuple[str, ...], shape: tuple[int, ...]) -> Floats:
    factor = model.project(clique)
    values = np.asarray(factor.transpose(clique).datavector(), np.float64)
    return np.maximum(values.reshape(shape), 0.0)
