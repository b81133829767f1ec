"""What torch.compile gains: a plain and a private step, each with the model as it is and compiled.

Small models on one thread, processor time, steps in turns in one process, medians; compiling itself is left out. A
private step of a compiled model runs the model as it is: see docs/integrations.md.
"""

from __future__ import annotations

import statistics
import sys
import warnings
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.models import least
from benchmarks.workloads_training import LanguageModel
from discreet.training import make_private
from discreet.training.run import Batch

ROUNDS = 15


def mlp() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    layers = [nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10)]
    return nn.Sequential(*layers), torch.randn(128, 256), torch.randint(0, 10, (128,))


def cnn() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    layers: list[nn.Module] = []
    for inside, outside in ((3, 16), (16, 32), (32, 32)):
        layers += [nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.SiLU(), nn.AvgPool2d(2)]
    return (
        nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10)),
        torch.randn(32, 3, 32, 32),
        torch.randint(0, 10, (32,)),
    )


def transformer() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    words = torch.randint(0, 256, (16, 32))
    return LanguageModel(words=256, width=128, depth=2, length=32), words, words


MODELS: dict[str, Callable[[], tuple[nn.Module, torch.Tensor, torch.Tensor]]] = {
    "MLP": mlp,
    "CNN": cnn,
    "transformer": transformer,
}


def loss_of(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(scores if scores.dim() == 2 else scores.transpose(1, 2), target)


def step(name: str, *, compiled: bool, private: bool) -> Callable[[], None]:
    torch.manual_seed(0)
    model, x, y = MODELS[name]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run: nn.Module = torch.compile(model) if compiled else model
    if not private:

        def plain() -> None:
            optimizer.zero_grad()
            loss_of(run(x), y).backward()
            optimizer.step()

        return plain
    run, optimizer, loader = make_private(
        run,
        optimizer,
        DataLoader(TensorDataset(torch.zeros(50 * len(x))), len(x)),
        epochs=40,
        noise_multiplier=1.0,
        loss_reduction="mean",
        unverified="a benchmark on made-up records",
    )
    done = iter(range(10_000))

    def other() -> None:
        loader.run.hand_out(Batch(len(x), None, next(done), True, True), (x, y))
        optimizer.zero_grad()
        loss_of(run(x), y).backward()
        optimizer.step()

    return other


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    kinds = [(private, compiled) for private in (False, True) for compiled in (False, True)]
    print("| model | plain | plain, compiled | private | private, compiled |\n|---|---|---|---|---|")
    for name in [x for x in sys.argv[1:] if x in MODELS] or MODELS:
        steps = [step(name, private=private, compiled=compiled) for private, compiled in kinds]
        for _ in range(3):
            [one() for one in steps]
        times = [[least(one) for one in steps] for _ in range(ROUNDS)]
        found = [1000 * statistics.median(column) for column in zip(*times, strict=True)]
        gains = f"{found[0] / found[1]:.2f}×", f"{found[2] / found[3]:.2f}×"
        print(
            f"| {name} | {found[0]:.1f} ms | {found[1]:.1f} ms ({gains[0]}) | {found[2]:.1f} ms | {found[3]:.1f} ms "
            f"({gains[1]}) |",
            flush=True,
        )


if __name__ == "__main__":
    main()
