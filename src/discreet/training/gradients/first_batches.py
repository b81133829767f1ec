"""The first batches of a run, on which model and loss are checked for records that mix."""

from __future__ import annotations

from typing import Any

from discreet.training.gradients.spot_check import LossTape, sweep
from discreet.training.gradients.watch import Watch
from discreet.training.memory import return_freed_memory

__all__ = ["FirstBatches"]


class FirstBatches:
    """Writes down the loss of the first ``count`` batches of several records, one at a time."""

    def __init__(self, watch: Watch, reduction: str, count: int) -> None:
        self._watch, self._reduction, self._left = watch, reduction, count
        self._tape: LossTape | None = None
        self._checked = False  # whether the last batch was

    def next(self, records: int) -> bool:
        """A batch comes, and what was held for the last one goes; whether this one is checked."""
        self.stop()
        if self._checked:
            return_freed_memory()
        self._checked = self._left > 0 and records > 1
        self._left -= self._checked
        return self._checked

    def begin(self, yielded: Any) -> None:
        """Write down what is computed from now on, from what the loader yielded."""
        self._tape = LossTape(self._watch, self._reduction, yielded)
        self._tape.__enter__()

    def stop(self) -> None:
        """Put the tape away."""
        tape, self._tape = self._tape, None
        self._watch.forget()
        if tape is not None:
            tape.finish()
            sweep()
