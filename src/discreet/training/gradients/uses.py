"""What the calls of a pass leave behind: for each use of a parameter, what was saved and what came back.

What comes back is handed over by a ``tap``, at a place in autograd's graph. It must be the gradient that comes from
outside the call, whatever follows: functions in place, hooks on the tensor, other outputs of the same call that are
computed from this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.rules.elementary import Bias, Rows
from discreet.training.gradients.rules.handlers import Handler, PendingUse, flattened, squares, weighted_instances
from discreet.training.gradients.rules.outer_products import PART, Affine, LinearWeight, Outer, product

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Use", "Uses", "at", "exactly", "tap"]

Receive = Callable[[Tensor], None]

_NOTHING = nullcontext()


@dataclass(slots=True)
class Use:
    """One use of a shared tensor, after its backward pass: what was saved and what came back, or the gradients
    formed."""

    target: Tensor
    handler: Handler
    activations: Any
    gradients: Tensor | None
    instances: Tensor | None = None
    bias: Tensor | None = None  # part of this use, under an ``Affine`` handler
    terms: Tensor | None = None  # how long they are that are added up for each record; none: one term, or not measured

    def squared_norms(self) -> Tensor:
        """The squared norm of each record's gradient; what it is the sum of is noted."""
        if self.instances is not None:
            return squares(flattened(self.instances))
        assert self.gradients is not None
        found, self.terms = self.handler.measure(self.activations, self.gradients)
        return found

    def note_terms(self, terms: Tensor | None) -> None:
        """How long the terms are that were measured for this use together with others."""
        self.terms = terms

    def drop(self) -> None:
        """Hold nothing any more: it was added up."""
        self.activations = self.gradients = self.instances = None

    def merge(self, formed: Tensor) -> None:
        """Add what another use of the same tensor has formed."""
        self.instances = formed if self.instances is None else self.instances + formed

    def formed(self) -> Tensor:
        """Each record's gradient, formed if it was not."""
        found = self.instances
        if found is None:
            assert self.gradients is not None
            found = self.handler.instantiate(self.activations, self.gradients)
        return found.reshape(found.shape[0], *self.target.shape)

    def weighted(self, weights: Tensor) -> Tensor:
        """The sum of the records' gradients times their weights."""
        if self.instances is not None:
            return weighted_instances(self.instances, weights)
        assert self.gradients is not None
        return self.handler.weighted_sum(self.activations, self.gradients, weights)

    def of(self, rows: Tensor) -> Use:
        """The same use by some of the records."""
        if self.instances is not None:
            return replace(self, instances=self.instances[rows])
        assert self.gradients is not None
        saved, back = self.handler.select(self.activations, self.gradients, rows)
        return replace(self, activations=saved, gradients=back, terms=None)

    def blank(self, lost: Tensor) -> None:
        """Zeros in place of what lost records brought: zero times not-a-number is not zero."""
        if self.instances is not None:
            self.instances = self.instances.masked_fill(lost.view(-1, *[1] * (self.instances.dim() - 1)), 0.0)
            return
        assert self.gradients is not None
        self.activations, self.gradients = self.handler.blank(self.activations, self.gradients, lost)

    def take(self, records: Tensor, weights: Tensor) -> Tensor | None:
        """The weighted sum of gradients that are formed one by one, of records which then have no part in the
        others' sum; none where there are no terms that could cancel."""
        if self.terms is None:
            return None
        found = torch.zeros(self.target.shape, dtype=weights.dtype, device=weights.device)
        for few in records.nonzero().flatten().split(max(1, PART // max(1, self.target.numel()))):
            found += weighted_instances(self.of(few).formed(), weights[few])
        self.blank(records)
        return found.view(-1)

    @property
    def in_rows(self) -> bool:
        """Whether ``of`` is cheap."""
        return self.instances is not None or isinstance(self.handler, (Affine, LinearWeight, Bias))

    def without_bias(self) -> Use:
        """Let go of the bias, which becomes a use of its own."""
        assert self.bias is not None
        bias, self.bias, self.handler = self.bias, None, Affine(biased=False)
        return Use(bias, Bias(1), None, None, self.gradients)

    def weigh(self, weights: Tensor, out: Tensor, bias: Tensor | None = None) -> None:
        """The same, written where it belongs; without a copy where the handler is one matrix product."""
        if self.instances is None and isinstance(self.handler, Outer) and out.dtype == weights.dtype:
            u, v = self.handler.weighted_factors(self.activations, self.gradients, weights)
            product(u, v, out.view(u.shape[-1], v.shape[-1]))
            if bias is not None and u is not self.gradients:  # they have the weights already
                torch.sum(u, 0, out=bias)
                return
        elif type(self.handler) is Rows and self.instances is None:
            self.add(weights, out.zero_())
        else:
            out.copy_(self.weighted(weights).reshape(-1))
        if bias is not None:
            assert self.gradients is not None
            bias.copy_(weights @ self.gradients)

    def add(self, weights: Tensor, out: Tensor) -> None:
        """The same, added to what is there."""
        if type(self.handler) is Rows and self.instances is None and out.dtype == weights.dtype:
            assert self.gradients is not None
            self.handler.add_weighted(self.activations, self.gradients, weights, out)
        else:
            out += self.weighted(weights).reshape(-1)


class Uses(list[Use]):
    """The uses of one batch, in the order in which the backward pass met them."""

    def __init__(self) -> None:
        super().__init__()
        self._formed: dict[int, Use] = {}
        self._summed: tuple[Tensor, Tensor] | None = None

    def clear(self) -> None:
        """Forget all of them."""
        super().clear()
        self._formed.clear()
        self._summed = None

    def add(self, pending: PendingUse, gradient: Tensor) -> None:
        """What came back to a pending use; where gradients are formed at once, uses of one tensor are added up."""
        dtype = torch.promote_types(pending.target.dtype, torch.float32)  # half is too coarse for norms
        handler, saved, of_complex = (
            pending.handler,
            pending.activations,
            gradient.is_complex() and not dtype.is_complex,
        )
        if not of_complex:
            saved, gradient = _cast(saved, dtype), gradient if gradient.dtype == dtype else gradient.to(dtype)
        if not of_complex and not handler.prefers_instances(saved, gradient):
            self.append(Use(pending.target, handler, saved, gradient, None, pending.bias))
            return
        with exactly():
            formed = self._sum(handler, gradient) if type(handler) is Bias else handler.instantiate(saved, gradient)
        if of_complex:  # a real number among complex ones: its gradient is the real part, of the products' sum
            formed = formed.real.to(dtype)
        earlier = self._formed.get(id(pending.target))
        if earlier is not None and earlier.instances is not None:
            earlier.merge(formed)
        else:
            use = self._formed[id(pending.target)] = Use(pending.target, handler, None, None, formed)
            self.append(use)

    def _sum(self, bias: Bias, gradient: Tensor) -> Tensor:
        """A bias's gradients; those of an LSTM's two biases are the same, and are added up once.

        The last ones are kept while a weight keeps what they are sums of, so that nothing else can be at its place.
        """
        if self._summed is not None and at(self._summed[0]) == at(gradient) and bias.channel == gradient.dim() - 1:
            return self._summed[1]
        formed = bias.instantiate(None, gradient)
        held = self[-1].gradients if self else None
        if held is not None and at(held) == at(gradient) and bias.channel == gradient.dim() - 1:
            self._summed = gradient, formed
        return formed


def at(x: Tensor) -> tuple[Any, ...]:
    """Where the numbers of a tensor are: those of two tensors that are held are the same if this is."""
    return x.data_ptr(), x.shape, x.stride(), x.dtype, x.device


def exactly() -> Any:
    """Without autocast: a norm in half precision is off by more than the clip norm is widened."""
    if not torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda"):
        return _NOTHING
    off = ExitStack()
    for device in ("cpu", "cuda"):
        off.enter_context(torch.autocast(device, enabled=False))
    return off


def _cast(saved: Any, dtype: torch.dtype) -> Any:
    if isinstance(saved, Tensor) and saved.is_floating_point() and saved.dtype != dtype:
        return saved.to(dtype)
    return [_cast(x, dtype) for x in saved] if isinstance(saved, list) else saved


def tap(output: Tensor, inputs: Sequence[Tensor], receive: Receive, anchor: Tensor, *, alone: bool = True) -> Tensor:
    """The output of a call on ``inputs``, which will hand its gradient over; ``alone`` says that it is the only one.

    Before the function itself, after every hook on the tensor: what these change counts.
    """
    if not output.requires_grad:
        if output._is_view():  # a view of a parameter must not be marked as changed
            output = output.clone()
        return GradientReceiver.apply(output, anchor, receive)
    if not alone:  # of a cell's two outputs one is made of the other, so its own place gets gradients of both
        output = output.clone()
    if not output._is_view():
        _hook(output, receive)
        return output
    # A function in place after this would make the view's place in the graph anew, and that of its base stays.
    base = output._base
    known = {id(x) for x in inputs} | {id(x._base) for x in inputs if x._is_view()}
    if base is None or id(base) in known or not (base.is_contiguous() and base.numel() == output.numel()):
        output = output.clone()
        _hook(output, receive)
        return output
    shape, stride, start = output.shape, output.stride(), output.storage_offset() - base.storage_offset()
    plain = output.is_contiguous()

    def of_view(gradient: Tensor) -> None:
        if plain:
            receive(gradient.reshape(shape))
            return
        gradient = gradient.contiguous()
        receive(gradient.as_strided(shape, stride, gradient.storage_offset() + start))

    _hook(base, of_view)
    return output


def _hook(x: Tensor, receive: Receive) -> None:
    place = x.output_nr
    x.grad_fn.register_prehook(lambda g: None if g[place] is None else receive(g[place]))  # type: ignore[union-attr]


class GradientReceiver(torch.autograd.Function):
    """Gives a tensor that nothing requires a gradient of a place in the graph.

    Marked as changed in place, so that the tensor itself goes on and in-place functions may follow.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, receive: Receive) -> Tensor:
        """The tensor itself."""
        ctx.mark_dirty(x)
        ctx.receive = receive
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[None, None, None]:
        """Hand the gradient over; it goes no further."""
        ctx.receive(gradients[0])
        return None, None, None
