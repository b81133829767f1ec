"""``discreet train``: private training described by a TOML file."""

from __future__ import annotations

import importlib
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli import show
from discreet.cli.books import BookOption, LedgerOption, charged
from discreet.errors import extra

with extra("torch"):
    import torch

from discreet.training.fit import fit

__all__ = ["train"]

_SECTIONS = {
    "model": {"layers", "factory"},
    "data": {"path", "inputs", "target", "factory"},
    "training": {"optimizer", "lr", "batch_size", "loss", "loss_reduction"},
    "privacy": {"epsilon", "delta", "epochs", "noise_multiplier", "max_grad_norm", "clipping", "sampler", "dataset_size",
                "max_physical_batch_size", "unit"},
}


def train(
    file: Annotated[Path, typer.Argument(help="A TOML file with the sections model, data, training and privacy.",
                                         show_default=False)],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write the trained weights.")] = Path("model.pt"),
    seed: Annotated[int | None, typer.Option("--seed", help="Make the run repeatable, and not private.",
                                             show_default=False)] = None,
    ledger: LedgerOption = None,
    book: BookOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    local: Annotated[bool, typer.Option("--local", help="Show the training loss and the share of clipped gradients too. They "
                                        "are not private: for your own eyes.")] = False,
) -> None:
    """Train a model privately, as a TOML file says, and write its weights."""
    asked = _read(file)
    sys.path.insert(0, str(file.resolve().parent))  # where "module:function" is looked for
    if seed is not None:
        torch.manual_seed(seed)
    training, privacy = asked["training"], asked["privacy"]
    loss = getattr(torch.nn.functional, training.pop("loss", "cross_entropy"))
    optimizer = getattr(torch.optim, training.pop("optimizer", "SGD"))
    progress: Any = False if quiet else "local" if local else True
    with charged(ledger, book) as account:
        released = fit(_model(asked["model"]), _data(asked["data"], file.parent), loss_fn=loss, optimizer=optimizer,
                       progress=progress, rng=seed, book=account, label=f"training of {file.name}", **training, **privacy)
    torch.save(released.value.state_dict(), out)
    show.say(f"wrote {out}")
    show.say(f"event: {released.event.to_json()}")


def _read(file: Path) -> dict[str, dict[str, Any]]:
    found = tomllib.loads(file.read_text())
    for section, values in found.items():
        if section not in _SECTIONS:
            raise ValueError(f"{file.name} has a section {section!r}, but there are {', '.join(_SECTIONS)}.")
        if unknown := sorted(set(values) - _SECTIONS[section]):
            raise ValueError(f"{section}.{unknown[0]} is not known; there are {', '.join(sorted(_SECTIONS[section]))}.")
    return {section: dict(found.get(section, {})) for section in _SECTIONS}


def _called(name: str) -> Any:
    module, _, function = name.partition(":")
    if not function:
        raise ValueError(f"factory is {name!r}, but must be 'module:function'.")
    return getattr(importlib.import_module(module), function)()


def _model(asked: dict[str, Any]) -> torch.nn.Module:
    if "factory" in asked:
        return _called(asked["factory"])  # type: ignore[no-any-return]
    sizes = asked.get("layers", [])
    if len(sizes) < 2:
        raise ValueError("model.layers needs at least two sizes, the inputs' and the outputs'; or give model.factory.")
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def _data(asked: dict[str, Any], folder: Path) -> Any:
    if "factory" in asked:
        return _called(asked["factory"])
    if "path" not in asked:
        raise ValueError("data.path is missing: an .npz file with the inputs and the target; or give data.factory.")
    import numpy as np

    with np.load(folder / asked["path"]) as arrays:
        inputs, target = arrays[asked.get("inputs", "x")], arrays[asked.get("target", "y")]
    return torch.from_numpy(inputs).float(), torch.from_numpy(target)
