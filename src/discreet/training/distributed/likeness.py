"""Whether the ranks train the same model in the same way, in two numbers that they compare at every step.

A record that comes or goes moves those after it to other ranks. Where the models of the ranks differ, that changes all
their gradients, not one, and no noise is enough: weights that one rank alone has loaded, or a learning rate that every
rank finds for itself, would make the plan's guarantee void.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.training.distributed.ranks import Ranks, digest
from discreet.training.distributed.shards import is_sharded

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.optim import Optimizer

__all__ = ["likeness", "options"]

_NUMBERS = (bool, int, float, tuple, np.generic, Tensor)


def likeness(model: nn.Module, ranks: Ranks) -> float:
    """The norms of all parameters and buffers, added up; shards are parts of one model, and alike as they are."""
    if ranks.count == 1:
        return 0.0
    with torch.no_grad():
        held = [x.float() for x in [*model.parameters(), *model.buffers()] if x.numel() and not is_sharded(x)]
        return sum(float(norm) for norm in torch._foreach_norm(held)) if held else 0.0


def options(optimizer: Optimizer, ranks: Ranks) -> int:
    """The numbers that the optimiser goes by."""
    if ranks.count == 1:
        return 0
    groups: list[Any] = [{**group, "params": len(group["params"])} for group in optimizer.param_groups]
    return digest([sorted((k, _plain(v)) for k, v in g.items() if isinstance(v, _NUMBERS)) for g in groups])


def _plain(value: Any) -> Any:
    """A number of torch's or NumPy's as Python's, which alone are written alike on all machines."""
    return value.tolist() if isinstance(value, (np.generic, Tensor)) else value
