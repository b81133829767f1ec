"""Recurrent networks, opened up: torch's fused kernels written out, so that every use of a weight is seen.

The input projection is one call for the whole sequence. So is the recurrent one of LSTM and GRU, whose recursion is one
node of the graph; that of other cells is a call a step, and uses of one weight over time are added up, cross terms and
all.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.rules.recurrence import GRU, LSTM, input_linear, recurrent_linear

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import _VF, Tensor

__all__ = ["OPENED"]


def _lstm_cell(x: Tensor, state: tuple[Tensor, ...], weights: list[Tensor]) -> tuple[Tensor, ...]:
    hidden, cell = state
    gates = x + F.linear(hidden, weights[0], weights[1])
    i, f, g, o = gates.chunk(4, dim=-1)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    hidden = torch.sigmoid(o) * torch.tanh(cell)
    return (F.linear(hidden, weights[2]) if len(weights) > 2 else hidden), cell


def _plain(squash: Callable[[Tensor], Tensor]) -> Callable[..., tuple[Tensor, ...]]:
    def cell(x: Tensor, state: tuple[Tensor, ...], weights: list[Tensor]) -> tuple[Tensor, ...]:
        return (squash(x + F.linear(state[0], weights[0], weights[1])),)

    return cell


def _open(cell: Any) -> Callable[..., tuple[Tensor, ...]]:
    def run(data: Tensor, *rest: Any) -> tuple[Tensor, ...]:
        if isinstance(rest[0], Tensor) and isinstance(rest[1], (Tensor, tuple, list)) and rest[0].dtype == torch.int64:
            raise ValueError(
                "A packed sequence was given to a recurrent module, but must be a padded tensor: packing orders "
                "records by length, and the records of a step are then no longer told apart. Use "
                "pad_sequence(..., batch_first=True) and ignore the padding in the loss."
            )
        states, flat, biases, layers, dropout, training, both, batch_first = rest
        own = _lstm_cell if cell is LSTM and states[0].shape[-1] != states[1].shape[-1] else cell  # projected
        states = tuple(states) if isinstance(states, (tuple, list)) else (states,)
        return _layers(own, data, states, list(flat), biases, layers, dropout if training else 0.0, both, batch_first)

    return run


def _layers(
    cell: Callable[..., tuple[Tensor, ...]],
    data: Tensor,
    states: tuple[Tensor, ...],
    flat: list[Tensor],
    biases: bool,
    layers: int,
    dropout: float,
    both: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """Torch's own order: states and weights by layer, then by direction; dropout between layers, not after the last."""
    x = data.transpose(0, 1) if batch_first else data
    directions = 2 if both else 1
    each = len(flat) // (layers * directions)
    last: list[tuple[Tensor, ...]] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            own = flat[place * each : (place + 1) * each]
            steps, state = _sequence(cell, x, tuple(s[place] for s in states), own, biases, backwards=direction == 1)
            outputs.append(steps)
            last.append(state)
        x = torch.cat(outputs, dim=-1) if both else outputs[0]
        if dropout and layer < layers - 1:
            x = F.dropout(x, dropout)
    final = [torch.stack(parts) for parts in zip(*last, strict=True)]
    return (x.transpose(0, 1) if batch_first else x, *final)


def _sequence(
    cell: Callable[..., tuple[Tensor, ...]],
    x: Tensor,
    state: tuple[Tensor, ...],
    own: list[Tensor],
    biases: bool,
    *,
    backwards: bool,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    # step by step in memory, as the recursion goes: then this is one product, and so are the gradients
    opened = isinstance(cell, FunctionType)  # by autograd's own functions, which may be differentiated twice
    projected = (F.linear if opened else input_linear)(x.contiguous(), own[0], own[2] if biases else None)
    if not opened:
        return _whole(cell, projected, state, own[1], own[3] if biases else None, backwards=backwards)
    weights = [own[1], own[3] if biases else None, *own[4 if biases else 2 :]]
    outputs: list[Tensor] = []
    steps = list(projected.unbind(0))
    for step in reversed(steps) if backwards else steps:
        state = cell(step, state, weights)
        outputs.append(state[0])
    return torch.stack(outputs[::-1] if backwards else outputs), state


def _whole(
    kind: Any, projected: Tensor, state: tuple[Tensor, ...], weight: Tensor, bias: Tensor | None, *, backwards: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The sequence of an LSTM or a GRU; of half precision in single.

    The projected inputs are ours alone, and no gradient needs their values: the gates are written over them.
    """
    dtype = torch.promote_types(projected.dtype, torch.float32)
    given, *start = (x.to(dtype) for x in (projected, *state))
    given = given.flip(0) if backwards else given
    with torch.no_grad(), torch._C.DisableTorchFunction():
        # data: autograd would make a written view's place in the graph anew, without who waits for its gradient
        recurrent, ours, state = weight.detach().to(dtype), given.data, tuple(x.detach() for x in start)
        run = kind.run(ours, state, recurrent, None if bias is None else bias.detach().to(dtype).contiguous())
        before = torch.cat([state[0].unsqueeze(0), run[0][:-1]])
    steps, *last = kind.apply(given, recurrent_linear(before, weight, bias), recurrent, run, *start)
    steps = (steps.flip(0) if backwards else steps).to(projected.dtype)
    return steps, tuple(x.to(projected.dtype) for x in last)


def _gates(x: Tensor, hidden: Tensor, weights: tuple[Any, ...], count: int) -> list[tuple[Tensor, Tensor]]:
    """The parts of one step's gates, of the input and of the hidden state; weights as torch's cells are given them."""
    projected, recurrent, *biases = weights
    one, two = biases or (None, None)
    return list(
        zip(
            F.linear(x, projected, one).chunk(count, -1), F.linear(hidden, recurrent, two).chunk(count, -1), strict=True
        )
    )


def _one_lstm(x: Tensor, state: tuple[Tensor, Tensor], *weights: Any) -> tuple[Tensor, Tensor]:
    i, f, g, o = (a + b for a, b in _gates(x, state[0], weights, 4))
    cell = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def _one_gru(x: Tensor, hidden: Tensor, *weights: Any) -> Tensor:
    r, z, n = _gates(x, hidden, weights, 3)
    new = torch.tanh(n[0] + torch.sigmoid(r[0] + r[1]) * n[1])
    return new + torch.sigmoid(z[0] + z[1]) * (hidden - new)


def _one_plain(squash: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def run(x: Tensor, hidden: Tensor, *weights: Any) -> Tensor:
        ((a, b),) = _gates(x, hidden, weights, 1)
        return squash(a + b)

    return run


OPENED: dict[Any, Callable[..., Any]] = {
    _VF.lstm: _open(LSTM),
    _VF.gru: _open(GRU),
    _VF.rnn_tanh: _open(_plain(torch.tanh)),
    _VF.rnn_relu: _open(_plain(torch.relu)),
    _VF.lstm_cell: _one_lstm,
    _VF.gru_cell: _one_gru,
    _VF.rnn_tanh_cell: _one_plain(torch.tanh),
    _VF.rnn_relu_cell: _one_plain(torch.relu),
}
"""The fused kernels, and what they do."""
