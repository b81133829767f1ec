"""Ways to write a model that are ordinary and were refused once: each has the gradients of a loop over records."""

from __future__ import annotations

import gc

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from discreet.training import MixedRecords, PrivateTrainingError
from discreet.training.gradients.clipping import Clipping
from tests.training.loops import private
from tests.training.oracle import agree, ours

B, T, D = 5, 6, 8


class Idiom(nn.Module):
    """Parameters for everything below, and one forward pass over sequences [B, T, D]."""

    def __init__(self, forward):
        super().__init__()
        torch.manual_seed(0)
        self.run, self.linear, self.out = forward, nn.Linear(D, D), nn.Linear(D, 3)
        self.token, self.table = nn.Parameter(torch.randn(D)), nn.Parameter(torch.randn(T, D))
        self.heads, self.kernel = nn.Parameter(torch.randn(D, 2, 4)), nn.Parameter(torch.randn(D, T))
        self.spectrum = nn.Parameter(torch.randn(D, D, 3, 2))
        self.decay, self.phase = nn.Parameter(torch.rand(D, 4)), nn.Parameter(torch.randn(D, 4))
        self.mix = nn.Parameter(torch.randn(D, 4, 2))
        self.lstm, self.gru, self.rnn = nn.LSTMCell(D, D), nn.GRUCell(D, D), nn.RNNCell(D, D, nonlinearity="relu")
        self.bare = nn.LSTMCell(D, D, bias=False)

    def forward(self, x):
        return self.out(self.run(self, x))


def cells(m, x):
    h = c = torch.zeros(len(x), D, dtype=x.dtype)
    g, r, b = h, h, (h, h)
    for t in range(3):
        (h, c), g, r, b = m.lstm(x[:, t], (h, c)), m.gru(x[:, t], g), m.rnn(x[:, t], r), m.bare(x[:, t], b)
    return h + g + r + b[0] * c


def one_token(m, x):
    y = x.new_zeros(len(x), T + 1, D)
    y[:, 0] = m.token
    y[:, 1:] = m.linear(x)
    return torch.tanh(y).mean(1)


def masked_tokens(m, x):
    """Wav2Vec2's masking of what it hears."""
    y = m.linear(x)
    y[x[..., 0] > 0] = m.token.to(y.dtype)
    return torch.tanh(y).mean(1)


def a_place_each(m, x):
    y = m.linear(x) + 1
    y[torch.arange(len(x)), x[:, :, 0].argmax(1)] = m.token[None]
    return torch.tanh(y * m.token).mean(1)


def part_of_a_table(m, x):
    """A constant that parameters are written into, of no record."""
    mask = torch.zeros(T, D, dtype=x.dtype)
    mask[1:3] = m.token
    mask[4] = 0.5
    mask[:, 0] += m.table[:, 0]
    return torch.tanh(x * mask).mean(1)


def pruned(m, x):
    """A copy of a weight, some of it set to zero."""
    weight = m.linear.weight.clone()
    weight[weight > 0.1] = 0.0
    weight[0] = m.token
    return F.linear(x, weight).tanh().mean(1)


def copied(m, x):
    y = torch.empty(len(x), T, D, dtype=x.dtype)
    y.copy_(m.table)
    return torch.tanh(y + m.linear(x)).mean(1)


def in_place(m, x):
    """After products whose result is a view."""
    y = F.relu_(m.linear(m.linear(x) + 1))
    z = torch.einsum("bld,dnh->bnlh", y, m.heads)
    z.masked_fill_(z > 1, 0.0)
    z *= 0.5
    w = torch.tensordot(y, m.heads, dims=([2], [0]))
    w[..., 0] += 1
    return z.transpose(1, 2).flatten(2).mean(1) + w.tanh_().flatten(2).mean(1)


def fft_convolution(m, x):
    """As S4 and Hyena do it: both spectra, as long as twice the sequence."""
    u = m.linear(x).mT
    y = torch.fft.irfft(torch.fft.rfft(u, n=2 * T) * torch.fft.rfft(m.kernel, n=2 * T), n=2 * T)[..., :T]
    return y.tanh().mean(2)


def fourier_operator(m, x):
    """A weight of the lowest frequencies, in an output that is otherwise zero."""
    f = torch.fft.rfft(m.linear(x).mT)
    y = torch.zeros_like(f)
    y[..., :3] = torch.einsum("bix,iox->box", f[..., :3], torch.view_as_complex(m.spectrum))
    return torch.fft.irfft(y, n=T).tanh().mean(2)


def diagonal_state_space(m, x):
    """S4D: a kernel of complex exponentials."""
    rate = torch.complex(-m.decay.exp(), m.phase)
    powers = torch.exp(rate.unsqueeze(-1) * torch.arange(T))
    kernel = 2 * torch.einsum("hn,hnl->hl", torch.view_as_complex(m.mix), powers).real
    y = torch.fft.irfft(torch.fft.rfft(x.mT, n=2 * T) * torch.fft.rfft(kernel, n=2 * T), n=2 * T)
    return y[..., :T].mean(2)


def real_filters(m, x):
    """Real numbers that multiply and shift complex ones."""
    f = torch.fft.fft(m.linear(x), dim=1)
    return torch.fft.ifft(f * m.table + m.token, dim=1).abs().mean(1)


def complex_products(m, x):
    turn = torch.polar(m.table[:D, :D].exp(), m.table) @ torch.view_as_complex(
        m.heads.view(D, 4, 2)[:, :1].contiguous()
    )
    y = torch.complex(x, x.flip(1)) @ torch.view_as_complex(m.mix.view(D, 4, 2))
    return (y.real * y.imag).flatten(1)[:, :D] + turn.abs().mean()


def of_other_kinds(m, x):
    return (x.double() * m.token.type(torch.float64)).to(x.dtype).mean(1) + x.mean(1) * len(m.token.type())


def mapped_over_records(m, x):
    return torch.vmap(lambda r: torch.tanh(m.linear(r) @ m.heads.flatten(1) + m.table).mean(0))(x)


def sparse_table(m, x):
    return F.embedding((x[..., 0] > 0).long(), m.table, sparse=True).mean(1)


IDIOMS = [
    cells,
    one_token,
    masked_tokens,
    a_place_each,
    part_of_a_table,
    pruned,
    copied,
    in_place,
    fft_convolution,
    fourier_operator,
    diagonal_state_space,
    real_filters,
    complex_products,
    of_other_kinds,
    mapped_over_records,
    sparse_table,
]


def losses(model, x):
    out = model(x)
    return (out * torch.sin(out + 0.3)).sum()


@pytest.mark.parametrize("idiom", IDIOMS, ids=lambda idiom: idiom.__name__)
def test_an_idiom_has_the_gradients_of_a_loop(idiom):
    torch.manual_seed(1)
    agree(Idiom(idiom), (torch.randn(B, T, D),), losses)


@pytest.mark.parametrize("idiom", IDIOMS, ids=lambda idiom: idiom.__name__)
def test_an_idiom_is_admitted_by_verification(idiom):
    """Some of its batches are run record by record, without the engine."""
    records = torch.utils.data.TensorDataset(torch.randn(24, T, D), torch.randint(0, 3, (24,)))
    model, optimizer, loader = private(Idiom(idiom), records, batch=8, epochs=1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def test_steps_of_a_mapped_model_leave_no_tensors_behind():
    """``torch.vmap`` makes a function of every call anew, which holds the records: whoever remembers it, keeps them."""
    records = torch.utils.data.TensorDataset(torch.randn(24, T, D), torch.randint(0, 3, (24,)))
    model, optimizer, loader = private(Idiom(mapped_over_records), records, batch=8, epochs=3)
    alive = []
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        gc.collect()
        alive.append(sum(issubclass(type(x), torch.Tensor) for x in gc.get_objects()))
    assert alive[1] == alive[2]


def other_values(m, x):
    """A value for each place that an index picks."""
    y = m.linear(x)
    y[:, torch.tensor([1, 2])] = m.table[:2]
    return y.mean(1)


def into_a_weight(m, x):
    weight = m.linear.weight.clone()
    weight.mul_(m.linear(x).mean((0, 1)))
    return F.linear(x, weight).mean(1)


def in_place_under_vmap(m, x):
    def one(r):
        r = r.clone()
        r += m.table
        return r.mean(0)

    return torch.vmap(one)(x)


def vmap_in_a_vmap(m, x):
    return torch.vmap(torch.vmap(lambda r: torch.tanh(r * m.token)))(x).mean(1)


@pytest.mark.parametrize(
    ("idiom", "error", "words"),
    [
        (other_values, PrivateTrainingError, r"torch\.where\(mask, value, x\)"),
        (into_a_weight, MixedRecords, "mul_ at the model|mul at the model"),
        (in_place_under_vmap, PrivateTrainingError, r"x = x \+ p in place of"),
        (vmap_in_a_vmap, PrivateTrainingError, "for the whole batch, without the transform"),
    ],
)
def test_what_has_no_gradient_of_its_own_is_refused_with_what_to_write(idiom, error, words):
    with pytest.raises(error, match=words):
        ours(Idiom(idiom), (torch.randn(B, T, D),), losses, Clipping(), 1.0)


SCRIPT = """
import torch
import torch.nn.functional as F
from torch import nn
from tests.training.loops import private

seen = [0]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(4, 2), nn.Buffer(torch.ones(4))

    def forward(self, inputs):
        {more}
        return self.layer(inputs * self.scale.data)


model, optimizer, loader = private(Net())
for data, target in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(data), target).backward()
    optimizer.step()
"""


def test_a_script_may_call_its_batch_like_an_attribute_that_forward_names():
    """``.data`` in forward is no global that the model keeps; one that it writes is still found."""
    exec(compile(SCRIPT.format(more=""), "script", "exec"), {"__name__": "script"})
    with pytest.raises(PrivateTrainingError, match=r"global script\.seen"):
        exec(compile(SCRIPT.format(more="seen[0] = inputs.sum().item()"), "script", "exec"), {"__name__": "script"})
