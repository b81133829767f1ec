"""The loader a private run iterates over: the user's data and collate function, the sampler's batches.

What it yields looks like what the user's loader yielded. Of each batch it tells the run, which owns where they stand:
how many rows there are, which of them are placeholders, and whether the logical batch is complete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

from discreet.errors import extra
from discreet.random import Rng
from discreet.training.distributed import digest
from discreet.training.errors import UNCOMPARED, PrivateTrainingError
from discreet.training.gradients.trace.trees import tensors
from discreet.training.run import NO_CANARIES, Batch, Run
from discreet.training.sampling import Indices
from discreet.training.sampling.collate import FEW, collate_alone, fingerprint, refuse_mixing, zeroed
from discreet.training.sampling.pieces import PLACEHOLDER, dealt, enough

with extra("torch"):
    import torch
    from torch import Tensor
    from torch.utils import data as torch_data
    from torch.utils.data import DataLoader, Dataset, default_collate

__all__ = ["PrivateLoader", "checked"]

COMPARED = 16  # records that ranks compare
_OVER = object()


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
        of_loader = len(self.records)
        return repr(_plain(self.records[index])) if index < of_loader else f"canary {index - of_loader}"


def _plain(record: Any) -> Any:
    if isinstance(record, Tensor):
        return record.tolist()
    if isinstance(record, (tuple, list)):
        return [_plain(part) for part in record]
    return {k: _plain(v) for k, v in record.items()} if isinstance(record, dict) else record


def checked(loader: Any) -> DataLoader[Any]:
    """A loader whose order may be replaced, or the reason it may not."""
    if type(loader).__module__.startswith("accelerate."):
        raise ValueError(
            "loader was prepared by accelerate, which deals batches by itself, but the sampler decides what privacy "
            "costs: call make_private first, and prepare nothing of it: "
            "model, optimizer, loader = make_private(model, optimizer, loader, ...)"
        )
    if not isinstance(loader, DataLoader):
        raise ValueError(f"loader is a {type(loader).__name__}, but must be a torch DataLoader.")
    if isinstance(loader.dataset, torch_data.IterableDataset) or not hasattr(loader.dataset, "__len__"):
        raise ValueError(
            "loader has an iterable dataset, but needs one with a length and indices: without them no record can "
            "be sampled by a coin of its own."
        )
    if loader.batch_size is None or type(loader.batch_sampler) is not torch_data.BatchSampler:
        raise ValueError(
            "loader has a batch sampler of its own, but the sampler decides what privacy costs: pass "
            "batch_size= to the DataLoader and sampler= to make_private."
        )
    if isinstance(loader.sampler, torch_data.DistributedSampler):
        raise ValueError(
            "loader has a DistributedSampler, but the ranks draw one batch together and share it out: leave it out, "
            "and let batch_size be that of all ranks together: DataLoader(data, batch_size=...)"
        )
    if type(loader.sampler) not in (torch_data.RandomSampler, torch_data.SequentialSampler) or getattr(
        loader.sampler, "replacement", False
    ):
        raise ValueError(
            f"loader has a {type(loader.sampler).__name__}, but the sampler decides what privacy costs, and this "
            "one has no account: leave it out and pass sampler= to make_private."
        )
    return loader


class PrivateLoader:
    """Iterates over one pass: ``len(loader)`` logical batches, each in pieces of at most
    ``max_physical_batch_size``."""

    def __init__(
        self,
        loader: DataLoader[Any],
        run: Run,
        *,
        max_physical_batch_size: int | None = None,
        placeholder: Any = None,
        pieces_are_met: bool = True,
    ) -> None:
        self.dataset, self.sampler, self.batch_size = loader.dataset, run.plan.sampler, loader.batch_size
        self.collate_fn, self.num_workers = loader.collate_fn, loader.num_workers
        self.run, self._loader, self._placeholder, self._piece = run, loader, placeholder, max_physical_batch_size
        self._tried = False  # whether the collate function was
        self._pieces_are_met = pieces_are_met  # by the user's loop, which may count them
        self._compared = run.ranks.count == 1  # whether the ranks have the same records
        self.records = len(loader.dataset)  # type: ignore[arg-type]
        self._canaries = 0 if run.observation is None else run.observation.canaries
        if placeholder is None and not self.records:
            raise ValueError("loader has no records, but needs one, or placeholder=, to know what a record looks like.")

    def __len__(self) -> int:
        return self.sampler.steps_per_pass

    def __repr__(self) -> str:
        return f"PrivateLoader({self.sampler!r})"

    @cached_property
    def pieces_per_batch(self) -> int | None:
        """The public number of pieces that a loop meets for every batch; none where nobody counts them."""
        units = self.sampler.largest
        if units is None or not self._pieces_are_met:
            return None
        return enough(units, self.sampler.rows_per_unit, self._piece, self.run.ranks.count)

    @cached_property
    def placeholder(self) -> Any:
        """The record of weight zero: as given, or the form of the first record. Not read before the plan was
        charged."""
        return zeroed(self.dataset[0]) if self._placeholder is None else self._placeholder

    def __iter__(self) -> Iterator[Any]:
        self._refuse_other_records()
        steps = self.run.begin_pass()
        loop = self.run.loop
        self.run.chance.look_into(self.dataset, self.collate_fn, self.run.model)
        batches = self._batches(steps, loop)
        try:
            while True:
                self.run.begin_fetch()
                batch = next(batches, _OVER)
                if batch is _OVER:
                    return
                yield batch
        finally:  # also when the loop is left early
            batches.close()
            self.run.leave_pass(loop)

    def _batches(self, steps: range, loop: int) -> Generator[Any, None, None]:
        waiting: deque[Batch] = deque()
        drawn = _Drawn(self, steps, waiting)
        if (
            type(self.dataset) is torch_data.TensorDataset
            and self.collate_fn is default_collate
            and not self.num_workers
        ):
            for piece in drawn:
                rows = self._rows(piece)
                self.run.hand_out(waiting.popleft(), rows, loop)
                yield rows
            return
        if self.collate_fn is not default_collate and not self._tried:
            self._tried = True
            some = [self.dataset[i] for i in range(min(FEW, self.records))]
            refuse_mixing(self.collate_fn, some, self.placeholder, unverified=self.run.unverified)
            self.run.begin_fetch()  # anew, so that a run that is resumed here, and tries it again, draws the same
        batches = DataLoader(
            _Filled(self.dataset, self.placeholder),
            batch_sampler=drawn,
            collate_fn=self.collate_fn,
            num_workers=self.num_workers,
            pin_memory=self._loader.pin_memory,
            worker_init_fn=self.run.chance.for_workers(
                steps.start, self._loader.worker_init_fn, self.dataset, self.collate_fn
            ),
            timeout=self._loader.timeout,
        )
        fetched = iter(batches)  # draws a seed for its workers
        self.run.begin_fetch()
        for batch in fetched:
            handed = waiting.popleft()
            alone = None if self.collate_fn is default_collate else partial(self._alone, handed.indices, tensors(batch))
            self.run.hand_out(handed, batch, loop, alone)
            yield batch

    def _refuse_other_records(self) -> None:
        """Refuse ranks that have other records, or another order of them: one would be drawn in two places."""
        if self._compared:
            return
        ranks, places = self.run.ranks, range(0, self.records, -(-self.records // COMPARED) or 1)
        with ranks.together():
            found = fingerprint(self.collate_fn, self.dataset, places)
            if found is None and not self.run.unverified:
                raise PrivateTrainingError(UNCOMPARED)
        if not ranks.largest(int(found is None))[0]:
            ranks.agree({"what loader reads": found})
        self._compared = True

    def _alone(self, indices: Sequence[int], yielded: list[Tensor], rows: Sequence[int]) -> list[Tensor] | None:
        """Records of a batch as the collate function collates them alone, where those are not their rows."""
        return collate_alone(self.collate_fn, [self.dataset[indices[row]] for row in rows], rows, yielded)

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


class _Drawn:
    """The batch sampler of one pass: draws logical batches and cuts them into pieces."""

    def __init__(self, loader: PrivateLoader, steps: range, waiting: deque[Batch]) -> None:
        self.loader, self.steps, self.waiting = loader, steps, waiting

    def __iter__(self) -> Iterator[list[int]]:
        for step in self.steps:
            yield from self._pieces(step, self._drawn(step))

    def _drawn(self, step: int) -> Indices:
        loader, sampler, run = self.loader, self.loader.sampler, self.loader.run
        order, size = run.order(step, self._order), loader.records + loader._canaries
        return sampler.draw(step, size, _Keys(loader.dataset, size), order, run.sampling(step))

    def _order(self, rng: Rng) -> Indices | None:
        """What is drawn for a whole pass."""
        loader = self.loader
        return loader.sampler.order(_Keys(loader.dataset, loader.records + loader._canaries), rng)

    def _pieces(self, step: int, drawn: Indices) -> Iterator[list[int]]:
        """This rank's rows, in as many pieces as every other rank has."""
        sampler, ranks, records = self.loader.sampler, self.loader.run.ranks, self.loader.records
        canaries = NO_CANARIES
        if self.loader._canaries:  # they come after the records
            drawn, canaries = drawn[drawn < records], drawn[drawn >= records] - records
        owners = sampler.owners(drawn)
        whose = None if owners is None else owners.tolist()
        static, size, number = sampler.static_size or 0, self.loader._piece, self.loader.pieces_per_batch
        cut = dealt(drawn.tolist(), whose, static, size, ranks.rank, ranks.count, number)
        sample = digest((drawn.tolist(), whose)) if ranks.count > 1 else 0
        for number, piece in enumerate(cut):
            real = torch.tensor([float(index != PLACEHOLDER) for index in piece.rows])
            weights, last, indices = None if bool(real.all()) else real, number == len(cut) - 1, tuple(piece.rows)
            rest = (indices, piece.owners, number, sample, canaries)
            self.waiting.append(Batch(len(indices), weights, step, number == 0, last, *rest))
            yield piece.rows
