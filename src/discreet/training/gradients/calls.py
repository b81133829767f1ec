"""Which rule answers for which torch function: the table, and what each call must save.

A *plan* takes a ``Call`` and returns its uses of shared tensors: the tensor, its rule, the saved activations, and a
function that puts the output's gradient in the rule's form. Functions without a plan are answered by ``Recomputed``: the
function alone, once more, under ``vmap``. ``register`` adds plans of your own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from discreet.errors import extra
from discreet.training.gradients.convolution import ConvolutionWeight
from discreet.training.gradients.handlers import Bias, Normalised, Rows, Rule
from discreet.training.gradients.outer_products import Affine, LinearWeight, Outer

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn

__all__ = ["LAYERS", "PLANS", "Call", "Folded", "Layout", "Planned", "arguments", "register", "register_layer"]

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

    def steps(self, x: Tensor, records: int, trailing: int = 1) -> Tensor:
        """[records, everything else, *trailing dimensions]."""
        return self.apart(x).reshape(records, -1, *x.shape[x.dim() - trailing:])


@dataclass(slots=True)
class Planned:
    """One use of a shared tensor in a call."""

    target: Tensor
    rule: Rule
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


class Folded(Rule):
    """A rule for inputs that hold several entries a record, one record after another, in the first dimension."""

    def __init__(self, rule: Rule, fold: int) -> None:
        self.rule, self.fold, self.eager = rule, fold, rule.eager

    def prefers_instances(self, activations: Any, output_gradients: Tensor) -> bool:
        """As the rule."""
        return self.rule.prefers_instances(activations, output_gradients)

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """A record's entries add up."""
        return self.rule.instantiate(activations, output_gradients).unflatten(0, (-1, self.fold)).sum(1)

    def weighted_sum(self, activations: Any, output_gradients: Tensor, weights: Tensor) -> Tensor:
        """A record's weight is that of each of its entries."""
        return self.rule.weighted_sum(activations, output_gradients, weights.repeat_interleave(self.fold))


def _folded(rule: Rule, layout: Layout) -> Rule:
    return rule if layout.fold == 1 else Folded(rule, layout.fold)


Plan: TypeAlias = Callable[[Call], list[Planned] | None]
PLANS: dict[Callable[..., Any], Plan] = {}
LAYERS: dict[type, Mapping[str, Rule]] = {}
_SIGNATURES: dict[Callable[..., Any], Sequence[str]] = {}


def register(function: Callable[..., Any], parameters: Sequence[str] | None = None) -> Callable[[Plan], Plan]:
    """Decorate the plan of a torch function; ``parameters`` names its arguments where Python cannot find out.

    A plan that returns None declines, and the call is answered by ``vmap``.
    """
    names = list(inspect.signature(function).parameters) if parameters is None else list(parameters)

    def add(plan: Plan) -> Plan:
        PLANS[function], _SIGNATURES[function] = plan, names
        return plan

    return add


def register_layer(layer: type[nn.Module], rules: Mapping[str, Rule]) -> None:
    """Give a kind of module rules of its own, one for each parameter by name; for custom autograd functions, or for speed.

    Each rule gets the module's first input as activations and its output's gradient, records first.
    """
    missing = [name for name, rule in rules.items() if not isinstance(rule, Rule)]
    if missing:
        raise ValueError(f"rules[{missing[0]!r}] is a {type(rules[missing[0]]).__name__}, but must be a Rule.")
    LAYERS[layer] = dict(rules)


def arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """A call's arguments by name."""
    return dict(zip(_SIGNATURES[function], args, strict=False)) | kwargs


# --- linear ------------------------------------------------------------------------------------------------------


@register(F.linear, ("input", "weight", "bias"))
def _linear(call: Call) -> list[Planned] | None:
    x, weight, bias = (call.arguments.get(name) for name in ("input", "weight", "bias"))
    layout = call.layout(x)
    if layout is None or layout.dim == x.dim() - 1 or weight.dim() != 2:
        return None
    if bias is not None and bias.shape != weight.shape[:1]:  # spread over outputs or records
        return None
    planned = []
    if x.dim() == 2 and layout.fold == 1 and call.is_shared(weight):
        biased = call.is_shared(bias)
        return [Planned(weight, Affine(biased), x.detach(), layout.first, bias if biased else None)]

    def steps(g: Tensor) -> Tensor:
        return layout.steps(g, call.records)

    if call.is_shared(weight):
        planned.append(Planned(weight, LinearWeight(), steps(x.detach()), steps))
    if call.is_shared(bias):
        planned.append(Planned(bias, Bias(2), None, steps))
    return planned


class BilinearWeight(Outer):
    """The weight of ``bilinear``: output gradients times products of the two inputs."""

    def factors(self, activations: list[Tensor], output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """[B, T, m] and [B, T, n·k]."""
        one, two = activations
        return output_gradients, (one.unsqueeze(3) * two.unsqueeze(2)).flatten(2)


@register(F.bilinear, ("input1", "input2", "weight", "bias"))
def _bilinear(call: Call) -> list[Planned] | None:
    one, two, weight, bias = (call.arguments.get(name) for name in ("input1", "input2", "weight", "bias"))
    layout = call.layout(one)
    if layout is None or call.layout(two) != layout or layout.dim == one.dim() - 1:
        return None

    def steps(x: Tensor) -> Tensor:
        return layout.steps(x, call.records)

    uses = [Planned(weight, BilinearWeight(), [steps(one.detach()), steps(two.detach())], steps),
            Planned(bias, Bias(2), None, steps)]
    return [use for use in uses if call.is_shared(use.target)]


# --- convolutions ------------------------------------------------------------------------------------------------


def _tuple(value: Any, size: int) -> tuple[int, ...]:
    return (int(value),) * size if isinstance(value, int) else tuple(value) * (size if len(value) == 1 else 1)


def _symmetric(padding: Any, kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...] | None:
    """Padding as numbers; none where 'same' is not the same on both sides."""
    if padding == "valid":
        return (0,) * len(kernel)
    if padding != "same":
        return _tuple(padding, len(kernel))
    total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    return None if any(t % 2 for t in total) else tuple(t // 2 for t in total)


def _convolution(call: Call, *, transposed: bool) -> list[Planned] | None:
    given = call.arguments
    x, weight, bias = given["input"], given["weight"], given.get("bias")
    size, layout = weight.dim() - 2, call.layout(x)
    if layout is None or layout.dim != 0 or x.dim() != size + 2:
        return None
    stride, dilation = (_tuple(given.get(name, 1), size) for name in ("stride", "dilation"))
    padding = _symmetric(given.get("padding", 0), weight.shape[2:], dilation)
    if padding is None:
        return None
    planned = []
    if call.is_shared(weight):
        rule = ConvolutionWeight(weight, stride, padding, dilation, given.get("groups", 1), transposed=transposed,
                                 output_padding=_tuple(given.get("output_padding", 0), size))
        planned.append(Planned(weight, _folded(rule, layout), layout.first(x.detach()), layout.first))
    if call.is_shared(bias):
        planned.append(Planned(bias, _folded(Bias(1), layout), None, layout.first))
    return planned


_function: Any
for _function in (F.conv1d, F.conv2d, F.conv3d):
    register(_function, ("input", "weight", "bias", "stride", "padding", "dilation", "groups"))(
        lambda call: _convolution(call, transposed=False))
for _function in (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d):
    register(_function, ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"))(
        lambda call: _convolution(call, transposed=True))


# --- tables ------------------------------------------------------------------------------------------------------


def _refuse_table(call: Call, given: dict[str, Any]) -> None:
    if given.get("max_norm") is not None:
        raise ValueError(f"max_norm is set on the embedding at {call.location()}, but must be None: it rewrites rows of the "
                         "table according to which were looked up, without noise. Remove it.")
    if given.get("scale_grad_by_freq"):
        raise ValueError(f"scale_grad_by_freq is set on the embedding at {call.location()}, but must be False: it divides one "
                         "record's gradient by counts over the whole batch. Remove it.")


@register(F.embedding)
def _embedding(call: Call) -> list[Planned] | None:
    given = call.arguments
    index, weight, padding = given["input"], given["weight"], given.get("padding_idx")
    _refuse_table(call, given)
    layout = call.layout(index)
    if layout is None or not call.is_shared(weight):
        return None
    rows = layout.steps(index.unsqueeze(-1), call.records).squeeze(-1)
    records = torch.arange(call.records, device=rows.device).unsqueeze(1).expand_as(rows).reshape(-1)
    rows = rows.reshape(-1)
    padded = None if padding is None else (rows != padding % weight.shape[0]).to(weight.dtype)
    return [Planned(weight, Rows(weight.shape), (records, rows, padded, call.records),
                    lambda g: layout.steps(g, call.records).flatten(0, 1))]


@register(F.embedding_bag)
def _embedding_bag(call: Call) -> list[Planned] | None:
    given = call.arguments
    index, weight, offsets = given["input"], given["weight"], given.get("offsets")
    mode, padding = given.get("mode", "mean"), given.get("padding_idx")
    _refuse_table(call, given)
    if mode == "max" or not call.is_shared(weight) or call.is_shared(given.get("per_sample_weights")):
        return None
    if index.dim() == 2:
        if call.layout(index) != Layout(0):
            return None
        bags = torch.arange(index.shape[0], device=index.device).unsqueeze(1).expand_as(index).reshape(-1)
    else:
        ends = offsets[1:] if given.get("include_last_offset") else torch.cat([offsets[1:], offsets.new_tensor([len(index)])])
        if len(ends) != call.records:
            return None
        bags = torch.repeat_interleave(torch.arange(len(ends), device=index.device), ends - offsets[:len(ends)])
    rows = index.reshape(-1)
    kept = torch.ones(rows.shape, dtype=weight.dtype, device=rows.device)
    if padding is not None:
        kept = (rows != padding % weight.shape[0]).to(weight.dtype)
    coefficients = kept
    if given.get("per_sample_weights") is not None:
        coefficients = kept * given["per_sample_weights"].detach().reshape(-1)
    if mode == "mean":
        counts = kept.new_zeros(call.records).index_add_(0, bags, kept)
        coefficients = coefficients / counts.clamp(min=1)[bags]
    return [Planned(weight, Rows(weight.shape), (bags, rows, coefficients, call.records), lambda g: g[bags])]


# --- normalisations ----------------------------------------------------------------------------------------------


def _scale_and_shift(call: Call, normalise: View, kept: tuple[int, ...]) -> list[Planned] | None:
    x, weight, bias = call.arguments["input"], call.arguments.get("weight"), call.arguments.get("bias")
    layout = call.layout(x)
    if layout is None or layout.dim in {d % x.dim() for d in kept}:
        return None
    planned = []
    if call.is_shared(weight):
        rule = Normalised(lambda a: layout.first(normalise(a)), kept)
        planned.append(Planned(weight, _folded(rule, layout), x.detach(), layout.first))  # type: ignore[arg-type]
    if call.is_shared(bias):
        rule = Normalised(None, kept)
        planned.append(Planned(bias, _folded(rule, layout), None, layout.first))  # type: ignore[arg-type]
    return planned


@register(F.layer_norm)
def _layer_norm(call: Call) -> list[Planned] | None:
    shape, eps = call.arguments["normalized_shape"], call.arguments.get("eps", 1e-5)
    return _scale_and_shift(call, lambda x: F.layer_norm(x, shape, None, None, eps), tuple(range(-len(shape), 0)))


@register(F.rms_norm)
def _rms_norm(call: Call) -> list[Planned] | None:
    shape, eps = call.arguments["normalized_shape"], call.arguments.get("eps")
    return _scale_and_shift(call, lambda x: F.rms_norm(x, shape, None, eps), tuple(range(-len(shape), 0)))


@register(F.group_norm)
def _group_norm(call: Call) -> list[Planned] | None:
    groups, eps = call.arguments["num_groups"], call.arguments.get("eps", 1e-5)
    return _scale_and_shift(call, lambda x: F.group_norm(x, groups, None, None, eps), (1,))


@register(F.instance_norm)
def _instance_norm(call: Call) -> list[Planned] | None:
    given = call.arguments
    if given.get("running_mean") is not None:
        raise ValueError(f"track_running_stats is set on the instance norm at {call.location()}, but must be False: running "
                         "statistics are averages over records, kept without noise.")
    eps = given.get("eps", 1e-5)
    return _scale_and_shift(call, lambda x: F.instance_norm(x, eps=eps), (1,))


@register(F.batch_norm)
def _batch_norm(call: Call) -> list[Planned] | None:
    if call.arguments.get("training"):
        raise ValueError(f"batch_norm at {call.location()} mixes the records of a batch, so none has a gradient of its own. "
                         "Use training.replace_batch_norm(model), which puts GroupNorm in its place.")
    return None
