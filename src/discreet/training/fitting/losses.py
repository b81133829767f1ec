"""Losses for which an odd target has a meaning: its record contributes nothing.

Whether a target can be taken is a fact about one private record, so it must not stop a run that was paid for. A class
outside those of the model, or a target for which the loss fails, leaves its record without a gradient, as a gradient
that is not finite does. What is wrong with every target, its type or its shape, is public, and is found before the
charge.

Decision 127.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.errors import DiscreetError, extra

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor

__all__ = ["Criterion", "cross_entropy", "loss_of"]

Criterion = Callable[..., Tensor]


def cross_entropy(scores: Tensor, target: Tensor) -> Tensor:
    """The mean cross entropy of a batch, to which a target that is no class of the model adds nothing.

    >>> scores = torch.zeros(2, 4)
    >>> float(cross_entropy(scores, torch.tensor([1, 9]))) == float(cross_entropy(scores[:1], torch.tensor([1]))) / 2
    True
    """
    if target.is_floating_point():  # a probability for each class
        return F.cross_entropy(scores, target)
    within = (target >= 0) & (target < scores.shape[1])
    each = F.cross_entropy(scores, target.where(within, 0), reduction="none")
    return (each * within).mean()


def loss_of(criterion: Criterion, outputs: Any, target: Any) -> Tensor:
    """The loss of a batch; where it fails, that of the records whose own target it can take.

    The others have the gradient zero: their target is a zero, on which the loss is known to run, and their outputs are
    cut off.
    """
    try:
        return criterion(outputs, target)
    except DiscreetError:
        raise
    except Exception:
        if not (isinstance(outputs, Tensor) and isinstance(target, Tensor) and len(outputs) == len(target)):
            raise
        shown, zeros = outputs.detach(), torch.zeros_like(target)
        criterion(shown, zeros)  # what fails here too is not the targets' fault
        taken = torch.tensor([_takes(criterion, shown, zeros, target, i) for i in range(len(target))])
    return criterion(
        torch.where(_beside(taken, outputs), outputs, outputs.detach()),
        torch.where(_beside(taken, target), target, zeros),
    )


def _takes(criterion: Criterion, outputs: Tensor, zeros: Tensor, target: Tensor, i: int) -> bool:
    """Whether the loss can take the target of record i, in a batch of the same shape whose other targets are zero."""
    alone = zeros.clone()
    alone[i] = target[i]
    try:
        criterion(outputs, alone)
    except Exception:
        return False
    return True


def _beside(taken: Tensor, x: Tensor) -> Tensor:
    return taken.to(x.device).view(-1, *[1] * (x.dim() - 1))
