"""A record's gradient by an independent route: the record alone, through plain autograd, against what is claimed.

Nothing of the engine takes part: the modules run unwatched, the backward pass is torch's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.claims import Claim, claims
from discreet.training.gradients.contraction import Contraction
from discreet.training.gradients.state import State
from discreet.training.gradients.trace.places import records_of
from discreet.training.gradients.trace.random_draws import Handing, Unjudged
from discreet.training.gradients.trace.trees import tensors
from discreet.training.gradients.trace.watch import Watch
from discreet.training.verification.numbers import possible_counts
from discreet.training.verification.readings import MadeUpRecords, Row, StepReading, Substitute, Whole
from discreet.training.verification.replay import calls_of_losses, losses, restore_chance
from discreet.training.verification.tape import LossTape, TapeEntry, run_backward

with extra("torch"):
    import torch
    from torch import Tensor, nn

__all__ = ["Catcher", "Change", "SingleRecordRuns", "trial"]

CLOSE = 1e-3  # of an output's gradient

Change = Callable[[Tensor], Tensor]


class Catcher:
    """Is told of outermost calls, and keeps what the last one gave, before later hooks changed it."""

    def __init__(self) -> None:
        self.output: Any = None

    def pause(self) -> None:
        """Nothing to do: nothing is heard but the last call."""

    def resume(self) -> None:
        """Nothing to do."""

    def called(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Nothing to do."""

    def answered(self, output: Any) -> None:
        """Keep it."""
        self.output = output


class SingleRecordRuns:
    """Runs single records of a tape through the model and the loss, from the state in which the batch met them."""

    def __init__(self, watch: Watch, contraction: Contraction, mean: bool, model: nn.Module, before: State) -> None:
        self.watch, self.contraction, self.model, self.before = watch, contraction, model, before
        self.known = {id(x) for x in [*model.parameters(), *model.buffers()]}
        self.mean = mean  # whether the loss divides by the number of records
        self.parameters: Mapping[str, Tensor] = watch.parameters
        # of each run: its rows, what it wrote, the state after it
        self.written: list[tuple[tuple[int, ...], list[str], State | None]] = []

    def row(self, tape: LossTape, row: int, records: int, reading: StepReading, change: Change = Tensor.clone) -> Row:
        """A record of a tape."""
        return Row(tape, row, records, self.known, reading, change)

    def run(self, call: TapeEntry, args: Any, kwargs: Any, chance: Handing) -> list[Tensor]:
        """One call of the model, unwatched; what it drew for the record is handed to it again."""
        catcher, kept = Catcher(), self.watch.listener
        self.watch.listen(catcher)
        chance.next(call.draws)
        try:
            with self.watch.without_watching(), restore_chance(call), chance:
                call.func(*args, **kwargs)
        finally:
            self.watch.listen(kept)
        return tensors(catcher.output)

    def chance(self, row: int, records: int, reading: StepReading) -> Handing:
        """What chance did for a record."""
        return Handing((row, *reading.others), records, reading.copies, interleaved=reading.interleaved)

    def gradient(
        self, tape: LossTape, row: int, records: int, reading: StepReading, change: Change = Tensor.clone
    ) -> list[Tensor]:
        """The gradient of a record's own loss, by an ordinary backward pass; leaves no trace in the model."""
        with self.from_before(), torch.enable_grad(), torch.random.fork_rng(devices=[]):
            own = self.row(tape, row, records, reading, change)
            found = self.contraction.scaled(self._backward(tape, own, reading))
            names = self.before.changed_now()
            self.written.append(((row, *reading.others), names, State(self.model) if names else None))
        return found

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

    def output_gradients_differ(self, tape: LossTape, row: int, records: int, reading: StepReading) -> bool:
        """Whether the loss sends another gradient to the model's outputs for a record where it is alone."""
        # of the losses as they were: their graph may be gone, so they are computed again, for all and for one
        whole = Whole(tape, self.known)
        alone = self.row(tape, row, records, reading)
        try:
            with self.from_before(), torch.enable_grad(), torch.random.fork_rng(devices=[]):
                together = self._at_outputs(tape, whole, row, records, reading, records)
                by_itself = self._at_outputs(tape, alone, row, records, reading, reading.count)
        except Exception:  # the place is not known, the refusal stands
            return False
        scale = float(records) if self.mean else 1.0
        for x, y in zip(together, by_itself, strict=True):
            dim = records_of(x, records)
            if dim is not None and x.dim() == y.dim():
                part = x.narrow(dim, row, 1) * scale
                if not float((part - y).norm()) <= CLOSE * float(part.norm() + y.norm()) + 1e-30:
                    return True
        return False

    def _at_outputs(
        self, tape: LossTape, given: Substitute, row: int, records: int, reading: StepReading, count: int
    ) -> list[Tensor]:
        outputs: list[Tensor] = []
        chance = self.chance(row, records, reading)

        def run(call: TapeEntry, args: Any, kwargs: Any) -> list[Tensor]:
            given = self.run(call, args, kwargs, chance)
            found = [x.detach().requires_grad_() if x.is_floating_point() else x for x in given]
            outputs.extend(x for x in found if x.requires_grad)
            return found

        found = losses(tape, given, run, reading, count, records)
        total = sum((loss if weight is None else loss * weight).sum() for loss, weight in found)
        assert isinstance(total, Tensor)
        return [
            torch.zeros_like(x) if g is None else g
            for x, g in zip(outputs, torch.autograd.grad(total, outputs, allow_unused=True), strict=True)
        ]

    def _backward(self, tape: LossTape, of: Row, reading: StepReading) -> list[Tensor]:
        chance = self.chance(of.row, of.records, reading)

        def run(call: TapeEntry, args: Any, kwargs: Any) -> list[Tensor]:
            return self.run(call, args, kwargs, chance)

        found = losses(tape, of, run, reading, reading.count, of.records)
        ours = list(self.parameters.values())
        pairs = [
            (loss, None if weight is None else weight.detach().reshape(loss.shape).to(loss.dtype))
            for loss, weight in found
            if loss.requires_grad
        ]
        if any(weight is None and loss.numel() != 1 for loss, weight in pairs):
            raise Unjudged("loss")
        try:
            if pairs:
                with self.watch.without_watching(), chance:  # checkpointed modules run again
                    run_backward([loss for loss, _ in pairs], [weight for _, weight in pairs])
            times = 1 if self.mean else reading.copies
            return [torch.zeros_like(p) if p.grad is None else _dense(p.grad.detach()) / times for p in ours]
        finally:
            for p in self.model.parameters():
                p.grad = None


def _dense(gradient: Tensor) -> Tensor:
    """A table's gradient with all its rows, where only those that were looked up are held."""
    return gradient.to_dense() if gradient.is_sparse else gradient


def trial(
    tape: LossTape, runs: SingleRecordRuns, records: int, count: int, few: int, reading: StepReading
) -> tuple[LossTape, list[Claim]]:
    """The calls of a tape on ``count`` made-up records in place of its ``records``: a tape, and claims about a ``few``
    of them."""
    again = LossTape((), (), counted=tape.counted)
    if tape.counted:  # what was made of sizes is made again, so that the new tape has it
        reading = replace(reading, counts=possible_counts(calls_of_losses(tape), records))
    given = MadeUpRecords(runs.row(tape, 0, records, reading), count, again, {})

    def run(call: TapeEntry, args: Any, kwargs: Any) -> list[Tensor]:
        call.func(*args, **kwargs)
        return again.calls[-1].outputs

    watch, contraction = runs.watch, runs.contraction
    with runs.from_before(), watch.trial(count) as uses, torch.random.fork_rng(devices=[]), torch.enable_grad():
        watch.listen(again)
        try:
            with again:
                found = losses(tape, given, run, reading, count, records)
                for loss, weight in found:
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
        return again, claims(contraction, uses_of, squares, lost if bool(lost.any()) else None, rows)
