r"""The recurrences of LSTM and GRU over a whole sequence, forward and back, in one node of the graph.

All gates' pre-activations are :math:`a_t = p_t + R h_{t-1}`, with :math:`p_t` the projected inputs. The loop over time
runs on plain tensors; on the way back it gives the gradients of all pre-activations, from which both weights' gradients
follow as those of one linear layer over the sequence. What does not depend on the recursion is computed for all steps
at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.errors import extra

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor
    from torch.overrides import handle_torch_function, has_torch_function

__all__ = ["GRU", "LSTM", "recurrent_linear"]


def recurrent_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``linear(input, weight, bias)`` on the hidden states before each step: a place in the graph for its gradient.

    Its values are in the recurrence already; nobody reads these, so they are not computed where autograd needs none.
    """
    given = tuple(x for x in (input, weight, bias) if x is not None)
    if has_torch_function(given):
        return handle_torch_function(recurrent_linear, given, input, weight, bias)  # type: ignore[no-any-return]
    if any(x.requires_grad for x in given):
        return F.linear(input, weight.to(input.dtype), None if bias is None else bias.to(input.dtype))
    return input.new_empty(*input.shape[:-1], weight.shape[0])


def _before(start: Tensor, steps: Tensor) -> Tensor:
    """The states before each step."""
    return torch.cat([start.unsqueeze(0), steps[:-1]])


class LSTM(torch.autograd.Function):
    """Hidden states [T, B, H] and the last cell, from projected inputs [T, B, 4H] in the order i, f, g, o."""

    states = 2

    @staticmethod
    def run(projected: Tensor, start: Sequence[Tensor], weight: Tensor, bias: Tensor | None) -> list[Tensor]:
        """Hidden states, cells, their tanh, and the gates, of every step."""
        (hidden, cell), turned = start, weight.t()
        size = hidden.shape[-1]
        gates = projected + bias if bias is not None else projected.clone()
        outputs, cells, bent = (projected.new_empty(*projected.shape[:2], size) for _ in range(3))
        for t, a in enumerate(gates.unbind(0)):
            a.addmm_(hidden, turned)
            a[:, : 2 * size].sigmoid_()
            a[:, 2 * size : 3 * size].tanh_()
            a[:, 3 * size :].sigmoid_()
            i, f, g, o = a.chunk(4, -1)
            cell = torch.mul(f, cell, out=cells[t]).addcmul_(i, g)
            hidden = torch.mul(o, torch.tanh(cell, out=bent[t]), out=outputs[t])
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
            (steps, last_hidden, last_cell), (i, f, g, o) = gradients, gates.chunk(4, -1)
            # what a gate's pre-activation gets of the cell's gradient, or of the hidden state's (o)
            local = torch.cat([g * i * (1 - i), _before(start, cells) * f * (1 - f), i * (1 - g * g)], -1)
            opened, through = bent * o * (1 - o), o * (1 - bent * bent)
            found, size = torch.empty_like(gates), bent.shape[-1]
            hidden, cell = last_hidden.clone(), last_cell.clone()
            for t in range(len(gates) - 1, -1, -1):
                hidden += steps[t]
                cell.addcmul_(hidden, through[t])
                own = found[t]
                three = own[:, : 3 * size].unflatten(-1, (3, size))
                torch.mul(local[t].unflatten(-1, (3, size)), cell.unsqueeze(1), out=three)
                torch.mul(opened[t], hidden, out=own[:, 3 * size :])
                cell *= f[t]
                hidden = own @ weight
            return found, found, None, None, hidden, cell


class GRU(torch.autograd.Function):
    """Hidden states [T, B, H] from projected inputs [T, B, 3H] in the order r, z, n."""

    states = 1

    @staticmethod
    def run(projected: Tensor, start: Sequence[Tensor], weight: Tensor, bias: Tensor | None) -> list[Tensor]:
        """Hidden states, gates, and what the hidden states gave to the last of them, of every step."""
        (hidden,), turned = start, weight.t()
        size = hidden.shape[-1]
        gates, given = projected.clone(), torch.empty_like(projected)
        outputs = projected.new_empty(*projected.shape[:2], size)
        for t, a in enumerate(gates.unbind(0)):
            if bias is None:
                torch.mm(hidden, turned, out=given[t])
            else:
                torch.addmm(bias, hidden, turned, out=given[t])
            a[:, : 2 * size].add_(given[t, :, : 2 * size]).sigmoid_()
            r, z, n = a.chunk(3, -1)
            n.addcmul_(r, given[t, :, 2 * size :]).tanh_()
            hidden = torch.lerp(n, hidden, z, out=outputs[t])
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
            (steps, hidden), (r, z, n) = gradients, gates.chunk(3, -1)
            size = n.shape[-1]
            bent, kept = (1 - z) * (1 - n * n), (_before(start, outputs) - n) * z * (1 - z)
            reset = given[..., 2 * size :] * r * (1 - r)
            inner, outer, hidden = torch.empty_like(gates), torch.empty_like(n), hidden.clone()
            for t in range(len(gates) - 1, -1, -1):
                hidden += steps[t]
                own, last = inner[t], torch.mul(hidden, bent[t], out=outer[t])
                torch.mul(last, reset[t], out=own[:, :size])
                torch.mul(hidden, kept[t], out=own[:, size : 2 * size])
                torch.mul(last, r[t], out=own[:, 2 * size :])
                hidden = torch.addmm(hidden * z[t], own, weight)
            return torch.cat([inner[..., : 2 * size], outer], -1), inner, None, None, hidden
