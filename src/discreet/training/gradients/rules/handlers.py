r"""The words of all rules: a call that used a parameter, and the handler that knows its per-record gradients.

A *handler* knows one shared tensor (a weight, a bias) of one call. Given the activations it saved on the way forward
and the gradients that reached the call's output, both with the record as first dimension, it gives

``squared_norms``
    the squared norm of each record's gradient, without forming the gradients where that is cheaper (ghost clipping);
``weighted_sum``
    :math:`\sum_i w_i G_i`, by one contraction of the size of an ordinary weight gradient;
``instantiate``
    the gradients :math:`G_i` themselves.

A *call handler* takes a ``Call`` and returns its uses of shared tensors: the tensor, its handler, the saved
activations, and a function that puts the output's gradient in the handler's form. Functions without one are answered by
``Recomputed``: the function alone, once more, under ``vmap``. Those of torch's layers are in ``layers``; ``register``
adds your own.

Terms of one record may cancel: a row of a table that is looked up twice with gradients :math:`G` and :math:`-G`, steps
of a sequence, windows of a convolution. The norm may be zero, so that clipping keeps all of it, while a float sum over
records loses everything below the last place of :math:`G`, which is what other records added. Two guards:

* a norm far below the length of its terms is rounded outward by what rounding may have hidden (``outward``);
* a record whose terms weigh more than ``LIGHT`` clip norms in the sum is not added up together with others: its own
  gradient is formed first, from itself alone, and that is at most a clip norm long (``contraction``).

So what one record takes from the others by rounding is at most ``LIGHT`` units in the last place of the clip norm for
each number that is added.

Decision 410.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from discreet.errors import extra
from discreet.training.gradients.trace.trees import mapped

with extra("torch"):
    import torch
    from torch import Tensor, nn

__all__ = [
    "CALL_HANDLERS",
    "KEPT",
    "LAYERS",
    "LIGHT",
    "Call",
    "Folded",
    "Handler",
    "Layout",
    "Measured",
    "PendingUse",
    "View",
    "arguments",
    "flattened",
    "folded",
    "outward",
    "register",
    "register_layer",
    "squares",
    "weighted_instances",
]

KEPT = 1 << 22  # numbers of instantiated gradients of one tensor that may be kept
LIGHT = 2.0**7
"""Clip norms. Terms of an honest record of T steps are about √T times as long as their sum, so few are formed alone."""

Measured: TypeAlias = tuple[Tensor, Tensor | None]
"""Each record's squared norm, and the length of its terms added up; none where a record is one term."""


def outward(norms: Tensor, terms: Tensor) -> Tensor:
    """Squared norms; far below its terms, a norm has what rounding may have added or hidden, too."""
    hidden = norms * LIGHT < terms
    # where, not times: what is not hidden may have endless terms
    return (norms + torch.where(hidden, 4 * torch.finfo(norms.dtype).eps * terms, 0)).square()


class Handler:
    """The gradients of one shared tensor in one call. Subclasses say at least how to ``instantiate`` them."""

    eager = False  # whether gradients are small and should be formed as soon as the output's gradient is there

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """The gradient of every record, [records, *shape of the shared tensor]."""
        raise NotImplementedError

    def prefers_instances(self, activations: Any, output_gradients: Tensor) -> bool:
        """Whether forming the gradients is cheaper, in time and memory, than measuring them without."""
        return self.eager

    def squared_norms(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """The squared norm of each record's gradient, [records]."""
        return self.instantiate(activations, output_gradients).flatten(1).square().sum(1)

    def measure(self, activations: Any, output_gradients: Tensor) -> Measured:
        """Squared norms, and how long the terms are that ``weighted_sum`` adds up for a record: where it adds several
        that may cancel, they must be told (``outward``)."""
        return self.squared_norms(activations, output_gradients), None

    def weighted_sum(self, activations: Any, output_gradients: Tensor, weights: Tensor) -> Tensor:
        """The sum of the records' gradients, each times its weight, in the shape of the shared tensor."""
        return weighted_instances(self.instantiate(activations, output_gradients), weights)

    def select(self, activations: Any, output_gradients: Tensor, records: Tensor) -> tuple[Any, Tensor]:
        """Activations and gradients of some of the records, by their numbers."""
        return mapped(lambda x: x[records], activations), output_gradients[records]

    def blank(self, activations: Any, output_gradients: Tensor, lost: Tensor) -> tuple[Any, Tensor]:
        """Zeros in place of what some records brought, in every tensor: zero times not-a-number is not zero."""

        def without(x: Tensor) -> Tensor:
            return x.masked_fill(lost.view(-1, *[1] * (x.dim() - 1)), 0) if x.dim() and len(x) == len(lost) else x

        return mapped(without, activations), without(output_gradients)


def flattened(instances: Tensor) -> Tensor:
    """Gradients as rows, in the order in which they lie in memory, so that nothing is copied."""
    if instances.dim() < 3:
        return instances if instances.dim() == 2 else instances[:, None]  # of a single number
    return instances.permute(0, *_memory_order(instances)).flatten(1)


def weighted_instances(instances: Tensor, weights: Tensor) -> Tensor:
    """The sum over records of gradients times weights."""
    if instances.dim() < 3:
        return weights @ instances
    order = _memory_order(instances)
    total = (weights @ flattened(instances)).view([instances.shape[d] for d in order])
    return total.permute([order.index(d) for d in range(1, instances.dim())])


def _memory_order(instances: Tensor) -> list[int]:
    return sorted(range(1, instances.dim()), key=lambda d: -instances.stride()[d])


def squares(x: Tensor) -> Tensor:
    """Squared lengths along the last dimension, by the way that is fastest for its size."""
    if x.shape[-1] <= 16:
        return x.square() @ _ones(x.shape[-1], x.dtype, x.device)
    return torch.linalg.vector_norm(x, dim=-1).square_()


@cache
def _ones(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.ones(size, dtype=dtype, device=device)


# --- calls ---------------------------------------------------------------------------------------------------------

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
