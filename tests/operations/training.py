"""The operations of ``discreet.training``."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import Dataset

from discreet.training import Training
from tests.operations.contract import Case, Log

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


def training() -> Training[Any]:
    return Training(
        lambda: torch.nn.Linear(2, 2, dtype=torch.float64),
        dataset_size=40,
        batch_size=10,
        epochs=1,
        noise_multiplier=1.0,
        placeholder=FORM,
    )


OPERATIONS: list[Case] = [
    Case(
        "Training",
        training,
        DATA,
        DATA[1:],
        sized=True,
        spy=SpiedDataset,
        result=lambda model: [parameter.detach().numpy() for parameter in model.parameters()],
    ),
]
