"""A character model on tinyshakespeare: bits per character at equal epsilon, for each noise.

A record is a piece of 64 characters; neighbours differ by one. The model sees the last 8 characters: embeddings of
16, a convolution to 64 channels, a layer to the 65 characters. The first nine tenths of the text train, the last tenth
tests.
Step sizes are of ``python -m experiments.shakespeare choose``: for each noise the better of two at epsilon 4 after half
as many passes, on the last eighth of the *training* part; of banded noise, where both were equal, once more at
epsilon 2.

``python -m experiments.shakespeare [--quick]``; quick: one epsilon, one seed. Every run is kept in ``build/``, and a
study that was stopped goes on.
"""

from __future__ import annotations

import math
import sys
from functools import partial
from statistics import mean

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import KeptBins, make_private, noise
from experiments import _results
from experiments._data import shakespeare
from experiments._results import resumed, save, write_table

LENGTH, BATCH, EPOCHS, DELTA, CLIP = 64, 500, 4, 1e-5, 0.5
EPSILONS, SEEDS = (2.0, 8.0), 1
NOISES: dict[str, tuple[noise.Noise, bool]] = {  # and whether the sampler is said to be kept bins
    "independent, Poisson": (noise.Independent(), False),
    "banded 4, cyclic Poisson": (noise.Banded(bands=4, momentum=0.9), False),
    "BLT 3": (noise.BLT(buffers=3, momentum=0.9), False),
    "lambda CGD": (noise.LambdaCGD(momentum=0.9), False),
    "tree, restarts": (noise.Tree(momentum=0.9), False),
    "independent, kept bins": (noise.Independent(), True),
}
SIZES = (2.0, 6.0)  # that are tried, in runs of half the length
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
    text = shakespeare()
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


def trained(name: str, train: Tensor, epsilon: float, step_size: float, seed: int, epochs: int = EPOCHS) -> nn.Module:
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
        epochs=epochs,
        max_grad_norm=CLIP,
        loss_reduction="mean",
        noise=given,
        sampler=sampler,
        rng=seed,
    )
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x).transpose(1, 2), y).backward()  # the mean of every piece's mean
            optimizer.step()
    return model


def choose() -> None:
    """Bits on the last eighth of the training part, for step sizes."""
    train, _ = pieces()
    cut = len(train) * 7 // 8

    def looked(name: str, size: float) -> float:
        return bits(trained(name, train[:cut], 4.0, size, 0, EPOCHS // 2), train[cut:])

    for name in NOISES:
        for size in SIZES:
            found = resumed(f"shakespeare-choose-{name}-{size:g}", partial(looked, name, size))
            print(f"{name:<28} {size:4} {found:.3f}", flush=True)


def main(quick: bool = False) -> None:
    train, test = pieces()
    epsilons, seeds = (EPSILONS[:1], 1) if quick else (EPSILONS, SEEDS)

    def tested(name: str, epsilon: float, seed: int) -> float:
        return bits(trained(name, train, epsilon, STEP_SIZES[name], seed), test)

    rows = []
    for seed in range(seeds):  # one seed after another: a study that is stopped has compared all noises
        for epsilon in epsilons:
            for name in NOISES:
                key = f"shakespeare-{name}-{epsilon:g}-{seed}"
                rows.append((name, epsilon, seed, resumed(key, partial(tested, name, epsilon, seed))))
                print(*rows[-1], flush=True)
    found = {name: {e: [r[3] for r in rows if r[:2] == (name, e)] for e in epsilons} for name in NOISES}
    table = [[name, f"{STEP_SIZES[name]:g}", *(f"{mean(found[name][e]):.3f}" for e in epsilons)] for name in NOISES]
    header = ["noise", "step size", *(f"bits at ε = {e:g}" for e in epsilons)]
    print(header, *table, sep="\n")
    save("shakespeare", {name: {f"{e:g}": values for e, values in found[name].items()} for name in NOISES})
    write_table("shakespeare", header, table)


if __name__ == "__main__":
    choose() if "choose" in sys.argv[1:] else main(_results.begin(__doc__))
