"""Adult with a small network at epsilon = 1: not below the linear model.

Features are public and of one record each: those of ``datasets.adult_features`` and, for the network to bend,
indicators of ranges of age, hours and of gains and losses, whose ends are round numbers; all rows have one norm. The
network has one hidden layer beside a direct way from inputs to outputs. All people take part in every step, so the
account is that of the Gaussian mechanism; the model is the mean of the last half of the steps.

Settings were chosen by ``python -m experiments.adult_network choose``, which fits on four fifths of the *training* file
and looks at the rest; the test file is read by ``main`` alone. ``--quick``: two seeds.
"""

from __future__ import annotations

import sys
from itertools import product
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.datasets import adult, adult_features
from discreet.linear import LogisticRegression
from discreet.training import make_private, optimisers
from experiments import _results
from experiments._results import resumed, save

EPSILON, DELTA, SEEDS = 1.0, 1e-6, 5
RANGES = {
    "age": range(20, 75, 5),
    "hours_per_week": (15, 25, 35, 39, 41, 45, 50, 60),
    "capital_gain": (1, 3000, 5000, 7000, 10_000),
    "capital_loss": (1, 1500, 1800, 2000, 2300),
}
NORM = 2.0  # of a row
SETTINGS = {"hidden": 16, "steps": 100, "clip": 0.3, "lr": 20.0}


def inputs() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features and incomes to learn from, and to test on."""
    people, known = adult(), adult_features()
    parts = [_wide(known.X_train, people.train), _wide(known.X_test, people.test)]
    return parts[0], torch.from_numpy(known.y_train), parts[1], torch.from_numpy(known.y_test)


def _wide(narrow: Any, people: Any) -> Tensor:
    bins = [np.eye(len(tuple(ends)) + 1)[np.digitize(people[name], tuple(ends))] for name, ends in RANGES.items()]
    rows = np.concatenate([2 * narrow, *bins], axis=1)
    return torch.from_numpy(NORM * rows / np.linalg.norm(rows, axis=1, keepdims=True)).float()


class Network(nn.Module):
    """A hidden layer, and a direct way beside it; nothing is said before the first step."""

    def __init__(self, columns: int, hidden: int) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(columns, hidden), nn.Linear(hidden, 2)
        self.direct = nn.Linear(columns, 2, bias=False)
        nn.init.normal_(self.hidden.weight, std=0.3)
        for parameter in (self.out.weight, self.out.bias, self.direct.weight):
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.out(torch.tanh(self.hidden(x))) + self.direct(x)
        return found


def fitted(x: Tensor, y: Tensor, seed: int, *, hidden: int, steps: int, clip: float, lr: float) -> nn.Module:
    """A private network: full batches, momentum 0.9, the mean of the last half."""
    torch.manual_seed(seed)
    model = Network(x.shape[1], hidden)
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9),
        DataLoader(TensorDataset(x, y), len(x)),
        epsilon=EPSILON,
        delta=DELTA,
        epochs=steps,
        max_grad_norm=clip,
        loss_reduction="mean",
        rng=seed,
    )
    average = optimisers.TailAverage(optimizer, start=steps // 2)
    for _ in range(steps):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
    average.copy_to_parameters()
    return model


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return float((model(x).argmax(1) == y).float().mean())


def choose() -> None:
    """Accuracy on a fifth of the training file, for some settings."""
    x, y, _, _ = inputs()
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(x)))
    cut = len(x) * 4 // 5
    fit, held = order[:cut], order[cut:]
    for hidden, steps, clip, lr in product((16, 32), (60, 100), (0.3, 1.0), (3.0, 6.0)):
        facts = {"hidden": hidden, "steps": steps, "clip": clip, "lr": lr / clip}
        found = [accuracy(fitted(x[fit], y[fit], s, **facts), x[held], y[held]) for s in range(2)]  # type: ignore[arg-type]
        print(facts, f"{np.mean(found):.4f}", flush=True)


def main(quick: bool = False) -> None:
    x, y, x_test, y_test = inputs()
    known = adult_features()
    seeds = 2 if quick else SEEDS
    network = [
        resumed(f"adult-network-{s}", lambda s=s: accuracy(fitted(x, y, s, **SETTINGS), x_test, y_test))  # type: ignore[arg-type, misc]
        for s in range(seeds)
    ]
    linear = [
        LogisticRegression(epsilon=EPSILON, delta=DELTA, feature_norm=1.0, random_state=s, classes=(0, 1))
        .fit(known.X_train, known.y_train)
        .score(known.X_test, known.y_test)
        for s in range(seeds)
    ]
    for name, found in (("network", network), ("linear", linear)):
        print(f"{name:<8} {np.mean(found):.2%} ± {np.std(found):.2%}  least {np.min(found):.2%}")
    save("adult_network", {"network": network, "linear": linear, "settings": SETTINGS})


if __name__ == "__main__":
    choose() if "choose" in sys.argv[1:] else main(_results.begin(__doc__))
