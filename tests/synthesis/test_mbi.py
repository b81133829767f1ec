"""The second engine: the same noisy counts, fitted by mbi; what is impossible stays so."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.auditing import replay
from discreet.schema import Categories, Schema
from discreet.synthesis import TableSynthesizer
from discreet.synthesis.raking import Target, marginal, rake
from discreet.synthesis.trees import junction_tree

pytest.importorskip("mbi", reason="the extra [mbi] is not installed")

SIZES = (2, 3, 2, 4)


def test_mbi_meets_the_same_counts_as_raking():
    """With a structural zero in a clique that was not measured as such: columns 0 and 3 are held together by it."""
    from discreet.synthesis.mbi_engine import estimate_tables

    joint = np.random.default_rng(0).dirichlet(np.ones(48)).reshape(SIZES)
    joint[0, :, :, 1] = 0
    joint *= 500 / joint.sum()
    sets = [(0, 1), (1, 2), (2, 3)]
    tree = junction_tree(SIZES, [*sets, (0, 3)])
    targets = [Target(c, marginal(joint, (0, 1, 2, 3), c), 1.0) for c in sets]
    mask = np.ones((2, 4))
    mask[0, 1] = 0
    held = [{0, 3} <= set(clique) for clique in tree.cliques]
    shapes = [tuple(SIZES[i] if i in (0, 3) else 1 for i in clique) for clique in tree.cliques]
    possible = [mask.reshape(shape) if here else None for here, shape in zip(held, shapes, strict=True)]
    assert any(held)
    theirs = estimate_tables(tree, targets, 500.0, possible, True)
    ours = rake(tree, targets, 500.0, possible=possible, sweeps=2000, tolerance=1e-9, softness=0.01)
    for clique, one, other in zip(tree.cliques, theirs, ours, strict=True):
        assert one.shape == tree.shape(clique)
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, other, atol=0.5)
    assert theirs[0].sum() == pytest.approx(500.0)


SCHEMA = Schema(a=Categories(range(2)), b=Categories(range(3)), c=Categories(range(2)), grade=Categories(["x", "y"]))
ENGINE = {
    "engine": "mbi",
    "structural_zeros": {("a", "b"): [(0, 2)]},
    "dependencies": {"grade": ("c", {0: "x", 1: "y"})},
}


def table(n):
    rng = np.random.default_rng(1)
    a, c = rng.integers(0, 2, n), rng.integers(0, 2, n)
    return {"a": a, "b": np.where(a == 1, 2, c), "c": c}


@pytest.mark.slow(sibling="test_mbi_meets_the_same_counts_as_raking")
def test_a_whole_fit_keeps_dependencies_beside_a_structural_zero_and_passes_replay():
    """b is 2 exactly where a is 1, and c otherwise; grade follows c. Then a whole fit is replayed on a neighbour."""
    synth = TableSynthesizer(20.0, 1e-6, **ENGINE).fit(table(600), schema=SCHEMA, rng=1)
    drawn = synth.sample(500, rng=2)
    assert not ((drawn["a"] == 0) & (drawn["b"] == 2)).any()
    assert np.mean((drawn["b"] == 2) == (drawn["a"] == 1)) > 0.95
    assert np.mean((drawn["b"] == drawn["c"])[drawn["a"] == 0]) > 0.9
    assert (drawn["grade"] == np.array(["x", "y"])[drawn["c"]]).all()
    again = TableSynthesizer(20.0, 1e-6, **ENGINE).fit(table(600), schema=SCHEMA, rng=1).sample(500, rng=2)
    assert all((again[name] == drawn[name]).all() for name in drawn)  # no generator but ours

    operation = TableSynthesizer(1.0, 1e-6, **ENGINE).operation(SCHEMA)
    one, other = table(40), {name: values[1:] for name, values in table(40).items()}

    def published(rows):
        model = operation.release(rows).value
        return [list(model.tables), model.tree.cliques]

    replay(published, one, other, event=operation.event)
