"""Models under ``fully_shard`` (FSDP2), whose parameters are in shards between the calls of their modules.

A call sees a parameter whole, so a rank knows all of each of its records' gradients and norms. What the calls see are
other objects than what the optimiser has: ``seen`` finds them. Where a batch is looked at closely (it is verified, or a
module is tried out), records are run alone, more often on one rank than on another; ``fully_shard`` would wait for
the others each time. So the ranks agree before every batch whether one of them will look closely, and for such a
batch the model stays whole on all of them.

Decision 431.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.errors import extra
from discreet.training.distributed.ranks import Ranks, answered
from discreet.training.gradients.rules.handlers import LAYERS
from discreet.training.gradients.trace.trees import mapped

if TYPE_CHECKING:
    from discreet.training.gradients import ClippedSum

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.optim import Optimizer

__all__ = ["Shards", "as_one_process", "as_shards", "is_sharded"]

KEPT = {
    "post_forward_mesh_info": None,
    "reshard_after_backward": False,
    "reduce_grads": False,
    "all_reduce_grads": False,
}


def is_sharded(tensor: Any) -> bool:
    """Whether a tensor is a ``DTensor``; asked by name, because most runs never load them."""
    return type(tensor).__name__ == "DTensor" or hasattr(tensor, "placements")


def _is_fsdp(module: nn.Module) -> bool:
    return any(kind.__name__ == "FSDPModule" for kind in type(module).__mro__)


class Shards:
    """The sharded modules of a model; none, where ``fully_shard`` was not called."""

    def __init__(self, model: nn.Module, ranks: Ranks) -> None:
        self._model, self._ranks = model, ranks
        self._modules: list[Any] = [module for module in model.modules() if _is_fsdp(module)]
        self._groups = [group for module in self._modules for group in _groups(module)]
        self._held: list[dict[str, Any]] | None = None  # what the groups were told to do, while the model stays whole
        self._unknown: Callable[[], bool] = lambda: False
        self._refuse()
        for module in self._modules:
            for hooks in (module._forward_pre_hooks, module._forward_hooks):
                for key, hook in hooks.items():
                    if getattr(hook, "__module__", "").startswith("torch.distributed.fsdp"):
                        hooks[key] = partial(_unseen, hook)

    def __bool__(self) -> bool:
        return bool(self._modules)

    def seen(self, trained: Mapping[str, nn.Parameter]) -> dict[str, nn.Parameter]:
        """Parameters as the calls of the model see them, by the same names."""
        if self:
            self._gather()
        parameters = dict(self._model.named_parameters())
        self._scatter()
        for name, p in parameters.items():
            if is_sharded(p):
                raise ValueError(
                    f"Parameter {name!r} is a DTensor also where its module is called (tensor parallelism?), so no "
                    "rank has all of a record's gradient. Use fully_shard alone."
                )
        return {name: parameters[name] for name in trained}

    def attach(self, clipped: ClippedSum) -> Callable[[bool], None] | None:
        """What is to be told of every batch of a run before it comes, and whether it will be verified; none where
        nothing is sharded."""
        if self:
            watch, tried = clipped.watch, [0]

            def unknown() -> bool:
                before, tried[0] = tried[0], watch.tried
                return watch.doubtful or clipped.derives or before != watch.tried or not watch.tried

            self._unknown = unknown
            return self.begin
        return None

    def begin(self, verified: bool) -> None:
        """A batch comes: whole, if one of the ranks looks at it closely."""
        self.end()
        whole = self._ranks.largest(int(self._unknown() or verified))[0]
        self._scatter()
        if whole:
            self._gather()
            self._held = [{name: getattr(group, name) for name in KEPT} for group in self._groups]
            for group in self._groups:
                _set(group, KEPT)

    def end(self) -> None:
        """The batch had its step."""
        if self._held is not None:
            for group, held in zip(self._groups, self._held, strict=True):
                _set(group, held)
            self._held = None
            self._scatter()

    def _gather(self) -> None:
        with answered():
            for module in self._modules:
                module.unshard()

    def _scatter(self) -> None:
        for module in self._modules:
            module.reshard()

    def _refuse(self) -> None:
        for name, p in self._model.named_parameters():
            mesh: Any = getattr(p, "device_mesh", None)
            if mesh is not None and (mesh.ndim != 1 or mesh.size() != self._ranks.count):
                raise ValueError(
                    f"Parameter {name!r} is in a mesh of shape {tuple(mesh.shape)}, but must be in shards over all "
                    f"{self._ranks.count} ranks: records are shared out among them. Call fully_shard(model) without "
                    "mesh=, or with one of a single dimension."
                )
        for name, module in self._model.named_modules():
            if not _is_fsdp(module):
                continue
            what = f"Module {name or 'model'!r} under fully_shard"
            if any(kind in LAYERS for kind in type(module).__mro__):
                raise ValueError(f"{what} has a handler of its own (register_layer): call fully_shard on its parent.")
            for group in _groups(module):
                if group.mp_policy.param_dtype is not None or type(group.offload_policy).__name__ != "OffloadPolicy":
                    raise ValueError(
                        f"{what} has a mixed-precision or an offload policy, under which private gradients were never "
                        "tried. Leave it out; for bfloat16 take torch.autocast."
                    )


def _groups(module: Any) -> list[Any]:
    state = module._get_fsdp_state()
    groups = getattr(state, "_fsdp_param_groups", None)
    return [g for g in ([state._fsdp_param_group] if groups is None else groups) if g is not None]


def _set(group: Any, settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        setattr(group, name, value)


def _unseen(hook: Callable[..., Any], *args: Any) -> Any:
    """What ``fully_shard`` does between calls, out of sight of who watches torch functions."""
    with torch._C.DisableTorchFunction():
        return hook(*args)


# --- checkpoints -----------------------------------------------------------------------------------------------------


def as_one_process(state: Any) -> Any:
    """A state dict as one process would have it: shards are gathered, on all ranks."""
    return mapped(lambda x: x.full_tensor() if is_sharded(x) else x, state)  # type: ignore[attr-defined,no-any-return]


def as_shards(state: Mapping[str, Any], model: nn.Module, optimizer: Optimizer) -> tuple[Any, Any]:
    """Such a state of model and optimiser, in the shards of these."""
    now = model.state_dict()
    if not any(is_sharded(x) for x in now.values()):
        return state["model"], state["optimizer"]
    held = [p for group in optimizer.param_groups for p in group["params"]]
    given = state["optimizer"]
    parts = {i: {key: _cut(x, held[i]) for key, x in part.items()} for i, part in given["state"].items()}
    return {name: _cut(x, now.get(name)) for name, x in state["model"].items()}, {**given, "state": parts}


def _cut(x: Any, like: Any) -> Any:
    if not is_sharded(like) or not isinstance(x, Tensor) or x.shape != like.shape:
        return x
    from torch.distributed.tensor import distribute_tensor

    # a copy: a view would keep all of it in memory
    return distribute_tensor(x, like.device_mesh, like.placements, src_data_rank=None).clone()
