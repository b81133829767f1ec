"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

import math

import numpy as np
import pytest
import torch

from discreet import events
from discreet.random import seeded
from discreet.training import Clipping, Quantile, TruncatedPoisson
from discreet.training.memory import Room
from discreet.training.noise import Gaussians, Independent
from discreet.training.sampling import BallsInBins, FixedSize, Poisson, Shuffled
from discreet.training.sampling.participation import PoissonSampling
from discreet.training.sampling.users import PerUser
from tests.frozen import unfrozen

SAMPLERS = [BallsInBins, FixedSize, PerUser, Poisson, Shuffled, TruncatedPoisson]


def test_nothing_that_was_stated_can_be_changed_afterwards():
    assert not unfrozen("training") & {kind.__name__ for kind in [*SAMPLERS, Clipping, Quantile, Independent]}


@pytest.mark.parametrize("kind", SAMPLERS, ids=lambda kind: kind.__name__)
def test_sizes_of_a_sampler_are_given_by_name(kind):
    """Two whole numbers side by side: swapped, they would be another rate."""
    with pytest.raises(TypeError, match="positional"):
        kind(10, 100)
    assert kind(batch_size=10, dataset_size=100).dataset_size == 100


@pytest.mark.parametrize(("batch", "limit"), [(10, 30), (100, 161)])
def test_batches_are_cut_six_deviations_above_their_mean_or_never(batch, limit):
    """⌈B + 6√B + 1⌉ records, but no more than there are."""
    sampler = TruncatedPoisson(batch_size=batch, dataset_size=10**6)
    assert sampler.limit == limit
    assert TruncatedPoisson(batch_size=batch, dataset_size=batch + 1).limit == batch + 1


def test_the_adaptive_clip_norm_learns_at_the_papers_rate():
    """Andrew et al. (2021), Section 3: a fifth; C·exp(-0.2(b - γ))."""
    assert Quantile().next_norm(2.0, 50.0, 100.0) == pytest.approx(2.0 * math.exp(-0.2 * 0.5))
    assert Quantile().next_norm(2.0, -50.0, 100.0) == pytest.approx(2.0 * math.exp(0.2 * 0.5))


@pytest.mark.parametrize("stability", [0.0, -0.5, -1.0, math.inf, math.nan])
def test_a_stability_that_is_not_positive_is_refused(stability):
    with pytest.raises(ValueError, match="stability"):
        Clipping(max_grad_norm=1.0, factor="automatic", stability=stability)


def test_every_parameter_is_in_one_group_of_norms_the_most_particular_one():
    clipping = Clipping(scope={"a": 3.0, "a.b": 4.0})
    assert clipping.max_grad_norm == 5.0
    assert clipping.blocks(["a.weight", "a.b.weight", "a.b"]) == ([0, 1, 1], [0.6, 0.8])
    with pytest.raises(ValueError, match=r"no group for parameter 'c\.weight'"):
        clipping.blocks(["a.weight", "c.weight"])


def test_steps_of_the_same_noise_are_one_event_so_many_times():
    step = {z: events.PoissonSampled(rate=0.1, event=events.Gaussian(noise_multiplier=z)) for z in (1.0, 2.0)}
    assert events.leaves(Independent().event(PoissonSampling(0.1), [2.0, 1.0, 2.0])) == {step[1.0]: 1, step[2.0]: 2}


def test_a_batch_may_be_one_record_of_one():
    assert Poisson(batch_size=1, dataset_size=1).batch_size == 1


def test_samplers_of_users_are_compared_without_asking_who_they_are():
    """Users are private, and an array has no truth value."""
    one, other = (PerUser(batch_size=1, dataset_size=2, users=np.array(users)) for users in ([1, 2], [2, 1]))
    assert one == other


@pytest.mark.parametrize("together", [True, False])
def test_noise_is_in_every_tensor_whether_they_lie_side_by_side_or_not(together):
    shapes = [torch.Size([3]), torch.Size([2, 2]), torch.Size([5])]
    room = Room([(shape, torch.float32, torch.device("cpu")) for shape in shapes]).fresh()
    tensors = [part.zero_() for part in room] if together else [torch.zeros(shape) for shape in shapes]
    Gaussians(seeded(1)).add(tensors, 1.0)
    drawn = torch.cat([tensor.flatten() for tensor in tensors])
    assert (drawn != 0).all()
    assert len(drawn.unique()) == len(drawn)
