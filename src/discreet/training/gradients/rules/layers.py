"""The call handlers of torch's own functions: linear, convolutions, tables, normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.rules.convolution import ConvolutionWeight
from discreet.training.gradients.rules.elementary import Bias, GroupScale, Normalised, Rows
from discreet.training.gradients.rules.handlers import Call, Handler, Layout, PendingUse, View, folded, register
from discreet.training.gradients.rules.outer_products import Affine, LinearWeight, Outer
from discreet.training.gradients.rules.recurrence import input_linear, recurrent_linear

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor

__all__ = ["BilinearWeight"]

# Products are given the conjugate of the data (``conj``), which is what gradients of complex numbers have; real data
# are their own, and nothing is copied.

# --- linear ------------------------------------------------------------------------------------------------------


@register(F.linear, ("input", "weight", "bias"))
def _linear(call: Call) -> list[PendingUse] | None:
    x, weight, bias = (call.arguments.get(name) for name in ("input", "weight", "bias"))
    layout = call.layout(x)
    if layout is None or layout.dim == x.dim() - 1 or weight.dim() != 2:
        return None
    if bias is not None and bias.shape != weight.shape[:1]:  # spread over outputs or records
        return None
    pending = []
    if x.dim() == 2 and layout.fold == 1 and call.is_shared(weight):
        biased = call.is_shared(bias)
        return [PendingUse(weight, Affine(biased), x.detach().conj(), layout.first, bias if biased else None)]

    def steps(g: Tensor) -> Tensor:
        return layout.steps(g, call.records)

    if call.is_shared(weight):
        pending.append(PendingUse(weight, LinearWeight(), steps(x.detach().conj()), steps))
    if call.is_shared(bias):
        pending.append(PendingUse(bias, Bias(2), None, steps))
    return pending


_function: Any
for _function in (input_linear, recurrent_linear):
    register(_function, ("input", "weight", "bias"))(_linear)


class BilinearWeight(Outer):
    """The weight of ``bilinear``: output gradients times products of the two inputs."""

    def factors(self, activations: list[Tensor], output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """[B, T, m] and [B, T, n·k]."""
        one, two = activations
        return output_gradients, (one.unsqueeze(3) * two.unsqueeze(2)).flatten(2)


@register(F.bilinear, ("input1", "input2", "weight", "bias"))
def _bilinear(call: Call) -> list[PendingUse] | None:
    one, two, weight, bias = (call.arguments.get(name) for name in ("input1", "input2", "weight", "bias"))
    layout = call.layout(one)
    if layout is None or call.layout(two) != layout or layout.dim == one.dim() - 1:
        return None

    def steps(x: Tensor) -> Tensor:
        return layout.steps(x, call.records)

    uses = [
        PendingUse(weight, BilinearWeight(), [steps(one.detach().conj()), steps(two.detach().conj())], steps),
        PendingUse(bias, Bias(2), None, steps),
    ]
    return [use for use in uses if call.is_shared(use.target)]


# --- convolutions ------------------------------------------------------------------------------------------------


def _tuple(value: Any, size: int) -> tuple[int, ...]:
    return tuple(value) * (size if len(value) == 1 else 1) if isinstance(value, Sequence) else (int(value),) * size


def _symmetric(padding: Any, kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...] | None:
    """Padding as numbers; none where 'same' is not the same on both sides."""
    if padding == "valid":
        return (0,) * len(kernel)
    if padding != "same":
        return _tuple(padding, len(kernel))
    total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    return None if any(t % 2 for t in total) else tuple(t // 2 for t in total)


def _convolution(call: Call, *, transposed: bool) -> list[PendingUse] | None:
    given = call.arguments
    x, weight, bias = given["input"], given["weight"], given.get("bias")
    size, layout = weight.dim() - 2, call.layout(x)
    if layout is None or layout.dim != 0 or x.dim() != size + 2:
        return None
    stride, dilation = (_tuple(given.get(name, 1), size) for name in ("stride", "dilation"))
    padding = _symmetric(given.get("padding", 0), weight.shape[2:], dilation)
    if padding is None:
        return None
    pending = []
    if call.is_shared(weight):
        handler = ConvolutionWeight(
            weight,
            stride,
            padding,
            dilation,
            given.get("groups", 1),
            transposed=transposed,
            output_padding=_tuple(given.get("output_padding", 0), size),
        )
        pending.append(PendingUse(weight, folded(handler, layout), layout.first(x.detach().conj()), layout.first))
    if call.is_shared(bias):
        pending.append(PendingUse(bias, folded(Bias(1), layout), None, layout.first))
    return pending


for _function in (F.conv1d, F.conv2d, F.conv3d):
    register(_function, ("input", "weight", "bias", "stride", "padding", "dilation", "groups"))(
        lambda call: _convolution(call, transposed=False)
    )
for _function in (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d):
    register(_function, ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"))(
        lambda call: _convolution(call, transposed=True)
    )


# --- tables ------------------------------------------------------------------------------------------------------


def _refuse_table(call: Call, given: dict[str, Any]) -> None:
    if given.get("max_norm") is not None:
        raise ValueError(
            f"max_norm is set on the embedding at {call.location()}, but must be None: it rewrites rows of the "
            "table according to which were looked up, without noise. Remove it."
        )
    if given.get("scale_grad_by_freq"):
        raise ValueError(
            f"scale_grad_by_freq is set on the embedding at {call.location()}, but must be False: it divides one "
            "record's gradient by counts over the whole batch. Remove it."
        )


@register(F.embedding)
def _embedding(call: Call) -> list[PendingUse] | None:
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
    return [
        PendingUse(
            weight,
            Rows(weight.shape),
            (records, rows, padded, call.records),
            lambda g: layout.steps(g, call.records).flatten(0, 1),
        )
    ]


@register(F.embedding_bag)
def _embedding_bag(call: Call) -> list[PendingUse] | None:
    given = call.arguments
    index, weight, offsets = given["input"], given["weight"], given.get("offsets")
    mode, padding = given.get("mode", "mean"), given.get("padding_idx")
    _refuse_table(call, given)
    if mode not in ("mean", "sum") or not call.is_shared(weight) or call.is_shared(given.get("per_sample_weights")):
        return None  # computed record by record
    # whose bag, and so which record's, each index is
    if index.dim() == 2:
        if call.layout(index) != Layout(0):
            return None
        bags = torch.arange(index.shape[0], device=index.device).unsqueeze(1).expand_as(index).reshape(-1)
    else:
        ends = (
            offsets[1:]
            if given.get("include_last_offset")
            else torch.cat([offsets[1:], offsets.new_tensor([len(index)])])
        )
        if len(ends) != call.records:
            return None
        bags = torch.repeat_interleave(torch.arange(len(ends), device=index.device), ends - offsets[: len(ends)])
    rows = index.reshape(-1)
    kept = torch.ones(rows.shape, dtype=weight.dtype, device=rows.device)
    if padding is not None:
        kept = (rows != padding % weight.shape[0]).to(weight.dtype)
    coefficients = kept
    if given.get("per_sample_weights") is not None:
        coefficients = kept * given["per_sample_weights"].detach().reshape(-1)
    if mode == "mean":  # of what is no padding; a bag of nothing is zero
        counts = kept.new_zeros(call.records).index_add_(0, bags, kept)
        coefficients = coefficients / counts.clamp(min=1)[bags]
    return [PendingUse(weight, Rows(weight.shape), (bags, rows, coefficients, call.records), lambda g: g[bags])]


# --- normalisations ----------------------------------------------------------------------------------------------


def _scale_and_shift(call: Call, normalise: View | Handler, kept: tuple[int, ...]) -> list[PendingUse] | None:
    """The uses of a scale and a shift of ``kept`` dimensions; of the scale by a handler, if there is one."""
    x, weight, bias = call.arguments["input"], call.arguments.get("weight"), call.arguments.get("bias")
    layout = call.layout(x)
    if layout is None or layout.dim in {d % x.dim() for d in kept}:
        return None
    if layout.dim != 0 and isinstance(normalise, Handler):
        return None
    pending = []
    if call.is_shared(weight) and isinstance(normalise, Handler):
        pending.append(PendingUse(weight, folded(normalise, layout), layout.first(x.detach()), layout.first))
    elif call.is_shared(weight) and not isinstance(normalise, Handler):
        view = normalise
        handler = Normalised(lambda a: layout.first(view(a)), kept)
        pending.append(PendingUse(weight, folded(handler, layout), x.detach(), layout.first))
    if call.is_shared(bias):
        handler = Normalised(None, kept)
        pending.append(PendingUse(bias, folded(handler, layout), None, layout.first))
    return pending


@register(F.layer_norm)
def _layer_norm(call: Call) -> list[PendingUse] | None:
    shape, eps = call.arguments["normalized_shape"], call.arguments.get("eps", 1e-5)
    return _scale_and_shift(call, lambda x: F.layer_norm(x, shape, None, None, eps), tuple(range(-len(shape), 0)))


@register(F.rms_norm)
def _rms_norm(call: Call) -> list[PendingUse] | None:
    shape, eps = call.arguments["normalized_shape"], call.arguments.get("eps")
    return _scale_and_shift(call, lambda x: F.rms_norm(x, shape, None, eps), tuple(range(-len(shape), 0)))


@register(F.group_norm)
def _group_norm(call: Call) -> list[PendingUse] | None:
    groups, eps = call.arguments["num_groups"], call.arguments.get("eps", 1e-5)
    return _scale_and_shift(call, GroupScale(groups, eps), (1,))


@register(F.instance_norm)
def _instance_norm(call: Call) -> list[PendingUse] | None:
    given = call.arguments
    if given.get("running_mean") is not None:
        raise ValueError(
            f"track_running_stats is set on the instance norm at {call.location()}, but must be False: running "
            "statistics are averages over records, kept without noise."
        )
    eps = given.get("eps", 1e-5)
    return _scale_and_shift(call, GroupScale(given["input"].shape[1], eps), (1,))


@register(F.batch_norm)
def _batch_norm(call: Call) -> list[PendingUse] | None:
    if call.arguments.get("training"):
        raise ValueError(
            f"batch_norm at {call.location()} mixes the records of a batch, so none has a gradient of its own. "
            "Use training.replace_batch_norm(model), which puts GroupNorm in its place."
        )
    return None
