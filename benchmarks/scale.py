"""How a private step grows: time and memory against parameters, batch, length, vocabulary and records a user.

One decoder (attention, two linear layers a block, a table that is the output layer too), one fact changed at a time.
Beside each measured ratio stands what ``docs/scale.md`` predicts by counting products. Every time is the least of
several steps, plain and private in turns, in processor time on one thread; memory is the most that tensors held at
once. ``--quick`` takes the first and the last of each row of facts. Processes are measured by ``distributed``.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.models import least, peak
from discreet.random import gaussian_noise
from discreet.training import PerUser, make_private

STEPS = 3


@dataclass(frozen=True)
class Setting:
    """The facts of a step."""

    width: int = 256
    layers: int = 4
    words: int = 4096
    length: int = 64
    batch: int = 16
    records_a_user: int = 1

    @property
    def products(self) -> list[tuple[int, int]]:
        """The two sizes of every weight."""
        w = self.width
        return [*[(3 * w, w), (w, w), (4 * w, w), (w, 4 * w)] * self.layers, (self.words, w)]

    @property
    def parameters(self) -> int:
        """Numbers that are trained, but for normalisations and biases."""
        return sum(map(prod, self.products))

    @property
    def predicted(self) -> float:
        """Products of a private step over those of a plain one: norms take as many as the cheaper of two ways."""
        steps = self.length * self.records_a_user
        attention = 12 * self.batch * self.layers * self.length**2 * self.width
        plain = 6 * self.batch * self.length * self.parameters + attention
        norms = sum(min(steps * m * n, steps**2 * (m + n)) for m, n in self.products)
        return 1 + 2 * self.batch / self.records_a_user * norms / plain


AXES: dict[str, list[Setting]] = {
    "parameters": [replace(Setting(), width=width) for width in (128, 256, 512)],
    "batch": [replace(Setting(), batch=batch) for batch in (4, 16, 64)],
    "length": [replace(Setting(), length=length, batch=1024 // length) for length in (16, 64, 256)],
    "vocabulary": [replace(Setting(), words=words) for words in (1024, 4096, 16384)],
    "records a user": [replace(Setting(), records_a_user=records) for records in (1, 4, 16)],
}


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.two, self.into, self.out = nn.LayerNorm(width), nn.LayerNorm(width), *_pair(3, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.into(self.one(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.two(x))))


def _pair(times: int, width: int) -> tuple[nn.Linear, nn.Linear]:
    return nn.Linear(width, times * width), nn.Linear(width, width)


class Decoder(nn.Module):
    def __init__(self, of: Setting) -> None:
        super().__init__()
        self.table, self.blocks = (
            nn.Embedding(of.words, of.width),
            nn.ModuleList(Block(of.width) for _ in range(of.layers)),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x)
        return F.linear(x, self.table.weight)


def loss(model: nn.Module, tokens: Tensor) -> Tensor:
    scores = model(tokens)[:, :-1].transpose(1, 2)
    return F.cross_entropy(scores, tokens[:, 1:], reduction="none").mean(1).mean()


def steps(of: Setting) -> tuple[Callable[[], None], Callable[[], None], int]:
    """A plain and a private step of the same model, and the bytes of what stands between steps."""
    torch.manual_seed(0)
    plain, private = Decoder(of), Decoder(of)
    tokens = torch.randint(0, of.words, (of.batch, of.length))
    ordinary = torch.optim.SGD(plain.parameters(), lr=0.01)
    users = of.batch // of.records_a_user
    names = [row // of.records_a_user for row in range(of.batch)]
    sampler = PerUser(batch_size=users, dataset_size=users, users=names, records_per_user=of.records_a_user)
    model, trainer, loader = make_private(
        private,
        torch.optim.SGD(private.parameters(), lr=0.01),
        DataLoader(TensorDataset(tokens), of.batch),
        sampler=sampler if of.records_a_user > 1 else None,
        epochs=100,
        noise_multiplier=1.0,
        loss_reduction="mean",
        unverified="a benchmark on made-up records",
    )

    def one() -> None:
        ordinary.zero_grad()
        loss(plain, tokens).backward()
        ordinary.step()

    def other() -> None:
        for (given,) in loader:
            trainer.zero_grad()
            loss(model, given).backward()
            trainer.step()

    return one, other, sum(p.numel() * p.element_size() for p in plain.parameters())


def row(axis: str, of: Setting) -> str:
    plain, private, standing = steps(of)
    for _ in range(3):  # the first batches are verified
        plain(), private()
    times = [(least(plain), least(private)) for _ in range(STEPS)]
    seconds = min(a for a, _ in times), min(b for _, b in times)
    # a verified step takes more, and no two in a row are
    held = [min(peak(step, standing) for _ in range(2)) / 2**20 for step in (plain, private)]
    facts = f"{of.parameters / 1e6:.1f} M | {of.batch} | {of.length} | {of.words} | {of.records_a_user}"
    return (
        f"| {axis} | {facts} | {seconds[0]:.3f} s | {seconds[1] / seconds[0]:.2f}× | {of.predicted:.2f}× | "
        f"{held[0]:.0f} MB | {held[1] / held[0]:.2f}× |"
    )


def main() -> None:
    torch.set_num_threads(1)
    quick = "--quick" in sys.argv
    print(f"\nScale. {platform.processor() or platform.machine()}, torch {torch.__version__}, one thread\n")
    heads = "changed | parameters | batch | length | vocabulary | records a user | plain step"
    heads += " | private | predicted | memory | private"
    print(f"| {heads} |\n|{'---|' * 11}")
    for axis, settings in AXES.items():
        for setting in [settings[0], settings[-1]] if quick else settings:
            print(row(axis, setting), flush=True)
    start = time.process_time()
    gaussian_noise(20_000_000, 1.0)
    print(f"\nNoise: {20 / (time.process_time() - start):.0f} million numbers a second")


if __name__ == "__main__":
    main()
