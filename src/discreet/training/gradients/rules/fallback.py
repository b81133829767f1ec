"""Calls without a handler: the call alone, once more, one record at a time under ``vmap``."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from discreet.errors import extra
from discreet.training.errors import MixedRecords
from discreet.training.gradients.rules.broadcasting import broadcast_use
from discreet.training.gradients.rules.handlers import Handler, Layout, PendingUse
from discreet.training.gradients.trace.trees import differentiable, tensors

with extra("torch"):
    import torch
    from torch import Tensor
    from torch.utils import _pytree as pytree

__all__ = ["SPREAD", "Broadcast", "Recomputed", "recomputed", "spread"]

_LOG = logging.getLogger("discreet.training")

SPREAD = {
    torch.Tensor.expand,
    torch.Tensor.expand_as,
    torch.Tensor.broadcast_to,
    torch.broadcast_to,
    torch.Tensor.repeat,
}


class Recomputed(Handler):
    """Gradients of one call by calling it again for each record. Exact for any function that treats records apart."""

    eager = True

    def __init__(self, run: Callable[..., Tensor], shared: tuple[Tensor, ...], wanted: int) -> None:
        self.run, self.shared, self.wanted = run, shared, wanted

    def _pull(self, gradient: Tensor, *parts: Tensor) -> Tensor:
        others = list(self.shared)

        def of_one(tensor: Tensor) -> Tensor:
            others[self.wanted] = tensor
            return self.run(others, [part.unsqueeze(0) for part in parts])

        back: Any = torch.func.vjp(of_one, self.shared[self.wanted])[1]
        return back(gradient.unsqueeze(0))[0]

    def instantiate(self, activations: list[Tensor], output_gradients: Tensor) -> Tensor:
        """Under ``vmap``; functions it does not know, in a loop."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # vmap warns where it would loop itself, more slowly
                return torch.func.vmap(self._pull, randomness="different")(output_gradients, *activations)
        except (RuntimeError, UserWarning):
            rows = zip(output_gradients, *activations, strict=True)
            return torch.stack([self._pull(g, *parts) for g, *parts in rows])


class Broadcast(Handler):
    """A call on shared tensors alone whose output has records (an unusual ``expand``): each record's part, pulled
    back."""

    eager = True

    def __init__(self, output: Tensor, target: Tensor, apart: Callable[[Tensor], Tensor]) -> None:
        self.output, self.target, self.apart = output, target, apart

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """One backward pass a record."""
        found = []
        for i, gradient in enumerate(output_gradients):
            alone = torch.zeros_like(self.output)
            self.apart(alone)[i] = gradient
            found.append(torch.autograd.grad(self.output, self.target, alone, retain_graph=True)[0])
        return widened(torch.stack(found))


def spread(
    func: Any, args: Any, kwargs: Any, output: Tensor, layout: Layout, shared: Mapping[int, Tensor]
) -> list[PendingUse]:
    """The uses of shared tensors that a call repeats for every record."""
    targets = [x for x in tensors((args, kwargs)) if id(x) in shared]
    sizes = zip(reversed(targets[0].shape), reversed(output.shape), strict=False)
    if func in SPREAD and all(own in (1, size) for own, size in sizes):
        use = broadcast_use(targets[0], layout, output.dim())
        if use is not None:
            return [use]
    with torch.enable_grad():
        graph = func(*args, **kwargs)
    return [PendingUse(x, Broadcast(graph, x, layout.apart), None, layout.apart) for x in targets]


def recomputed(
    func: Any,
    args: Any,
    kwargs: Any,
    layouts: Mapping[int, Layout],
    where: list[Layout | None],
    outputs: list[Any],
    shared: Mapping[int, Tensor],
    location: str,
) -> list[list[PendingUse] | None]:
    """For each output of a call, its uses of shared tensors; none for outputs that carry no gradient."""
    _tell(getattr(func, "__name__", str(func)), location)
    leaves, tree = pytree.tree_flatten((args, kwargs))
    leaves = [
        widened(x) if isinstance(x, Tensor) and id(x) not in shared and id(x) not in layouts else x for x in leaves
    ]
    ours = {id(x): widened(x.detach()) for x in leaves if isinstance(x, Tensor) and id(x) in shared}
    batched = {id(x): x.detach() for x in leaves if isinstance(x, Tensor) and id(x) in layouts}
    ids, kept = [id(x) for x in leaves], [x.detach() if isinstance(x, Tensor) else x for x in leaves]
    parts = [layouts[key].filled(x) for key, x in batched.items()]

    # the same call once more, as a function of the parameters and of one record's rows: what vmap takes
    def again(number: int, layout: Layout) -> Callable[..., Tensor]:
        def run(values: list[Tensor], rows: list[Tensor]) -> Tensor:
            at = dict(zip(ours, values, strict=True))
            at |= {key: _together(row, layouts[key]) for key, row in zip(batched, rows, strict=True)}
            given = pytree.tree_unflatten([at.get(key, x) for key, x in zip(ids, kept, strict=True)], tree)
            return _alone(tensors(func(*given[0], **given[1]))[number], layout)

        return run

    found: list[list[PendingUse] | None] = []
    for number, (output, layout) in enumerate(zip(outputs, where, strict=True)):
        if not differentiable(output):
            found.append(None)
            continue
        if layout is None:
            raise MixedRecords(
                f"{getattr(func, '__name__', func)} at {location} gives an output without records from inputs "
                "with records: it mixes them."
            )
        found.append(
            [
                PendingUse(shared[key], Recomputed(again(number, layout), tuple(ours.values()), i), parts, layout.apart)
                for i, key in enumerate(ours)
            ]
        )
    return found


@cache
def _tell(function: str, location: str) -> None:
    """Say once that a call takes the slow way."""
    _LOG.warning(
        "%s at %s has no rule for a parameter in it: its gradients are computed record by record under vmap, which is "
        "exact but slower. discreet.training.register gives it a rule.",
        function,
        location,
    )


def widened(x: Tensor) -> Tensor:
    """Half precision as single: too coarse for sums and norms."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _together(row: Tensor, layout: Layout) -> Tensor:
    return row.movedim(0, layout.dim) if layout.fold == 1 else row.squeeze(0)


def _alone(output: Tensor, layout: Layout) -> Tensor:
    return output.movedim(layout.dim, 0) if layout.fold == 1 else output.unsqueeze(0)
