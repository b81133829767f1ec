"""Plain models, trained by the plain loop on other seeds, and with an odd record among six: none is refused.

Each run is verified as any run is, on its first batches and at one later step. A run that is refused raises, with the
model's name, the seed and the record.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.errors import DiscreetError
from discreet.training import Speed, make_private
from searches._progress import with_progress

WORDS, STEPS, WIDTH, CLASSES = 12, 6, 8, 3
RECORDS, BATCH, PIECE = 64, 16, 5
SEEDS = 50
FEW = 6  # records, all of them in each batch, where one is odd
ODD = {  # by name: a record's entries, made of where they are
    "zeros": lambda at: 0 * at,
    "ones": lambda at: 0 * at + 1,
    "ten thousands": lambda at: 0 * at + 1e4,
    "1e8": lambda at: 0 * at + 1e8,
    "1e19": lambda at: 0 * at + 1e19,
    "3e38": lambda at: 0 * at + 3e38,
    "3e38 of both signs": lambda at: 3e38 * (-1) ** at,
    "1e30 of both signs": lambda at: 1e30 * (-1) ** at,
    "17 and a last bit": lambda at: 17 * (1 + 2.0**-23 * (at % 2)),
    "one large entry": lambda at: 1e6 * (at == 0),
    "1e-30": lambda at: 0 * at + 1e-30,
    "subnormal": lambda at: 0 * at + 1e-42,
    "infinite": lambda at: 0 * at + float("inf"),
    "not a number": lambda at: 0 * at + float("nan"),
}


class Last(nn.Module):
    """A recurrent network, read at its last step."""

    def __init__(self, network: nn.RNNBase) -> None:
        super().__init__()
        self.network = network
        self.out = nn.Linear(network.hidden_size * (1 + network.bidirectional), CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.network(x)[0][:, -1])  # type: ignore[no-any-return]


class Pooled(nn.Module):
    """Something done to the steps of a sequence, and their mean."""

    def __init__(self, inner: nn.Module, width: int = WIDTH) -> None:
        super().__init__()
        self.inner, self.out = inner, nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.inner(x).mean(1))  # type: ignore[no-any-return]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]  # type: ignore[no-any-return]


class Experts(nn.Module):
    """A mixture of experts: each step of a record is seen by the one it prefers."""

    def __init__(self, count: int = 3) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, count)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        chances = self.gate(x).softmax(-1)
        best = chances.argmax(-1)
        seen = [expert(x) * ((best == i) * chances[..., i]).unsqueeze(-1) for i, expert in enumerate(self.experts)]
        return torch.stack(seen).sum(0)


class Gumbel(nn.Module):
    """A hard choice of one of the features, by chance."""

    def __init__(self) -> None:
        super().__init__()
        self.choice, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.gumbel_softmax(self.choice(x), hard=True))  # type: ignore[no-any-return]


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.dropout(self.b(F.gelu(self.a(self.norm(x)))), 0.1, self.training)  # type: ignore[no-any-return]


def layers(*between: nn.Module) -> nn.Module:
    """Layers with something between them."""
    parts: list[nn.Module] = [nn.Flatten(), nn.Linear(STEPS * WIDTH, 32)]
    for part in between:
        parts += [part, nn.Linear(32, 32)]
    return nn.Sequential(*parts, nn.ReLU(), nn.Linear(32, CLASSES))


def images(*between: nn.Module) -> nn.Module:
    """A convolution over steps and features, with something after it."""
    kernel = nn.Conv2d(1, 4, 3)
    pooled = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, CLASSES))
    return nn.Sequential(nn.Unflatten(1, (1, STEPS)), kernel, *between, nn.ReLU(), pooled)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "logistic": lambda: nn.Sequential(nn.Flatten(), nn.Linear(STEPS * WIDTH, CLASSES)),
    "rectified": lambda: layers(nn.ReLU(), nn.ReLU()),
    "tanh": lambda: layers(nn.Tanh(), nn.Tanh()),
    "sigmoid": lambda: layers(nn.Sigmoid()),
    "gelu": lambda: layers(nn.GELU()),
    "layer norm": lambda: layers(nn.LayerNorm(32), nn.ReLU()),
    "dropout": lambda: layers(nn.Dropout(0.3), nn.ELU()),
    "convolution": lambda: images(),
    "group norm": lambda: images(nn.GroupNorm(2, 4)),
    "convolution over steps": lambda: nn.Sequential(
        nn.Conv1d(STEPS, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(24, CLASSES)
    ),
    "recurrent": lambda: Last(nn.RNN(WIDTH, 16, batch_first=True)),
    "gru": lambda: Last(nn.GRU(WIDTH, 16, batch_first=True)),
    "two gru": lambda: Last(nn.GRU(WIDTH, 16, num_layers=2, batch_first=True)),
    "lstm": lambda: Last(nn.LSTM(WIDTH, 16, batch_first=True)),
    "lstm both ways": lambda: Last(nn.LSTM(WIDTH, 8, batch_first=True, bidirectional=True)),
    "attention": lambda: Pooled(Attention()),
    "transformer": lambda: Pooled(nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.1, batch_first=True)),
    "residual": lambda: Pooled(nn.Sequential(Residual(), Residual())),
    "experts": lambda: Pooled(Experts()),
    "hard gumbel": lambda: Pooled(Gumbel()),
}


def trained(name: str, seed: int, odd: str = "") -> None:
    """One run, in pieces at odd seeds; or one on six records, the first of them odd."""
    torch.manual_seed(seed)
    records, batch = (FEW, FEW) if odd else (RECORDS, BATCH)
    x, y = torch.randn(records, STEPS, WIDTH), torch.randint(0, CLASSES, (records,))
    if odd:
        x[0] = ODD[odd](torch.arange(STEPS * WIDTH, dtype=torch.float64)).view(STEPS, WIDTH)
    model = MODELS[name]()
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(TensorDataset(x, y), batch),
        noise_multiplier=1.0,
        epochs=8 * batch / records if odd else 2,
        loss_reduction="mean",
        sampler="fixed-size" if odd else None,
        speed=Speed(max_physical_batch_size=PIECE if seed % 2 and not odd else None),
        rng=seed,
    )
    while optimizer.privacy.remaining_steps:
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()


def main(size: int | None = None) -> None:
    """Try every model with each of so many seeds, and each odd record with a tenth as many; fifty seeds by default."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    seeds = range(SEEDS if size is None else size)
    usual = list(itertools.product(MODELS, seeds, [""]))
    strange = list(itertools.product(MODELS, range(-(-len(seeds) // 10)), ODD))
    for name, seed, odd in with_progress("plain", usual + strange, 200):
        try:
            trained(name, seed, odd)
        except DiscreetError as error:
            raise AssertionError(f"{name} with seed {seed} {odd} was refused: {error}") from error
    print(
        f"plain: {len(MODELS)} models, {len(seeds)} seeds of each, {len(strange)} runs with one of {len(ODD)} odd "
        "records, none refused"
    )
