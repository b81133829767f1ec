"""A record's gradient by an independent route: the record alone, through plain autograd.

Nothing of the engine takes part: the modules run unwatched, the backward pass is torch's own.

Decision 400.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.clipped_sum import ClippedSum
from discreet.training.gradients.state import State
from discreet.training.gradients.trace.random_draws import Handing, Unjudged
from discreet.training.gradients.trace.trees import tensors
from discreet.training.gradients.trace.watch import CallListener
from discreet.training.verification.replay import Row, StepReading, losses, restore_chance
from discreet.training.verification.tape import LossTape, TapeEntry, run_backward

with extra("torch"):
    import torch
    from torch import Tensor, nn

__all__ = ["Change", "SingleRecordRuns"]

Change = Callable[[Tensor], Tensor]


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
        chance, watch = self.chance(of.row, reading), self.clipped.watch

        def run(call: TapeEntry, args: Any, kwargs: Any) -> list[Tensor]:
            return self.run(call, args, kwargs, chance)

        pairs = [
            (loss, None if weight is None else weight.detach().reshape(loss.shape).to(loss.dtype))
            for loss, weight in losses(self.tape, of, run, reading.counts, reading.count)
            if loss.requires_grad
        ]
        if any(weight is None and loss.numel() != 1 for loss, weight in pairs):
            raise Unjudged("loss")
        try:
            if pairs:
                with watch.without_watching(), chance:  # checkpointed modules run again
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
