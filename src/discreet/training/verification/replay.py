"""What a tape holds, computed again: for one record alone, for a few, or for made-up records.

From the model's inputs on, every call is made again: what was given to the model and the loss is cut to the record's
row, and what follows from it follows. A ``StepReading`` says what is taken for a row where sizes coincide, and which
numbers count the records. A record is right if one reading shows that it is.

Decision 404.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.training.gradients.trace.places import records_of
from discreet.training.gradients.trace.random_draws import Unjudged
from discreet.training.gradients.trace.trees import mapped, renumber
from discreet.training.verification.numbers import Counts
from discreet.training.verification.tape import LossTape, TapeEntry

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["READINGS", "Change", "Row", "Run", "StepReading", "TapeReplay", "restore_chance"]

EMPTY = frozenset({"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"})

Change = Callable[[Tensor], Tensor]
Run = Callable[[TapeEntry, Any, Any], list[Tensor]]


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


@dataclass(frozen=True, slots=True)
class Row:
    """What stands for tensors that model and loss were given: one record's row where they hold all records, and those
    of records that run beside it.

    ``known`` tensors are the model's own.
    """

    tape: LossTape
    row: int
    known: Container[int]
    reading: StepReading = READINGS[0]
    change: Change = Tensor.clone  # what is done to numbers on the way: they are moved, say

    def __call__(self, x: Tensor, of_model: bool) -> Tensor:
        """The record's part of a tensor that was given."""
        if id(x) in self.known:
            return x
        whole, dim = self.tape.originals.get(id(x), x).detach(), self.dim(x, of_model)
        return (whole.clone() if dim is None else self.part(x, whole, dim)).requires_grad_(x.requires_grad)

    def part(self, x: Tensor, whole: Tensor, dim: int) -> Tensor:
        """The record's part of a tensor with rows in dimension ``dim``."""
        rows = torch.tensor([self.row, *self.reading.others], device=whole.device)
        own = self.reading.own[id(x)] if id(x) in self.reading.own else whole.index_select(dim, rows)
        if self.reading.copies > 1:
            own = own.repeat_interleave(self.reading.copies, dim)
        return self.change(own) if x.is_floating_point() else own.clone()

    def dim(self, x: Tensor, of_model: bool) -> int | None:
        """Where the records are: in the first dimension; of a batch that was turned, in the second."""
        records = self.tape.records
        if self.reading.only_data and id(x) not in self.tape.data | self.tape.drawn:
            return None
        if self.reading.turned and x.dim() > 1 and x.shape[1] == records:
            return 1
        return records_of(x, records) if of_model else 0 if x.dim() and x.shape[0] == records else None


class TapeReplay:
    """What is computed again, by the identity of what it was; an object, because functions that call each other would
    hold all of it until Python looks for cycles.

    ``part`` gives what stands for a tensor, ``run`` makes a call of the model; numbers that count records (``counts``)
    count the ``count`` that run.
    """

    def __init__(self, part: Row, run: Run, counts: Counts, count: int) -> None:
        self.made: dict[int, Tensor] = {}
        self._part, self._run, self._tape, self._counts, self._count = part, run, part.tape, counts, count
        self._places = {id(call): i for i, call in enumerate(self._tape.calls_of_losses() if counts else ())}
        self._makers = {
            id(x): call
            for call in self._tape.calls
            if not call.is_module
            for x in call.outputs
            if id(x) in self._tape.data
        }

    def losses(self) -> list[tuple[Tensor, Tensor | None]]:
        """The losses of the backward passes and the weights of their entries, computed again."""
        tape, again = self._tape, self._tape.after | self._made_of_counts()
        for call in tape.calls_leading_to(tape.wanted, lambda ids: bool(ids & again)):
            self.again(call)
        if any(id(loss) not in self.made for loss, _ in tape.backwards):
            raise Unjudged("loss")
        return [(self.made[id(loss)], None if w is None else self._now(w, False)) for loss, w in tape.backwards]

    def _made_of_counts(self) -> set[int]:
        """What was made of numbers of records alone, not of chance: as many ones as there are records, their places."""
        made, counting = set[int](), {place for place, _ in self._counts}
        for call in self._tape.calls if counting else ():
            outputs = {id(x) for x in call.outputs}
            of_counts = self._places.get(id(call)) in counting or bool(made & {id(x) for x in call.inputs})
            if of_counts and not call.is_module and not outputs & (self._tape.data | self._tape.drawn):
                made |= outputs
        return made

    def _now(self, x: Tensor, of_model: bool) -> Tensor:
        """What stands for a tensor of the tape."""
        if id(x) not in self.made:
            maker = None if id(x) in self._tape.after else self._makers.get(id(x))
            if maker is not None and self._part.dim(x, of_model) is None:  # a batch that was flattened, say
                self.again(maker)
            else:
                self.made[id(x)] = self._part(x, of_model)
        return self.made[id(x)]

    def again(self, call: TapeEntry) -> None:
        """Make a call again."""
        args, kwargs = (mapped(lambda x: self._now(x, call.is_module), tree) for tree in (call.args, call.kwargs))
        if self._counts and self._count != self._tape.records:
            place = self._places.get(id(call), -1)
            args, kwargs = renumber((args, kwargs), lambda number, x: self._recounted((place, number), x))
        outputs = call.again(args, kwargs, self._run)
        if getattr(call.func, "__name__", "") in EMPTY:
            with torch.no_grad():
                outputs[0].zero_()  # what fills it out of sight must be missed, not hidden by whatever memory holds
        if len(outputs) != len(call.outputs):
            raise Unjudged("outputs")
        self.made.update({id(a): b for a, b in zip(call.outputs, outputs, strict=True)})

    def _recounted(self, place: tuple[int, int], x: float) -> float:
        """A number, made to count the records that run if it counts the tape's."""
        if place not in self._counts:
            return x
        # divided last: 49 * (1 / 49) < 1
        records, grows = self._tape.records, self._counts[place] > 0
        return x * self._count / records if grows else x * records / self._count


@contextmanager
def restore_chance(call: TapeEntry) -> Iterator[None]:
    """Python's and numpy's generators as they were when a call began."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002  (the user's generator, not ours)
    if before[0] != call.chance[0]:
        random.setstate(call.chance[0])
    if not _same_state(before[1], call.chance[1]):
        np.random.set_state(call.chance[1])  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002


def _same_state(one: Any, other: Any) -> bool:
    """Whether two states of numpy's generator are the same: setting one takes ten times as long. Unknown, and so not,
    where the user has put another generator in its place."""
    if not (isinstance(one, tuple) and isinstance(other, tuple)):
        return False
    return one[0] == other[0] and one[2:] == other[2:] and np.array_equal(one[1], other[1])
