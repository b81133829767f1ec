"""The plan: the contract's loop, the account, refusals, checkpoints, samplers."""

from __future__ import annotations

import copy
import html
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

import discreet as dp
from discreet import events as ev
from discreet.training import (
    Clipping,
    MixedRecords,
    PerUser,
    PrivateTrainingError,
    Quantile,
    Speed,
    TruncatedPoisson,
    make_private,
    replace_batch_norm,
)
from discreet.training.loader import PLACEHOLDER
from discreet.training.planning import SAMPLERS
from tests.training.loops import N, copy_of, data, network, private, run, step, weights

# --- the contract ------------------------------------------------------------------------------------------------


def test_the_contract():
    """The lines of the design, as written there."""
    model = network()
    loss_fn = nn.CrossEntropyLoss()
    same, keys = model, list(model.state_dict())
    optimizer, loader = torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data(), batch_size=10)
    model, optimizer, loader = make_private(
        model, optimizer, loader, epsilon=3.0, delta=1e-5, epochs=10, max_grad_norm=1.0, loss_reduction="mean"
    )
    for _ in range(10):
        for x, y in loader:  # the user's own loop, unchanged, once per epoch
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()
    assert model is same
    assert list(model.state_dict()) == keys
    assert isinstance(optimizer, torch.optim.Optimizer)
    assert len(loader) == 6
    assert optimizer.privacy.executed == optimizer.privacy.planned
    assert 2.9 < optimizer.privacy.epsilon(delta=1e-5) <= 3.0
    with pytest.raises(dp.BudgetExceeded, match="61"):
        run(model, optimizer, loader, 1)


def test_the_event_is_what_ran():
    model, optimizer, loader = private()
    assert dp.events.leaves(optimizer.privacy.executed) == {}
    for batch in list(loader)[:1]:
        del batch
    for i, batch in enumerate(loader):
        if i == 3:
            break
        step(model, optimizer, batch)
    one = ev.PoissonSampled(rate=1 / 6, event=ev.Gaussian(noise_multiplier=1.0))
    assert ev.leaves(optimizer.privacy.executed) == {one: 3}
    assert ev.leaves(optimizer.privacy.planned) == {one: 12}


def test_the_gradient_is_the_clipped_mean_by_a_public_constant_plus_noise():
    """With hardly any noise the gradient is the loop's; its divisor is the expected batch size, not the realised
    one."""
    from tests.training.oracle import naive

    for reduction, divisor in (("mean", 10), ("sum", 1), ("none", 1)):
        model, optimizer, loader = private(noise_multiplier=1e-9, loss_reduction=reduction)
        for x, y in loader:
            optimizer.zero_grad()
            wanted = naive(copy_of(model), (x, y), lambda m, a, b: F.cross_entropy(m(a), b), Clipping(), 1.0) / divisor
            loss = F.cross_entropy(model(x), y, reduction=reduction)
            loss.backward(torch.ones_like(loss))
            optimizer.step()
            found = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
            torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_any_optimiser_and_scheduler(kind):
    model, optimizer, loader = private(optimizer=getattr(torch.optim, kind))
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=13, cycle_momentum=False)
    for _ in range(2):
        for batch in loader:
            step(model, optimizer, batch)
            scheduler.step()
    assert optimizer.privacy.remaining_steps == 0


def test_two_of_three_decide_the_third():
    _, a, _ = private(epsilon=2.0, delta=1e-5, noise_multiplier=None, epochs=3)
    assert a.privacy.epsilon(1e-5) == pytest.approx(2.0, rel=1e-5)
    _, b, _ = private(epsilon=2.0, delta=1e-5, noise_multiplier=a.privacy.plan.noise_multiplier, epochs=None)
    assert b.privacy.plan.steps == 18
    for wrong in ({"epochs": None}, {"epsilon": 1.0, "delta": 1e-5}, {"epsilon": 1.0, "epochs": None}):
        with pytest.raises(ValueError, match=r"exactly two|belong together"):
            private(**wrong)


def test_a_book_is_charged_for_the_whole_plan_first():
    class Book:
        charged = ()

        def charge(self, event, label="", *, unit="one record", reproducible=False):
            self.charged += ((event, label),)

    class Empty:
        def charge(self, event, label="", *, unit="one record", reproducible=False):
            raise dp.BudgetExceeded("no")

    book = Book()
    _, optimizer, _ = private(book=book, label="digits")
    assert book.charged == ((optimizer.privacy.planned, "digits"),)
    with pytest.raises(dp.BudgetExceeded):
        private(book=Empty())


# --- samplers ----------------------------------------------------------------------------------------------------

PRICES = {
    "poisson": ev.PoissonSampled(rate=1 / 6, event=ev.Gaussian(noise_multiplier=1.0)) * 12,
    "fixed-size": ev.FixedSizeSampled(rate=1 / 6, event=ev.Gaussian(noise_multiplier=0.5, adjacency="replace")) * 12,
    "shuffled": ev.Shuffled(event=ev.Gaussian(noise_multiplier=0.5, adjacency="replace")) * 2,
    "kept-bins": ev.BallsInBins(bins=6, event=ev.Gaussian(noise_multiplier=1.0) * 2),
    "fixed-order": ev.Gaussian(noise_multiplier=1.0, adjacency="zero-out") * 2,
    "balls-in-bins": ev.BallsInBins(bins=6, event=ev.Gaussian(noise_multiplier=1.0)) * 2,
    "truncated-poisson": ev.TruncatedPoissonSampled(
        rate=1 / 6, max_batch_size=30, dataset_size=60, event=ev.Gaussian(noise_multiplier=1.0)
    )
    * 12,
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_states_its_price(name):
    model, optimizer, loader = private(sampler=name)
    run(model, optimizer, loader)
    assert ev.leaves(optimizer.privacy.planned) == ev.leaves(PRICES[name])
    assert optimizer.privacy.executed == optimizer.privacy.planned
    assert math.isfinite(optimizer.privacy.epsilon(1e-5))


def test_a_book_shows_no_more_than_what_was_asked_of_a_run():
    """It was told the event alone, and showed 2.6 for a run that was asked for with 2."""
    book = dp.Ledger("sqlite://").open("b", epsilon=6.0, delta=1e-5)
    private(noise_multiplier=None, epsilon=2.0, delta=1e-6, epochs=2, book=book)
    assert book.spent().epsilon == pytest.approx(2.0, abs=1e-6)


def test_a_begun_pass_costs_a_pass():
    model, optimizer, loader = private(sampler="shuffled")
    step(model, optimizer, next(iter(loader)))
    one = ev.Shuffled(event=ev.Gaussian(noise_multiplier=0.5, adjacency="replace"))
    assert ev.leaves(optimizer.privacy.executed) == {one: 1}


def drawn(loader):
    """The indices of each logical batch of a pass."""
    from collections import deque

    from discreet.training.loader import _Drawn

    return list(_Drawn(loader, loader.run.begin_pass(), deque()))


def test_passes_deal_every_record_once():
    for name in ("shuffled", "balls-in-bins"):
        _, _, loader = private(sampler=name)
        found = sorted(i for batch in drawn(loader) for i in batch if i != PLACEHOLDER)
        assert found == list(range(N))


def test_leaving_a_pass_does_not_deal_a_record_twice():
    """A shuffled pass that is left goes on after the batch it stopped at, which is lost: its records had their turn."""
    model, optimizer, loader = private(sampler="shuffled")
    first = drawn(loader)
    for i, batch in enumerate(loader):
        if i == 2:
            break
        step(model, optimizer, batch)
    assert drawn(loader) == first[3:]


FALSE_ALARM = 1e-9


def test_poisson_batches_have_binomial_sizes():
    """Mean and variance of the batch size; the same test rejects a fixed size and a rate that is off by a tenth."""
    from scipy.stats import norm

    _, _, loader = private(records=data(600), batch=60, rng=3, epochs=400)
    sizes = np.array([len(b) for b in _draws(loader, range(2000))])

    def fits(values, rate):
        deviation = abs(values.mean() - 600 * rate) / math.sqrt(600 * rate * (1 - rate) / len(values))
        spread = values.var() / (600 * rate * (1 - rate))
        far = norm.isf(FALSE_ALARM / 4)
        return deviation < far and abs(spread - 1) < far * math.sqrt(2 / len(values))

    assert fits(sizes, 0.1)
    assert not fits(sizes, 0.11)
    assert not fits(np.full(len(sizes), 60), 0.1)


def _draws(loader, steps):
    return [
        loader.sampler.draw(s, loader.records, range(loader.records), None, loader.run.streams.sampling(s))
        for s in steps
    ]


def test_an_empty_draw_is_a_step_on_a_placeholder_of_weight_zero():
    model, optimizer, loader = private(records=data(40), batch=1, epochs=1, noise_multiplier=1e-9, rng=5)
    before = weights(model)
    empty = 0
    for x, y in loader:
        assert len(x) >= 1
        lonely = loader.run.batch.weights is not None
        step(model, optimizer, (x, y))
        if lonely:
            empty += 1
            assert float(x.abs().sum()) == 0
            torch.testing.assert_close(weights(model), before, rtol=0, atol=1e-7)
        before = weights(model)
    assert empty > 3
    assert optimizer.privacy.steps == 40


def test_more_records_than_truncated_batches_are_priced_for_are_refused_not_cut():
    """Of the first ones another comes in when one leaves, so that two records change."""

    class Unpaid:
        def charge(self, event, label="", *, unit="one record", reproducible=False):
            raise AssertionError("charged")

    sampler = TruncatedPoisson(batch_size=10, dataset_size=N - 1)
    with pytest.raises(ValueError, match="dataset_size is 59, but there are more records"):
        private(sampler=sampler, book=Unpaid())
    _, _, loader = private(sampler=TruncatedPoisson(batch_size=10, dataset_size=N + 1))
    assert loader.records == N


def test_padded_batches_have_one_shape():
    sampler = TruncatedPoisson(batch_size=10, dataset_size=N, max_batch_size=16)
    model, optimizer, loader = private(sampler=sampler)
    assert {len(x) for x, _ in loader} == {16}
    run(model, optimizer, loader, 1)


def test_users_bring_at_most_their_share():
    users = np.repeat(np.arange(6), 10)
    sampler = PerUser(batch_size=2, dataset_size=6, users=users, records_per_user=3)
    _, optimizer, loader = private(sampler=sampler)
    for batch in _draws(loader, range(30)):
        assert max(np.bincount(users[batch], minlength=6)) <= 3
    assert optimizer.privacy.plan.sampler.expected == 2


class Words(Dataset):
    """Records that are dictionaries."""

    def __len__(self):
        return 20

    def __getitem__(self, i):
        return {"x": torch.full((3,), float(i)), "name": f"record {i}", "y": i % 2}


def test_dictionaries_and_custom_collate_and_workers():
    def collate(records):
        return {"x": torch.stack([r["x"] for r in records]), "names": [r["name"] for r in records]}

    for workers, function in ((0, None), (0, collate), (1, collate)):
        model = nn.Linear(3, 1)
        model, optimizer, loader = make_private(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            DataLoader(Words(), 2, collate_fn=function, num_workers=workers),
            epochs=1,
            noise_multiplier=1.0,
            loss_reduction="sum",
            rng=1,
        )
        for batch in loader:
            optimizer.zero_grad()
            model(batch["x"]).sum().backward()
            optimizer.step()
        assert optimizer.privacy.steps == 10


def test_loaders_with_an_order_of_their_own_are_refused():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    options = {"epochs": 1, "noise_multiplier": 1.0, "loss_reduction": "mean"}
    for loader, reason in (
        (DataLoader(data(), 10, sampler=WeightedRandomSampler([1.0] * N, N)), "WeightedRandomSampler"),
        (DataLoader(data(), batch_sampler=[[0, 1]]), "batch sampler"),
        ([1, 2], "list"),
        (DataLoader(Stream(), 4), "iterable"),
    ):
        with pytest.raises(ValueError, match=reason):
            make_private(model, optimizer, loader, **options)


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter([])


# --- large batches in pieces -------------------------------------------------------------------------------------


def test_pieces_change_nothing():
    """Same seed, same batches, same noise: the weights are those of whole batches, up to rounding."""
    whole = run(*private())
    pieces = run(*private(speed=Speed(max_physical_batch_size=3)))
    torch.testing.assert_close(weights(whole), weights(pieces), rtol=1e-5, atol=1e-6)


def test_leaving_in_the_middle_of_a_batch_neither_loses_nor_doubles_noise():
    model, optimizer, loader = private(speed=Speed(max_physical_batch_size=3))
    steps = optimizer.privacy.steps
    for batch in loader:
        if not loader.run.batch.last:
            before = weights(model)
            step(model, optimizer, batch)
            assert torch.equal(before, weights(model))
            break
    assert optimizer.privacy.steps == steps
    run(model, optimizer, loader)
    assert optimizer.privacy.steps == optimizer.privacy.plan.steps
    whole = run(*private())
    torch.testing.assert_close(weights(whole), weights(model), rtol=1e-5, atol=1e-6)


# --- refusals ----------------------------------------------------------------------------------------------------


def test_a_batch_serves_one_step():
    model, optimizer, loader = private()
    batch = next(iter(loader))
    step(model, optimizer, batch)
    with pytest.raises(PrivateTrainingError, match="one step"):
        step(model, optimizer, batch)


def test_a_closure_is_called_once_and_changes_nothing():
    """As some trainers do: the forward and backward pass inside step."""
    model, optimizer, loader = private()
    for x, y in loader:

        def closure(x=x, y=y):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            return loss

        assert float(optimizer.step(closure).detach()) > 0
    assert torch.equal(weights(model), weights(run(*private(), 1)))


def test_an_optimizer_that_searches_along_a_line_is_refused():
    class Twice(torch.optim.Optimizer):
        def __init__(self, parameters, lr):
            super().__init__(parameters, {"lr": lr})

        def step(self, closure):
            return closure() + closure()

    with pytest.raises(ValueError, match="LBFGS"):
        private(optimizer=torch.optim.LBFGS)
    _, optimizer, loader = private(optimizer=Twice)
    next(iter(loader))
    with pytest.raises(PrivateTrainingError, match="closure twice"):
        optimizer.step(lambda: 0.0)


def test_a_gradient_from_elsewhere_is_refused_by_name():
    model, optimizer, loader = private()
    x, _ = next(iter(loader))
    optimizer.zero_grad()
    (model(x).sum() + (model[2].weight ** 2).sum()).backward()
    with pytest.raises(PrivateTrainingError, match=r"'2\.weight'"):
        optimizer.step()


def test_parameters_outside_the_optimizer_are_refused_by_name():
    model = network()
    with pytest.raises(ValueError, match=r"'2\.weight'"):
        make_private(
            model,
            torch.optim.SGD(model[0].parameters(), lr=0.1),
            DataLoader(data(), 10),
            epochs=1,
            noise_multiplier=1.0,
            loss_reduction="mean",
        )


def test_batch_norm_is_refused_by_name_and_replaced_in_one_line():
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    with pytest.raises(ValueError, match=r"'1' is a BatchNorm1d.*replace_batch_norm"):
        private(model)
    run(*private(replace_batch_norm(model)))


def test_functional_batch_norm_is_refused():
    class Sneaky(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.layer = nn.Parameter(torch.ones(4)), nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(F.batch_norm(x, None, None, weight=self.w, training=True))

    with pytest.raises((ValueError, MixedRecords), match=r"records of the batch|mixes the records"):
        run(*private(Sneaky()))


def test_a_model_that_mixes_records_is_refused():
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Parameter(torch.ones(()))

        def forward(self, x):
            h = self.a(x)
            return ((h @ h.T) * self.b) @ h

    with pytest.raises(MixedRecords, match=r"compares records|other records"):
        run(*private(Attends()))


def test_frozen_parameters_cost_nothing():
    model = network()
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    model, optimizer, loader = private(model, epochs=1)
    run(model, optimizer, loader, 1)
    assert torch.equal(before, model[0].weight)


# --- clip state, schedules, checkpoints --------------------------------------------------------------------------


def test_adaptive_clipping_follows_the_quantile_and_is_paid_for():
    clipping = Clipping(max_grad_norm=50.0, adaptive=Quantile(quantile=0.5, learning_rate=0.5, count_noise=1.0))
    model, optimizer, loader = private(clipping=clipping, epochs=10)
    run(model, optimizer, loader, 10)
    assert optimizer.privacy.clip_norm < 5.0
    plan = optimizer.privacy.plan
    together = (plan.sum_multiplier(0) ** -2 + 2.0**-2) ** -0.5
    assert together == pytest.approx(1.0)
    assert ev.leaves(optimizer.privacy.planned) == ev.leaves(PRICES["poisson"] * 5)


def test_schedules_enter_the_account():
    _, optimizer, _ = private(noise_schedule=lambda s: 1.0 if s < 6 else 2.0, clip_schedule=lambda s: 1 / (1 + s))
    rate = 1 / 6
    assert ev.leaves(optimizer.privacy.planned) == {
        ev.PoissonSampled(rate=rate, event=ev.Gaussian(noise_multiplier=1.0)): 6,
        ev.PoissonSampled(rate=rate, event=ev.Gaussian(noise_multiplier=2.0)): 6,
    }


@pytest.mark.parametrize("name", SAMPLERS)
def test_resuming_is_bit_identical_under_a_seed(name, tmp_path):
    """Model, optimiser, sampler, noise, clip state and account, with dropout, from the middle of a pass."""

    def fresh():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        clipping = Clipping(adaptive=Quantile(count_noise=2.0))
        return private(model, optimizer=torch.optim.Adam, sampler=name, clipping=clipping)

    model, optimizer, loader = fresh()
    for i, batch in enumerate(loader):
        if i == 4:
            break
        step(model, optimizer, batch)
    torch.save(optimizer.privacy.state_dict(), tmp_path / "checkpoint.pt")
    remaining = optimizer.privacy.remaining_steps

    def finish(model, optimizer, loader):
        torch.manual_seed(9)
        while optimizer.privacy.remaining_steps:
            for batch in loader:
                if optimizer.privacy.remaining_steps:
                    step(model, optimizer, batch)
        return weights(model), optimizer.privacy.clip_norm

    straight, norm = finish(model, optimizer, loader)
    other = fresh()
    other[1].privacy.load_state_dict(torch.load(tmp_path / "checkpoint.pt", weights_only=True))
    assert other[1].privacy.remaining_steps == remaining
    resumed, resumed_norm = finish(*other)
    assert torch.equal(straight, resumed)
    assert norm == resumed_norm


def test_a_checkpoint_of_another_plan_is_refused():
    _, optimizer, _ = private()
    _, other, _ = private(noise_multiplier=2.0)
    with pytest.raises(ValueError, match="another plan"):
        other.privacy.load_state_dict(optimizer.privacy.state_dict())


def test_without_a_seed_two_runs_differ_and_with_one_they_agree():
    assert not torch.equal(weights(run(*private(rng=None))), weights(run(*private(rng=None))))
    assert torch.equal(weights(run(*private())), weights(run(*private())))
    _, optimizer, _ = private(rng=None)
    assert not optimizer.privacy.reproducible


def test_a_gan_trains_with_one_private_optimizer():
    """The discriminator sees private records; the generator's step leaves nothing behind in its account."""
    torch.manual_seed(0)
    generator, critic = (
        nn.Linear(2, 4),
        nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1)),
    )
    theirs = torch.optim.Adam(generator.parameters())
    critic, ours, loader = private(critic, optimizer=torch.optim.Adam)
    for x, _ in loader:
        ours.zero_grad()
        fake = generator(torch.randn(len(x), 2)).detach()
        loss = F.softplus(-critic(x)).mean() + F.softplus(critic(fake)).mean()
        loss.backward()
        ours.step()
        theirs.zero_grad()
        F.softplus(-critic(generator(torch.randn(7, 2)))).mean().backward()
        theirs.step()
    assert ours.privacy.steps == 6
    assert generator.weight.grad is not None


def test_several_private_optimizers_at_once():
    a, b = private(network(1), rng=1), private(network(2), rng=2)
    alone = weights(run(*private(network(1), rng=1)))
    for first, second in zip(a[2], b[2], strict=True):
        step(a[0], a[1], first)
        step(b[0], b[1], second)
    run(*a, 1), run(*b, 1)
    assert torch.equal(weights(a[0]), alone)


def test_reports_show_no_private_value():
    _, optimizer, loader = private()
    text = repr(optimizer.privacy) + repr(loader)
    assert "tensor" not in text
    assert copy.copy(text)


def test_users_that_do_not_name_each_record_are_found_before_the_charge():
    class Unpaid:
        def charge(self, event, label="", *, unit="one record", reproducible=False):
            raise AssertionError("charged")

    with pytest.raises(ValueError, match="one user for each record"):
        private(sampler=PerUser(batch_size=2, dataset_size=6, users=range(N - 1)), book=Unpaid())


def test_a_report_escapes_the_words_of_a_run_and_says_which_had_a_seed():
    """What a label and a reason say is shown, never run; a run with a seed, or in debug mode, is not called private."""
    book = dp.Ledger("sqlite://").open("<b>survey", epsilon=9.0, delta=1e-5)
    kinds = [
        {"label": "<script>alert(1)</script>"},
        {"unverified": "<img src=x onerror=1>"},
        {"label": "for eyes", "debug": True},
        {"label": "seed", "rng": 3},
    ]
    for options in kinds:
        private(book=book, noise_multiplier=3.0, epochs=1, **{"rng": None, **options})
    entries = [entry for entry in book.entries() if entry.kind == "charge"]
    assert [entry.seeded for entry in entries] == [False, False, True, True]
    assert ["not private" in entry.label for entry in entries] == [False, False, True, False]  # of debug mode
    page = dp.report(book).html()
    for tag in ("<script>alert", "<img src=x", "<b>survey"):
        assert tag not in page
        assert html.escape(tag) in page
    assert "2 of 4 releases" in page
