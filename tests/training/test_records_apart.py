"""What mixes records is refused on the first batches, and what does not is left alone."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import MixedRecords, make_private


def run(loss, *, reduction="mean", model=None, length=0, steps=3):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)) if model is None else model
    shape = (60, length) if length else (60,)
    x, y = torch.randn(*shape, 4), torch.randint(0, 3, shape)
    if length:
        y[torch.rand(shape) < 0.5] = -100
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(TensorDataset(x, y), 10),
        epochs=1,
        noise_multiplier=1.0,
        loss_reduction=reduction,
        rng=1,
    )
    for i, (a, b) in enumerate(loader):
        if i == steps:
            break
        optimizer.zero_grad()
        loss(model(a), b).backward()
        optimizer.step()
    assert not _get_current_function_mode_stack()


def one_hot(y):
    return F.one_hot(y, 3).float()


def weighted(out, y):
    return F.cross_entropy(out, y, weight=torch.tensor([1.0, 5.0, 20.0]))


def contrastive(out, y):
    z = F.normalize(out, dim=1)
    return F.cross_entropy(z @ z.T / 0.1, torch.arange(len(z)))


def token_mean(out, y):
    return F.cross_entropy(out.transpose(1, 2), y, ignore_index=-100)


def token_sum(out, y):
    each = F.cross_entropy(out.transpose(1, 2), y, ignore_index=-100, reduction="none").sum(1)
    return (each / (y != -100).sum(1).clamp(min=1)).mean()


APART = {
    "cross entropy": (F.cross_entropy, "mean"),
    "module": (nn.CrossEntropyLoss(label_smoothing=0.1), "mean"),
    "sum": (lambda o, y: F.cross_entropy(o, y, reduction="sum"), "sum"),
    "none, summed": (lambda o, y: F.cross_entropy(o, y, reduction="none").sum(), "none"),
    "square": (lambda o, y: F.mse_loss(o, one_hot(y)), "mean"),
    "column": (lambda o, y: F.mse_loss(o[:, :1], y.float().unsqueeze(1), reduction="none").mean(), "mean"),
    "by hand": (lambda o, y: -(torch.log_softmax(o, 1) * one_hot(y)).sum() / len(y), "mean"),
    "with a public penalty": (lambda o, y: F.cross_entropy(o, y) + 0.1 * o.square().mean(), "mean"),
}


@pytest.mark.parametrize("name", APART)
def test_losses_that_keep_records_apart_pass(name):
    loss, reduction = APART[name]
    run(loss, reduction=reduction)


MIXED = {
    "class weights": weighted,
    "contrastive": contrastive,
    "batch spread": lambda o, y: F.cross_entropy((o - o.mean(0)) / o.std(0), y),
}


@pytest.mark.parametrize("name", MIXED)
def test_losses_that_mix_records_are_refused(name):
    with pytest.raises(MixedRecords, match="other records"):
        run(MIXED[name])


def test_token_means_under_ignore_index_are_refused_and_means_of_a_record_pass():
    with pytest.raises(MixedRecords, match="tokens"):
        run(token_mean, length=6)
    run(token_sum, length=6)


@pytest.mark.parametrize(
    ("loss", "reduction"),
    [
        (F.cross_entropy, "sum"),
        (F.cross_entropy, "none"),
        (lambda o, y: F.cross_entropy(o, y, reduction="sum"), "mean"),
        (lambda o, y: F.mse_loss(o, one_hot(y), reduction="sum"), "mean"),
    ],
)
def test_a_wrong_declaration_is_refused(loss, reduction):
    with pytest.raises(MixedRecords, match="loss_reduction"):
        run(loss, reduction=reduction)


class Centred(nn.Module):
    """Subtracts the batch's mean, with no parameter involved."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x - x.mean(0))


def test_a_model_that_mixes_without_parameters_is_refused():
    with pytest.raises(MixedRecords, match="Centred"):
        run(F.cross_entropy, model=Centred())


def test_dropout_does_not_look_like_mixing():
    run(F.cross_entropy, model=nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3)))


def test_after_the_first_batches_and_an_early_end_nothing_is_left_behind():
    for steps in (0, 1, 2, 6):
        run(F.cross_entropy, steps=steps)


def test_weights_of_records_that_the_batch_decides_are_refused():
    """Each class weighs the inverse of how often the batch has it."""
    with pytest.raises(MixedRecords, match=r"several rows|other records"):
        run(
            lambda o, y: (F.cross_entropy(o, y, reduction="none") / torch.bincount(y, minlength=3)[y]).sum(),
            reduction="sum",
        )
