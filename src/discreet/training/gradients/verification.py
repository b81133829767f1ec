"""Does each record's gradient depend on that record alone? Asked of the user's own loop, on some of its batches.

On the batches that a ``Schedule`` picks, the loop is written down as it runs (``tape``), and a few records are run
alone through plain autograd (``lone``): what the engine claims of their gradients must be that (``judgement``).

Guarantee: for a model and a loss that treat records apart it cannot fail, whatever the records: the tolerance is above
rounding, and records whose gradient is not finite, empty batches and batches of one record pass. What cannot be judged
is refused, unless ``unverified`` says why it should be believed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.contraction import Contraction, UsesOf
from discreet.training.gradients.explanation import refuse_written, warn_of_gradients
from discreet.training.gradients.judgement import Judgement, Memory
from discreet.training.gradients.lone import Claim, LoneRuns, claims
from discreet.training.gradients.schedule import Schedule
from discreet.training.gradients.state import State, Writes
from discreet.training.gradients.tape import LossTape, sweep
from discreet.training.gradients.watch import Watch
from discreet.training.memory import return_freed_memory
from discreet.training.refusals import UNJUDGED, PrivateTrainingError

with extra("torch"):
    import torch
    from torch import Tensor, nn

__all__ = ["Verification"]


class Verification:
    """Verifies batches of one run; ``draw`` gives whole numbers below a bound, at random."""

    def __init__(
        self,
        watch: Watch,
        contraction: Contraction,
        reduction: str,
        draw: Callable[[int], int],
        *,
        unverified: str = "",
        debug: bool = False,
    ) -> None:
        self._watch, self._contraction, self._reduction, self._draw = watch, contraction, reduction, draw
        self._schedule, self._memory = Schedule(draw), Memory(unverified=unverified, debug=debug)
        self._model: nn.Module | None = None
        self._writes = Writes()
        self._tape: LossTape | None = None
        self._state: State | None = None
        self._claims: list[Claim] = []

    def attach(self, model: nn.Module) -> None:
        """The model that is verified."""
        self._model, self._writes = model, Writes(model)

    @property
    def due(self) -> bool:
        """Whether the current batch is verified."""
        return self._tape is not None

    def begin(self, records: int, yielded: Any, alone: Callable[..., Any] | None = None) -> None:
        """A batch comes, and what was held for the last one goes; ``alone`` collates one of its records alone."""
        self.end()
        if self._model is None:
            return
        self._writes.begin()
        if self._schedule.next(records):
            parameters = {id(p) for p in self._watch.parameters.values()}
            self._tape = self._watch.listener = LossTape(yielded, parameters, self._remember)
            self._tape.alone = alone
            self._tape.__enter__()

    def refuse_writes(self) -> None:
        """Refuse a write into parameters or buffers that no verified batch has seen."""
        changed = [name for name in self._writes.changed() if name not in self._memory.written]
        if self.due:
            self._memory.written.update(changed)
        elif changed and self._model is not None and not self._memory.unverified:
            refuse_written(changed[0], self._model)

    def _remember(self) -> None:
        assert self._model is not None
        self._state = State(self._model)

    def forget(self) -> None:
        """Backward passes so far do not count."""
        if self._tape is not None:
            self._tape.forget()

    def stop(self) -> None:
        """Write nothing down any more."""
        if self._tape is not None and not self._tape.finished:
            self._tape.finished, self._watch.listener = True, None
            sweep()
            if self._tape.gradients_read and not self._memory.told:
                self._memory.told = True
                warn_of_gradients()

    def end(self) -> None:
        """Let go of everything that was held for a batch."""
        if self._tape is not None:
            self.stop()
            self._tape = self._state = None
            self._claims = []
            return_freed_memory()

    def claim(self, uses_of: UsesOf, squares: Sequence[Tensor], lost: Tensor | None, weights: Tensor | None) -> None:
        """Note what the engine claims of a few records."""
        able = torch.ones(len(squares[0]), dtype=torch.bool) if weights is None else weights.cpu() > 0
        if lost is not None:
            able &= ~lost.cpu()
        found = able.nonzero().flatten().tolist()
        rows = [found.pop(self._draw(len(found))) for _ in range(min(self._schedule.rows, len(found)))]
        self._claims = claims(self._contraction, uses_of, squares, lost, rows)

    def judge(self, records: int, weights: Tensor | None) -> None:
        """Refuse the batch if a claim is not what the record alone says."""
        tape, state, model = self._tape, self._state, self._model
        if tape is None or model is None or not self._claims:
            return
        self.stop()
        try:
            if state is None or not tape.backwards or tape.unjudged:
                self._memory.refuse(PrivateTrainingError(UNJUDGED))
                return
            runs = LoneRuns(self._watch, self._contraction, self._reduction, model, state)
            Judgement(tape, runs, self._memory, self._draw, records, weights).judge(self._claims)
        finally:
            self.end()
