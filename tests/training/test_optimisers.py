"""Optimisers for noisy gradients: what each promises of noise, that none has a price, and that they go together."""

from __future__ import annotations

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import Clipping, Speed, make_private, noise
from discreet.training.optimisers import AdamBC, DiSK, ExponentialAverage, TailAverage
from discreet.training.optimisers.adam import standard_error
from tests.training.loops import network, private, run, step, weights
from tests.training.test_noise import Anticorrelated

FAR = 6.2  # standard errors: a false alarm in 2e-9 runs


def noisy(optimizer, size=20_000, steps=40, batch=10, **options):
    """A run whose records have no gradient: what the optimiser is given is noise, of multiplier 2 and clip norm 1."""
    model = nn.Linear(size, 1, bias=False)
    nn.init.zeros_(model.weight)
    facts = {"noise_multiplier": 2.0, "epochs": steps, "loss_reduction": "mean", "rng": 5} | options
    model, optimizer, loader = make_private(
        model,
        optimizer(model.parameters()),
        DataLoader(TensorDataset(torch.zeros(batch, size)), batch),
        **facts,
    )
    for _ in range(steps):
        for (x,) in loader:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    return model, optimizer


@pytest.mark.parametrize("schedule", [None, lambda t: 1.0 + t % 3])
def test_second_moments_are_free_of_the_noise_that_is_known(schedule):
    """The mean over 20,000 coordinates of v less the noise is zero, within 6.2 of its standard errors (false alarms:
    2e-9); Adam's own is 13 times as far off or more."""
    model, optimizer = noisy(lambda p: AdamBC(p, lr=0.0, betas=(0.9, 0.95)), noise_schedule=schedule)
    state = optimizer.state[model.weight]
    corrected = 1 - 0.95 ** state["step"]
    biased, known = float(state["square"].mean()) / corrected, state["noise"] / corrected
    sizes = [(1.0 if schedule is None else schedule(t)) ** 2 * 0.95 ** (39 - t) for t in range(40)]
    error = known * math.sqrt(2 / 20_000 * sum(s * s for s in sizes)) / sum(sizes)
    assert abs(biased - known) < FAR * error
    assert biased > 13 * FAR * error
    if schedule is None:
        assert known == pytest.approx((2.0 * (1 + 2.0**-10) / 10) ** 2, rel=1e-6)
        assert error == pytest.approx(known * standard_error(0.95, 40) / math.sqrt(20_000), rel=1e-6)


def test_where_there_is_signal_its_second_moment_is_found():
    """Gradients of 0.1 under noise of 1: the corrected moment is 0.01, where Adam's is 1.01."""
    torch.manual_seed(0)
    weight = nn.Parameter(torch.zeros(200_000))
    optimizer = AdamBC([weight], lr=0.0, betas=(0.9, 0.9))
    optimizer.privacy = type("Known", (), {"noise_variance": lambda self, p: 1.0})()
    for _ in range(60):
        weight.grad = 0.1 + torch.randn(200_000)
        optimizer.step()
    state = optimizer.state[weight]
    found = float((state["square"] - state["noise"]).mean()) / (1 - 0.9**60)
    error = standard_error(0.9, 60) * 1.02 / math.sqrt(200_000)
    assert abs(found - 0.01) < FAR * error < 0.005


def test_without_noise_it_is_adam_and_a_floor_holds_where_there_is_nothing_but_noise():
    ours, theirs = network(), network()
    pairs = (
        (AdamBC(ours.parameters(), lr=0.01, weight_decay=0.1), ours),
        (
            torch.optim.AdamW(theirs.parameters(), lr=0.01, weight_decay=0.1, eps=1e-12),
            theirs,
        ),
    )
    for seed in range(5):
        for optimizer, model in pairs:
            torch.manual_seed(seed)
            step(model, optimizer, (torch.randn(8, 4), torch.randint(0, 2, (8,))))
    assert torch.allclose(weights(ours), weights(theirs), rtol=1e-4, atol=1e-6)
    model, _ = noisy(lambda p: AdamBC(p, lr=1.0, betas=(0.0, 0.95)), size=2_000, steps=12)
    assert float(weights(model).abs().max()) < 12 * 6 / math.sqrt(standard_error(0.95, 12)), (
        "steps of noise are bounded"
    )


def test_noise_that_says_nothing_of_its_size_is_refused_before_the_charge():
    charged = []
    book = type("Book", (), {"charge": lambda self, *a, **k: charged.append(1)})()
    with pytest.raises(ValueError, match="spread"):
        private(noise=Anticorrelated(), optimizer=AdamBC, book=book)
    with pytest.raises(ValueError, match="depend on each other"):
        private(noise=noise.LambdaCGD(), optimizer=lambda p, lr: DiSK(AdamBC(p, lr=lr)), book=book)
    assert not charged
    model, optimizer, loader = private(noise=noise.LambdaCGD(), optimizer=AdamBC)
    run(model, optimizer, loader)
    size = (1 + 2.0**-10) / 10
    back = noise.LambdaCGD().strategy(optimizer.privacy.plan.participation, 12).back
    assert optimizer.privacy.noise_variance(model[0].weight) == pytest.approx(size**2 * (1 + back**2), rel=1e-6)


@pytest.mark.parametrize("given", [noise.BLT(buffers=2), noise.Banded(bands=3), noise.Tree()])
def test_the_variance_of_a_steps_noise_is_that_of_its_row(given):
    from discreet.mechanisms.factorization import noise_matrix

    taking_part = given.sampler(10, 60).participation
    stream, rows = given.begun(taking_part, 12), noise_matrix(given.strategy(taking_part, 12))
    assert [stream.spread(t) ** 2 for t in range(12)] == pytest.approx((rows**2).sum(1).tolist(), rel=1e-9)


# --- the filter ------------------------------------------------------------------------------------------------------


def test_a_filter_leaves_the_share_of_noise_that_it_says():
    """κ/(2-κ) of the variance, within 6.2 standard errors over 20,000 coordinates; not that of 1.1 times the gain."""
    for gain in (0.2, 0.5):
        model, optimizer = noisy(lambda p, k=gain: DiSK(torch.optim.SGD(p, lr=0.0), gain=k), steps=60)
        share = float(optimizer.state[model.weight]["mean"].square().mean()) / (2.0 * (1 + 2.0**-10) / 10) ** 2
        error = math.sqrt(2 / 20_000)
        wanted = gain / (2 - gain) + 2 * (1 - gain) / (2 - gain) * (1 - gain) ** (2 * 59)
        assert abs(share / wanted - 1) < FAR * error
        assert abs(share / (1.1 * gain / (2 - 1.1 * gain)) - 1) > FAR * error
        assert optimizer.state[model.weight]["variance"] == pytest.approx(
            wanted * (2.0 * (1 + 2.0**-10) / 10) ** 2, rel=1e-6
        )


def test_on_a_quadratic_the_filter_does_not_lag_where_an_average_does():
    curvature = torch.tensor([1.0, 3.0])

    def course(optimizer, weight, settled=True):
        places = []
        for _ in range(12):
            weight.grad = curvature * weight.detach()
            optimizer.step()
            places.append((optimizer.iterate(weight) if settled else weight).detach().clone())
        return torch.stack(places)

    start = [nn.Parameter(torch.ones(2)) for _ in range(3)]
    plain = course(torch.optim.SGD([start[0]], lr=0.2), start[0], settled=False)
    filtered = course(DiSK(torch.optim.SGD([start[1]], lr=0.2), gain=0.3), start[1])
    averaged = course(torch.optim.SGD([start[2]], lr=0.06, momentum=0.7), start[2], settled=False)
    assert torch.allclose(filtered, plain, atol=1e-5)
    assert float((averaged - plain).abs().max()) > 0.1


def test_parameters_are_the_model_where_it_is_settled_and_after_the_last_step():
    model, optimizer, loader = private(optimizer=lambda p, lr: DiSK(torch.optim.SGD(p, lr=lr), gain=0.5))
    step(model, optimizer, next(iter(loader)))
    ahead = weights(model).clone()
    assert torch.equal(ahead, weights(model))
    step(model, optimizer, next(iter(loader)))
    moved = weights(model).clone()
    with optimizer.settled():
        inside = weights(model).clone()
    assert not torch.equal(inside, moved)
    assert torch.equal(weights(model), moved)
    while optimizer.privacy.remaining_steps:
        for batch in loader:
            step(model, optimizer, batch)
            if not optimizer.privacy.remaining_steps:
                break
    last = weights(model).clone()
    with optimizer.settled():
        assert torch.equal(weights(model), last)


# --- averages --------------------------------------------------------------------------------------------------------


def test_averages_follow_steps_and_not_pieces():
    """How many pieces a batch has is private: averages of a run in pieces are those of the whole run."""
    found = []
    for pieces in (None, 3):
        model, optimizer, loader = private(speed=Speed(max_physical_batch_size=pieces))
        tail, running = TailAverage(optimizer, start=7), ExponentialAverage(optimizer, decay=0.9)
        run(model, optimizer, loader)
        assert tail.steps == running.steps == 12
        found.append(torch.cat([v.reshape(-1) for v in tail.values + running.values]))
    assert torch.allclose(*found, atol=1e-5)


def test_an_average_has_less_noise_and_is_put_on_and_taken_off():
    model, optimizer = noisy(lambda p: torch.optim.SGD(p, lr=0.1), size=100, steps=3)
    average = ExponentialAverage(optimizer, decay=0.5)
    before = weights(model).clone()
    average.values = [torch.full_like(v, 2.0) for v in average.values]
    with average.applied():
        assert float(weights(model).mean()) == 2.0
    assert torch.equal(weights(model), before)
    state = average.state_dict()
    average.values, average.steps = [torch.zeros_like(v) for v in average.values], 9
    average.load_state_dict(state)
    average.copy_to_parameters()
    assert float(weights(model).mean()) == 2.0
    assert average.steps == 0
    average.remove()


def test_averages_are_of_the_model_and_not_of_the_points_ahead_of_it():
    model, optimizer, loader = private(optimizer=lambda p, lr: DiSK(torch.optim.SGD(p, lr=lr), gain=0.4), epochs=1)
    tail, seen = TailAverage(optimizer), []
    for batch in loader:
        step(model, optimizer, batch)
        with optimizer.settled():
            seen.append(weights(model).clone())
    found = torch.cat([v.reshape(-1) for v in tail.values])
    assert torch.allclose(found, torch.stack(seen).mean(0), atol=1e-6)


@pytest.mark.parametrize("speed", [None, Speed(max_physical_batch_size=2)])
def test_what_follows_the_inner_optimiser_of_a_filter_follows_its_steps(speed):
    """An average and a scheduler of it: of the model, and not of pieces."""
    model, optimizer, loader = private(
        optimizer=lambda p, lr: DiSK(torch.optim.SGD(p, lr=lr), gain=0.4), epochs=1, speed=speed
    )
    inner, outer = TailAverage(optimizer.base), TailAverage(optimizer)
    slower = torch.optim.lr_scheduler.ExponentialLR(optimizer.base, 0.5)
    for batch in loader:
        step(model, optimizer, batch)
        slower.step()
    assert inner.steps == outer.steps == slower.last_epoch
    for a, b in zip(inner.values, outer.values, strict=True):
        assert torch.allclose(a, b, atol=1e-6)


# --- all together ----------------------------------------------------------------------------------------------------

MADE = {
    "AdamBC": lambda p, lr: AdamBC(p, lr=lr),
    "DiSK of SGD": lambda p, lr: DiSK(torch.optim.SGD(p, lr=lr, momentum=0.9)),
    "DiSK of Adam": lambda p, lr: DiSK(torch.optim.Adam(p, lr=lr)),
    "DiSK of AdamBC": lambda p, lr: DiSK(AdamBC(p, lr=lr), gain=0.3),
}


@pytest.mark.parametrize(
    "name", [name if name == "DiSK of AdamBC" else pytest.param(name, marks=pytest.mark.slow) for name in MADE]
)
def test_they_cost_nothing_learn_and_go_on_from_a_checkpoint_bit_for_bit(name):
    def begun(pieces=None):
        return private(
            optimizer=MADE[name],
            lr=0.05,
            noise_multiplier=0.5,
            epochs=6,
            speed=Speed(max_physical_batch_size=pieces),
            clipping=Clipping(max_grad_norm=1.0),
        )

    _, plain, _ = private(noise_multiplier=0.5, epochs=6)
    model, optimizer, loader = begun()
    assert optimizer.privacy.planned == plain.privacy.planned
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1000)
    for count, batch in enumerate(loader):
        if count == 4:
            break
        step(model, optimizer, batch)
        scheduler.step()
    checkpoint = copy.deepcopy(optimizer.privacy.state_dict())
    run(model, optimizer, loader, 5)
    other, again, batches = begun()
    again.privacy.load_state_dict(checkpoint)
    run(other, again, batches, 5)
    assert torch.equal(weights(model), weights(other))
    x, y = loader.dataset.tensors
    with torch.no_grad():
        assert float(F.cross_entropy(model(x), y)) < 0.95 * float(F.cross_entropy(network()(x), y))
    third, pieced, parts = begun(pieces=4)
    run(third, pieced, parts, 6)
    fourth, whole, batches = begun()
    run(fourth, whole, batches, 6)
    assert torch.allclose(weights(third), weights(fourth), atol=1e-3)


def test_public_mistakes_are_refused():
    weight = [nn.Parameter(torch.zeros(2))]
    for wrong in ({"betas": (1.0, 0.9)}, {"floor": -1.0}, {"eps": 0.0}, {"lr": -1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            AdamBC(weight, **wrong)
    for gain in (0.0, 1.5):
        with pytest.raises(ValueError, match="gain"):
            DiSK(torch.optim.SGD(weight, lr=0.1), gain=gain)
    with pytest.raises(ValueError, match="filtered"):
        DiSK(DiSK(torch.optim.SGD(weight, lr=0.1)))
    with pytest.raises(ValueError, match="start"):
        TailAverage(torch.optim.SGD(weight, lr=0.1), start=0)
    with pytest.raises(ValueError, match="decay"):
        ExponentialAverage(torch.optim.SGD(weight, lr=0.1), decay=1.0)
