"""A torch network as teacher and as student."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks need torch")

from discreet.pate import Teachers, count_votes  # noqa: E402
from discreet.pate.networks import NetworkClassifier  # noqa: E402
from discreet.random import Streams  # noqa: E402

RNG = np.random.default_rng(0)
CENTRES = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 3.0]])
Y = np.arange(300) % 3
X = (CENTRES[Y] + RNG.normal(size=(300, 2)) * 0.7).astype(np.float32)


def linear():
    return torch.nn.Linear(2, 3)


def jitter(rows, chance):
    return rows + 0.2 * torch.randn(rows.shape, generator=chance)


def network(**facts):
    return NetworkClassifier(linear, **({"n_classes": 3, "epochs": 15, "lr": 0.1} | facts))


def test_a_network_learns_from_labels():
    assert (network(epochs=8).fit(X, Y).predict(X) == Y).mean() > 0.95


def test_consistency_uses_the_rows_without_a_label():
    """Three labels leave a direction open that 297 rows without one decide."""
    few = np.where(np.arange(300) < 3, Y, -1)
    found = network(weak=None, strong=jitter, confidence=0.8).fit(X, few)
    alone = network().fit(X[:3], Y[:3])
    assert (found.predict(X) == Y).mean() > 0.93
    assert not np.allclose(found.predict_proba(X), alone.predict_proba(X), atol=1e-3)


def test_a_seed_repeats_a_network_and_leaves_torchs_own_generator_alone():
    torch.manual_seed(4)
    before = torch.get_rng_state()
    one, other = (network(epochs=2, random_state=5).fit(X, Y).predict_proba(X) for _ in range(2))
    assert (one == other).all()
    assert (torch.get_rng_state() == before).all()
    assert (network(epochs=2, random_state=6).fit(X, Y).predict_proba(X) != one).any()


def test_networks_teach():
    teachers = Teachers(teacher=network(epochs=4), n_teachers=3, n_classes=3)
    votes = teachers.votes(X, Y, X[:30], Streams(1))
    assert (count_votes(votes, 3).argmax(axis=1) == Y[:30]).mean() > 0.9


def test_no_label_at_all_is_refused():
    with pytest.raises(ValueError, match="nothing to learn from"):
        network().fit(X, np.full(300, -1))
