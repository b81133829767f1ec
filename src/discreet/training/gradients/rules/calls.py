"""Calls of torch functions on shared tensors: where their records are, and who answers for them.

A *call handler* takes a ``Call`` and returns its uses of shared tensors: the tensor, its handler, the saved
activations, and a function that puts the output's gradient in the handler's form. Functions without one are answered by
``Recomputed``: the function alone, once more, under ``vmap``. Those of torch's layers are in ``layers``; ``register``
adds your own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from discreet.errors import extra
from discreet.training.gradients.cancellation import Measured, outward
from discreet.training.gradients.rules.handlers import Handler

with extra("torch"):
    import torch
    from torch import Tensor, nn

__all__ = [
    "CALL_HANDLERS",
    "LAYERS",
    "Call",
    "Folded",
    "Layout",
    "PendingUse",
    "View",
    "arguments",
    "folded",
    "register",
    "register_layer",
]

View: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the records of a tensor are: in dimension ``dim``, with ``fold`` entries each.

    The entries of a record follow one another; with ``interleaved`` the records do, entry by entry.
    """

    dim: int
    fold: int = 1
    interleaved: bool = False

    def apart(self, x: Tensor) -> Tensor:
        """[records, ...]: without the record's dimension, or with its entries there."""
        if self.fold == 1:
            return x if self.dim == 0 else x.movedim(self.dim, 0)
        if self.interleaved:
            return x.unflatten(self.dim, (self.fold, -1)).movedim(self.dim + 1, 0)
        return x.unflatten(self.dim, (-1, self.fold)).movedim(self.dim, 0)

    def first(self, x: Tensor) -> Tensor:
        """Records in the first dimension, the entries of each still folded into it."""
        if self.dim == 0 and not self.interleaved:
            return x
        x = self.apart(x)
        return x if self.fold == 1 else x.movedim(self.dim + 1, 1).flatten(0, 1)

    def filled(self, x: Tensor) -> Tensor:
        """As ``apart``; where rows are padded, with something that any function takes."""
        return self.apart(x)

    def at(self, dim: int) -> Layout | None:
        """The same in another dimension; none where that cannot be."""
        return self if dim == self.dim else Layout(dim, self.fold, self.interleaved)

    def steps(self, x: Tensor, records: int, trailing: int = 1) -> Tensor:
        """[records, everything else, *trailing dimensions]."""
        return self.apart(x).reshape(records, -1, *x.shape[x.dim() - trailing :])


@dataclass(slots=True)
class PendingUse:
    """One use of a shared tensor in a call."""

    target: Tensor
    handler: Handler
    activations: Any
    view: View
    bias: Tensor | None = None  # whose gradient is the output's own, measured together with the target's


@dataclass(slots=True)
class Call:
    """A call of a torch function on shared tensors and records."""

    function: Callable[..., Any]
    arguments: Any
    records: int
    shared: Container[int]
    layouts: dict[int, Layout]
    location: Callable[[], str]

    def is_shared(self, x: Any) -> bool:
        """Whether an argument is a parameter, or made of parameters alone."""
        return isinstance(x, Tensor) and id(x) in self.shared

    def layout(self, x: Any) -> Layout | None:
        """Where the records of an argument are; none if it has none."""
        return self.layouts.get(id(x))


class Folded(Handler):
    """A handler for inputs that hold several entries a record, one record after another, in the first dimension."""

    def __init__(self, handler: Handler, fold: int) -> None:
        self.handler, self.fold, self.eager = handler, fold, handler.eager

    def prefers_instances(self, activations: Any, output_gradients: Tensor) -> bool:
        """As the handler."""
        return self.handler.prefers_instances(activations, output_gradients)

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """A record's entries add up."""
        return self.handler.instantiate(activations, output_gradients).unflatten(0, (-1, self.fold)).sum(1)

    def measure(self, activations: Any, output_gradients: Tensor) -> Measured:
        """The terms are those of all entries."""
        squared, terms = self.handler.measure(activations, output_gradients)
        terms = (squared.sqrt() if terms is None else terms).view(-1, self.fold).sum(1)
        return outward(self.squared_norms(activations, output_gradients).sqrt(), terms), terms

    def weighted_sum(self, activations: Any, output_gradients: Tensor, weights: Tensor) -> Tensor:
        """A record's weight is that of each of its entries."""
        return self.handler.weighted_sum(activations, output_gradients, weights.repeat_interleave(self.fold))

    def select(self, activations: Any, output_gradients: Tensor, records: Tensor) -> tuple[Any, Tensor]:
        """All entries of these records."""
        entries = records[:, None] * self.fold + torch.arange(self.fold, device=records.device)
        return self.handler.select(activations, output_gradients, entries.flatten())

    def blank(self, activations: Any, output_gradients: Tensor, lost: Tensor) -> tuple[Any, Tensor]:
        """All entries of these records."""
        return self.handler.blank(activations, output_gradients, lost.repeat_interleave(self.fold))


def folded(handler: Handler, layout: Layout) -> Handler:
    """The handler for records of so many entries each."""
    return handler if layout.fold == 1 else Folded(handler, layout.fold)


CallHandler: TypeAlias = Callable[[Call], list[PendingUse] | None]
CALL_HANDLERS: dict[Callable[..., Any], CallHandler] = {}
LAYERS: dict[type, Mapping[str, Handler]] = {}
_SIGNATURES: dict[Callable[..., Any], Sequence[str]] = {}


def register(
    function: Callable[..., Any], parameters: Sequence[str] | None = None
) -> Callable[[CallHandler], CallHandler]:
    """Decorate the call handler of a torch function; ``parameters`` names its arguments where Python cannot find out.

    One that returns None declines, and the call is answered by ``vmap``.
    """
    names = list(inspect.signature(function).parameters) if parameters is None else list(parameters)

    def add(handle: CallHandler) -> CallHandler:
        CALL_HANDLERS[function], _SIGNATURES[function] = handle, names
        return handle

    return add


def register_layer(layer: type[nn.Module], handlers: Mapping[str, Handler]) -> None:
    """Give a kind of module handlers of its own, one for each parameter by name; for custom autograd functions, or for
    speed.

    Each handler gets the module's first input as activations and its output's gradient, records first.
    """
    missing = [name for name, handler in handlers.items() if not isinstance(handler, Handler)]
    if missing:
        raise ValueError(f"handlers[{missing[0]!r}] is a {type(handlers[missing[0]]).__name__}, but must be a Handler.")
    LAYERS[layer] = dict(handlers)


def arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """A call's arguments by name."""
    return dict(zip(_SIGNATURES[function], args, strict=False)) | kwargs
