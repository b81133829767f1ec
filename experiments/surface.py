"""The likelihood surface of the marriage model, and the way private training takes over it.

``python -m experiments surface [--quick]``. The lecture's logit: the log-likelihood of being married as a function of
intercept and slope of education (PUMS, 25,766 people; education scaled to [-1, 1]). DP-SGD walks over it from (0, 0) at
several epsilons, with each of four optimisers, in an ordinary torch loop: ten passes of batches of 2,000, clip
norm 1, learning rates fixed beforehand (the same for every epsilon). The figures are ``docs/images/surface.png``
and ``optimisers.png``. ``--quick``: two passes, one run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import make_private
from experiments import _results
from experiments._data import pums

EPSILONS, DELTA, EPOCHS, BATCH = (0.1, 1.0, 10.0), 1e-6, 10, 2000
SEEDS = 5
Optimiser = Callable[[Any], torch.optim.Optimizer]
OPTIMISERS: dict[str, Optimiser] = {
    "SGD": lambda weights: torch.optim.SGD(weights, lr=2.0),
    "momentum": lambda weights: torch.optim.SGD(weights, lr=0.5, momentum=0.8),
    "AdaGrad": lambda weights: torch.optim.Adagrad(weights, lr=0.3),
    "Adam": lambda weights: torch.optim.Adam(weights, lr=0.1),
}


def people() -> TensorDataset:
    table = pums()
    x = torch.from_numpy((table["educ"] - 8.5) / 7.5).float()[:, None]
    return TensorDataset(x, torch.from_numpy(table["married"]).float())


def loss(data: TensorDataset, intercept: Any, slope: Any) -> NDArray[np.float64]:
    """Mean negative log-likelihood at points of the plane."""
    x, married = (column.double().numpy().ravel() for column in data.tensors)
    score = np.asarray(intercept)[..., None] + np.asarray(slope)[..., None] * x
    return np.asarray((np.logaddexp(0, score) - married * score).mean(axis=-1))


def walk(data: TensorDataset, optimiser: str, epsilon: float, epochs: int) -> list[tuple[float, float]]:
    """Where private training was after each step: intercept and slope."""
    model = torch.nn.Linear(1, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    steps = OPTIMISERS[optimiser](model.parameters())
    private, steps, loader = make_private(
        model,
        steps,
        DataLoader(data, batch_size=BATCH),
        loss_reduction="mean",
        epochs=epochs,
        epsilon=epsilon,
        delta=DELTA,
        max_grad_norm=1.0,
    )
    path = [(0.0, 0.0)]
    for _ in range(epochs):
        for x, married in loader:
            steps.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(private(x).squeeze(1), married).backward()
            steps.step()
            path.append((float(model.bias.detach()), float(model.weight.detach())))
    return path


def best(data: TensorDataset) -> tuple[float, float]:
    """The maximum of the likelihood, by Newton's method."""
    from sklearn.linear_model import LogisticRegression

    x, married = (column.numpy() for column in data.tensors)
    exact = LogisticRegression(C=1e9).fit(x, married)
    return float(exact.intercept_[0]), float(exact.coef_[0, 0])


def plot(data: TensorDataset, top: tuple[float, float], paths: dict[float, list[tuple[float, float]]]) -> None:
    low, high = np.subtract(top, (1.2, 1.6)), np.add(top, (1.2, 1.2))
    grid = np.meshgrid(np.linspace(low[0], high[0], 80), np.linspace(low[1], high[1], 80))
    height = loss(data, *grid) - loss(data, *top)
    with _results.figure("surface", len(paths), 9.0) as axes:
        for axis, (epsilon, path) in zip(axes, paths.items(), strict=True):
            axis.contour(*grid, height, levels=np.geomspace(1e-4, 0.5, 12), cmap="Blues_r", linewidths=0.8)
            axis.plot(*zip(*path, strict=True), color="#c2571a", linewidth=1, marker=".", markersize=3)
            axis.plot(*top, marker="*", color="black", markersize=9)
            axis.set(title=f"ε = {epsilon:g}", xlabel="intercept", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        axes[0].set_ylabel("slope of education")


def plot_optimisers(found: list[dict[str, Any]]) -> None:
    """Where each optimiser ends, by epsilon."""
    with _results.figure("optimisers", 1, 5.0) as (axis,):
        for name in OPTIMISERS:
            cells = [cell for cell in found if cell["optimiser"] == name]
            axis.loglog([c["epsilon"] for c in cells], [c["excess"] for c in cells], "o-", label=name)
        axis.set(xlabel="ε", ylabel="mean loss above the least")
        axis.legend(fontsize=8, frameon=False)


def main(quick: bool = False) -> None:
    data, rows, found, epochs = people(), [], [], 2 if quick else EPOCHS
    top = best(data)
    for name in OPTIMISERS:
        cells = []
        for epsilon in EPSILONS:
            ends = [walk(data, name, epsilon, epochs)[-1] for _ in range(1 if quick else SEEDS)]
            excess = float(np.mean([loss(data, *end) - loss(data, *top) for end in ends]))
            found.append({"optimiser": name, "epsilon": epsilon, "excess": excess})
            cells.append(f"{excess:.5f}")
        rows.append([name, *cells])
        print(*rows[-1], sep="\t", flush=True)
    _results.save("surface", {"best": top, "found": found})
    _results.write_table("surface", ["", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)], rows)
    plot_optimisers(found)
    plot(data, top, {epsilon: walk(data, "SGD", epsilon, epochs) for epsilon in EPSILONS})


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
