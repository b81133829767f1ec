r"""The recurrences of LSTM and GRU over a whole sequence, forward and back, in one node of the graph.

All gates' pre-activations are :math:`a_t = p_t + R h_{t-1}`, with :math:`p_t` the projected inputs. The loop over time
runs on plain tensors; on the way back it gives the gradients of all pre-activations, from which both weights' gradients
follow as those of one linear layer over the sequence. What does not depend on the recursion is computed for all steps
at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.rules.outer_products import rows_product
from discreet.training.gradients.rules.recurrence_kernels import gru_back, gru_step, lstm_back, lstm_step

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor
    from torch.overrides import handle_torch_function, has_torch_function

__all__ = ["GRU", "LSTM", "input_linear", "recurrent_linear"]


def input_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``linear`` on the inputs of a whole sequence, whose products are made where they are quickest."""
    given = tuple(x for x in (input, weight, bias) if x is not None)
    if has_torch_function(given):
        return handle_torch_function(input_linear, given, input, weight, bias)  # type: ignore[no-any-return]
    if any(x.requires_grad for x in given[1:]) or torch.is_autocast_enabled(input.device.type):
        return F.linear(input, weight, bias)
    rows: Tensor = _Projection.apply(input.flatten(0, -2), weight, bias)
    return rows.view(*input.shape[:-1], len(weight))


class _Projection(torch.autograd.Function):
    """A linear layer whose weights get no gradient from autograd."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """All steps in one product."""
        ctx.save_for_backward(weight)
        return rows_product(input, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """The input's gradient alone."""
        return rows_product(gradients[0], ctx.saved_tensors[0].t()), None, None


def recurrent_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``linear(input, weight, bias)`` on the hidden states before each step: a place in the graph for its gradient.

    Its values are in the recurrence already; nobody reads these, so they are not computed where autograd needs none.
    """
    given = tuple(x for x in (input, weight, bias) if x is not None)
    if has_torch_function(given):
        return handle_torch_function(recurrent_linear, given, input, weight, bias)  # type: ignore[no-any-return]
    if any(x.requires_grad for x in given):
        return F.linear(input, weight.to(input.dtype), None if bias is None else bias.to(input.dtype))
    shape = (*input.shape[:-1], weight.shape[0])  # of one number, which stands for all of them: no memory is taken
    return torch.empty_strided(shape, (0,) * len(shape), dtype=input.dtype, device=input.device)


# gradient times s(1 - s), or 1 - t², from the function's value, in one pass
_sigmoid_back, _tanh_back = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward


def _before(start: Tensor, steps: Tensor) -> Tensor:
    """The states before each step."""
    return torch.cat([start.unsqueeze(0), steps[:-1]])


def _steps(*parts: Tensor, back: bool = False) -> Iterable[tuple[Tensor, ...]]:
    """Step by step, the views of all tensors [T, ...]: made at once, because a slice takes as long as a product."""
    found = list(zip(*(part.unbind(0) for part in parts), strict=True))
    return reversed(found) if back else found


def compiled(gates: Tensor) -> bool:
    """Whether an LSTM's gates are computed by a compiled loop."""
    return gates.dtype == torch.float32 and gates.device.type == "cpu" and gates.is_contiguous() and gates.numel() > 0


def _run_lstm(
    gates: Tensor, state: Sequence[Tensor], weight: Tensor, bias: Tensor | None, written: tuple[Tensor, Tensor, Tensor]
) -> None:
    """As ``LSTM.run``, a product and a compiled loop a step, which adds the bias."""
    arrays, (hidden, cell) = [x.numpy() for x in (gates, *written)], state
    # a copy: memory that numpy has looked at cannot be given back, as fully_shard does with a gathered parameter's
    past, more = cell.contiguous().numpy(), (gates.new_zeros(gates.shape[2]) if bias is None else bias.clone()).numpy()
    for t, h in enumerate(written[2].unbind(0)):
        lstm_step(t, arrays[0], rows_product(hidden, weight).numpy(), more, past, *arrays[1:])
        hidden, past = h, arrays[1][t]


def _lstm_back(
    gates: Tensor, start: Tensor, cells: Tensor, bent: Tensor, weight: Tensor, gradients: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """As ``LSTM.backward``: gradients of the pre-activations, and of the states at the start."""
    hidden, cell = (x.clone(memory_format=torch.contiguous_format) for x in gradients[1:])
    steps, found = gradients[0].contiguous(), torch.empty_like(gates)
    a, b, s, c, f = [x.numpy() for x in (gates, bent, steps, cell, found)]
    past, own, turned = [start.detach().contiguous().numpy(), *cells.numpy()], found.unbind(0), weight.t()
    for t in range(len(gates) - 1, -1, -1):
        lstm_back(t, a, past[t], b, s, hidden.numpy(), c, f)
        hidden = rows_product(own[t], turned)
    return found, hidden, cell


class LSTM(torch.autograd.Function):
    """Hidden states [T, B, H] and the last cell, from projected inputs [T, B, 4H] in the order i, f, g, o."""

    states = 2

    @staticmethod
    def run(projected: Tensor, start: Sequence[Tensor], weight: Tensor, bias: Tensor | None) -> list[Tensor]:
        """Hidden states, cells, their tanh, and the gates, of every step; the gates are where ``projected`` was."""
        (hidden, cell), turned, gates = start, weight.t(), projected
        size = hidden.shape[-1]
        outputs, cells, bent = (projected.new_empty(*projected.shape[:2], size) for _ in range(3))
        if compiled(gates):
            _run_lstm(gates, start, weight, bias, (cells, bent, outputs))
            return [outputs, cells, bent, gates]
        if bias is not None:
            gates += bias
        parts = *gates.chunk(4, -1), gates, gates[..., : 2 * size], outputs, cells, bent
        for i, f, g, o, a, both, h, c, b in _steps(*parts):
            a.addmm_(hidden, turned)
            both.sigmoid_()
            g.tanh_()
            o.sigmoid_()
            cell = torch.mul(f, cell, out=c).addcmul_(i, g)
            hidden = torch.mul(o, torch.tanh(c, out=b), out=h)
        return [outputs, cells, bent, gates]

    @staticmethod
    def forward(
        ctx: Any, projected: Tensor, recurrent: Tensor, weight: Tensor, run: list[Tensor], *start: Tensor
    ) -> tuple[Tensor, ...]:
        """What was run, with a place in the graph."""
        outputs, cells, bent, gates = run
        ctx.save_for_backward(weight, gates, bent, cells, start[1])
        return outputs, outputs[-1].clone(), cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """Back through time."""
        with torch._C.DisableTorchFunction():
            weight, gates, bent, cells, start = ctx.saved_tensors
            if compiled(gates):
                found, hidden, cell = _lstm_back(gates, start, cells, bent, weight, gradients)
                return found, found, None, None, hidden, cell
            (steps, last_hidden, last_cell), (i, f, g, o) = gradients, gates.chunk(4, -1)
            # what a gate's pre-activation gets of the cell's gradient, or of the hidden state's (o)
            local = gates.new_empty(*bent.shape[:2], 3, bent.shape[-1])
            _sigmoid_back.grad_input(g, i, grad_input=local[:, :, 0])
            _sigmoid_back.grad_input(_before(start, cells), f, grad_input=local[:, :, 1])
            _tanh_back.grad_input(i, g, grad_input=local[:, :, 2])
            opened, through = _sigmoid_back(bent, o), _tanh_back(o, bent)
            found = torch.empty_like(gates)
            three, last = found.unflatten(-1, (4, -1))[:, :, :3], found.chunk(4, -1)[3]
            hidden, cell = last_hidden.clone(), last_cell.clone()
            parts = steps, through, local, three, opened, last, f, found
            for step, into_cell, of_cell, own, of_hidden, own_last, kept, all_own in _steps(*parts, back=True):
                hidden += step
                cell.addcmul_(hidden, into_cell)
                torch.mul(of_cell, cell.unsqueeze(1), out=own)
                torch.mul(of_hidden, hidden, out=own_last)
                cell *= kept
                hidden = torch.mm(all_own, weight)
            return found, found, None, None, hidden, cell


def _run_gru(
    gates: Tensor, given: Tensor, hidden: Tensor, turned: Tensor, bias: Tensor | None, outputs: Tensor
) -> None:
    """As ``GRU.run``, a product and a compiled loop a step."""
    arrays = [x.numpy() for x in (gates, given, outputs)]
    for t, (into, h) in enumerate(zip(given.unbind(0), outputs.unbind(0), strict=True)):
        if bias is None:
            torch.mm(hidden, turned, out=into)
        else:
            torch.addmm(bias, hidden, turned, out=into)
        gru_step(t, arrays[0], arrays[1], hidden.detach().numpy(), arrays[2])
        hidden = h


def _gru_back(
    gates: Tensor, given: Tensor, start: Tensor, outputs: Tensor, weight: Tensor, gradients: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """As ``GRU.backward``: gradients of the inputs' and the hidden state's parts, and of the state at the start."""
    steps, hidden = gradients[0].contiguous(), gradients[1].clone(memory_format=torch.contiguous_format)
    inner, outer = torch.empty_like(gates), torch.empty_like(gates)
    past = [start.detach().contiguous().numpy(), *outputs.detach().numpy()]
    arrays, own, last = [x.numpy() for x in (gates, given, steps, inner, outer)], inner.unbind(0), hidden.numpy()
    for t in range(len(gates) - 1, -1, -1):
        gru_back(t, arrays[0], arrays[1], past[t], arrays[2], last, arrays[3], arrays[4])
        hidden.addmm_(own[t], weight)
    return outer, inner, hidden


class GRU(torch.autograd.Function):
    """Hidden states [T, B, H] from projected inputs [T, B, 3H] in the order r, z, n."""

    states = 1

    @staticmethod
    def run(projected: Tensor, start: Sequence[Tensor], weight: Tensor, bias: Tensor | None) -> list[Tensor]:
        """Hidden states, gates, and what the hidden states gave to the last of them, of every step; the gates are where
        ``projected`` was."""
        (hidden,), turned, gates = start, weight.t(), projected
        size, given = hidden.shape[-1], torch.empty_like(projected)
        outputs = projected.new_empty(*projected.shape[:2], size)
        if compiled(gates):
            _run_gru(gates, given, hidden.contiguous(), turned, bias, outputs)
            return [outputs, gates, given]
        both, given_both, given_last = gates[..., : 2 * size], given[..., : 2 * size], given[..., 2 * size :]
        parts = *gates.chunk(3, -1), both, given, given_both, given_last, outputs
        for r, z, n, two, into, into_two, into_last, h in _steps(*parts):
            if bias is None:
                torch.mm(hidden, turned, out=into)
            else:
                torch.addmm(bias, hidden, turned, out=into)
            two.add_(into_two).sigmoid_()
            n.addcmul_(r, into_last).tanh_()
            hidden = torch.lerp(n, hidden, z, out=h)
        return [outputs, gates, given]

    @staticmethod
    def forward(
        ctx: Any, projected: Tensor, recurrent: Tensor, weight: Tensor, run: list[Tensor], *start: Tensor
    ) -> tuple[Tensor, ...]:
        """What was run, with a place in the graph."""
        outputs, gates, given = run
        ctx.save_for_backward(weight, gates, given, outputs, start[0])
        return outputs, outputs[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """Back through time; the last gate's recurrent part was multiplied by r on the way."""
        with torch._C.DisableTorchFunction():
            weight, gates, given, outputs, start = ctx.saved_tensors
            if compiled(gates):
                outer, inner, last = _gru_back(gates, given, start, outputs, weight, gradients)
                return outer, inner, None, None, last
            (steps, hidden), (r, z, n) = gradients, gates.chunk(3, -1)
            size = n.shape[-1]
            bent, kept = _tanh_back(1 - z, n), _sigmoid_back(_before(start, outputs) - n, z)
            reset = _sigmoid_back(given[..., 2 * size :], r)
            inner, outer, hidden = torch.empty_like(gates), torch.empty_like(n), hidden.clone()
            parts = steps, bent, reset, kept, r, z, outer, inner, *inner.chunk(3, -1)
            for step, b, into_r, into_z, of_r, of_z, last, own, own_r, own_z, own_n in _steps(*parts, back=True):
                hidden += step
                torch.mul(hidden, b, out=last)
                torch.mul(last, into_r, out=own_r)
                torch.mul(hidden, into_z, out=own_z)
                torch.mul(last, of_r, out=own_n)
                hidden = torch.addmm(hidden * of_z, own, weight)
            return torch.cat([inner[..., : 2 * size], outer], -1), inner, None, None, hidden
