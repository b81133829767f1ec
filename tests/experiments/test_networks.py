"""Studies of private networks, made small: they run, and are private at the price they state."""

from __future__ import annotations

import math

import pytest
import torch

from experiments import adult_network, shakespeare


def test_adults_network_learns_from_a_few_people(monkeypatch):
    """Half of the income classes are told apart from the majority: better than saying no to everybody, at a large
    epsilon."""
    monkeypatch.setattr(adult_network, "EPSILON", 50.0)
    x, y, _, _ = adult_network.inputs()
    x, y = x[:3000], y[:3000]
    assert torch.allclose(x.norm(dim=1), torch.full((3000,), adult_network.NORM))
    model = adult_network.fitted(x, y, 0, hidden=4, steps=15, clip=1.0, lr=3.0)
    assert adult_network.accuracy(model, x, y) > float((y == 0).float().mean()) + 0.02


def test_the_character_model_learns_and_does_not_look_ahead():
    try:
        train, test = shakespeare.pieces()
    except SystemExit as missing:
        pytest.skip(str(missing))
    model = shakespeare.trained("lambda CGD", train[:1500], 50.0, 2.0, 0, epochs=2)
    assert shakespeare.bits(model, test[:50]) < math.log2(65) - 0.5
    before = shakespeare.seen(test[:1])
    after = before.clone()
    after[0, 40] = (after[0, 40] + 1) % 65
    with torch.no_grad():
        assert torch.allclose(model(before)[:, :40], model(after)[:, :40])
