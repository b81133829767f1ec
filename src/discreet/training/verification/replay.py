"""What a tape holds, computed again: for one record alone, or for made-up records.

From the model's inputs on, every call is made again: what was given to the model and the loss is cut to the record's
row, and what follows from it follows (``readings``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.training.gradients.trace.random_draws import Unjudged
from discreet.training.gradients.trace.trees import mapped, renumber, same_bits, tensors
from discreet.training.verification.numbers import Counts
from discreet.training.verification.readings import StepReading, Substitute
from discreet.training.verification.tape import LossTape, TapeEntry

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["ancestors", "calls_of_losses", "losses", "recompute_inputs", "restore_chance"]

OVERWRITING = frozenset({"copy_", "fill_", "zero_"})
EMPTY = frozenset({"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"})

Run = Callable[[TapeEntry, Any, Any], list[Tensor]]


def losses(
    tape: LossTape, substitute: Substitute, run: Run, reading: StepReading, count: int, records: int
) -> list[tuple[Tensor, Tensor | None]]:
    """The losses of the backward passes and the weights of their entries, computed again from what ``substitute`` gives
    for what was given.

    ``count`` records take the place of ``records``; ``run`` makes a call of the model.
    """
    replay = _Replay(tape, substitute, run, reading, count, records)
    again = tape.after | replay.made_of_counts
    for call in _calls_leading_to(tape, tape.wanted, lambda ids: bool(ids & again)):
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

    def __init__(
        self, tape: LossTape, substitute: Substitute, run: Run, reading: StepReading, count: int, records: int
    ) -> None:
        self.made: dict[int, Tensor] = {}
        self._after, self._substitute, self._run = tape.after, substitute, run
        self._counts, self._count, self._records = reading.counts, count, records
        calls = calls_of_losses(tape) if reading.counts else []
        self._places = {id(call): place for place, call in enumerate(calls)}
        self.made_of_counts = _made_of_counts(tape, calls, reading.counts)
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
        found = _run_call(call, args, kwargs, self._run)
        if len(found) != len(call.outputs):
            raise Unjudged("outputs")
        self.made.update({id(a): b for a, b in zip(call.outputs, found, strict=True)})

    def _recount(self, args: Any, place: int) -> Any:
        """The arguments of the call at this place with numbers that count ``records`` made to count ``count``."""

        def change(number: int, x: float) -> float:
            sign = self._counts.get((place, number), 0)
            if not sign:
                return x
            return x * self._count / self._records if sign > 0 else x * self._records / self._count

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


def calls_of_losses(tape: LossTape) -> list[TapeEntry]:
    """The calls that lead to the losses, in order."""
    return _calls_leading_to(tape, tape.wanted, lambda ids: True)


def _run_call(call: TapeEntry, args: Any, kwargs: Any, run: Run) -> list[Tensor]:
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
        return tensors(output) or [args[0]]  # what writes into a tensor returns nothing


def ancestors(tape: LossTape) -> set[int]:
    """Everything that a loss was computed from, by identity, as it was when the batch began: not what a call has
    written over before."""
    found, fresh = set[int](), set[int]()
    for call in calls_of_losses(tape):
        inputs = call.inputs
        if getattr(call.func, "__name__", "") in OVERWRITING:
            fresh.add(id(call.args[0]))
        found |= {id(x) for x in inputs} - fresh
        fresh |= {id(x) for x in call.outputs} - {id(x) for x in inputs}
    return found | {id(x) for x in tape.wanted} - fresh


def _calls_leading_to(
    tape: LossTape, wanted: Iterable[Tensor], replayed: Callable[[set[int]], bool]
) -> list[TapeEntry]:
    """The calls that lead to the wanted tensors, in order."""
    needed, calls = {id(x) for x in wanted}, []
    for call in reversed(tape.calls):
        ids = {id(x) for x in call.outputs}
        if ids & needed and replayed(ids):
            calls.append(call)
            needed |= {id(x) for x in call.inputs}
    return calls[::-1]


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


def recompute_inputs(tape: LossTape, records: int, rows: Sequence[int], run: Run) -> list[tuple[Tensor, ...]]:
    """What model and loss were given of the batch: as it was, and for each of ``rows`` with that record replaced.

    The first is replaced by another record, the others by numbers that are larger than any: what takes the largest of a
    batch shows itself.
    """
    wanted: dict[int, Tensor] = {}
    for call in tape.calls:
        inputs = call.inputs
        if (call.is_module and call.graded) or any(id(x) in tape.after for x in inputs):
            wanted |= {id(x): x for x in inputs if id(x) not in tape.after and id(x) in tape.data}
    weights = [weight for _, weight in tape.backwards if weight is not None]
    wanted |= {id(x): x for x in weights if id(x) not in tape.after and id(x) in tape.data}
    written = [x for x, before in tape.before() if not _equal(x, before)]
    if wanted.keys() <= {id(x) for x in tape.given} and not written:
        return []
    wanted |= {id(x): x for x in written}
    answers = []
    for row in (None, *rows):
        made = {
            id(x): _replace_row(before, row if x.dim() and x.shape[0] == records else None, row == rows[0])
            for x, before in tape.before()
        }
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            _again(tape, list(wanted.values()), made, run)
        if row is None and not all(_equal(made[id(x)], x) for x in written if id(x) not in tape.drawn):
            raise Unjudged("written")  # by nobody on the tape
        answers.append([made.get(id(x), x) for x in wanted.values()])
    return list(zip(*answers, strict=True))


def _equal(one: Tensor, other: Tensor) -> bool:
    same = same_bits(one, other) or torch.equal(one, other)
    if same or not one.is_floating_point() or one.shape != other.shape:
        return same
    return torch.allclose(one, other, rtol=1e-5, equal_nan=True)


def _replace_row(x: Tensor, row: int | None, by_another: bool) -> Tensor:
    x = x.detach().clone()
    if row is not None:
        x[row] = 17 * x.abs().max() + 1 if x.is_floating_point() and not by_another else x[row - 1]
    return x


def _again(tape: LossTape, wanted: list[Tensor], made: dict[int, Tensor], run: Run) -> None:
    calls = _calls_leading_to(tape, wanted, lambda ids: not ids & tape.after and not ids & tape.drawn)
    produced = {id(x) for call in calls for x in call.outputs}

    def now(x: Tensor) -> Tensor:
        if id(x) in made:
            return made[id(x)]
        return x.detach().clone() if id(x) in produced else x

    for call in calls:
        again = _run_call(call, mapped(now, call.args), mapped(now, call.kwargs), run)
        made |= {id(a): b for a, b in zip(call.outputs, again, strict=True)}
