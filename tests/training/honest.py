"""Models and loops that treat records apart, in all the ways people write them: every one must pass.

An entry is a function that makes a model, and what is special about its loop: the data, the loss, what is done to a
batch, the options of ``make_private``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, TensorDataset

from discreet.training import Speed, make_private
from tests.training.adversaries import Around, C, D, N, Words, collated, tensors


class Case:
    """A model and its loop."""

    def __init__(self, model, loss=F.cross_entropy, data=None, change=None, collate=None, batch=8, **options):
        self.model, self.loss, self.data, self.change, self.collate = model, loss, data, change, collate
        self.batch, self.options = batch, options

    def private(self, records=None, **options):
        """Model, optimiser and loader, made private."""
        torch.manual_seed(0)
        model = self.model()
        given = {"epochs": 1, "noise_multiplier": 1.0, "loss_reduction": "mean", "rng": 1} | self.options | options
        records = self.records() if records is None else records
        loader = DataLoader(records, self.batch, collate_fn=self.collate)
        return make_private(model, torch.optim.SGD(model.parameters(), lr=0.1), loader, **given)

    def records(self):
        return numbers() if self.data is None else self.data()

    def step(self, model, optimizer, x, y):
        x, y = self.change(x, y) if self.change else (x, y)
        optimizer.zero_grad()
        self.loss(model(x), y).backward()
        optimizer.step()

    def train(self, steps=3, **options):
        model, optimizer, loader = self.private(**options)
        done = 0
        while done < steps:
            for x, y in loader:
                self.step(model, optimizer, x, y)
                done += 1
                if done == steps:
                    break
        return model


class AgainstFakes(Case):
    """A discriminator, which meets a fake beside each record."""

    def step(self, model, optimizer, x, y):
        fake = torch.randn(len(x), 2) @ torch.ones(2, D)
        optimizer.zero_grad()
        (F.softplus(-model(x)[:, 0]).mean() + F.softplus(model(fake)[:, 0]).mean()).backward()
        optimizer.step()


class Taught(Case):
    """A teacher that follows the student's weights, in a loop that reads values before it goes backward."""

    def __init__(self, model):
        super().__init__(model)
        self.teacher = model()

    def step(self, model, optimizer, x, y):
        with torch.no_grad():
            target = self.teacher(x).softmax(1)
        optimizer.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y) + F.kl_div(out.log_softmax(1), target, reduction="batchmean")
        assert loss.item() >= 0
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for own, p in zip(self.teacher.parameters(), model.parameters(), strict=True):
                own.lerp_(p, 0.1)


def numbers():
    return TensorDataset(*tensors())


def images():
    x = torch.randn(N, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    return TensorDataset(x, (x.sum((1, 2, 3)) > 0).long())


def words():
    x, _ = tensors("words")
    return TensorDataset(x, x)


def labelled_words():
    return TensorDataset(tensors("words")[0], torch.arange(N) % C)


def ignored():
    return TensorDataset(*tensors("words"))


class Ragged(Dataset):
    """Sequences of different lengths."""

    def __len__(self):
        return N

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        length = int(torch.randint(1, 5, (), generator=g))
        return torch.randint(1, 6, (length,), generator=g), i % C


def padded(records):
    x = nn.utils.rnn.pad_sequence([r[0] for r in records], batch_first=True)
    return x, torch.tensor([r[1] for r in records])


class Pooled(nn.Module):
    """The mean of the words that are there, whatever the padding."""

    def __init__(self):
        super().__init__()
        self.word, self.out = nn.Embedding(6, 4, padding_idx=0), nn.Linear(4, C)

    def forward(self, x):
        there = (x > 0).float()
        return self.out((self.word(x) * there.unsqueeze(2)).sum(1) / there.sum(1, keepdim=True).clamp(min=1))


class Predicting(Words):
    """Its own labels are its words."""

    def __init__(self):
        super().__init__(folded_tokens)

    def forward(self, words):
        return super().forward(words, words)


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.word, self.rnn = nn.Embedding(6, 4), kind(4, 5, batch_first=True, **options)
        self.out = nn.Linear(5, C)

    def forward(self, x):
        return self.out(self.rnn(self.word(x))[0][:, -1])


class Attention(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.word = nn.Embedding(6, 4)
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=dropout, batch_first=True)
        self.out = nn.Linear(4, C)

    def forward(self, x):
        return self.out(self.layer(self.word(x)).mean(1))


class Denoising(Attention):
    """Noise of its own on every token, before an attention that folds records and tokens."""

    def forward(self, x):
        words = self.word(x)
        return self.out(self.layer(words + torch.randn_like(words)).mean(1))


class Fused(nn.Module):
    """Attention written by hand around torch's own, with dropout inside."""

    def __init__(self, causal=True):
        super().__init__()
        self.word, self.qkv, self.out, self.causal = nn.Embedding(6, 4), nn.Linear(4, 12), nn.Linear(4, C), causal

    def forward(self, x):
        q, k, v = self.qkv(self.word(x)).view(*x.shape, 3, 2, 2).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v, dropout_p=0.3 if self.training else 0.0, is_causal=self.causal)
        return self.out(h.transpose(1, 2).flatten(2).mean(1))


class Positions(nn.Module):
    """A table of positions without a batch dimension, tied output weights."""

    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(6, 4), nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        return F.linear(torch.tanh(self.word(x) + self.place), self.word.weight)


class Counting(Around):
    """Counts its calls, in a number and in a buffer."""

    def __init__(self):
        super().__init__(steps=torch.zeros(()))

    def forward(self, x):
        self.steps += 1
        return super().forward(x)


class StepsFirst(nn.Module):
    """Steps first, flattened: records take turns, and so do the draws of dropout."""

    def __init__(self):
        super().__init__()
        self.word, self.out = nn.Embedding(6, 4), nn.Linear(4, C)

    def forward(self, x):
        h = self.word(x).transpose(0, 1).reshape(-1, 4)
        return self.out(F.dropout(h, 0.3)).view(x.shape[1], -1, C).mean(0)


class Choosing(nn.Module):
    """Every record is sent to one of two experts, whatever the others do."""

    def __init__(self):
        super().__init__()
        self.gate, self.a, self.b = nn.Linear(D, 2), nn.Linear(D, C), nn.Linear(D, C)

    def forward(self, x):
        share = self.gate(x).softmax(1)
        best = F.one_hot(share.argmax(1), 2) * share
        return self.a(x) * best[:, :1] + self.b(x) * best[:, 1:]


class Variational(nn.Module):
    """Draws inside, and returns three things."""

    def __init__(self):
        super().__init__()
        self.mean, self.spread, self.back = nn.Linear(D, 2), nn.Linear(D, 2), nn.Linear(2, D)

    def forward(self, x):
        mean, spread = self.mean(x), self.spread(x)
        return self.back(mean + torch.randn_like(mean) * (spread / 2).exp()), mean, spread


def elbo(found, y, x=None):
    out, mean, spread = found
    return (out.square().sum(1) + 0.5 * (mean.square() + spread.exp() - spread - 1).sum(1)).mean()


class Scaled(torch.autograd.Function):
    """A backward pass of one's own that keeps records apart."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return 3 * g


def own_token_mean(scores, y):
    each = F.cross_entropy(scores.transpose(1, 2), y, ignore_index=-100, reduction="none").sum(1)
    return (each / (y != -100).sum(1).clamp(min=1)).mean()


def folded_tokens(scores, y):
    return F.cross_entropy(scores.flatten(0, 1), y.flatten())


def shaped_by_size(o, y):
    losses = F.cross_entropy(o.view(len(y), C), y, reduction="none").view(len(y), 1)
    return losses.sum() / len(y)


def masked(o, y):
    o = o.clone()
    o[:, 1] = o[:, 1] * 2
    return F.cross_entropy(o, y)


def accumulated(o, y):
    total = torch.zeros(len(y))
    total += F.cross_entropy(o, y, reduction="none")
    total += o.square().sum(1)
    return total.mean()


def smoothed(m, h, x):
    if h.requires_grad:
        h.register_hook(lambda g: 2 * g)
    return h


def by_row(m, h, x):
    return torch.where(x.sum(1, keepdim=True) > 0, h, -h)


def half(model):
    return model.to(torch.bfloat16)


def network(between=nn.Tanh):
    return nn.Sequential(nn.Linear(D, 8), between(), nn.Linear(8, C))


def hidden(*parts):
    return lambda: nn.Sequential(nn.Linear(D, 8), *[part() for part in parts], nn.Linear(8, C))


def words_model():
    return nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 6))


class Annealed:
    """A weight that grows from step to step, in a loop that asks for sizes."""

    def __init__(self):
        self.steps = 0

    def __call__(self, o, y):
        self.steps += 1
        return F.cross_entropy(o.view(len(y), C), y) + self.steps / 100 * o.square().sum(1).mean()


def logged(o, y):
    """Values are read before the backward pass, and nothing of them comes back."""
    found = F.cross_entropy(o, y)
    assert found.item() >= 0
    assert (o.argmax(1) == y).sum().item() <= len(y)
    return found


def picked(o, y):
    return -o.log_softmax(1)[torch.arange(len(y)), y].mean()


def picked_by_range(o, y):
    return -F.log_softmax(o, -1)[range(len(y)), y].sum() / len(y)


def far():
    """Every third record is so large that its loss is saturated, or as wrong as can be."""
    x, y = tensors()
    x[::3] *= 300
    return TensorDataset(x, y)


APART = {
    # --- models
    "linear": Case(lambda: nn.Linear(D, C)),
    "network": Case(network),
    "in-place activations": Case(hidden(lambda: nn.ReLU(inplace=True))),
    "layer norm": Case(hidden(lambda: nn.LayerNorm(8))),
    "group norm of single channels": Case(hidden(lambda: nn.GroupNorm(8, 8))),
    "rms norm": Case(hidden(lambda: nn.RMSNorm(8))),
    "parametric activation": Case(hidden(nn.PReLU)),
    "leaky activation": Case(hidden(lambda: nn.LeakyReLU(0.2))),
    "weight norm": Case(lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(D, 4)), nn.Linear(4, C))),
    "spectral norm": Case(
        lambda: nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(D, 4)), nn.Linear(4, C))
    ),
    "dropout": Case(hidden(nn.Dropout)),
    "dropout in place": Case(hidden(lambda: nn.Dropout(0.3, inplace=True))),
    "alpha dropout": Case(hidden(lambda: nn.AlphaDropout(0.3))),
    "random slopes": Case(hidden(nn.RReLU)),
    "noise inside": Case(lambda: Around(between=lambda m, h, x: h + 0.5 * torch.randn_like(h))),
    "noise inside, in place": Case(lambda: Around(between=lambda m, h, x: h + torch.empty_like(h).normal_())),
    "noise of all records": Case(lambda: Around(between=lambda m, h, x: h * torch.rand(4))),
    "one layer by chance": Case(lambda: Around(between=lambda m, h, x: h * 2 if float(torch.rand(())) < 0.5 else h)),
    "soft choice by chance": Case(lambda: Around(after=lambda m, o: F.gumbel_softmax(o, hard=True).log_softmax(1) + o)),
    "random projection": Case(lambda: Around(before=lambda m, x: x @ torch.randn(D, D))),
    "dropped weights": Case(lambda: Around(between=lambda m, h, x: h + F.linear(x, F.dropout(m.a.weight, 0.3)))),
    "variational": Case(Variational, elbo),
    "gate of its own": Case(lambda: Around(between=by_row)),
    "experts": Case(Choosing),
    "layer used twice": Case(lambda: Around(between=lambda m, h, x: h + m.a(x))),
    "parameter of no layer": Case(lambda: Around(between=lambda m, h, x: h * m.b.weight[0])),
    "backward of one's own": Case(lambda: Around(between=lambda m, h, x: Scaled.apply(h))),
    "hook that scales": Case(lambda: Around(between=smoothed)),
    "detached branch": Case(lambda: Around(between=lambda m, h, x: h * torch.sigmoid(h).detach())),
    "counts its calls": Case(Counting),
    "frozen layer": Case(lambda: (lambda m: (m[0].requires_grad_(False), m)[1])(network())),
    "evaluation mode": Case(lambda: network().eval()),
    "double precision": Case(
        lambda: network().double(), data=lambda: TensorDataset(tensors()[0].double(), tensors()[1])
    ),
    "half precision": Case(
        lambda: half(network()),
        lambda o, y: F.cross_entropy(o.float(), y),
        lambda: TensorDataset(tensors()[0].bfloat16(), tensors()[1]),
    ),
    "convolution": Case(lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, C)), data=images),
    "convolution and group norm": Case(
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(16, C)),
        data=images,
    ),
    "pooling": Case(
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, C)), data=images
    ),
    "dropped channels": Case(
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.Dropout2d(0.5), nn.Flatten(), nn.Linear(16, C)), data=images
    ),
    "transposed convolution": Case(
        lambda: nn.Sequential(nn.ConvTranspose2d(1, 1, 2), nn.Flatten(), nn.Linear(25, C)), data=images
    ),
    "words": Case(words_model, folded_tokens, words),
    "bag of words": Case(lambda: nn.Sequential(nn.EmbeddingBag(6, 4), nn.Linear(4, C)), data=labelled_words),
    "tied weights": Case(Positions, folded_tokens, words),
    "long short-term memory": Case(lambda: Recurrent(nn.LSTM), data=labelled_words),
    "gated recurrent, dropped between layers": Case(
        lambda: Recurrent(nn.GRU, num_layers=2, dropout=0.4), data=labelled_words
    ),
    "steps first, dropped": Case(StepsFirst, data=labelled_words),
    "attention": Case(Attention, data=labelled_words),
    "attention with dropout": Case(lambda: Attention(0.2), data=labelled_words),
    "noise before attention": Case(Denoising, data=labelled_words),
    "fused attention with dropout": Case(Fused, data=labelled_words),
    "loss inside the model": Case(Predicting, lambda o, y: o["loss"], words),
    "checkpointed": Case(
        lambda: Around(between=lambda m, h, x: checkpoint(lambda z: F.dropout(m.a(z), 0.3), x, use_reentrant=False))
    ),
    # --- losses
    "label smoothing": Case(network, nn.CrossEntropyLoss(label_smoothing=0.1)),
    "sum": Case(network, lambda o, y: F.cross_entropy(o, y, reduction="sum"), loss_reduction="sum"),
    "none, summed": Case(network, lambda o, y: F.cross_entropy(o, y, reduction="none").sum(), loss_reduction="none"),
    "mean by hand": Case(network, lambda o, y: F.cross_entropy(o, y, reduction="sum") / len(y)),
    "shapes by hand": Case(network, shaped_by_size),
    "written into": Case(network, masked),
    "added up in place": Case(network, accumulated),
    "two losses": Case(network, lambda o, y: F.cross_entropy(o, y) + 0.1 * o.square().mean()),
    "weights of classes, a record at a time": Case(
        network, lambda o, y: F.cross_entropy(o, y, weight=torch.tensor([1.0, 9.0]), reduction="none").mean()
    ),
    "penalty on outputs": Case(network, lambda o, y: F.cross_entropy(o, y) + o.abs().sum() / o.shape[0]),
    "square error": Case(network, lambda o, y: F.mse_loss(o, F.one_hot(y, C).float())),
    "means of own tokens": Case(words_model, own_token_mean, ignored),
    "huber": Case(network, lambda o, y: F.huber_loss(o[:, 0], y.float())),
    "constant divisor": Case(network, lambda o, y: F.cross_entropy(o, y, reduction="sum") / 8, loss_reduction="sum"),
    "margin": Case(network, F.multi_margin_loss),
    "places of the classes": Case(network, picked),
    "places by a range": Case(network, picked_by_range),
    "mean by a reciprocal": Case(network, lambda o, y: F.cross_entropy(o, y, reduction="sum") * (1 / len(y))),
    "mean by ones": Case(network, lambda o, y: F.cross_entropy(o, y, reduction="sum") / torch.ones(len(y)).sum()),
    "mean by name": Case(network, lambda o, y: torch.div(F.cross_entropy(o, y, reduction="sum"), other=len(y))),
    "annealed": Case(network, Annealed()),
    "logged before backward": Case(network, logged),
    "saturated": Case(hidden(nn.Dropout), data=far),
    "focal": Case(network, lambda o, y: ((1 - (-F.cross_entropy(o, y, reduction="none")).exp()) ** 2).mean()),
    # --- loops
    "a fake beside each record": AgainstFakes(network),
    "a teacher that follows": Taught(network),
    "as many steps as records": Case(Fused, data=labelled_words, batch=4, sampler="fixed-size"),
    "noise on inputs": Case(network, change=lambda x, y: (x + 0.1 * torch.randn_like(x), y)),
    "another order": Case(network, change=lambda x, y: (lambda o: (x[o], y[o]))(torch.randperm(len(x)))),
    "normalised by constants, in place": Case(network, change=lambda x, y: (x.sub_(0.1).div_(2.0), y)),
    "normalised by itself, in place": Case(network, change=lambda x, y: (x.div_(x.norm(dim=1, keepdim=True)), y)),
    "noise on inputs, in place": Case(network, change=lambda x, y: (x.add_(0.1 * torch.randn_like(x)), y)),
    "normalised by constants": Case(network, change=lambda x, y: ((x - 0.1) / 2.0, y)),
    "normalised by itself": Case(network, change=lambda x, y: (x / x.norm(dim=1, keepdim=True), y)),
    "pieces": Case(network, speed=Speed(max_physical_batch_size=3)),
    "collate function": Case(network, collate=collated(lambda x, y: (x + 1, y))),
    "collate function that augments": Case(network, collate=collated(lambda x, y: (x + 0.1 * torch.randn_like(x), y))),
    "padding without effect": Case(Pooled, data=Ragged, collate=padded),
    "per-layer clipping": Case(network, clipping="per-layer"),
    "automatic clipping": Case(network, clipping="automatic"),
}
"""By name: what must pass."""

CHANCE = {
    "a fake beside each record",
    "a teacher that follows",
    "as many steps as records",
    "noise on inputs, in place",
    "annealed",
    "saturated",
    "dropout",
    "dropout in place",
    "steps first, dropped",
    "noise inside",
    "noise inside, in place",
    "noise of all records",
    "one layer by chance",
    "soft choice by chance",
    "random projection",
    "dropped weights",
    "variational",
    "dropped channels",
    "gated recurrent, dropped between layers",
    "attention with dropout",
    "alpha dropout",
    "fused attention with dropout",
    "checkpointed",
    "noise on inputs",
    "another order",
    "collate function that augments",
    "random slopes",
}
"""Those whose gradients depend on more than the records: two runs do not draw alike."""
