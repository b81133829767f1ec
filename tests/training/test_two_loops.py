"""Side doors of a run: two loops at once, a loss that needs two rows, a moody schedule, users of many types."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from discreet.training import PerUser, PrivateTrainingError, Speed
from discreet.training.fitting.losses import loss_of
from tests.training.loops import private, step


@pytest.mark.parametrize("sampler", ["poisson", "balls-in-bins", "shuffled"])
def test_a_loop_is_over_when_another_begins(sampler):
    """Otherwise a batch of a pass would be released as often as there are loops."""
    model, optimizer, loader = private(sampler=sampler, epochs=1)
    first, second = iter(loader), iter(loader)
    step(model, optimizer, next(first))
    step(model, optimizer, next(second))
    with pytest.raises(PrivateTrainingError, match="Another loop"):
        next(first)
    for batch, _ in zip(second, range(4), strict=False):
        step(model, optimizer, batch)
    assert optimizer.privacy.steps <= 6


def test_pieces_of_two_draws_are_not_added_up():
    model, optimizer, loader = private(speed=Speed(max_physical_batch_size=2), batch=60)
    first, second = iter(loader), iter(loader)
    step(model, optimizer, next(first))
    step(model, optimizer, next(second))
    with pytest.raises(PrivateTrainingError, match="Another loop"):
        next(first)


@pytest.mark.parametrize(
    "loss",
    [
        lambda outputs, target: F.nll_loss(F.log_softmax(outputs.squeeze(), dim=1), target),
        lambda outputs, target: F.nll_loss(F.log_softmax(outputs, dim=1), target),
    ],
    ids=["needs two rows", "takes one"],
)
def test_an_odd_target_leaves_the_others_their_gradients(loss):
    outputs = torch.randn(5, 3, requires_grad=True)
    loss_of(loss, outputs, torch.tensor([0, 1, 9, 2, 0])).backward()
    plain = outputs.detach().clone().requires_grad_()
    loss(plain, torch.tensor([0, 1, 0, 2, 0])).backward()
    others = [0, 1, 3, 4]
    torch.testing.assert_close(outputs.grad[others], plain.grad[others])
    assert not outputs.grad[2].any()


def test_a_clip_schedule_is_asked_once_a_step():
    """Pieces clipped to another norm than the noise was scaled to would not be covered."""
    asked = []
    model, optimizer, loader = private(
        speed=Speed(max_physical_batch_size=1), clip_schedule=lambda number: asked.append(number) or 1.0, epochs=1
    )
    for batch in loader:
        step(model, optimizer, batch)
    assert sorted(asked) == list(range(6))


def test_one_user_does_not_decide_how_others_are_told():
    def groups(users):
        return PerUser(batch_size=1, dataset_size=5, users=users, records_per_user=1)._groups[0]

    assert len(groups([2**53, 2**53 + 1])) == 2
    assert len(groups([2**53, 2**53 + 1, 0.5])) == 3
    assert len(groups([1, "1", "a", "a\0", None, None, (1, 2)])) >= 5
