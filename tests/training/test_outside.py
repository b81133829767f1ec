"""Parameters outside the private model that the loop trains with gradients of records, and those that it may train."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD

from discreet.training import PrivateTrainingError, Speed
from tests.training.loops import private


class Both:
    """The private model and its optimiser, beside another module, or parameter, with an optimiser of its own."""

    def __init__(self, other, **options):
        torch.manual_seed(1)
        self.model, self.optimizer, self.loader = private(**options)
        self.other = other
        self.own = SGD([other] if isinstance(other, nn.Parameter) else other.parameters(), 0.1)

    def train(self, loss, own_first=False, clip=False, none=True):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            self.own.zero_grad(set_to_none=none)
            loss(self.model, self.other, x, y).backward()
            if clip:
                nn.utils.clip_grad_norm_(self.other.parameters(), 0.01)
            for optimizer in (self.own, self.optimizer) if own_first else (self.optimizer, self.own):
                optimizer.step()


def behind(model, head, x, y):
    return F.cross_entropy(head(model(x)), y)


def before(model, encoder, x, y):
    return F.cross_entropy(model(encoder(x)), y)


def tempered(model, temperature, x, y):
    return F.cross_entropy(model(x) * temperature, y)


def head():
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))


REFUSED = {
    "a head": (head, behind, {}),
    "a head that steps first": (head, behind, {"own_first": True}),
    "a head that is clipped": (head, behind, {"clip": True}),
    "a head whose gradients are set to zero": (head, behind, {"none": False}),
    "a recurrent head": (lambda: nn.LSTM(2, 2), lambda m, h, x, y: F.cross_entropy(h(m(x)[None])[0][0], y), {}),
    "an encoder": (lambda: nn.Linear(4, 4), before, {}),
    "a temperature": (lambda: nn.Parameter(torch.ones(())), tempered, {}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_trained_outside_with_gradients_of_records_is_refused(name):
    other, loss, how = REFUSED[name]
    both = Both(other())
    with pytest.raises(PrivateTrainingError, match="that you hand to make_private"):
        both.train(loss, **how)
    assert both.optimizer.privacy.steps <= 2  # the first two batches are verified


def test_a_head_is_refused_where_batches_come_in_pieces():
    both = Both(head(), speed=Speed(max_physical_batch_size=3))
    with pytest.raises(PrivateTrainingError, match="that you hand to make_private"):
        both.train(behind)


def test_the_gradient_that_was_refused_stays_refused_and_no_other_is():
    """The refusal is of a gradient, not of the optimiser: with public data's the head may be trained."""
    both = Both(head())
    with pytest.raises(PrivateTrainingError, match="that you hand to make_private"):
        both.train(behind)
    with pytest.raises(PrivateTrainingError, match="that you hand to make_private"):
        SGD(both.other.parameters(), 0.1).step()
    both.own.zero_grad()
    both.other(torch.ones(3, 2)).sum().backward()
    both.own.step()


def no_gradient(model, head, x, y):
    """A probe that follows the training, and from which nothing comes back."""
    out = model(x)
    return F.cross_entropy(out, y) + F.cross_entropy(head(out.detach()), y)


def as_it_is(model, head, x, y):
    head.requires_grad_(False)
    return behind(model, head, x, y)


def fakes(model, generator, x, y):
    """A generator that is not cut off: what it is sent back comes from fakes alone, shaped like the data or not."""
    noise = torch.randn_like(x) + torch.randn(len(x), 4).type_as(x)
    return F.softplus(-model(x)[:, 0]).mean() + F.softplus(model(generator(noise))[:, 0]).mean()


PASSES = {
    "a frozen head": (head, as_it_is),
    "a probe without a way back": (head, no_gradient),
    "a generator": (lambda: nn.Linear(4, 4), fakes),
}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("own_first", [False, True])
def test_what_the_models_gradients_do_not_go_through_is_trained(name, own_first):
    other, loss = PASSES[name]
    both = Both(other())
    both.train(loss, own_first=own_first)
    assert both.optimizer.privacy.steps >= 6


def test_a_head_that_nobody_trains_passes():
    """Forgotten, not frozen: it has gradients, and keeps its weights."""
    both = Both(head())
    for x, y in both.loader:
        both.optimizer.zero_grad()
        behind(both.model, both.other, x, y).backward()
        both.optimizer.step()
    assert all(p.grad is not None for p in both.other.parameters())


def test_a_head_that_public_data_trains_passes():
    both = Both(head())
    public = torch.randn(9, 2), torch.ones(9).long()
    for x, y in both.loader:
        both.optimizer.zero_grad()
        behind(both.model, both.other, x, y).backward()
        both.own.zero_grad()
        F.cross_entropy(both.other(public[0]), public[1]).backward()
        both.own.step()
        both.optimizer.zero_grad()
        F.cross_entropy(both.model(x), y).backward()
        both.optimizer.step()


def test_an_encoder_that_is_cut_off_keeps_the_gradient_of_public_data():
    both = Both(nn.Linear(4, 4))
    for x, y in both.loader:
        both.own.zero_grad()
        both.other(torch.ones(3, 4)).square().sum().backward()
        both.optimizer.zero_grad()
        before(both.model, lambda x: both.other(x).detach(), x, y).backward()
        both.optimizer.step()
        both.own.step()


def test_a_change_of_each_record_that_an_optimiser_looks_for_passes():
    """An adversarial example: a parameter of this batch alone, a row of it of each record."""
    model, optimizer, loader = private()
    for x, y in loader:
        change = nn.Parameter(torch.zeros_like(x))
        F.cross_entropy(model(x + change), y, reduction="sum").backward()
        SGD([change], 0.1).step()
        optimizer.zero_grad()
        F.cross_entropy(model(x + change.detach().clamp(-0.01, 0.01)), y).backward()
        optimizer.step()
