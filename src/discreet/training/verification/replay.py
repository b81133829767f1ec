"""What a tape holds, computed again: for one record alone, for a few, or for made-up records.

From the model's inputs on, every call is made again: what was given to the model and the loss is cut to the record's
row, and what follows from it follows. A ``StepReading`` says what is taken for a row where sizes coincide, and which
numbers count the records. A record is right if one reading shows that it is.

Decision 404.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from discreet.errors import extra
from discreet.training.gradients.trace.places import records_of
from discreet.training.gradients.trace.random_draws import Unjudged
from discreet.training.gradients.trace.trees import mapped, renumber, tensors
from discreet.training.verification.numbers import Counts
from discreet.training.verification.tape import LossTape, TapeEntry

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["READINGS", "Row", "Run", "StepReading", "Substitute", "losses", "make_call", "restore_chance"]

EMPTY = frozenset({"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"})

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


class Substitute(Protocol):
    """What takes the place of tensors that model and loss were given."""

    def __call__(self, x: Tensor, of_model: bool) -> Tensor:
        """Its part of a tensor."""

    def has_rows(self, x: Tensor, of_model: bool) -> bool:
        """Whether a tensor has a row for each record, or is taken whole."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record, and those that run beside it: their rows in tensors that hold all; ``known`` tensors are the model's
    own."""

    tape: LossTape
    row: int
    known: Container[int]
    reading: StepReading = READINGS[0]
    change: Callable[[Tensor], Tensor] = Tensor.clone  # what is done to numbers on the way: another precision, say

    def __call__(self, x: Tensor, of_model: bool) -> Tensor:
        """The record's part of a tensor that was given."""
        if id(x) in self.known:
            return x
        own, dim = self.tape.originals.get(id(x), x).detach(), self.dim(x, of_model)
        if dim is not None and id(x) in self.reading.own:
            own = self.reading.own[id(x)]
        elif dim is not None:
            own = own.index_select(dim, torch.tensor([self.row, *self.reading.others], device=own.device))
        if dim is not None and self.reading.copies > 1:
            own = own.repeat_interleave(self.reading.copies, dim)
        own = self.change(own) if x.is_floating_point() else own.clone()
        return own.requires_grad_(x.requires_grad)

    def has_rows(self, x: Tensor, of_model: bool) -> bool:
        """Whether a tensor has a row for each record."""
        return self.dim(x, of_model) is not None

    def dim(self, x: Tensor, of_model: bool) -> int | None:
        """Where the records are: in the first dimension; of a batch that was turned, in the second."""
        records = self.tape.records
        if self.reading.only_data and id(x) not in self.tape.data | self.tape.drawn:
            return None
        if self.reading.turned and x.dim() > 1 and x.shape[1] == records:
            return 1
        return records_of(x, records) if of_model else 0 if x.dim() and x.shape[0] == records else None


def losses(
    tape: LossTape, substitute: Substitute, run: Run, counts: Counts, count: int
) -> list[tuple[Tensor, Tensor | None]]:
    """The losses of the backward passes and the weights of their entries, computed again from what ``substitute`` gives
    for what was given.

    ``count`` records take the place of the tape's; ``run`` makes a call of the model.
    """
    replay = _Replay(tape, substitute, run, counts, count)
    again = tape.after | replay.made_of_counts
    for call in tape.calls_leading_to(tape.wanted, lambda ids: bool(ids & again)):
        replay.again(call)
    if any(id(loss) not in replay.made for loss, _ in tape.backwards):
        raise Unjudged("loss")
    return [
        (replay.made[id(loss)], None if weight is None else replay.now(weight, False))
        for loss, weight in tape.backwards
    ]


class _Replay:
    """What is computed again, by the identity of what it was; an object, because functions that call each other would
    hold all of it until Python looks for cycles."""

    def __init__(self, tape: LossTape, substitute: Substitute, run: Run, counts: Counts, count: int) -> None:
        self.made: dict[int, Tensor] = {}
        self._after, self._substitute, self._run, self._counts = tape.after, substitute, run, counts
        self._count, self._records = count, tape.records
        calls = tape.calls_of_losses() if counts else []
        self._places = {id(call): place for place, call in enumerate(calls)}
        self.made_of_counts = _made_of_counts(tape, calls, counts)
        self._makers = {
            id(x): call for call in tape.calls if not call.is_module for x in call.outputs if id(x) in tape.data
        }

    def now(self, x: Tensor, of_model: bool) -> Tensor:
        """What stands for a tensor of the tape."""
        if id(x) not in self.made:
            maker = None if id(x) in self._after else self._makers.get(id(x))
            if maker is not None and not self._substitute.has_rows(x, of_model):  # a batch that was flattened, say
                self.again(maker)
            else:
                self.made[id(x)] = self._substitute(x, of_model)
        return self.made[id(x)]

    def again(self, call: TapeEntry) -> None:
        """Make a call again."""
        args, kwargs = (mapped(lambda x: self.now(x, call.is_module), tree) for tree in (call.args, call.kwargs))
        if self._counts and self._count != self._records:
            args, kwargs = self._recount((args, kwargs), self._places.get(id(call), -1))
        outputs = make_call(call, args, kwargs, self._run)
        if len(outputs) != len(call.outputs):
            raise Unjudged("outputs")
        self.made.update({id(a): b for a, b in zip(call.outputs, outputs, strict=True)})

    def _recount(self, args: Any, place: int) -> Any:
        """The arguments of the call at this place, with numbers that count the tape's records made to count others."""

        def change(number: int, x: float) -> float:
            if (place, number) not in self._counts:
                return x
            # divided last: 49 * (1 / 49) < 1
            grows = self._counts[place, number] > 0
            return x * self._count / self._records if grows else x * self._records / self._count

        return renumber(args, change)


def _made_of_counts(tape: LossTape, calls: Sequence[TapeEntry], counts: Counts) -> set[int]:
    """What was made of numbers of records alone, not of chance: as many ones as there are records, their places."""
    made, counting = set[int](), {id(calls[place]) for place, _ in counts}
    records_or_chance = tape.data | tape.drawn if counts else set[int]()
    for call in tape.calls if counts else ():
        outputs = {id(x) for x in call.outputs}
        of_counts = id(call) in counting or bool(made & {id(x) for x in call.inputs})
        if of_counts and not call.is_module and not outputs & records_or_chance:
            made |= outputs
    return made


def make_call(call: TapeEntry, args: Any, kwargs: Any, run: Run) -> list[Tensor]:
    """Make one call of a tape with these arguments; ``run`` makes those of the model."""
    with ExitStack() as stack:
        stack.enter_context(torch.set_grad_enabled(call.graded))
        if call.casts[0]:
            stack.enter_context(torch.autocast("cpu", dtype=call.casts[1]))
        if call.is_module:
            return run(call, args, kwargs)
        output = call.func(*args, **kwargs)
        if getattr(call.func, "__name__", "") in EMPTY:
            with torch.no_grad():
                output.zero_()  # what fills it out of sight must be missed, not hidden by whatever memory holds
        return tensors(output) or tensors(args[:1])  # what writes into a tensor may return nothing


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
