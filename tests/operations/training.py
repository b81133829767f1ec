"""The operations of ``discreet.training``."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import Dataset

from discreet.training import RecordsPerUser, Training
from tests.operations.contract import Case, Log, Worst

X = torch.linspace(-1, 1, 80).reshape(40, 2).double()
DATA = [(x, (x[0] > 0).long()) for x in X]
FORM = (torch.zeros(2, dtype=torch.float64), torch.tensor(0))


class SpiedDataset(Dataset[Any]):
    """Records that note when they are read, and when their number is."""

    def __init__(self, inside: list[Any], log: Log) -> None:
        self._inside, self._log = inside, log

    def __len__(self) -> int:
        self._log.append("size")
        return len(self._inside)

    def __getitem__(self, index: int) -> Any:
        self._log.append("read")
        return self._inside[index]


def undecided() -> torch.nn.Linear:
    """A model that gives both classes a half: no gradient vanishes."""
    made = torch.nn.Linear(2, 2, dtype=torch.float64)
    torch.nn.init.zeros_(made.weight)
    torch.nn.init.zeros_(made.bias)
    return made


def training(size: int = 40, batch_size: int = 10, model: Any = None) -> Training[Any]:
    return Training(
        model or (lambda: torch.nn.Linear(2, 2, dtype=torch.float64)),
        dataset_size=size,
        batch_size=batch_size,
        epochs=1,
        noise_multiplier=1.0,
        placeholder=FORM,
    )


USERS = [0] * 3 + [1] + [2] * 6 + [4] + [3] * 12

OPERATIONS: list[Case] = [
    Case(
        "Training",
        training,
        DATA,
        DATA[1:],
        sized=True,
        spy=SpiedDataset,
        calls=True,
        result=lambda model: [parameter.detach().numpy() for parameter in model.parameters()],
        worst=Worst(
            DATA[:3], [(X[0] * 1e6, torch.tensor(1)), *DATA[:3]], lambda: training(4, 4, undecided), trials=100
        ),
    ),
    Case(
        "RecordsPerUser",
        lambda: RecordsPerUser(q=0.9, largest=20, epsilon=1.0),
        USERS,
        USERS[:-12],
        worst=Worst(trials=400),
    ),
]
