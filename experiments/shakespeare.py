"""A character model on tinyshakespeare: bits per character at equal epsilon, for each noise.

A record is a piece of 64 characters; neighbours differ by one. The model sees the last 8 characters: embeddings of
16, a convolution to 64 channels, a layer to the 65 characters. The first nine tenths of the text train, the last tenth
tests.
All noises take one step size, which was not tuned; ``python -m experiments.shakespeare choose`` prints others, on the
last eighth of the *training* part.

``python -m experiments.shakespeare [--quick]``; quick: one epsilon, one seed.
"""

from __future__ import annotations

import gzip
import math
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import KeptBins, make_private, noise

TEXT = Path(__file__).resolve().parents[2] / "shared" / "data" / "tinyshakespeare" / "input.txt.gz"
LENGTH, BATCH, EPOCHS, DELTA, CLIP = 64, 500, 8, 1e-5, 0.5
EPSILONS, SEEDS = (2.0, 8.0), 2
NOISES: dict[str, tuple[noise.Noise, bool]] = {  # and whether the sampler is said to be kept bins
    "independent, Poisson": (noise.Independent(), False),
    "banded 4, cyclic Poisson": (noise.Banded(bands=4, momentum=0.9), False),
    "BLT 3": (noise.BLT(buffers=3, momentum=0.9), False),
    "lambda CGD": (noise.LambdaCGD(momentum=0.9), False),
    "tree, restarts": (noise.Tree(momentum=0.9), False),
    "independent, not amplified": (noise.Independent(), True),
}
STEP_SIZES = dict.fromkeys(NOISES, 2.0)


class Characters(nn.Module):
    """The next character from the last eight."""

    def __init__(self, letters: int = 65, seen: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(letters + 1, 16)
        self.mixed = nn.Conv1d(16, 64, seen, padding=seen - 1)
        self.out = nn.Linear(64, letters)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.mixed(self.embedding(x).transpose(1, 2))[:, :, : x.shape[1]]
        answer: Tensor = self.out(torch.relu(hidden).transpose(1, 2))
        return answer


def pieces() -> tuple[Tensor, Tensor]:
    """Training and test pieces: what is seen, with a blank first, and what comes next."""
    text = gzip.decompress(TEXT.read_bytes()).decode()
    known = sorted(set(text))
    codes = torch.tensor([known.index(letter) for letter in text])
    rows = codes[: len(codes) // LENGTH * LENGTH].view(-1, LENGTH)
    cut = len(rows) * 9 // 10
    return rows[:cut], rows[cut:]


def seen(rows: Tensor) -> Tensor:
    """The characters before each, the first one a blank."""
    return torch.cat([torch.full((len(rows), 1), 65), rows[:, :-1]], dim=1)


def bits(model: nn.Module, rows: Tensor) -> float:
    with torch.no_grad():
        losses = [F.cross_entropy(model(seen(part)).flatten(0, 1), part.flatten()) for part in rows.split(500)]
    return float(torch.stack(losses).mean()) / math.log(2)


def trained(name: str, train: Tensor, epsilon: float, step_size: float, seed: int) -> nn.Module:
    given, kept = NOISES[name]
    torch.manual_seed(seed)
    model = Characters()
    sampler = KeptBins(batch_size=BATCH, dataset_size=len(train)) if kept else None
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=step_size, momentum=0.9),
        DataLoader(TensorDataset(seen(train), train), BATCH),
        epsilon=epsilon,
        delta=DELTA,
        epochs=EPOCHS,
        max_grad_norm=CLIP,
        loss_reduction="mean",
        noise=given,
        sampler=sampler,
        rng=seed,
    )
    for _ in range(EPOCHS):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="none").view(y.shape).mean(
                1
            ).mean().backward()
            optimizer.step()
    return model


def choose() -> None:
    """Bits on the last eighth of the training part, for step sizes."""
    train, _ = pieces()
    cut = len(train) * 7 // 8
    for name in NOISES:
        for size in (0.5, 2.0, 6.0):
            print(f"{name:<28} {size:4} {bits(trained(name, train[:cut], 4.0, size, 0), train[cut:]):.3f}", flush=True)


def main(quick: bool = False) -> None:
    train, test = pieces()
    epsilons, seeds = (EPSILONS[:1], 1) if quick else (EPSILONS, SEEDS)
    print(f"{'bits per character at epsilon':<28} " + " ".join(f"{e:>6g}" for e in epsilons))
    for name in NOISES:
        found = [
            sum(bits(trained(name, train, epsilon, STEP_SIZES[name], seed), test) for seed in range(seeds)) / seeds
            for epsilon in epsilons
        ]
        print(f"{name:<28} " + " ".join(f"{value:6.3f}" for value in found), flush=True)


if __name__ == "__main__":
    choose() if "choose" in sys.argv[1:] else main("--quick" in sys.argv[1:])
