"""``DistributedDataParallel`` around a private model, put there before ``make_private`` or after.

It averages gradients as a backward pass makes them; those of a private step are made later, in ``step``, and summed
there. So its own averaging is turned off, as its ``no_sync`` does, for good. What it was asked to do with gradients on
the way (hooks, another precision) would not happen, and is refused.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import extra
from discreet.training.distributed.ranks import Ranks
from discreet.training.errors import PrivateTrainingError

with extra("torch"):
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

__all__ = ["admit_wrapper", "unwrap"]


def unwrap(model: nn.Module, ranks: Ranks) -> nn.Module:
    """The model inside ``DistributedDataParallel``, if it is one that can be admitted; or the model itself."""
    if not isinstance(model, DistributedDataParallel):
        return model
    _refuse_wrapper(model, ranks)
    return model.module  # type: ignore[no-any-return]


def admit_wrapper(wrapper: Any, ranks: Ranks) -> None:
    """Turn off what ``DistributedDataParallel`` does with gradients, or refuse it; at every call of a private model."""
    _refuse_wrapper(wrapper, ranks)
    wrapper.require_backward_grad_sync = False
    wrapper.find_unused_parameters = wrapper.static_graph = False


def _refuse_wrapper(wrapper: Any, ranks: Ranks) -> None:
    if wrapper.process_group.size() != ranks.count:
        raise PrivateTrainingError(
            f"The model is in a DistributedDataParallel of {wrapper.process_group.size()} processes, but make_private "
            f"found {ranks.count}: batches are shared out and noise is drawn for those. Call init_process_group before "
            "make_private, and give DistributedDataParallel no process_group of its own."
        )
    if wrapper.mixed_precision is not None or getattr(wrapper, "_comm_hooks", None):
        raise PrivateTrainingError(
            "The model is in a DistributedDataParallel with mixed_precision or a communication hook, which would never "
            "see the gradients: those of a private step are summed in step. Leave them out; for bfloat16 take "
            "torch.autocast."
        )
