"""MNIST, private: test accuracy against epsilon, beside published figures.

A linear layer on features that need no data (``dp.features.Scattering``: a scattering transform along the principal
axes of made-up pen strokes), trained by gradient descent on all 60,000 digits at once, each digit's gradient clipped.
All of the budget goes into the gradients. Delta 1e-5, add-remove, five seeds, the whole test file. Beside it, a default
``LogisticRegression`` on the same features, which has heard of no digit.

Settings were chosen by trials on the training file alone, judged on its last 10,000 digits (``python -m
experiments.mnist choose`` makes such trials); the test file was read for the table only.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, TensorDataset

import discreet as dp
from discreet.linear import LogisticRegression
from discreet.training import make_private
from experiments import _results
from experiments._data import cache, mnist

DELTA, SEEDS = 1e-5, 5
OWED = {0.5: 0.970, 1.0: 0.977, 2.93: 0.984}
PUBLISHED = {
    "scattering, linear (Tramèr and Boneh 2021)": (2.93, 0.987),
    "tempered sigmoids (Papernot et al. 2021)": (2.93, 0.981),
    "DP-SGD (Abadi et al. 2016)": ((0.5, 2.0), (0.90, 0.95)),
}
Parts = tuple[Tensor, Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class Settings:
    """Of full-batch descent with momentum 0.9; the mean of the last weights is the model.

    Noise in the weights grows with steps × lr × clip, whatever the number of steps; so does what is learned.
    """

    steps: int
    lr: float
    averaged: float = 0.2  # share of the steps
    clip: float = 0.1
    features: int = 500


CHOSEN = {
    0.5: Settings(steps=80, lr=300.0, averaged=0.3),
    1.0: Settings(steps=80, lr=500.0, averaged=0.3),
    2.93: Settings(steps=120, lr=600.0),
}


def features(kept: int = 500) -> dict[str, NDArray[Any]]:
    """Of the training and of the test file, kept in a file between runs."""
    path = cache("mnist-scattering.npz")
    if not path.exists():
        digits, public = mnist(), dp.features.Scattering(shape=(28, 28), n_components=kept).fit()
        np.savez(path, train=public.transform(digits.X_train), test=public.transform(digits.X_test))
    with np.load(path) as found:
        return dict(found)


def parts(*, choosing: bool = False) -> Parts:
    """Digits to learn from, and to test on; to choose settings, both from the training file."""
    digits, found = mnist(), features()
    train, labels = torch.from_numpy(found["train"]), torch.from_numpy(digits.y_train.astype(np.int64))
    if choosing:
        return train[:50_000], labels[:50_000], train[50_000:], labels[50_000:]
    return train, labels, torch.from_numpy(found["test"]), torch.from_numpy(digits.y_test.astype(np.int64))


def train(X: Tensor, y: Tensor, epsilon: float, settings: Settings, seed: int) -> tuple[nn.Module, dp.Event]:
    """The averaged model, and what it cost."""
    X = X[:, : settings.features]
    model = nn.Linear(X.shape[1], 10)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=settings.lr, momentum=0.9)
    loader: Any = DataLoader(TensorDataset(X, y), batch_size=len(X))
    model, optimizer, loader = make_private(
        model,
        optimizer,
        loader,
        epsilon=epsilon,
        delta=DELTA,
        epochs=settings.steps,
        max_grad_norm=settings.clip,
        loss_reduction="mean",
        rng=seed,
    )
    mean = AveragedModel(model)
    for step in range(settings.steps):
        for rows, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(rows), labels).backward()
            optimizer.step()
        if step >= settings.steps * (1 - settings.averaged):
            mean.update_parameters(model)
    return mean.module, optimizer.privacy.planned


@torch.inference_mode()
def accuracy(model: nn.Module, X: Tensor, y: Tensor) -> float:
    return float((model(X[:, : model.in_features]).argmax(dim=1) == y).float().mean())  # type: ignore[arg-type, index]


def run(epsilon: float, seed: int, settings: Settings, found: Parts) -> tuple[float, float]:
    """Accuracy on what is held out, and the epsilon that was spent."""
    X, y, X_test, y_test = found
    model, event = train(X, y, epsilon, settings, seed)
    return accuracy(model, X_test, y_test), dp.epsilon(event, DELTA)


def tested(epsilon: float, seed: int) -> tuple[float, float, float]:
    """Accuracy on the test file, the epsilon that was spent, and seconds of the processor."""
    settings = CHOSEN[epsilon]
    name = f"mnist-{epsilon:g}-{seed}-{settings.features}-{settings.steps}-{settings.lr:g}-{settings.clip:g}"

    def made() -> tuple[float, float, float]:
        start = time.process_time()
        return *run(epsilon, seed, settings, parts()), time.process_time() - start

    share, spent, seconds = _results.resumed(name, made)
    print(f"epsilon {epsilon:g}, seed {seed}: {share:.2%}", flush=True)
    return share, spent, seconds


def default(epsilon: float, seed: int) -> float:
    """Accuracy on the test file of a linear model with no setting of its own."""

    def made() -> float:
        X, y, X_test, y_test = (part.numpy() for part in parts())
        model = LogisticRegression(epsilon=epsilon, delta=DELTA, feature_norm=1.0, classes=range(10), random_state=seed)
        return float(model.fit(X, y).score(X_test, y_test))

    share: float = _results.resumed(f"mnist-default-{epsilon:g}-{seed}", made)
    print(f"epsilon {epsilon:g}, seed {seed}, default: {share:.2%}", flush=True)
    return share


def results(seeds: int) -> dict[str, Any]:
    """For each epsilon: the epsilon spent, accuracies by seed, seconds of the processor for the slowest run."""
    found: dict[str, Any] = {}
    for epsilon in CHOSEN:
        runs = [tested(epsilon, seed) for seed in range(seeds)]
        found[f"{epsilon:g}"] = {
            "spent": round(max(spent for _, spent, _ in runs), 4),
            "accuracies": [round(share, 4) for share, _, _ in runs],
            "default": [round(default(epsilon, seed), 4) for seed in range(seeds)],
            "seconds": round(max(seconds for _, _, seconds in runs)),
        }
    return found


HEADER = ("epsilon", "test accuracy", "least", "seeds", "steps", "CPU-seconds per run", "default classifier")


def lines(found: dict[str, Any]) -> list[list[str]]:
    return [
        [
            name,
            f"{np.mean(each['accuracies']):.2%} ± {np.std(each['accuracies']):.2%}",
            f"{min(each['accuracies']):.2%}",
            str(len(each["accuracies"])),
            str(CHOSEN[float(name)].steps),
            str(each["seconds"]),
            f"{np.mean(each['default']):.2%}",
        ]
        for name, each in found.items()
    ]


def plot(found: dict[str, Any]) -> None:
    with _results.figure("mnist", 1, 6.0) as (axis,):
        means = [np.mean(each["accuracies"]) for each in found.values()]
        spreads = [np.std(each["accuracies"]) for each in found.values()]
        axis.errorbar([float(name) for name in found], means, spreads, marker="o", capsize=3, label="discreet")
        for mark, (name, (epsilon, share)) in zip("sv^", PUBLISHED.items(), strict=True):
            axis.plot(epsilon, share, mark, label=name)
        axis.set(xscale="log", xlabel="epsilon (delta 1e-5)", ylabel="test accuracy on MNIST")
        axis.legend(fontsize=7)


def choose() -> None:
    """Compare settings on the last 10,000 digits of the training file."""
    held = parts(choosing=True)
    for epsilon in CHOSEN:
        for steps, lr, averaged in ((80, 300.0, 0.3), (80, 500.0, 0.3), (120, 600.0, 0.2), (200, 300.0, 0.2)):
            settings = Settings(steps, lr, averaged)
            print(f"epsilon {epsilon:g}, {settings}: {run(epsilon, 0, settings, held)[0]:.2%}", flush=True)


def main(quick: bool = False) -> None:
    torch.set_num_threads(1)
    found = results(1 if quick else SEEDS)
    table = Table(title=f"MNIST, delta {DELTA:g}, add-remove, {1 if quick else SEEDS} seeds, whole test file")
    for header in HEADER:
        table.add_column(header, justify="right")
    for line in lines(found):
        table.add_row(*line)
    Console(width=max(110, Console().width)).print(table)
    for epsilon, owed in OWED.items():
        share = np.mean(found[f"{epsilon:g}"]["accuracies"])
        if share < owed:
            print(f"MISSES  epsilon {epsilon:g}: {share:.2%} < {owed:.1%}")
    _results.save("accuracy", found)
    _results.write_table("accuracy", HEADER, lines(found))
    plot(found)


if __name__ == "__main__":
    choose() if "choose" in sys.argv else main(quick=_results.begin(__doc__))
