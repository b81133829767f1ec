"""Shorter ways to the same sums: each is taken where it is meant to be, and gives what a loop over records gives."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from discreet.training.gradients import handlers, joint, recurrence
from discreet.training.gradients import outer_products as outer
from discreet.training.gradients.clipping import Clipping
from tests.training.oracle import agree, ours
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


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}, {"bias": False}], ids=str)
def test_gates_in_compiled_loops_are_those_of_torch(monkeypatch, kind, options):
    """Outputs and the sum of a loop over records, from a state of their own; the loops are run, forward and back."""

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.over, self.start = kind(6, 9, batch_first=True, **options), nn.Parameter(torch.randn(9))

        def forward(self, x, state):
            state = (state * self.start).transpose(0, 1).repeat(len(self.over._all_weights), 1, 1)
            out, last = self.over(x, (state, state.tanh()) if kind is nn.LSTM else state)
            return out.flatten(1).sum(1) + 3 * (last[1] if kind is nn.LSTM else last).square().sum((0, 2))

    name = kind.__name__.lower()
    taken = [counted(monkeypatch, recurrence, f"{name}_{way}") for way in ("step", "back")]
    torch.manual_seed(6)
    agree(Recurrent(), (3 * torch.randn(B, 5, 6), torch.randn(B, 1, 9)), lambda m, *x: m(*x).sum(), dtype=torch.float32)
    assert all(taken)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_a_gate_that_is_not_a_number_stays_none(kind):
    """The record is lost, as it is in a loop over records; its neighbours are not."""
    torch.manual_seed(7)
    model, x = kind(4, 3, batch_first=True), torch.randn(B, 4, 4)
    wanted = ours(model, (x[1:],), square_loss, Clipping(), 1.0)
    for bad in (torch.nan, torch.inf):
        x[0, 1, 2] = bad
        torch.testing.assert_close(ours(model, (x,), square_loss, Clipping(), 1.0), wanted, rtol=1e-5, atol=1e-6)
