"""Models and loops that mix records, lose gradients or write state: every one of them must be refused.

Each entry is a function that trains for a few steps; it is given what makes a model private, and fails by refusing.
"""

from __future__ import annotations

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import make_private

D, C, N = 3, 2, 40
KEPT: list = []
ONES = torch.ones(D)


def tensors(kind="numbers", n=N):
    g = torch.Generator().manual_seed(3)
    if kind == "words":
        x = torch.randint(1, 6, (n, 4), generator=g)
        return x, torch.where(torch.rand(n, 4, generator=g) < torch.rand(n, 1, generator=g), -100, x)
    x = torch.randn(n, D, generator=g)
    return x, (x.sum(1) > 0).long()


class Book:
    """Keeps the label of the last charge."""

    label = ""

    def charge(self, event, label="", *, unit="one record", reproducible=False):
        self.label = label


class Around(nn.Module):
    """Two layers with something done before, between or after them."""

    def __init__(self, before=None, between=None, after=None, **state):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(D, 4), nn.Linear(4, C)
        self.before, self.between, self.after = before, between, after
        for name, value in state.items():
            if isinstance(value, torch.Tensor):
                self.register_buffer(name, value.clone())
            else:
                setattr(self, name, value)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x = self.before(self, x) if self.before else x
        h = self.a(x)
        h = self.between(self, h, x) if self.between else h
        out = self.b(torch.tanh(h))
        return self.after(self, out) if self.after else out


class Words(nn.Module):
    """A small language model that returns its loss."""

    def __init__(self, loss):
        super().__init__()
        torch.manual_seed(0)
        self.word, self.out, self.loss = nn.Embedding(6, 3), nn.Linear(3, 6), loss

    def forward(self, words, labels):
        return {"loss": self.loss(self.out(self.word(words)), labels)}


def train(
    model,
    loss=F.cross_entropy,
    *,
    data=None,
    steps=4,
    change=None,
    collate=None,
    epochs=1,
    batch=8,
    around=None,
    lr=0.1,
    **options,
):
    """The loop everybody writes; ``change`` is done to each batch, ``around`` to the model after make_private."""
    records = TensorDataset(*tensors()) if data is None else data
    loader = DataLoader(records, batch, collate_fn=collate)
    given = {"epochs": epochs, "noise_multiplier": 1.0, "loss_reduction": "mean", "rng": 1} | options
    model, optimizer, loader = make_private(model, torch.optim.SGD(model.parameters(), lr=lr), loader, **given)
    called = around(model) if around else model
    done = 0
    while done < steps:
        for x, y in loader:
            x, y = change(x, y) if change else (x, y)
            optimizer.zero_grad()
            loss(called(x), y).backward()
            optimizer.step()
            done += 1
            if done >= steps:
                break
    return model, optimizer


def words(loss, **options):
    model = Words(loss)
    records = TensorDataset(*tensors("words"))
    _, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(records, 8),
        **({"epochs": 1, "noise_multiplier": 1.0, "loss_reduction": "mean", "rng": 1} | options),
    )
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y)["loss"].backward()
        optimizer.step()


class Mixing(torch.autograd.Function):
    """The identity, with a backward pass that mixes rows."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g + g.mean(0)


class Dividing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g / (g.norm() + 1e-6)


def permuted(x, h):
    order = x[:, 0].argsort()
    return order, h[order]


def with_gate(m, h, x):
    """The order is changed between two layers, and back again if ``m.back`` says so."""
    order = x[:, 0].argsort()
    h = (h * torch.sigmoid(m.gate))[order]
    return m.inner(h)[order.argsort()] if m.back else m.inner(h)


class Gated(Around):
    def __init__(self, back=True):
        super().__init__(between=with_gate)
        self.back = back
        self.gate, self.inner = nn.Parameter(torch.randn(4)), nn.Linear(4, 4)


class BatchRenorm(nn.Module):
    """Batch normalisation that is not called so."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, h):
        return self.scale * (h - h.mean(0, keepdim=True)) / (h.var(0, keepdim=True, unbiased=False) + 0.1).sqrt()


class Experts(nn.Module):
    """Each expert takes at most two records: who comes later is dropped."""

    def __init__(self, capacity=2):
        super().__init__()
        torch.manual_seed(0)
        self.gate, self.experts, self.out = (
            nn.Linear(D, 2),
            nn.ModuleList([nn.Linear(D, 4), nn.Linear(D, 4)]),
            nn.Linear(4, C),
        )
        self.capacity = capacity

    def forward(self, x):
        chosen = self.gate(x).softmax(1)
        best = chosen.argmax(1)
        h = 0
        for i, expert in enumerate(self.experts):
            mine = (best == i).float()
            kept = mine * (mine.cumsum(0) <= self.capacity).float()
            h = h + expert(x) * (kept * chosen[:, i]).unsqueeze(1)
        return self.out(h)


class Balanced(Experts):
    def __init__(self):
        super().__init__(capacity=10**6)

    def forward(self, x):
        chosen = self.gate(x).softmax(1)
        return super().forward(x), (
            chosen.mean(0) * (chosen.argmax(1, keepdim=True) == torch.arange(2)).float().mean(0)
        ).sum()


class ActNorm(nn.Module):
    """Its first batch decides its first weights."""

    def __init__(self):
        super().__init__()
        self.shift, self.ready = nn.Parameter(torch.zeros(D)), False

    def forward(self, x):
        if not self.ready:
            self.shift.data.copy_(-x.detach().mean(0))
            self.ready = True
        return x + self.shift


class Codebook(nn.Module):
    def __init__(self, every=1):
        super().__init__()
        self.register_buffer("codes", torch.randn(3, D))
        self.every, self.passes, self.out = every, 0, nn.Linear(D, C)

    def forward(self, x):
        self.passes += 1
        nearest = torch.cdist(x, self.codes).argmin(1)
        if self.passes % self.every == 0:
            self.codes[nearest] = 0.9 * self.codes[nearest] + 0.1 * x.detach()
        return self.out(x + (self.codes[nearest] - x).detach())


def mixup(x, y):
    return 0.7 * x + 0.3 * x[torch.randperm(len(x))], y


def collated(change):
    def collate(records):
        x, y = torch.stack([r[0] for r in records]), torch.stack([r[1] for r in records])
        return change(x, y)

    return collate


def contrastive(out, y):
    z = F.normalize(out, dim=1)
    return F.cross_entropy(z @ z.T / 0.1, torch.arange(len(z)))


def triplet(out, y):
    return F.triplet_margin_loss(out, out.roll(1, 0), out.roll(2, 0))


def supervised_contrastive(out, y):
    z = F.normalize(out, dim=1)
    same = (y[:, None] == y[None, :]).float()
    return -(same * (z @ z.T).log_softmax(1)).sum(1).div(same.sum(1)).mean()


def hooked(change):
    def between(m, h, x):
        if h.requires_grad:
            h.register_hook(change)
        return h

    return Around(between=between)


def remember(m, x):
    """Adds the mean of the batch before."""
    out = x + 0.1 * m.kept if isinstance(m.kept, torch.Tensor) else x
    m.kept = x.detach().mean(0)
    return out


class GlobalState(Around):
    """Keeps what it saw in a list of its module."""

    def forward(self, x):
        out = x + 0.1 * KEPT[-1] if KEPT else x
        KEPT.append(x.detach().mean(0))
        return super().forward(out)


def queue_loop():
    """A queue of earlier outputs in the loop itself."""
    model = Around()
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(TensorDataset(*tensors()), 8),
        epochs=1,
        noise_multiplier=1.0,
        loss_reduction="mean",
        rng=1,
    )
    queue = torch.zeros(0, C)
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x)
        (
            F.cross_entropy(out, y) + (out.unsqueeze(1) * queue.mean(0) if len(queue) else out.unsqueeze(1)).mean()
        ).backward()
        queue = torch.cat([queue, out.detach()])[-16:]
        optimizer.step()


def loop(act, model=None, passes=1, **options):
    """A loop whose step is written out: ``act(model, optimizer, x, y)``."""
    model = Around() if model is None else model
    given = {"epochs": passes, "noise_multiplier": 1.0, "loss_reduction": "mean", "rng": 1} | options
    model, optimizer, loader = make_private(
        model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(TensorDataset(*tensors()), 8), **given
    )
    for _ in range(passes):
        for x, y in loader:
            act(model, optimizer, x, y)


def sized_steps(model, optimizer, x, y):
    """Each update is as large as its batch: how many records it had is read off the weights."""
    for group in optimizer.param_groups:
        group["lr"] = 0.1 * len(x) / 8
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


def advantages(o, y):
    """The gain of each record beside the others', as people write it for policies."""
    gain = -F.cross_entropy(o.detach(), y, reduction="none")
    return -(o.log_softmax(1)[:, 0] * (gain - gain.mean()) / (gain.std() + 1e-8)).mean()


def frequencies_by_numpy(o, y):
    weight = torch.tensor(1 / np.maximum(np.bincount(y.numpy(), minlength=C), 1), dtype=torch.float32)
    return (F.cross_entropy(o, y, reduction="none") * weight[y]).mean()


def sharpness_aware(model, optimizer, x, y):
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


def penalised(model, optimizer, x, y):
    x.requires_grad_()
    slope = torch.autograd.grad(F.cross_entropy(model(x), y), x, create_graph=True)[0]
    (F.cross_entropy(model(x), y) + slope.square().sum()).backward()
    optimizer.step()


def by_hand(model, optimizer, x, y):
    F.cross_entropy(model(x), y).backward()
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()


def without_step(model, optimizer, x, y):
    F.cross_entropy(model(x), y).backward()


def halves(model, optimizer, x, y):
    F.cross_entropy(model(x[::2]), y[::2]).backward()
    optimizer.step()


def record_by_record(model, optimizer, x, y):
    for i in range(len(x)):
        F.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
    optimizer.step()


def outside(model, optimizer, x, y):
    (F.cross_entropy(model(x), y) + model.a.weight.square().sum()).backward()
    optimizer.step()


def distilled(model, optimizer, x, y):
    with torch.no_grad():
        target = model(x)
        target = (target - target.mean(0)).softmax(1)
    optimizer.zero_grad()
    F.cross_entropy(model(x), target).backward()
    optimizer.step()


def token_mean(scores, labels):
    return F.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=-100)


def later(mix, step):
    return lambda m, x: mix(x) if m.calls > step else x


def centre(x):
    return x - x.mean(0)


def no_rows(m, h, x):
    return torch.cat([h[: len(h) // 2].detach(), h[len(h) // 2 :]])


def first_row_lost(m, h, x):
    h = h.clone()
    h[1] = h[1].detach()
    return h


def in_place_data(m, x):
    m.a.weight.data.add_(1e-3 * x.detach().mean())
    return x


def weight_from_data(m, x):
    with torch.no_grad():
        m.a.bias.copy_(x[0, 0].expand(4))
    return x


def summed(o, y):
    return F.cross_entropy(o, y, reduction="sum")


def as_sum(loss, **options):
    """A loop whose loss is declared a sum, for as many batches as show what a number follows."""
    return train(Around(), loss, steps=10, epochs=3, loss_reduction="sum", **options)


def weighted_backward(weights):
    """Entries of the loss are weighted in the backward pass itself."""

    def act(model, optimizer, x, y):
        optimizer.zero_grad()
        losses = F.cross_entropy(model(x), y, reduction="none")
        losses.backward(gradient=weights(losses.detach(), y))
        optimizer.step()

    return lambda: loop(act, loss_reduction="sum")


def written_by_the_loop(write, **state):
    """The loop writes into the model, which scales its inputs by that."""

    def act(model, optimizer, x, y):
        write(model, x)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return lambda: loop(act, Around(before=lambda m, x: x * m.seen, **state))


def kept_by_the_loop(model, optimizer, x, y):
    """The model meets the next batch with what the loop put in it of this one."""
    optimizer.zero_grad()
    out = model(x)
    model.seen = out.detach().abs().mean()
    F.cross_entropy(out, y).backward()
    optimizer.step()


class Centre:
    """Scores around their running mean, which is written over after it was used."""

    def __init__(self):
        self.mean = torch.zeros(C)

    def __call__(self, o, y):
        found = F.cross_entropy(o - self.mean, y)
        self.keep(o.detach().mean(0))
        return found

    def keep(self, mean):
        self.mean.lerp_(mean, 0.1)


class Elsewhere(Centre):
    """The same by numpy, which nobody follows."""

    def keep(self, mean):
        self.mean = torch.from_numpy(0.9 * self.mean.numpy() + 0.1 * mean.numpy())


def mixup_by_numpy(x, y):
    found = x.numpy()
    return torch.from_numpy(0.7 * found + 0.3 * found[::-1]), y


def masked(count):
    """The sum over chosen records, divided by how many were chosen, as Python was told."""

    def loss(o, y):
        chosen = y == 1
        return summed(o[chosen], y[chosen]) / max(count(chosen, y[chosen]), 1)

    return loss


def later_rows(m, h, x):
    """Rows from the fifth on get a part of the row before."""
    return torch.cat([h[:5], h[5:] + 0.1 * h[4:-1]]) if len(h) > 5 else h


def one_pair(m, h, x):
    """One row gets something of one other."""
    if len(h) <= 6:
        return h
    h = h.clone()
    h[5] = h[5] + h[6]
    return h


class Faint(Around):
    """A mean of the batch in a parameter whose gradient is a millionth of the whole."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        mean = x[:, :1].mean(0) * torch.ones_like(x[:, :1])
        return self.b(torch.tanh(self.a(x) + 1e-6 * self.shift * mean))


class Opening(Around):
    """A gate that is closed at first lets the mean of the batch in."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        h = self.a(x)
        return self.b(torch.tanh(h + self.gate * h.mean(0, keepdim=True).expand_as(h)))


def changing(write):
    """The loop writes into the tensors that the loader gave."""

    def act(model, optimizer, x, y):
        optimizer.zero_grad()
        write(x, y)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return lambda: loop(act)


def through_numpy(x, y):
    found = x.numpy()
    found -= found.mean(0)


class Bank(nn.Linear):
    """Keeps a list that the loop puts outputs in."""

    def __init__(self):
        super().__init__(D, C)
        self.kept = []


def banked(model, optimizer, x, y):
    optimizer.zero_grad()
    out = model(x)
    loss = F.cross_entropy(out, y)
    if model.kept:
        loss = loss + (out @ model.kept[-1].T).logsumexp(1).mean()
    model.kept.append(out.detach().clone())
    loss.backward()
    optimizer.step()


class Told(Around):
    """Takes a number beside its inputs."""

    def forward(self, x, scale=1.0):
        return super().forward(x * scale)


def telling(number):
    def act(model, optimizer, x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x, number(x)), y).backward()
        optimizer.step()

    return lambda: loop(act, Told())


MIXED = {
    # --- the model mixes
    "told a number of the batch": telling(lambda x: float(x.abs().mean())),
    "told the number of records": telling(lambda x: 1 / len(x)),
    "faintly": lambda: train(Around(between=lambda m, h, x: h + 1e-4 * h.mean(0))),
    "in a parameter that hardly matters": lambda: train(Faint()),
    "a gate that is closed at first": lambda: train(Opening()),
    "later rows only": lambda: train(Around(between=later_rows), batch=16, data=TensorDataset(*tensors(n=160))),
    "one pair of rows": lambda: train(
        Around(between=one_pair), batch=16, data=TensorDataset(*tensors(n=160)), steps=60, epochs=6, lr=0
    ),
    "batch norm in disguise": lambda: train(nn.Sequential(nn.Linear(D, 4), BatchRenorm(), nn.Linear(4, C))),
    "centred": lambda: train(Around(before=lambda m, x: centre(x))),
    "scaled by the batch": lambda: train(Around(before=lambda m, x: x / x.norm())),
    "softmax over the batch": lambda: train(Around(between=lambda m, h, x: h.softmax(0))),
    "attention over the batch": lambda: train(Around(between=lambda m, h, x: (h @ h.T).softmax(1) @ h)),
    "rolled": lambda: train(Around(between=lambda m, h, x: h.roll(1, 0))),
    "flipped and flipped back": lambda: train(Around(before=lambda m, x: x.flip(0), after=lambda m, o: o.flip(0))),
    "cumulative sum": lambda: train(Around(between=lambda m, h, x: h.cumsum(0))),
    "neighbour added": lambda: train(Around(between=lambda m, h, x: h + 0.1 * h[torch.arange(len(h)) - 1])),
    "einsum over the batch": lambda: train(Around(between=lambda m, h, x: torch.einsum("bi,cj->bj", h, h) / len(h))),
    "largest of the batch": lambda: train(Around(between=lambda m, h, x: h - h.max(0).values)),
    "median of the batch": lambda: train(Around(between=lambda m, h, x: h - h.median(0).values)),
    "sorted columns": lambda: train(Around(between=lambda m, h, x: h.sort(0).values)),
    "argsort and back": lambda: train(Around(between=lambda m, h, x: h[x[:, 0].argsort()])),
    "argsort after a gate, and not back": lambda: train(Gated(back=False)),
    "whitened": lambda: train(Around(between=lambda m, h, x: h @ torch.linalg.inv(h.T @ h + torch.eye(4)))),
    "outer mean": lambda: train(Around(between=lambda m, h, x: h + (h.T @ h).mean(0))),
    "only in training": lambda: train(Around(before=lambda m, x: centre(x) if m.training else x)),
    "only in evaluation": lambda: train(Around(before=lambda m, x: x if m.training else centre(x)).eval()),
    "only after some steps": lambda: train(Around(before=later(centre, 40)), steps=118, epochs=24),
    "only in large batches": lambda: train(Around(before=lambda m, x: centre(x) if len(x) > 5 else x)),
    "if any record is large": lambda: train(Around(before=lambda m, x: x * (2.0 if bool(x.max() > 0.5) else 1.0))),
    "data-dependent scale as a number": lambda: train(Around(before=lambda m, x: x * float(x.abs().mean()))),
    "experts of a capacity": lambda: train(Experts()),
    "balancing loss": lambda: train(Balanced(), lambda o, y: F.cross_entropy(o[0], y) + o[1]),
    "mixup inside": lambda: train(Around(before=lambda m, x: mixup(x, x)[0])),
    "cut and paste": lambda: train(Around(before=lambda m, x: torch.cat([x[:, :1], x[:, 1:].flip(0)], 1))),
    "dropout of whole batches by data": lambda: train(Around(between=lambda m, h, x: h * (x.sum() > 0).float())),
    "straight-through of the batch": lambda: train(Around(between=lambda m, h, x: h + (h.mean(0) - h).detach())),
    # --- backward passes mix, or lose
    "backward of one's own": lambda: train(Around(between=lambda m, h, x: Mixing.apply(h))),
    "backward of one's own, without a rule": lambda: train(
        Around(between=lambda m, h, x: Mixing.apply(h * m.b.weight[0]))
    ),
    "gradient divided by its norm": lambda: train(Around(between=lambda m, h, x: Dividing.apply(h))),
    "hook that mixes": lambda: train(hooked(lambda g: g - g.mean(0))),
    "hook that clips the batch": lambda: train(hooked(lambda g: g / g.norm())),
    "hook that permutes": lambda: train(hooked(lambda g: g.flip(0))),
    "half of the rows detached": lambda: train(Around(between=no_rows)),
    "one row detached": lambda: train(Around(between=first_row_lost)),
    "hook on the model": lambda: train(
        Around(), around=lambda m: (m.register_forward_hook(lambda s, i, o: centre(o)), m)[1]
    ),
    "hook before the model": lambda: train(
        Around(), around=lambda m: (m.register_forward_pre_hook(lambda s, i: (centre(i[0]),)), m)[1]
    ),
    "wrapped by a function": lambda: train(Around(), around=lambda m: lambda x: m(x) - m(x).mean(0)),
    # --- the loss mixes
    "class weights": lambda: train(Around(), lambda o, y: F.cross_entropy(o, y, weight=torch.tensor([1.0, 9.0]))),
    "contrastive": lambda: train(Around(), contrastive),
    "supervised contrastive": lambda: train(Around(), supervised_contrastive),
    "triplets of neighbours": lambda: train(Around(), triplet),
    "batch spread": lambda: train(Around(), lambda o, y: F.cross_entropy((o - o.mean(0)) / o.std(0), y)),
    "weights of the batch": lambda: train(
        Around(),
        lambda o, y: (F.cross_entropy(o, y, reduction="none") * (y + 1) / (y + 1).sum()).sum(),
        loss_reduction="sum",
    ),
    "inverse frequencies": lambda: train(
        Around(),
        lambda o, y: (F.cross_entropy(o, y, reduction="none") / torch.bincount(y, minlength=C)[y]).sum(),
        loss_reduction="sum",
    ),
    "inverse frequencies by numpy": lambda: train(Around(), frequencies_by_numpy),
    "gains beside the others'": lambda: train(Around(), advantages),
    "hardest record only": lambda: train(
        Around(), lambda o, y: F.cross_entropy(o, y, reduction="none").max(), loss_reduction="sum"
    ),
    "log of the mean": lambda: train(Around(), lambda o, y: F.cross_entropy(o, y).log1p()),
    "root of the mean square": lambda: train(Around(), lambda o, y: (o.square().sum(1)).mean().sqrt()),
    "correlation": lambda: train(Around(), lambda o, y: -torch.corrcoef(o.T)[0, 1]),
    "variance of outputs": lambda: train(Around(), lambda o, y: F.cross_entropy(o, y) + o.var(0).sum()),
    "pairwise ranking": lambda: train(Around(), lambda o, y: F.softplus(o[:, :1] - o[:, 0]).mean()),
    "divergence from the batch": lambda: train(
        Around(),
        lambda o, y: F.kl_div(o.log_softmax(1), o.softmax(1).mean(0).expand_as(o).detach(), reduction="batchmean"),
    ),
    "sum declared a mean": lambda: train(Around(), lambda o, y: F.cross_entropy(o, y, reduction="sum")),
    "mean declared a sum": lambda: train(Around(), loss_reduction="sum"),
    "mean by hand declared a sum": lambda: train(
        Around(), lambda o, y: F.cross_entropy(o, y, reduction="sum") / len(y), loss_reduction="sum", steps=8, epochs=2
    ),
    "number of records as a reciprocal": lambda: as_sum(lambda o, y: summed(o, y) * (1 / len(y))),
    "number of records by name": lambda: as_sum(lambda o, y: torch.div(summed(o, y), other=len(y))),
    "number of records in a tensor": lambda: as_sum(lambda o, y: summed(o, y) / torch.tensor([len(y)]).sum()),
    "number of records in ones": lambda: as_sum(lambda o, y: summed(o, y) / torch.ones(len(y)).sum()),
    "number of records in every weight": lambda: as_sum(
        lambda o, y: (F.cross_entropy(o, y, reduction="none") * torch.full((len(y),), 1 / len(y))).sum()
    ),
    "number of records less one": lambda: as_sum(
        lambda o, y: summed(o, y) / (len(y) - 0.999 if len(y) < 2 else len(y) - 1)
    ),
    "root of the number of records": lambda: as_sum(lambda o, y: summed(o, y) / len(y) ** 0.5),
    "record by record, divided by their number": lambda: as_sum(
        lambda o, y: sum(F.cross_entropy(o[i : i + 1], y[i : i + 1]) for i in range(len(y))) / len(y)
    ),
    "value of the batch": lambda: as_sum(lambda o, y: summed(o, y) / float(o.detach().abs().sum())),
    "item of the batch": lambda: as_sum(lambda o, y: summed(o, y) / (y.sum().item() + 1)),
    "number of chosen records": lambda: as_sum(masked(lambda chosen, those: len(those))),
    "number of chosen records as an item": lambda: as_sum(masked(lambda chosen, those: chosen.sum().item())),
    "condition on the batch": lambda: as_sum(lambda o, y: summed(o, y) * (2 if (y == 1).float().mean() > 0.5 else 1)),
    "means through a list": lambda: train(
        Around(), lambda o, y: F.mse_loss(o, torch.tensor(o.detach().mean(0).tolist()).expand_as(o))
    ),
    "spread through numpy": lambda: train(
        Around(), lambda o, y: F.cross_entropy(o * torch.from_numpy(o.detach().numpy().std(0)), y)
    ),
    "weights of a backward pass": weighted_backward(lambda losses, y: (y + 1.0) / (y + 1.0).sum()),
    "weights of a backward pass, of the losses": weighted_backward(lambda losses, y: losses.softmax(0)),
    "running mean, written over": lambda: train(Around(), Centre()),
    "running mean by numpy": lambda: train(Around(), Elsewhere()),
    "token mean": lambda: words(token_mean),
    "token mean in the loop": lambda: train(
        nn.Sequential(nn.Embedding(6, 3), nn.Linear(3, 6)), token_mean, data=TensorDataset(*tensors("words"))
    ),
    "centred targets of oneself": lambda: loop(distilled),
    # --- the loop mixes, or steps as it should not
    "mixup": lambda: train(Around(), change=mixup),
    "inputs written over": changing(lambda x, y: x.sub_(x.mean(0))),
    "inputs written over, behind autograd": changing(lambda x, y: x.data.sub_(x.data.mean(0))),
    "inputs written over by numpy": changing(through_numpy),
    "targets written over": changing(lambda x, y: y.__setitem__(slice(None), y.float().mean().round().long())),
    "mixup by numpy": lambda: train(Around(), change=mixup_by_numpy),
    "scaled by the largest": lambda: train(Around(), change=lambda x, y: (x / x.abs().max(), y)),
    "statistics of the batch": lambda: train(Around(), change=lambda x, y: (centre(x), y)),
    "targets in another order": lambda: train(Around(), change=lambda x, y: (x, y.flip(0))),
    "mixup in the collate function": lambda: train(Around(), collate=collated(mixup)),
    "statistics in the collate function": lambda: train(Around(), collate=collated(lambda x, y: (centre(x), y))),
    "sorted in the collate function": lambda: train(
        Around(), collate=collated(lambda x, y: (x[x[:, 0].argsort()], y[x[:, 0].argsort()]))
    ),
    "sharpness-aware": lambda: loop(sharpness_aware),
    "gradient penalty": lambda: loop(penalised),
    "gradient by hand": lambda: loop(by_hand),
    "without a step": lambda: loop(without_step),
    "learning rate by the size of the batch": lambda: loop(sized_steps, passes=3),
    "half a batch": lambda: loop(halves),
    "record by record": lambda: loop(record_by_record),
    "parameter outside": lambda: loop(outside),
    "queue of outputs": queue_loop,
    # --- state
    "outputs kept in a list of the model": lambda: loop(banked, Bank()),
    "attribute written by the loop, a number": written_by_the_loop(
        lambda m, x: setattr(m, "seen", float(x.abs().mean())), seen=1.0
    ),
    "attribute written by the loop, a tensor": written_by_the_loop(
        lambda m, x: setattr(m, "seen", x.abs().mean(0)), seen=1.0
    ),
    "buffer written by the loop": written_by_the_loop(lambda m, x: m.seen.copy_(x.abs().mean(0)), seen=torch.ones(D)),
    "buffer written by the loop, behind autograd": written_by_the_loop(
        lambda m, x: m.seen.data.copy_(x.abs().mean(0)), seen=torch.ones(D)
    ),
    "attribute kept by the loop": lambda: loop(kept_by_the_loop, Around(before=lambda m, x: x * m.seen, seen=1.0)),
    "running mean in a buffer": lambda: train(
        Around(before=lambda m, x: (m.mean.mul_(0.9).add_(0.1 * x.detach().mean(0)), x)[1], mean=torch.zeros(D))
    ),
    "buffer replaced": lambda: train(
        Around(before=lambda m, x: (setattr(m, "mean", x.detach().mean(0)), x)[1], mean=torch.zeros(D))
    ),
    "number kept": lambda: train(Around(before=lambda m, x: (setattr(m, "seen", float(x.sum())), x)[1], seen=0.0)),
    "tensor kept": lambda: train(Around(before=remember, kept=None)),
    "list kept": lambda: train(Around(before=lambda m, x: (m.seen.append(x.detach()[0]), x)[1], seen=[])),
    "dictionary kept": lambda: train(Around(before=lambda m, x: (m.seen.update(last=float(x[0, 0])), x)[1], seen={})),
    "global list": lambda: train(GlobalState()),
    "first batch decides weights": lambda: train(nn.Sequential(ActNorm(), nn.Linear(D, C))),
    "codebook of every pass": lambda: train(Codebook()),
    "codebook of some passes": lambda: train(Codebook(every=16), steps=30, epochs=8),
    "weight written behind autograd": lambda: train(Around(before=in_place_data)),
    "bias written from a record": lambda: train(Around(before=weight_from_data)),
    "rows renormalised on the way": lambda: train(
        nn.Sequential(nn.Embedding(6, 3, max_norm=0.5), nn.Flatten(), nn.Linear(12, C)),
        data=TensorDataset(tensors("words")[0], torch.arange(N) % 2),
    ),
    "count by a number of Python": lambda: train(
        Around(before=lambda m, x: (setattr(m, "positive", m.positive + int((x[:, 0] > 0).sum())), x)[1], positive=0)
    ),
}
"""By name: what must be refused."""

random.seed(0)
