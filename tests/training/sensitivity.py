"""How far one record moves what is released: measured through sampler, loader, loop and clipped sum."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from discreet.training import PerUser, make_private
from discreet.training.noise import Independent
from tests.training.zoo import made

QUIET = 1e-9  # a noise multiplier that leaves the sum as it is
SAMPLERS = {  # by name: how neighbours differ, in records
    "poisson": "add",
    "truncated-poisson": "add",
    "balls-in-bins": "add",
    "per user": "add",
    "fixed-size": "replace",
    "shuffled": "replace",
}


class Some(Dataset):
    """The first records of a dataset, and perhaps one more."""

    def __init__(self, records, size, last=None):
        self.records, self.size, self.last = records, size, last

    def __len__(self):
        return self.size + (self.last is not None)

    def __getitem__(self, i):
        return self.last if i == self.size else self.records[i]


def extreme(record):
    """A record of the same form, as far from others as its form allows."""
    x, *rest = record
    return (1e3 * x.flip(0) if x.is_floating_point() else x.flip(0), *rest)


class Heard(Independent):
    """Fresh noise that keeps the sum it was put on."""

    def release(self, step, total, gaussians):
        self.total = torch.cat([part.double().reshape(-1) for part in total])
        super().release(step, total, gaussians)


def released(case, records, sampler, size):
    """The sum of one step in which every record takes part, as noise is put on it."""
    options = {"dataset_size": size, "sampler": sampler, "noise": Heard()}
    if sampler == "per user":
        options |= {"sampler": PerUser(users=list(range(len(records))), batch_size=size, dataset_size=size)}
    case.batch, kept = size, case.batch
    try:
        model, optimizer, loader = case.private(records, **({"noise_multiplier": QUIET} | options))
        while not optimizer.privacy.steps:
            for given in loader:
                case.step(model, optimizer, *given)
    finally:
        case.batch = kept
    return optimizer.privacy._run._noise.total


class OfZoo:
    """A member of the zoo and its loop, as a case of ``honest``; the clip norm is one that every record exceeds."""

    CLIP = 1e-3

    def __init__(self, name):
        self.name, self.batch = name, 2

    def records(self):
        return TensorDataset(*made(self.name, 8).batch.values())

    def private(self, records, **options):
        """Model, optimiser and loader, made private."""
        self.member = made(self.name, 8)
        parameters = [p for p in self.member.model.parameters() if p.requires_grad]
        given = {"epochs": 1, "max_grad_norm": self.CLIP, "loss_reduction": "mean", "rng": 1} | options
        optimizer = torch.optim.SGD(parameters, lr=1e-3)
        return make_private(self.member.model, optimizer, DataLoader(records, self.batch), **given)

    def step(self, model, optimizer, *given):
        optimizer.zero_grad()
        batch = dict(zip(self.member.batch, given, strict=True))
        self.member.losses(model, batch).mean().backward()
        optimizer.step()


def movement(case, sampler, size=6):
    """How far a worst-case record moves the released sum, and the most that is promised for a clip norm of one."""
    records = case.records()
    more = Some(records, size, extreme(records[size]))
    fewer = Some(records, size) if SAMPLERS[sampler] == "add" else Some(records, size, records[size + 1])
    with_it, without = (released(case, those, sampler, size + 1) for those in (more, fewer))
    widened = 1 + 2.0**-10
    moved = float((with_it - without).norm()) / getattr(case, "CLIP", 1.0)
    return moved, widened * (1 if SAMPLERS[sampler] == "add" else 2)
