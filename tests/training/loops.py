"""A small network, its data, and the loop around them, for the tests of this room."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import make_private

N = 60


def data(n=N, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=generator)
    return TensorDataset(x, (x.sum(1) > 0).long())


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))


def private(model=None, records=None, batch=10, optimizer=torch.optim.SGD, lr=0.1, **options):
    model = network() if model is None else model
    options = {"epochs": 2, "noise_multiplier": 1.0, "loss_reduction": "mean", "rng": 1} | options
    return make_private(
        model,
        optimizer(model.parameters(), lr=lr),
        DataLoader(data() if records is None else records, batch),
        **options,
    )


def step(model, optimizer, batch):
    x, y = batch
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


def run(model, optimizer, loader, epochs=2):
    for _ in range(epochs):
        for batch in loader:
            step(model, optimizer, batch)
    return model


def weights(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def copy_of(model):
    twin = network()
    twin.load_state_dict(model.state_dict())
    return twin
