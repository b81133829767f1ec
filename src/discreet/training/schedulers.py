"""Learning-rate schedulers follow private steps: while pieces of a batch come, they stand still.

How many pieces a batch has is private, so a learning rate that counts them would tell. A loop calls ``scheduler.step``
after ``optimizer.step``, which for a piece moves nothing; then neither does the scheduler.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from discreet.errors import extra

with extra("torch"):
    from torch.optim.lr_scheduler import LRScheduler

__all__ = ["follow_private_steps"]


def follow_private_steps() -> None:
    """Let every kind of scheduler ask its optimiser whether it moved; those of ordinary optimisers are as they were."""
    kinds: list[Any] = [LRScheduler]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if "step" in vars(kind) and not hasattr(kind.step, "follows_private_steps"):
            kind.step = _following(kind.step)


def _following(step: Any) -> Any:
    @wraps(step)
    def follow(self: Any, *args: Any, **kwargs: Any) -> Any:
        privacy = getattr(getattr(self, "optimizer", None), "privacy", None)
        return None if privacy is not None and privacy.between_pieces else step(self, *args, **kwargs)

    follow.follows_private_steps = True  # type: ignore[attr-defined]
    return follow
