"""Does each record's gradient depend on that record alone? Asked of the user's own loop, on some of its batches.

On the batches that a ``Schedule`` picks, the loop is written down as it runs (``tape``), and a few records are run
alone through plain autograd (``lone``): what the engine claims of their gradients must be that (``judgement``).

It is for mistakes, not for malice. Guarantee: for a model and a loss that treat records apart no private record makes
it stop a run: where rounding may be the reason of a difference nothing is said (``agreement``), and records whose
gradient is not finite and empty batches pass. A loop that cannot be judged is refused, unless ``unverified`` says why
it should be believed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from discreet.errors import extra
from discreet.training.distributed.collectives import forbid_collectives
from discreet.training.errors import EARLIER, UNJUDGED, UNKNOWN, MixedRecords, PrivateTrainingError
from discreet.training.gradients.claims import Claim, claims
from discreet.training.gradients.clipped_sum import ClippedSum
from discreet.training.gradients.contraction import UsesOf
from discreet.training.gradients.state import State, named_tensors, path_of
from discreet.training.gradients.units import Owners
from discreet.training.memory import return_freed_memory
from discreet.training.verification.explanation import refuse_written, warn_of_gradients
from discreet.training.verification.judgement import Judgement, Memory
from discreet.training.verification.listening import Afterwards, Listening, sweep
from discreet.training.verification.single_record import SingleRecordRuns
from discreet.training.verification.tape import LossTape

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.overrides import _get_current_function_mode_stack

__all__ = ["FIRST", "Schedule", "StepVerification", "Writes", "pause_listeners"]

FIRST = 2  # batches that are always verified
TOGETHER = 8
SHORTEST, GROWTH, LONGEST = 4, 3, 64  # steps of a stretch


class Schedule:
    """Which batches are verified: the first ones, then one drawn at random out of each of a sequence of stretches.

    Stretches grow, so that the cost stays a small share of a run; none is longer than ``LONGEST``, so that a model
    which begins to mix records at some step is met again before long, and no step is known beforehand to be unwatched.
    """

    def __init__(self, draw: Callable[[int], int] | None) -> None:
        self._draw = draw
        self._seen = self._verified = 0
        self._start, self._length, self._at = FIRST, SHORTEST, -1

    @property
    def claims(self) -> tuple[int, ...]:
        """Of how many records of a batch each claim is: one alone, or some together, so that many rows are looked
        at."""
        if self._verified <= FIRST:
            return ((TOGETHER,), (1,))[self._verified - 1]
        assert self._draw is not None
        return (self._draw(2) * (TOGETHER - 1) + 1,)

    def next(self, records: int) -> bool:
        """Whether the next batch is verified; one of a single record never is, and the next takes its turn."""
        step, self._seen = self._seen, self._seen + 1
        if self._verified < FIRST:
            self._verified += records > 1
            return records > 1
        if step >= self._start + self._length or self._at < 0:
            if self._at >= 0:
                self._start, self._length = self._start + self._length, min(GROWTH * self._length, LONGEST)
            assert self._draw is not None
            self._start = max(self._start, step)
            self._at = self._start + self._draw(self._length)
        if step < self._at or records < 2:
            return False
        self._at = self._start + self._length  # had its turn
        self._verified += 1
        return True


class Writes:
    """Which parameters and buffers are written over, by torch's own count of writes: cheap enough for every step."""

    def __init__(self, model: nn.Module | None = None) -> None:
        self._owners = [] if model is None else list(named_tensors(model))
        self._before: list[tuple[int, int]] = []

    def begin(self) -> None:
        """From now on."""
        self._before = self._versions()

    def changed(self) -> list[str]:
        """The names of what was written over."""
        now = self._versions()
        if now == self._before or not self._before:
            return []
        return [path_of(self._owners[i][0]) for i, (a, b) in enumerate(zip(now, self._before, strict=True)) if a != b]

    def _versions(self) -> list[tuple[int, int]]:
        found = [owner.get(key) for _, owner, key in self._owners]
        return [(id(x), 0 if x is None else x._version) for x in found]


def pause_listeners() -> list[Listening]:
    """Listeners of other runs, which from now on do not hear of a private step: what it releases is public."""
    found = [x for x in _get_current_function_mode_stack() if isinstance(x, Listening) and not x.finished]
    for tape in found:
        tape.pause()
    return found


class StepVerification:
    """Verifies batches of one run; ``draw`` gives whole numbers below a bound, at random.

    Where pieces may hold one unit each (``by_one``), which is alone already, made-up records are asked of.
    """

    def __init__(
        self,
        clipped: ClippedSum,
        draw: Callable[[int], int],
        *,
        before_batch: Callable[[bool], None] | None = None,
        unverified: str = "",
        debug: bool = False,
        by_one: bool = False,
    ) -> None:
        self._watch, self._contraction, self._mean = clipped.watch, clipped.contraction, clipped.mean
        self._draw, self._before_batch = draw, before_batch  # which is told whether a batch will be verified
        self._schedule, self._memory = Schedule(draw), Memory(unverified=unverified, debug=debug)
        self._model: nn.Module | None = None
        self._alone = False  # whether the batch holds one unit
        self._writes = Writes()
        self._tape: LossTape | None = None
        self._state: State | None = None
        self._owners: Owners | None = None
        self._claims: list[Claim] = []
        self._by_one, self._asked = by_one, 0  # of such pieces
        self._changed: list[str] = []  # parameters and buffers that a verified batch has seen written
        self._left: list[weakref.ref[Tensor]] = []  # of a verified batch that had its step
        self._after: Afterwards | None = None
        self._late: list[str] = []  # what was written from a batch after its step

    def attach(self, model: nn.Module) -> None:
        """The model that is verified."""
        self._model, self._writes = model, Writes(model)

    @property
    def wants_claims(self) -> bool:
        """Whether the current batch is verified."""
        return self._tape is not None

    def begin(
        self, records: int, yielded: Any, alone: Callable[..., Any] | None = None, owners: Owners | None = None
    ) -> None:
        """A batch comes, and what was held for the last one goes; ``alone`` collates some of its records alone. Where
        the rows have ``owners``, those are judged: all rows of a few, without the others'."""
        self.end()
        if self._model is None:
            return
        units = records if owners is None else owners.units
        verified = self._schedule.next(units)
        if units == 1 and self._by_one and self._asked < FIRST:
            self._asked, verified = self._asked + 1, True
        self._alone = units == 1
        if self._before_batch is not None:
            self._before_batch(verified)
        self._writes.begin()
        if verified:
            self._owners = owners
            self._state = State(self._model)
            parameters = {id(p) for p in self._watch.parameters.values()}
            self._tape = LossTape(yielded, parameters, self._remember, alone)
            self._watch.listen(self._tape)
            self._tape.__enter__()

    def before_sum(self) -> None:
        """Refuse a write into parameters or buffers from records after their step, or one that no verified batch has
        seen: those of a verified one are judged with it."""
        if self._late and self._model is not None:
            refuse_written(self._late[0], self._model)
        self._changed = [name for name in self._writes.changed() if name not in self._memory.written]
        if self._changed and not self.wants_claims and self._model is not None and not self._memory.unverified:
            refuse_written(self._changed[0], self._model)

    def _remember(self) -> None:
        """The model is about to meet the batch: what the loop wrote into it since it has the batch, or keeps in it of
        an earlier one, must not be made of records."""
        model, tape, state = self._model, self._tape, self._state
        assert model is not None and tape is not None and state is not None  # noqa: PT018
        earlier = {x.data_ptr() for x in (ref() for ref in self._memory.earlier) if x is not None}
        if earlier & state.places():
            raise MixedRecords(EARLIER)
        if changed := state.changed_now():
            self._state = State(model)
            found = {x.data_ptr() for x in [*tape.given, *(x for call in tape.calls for x in call.outputs)]}
            if found & (self._state.places() - state.places() | self._state.places(changed)):
                refuse_written(changed[0], model)
            if tape.reading:
                self._memory.refuse(PrivateTrainingError(UNKNOWN))

    def forget(self) -> None:
        """Backward passes so far do not count."""
        if self._tape is not None:
            self._tape.forget()

    def stop(self) -> None:
        """The step begins: write nothing down any more, and say once that there are no gradients before it."""
        asked = self._tape is not None and not self._tape.finished and self._tape.gradients_read
        self._stop_writing()
        if asked and not self._memory.told:
            self._memory.note_warning()
            warn_of_gradients()

    def _stop_writing(self) -> None:
        if self._tape is not None and not self._tape.finished:
            self._tape.finish()
            self._watch.listen(None)
            sweep()

    def listen_on(self) -> None:
        """A verified batch had its step: hear what the loop makes of it until the next one."""
        if self._left and self._model is not None:
            batch = [x for x in (ref() for ref in self._left) if x is not None]
            self._left, self._after = [], Afterwards(self._model, batch)
            self._after.__enter__()

    def end(self) -> None:
        """Let go of everything that was held for a batch."""
        if self._after is not None:
            self._after.finish()
            sweep()
            self._memory.note_earlier(self._after.made, more=True)
            self._late, self._after = self._after.written, None
        if self._tape is not None:
            self._stop_writing()
            large = self._tape.large
            self._tape = self._state = self._owners = None
            self._claims = []
            if large:
                return_freed_memory()

    def claim(self, uses_of: UsesOf, squares: Sequence[Tensor], lost: Tensor | None, weights: Tensor | None) -> None:
        """Note what the engine claims of a few records, or units; of one alone there is nothing to say."""
        if self._alone:
            return
        found: Sequence[int] = range(len(squares[0]))
        if weights is not None or lost is not None:
            able = torch.ones(len(squares[0]), dtype=torch.bool) if weights is None else weights.cpu() > 0
            found = (able if lost is None else able & ~lost.cpu()).nonzero().flatten().tolist()
        rows = [self._some(found, size) for size in self._schedule.claims if found]
        found_of = claims(self._contraction, uses_of, squares, lost, rows)
        self._claims = found_of if self._owners is None else [claim.by(self._owners) for claim in found_of]

    def _some(self, found: Sequence[int], size: int) -> tuple[int, ...]:
        """A few of these rows, at random, but never all of them: somebody must be missed."""
        few: list[int] = []  # places, of which each is drawn among those that are left
        for taken in range(min(size, max(1, len(found) - 1))):
            place = self._draw(len(found) - taken)
            for other in sorted(few):
                place += place >= other
            few.append(place)
        return tuple(found[place] for place in few)

    def after_sum(self, records: int, weights: Tensor | None) -> None:
        """Refuse the batch if a claim is not what the record alone says."""
        tape, state, model = self._tape, self._state, self._model
        if tape is None or model is None:
            return
        self.stop()
        if tape.large:  # the step is over, and what it left behind must not be held beside what comes
            return_freed_memory()
        try:
            if state is None or not tape.backwards or tape.unjudged:
                self._memory.refuse(PrivateTrainingError(UNJUDGED))
                return
            runs = SingleRecordRuns(self._watch, self._contraction, self._mean, model, state)
            judgement = Judgement(tape, runs, self._memory, self._draw, records, weights)
            with forbid_collectives(self._memory.unverified):
                if self._claims:
                    judgement.judge(self._claims)
                else:
                    judgement.judge_made_up(alone=self._alone)
            self._memory.written.update(self._changed)
            self._left = [*map(weakref.ref, tape.given), *self._memory.earlier]
        finally:
            self.end()
