"""The second engine: the same noisy counts, fitted by mbi."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.synthesis.raking import Target, marginal, rake
from discreet.synthesis.trees import junction_tree

pytest.importorskip("mbi", reason="the extra [mbi] is not installed")


def test_mbi_meets_the_same_counts_as_raking():
    from discreet.synthesis.mbi_engine import estimated

    tree = junction_tree((2, 3, 2), [(0, 1), (1, 2)])
    joint = np.random.default_rng(0).dirichlet(np.ones(12)).reshape(2, 3, 2) * 500
    targets = [Target((0, 1), joint.sum(axis=2), 1.0), Target((1, 2), joint.sum(axis=0), 1.0)]
    theirs = estimated(tree, targets, 500.0, [None] * len(tree.cliques), True)
    ours = rake(tree, targets, 500.0, sweeps=500, tolerance=1e-9, softness=0.01)
    for clique, one, other in zip(tree.cliques, theirs, ours, strict=True):
        assert one.shape == tree.shape(clique)
        np.testing.assert_allclose(one, other, atol=1.0)
    assert marginal(theirs[0], tree.cliques[0], ()).sum() == pytest.approx(500.0)
