"""Augmentation multiplicity: the views of a record share one clip, and are judged together."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.auditing import replay
from discreet.release import Release
from discreet.training import Augmented, ManyViews, MixedRecords, Speed, make_private
from discreet.training.gradients import ClippedSum, Clipping
from tests.training.loops import network

K = 3


def seen(x, views=K):
    """Fixed views: shifted by thirds."""
    return torch.stack([torch.roll(x, i, -1) * (1 + i) for i in range(views)])


def convolutional():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv1d(1, 3, 3), nn.GroupNorm(1, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6, 2))


def loss_of(out, y):
    return F.cross_entropy(out.flatten(0, 1), y.repeat_interleave(out.shape[1]))


@pytest.mark.parametrize(("made", "shape"), [(network, (4,)), (convolutional, (1, 4))])
def test_the_clipped_sum_is_of_means_over_views(made, shape):
    torch.manual_seed(1)
    net, x, y = made(), torch.randn(6, *shape), torch.randint(0, 2, (6,))
    views = torch.stack([seen(each) for each in x])
    wanted = [torch.zeros_like(p) for p in net.parameters()]
    for i in range(6):
        net.zero_grad()
        F.cross_entropy(net(views[i]), y[i].repeat(K)).backward()
        norm = torch.cat([p.grad.reshape(-1) for p in net.parameters()]).norm()
        for total, p in zip(wanted, net.parameters(), strict=True):
            total += p.grad * min(1.0, 0.3 / float(norm))
    net.zero_grad()
    model = ManyViews(net)
    clipped = ClippedSum(dict(model.named_parameters()), Clipping(max_grad_norm=0.3), "mean")
    clipped.attach(model)
    clipped.begin()
    clipped.expect(6, (views, y))
    loss_of(model(views), y).backward()
    clipped.add(None, 0.3)
    for total, part in zip(wanted, clipped.total, strict=True):
        assert torch.allclose(total, part, atol=1e-5)


def rows(n=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=generator)
    return TensorDataset(x, (x.sum(1) > 0).long())


def private(records, rng=1, made=network, batch=10, **options):
    model = ManyViews(made())
    facts = {"noise_multiplier": 1.0, "epochs": 2, "loss_reduction": "mean", "dataset_size": 40} | options
    return make_private(
        model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(records, batch), rng=rng, **facts
    )


def run(model, optimizer, loader, loss=loss_of):
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def test_a_private_loop_of_views_is_verified_costs_what_one_view_costs_and_comes_in_pieces():
    torch.manual_seed(0)
    data = TensorDataset(torch.stack([seen(x) for x, _ in rows()]), rows().tensors[1])
    found = []
    for pieces in (None, 3):
        torch.manual_seed(0)
        whole = private(data, speed=Speed(max_physical_batch_size=pieces))
        found.append(run(*whole))
    assert torch.allclose(*found, atol=1e-4)
    plain = make_private(
        net := network(),
        torch.optim.SGD(net.parameters(), lr=0.1),
        DataLoader(rows(), 10),
        noise_multiplier=1.0,
        epochs=2,
        loss_reduction="mean",
    )
    assert whole[1].privacy.planned == plain[1].privacy.planned


def test_views_made_by_chance_run_and_are_one_record():
    made = Augmented(rows(), lambda x: x + 0.1 * torch.randn(4), views=K)
    assert len(made) == 40
    torch.manual_seed(0)
    model, optimizer, loader = private(made)
    run(model, optimizer, loader)
    assert optimizer.privacy.remaining_steps == 0
    x = rows().tensors[0]
    assert model.model(x).shape == (40, 2), "one view a record goes through the model itself"


def test_a_record_with_its_views_moves_the_sum_by_no_more_than_one_clip_norm():
    def trained(records):
        torch.manual_seed(0)
        x, y = torch.tensor([row[:4] for row in records]), torch.tensor([row[4] for row in records])
        data = TensorDataset(torch.stack([seen(each) for each in x]), y)
        model, optimizer, loader = private(data, batch=2, dataset_size=4)
        run(model, optimizer, loader)
        return Release([p.detach().numpy().copy() for p in model.parameters()], optimizer.privacy.planned)

    few = [(0.3, -0.2, 0.1, 0.4, 0), (0.1, 0.9, -0.3, 0.2, 1), (1.0, -1.0, 0.5, 0.0, 1)]
    found = replay(trained, [(9e3, 1.0, -9e3, 2.0, 0), *few], few, seeded=True)
    assert len(found.steps) == 4


def test_views_that_meet_those_of_other_records_are_refused():
    """Views in the wrong order (all first views, then all second ones) put a record's second view into another's
    group."""

    class Turned(ManyViews):
        def forward(self, x):
            out = self.model(x.transpose(0, 1).flatten(0, 1))
            return out.unflatten(0, x.shape[:2])

    torch.manual_seed(0)
    data = TensorDataset(torch.stack([seen(x) for x, _ in rows()]), rows().tensors[1])
    model = Turned(network())
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(data, 10),
        noise_multiplier=1.0,
        epochs=2,
        loss_reduction="mean",
    )
    with pytest.raises(MixedRecords):
        run(model, optimizer, loader)


def test_a_loss_that_mixes_views_of_records_is_refused():
    torch.manual_seed(0)
    data = TensorDataset(torch.stack([seen(x) for x, _ in rows()]), rows().tensors[1])
    with pytest.raises(MixedRecords):
        run(*private(data), loss=lambda out, y: (out - out.mean(0)).square().mean())


def test_public_mistakes_are_refused():
    with pytest.raises(ValueError, match="views"):
        Augmented(rows(), lambda x: x, views=0)
