"""Does each record's gradient depend on that record alone? Asked of the user's own loop, on some of its batches.

On the batches that a ``Schedule`` picks, the loop is written down as it runs (``tape``), and a few records are run
alone through plain autograd (``single_record``): what the engine claims of their gradients must be that
(``judgement``).

It is for mistakes, not for malice. Guarantee: for a model and a loss that treat records apart no private record makes
it stop a run: where rounding may be the reason of a difference nothing is said (``compare``), and records whose
gradient is not finite and empty batches pass. A loop that cannot be judged is refused, unless ``unverified`` says why
it should be believed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from discreet.errors import extra
from discreet.random import Streams
from discreet.training.errors import EARLIER, UNJUDGED, UNKNOWN, MixedRecords
from discreet.training.gradients.claims import Claim, Subscriber, claims
from discreet.training.gradients.clipped_sum import ClippedSum
from discreet.training.gradients.contraction import UsesOf
from discreet.training.gradients.state import State
from discreet.training.gradients.units import Owners
from discreet.training.memory import return_freed_memory
from discreet.training.verification.explanation import refuse_written, warn_of_gradients
from discreet.training.verification.judgement import Judge
from discreet.training.verification.listening import Afterwards, ModelTensors, sweep
from discreet.training.verification.outside import OutsideTraining
from discreet.training.verification.single_record import SingleRecordRuns
from discreet.training.verification.tape import LossTape

with extra("torch"):
    import torch
    from torch import Tensor, nn

__all__ = ["FIRST", "Schedule", "StepVerification", "public_choices"]

FIRST = 2  # batches that are always verified
TOGETHER = 8
SHORTEST, GROWTH, LONGEST = 4, 3, 64  # steps of a stretch


class Schedule:
    """Which batches are verified: the first ones, then one drawn at random out of each of a sequence of stretches.

    Stretches grow, so that the cost stays a small share of a run; none is longer than ``LONGEST``, so that a model
    which begins to mix records at some step is met again before long, and no step is known beforehand to be unwatched.
    """

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw
        self._seen = self._verified = 0
        self._start, self._length = FIRST, SHORTEST  # of the current stretch
        self._turn: int | None = None  # the step from which on a batch of it is verified; none before the first one

    @property
    def claims(self) -> tuple[int, ...]:
        """Of how many records of a batch each claim is: one alone, or some together, so that many rows are looked
        at."""
        if self._verified <= FIRST:
            return ((TOGETHER,), (1,))[self._verified - 1]
        return (self._draw(2) * (TOGETHER - 1) + 1,)

    def next(self, records: int) -> bool:
        """Whether the next batch is verified; one of a single record never is, and the next takes its turn."""
        step, self._seen = self._seen, self._seen + 1
        if self._verified < FIRST:
            self._verified += records > 1
            return records > 1
        if self._turn is None or step >= self._start + self._length:
            self._begin_stretch(step)
        assert self._turn is not None
        if step < self._turn or records < 2:
            return False
        self._turn = self._start + self._length  # had its turn
        self._verified += 1
        return True

    def _begin_stretch(self, step: int) -> None:
        if self._turn is not None:
            self._start, self._length = self._start + self._length, min(GROWTH * self._length, LONGEST)
        self._start = max(self._start, step)
        self._turn = self._start + self._draw(self._length)


def public_choices(streams: Streams) -> Callable[[int], int]:
    """Whole numbers below a bound, from a stream of public choices that begins when it is asked."""
    source = cache(lambda: streams.public(2))
    return lambda below: int(source().word() % below)


@dataclass(slots=True)
class _Batch:
    """What is held of a batch that is verified."""

    tape: LossTape
    state: State  # in which the model meets it
    owners: Owners | None
    alone: bool  # whether it holds one unit
    claims: list[Claim] = field(default_factory=list)
    written: list[str] = field(default_factory=list)  # parameters and buffers that were written since the loop has it

    def begin_again(self, model: nn.Module) -> State:
        """The loop wrote into the model before it called it: so the batch meets it."""
        self.state = State(model)
        return self.state


class StepVerification(Subscriber):
    """Verifies batches of one run; ``draw`` gives whole numbers below a bound, at random, ``options`` the optimiser's.

    ``before_batch`` is told whether a batch will be verified, ``while_judging`` is entered while records run alone.
    Where pieces may hold one unit each (``by_one``), which is alone already, made-up records are asked of.
    """

    def __init__(
        self,
        clipped: ClippedSum,
        draw: Callable[[int], int],
        *,
        before_batch: Callable[[bool], None] | None = None,
        while_judging: Callable[[], AbstractContextManager[None]] = nullcontext,
        options: Callable[[], Sequence[float]] = tuple,
        unverified: str = "",
        debug: bool = False,
        by_one: bool = False,
    ) -> None:
        self._clipped, self._draw = clipped, draw
        self._before_batch, self._while_judging = before_batch, while_judging
        self._schedule = Schedule(draw)
        self._judge = Judge(draw, options=options, unverified=unverified, debug=debug)
        self._outside = OutsideTraining()
        self._by_one, self._asked = by_one, 0  # of such pieces
        self._model: nn.Module | None = None
        self._tensors: ModelTensors | None = None
        self._written: set[str] = set()  # what forward passes write, and was judged not to be made of records
        self._warned = False  # whether it was said that there are no gradients before step
        self._batch: _Batch | None = None  # the current one, if it is verified
        # of the last one that was verified, after its step
        self._left: list[weakref.ref[Tensor]] = []
        self._after: Afterwards | None = None
        self._late: list[str] = []  # what was written from it

    def attach(self, model: nn.Module) -> None:
        """The model that is verified."""
        self._model, self._tensors = model, ModelTensors(model)

    @property
    def wants_claims(self) -> bool:
        """Whether the current batch is verified."""
        return self._batch is not None

    # --- the course of a batch -------------------------------------------------------------------------------------

    def begin(
        self, records: int, yielded: Any, alone: Callable[..., Any] | None = None, owners: Owners | None = None
    ) -> None:
        """A batch comes, and what was held for the last one goes; ``alone`` collates some of its records alone. Where
        the rows have ``owners``, those are judged: all rows of a few, without the others'."""
        self.end()
        if self._model is None or self._tensors is None:
            return
        units = records if owners is None else owners.units
        verified = self._schedule.next(units)
        if units == 1 and self._by_one and self._asked < FIRST:
            self._asked, verified = self._asked + 1, True
        if self._before_batch is not None:
            self._before_batch(verified)
        self._tensors.begin()
        if verified:
            parameters = {id(p) for p in self._clipped.parameters.values()}
            tape = LossTape(records, yielded, parameters, self._before_forward, alone, self._outside)
            self._outside.begin()
            self._batch = _Batch(tape, State(self._model), owners, units == 1)
            self._clipped.watch.listen(tape)
            tape.__enter__()

    def _before_forward(self) -> None:
        """What the loop wrote into the model since it has the batch, or keeps in it of an earlier one, must not be made
        of records."""
        batch, model = self._batch, self._model
        assert batch is not None and model is not None  # noqa: PT018
        tape, before = batch.tape, batch.state
        if {x.data_ptr() for x in self._judge.earlier} & before.places():
            raise MixedRecords(EARLIER)
        if changed := before.changed_now():
            now = batch.begin_again(model)
            of_batch = {x.data_ptr() for x in [*tape.given, *(x for call in tape.calls for x in call.outputs)]}
            if of_batch & (now.places() - before.places() | now.places(changed)):
                refuse_written(changed[0], model)
            if tape.values_asked:
                self._judge.refuse(UNKNOWN)

    def forget(self) -> None:
        """Backward passes so far do not count."""
        if self._batch is not None:
            self._batch.tape.forget()

    def stop(self) -> None:
        """The step begins: write nothing down any more, and say once that there are no gradients before it."""
        if self._batch is None or self._batch.tape.finished:
            return
        self._finish(self._batch)
        if self._batch.tape.gradients_read and not self._warned:
            self._warned = True
            warn_of_gradients()

    def _finish(self, batch: _Batch) -> None:
        """Write nothing down any more. Says nothing: a loop that an error ended is left while rubbish is collected."""
        batch.tape.finish()
        self._clipped.watch.listen(None)
        sweep()

    def before_sum(self) -> None:
        """Refuse a write into parameters or buffers from records after their step, or one that no verified batch has
        seen: those of a verified one are judged with it."""
        self._outside.refuse_trained()
        if self._model is None or self._tensors is None:
            return
        if self._late:
            refuse_written(self._late[0], self._model)
        written = [name for name in self._tensors.rewritten() if name not in self._written]
        if self._batch is not None:
            self._batch.written.extend(written)
        elif written and not self._judge.unverified:
            refuse_written(written[0], self._model)

    def claim(self, uses_of: UsesOf, squares: Sequence[Tensor], lost: Tensor | None, weights: Tensor | None) -> None:
        """Note what the engine claims of a few records, or units; of one alone there is nothing to say."""
        batch = self._batch
        if batch is None or batch.alone:
            return
        weighs = torch.ones(len(squares[0]), dtype=torch.bool) if weights is None else weights.cpu() > 0
        candidates = (weighs if lost is None else weighs & ~lost.cpu()).nonzero().flatten().tolist()
        rows = [self._some(candidates, size) for size in self._schedule.claims if candidates]
        noted = claims(self._clipped.contraction, uses_of, squares, lost, rows)
        batch.claims.extend(noted if batch.owners is None else [claim.by(batch.owners) for claim in noted])

    def _some(self, candidates: Sequence[int], size: int) -> tuple[int, ...]:
        """A few of these rows, at random, but never all of them: somebody must be missed."""
        left = list(candidates)
        return tuple(left.pop(self._draw(len(left))) for _ in range(min(size, max(1, len(left) - 1))))

    def after_sum(self, records: int, weights: Tensor | None) -> None:
        """Refuse the batch if a claim is not what the record alone says."""
        batch, model = self._batch, self._model
        if batch is None or model is None:
            return
        self.stop()
        tape = batch.tape
        if tape.large:  # the step is over, and what it left behind must not be held beside what comes
            return_freed_memory()
        try:
            if not tape.backwards or tape.too_long:
                self._judge.refuse(UNJUDGED)
                return
            runs = SingleRecordRuns(tape, self._clipped, model, batch.state)
            with self._while_judging():
                self._judge.judge(runs, batch.claims, alone=batch.alone, padded=weights is not None)
            self._written.update(batch.written)
            self._left = [weakref.ref(x) for x in [*tape.given, *self._judge.earlier]]
        finally:
            self.end()

    def listen_on(self) -> None:
        """A verified batch had its step: hear what the loop makes of it until the next one."""
        if self._left:
            self._after = Afterwards(x for x in (ref() for ref in self._left) if x is not None)
            self._left = []
            self._after.__enter__()

    def end(self) -> None:
        """Let go of everything that was held for a batch."""
        if self._after is not None and self._tensors is not None:
            self._after.finish()
            sweep()
            self._judge.note_made(self._after.made)
            self._late = [name for x in self._after.written if (name := self._tensors.name_of(x)) is not None]
            self._after = None
        if self._batch is not None:
            if not self._batch.tape.finished:
                self._finish(self._batch)
            large, self._batch = self._batch.tape.large, None
            if large:
                return_freed_memory()
