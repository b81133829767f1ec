"""What may be trained: the model and the optimiser, looked at before the first step; ``hooks`` looks again at each.

Whatever would move a parameter past the clipped sum is refused by the parameter's name: one that only the model or only
the optimiser knows, one that came or was unfrozen later, a gradient that no handler saw, a hook on a gradient, modules
that mix records, optimisers that look at a batch more than once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from discreet.errors import extra, whole

with extra("torch"):
    from torch import Tensor, jit, nn, optim
    from torch.optim import Optimizer

__all__ = [
    "describe_place",
    "held_by",
    "parameters",
    "refuse_modules",
    "refuse_optimizer",
    "refuse_plan",
    "replace_batch_norm",
]

Model = TypeVar("Model", bound="nn.Module")


def parameters(model: nn.Module, optimizer: Optimizer) -> dict[str, nn.Parameter]:
    """The trained parameters by name, which model and optimiser must agree about."""
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    held = {id(p) for _, _, p in held_by(optimizer)}
    for name, p in named.items():
        if id(p) not in held:
            raise ValueError(
                f"Parameter {name!r} requires a gradient but is not in the optimizer: it would be trained without "
                "privacy, or not at all. Add it, or freeze it with requires_grad_(False)."
            )
        if not p.is_floating_point():
            raise ValueError(
                f"Parameter {name!r} is of type {p.dtype}, but must be real: a record's gradient is clipped and "
                "noised as a real vector. Keep real and imaginary parts in a real parameter of shape [..., 2], and use "
                "torch.view_as_complex of it in forward."
            )
    known = {id(p) for p in named.values()}
    for number, place, other in held_by(optimizer):
        if other.requires_grad and id(other) not in known:
            raise ValueError(
                f"The {describe_place(number, place, other)} is not in the model: pass the module that owns it, or "
                "leave it out."
            )
    if not named:
        raise ValueError("The model has no parameter that requires a gradient.")
    return named


def held_by(optimizer: Optimizer) -> Iterator[tuple[int, int, Tensor]]:
    """What an optimiser moves, with the number of its group and its place there."""
    for number, group in enumerate(optimizer.param_groups):
        for place, p in enumerate(group["params"]):
            yield number, place, p


def describe_place(number: int, place: int, p: Tensor) -> str:
    """Such a parameter, in words."""
    return f"optimizer's parameter {place} of group {number}, of shape {tuple(p.shape)},"


def refuse_modules(model: nn.Module) -> None:
    """Refuse what mixes records or spreads them over devices, by the module's path."""
    for name, module in model.named_modules():
        what = f"Module {name or 'model'!r} is a {type(module).__name__}, which"
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise ValueError(
                f"{what} mixes the records of a batch, so no record has a gradient of its own. Before the "
                "optimizer is made: model = discreet.training.replace_batch_norm(model)"
            )
        if isinstance(module, jit.ScriptModule):
            raise ValueError(
                f"{what} runs outside Python, where no call of it can be watched. Pass the module it was made of."
            )
        if any(kind.__name__ == "FullyShardedDataParallel" for kind in type(module).__mro__):
            raise ValueError(
                f"{what} keeps its parameters in one flat vector, where none has a call of its own. Shard the model it "
                "was made of: torch.distributed.fsdp.fully_shard(model)"
            )
        if isinstance(module, nn.DataParallel):
            raise ValueError(
                f"{what} splits a batch among devices, and each part would be clipped and noised by itself. Pass "
                "its .module, in a process for each device."
            )
        if isinstance(module, nn.parallel.DistributedDataParallel):
            raise ValueError(
                f"{what} averages gradients by itself, inside the model. Put the whole model in one: "
                "DistributedDataParallel(model)"
            )


def refuse_optimizer(optimizer: Optimizer) -> None:
    """Refuse optimisers that are private already or that look at a batch more than once."""
    if type(optimizer).__module__.startswith("accelerate."):
        raise ValueError(
            "optimizer was prepared by accelerate, which decides itself when it steps: call make_private first, and "
            "prepare nothing of it: model, optimizer, loader = make_private(model, optimizer, loader, ...)"
        )
    if hasattr(optimizer, "privacy"):
        raise ValueError("optimizer is private already: make a new one for a new plan.")
    if isinstance(optimizer, optim.LBFGS):
        raise ValueError(
            "optimizer is LBFGS, but must use a batch once a step: a line search looks at it again and again. Use "
            "SGD, Adam or another first-order optimiser."
        )


def refuse_plan(optimizer: Optimizer, plan: Any) -> None:
    """Let an optimiser that asks for facts of the noise refuse a plan that has none."""
    check = getattr(optimizer, "check_plan", None)
    if check is not None:
        check(plan)


def replace_batch_norm(model: Model, groups: int = 32) -> Model:
    """The model with every BatchNorm replaced by a GroupNorm of at most ``groups`` groups, in place.

    >>> from torch import nn
    >>> replace_batch_norm(nn.Sequential(nn.Conv2d(3, 12, 3), nn.BatchNorm2d(12)), groups=8)[1].num_groups
    6
    """
    whole("groups", groups, low=1)
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.modules.batchnorm._BatchNorm):
                channels = child.num_features
                fitting = max(g for g in range(1, min(groups, channels) + 1) if channels % g == 0)
                norm = nn.GroupNorm(fitting, channels, eps=child.eps, affine=child.affine)
                setattr(module, name, norm if child.weight is None else norm.to(child.weight))
    return model
