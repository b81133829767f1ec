"""A record's gradient by an independent route: the record alone, through plain autograd.

Nothing of the engine takes part: the modules run unwatched, the backward pass is torch's own. Made-up records take a
batch's place on a tape of their own, which the engine watches: what is said of them tells of nobody.

Decision 400.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.claims import Claim, claims
from discreet.training.gradients.clipped_sum import ClippedSum
from discreet.training.gradients.state import State
from discreet.training.gradients.trace.random_draws import Handing, Unjudged
from discreet.training.gradients.trace.trees import tensors
from discreet.training.gradients.trace.watch import CallListener
from discreet.training.verification.numbers import possible_counts
from discreet.training.verification.replay import Change, Row, StepReading, TapeReplay, restore_chance
from discreet.training.verification.tape import LossTape, TapeEntry, run_backward

with extra("torch"):
    import torch
    from torch import Tensor, nn

__all__ = ["SingleRecordRuns", "run_made_up_records"]

LARGE = 300.0  # times the others': a made-up record


class _LastOutput(CallListener):
    """Keeps what the last outermost call gave, before later hooks changed it."""

    output: Any = None

    def answered(self, output: Any) -> None:
        """Keep it."""
        self.output = output


class SingleRecordRuns:
    """Runs single records of a tape through the model and the loss, from the state in which the batch met them.

    Records are ``private``, or made up.
    """

    def __init__(
        self, tape: LossTape, clipped: ClippedSum, model: nn.Module, before: State, *, private: bool = True
    ) -> None:
        self.tape, self.clipped, self.model, self.before, self.private = tape, clipped, model, before, private
        self.known = {id(x) for x in [*model.parameters(), *model.buffers()]}
        self.parameters: Mapping[str, Tensor] = clipped.watch.parameters
        # of each run: its rows, what it wrote, the state after it
        self.written: list[tuple[tuple[int, ...], list[str], State | None]] = []

    def gradient(self, row: int, reading: StepReading, change: Change = Tensor.clone) -> list[Tensor]:
        """The gradient of a record's own loss, by an ordinary backward pass; leaves no trace in the model."""
        with self.from_before(), torch.enable_grad(), torch.random.fork_rng(devices=[]):
            gradient = self._backward(Row(self.tape, row, self.known, reading, change), reading)
            names = self.before.changed_now()
            self.written.append(((row, *reading.others), names, State(self.model) if names else None))
        return self.clipped.contraction.scaled(gradient)

    def _backward(self, of: Row, reading: StepReading) -> list[Tensor]:
        chance = self.chance(of.row, reading)

        def run(call: TapeEntry, args: Any, kwargs: Any) -> list[Tensor]:
            return self.run(call, args, kwargs, chance)

        replay = TapeReplay(of, run, reading.counts, reading.count)
        pairs = [
            (loss, None if weight is None else weight.detach().reshape(loss.shape).to(loss.dtype))
            for loss, weight in replay.losses()
            if loss.requires_grad
        ]
        if any(weight is None and loss.numel() != 1 for loss, weight in pairs):
            raise Unjudged("loss")
        try:
            if pairs:
                with self.clipped.watch.without_watching(), chance:  # checkpointed modules run again
                    run_backward([loss for loss, _ in pairs], [weight for _, weight in pairs])
            times = 1 if self.clipped.mean else reading.copies
            ours = self.parameters.values()
            return [torch.zeros_like(p) if p.grad is None else _dense(p.grad.detach()) / times for p in ours]
        finally:
            for p in self.model.parameters():
                p.grad = None

    def chance(self, row: int, reading: StepReading) -> Handing:
        """What chance did for a record."""
        rows = (row, *reading.others)
        return Handing(rows, self.tape.records, reading.copies, interleaved=reading.interleaved)

    def run(self, call: TapeEntry, args: Any, kwargs: Any, chance: Handing) -> list[Tensor]:
        """One call of the model, unwatched; what it drew for the record is handed to it again."""
        watch, last = self.clipped.watch, _LastOutput()
        listener = watch.listener
        watch.listen(last)
        chance.next(call.draws)
        try:
            with watch.without_watching(), restore_chance(call), chance:
                call.func(*args, **kwargs)
        finally:
            watch.listen(listener)
        return tensors(last.output)

    @cached_property
    def changed_by_batch(self) -> list[str]:
        """What the batch changed in the model, by name; lone runs leave no trace, so it stays so."""
        return self.before.changed_now()

    @contextmanager
    def from_before(self) -> Iterator[None]:
        """The model in the state in which the batch met it, for the length of a block."""
        now = State(self.model) if self.changed_by_batch else None
        if now is not None:
            self.before.restore()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of one record alone nobody asked
                yield
        finally:
            (now or self.before).restore()


def _dense(gradient: Tensor) -> Tensor:
    """A table's gradient with all its rows, where only those that were looked up are held."""
    return gradient.to_dense() if gradient.is_sparse else gradient


@dataclass(frozen=True, slots=True)
class _MadeUpRecords(Row):
    """So many made-up records in place of a batch's, of the same shapes and kinds of numbers: the data of ``again``."""

    again: LossTape = field(kw_only=True)
    _made: dict[int, Tensor] = field(default_factory=dict)

    def part(self, x: Tensor, whole: Tensor, dim: int) -> Tensor:
        """Numbers around zero, and small whole ones: what any table has; the last record's are far larger, so that
        others feel it where they meet. A public tensor with rows stays, if as many records are made up."""
        records = self.again.records
        if records == self.tape.records and id(x) not in self.tape.data | self.tape.drawn:
            return whole.clone()
        if id(x) not in self._made:
            shape = [records if d == dim else size for d, size in enumerate(x.shape)]
            if x.is_floating_point() or x.is_complex():
                made = torch.randn(shape, dtype=x.dtype, device=x.device)
                made.narrow(dim, records - 1, 1).mul_(LARGE)
            else:
                made = torch.randint(0, 2, shape, device=x.device).to(x.dtype)
            self._made[id(x)] = made
            self.again.data.add(id(made))
            self.again.given.append(made)
        return self._made[id(x)]


def run_made_up_records(
    runs: SingleRecordRuns, count: int, few: int, reading: StepReading
) -> tuple[SingleRecordRuns, list[Claim]]:
    """The calls of a tape once more, watched, on ``count`` made-up records: what runs those alone, and the engine's
    claims about a ``few`` of them."""
    batch, watch, contraction, again = runs.tape, runs.clipped.watch, runs.clipped.contraction, LossTape(count)
    # what was made of sizes is made again, so that the new tape has it
    counts = possible_counts(batch.calls_of_losses(), batch.records) if batch.sizes else reading.counts
    made_up = _MadeUpRecords(batch, 0, runs.known, replace(reading, counts=counts), again=again)

    def run(call: TapeEntry, args: Any, kwargs: Any) -> list[Tensor]:
        call.func(*args, **kwargs)
        return again.calls[-1].outputs

    with runs.from_before(), watch.trial(count) as uses, torch.random.fork_rng(devices=[]), torch.enable_grad():
        watch.listen(again)
        try:
            with again:
                for loss, weight in TapeReplay(made_up, run, counts, count).losses():
                    loss.backward(weight)
        finally:
            watch.listen(None)
            again.finish()
            for p in watch.parameters.values():
                p.grad = None
        uses_of = contraction.of_parameters(uses)
    with torch.no_grad():
        squares = contraction.squares(uses_of, count)
        lost = ~torch.isfinite(torch.stack(squares)).all(0)
        kept = [row for row in range(count) if not bool(lost[row])][-few:]
        rows = [tuple(part) for part in (kept[:1], kept[1:-1], kept[-1:]) if part]
        claimed = claims(contraction, uses_of, squares, lost if bool(lost.any()) else None, rows)
    return SingleRecordRuns(again, runs.clipped, runs.model, runs.before, private=False), claimed
