"""Parameters outside the private model that the loop trains with gradients of records, and those that it may train."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

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


def by_hand(p):
    with torch.no_grad():
        p.sub_(p.grad, alpha=0.1)


def unseen(p):
    """As optimisers of other libraries do: torch does not count such a write."""
    p.data.sub_(p.grad, alpha=0.1)


@pytest.mark.parametrize("change", [by_hand, unseen])
@pytest.mark.parametrize("forget", [False, True])
def test_a_head_that_is_changed_without_an_optimiser_of_torchs_is_refused(change, forget):
    both = Both(head())

    def train():
        for x, y in both.loader:
            both.optimizer.zero_grad()
            behind(both.model, both.other, x, y).backward()
            both.optimizer.step()
            for p in both.other.parameters():
                change(p)
                p.grad = None if forget else p.grad

    with pytest.raises(PrivateTrainingError, match="that you hand to make_private"):
        train()
    assert both.optimizer.privacy.steps == 2


def test_a_run_that_refused_stays_refused_and_public_data_may_train_the_head():
    both = Both(head())
    for _ in range(2):
        with pytest.raises(PrivateTrainingError, match="that you hand to make_private"):
            both.train(behind)
    assert both.optimizer.privacy.steps == 2
    both.own.zero_grad()
    both.other(torch.ones(3, 2)).sum().backward()
    both.own.step()


def train_plainly(steps=3):
    """An ordinary model, trained by an ordinary loop."""
    model = head()
    optimizer = SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(3, 2)).square().sum().backward()
        optimizer.step()
    return float(model(torch.ones(3, 2)).detach().square().sum())


def test_training_leaves_nothing_behind_for_the_optimisers_of_the_process():
    """No run, refused, left or gone, keeps a hook on other optimisers, or hears of them."""
    torch.manual_seed(3)
    alone = train_plainly()
    both = Both(head())
    with pytest.raises(PrivateTrainingError, match="that you hand to make_private"):
        both.train(behind)
    left = Both(head())
    batches = iter(left.loader)
    for _, (x, y) in zip(range(2), batches, strict=False):  # left with such gradients, and never ended
        left.optimizer.zero_grad()
        behind(left.model, left.other, x, y).backward()
        left.optimizer.step()
        torch.manual_seed(3)
        assert train_plainly() == alone  # between the batches of a run that goes on
    seen = weakref.ref(left.optimizer.privacy)
    del left, batches
    gc.collect()
    assert seen() is None
    torch.manual_seed(3)
    assert train_plainly() == alone
    hooks = [*_global_optimizer_pre_hooks.values(), *_global_optimizer_post_hooks.values()]
    assert not [hook for hook in hooks if hook.__module__.startswith("discreet")]


def test_a_head_of_one_run_does_not_stop_another():
    """Two runs whose batches take turns, and a third in a thread of its own: who trains a head is refused alone."""
    honest, other, trains_a_head = Both(head()), Both(head()), Both(head())
    errors = []

    def train():
        try:
            trains_a_head.train(behind)
        except PrivateTrainingError as error:
            errors.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert len(errors) == 1
    for (x, y), (z, t) in zip(honest.loader, other.loader, strict=False):
        for one, a, b in ((honest, x, y), (other, z, t)):
            one.optimizer.zero_grad()
            F.cross_entropy(one.model(a), b).backward()
            one.optimizer.step()
        train_plainly(1)
    assert honest.optimizer.privacy.steps >= 2
    assert trains_a_head.optimizer.privacy.steps == 2


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
        assert nn.utils.get_total_norm([p.grad for p in both.other.parameters()]) > 0  # verification's notes hold them
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
