"""A record that is poison takes nothing from others: small sizes of the search ``poison``, and records whose terms
cancel."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import make_private
from discreet.training.gradients.clipping import SMALLEST, Clipping
from discreet.training.gradients.uses import Use
from tests.training.oracle import ours
from tests.training.poison import PLACES, VALUES, WIDENED, Case, check, measured_only

KINDS = ["bilinear", "linear sequence", "conv2d", "embedding", "lstm", "encoder layer", "tied", "fourier_operator"]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("layer", KINDS)
def test_one_record_is_poison(layer, value):
    """Others' part is as it was, the sum is finite, and moves by at most a clip norm."""
    tried = [check(Case(layer, value, place, formed)) for place in PLACES for formed in (True, False)]
    assert sum(tried) >= 4


# --- terms that cancel -----------------------------------------------------------------------------------------------

WIDTH = 4


class Pairs(nn.Module):
    """Two steps of one layer that see the same, and are weighed ``w`` [B, 2] in what comes out."""

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(0)
        self.kind, self.table = kind, nn.Parameter(torch.randn(10, WIDTH))
        self.linear, self.conv = nn.Linear(WIDTH, WIDTH, bias=False), nn.Conv1d(WIDTH, WIDTH, 1, bias=False)
        self.plane, self.bilinear = nn.Conv2d(1, WIDTH, 2, bias=False), nn.Bilinear(WIDTH, WIDTH, 3, bias=False)
        self.heads = nn.Parameter(torch.randn(2, WIDTH, 3))

    def steps(self, index, x):
        """[B, 2, ...]."""
        match self.kind:
            case "embedding":
                return F.embedding(index, self.table)
            case "looked up":
                return self.table[index]
            case "linear":
                return self.linear(x)
            case "linear, time first":
                return self.linear(x.transpose(0, 1)).transpose(0, 1)
            case "linear, called twice":
                return torch.stack([self.linear(x[:, 0]), self.linear(x[:, 1])], 1)
            case "einsum":
                return torch.einsum("btd,gdh->btgh", x, self.heads)
            case "grouped":
                return torch.einsum("btgd,gdh->btgh", torch.stack([x, x], 2), self.heads)
            case "bilinear":
                return self.bilinear(x, x)
            case "convolution":
                return self.conv(x.mT).mT
            case "frames":
                return self.plane(x.reshape(-1, 1, 2, 2)).reshape(len(x), 2, -1)
            case "tied":
                return F.linear(F.embedding(index, self.table), self.table)
        raise AssertionError(self.kind)

    def forward(self, index, x, w):
        if self.kind == "bag":
            return F.embedding_bag(index, self.table, mode="sum", per_sample_weights=w)
        found = self.steps(index, x)
        return (found * w.view(*w.shape, *[1] * (found.dim() - 2))).flatten(1)


CANCELLING = [
    "embedding",
    "bag",
    "looked up",
    "linear",
    "linear, time first",
    "linear, called twice",
    "einsum",
    "grouped",
    "bilinear",
    "convolution",
    "frames",
    "tied",
]


def batch(records, big=0.0):
    """Records that all pull the same way, and one in their midst whose two steps are opposite."""
    index, x, w = torch.full((records, 2), 3), torch.ones(records, 2, WIDTH), torch.ones(records, 2)
    index[:, 1] = 5
    if big:
        index, x, w = (torch.cat([a[:1], a]) for a in (index, x, w))
        index[records // 2], w[records // 2] = 3, torch.tensor([big, -big])
    return index, x, w


@pytest.mark.parametrize("big", [1e5, 1e9, 1e14, 1e25])
@pytest.mark.parametrize("kind", CANCELLING)
def test_a_record_whose_terms_cancel_takes_nothing_from_others(kind, big):
    """Its norm is zero, so clipping keeps it; added up together with others', its terms would wipe theirs out."""

    def total(m, *given):
        return m(*given).sum()

    model = Pairs(kind)
    with measured_only():
        wanted, found = (ours(model, batch(100, size), total, Clipping(), 1.0) for size in (0.0, big))
    assert float(wanted.norm()) > 20  # that there is something to take
    assert float((found - wanted).norm()) <= 1e-3


def test_terms_of_an_honest_record_are_not_formed_alone(monkeypatch):
    """Only what would weigh more than a hundred clip norms is: forming costs time."""
    formed = []
    monkeypatch.setattr(Use, "take", lambda *given: formed.append(given))
    with measured_only():
        for kind in CANCELLING:
            ours(Pairs(kind), batch(20), lambda m, *given: m(*given).sum(), Clipping(), 1e-3)
    assert not formed


def test_a_look_up_that_cancels_moves_a_private_step_by_less_than_a_clip_norm():
    """End to end: a table, one record more."""

    def released(big):
        index, _, w = batch(60, big)
        model = Pairs("embedding")
        parameters = [model.table]
        for p in set(model.parameters()) - set(parameters):
            p.requires_grad_(False)
        model, optimizer, loader = make_private(
            model,
            torch.optim.SGD(parameters, lr=0.0),
            DataLoader(TensorDataset(index, w), len(index)),
            noise_multiplier=1e-9,
            epochs=1,
            max_grad_norm=1.0,
            loss_reduction="sum",
            rng=1,
            dataset_size=60,
        )
        for index, w in loader:
            model(index, None, w).sum().backward()
            optimizer.step()
            return model.table.grad.clone()
        return None

    assert float((released(1e9) - released(0.0)).norm()) <= 1 + WIDENED


# --- norms that vanish -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [1e-10, 1e-22, 1e-29])
@pytest.mark.parametrize("kind", ["embedding", "linear", "convolution"])
def test_gradients_whose_squares_vanish_are_clipped(kind, clip):
    """Squares of single precision end at 1e-38: a norm of 1e-21 must not pass for zero."""
    model = Pairs(kind)
    given = batch(1)
    for formed in (True, False):
        for size in (1e-10, 1e-18, 1e-21, 1e-25):

            def total(m, *given, size=size):
                return m(*given).sum() * size

            if formed:
                found = ours(model, given, total, Clipping(), clip)
            else:
                with measured_only():
                    found = ours(model, given, total, Clipping(), clip)
            assert float(found.double().norm()) <= clip * (1 + WIDENED)


def test_a_clip_norm_below_single_precision_is_refused():
    assert Clipping(max_grad_norm=SMALLEST).max_grad_norm == SMALLEST
    with pytest.raises(ValueError, match="Multiply the loss by a constant"):
        Clipping(max_grad_norm=1e-31)
    with pytest.raises(ValueError, match="max_grad_norm is 1e-40"):
        Clipping(scope={"": 1e-40})
