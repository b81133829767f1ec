"""Input canaries: made-up records among the private ones of a loader, each by a fair coin.

They go through loader, model and clipping like all others, and test those as well; they are scored by what the model
says of them, or by what else you like.

Guarantee of real records: unchanged. Input canaries are additional records of public origin; the neighbours of a data
set with them differ in one private record as before. Whatever an audit prints is a function of coins and of what the
run releases.

Decision 502.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet import random
from discreet.adjacency import Adjacency
from discreet.auditing.single_run import OneRun, audit_run
from discreet.errors import extra, whole
from discreet.events import Event

with extra("torch"):
    from torch.utils.data import ConcatDataset, DataLoader

__all__ = ["InputCanaries"]


class InputCanaries:
    """Made-up records, about half of which are put among the private ones of a loader.

    >>> import torch
    >>> records = [(torch.full((3,), float(i)), torch.tensor(1)) for i in range(40)]
    >>> canaries = InputCanaries(records, rng=1)
    >>> import torch
    >>> private = torch.utils.data.TensorDataset(torch.zeros(100, 3), torch.zeros(100).long())
    >>> len(canaries.insert(DataLoader(private, batch_size=10)).dataset) == 100 + canaries.inside.sum()
    np.True_
    """

    def __init__(self, records: Sequence[Any], *, rng: random.RngLike = None) -> None:
        self.records = list(records)
        whole("number of canaries", len(self.records), low=20)
        self.inside = random.Streams(rng).public(0).words(len(self.records)) >> np.uint64(63) == 1

    def insert(self, loader: DataLoader[Any]) -> DataLoader[Any]:
        """The loader with the canaries that are in among its records, to be handed to ``make_private``."""
        chosen: Any = [record for record, inside in zip(self.records, self.inside, strict=True) if inside]
        return DataLoader(
            ConcatDataset([loader.dataset, chosen]),
            batch_size=loader.batch_size,
            collate_fn=loader.collate_fn,
            num_workers=loader.num_workers,
            pin_memory=loader.pin_memory,
        )

    def audit(
        self,
        scores: ArrayLike | Callable[[Any], float],
        event: Event,
        *,
        delta: float = 1e-5,
        confidence: float = 0.95,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> OneRun:
        """Judge a run of this event by ``scores``, one per canary or a function of it: larger if the model knows it."""
        found = [scores(record) for record in self.records] if callable(scores) else scores
        return audit_run(found, self.inside, event, delta=delta, confidence=confidence, adjacency=adjacency)
