"""Shorter ways to the same sums: each is taken where it is meant to be, and gives what a loop over records gives."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from discreet.training.gradients import handlers, joint
from discreet.training.gradients import outer_products as outer
from tests.training.oracle import agree
from tests.training.test_handlers import B, Tied, ints, square_loss


def counted(monkeypatch, owner, name):
    """The calls of a function from now on: their arguments and answers."""
    found, function = [], getattr(owner, name)

    def spy(*args, **kwargs):
        found.append((args, function(*args, **kwargs)))
        return found[-1][1]

    monkeypatch.setattr(owner, name, spy)
    return found


@pytest.mark.parametrize("first", [0, 1], ids=["records first", "steps first"])
def test_sequences_that_lie_step_by_step_are_one_product(monkeypatch, first):
    """Nothing is multiplied record by record."""

    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(40, 30)

        def forward(self, x):
            return self.layer(x.transpose(0, first).contiguous().tanh()).transpose(0, first)

    monkeypatch.setattr(outer.Outer, "prefers_instances", lambda *_: False)
    products, apart = counted(monkeypatch, torch, "mm"), counted(monkeypatch, torch, "addbmm")
    torch.manual_seed(1)
    agree(Steps(), (torch.randn(B, 7, 40),), square_loss)
    assert [args[0].shape for args, _ in products] == [(30, 7 * B)] * 3
    assert not apart


@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("layer", [nn.GroupNorm(2, 6), nn.InstanceNorm1d(6, affine=True)], ids=["group", "instance"])
def test_a_group_norms_scale_needs_no_normalised_inputs(monkeypatch, layer, offset):
    taken = counted(monkeypatch, handlers.GroupScale, "instantiate")
    torch.manual_seed(3)
    nn.init.normal_(layer.weight)
    agree(nn.Sequential(layer, nn.Flatten(), nn.Linear(24, 2)), (torch.randn(B, 6, 4) + offset,), square_loss)
    assert taken


def test_group_norm_of_frames_folded_into_the_batch(monkeypatch):
    class Frames(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.GroupNorm(2, 4)

        def forward(self, x):
            return self.norm(x.flatten(0, 1)).reshape(x.shape[0], -1)

    taken = counted(monkeypatch, handlers.GroupScale, "instantiate")
    torch.manual_seed(4)
    agree(Frames(), (torch.randn(B, 3, 4, 5),), square_loss)
    assert taken


def test_a_tables_rows_are_added_where_the_output_layers_product_is(monkeypatch):
    added = counted(monkeypatch, handlers.Rows, "add_weighted")
    monkeypatch.setattr(joint, "KEPT", 10)
    monkeypatch.setattr(outer, "KEPT", 10)
    torch.manual_seed(5)
    agree(Tied(300), (ints(B, 3, high=300),), square_loss)
    assert added
    alone = nn.Sequential(nn.Embedding(30, 4), nn.Flatten(), nn.Linear(12, 2))
    before = len(added)
    agree(alone, (ints(B, 3, high=30),), square_loss)
    assert len(added) > before
