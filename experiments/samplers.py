"""What a pass costs, and what it is worth, by sampler: Poisson batches beside bins that are drawn anew.

First a picture of epsilon against bins and passes at noise 1, delta 1e-5. Then accuracy at equal epsilon, five seeds:
a linear layer on MNIST's pixels and the network of ``adult_network`` on Adult, 100 steps a pass and 5 passes, the same
settings for both samplers (nothing was chosen by looking at either). ``python -m experiments.samplers [--quick]``;
quick: one seed, and a picture of fewer points.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import discreet as dp
from discreet import events as ev
from discreet.training import make_private
from experiments import _results, adult_network
from experiments._data import mnist

EPSILON, DELTA, SEEDS, PASSES, STEPS = 1.0, 1e-5, 5, 5, 100
SAMPLERS = ("poisson", "balls-in-bins")
Parts = tuple[Tensor, Tensor, Tensor, Tensor]


def prices(bins: int, passes: int) -> dict[str, float]:
    """Epsilon of so many passes of so many steps, at noise 1."""
    step = ev.Gaussian(noise_multiplier=1.0)
    events: dict[str, ev.Event] = {
        "Poisson": ev.PoissonSampled(rate=1 / bins, event=step) * (bins * passes),
        "bins, drawn anew": ev.BallsInBins(bins=bins, event=step) * passes,
        "bins, kept": ev.BallsInBins(bins=bins, event=step * passes),
        "known batches": step * passes,
    }
    return {name: dp.epsilon(event, DELTA) for name, event in events.items()}


def draw_prices(quick: bool) -> None:
    """Epsilon against bins at ten passes, and against passes at a hundred bins."""
    sides = {"bins of a pass": [10, 100, 1000], "passes": [1, 10, 100]}
    if not quick:
        sides = {"bins of a pass": [10, 30, 100, 300, 1000, 3000], "passes": [1, 3, 10, 30, 100]}
    with _results.figure("samplers", 2) as panels:
        for axes, (name, values) in zip(panels, sides.items(), strict=True):
            rows = [prices(value, 10) if name.startswith("bins") else prices(100, value) for value in values]
            for kind in rows[0]:
                axes.plot(values, [row[kind] for row in rows], marker=".", label=kind)
            axes.set(xscale="log", yscale="log", xlabel=name + (" (100 bins)" if name == "passes" else ", 10 passes"))
            axes.set_ylabel(f"ε at δ = {DELTA:g}, noise 1")
            axes.legend()


def accuracy(model: nn.Module, parts: Parts, sampler: str, seed: int, *, clip: float, lr: float) -> float:
    """On the test file, of a private run at the one epsilon."""
    x, y, x_test, y_test = parts
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9),
        DataLoader(TensorDataset(x, y), -(-len(x) // STEPS)),
        epsilon=EPSILON,
        delta=DELTA,
        epochs=PASSES,
        max_grad_norm=clip,
        loss_reduction="mean",
        sampler=sampler,
        rng=seed,
    )
    for _ in range(PASSES):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
    with torch.no_grad():
        return float((model(x_test).argmax(1) == y_test).double().mean())


def digits() -> Parts:
    """Pixels, and which digit they are."""
    found = mnist()
    pixels = [torch.from_numpy(np.asarray(x)).reshape(len(x), -1).float() / 255 for x in (found.X_train, found.X_test)]
    return pixels[0], torch.from_numpy(found.y_train).long(), pixels[1], torch.from_numpy(found.y_test).long()


def main(quick: bool = False) -> None:
    """A table of accuracies, and the picture."""
    draw_prices(quick)
    tasks: dict[str, tuple[Callable[[], Parts], Callable[[int], nn.Module], dict[str, float]]] = {
        "MNIST, linear": (digits, lambda columns: nn.Linear(columns, 10), {"clip": 1.0, "lr": 0.5}),
        "Adult, network": (adult_network.inputs, lambda columns: adult_network.Network(columns, 16),
                           {"clip": 0.3, "lr": 2.0}),
    }  # fmt: skip
    for task, (load, made, settings) in tasks.items():
        parts = load()
        for sampler in SAMPLERS:
            found = []
            for seed in range(1 if quick else SEEDS):
                torch.manual_seed(seed)
                found.append(accuracy(made(parts[0].shape[1]), parts, sampler, seed, **settings))
            shown = ", ".join(f"{value:.4f}" for value in found)
            print(f"{task:<15} {sampler:<14} mean {np.mean(found):.4f} ± {np.std(found):.4f}  ({shown})", flush=True)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
