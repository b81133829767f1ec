"""How libraries of this kind broke, each as a test. The numbers are those of the list of known problems."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from discreet.training import Handler, Quantile, Speed, register_layer
from discreet.training.gradients import joint
from discreet.training.gradients.clipped_sum import ClippedSum
from discreet.training.gradients.clipping import Clipping
from discreet.training.gradients.rules.handlers import LAYERS
from tests.training.loops import data, network, private, run, step, weights
from tests.training.oracle import agree, naive, ours, trained, watching


def contributions(model, inputs, loss, reduction, clip_norm=0.5):
    """What each record adds to the sum, found by weights that keep one record."""
    found = []
    for i in range(len(inputs[0])):
        keep = torch.zeros(len(inputs[0]), dtype=torch.float64)
        keep[i] = 1.0
        found.append(ours(model, inputs, loss, Clipping(), clip_norm, reduction, keep))
    return torch.stack(found)


LOSSES = {
    "[]": (lambda o, y: F.mse_loss(o, y), "mean"),
    "[] sum": (lambda o, y: F.mse_loss(o, y, reduction="sum"), "sum"),
    "[B]": (lambda o, y: F.mse_loss(o, y, reduction="none").mean(1), "none"),
    "[B, 1]": (lambda o, y: F.mse_loss(o, y, reduction="none").mean(1, keepdim=True), "none"),
    "[B, k]": (lambda o, y: F.mse_loss(o, y, reduction="none"), "none"),
}


@pytest.mark.parametrize("shape", LOSSES)
def test_22_losses_of_every_shape_keep_the_clip_bound_and_the_sum(shape):
    torch.manual_seed(0)
    loss, reduction = LOSSES[shape]
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    inputs = (torch.randn(6, 3).double() * 20, torch.randn(6, 2).double())

    def scalar(m, x, y):
        return loss(m(x), y).sum()

    each = contributions(model, inputs, scalar, reduction)
    assert float(each.norm(dim=1).max()) <= 0.5 * (1 + 1e-9)
    assert float(each.norm(dim=1).max()) > 0.49
    torch.testing.assert_close(each.sum(0), naive(model, inputs, scalar, Clipping(), 0.5), rtol=1e-9, atol=1e-12)


def test_3_nan_and_infinite_gradients_contribute_zero():
    """Also where a zero weight times not-a-number would poison a sum: weights, biases, tables, norms, convolutions."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.table = nn.Conv1d(1, 2, 2), nn.LayerNorm(3), nn.Embedding(3, 4)
            self.scale, self.out = nn.Parameter(torch.ones(2)), nn.Linear(6, 4)

        def forward(self, x, y):
            h = self.norm(self.conv(x.unsqueeze(1))) * self.scale[:, None]
            return self.out(h.flatten(1)) * self.table(y)

    torch.manual_seed(0)
    model = Net()
    x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))

    def loss(m, a, b):
        return m(a, b).square().sum()

    wanted = naive(model, (x[2:], y[2:]), loss, Clipping(), 1.0)
    x[0], x[1] = np.nan, np.inf
    found = ours(model, (x, y), loss, Clipping(), 1.0)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-5)


def test_6_the_factor_of_a_mean_is_the_number_of_records():
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1).double(), torch.randn(7, 3).double()
    summed = ours(model, (x,), lambda m, a: m(a).square().sum(), Clipping(), 0.3, "sum")
    mean = ours(model, (x,), lambda m, a: m(a).square().mean(), Clipping(), 0.3, "mean")
    torch.testing.assert_close(summed, mean)


def test_7_a_shuffled_loader_is_never_priced_as_poisson():
    _, optimizer, _ = private(sampler="shuffled")
    assert "Poisson" not in optimizer.privacy.planned.to_json()
    assert optimizer.privacy.plan.adjacency == "replace"
    with pytest.raises(ValueError, match="number of records"):
        private(sampler="fixed-size", dataset_size=1000)


def test_7_the_steps_of_a_pass_are_rounded_up():
    _, optimizer, loader = private(batch=7)
    assert len(loader) == 9
    assert optimizer.privacy.plan.steps == 18


def test_7_a_batch_of_a_pass_that_was_skipped_is_not_dealt_again():
    """Otherwise a record could be used twice in a pass that costs one event."""
    model, optimizer, loader = private(sampler="shuffled")
    for i, batch in enumerate(loader):
        if i != 3:
            step(model, optimizer, batch)
    run(model, optimizer, loader, 1)
    assert optimizer.privacy.remaining_steps == 0


def test_10_a_stale_piece_is_dropped_and_noise_is_added_once():
    model, optimizer, loader = private(speed=Speed(max_physical_batch_size=3), noise_multiplier=1e-9, batch=20)
    step(model, optimizer, next(iter(loader)))
    whole = private(noise_multiplier=1e-9, batch=20)
    for batch in loader:
        step(model, optimizer, batch)
        if optimizer.privacy.steps:
            break
    step(whole[0], whole[1], next(iter(whole[2])))
    torch.testing.assert_close(weights(model), weights(whole[0]), rtol=1e-5, atol=1e-6)


def test_13_a_layer_that_hides_its_parameter_is_refused_and_can_be_registered():
    class Times(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w, (g * x).sum(0)

    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(4))

        def forward(self, x):
            return Times.apply(x, self.w)

    class Elementwise(Handler):
        def instantiate(self, activations, output_gradients):
            return activations * output_gradients

    torch.manual_seed(0)
    model = nn.Sequential(Hidden(), nn.Linear(4, 2))
    with pytest.raises(Exception, match="no handler saw"):
        run(*private(model, epochs=1), 1)
    register_layer(Hidden, {"w": Elementwise()})
    try:
        agree(nn.Sequential(Hidden(), nn.Linear(4, 2)), (torch.randn(5, 4),), lambda m, x: m(x).square().sum())
        assert model[0].w.requires_grad
    finally:
        del LAYERS[Hidden]


def test_14_tokens_that_are_ignored_have_no_gradient():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 7))
    x = torch.randint(0, 7, (5, 6))
    y = x.roll(-1, 1)
    y[:, 3:] = -100

    def loss(m, a, b):
        return F.cross_entropy(m(a).transpose(1, 2), b, ignore_index=-100, reduction="sum")

    agree(model, (x, y), loss)


def test_11_tied_weights_whose_uses_cancel_are_not_undercounted():
    """Two uses whose gradients are opposite: the norm is that of the difference; equal ones: twice, not the root of
    two."""

    class Both(nn.Module):
        def __init__(self, sign):
            super().__init__()
            self.layer, self.sign = nn.Linear(3, 2, bias=False), sign

        def forward(self, x):
            return self.layer(x) + self.sign * self.layer(x)

    torch.manual_seed(0)
    x = torch.randn(4, 3).double()
    each = contributions(Both(1.0).double(), (x,), lambda m, a: 50 * m(a).sum(), "sum")
    torch.testing.assert_close(each.norm(dim=1), torch.full((4,), 0.5, dtype=torch.float64))
    none = contributions(Both(-1.0).double(), (x,), lambda m, a: 50 * m(a).sum(), "sum")
    assert float(none.norm()) < 1e-12


def test_a_record_made_to_cancel_does_not_pass_the_clip_norm():
    """Products that cancel to a millionth in a Gram sum: in single precision such a norm may look like zero."""
    torch.manual_seed(0)
    model = nn.Linear(64, 64, bias=False)
    half = torch.randn(1, 8, 64) * 1e4
    x = torch.cat([half, half * (1 + 1e-6)], dim=1)
    signs = torch.cat([torch.ones(8), -torch.ones(8)])[None, :, None]
    target = torch.randn(1, 1, 64)

    def loss(m, a):
        return (m(a) * signs * target).sum()

    clipped = ClippedSum(trained(model), Clipping(), "sum")
    with watching(model, clipped.watch):
        loss(model, x).backward()
    clipped.add(None, 1.0)
    assert math.hypot(*(float(part.double().norm()) for part in clipped.total)) <= clipped.sensitivity(1.0)


def test_a_table_made_to_cancel_with_its_output_layer_does_not_pass_the_clip_norm(monkeypatch):
    """The two uses differ by a hundred-thousandth, ten times the clip norm: single precision may take that for zero."""
    found, measured = [], joint._tied
    monkeypatch.setattr(joint, "KEPT", 10)
    monkeypatch.setattr(joint, "_tied", lambda uses: found.append(measured(uses)) or found[-1])
    torch.manual_seed(0)
    model = nn.ModuleDict({"word": nn.Embedding(300, 64), "out": nn.Linear(64, 300, bias=False)})
    model["out"].weight = model["word"].weight
    rows, c = torch.randint(300, (16, 1)), F.normalize(torch.randn(16, 1, 64), dim=2) * 1e6

    def loss(m, a, b):
        return (m["word"](a) * b).sum() - m["out"](b * (1 + 1e-5)).gather(2, a[:, :, None]).sum()

    each = contributions(model, (rows, c), loss, "sum", clip_norm=1.0)
    assert found
    assert all(norms is not None for norms in found)  # measured without forming a table for each record
    assert float(each.double().norm(dim=1).max()) <= ClippedSum(trained(model), Clipping(), "sum").sensitivity(1.0)


@pytest.mark.parametrize("sampler", ["poisson", "truncated-poisson", "balls-in-bins"])
def test_5_the_divisor_is_public_whatever_is_drawn_and_however_many_records_there_are(sampler):
    """Two data sets of different size under one declared size: same plan, same divisor."""
    found = []
    for size in (60, 41):
        _, optimizer, loader = private(records=data(size), sampler=sampler, dataset_size=60)
        found.append((optimizer.privacy.planned, optimizer.privacy.plan.sampler.expected, len(loader)))
    assert found[0] == found[1]
    assert found[0][1] == 10


def test_8_a_sampler_of_the_users_is_refused_and_named():
    from torch.utils.data import DataLoader, WeightedRandomSampler

    from discreet.training import make_private

    model = network()
    loader = DataLoader(data(), 10, sampler=WeightedRandomSampler([1.0] * 60, 60))
    with pytest.raises(ValueError, match="WeightedRandomSampler, but the sampler decides what privacy costs"):
        make_private(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            loader,
            epochs=1,
            noise_multiplier=1.0,
            loss_reduction="mean",
        )


def test_12_the_count_of_adaptive_clipping_is_noised_as_charged_and_divided_by_a_public_size():
    """Sum and count together cost the multiplier that was asked for, at every step of a schedule; the count is noised
    by its declared scale."""
    quantile = Quantile(count_noise=4.0)
    model, optimizer, loader = private(clipping=Clipping(adaptive=quantile), noise_schedule=lambda s: 1.0 + s / 10)
    plan = optimizer.privacy.plan
    for s in range(plan.steps):
        assert (plan.sum_multiplier(s) ** -2 + (2 * 4.0) ** -2) ** -0.5 == pytest.approx(plan.multiplier(s))
    assert quantile.next_norm(1.0, 3.0, plan.sampler.expected) == pytest.approx(np.exp(-0.2 * (3.0 / 10 + 0.5 - 0.5)))
    with pytest.raises(ValueError, match="count_noise is 1"):
        private(clipping=Clipping(adaptive=Quantile(count_noise=1.0)), noise_schedule=lambda s: 1.0 + s)
    run(model, optimizer, loader, 1)
    assert optimizer.privacy.clip_norm != 1.0


@pytest.mark.parametrize("mode", ["circular", "reflect", "replicate", "zeros"])
def test_23_padding_of_every_kind_is_that_of_autograd(mode):
    torch.manual_seed(0)
    x = torch.randn(5, 3, 6)
    agree(nn.Conv1d(3, 4, 3, padding=2, padding_mode=mode), (x,), lambda m, a: m(a).square().sum())


def test_23_the_padding_row_of_a_table_has_no_gradient():
    torch.manual_seed(0)
    model, x = nn.Embedding(7, 3, padding_idx=2), torch.randint(0, 7, (5, 9))
    agree(model, (x,), lambda m, a: m(a).sin().sum())
    found = ours(model, (x,), lambda m, a: m(a).sin().sum(), Clipping(), 1.0).view(7, 3)
    assert not found[2].any()
    assert found[3].any()
