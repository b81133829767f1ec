"""Noise as a part: prices for a participation, one class for a new one, sums in parts, one step for replay."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import discreet as dp
from discreet import events as ev
from discreet.auditing import ReplayError, replay
from discreet.random import Rng, seeded
from discreet.release import Release
from discreet.training import Clipping, Quantile, Speed, make_private, noise
from discreet.training.memory import SMALL
from discreet.training.noise.base import shown
from discreet.training.sampling.participation import BallsInBinsDealing, PoissonSampling, ShuffledDealing
from tests.training.loops import private, run, step, weights

FALSE_ALARM = 1e-9
BACK = 0.5


class Anticorrelated(noise.Noise):
    """A toy: each step takes half of the last step's noise back. Priced without amplification, as if a record were in
    every step: the sums go through C = (I - BACK·shift)^-1, whose entries are not negative, so that all steps together
    are worst."""

    def __init__(self):
        self.last = None

    def event(self, participation, multipliers):
        if len(set(multipliers)) > 1:
            raise ValueError("noise_schedule is set, but must be left out.")
        row = np.cumsum(BACK ** np.arange(len(multipliers)))  # C times ones
        z = multipliers[0] / float(np.linalg.norm(row)) if multipliers else 1.0
        return ev.Gaussian(noise_multiplier=z / participation.movement, adjacency=participation.adjacency)

    def release(self, step, total, gaussians):
        fresh = [torch.zeros_like(part) for part in total]
        gaussians.add(fresh, step.sigma)
        for i, part in enumerate(total):
            part.add_(fresh[i] if self.last is None else fresh[i] - BACK * self.last[i]).div_(step.divisor)
        self.last = fresh

    def state_dict(self):
        return {"last": self.last}

    def load_state_dict(self, state):
        self.last = state["last"]


def test_a_new_noise_is_one_class_that_is_passed():
    """It prices the plan, is calibrated to a target, and its steps run."""
    toy = Anticorrelated()
    model, optimizer, loader = private(noise=toy, epochs=1)
    row = np.cumsum(BACK ** np.arange(6))
    assert optimizer.privacy.planned == ev.Gaussian(noise_multiplier=1 / float(np.linalg.norm(row)))
    run(model, optimizer, loader, 1)
    assert optimizer.privacy.remaining_steps == 0
    assert toy.last is None, "the run works on a copy: no state reaches another run"
    _, other, _ = private(noise=toy, epochs=1, noise_multiplier=None, epsilon=2.0, delta=1e-5)
    assert dp.epsilon(other.privacy.planned, delta=1e-5) == pytest.approx(2.0, rel=1e-5)


def test_noise_of_neighbouring_steps_is_as_correlated_as_the_class_says():
    """Without records the gradients are the noise: r = -BACK/(1 + BACK²) with the toy, nothing with independent
    noise."""

    def correlation(given):
        model = nn.Linear(100, 100)
        records = TensorDataset(torch.zeros(40, 100))
        model, optimizer, loader = make_private(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            DataLoader(records, 10),
            epochs=1,
            noise_multiplier=1.0,
            loss_reduction="sum",
            rng=3,
            noise=given,
        )
        found = []
        for (x,) in loader:
            optimizer.zero_grad()
            (model(x) * 0).sum().backward()
            optimizer.step()
            found.append(model.weight.grad.reshape(-1).numpy().copy())
        return np.corrcoef(found[1], found[2])[0, 1]

    from scipy.stats import norm

    far, wanted = norm.isf(FALSE_ALARM / 2) / 100, -BACK / (1 + BACK**2)  # of 10,000 pairs
    assert abs(correlation(Anticorrelated()) - wanted) < far
    assert abs(correlation(None)) < far < abs(wanted)


def test_a_noise_with_a_state_resumes_bit_for_bit():
    straight = weights(run(*private(noise=Anticorrelated())))
    model, optimizer, loader = private(noise=Anticorrelated())
    for i, batch in enumerate(loader):
        if i == 4:
            break
        step(model, optimizer, batch)
    other, trainer, batches = private(noise=Anticorrelated())
    with pytest.raises(ValueError, match="pass secret="):
        trainer.privacy.load_state_dict(optimizer.privacy.state_dict())
    trainer.privacy.load_state_dict(optimizer.privacy.state_dict(), secret=optimizer.privacy.secret_state_dict())
    while trainer.privacy.remaining_steps:
        for batch in batches:
            if trainer.privacy.remaining_steps:
                step(other, trainer, batch)
    assert torch.equal(weights(other), straight)
    with pytest.raises(ValueError, match="Independent has none"):
        private()[1].privacy._run._noise.load_state_dict({"last": None})


ROWS = [(0.3, -0.2, 0), (0.1, 0.9, 1), (1.0, -1.0, 1)]


def trained(rows, given, widen=1.0, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))
    x, y = torch.tensor([row[:2] for row in rows]), torch.tensor([row[2] for row in rows])
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(TensorDataset(x, y), 2),
        epochs=2,
        noise_multiplier=1.0,
        dataset_size=4,
        loss_reduction="sum",
        rng=1,
        noise=given,
        **options,
    )
    for _ in range(2):
        for a, b in loader:
            optimizer.zero_grad()
            (widen * F.cross_entropy(model(a), b, reduction="sum")).backward()
            optimizer.step()
    return Release([p.detach().numpy().copy() for p in model.parameters()], optimizer.privacy.planned)


def test_replay_sees_one_step_over_all_parameters_and_one_price_for_steps_that_depend_on_each_other():
    for given in (None, Anticorrelated()):
        transcript = replay(lambda rows, given=given: trained(rows, given), [(9.0, -9.0, 0), *ROWS], ROWS, seeded=True)
        assert [step.value.shape for step in transcript.steps] == [(22,)] * 4  # of 4·2 + 4 + 2·4 + 2 numbers


def test_replay_finds_a_noise_that_claims_less_than_its_steps_cost():
    """Power: a correlated noise that is paid for step by step, at the price of one step."""

    class Cheap(Anticorrelated):
        correlated = False

        def event(self, participation, multipliers):
            return ev.Gaussian(noise_multiplier=1.0)

    with pytest.raises(ReplayError, match="cost more than"):
        replay(lambda rows: trained(rows, Cheap()), [(9.0, -9.0, 0), *ROWS], ROWS, seeded=True)


def test_what_has_no_price_is_refused_before_the_charge():
    class Unpaid:
        def charge(self, event, label="", *, unit="one record", reproducible=False):
            raise AssertionError("charged")

    for wrong, reason in (
        ({"noise": Anticorrelated(), "clipping": Clipping(adaptive=Quantile())}, "adaptive"),
        ({"noise": Anticorrelated(), "noise_schedule": lambda s: 1 + s}, "noise_schedule"),
        ({"noise": "banded"}, "must be a Noise"),
        ({"noise": noise.Independent}, "must be a Noise"),
    ):
        with pytest.raises(ValueError, match=reason):
            private(book=Unpaid(), **wrong)


def test_independent_noise_costs_a_period_once_at_its_least():
    least = noise.Independent().event(ShuffledDealing(2), [3.0, 2.0, 4.0])
    one = ev.Shuffled(event=ev.Gaussian(noise_multiplier=1.0, adjacency="replace"))
    two = ev.Shuffled(event=ev.Gaussian(noise_multiplier=2.0, adjacency="replace"))
    assert ev.leaves(least) == {one: 1, two: 1}
    bins = noise.Independent().event(BallsInBinsDealing(3), [2.0] * 4)
    assert ev.leaves(bins) == {ev.BallsInBins(bins=3, event=ev.Gaussian(noise_multiplier=2.0)): 2}
    assert ev.leaves(noise.Independent().event(PoissonSampling(0.1), [])) == {}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_tensor_has_noise_of_its_own_whatever_its_size(dtype):
    """Small ones are drawn for together, large ones apart: none is left out, no two are alike, and the scale is that
    asked."""
    from scipy.stats import chi2

    tensors = [torch.full(shape, 7.0, dtype=dtype) for shape in ((3,), (), (SMALL,), (SMALL + 1,), (2, SMALL), (0,))]
    noise.Gaussians(seeded(4)).add(tensors, 2.0, scale=0.5)
    found = [(2 * x - 7).double().numpy().reshape(-1) for x in tensors]
    assert all((np.abs(x) > 0).all() for x in found)
    values = np.concatenate(found)
    assert len(np.unique(values)) > len(values) * 0.99

    def fits(sigma):
        low, high = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], len(values))
        return low < float((values**2).sum()) / sigma**2 < high

    assert fits(2.0)
    assert not fits(1.9)


def test_the_small_noise_of_a_seed_is_that_of_one_flat_sum():
    """What earlier versions drew for all parameters at once."""
    tensors = [torch.zeros(5), torch.zeros(3, 2), torch.zeros(7)]
    noise.Gaussians(seeded(4)).add(tensors, 1.0)
    flat = dp.random.gaussian_noise(np.zeros(18, np.float32), 1.0, seeded(4))
    assert np.array_equal(torch.cat([x.reshape(-1) for x in tensors]).numpy(), flat)


def test_a_step_is_shown_only_to_who_listens(monkeypatch):
    from discreet.training.noise import base

    flattened = []
    monkeypatch.setattr(base, "draw_output", lambda *a, **k: flattened.append(a))
    total = [torch.zeros(3)]
    shown("a sum", total, 1.0, lambda: total[0].fill_(1.0), event=ev.Gaussian(noise_multiplier=1.0))
    assert flattened == []
    assert float(total[0].sum()) == 3.0


def test_speed_is_one_argument_and_changes_no_price():
    plain, quick = private()[1].privacy, private(speed=Speed(max_physical_batch_size=2, secure=False))[1].privacy
    assert plain.planned == quick.planned
    with pytest.raises(ValueError, match="max_physical_batch_size"):
        Speed(max_physical_batch_size=0)
    with pytest.raises(TypeError):
        private(max_physical_batch_size=2)


def test_the_faster_generator_draws_other_noise_of_the_same_scale():
    made = [torch.zeros(SMALL * 4) for _ in range(2)]
    for tensor, secure in zip(made, (True, False), strict=True):
        noise.Gaussians(Rng(5), secure).add([tensor], 3.0)
    assert not torch.equal(*made)
    assert all(math.isclose(float(x.std()), 3.0, rel_tol=0.1) for x in made)
