"""The loader a private run iterates over: the user's data and collate function, the sampler's batches.

What it yields looks like what the user's loader yielded. Beside each batch it keeps a ``Batch``, which only the plan
sees: how many rows there are, which of them are placeholders, and whether the logical batch is complete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.errors import extra, whole
from discreet.random.tap import coins
from discreet.training.sampling import BallsInBins, Indices, Sampler, TruncatedPoisson

with extra("torch"):
    import torch
    from torch import Tensor
    from torch.utils import data as torch_data
    from torch.utils.data import DataLoader, Dataset, default_collate

__all__ = ["Batch", "PrivateLoader", "checked"]

PLACEHOLDER = -1


@dataclass(frozen=True, slots=True)
class Batch:
    """A piece of a logical batch: its rows, their weights (none: all one), its place in the logical batch."""

    rows: int
    weights: Tensor | None
    step: int
    first: bool
    last: bool


class _Filled(Dataset[Any]):
    """A dataset with a record of weight zero at index -1."""

    def __init__(self, records: Any, placeholder: Any) -> None:
        self.records, self.placeholder = records, placeholder

    def __getitem__(self, index: int) -> Any:
        return self.placeholder if index == PLACEHOLDER else self.records[index]


class _Keys(Sequence[object]):
    """The records themselves as names of their coins; read only when a run is replayed."""

    def __init__(self, records: Any, size: int) -> None:
        self.records, self.size = records, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= index < self.size:
            raise IndexError(index)
        return repr(_plain(self.records[index]))


def _plain(record: Any) -> Any:
    if isinstance(record, Tensor):
        return record.tolist()
    if isinstance(record, (tuple, list)):
        return [_plain(part) for part in record]
    return {k: _plain(v) for k, v in record.items()} if isinstance(record, dict) else record


def zeroed(record: Any) -> Any:
    """A record of the same form that holds nothing."""
    if isinstance(record, Tensor):
        return torch.zeros_like(record)
    if isinstance(record, np.ndarray | np.generic):
        return np.zeros_like(record)
    if isinstance(record, dict):
        return {key: zeroed(value) for key, value in record.items()}
    if isinstance(record, tuple) and hasattr(record, "_fields"):
        return type(record)(*map(zeroed, record))
    if isinstance(record, (tuple, list)):
        return type(record)(map(zeroed, record))
    return type(record)() if isinstance(record, (bool, int, float, str, bytes)) else record


def checked(loader: Any) -> DataLoader[Any]:
    """A loader whose order may be replaced, or the reason it may not."""
    if not isinstance(loader, DataLoader):
        raise ValueError(f"loader is a {type(loader).__name__}, but must be a torch DataLoader.")
    if isinstance(loader.dataset, torch_data.IterableDataset) or not hasattr(loader.dataset, "__len__"):
        raise ValueError("loader has an iterable dataset, but needs one with a length and indices: without them no record can "
                         "be sampled by a coin of its own.")
    if loader.batch_size is None or type(loader.batch_sampler) is not torch_data.BatchSampler:
        raise ValueError("loader has a batch sampler of its own, but the sampler decides what privacy costs: pass "
                         "batch_size= to the DataLoader and sampler= to make_private.")
    if type(loader.sampler) not in (torch_data.RandomSampler, torch_data.SequentialSampler) or getattr(
            loader.sampler, "replacement", False):
        raise ValueError(f"loader has a {type(loader.sampler).__name__}, but the sampler decides what privacy costs, and this "
                         "one has no account: leave it out and pass sampler= to make_private.")
    return loader


class PrivateLoader:
    """Iterates over one pass: ``len(loader)`` logical batches, each in pieces of at most ``max_physical_batch_size``."""

    def __init__(self, loader: DataLoader[Any], sampler: Sampler, source: Any, *, max_physical_batch_size: int | None = None,
                 placeholder: Any = None) -> None:
        self.dataset, self.sampler, self.batch_size = loader.dataset, sampler, loader.batch_size
        self.collate_fn, self.num_workers = loader.collate_fn, loader.num_workers
        self._piece = max_physical_batch_size
        if max_physical_batch_size is not None:
            whole("max_physical_batch_size", max_physical_batch_size, low=1)
        self._source, self._placeholder = source, placeholder
        self._loader = loader
        self.records = len(loader.dataset)  # type: ignore[arg-type]
        if isinstance(sampler, TruncatedPoisson):  # its price holds up to the declared size
            self.records = min(self.records, sampler.dataset_size)
        self.steps_done = 0  # steps that were released; of a pass, up to the last batch that was
        self.position = 0  # batches that were yielded
        self.current: Batch | None = None
        self.listener: Any = None  # told of each new batch
        self._pass: tuple[int, Indices | None] = (-1, None)
        if placeholder is None and not self.records:
            raise ValueError("loader has no records, but needs one, or placeholder=, to know what a record looks like.")

    def __len__(self) -> int:
        return self.sampler.steps_per_pass

    def __repr__(self) -> str:
        return f"PrivateLoader({self.sampler!r})"

    @cached_property
    def placeholder(self) -> Any:
        """The record of weight zero: as given, or the form of the first record. Not read before the plan was charged."""
        return zeroed(self.dataset[0]) if self._placeholder is None else self._placeholder

    def __iter__(self) -> Iterator[Any]:
        if self.listener is not None:
            self.listener.abandon()
        try:
            yield from self._batches()
        finally:
            if self.listener is not None:  # also when the loop is left early
                self.listener.stop_checking()

    def _batches(self) -> Iterator[Any]:
        waiting: deque[Batch] = deque()
        if type(self.dataset) is torch_data.TensorDataset and self.collate_fn is default_collate and not self.num_workers:
            for piece in _Drawn(self, waiting):
                rows = self._rows(piece)
                self._announce(waiting.popleft(), rows)
                yield rows
            return
        batches = DataLoader(_Filled(self.dataset, self.placeholder), batch_sampler=_Drawn(self, waiting),
                             collate_fn=self.collate_fn, num_workers=self.num_workers, pin_memory=self._loader.pin_memory,
                             worker_init_fn=self._loader.worker_init_fn, timeout=self._loader.timeout)
        for batch in batches:
            self._announce(waiting.popleft(), batch)
            yield batch

    def _announce(self, batch: Batch, yielded: Any = ()) -> None:
        if self.listener is not None:
            self.listener.new_batch(batch, yielded)
        self.current, self.position = batch, batch.step + 1

    def _rows(self, piece: list[int]) -> list[Tensor]:
        """Rows of tensors at once, which is what collating them one by one gives."""
        index = torch.tensor(piece)
        empty = index == PLACEHOLDER
        if not bool(empty.any()):
            return [tensor[index] for tensor in self.dataset.tensors]  # type: ignore[attr-defined]
        found = []
        for tensor, zero in zip(self.dataset.tensors, self.placeholder, strict=True):  # type: ignore[attr-defined]
            rows = torch.as_tensor(zero).expand(len(piece), *tensor.shape[1:]).clone()
            rows[~empty] = tensor[index[~empty]]
            found.append(rows)
        return found

    def pass_order(self, step: int) -> Indices | None:
        """What the pass of a step has drawn for all its steps."""
        number = step // len(self)
        if not self.sampler.passes:
            return None
        if self._pass[0] != number:
            rng = self._source(0, number)
            if isinstance(self.sampler, BallsInBins):
                words = coins(_Keys(self.dataset, self.records), rng)
                self._pass = number, (words % np.uint64(len(self))).astype(np.int64)
            else:
                self._pass = number, self.sampler.order(self.records, rng)
        return self._pass[1]

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands."""
        number, order = self._pass
        return {"steps": self.steps_done, "position": self.position, "pass": number,
                "order": None if order is None else torch.from_numpy(order)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self.steps_done, self.position, self.current = int(state["steps"]), int(state["position"]), None
        order = state["order"]
        self._pass = int(state["pass"]), None if order is None else order.numpy()


class _Drawn:
    """The batch sampler of one pass: draws logical batches and cuts them into pieces."""

    def __init__(self, loader: PrivateLoader, waiting: deque[Batch]) -> None:
        self.loader, self.waiting = loader, waiting

    def __iter__(self) -> Iterator[list[int]]:
        loader, sampler = self.loader, self.loader.sampler
        # A batch of a pass is dealt once, used or not; other batches are drawn for the step they will be.
        start = loader.position if sampler.passes else loader.steps_done
        steps = len(loader) - start % len(loader) if sampler.passes else len(loader)
        for step in range(start, start + steps):
            yield from self._pieces(step, self._drawn(step))

    def _drawn(self, step: int) -> list[int]:
        loader, sampler = self.loader, self.loader.sampler
        keys = _Keys(loader.dataset, loader.records)
        drawn = sampler.draw(step, loader.records, keys, loader.pass_order(step), loader._source(1, step))
        return [int(index) for index in drawn]

    def _pieces(self, step: int, drawn: list[int]) -> Iterator[list[int]]:
        wanted = max(1, self.loader.sampler.static_size or 0)
        filled = drawn + [PLACEHOLDER] * (wanted - len(drawn))
        size = self.loader._piece or len(filled)
        pieces = [filled[i:i + size] for i in range(0, len(filled), size)]
        for number, piece in enumerate(pieces):
            real = torch.tensor([float(index != PLACEHOLDER) for index in piece])
            weights = None if bool(real.all()) else real
            self.waiting.append(Batch(len(piece), weights, step, number == 0, number == len(pieces) - 1))
            yield piece
