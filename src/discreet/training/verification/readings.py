"""What takes the place of the tensors that model and loss were given: one record's rows, all of them, or made-up ones.

A ``StepReading`` says what is taken for a row where sizes coincide, and which numbers count the records. A record is
right if one reading shows that it is.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from discreet.errors import extra
from discreet.training.gradients.trace.places import records_of
from discreet.training.verification.numbers import Counts
from discreet.training.verification.tape import LossTape

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["READINGS", "MadeUpRecords", "Row", "StepReading", "Substitute", "Whole"]

LARGE = 300.0  # times the others': a made-up record


@dataclass(frozen=True, slots=True)
class StepReading:
    """What is taken for what, where a tape alone cannot tell."""

    only_data: bool = False  # whether tensors that do not come from the batch have no rows
    turned: bool = False  # whether the records are rather in the second dimension
    interleaved: bool = False  # whether records take turns where several draws of each are in one dimension
    copies: int = 1  # of the record, for functions that do not run on one
    others: tuple[int, ...] = ()  # rows that run beside the record's
    counts: Counts = field(default_factory=dict)  # numbers that count the records
    own: Mapping[int, Tensor] = field(default_factory=dict)  # of given tensors, the records' own instead of their rows

    @property
    def count(self) -> int:
        """How many records run."""
        return self.copies * (1 + len(self.others))


READINGS = (
    StepReading(),
    StepReading(only_data=True),  # a public tensor that has as many rows as there are records
    StepReading(turned=True),  # steps first, and as many of them as records
    StepReading(interleaved=True),  # steps first and flattened, then dropped at random
    StepReading(copies=2),  # a function that does not run on one record
)


class Substitute(Protocol):
    """What takes the place of tensors that model and loss were given."""

    def __call__(self, x: Tensor, of_model: bool) -> Tensor:
        """Its part of a tensor."""

    def has_rows(self, x: Tensor, of_model: bool) -> bool:
        """Whether a tensor has a row for each record, or is taken whole."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record: its row in tensors that hold ``records`` of them; ``known`` tensors are the model's own."""

    tape: LossTape
    row: int
    records: int
    known: Container[int]
    reading: StepReading = READINGS[0]
    change: Callable[[Tensor], Tensor] = Tensor.clone  # what is done to numbers on the way: another precision, say

    def __call__(self, x: Tensor, of_model: bool) -> Tensor:
        """The record's part of a tensor that was given."""
        if id(x) in self.known:
            return x
        now = self.tape.originals.get(id(x), x).detach()
        dim = self.dim(x, of_model)
        own = now if dim is None else self.reading.own.get(id(x), now.narrow(dim, self.row, 1))
        if dim is not None and self.reading.others and id(x) not in self.reading.own:
            own = now.index_select(dim, torch.tensor([self.row, *self.reading.others], device=now.device))
        if dim is not None and self.reading.copies > 1:
            own = own.repeat_interleave(self.reading.copies, dim)
        own = self.change(own) if x.is_floating_point() else own.clone()
        return own.requires_grad_(x.requires_grad)

    def has_rows(self, x: Tensor, of_model: bool) -> bool:
        """Whether a tensor has a row for each record."""
        return self.dim(x, of_model) is not None

    def dim(self, x: Tensor, of_model: bool) -> int | None:
        """Where the records are: in the first dimension; of a batch that was turned, in the second."""
        if self.reading.only_data and id(x) not in self.tape.data | self.tape.drawn:
            return None
        if self.reading.turned and x.dim() > 1 and x.shape[1] == self.records:
            return 1
        return records_of(x, self.records) if of_model else 0 if x.dim() and x.shape[0] == self.records else None


@dataclass(frozen=True, slots=True)
class Whole:
    """All records, as they are."""

    tape: LossTape
    known: Container[int]

    def __call__(self, x: Tensor, of_model: bool) -> Tensor:
        """The tensor as it was given."""
        return x if id(x) in self.known else self.tape.originals.get(id(x), x).detach().clone()

    def has_rows(self, x: Tensor, of_model: bool) -> bool:
        """Whatever it has is taken."""
        return True


@dataclass(frozen=True, slots=True)
class MadeUpRecords:
    """Made-up records in place of the batch's, as many as ``count``: of the same shapes and kinds of numbers."""

    row: Row
    count: int
    tape: LossTape  # that is being written: made-up records are its data
    made: dict[int, Tensor]

    def has_rows(self, x: Tensor, of_model: bool) -> bool:
        """Whether a tensor has a row for each record."""
        return self.row.has_rows(x, of_model)

    def __call__(self, x: Tensor, of_model: bool) -> Tensor:
        """Numbers around zero, and small whole ones: what any table has; the last record's are far larger, so that
        others feel it where they meet."""
        dim = self.row.dim(x, of_model)
        if id(x) in self.row.known:
            return x
        public = self.count == self.row.records and id(x) not in self.row.tape.data | self.row.tape.drawn
        if dim is None or public:
            return self.row.tape.originals.get(id(x), x).detach().clone().requires_grad_(x.requires_grad)
        if id(x) not in self.made:
            shape = [self.count if d == dim else size for d, size in enumerate(x.shape)]
            if x.is_floating_point() or x.is_complex():
                self.made[id(x)] = torch.randn(shape, dtype=x.dtype, device=x.device)
                self.made[id(x)].narrow(dim, self.count - 1, 1).mul_(LARGE)
            else:
                self.made[id(x)] = torch.randint(0, 2, shape, device=x.device).to(x.dtype)
            self.tape.data.add(id(self.made[id(x)]))
            self.tape.given.append(self.made[id(x)])
        return self.made[id(x)].requires_grad_(x.requires_grad)
