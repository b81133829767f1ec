"""Learning-rate schedulers follow private steps: while pieces of a batch come, they stand still.

A loop calls ``scheduler.step`` after ``optimizer.step``, which for a piece moves nothing; then neither does the
scheduler. Only schedulers that hold a private optimiser are touched, each by itself: torch's classes are as they were.

Decision 414.
"""

from __future__ import annotations

import gc
from functools import cache
from typing import Any

from discreet.errors import extra

with extra("torch"):
    from torch.optim.lr_scheduler import LRScheduler

__all__ = ["follow_private_steps"]


def follow_private_steps() -> None:
    """Let the schedulers of private optimisers ask whether their optimiser moved.

    A scheduler knows its optimiser, and not the other way round, so they are looked for among all objects: some tens
    of milliseconds, for a loop over pieces once.
    """
    # of the type, not of the object: isinstance asks proxies, which may answer with anything
    for each in [x for x in gc.get_objects() if issubclass(type(x), LRScheduler)]:
        private = getattr(getattr(each, "optimizer", None), "privacy", None) is not None
        if private and not hasattr(type(each), "follows_private_steps"):
            kind: Any = type(each)
            each.__class__ = _following(kind)


@cache
def _following(kind: Any) -> Any:
    """The kind of scheduler that stands still between pieces, and is otherwise this kind."""

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        return None if self.optimizer.privacy.between_pieces else kind.step(self, *args, **kwargs)

    def reduce(self: Any, protocol: Any) -> Any:
        return kind.__new__, (kind,), self.__dict__  # a copy is of the kind that pickle can find

    own = {"step": step, "__reduce_ex__": reduce, "follows_private_steps": True}
    return type(kind.__name__, (kind,), own | {"__module__": kind.__module__, "__qualname__": kind.__qualname__})
