"""Every kind of layer: the clipped sum equals a loop over records."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from discreet.training.clipping import Clipping
from tests.training.oracle import agree

B = 5


def square_loss(model, *inputs):
    """A sum of per-record losses that is curved, so that every output gradient differs."""
    out = model(*inputs)
    out = out[0] if isinstance(out, tuple) else out
    return (out * torch.sin(out + 0.3)).sum()


def ints(*shape, high=7):
    return torch.randint(0, high, shape)


class Bare(nn.Module):
    """Position table, class token, scale: parameters of no layer."""

    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Parameter(torch.randn(1, 1, 4)), nn.Parameter(torch.randn(4, 4))
        self.scale, self.head = nn.Parameter(torch.randn(4)), nn.Linear(4, 3)

    def forward(self, x):
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.position
        return self.head(x * self.scale)


class Positions(nn.Module):
    """A table of positions looked up without a batch dimension, as many positions as records."""

    def __init__(self, length=B):
        super().__init__()
        self.word, self.position, self.out = nn.Embedding(7, 4), nn.Embedding(length, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.out(torch.tanh(self.word(x) + self.position(torch.arange(x.shape[1]))))


class Tied(nn.Module):
    """A table that is also the output layer."""

    def __init__(self, words=7):
        super().__init__()
        self.word, self.mix = nn.Embedding(words, 4), nn.Linear(4, 4)
        self.out = nn.Linear(4, words, bias=False)
        self.out.weight = self.word.weight

    def forward(self, x):
        return self.out(torch.tanh(self.mix(self.word(x))))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.conv = nn.Linear(4, 4), nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, x):
        x = self.layer(torch.tanh(self.layer(x)))
        return self.conv(F.relu(self.conv(x.transpose(1, 2)))).sum(2) + F.linear(x, self.layer.weight).mean(1)


class TimeFirst(nn.Module):
    """batch_first=False inside: records in the second dimension."""

    def __init__(self):
        super().__init__()
        self.a, self.norm = nn.Linear(4, 6), nn.LayerNorm(6)
        self.attention = nn.MultiheadAttention(6, 2)

    def forward(self, x):
        x = self.norm(self.a(x.transpose(0, 1)))
        return self.attention(x, x, x, need_weights=False)[0].transpose(0, 1)


class Flattened(nn.Module):
    """Frames folded into the batch."""

    def __init__(self):
        super().__init__()
        self.a, self.conv, self.norm = nn.Linear(9, 9), nn.Conv2d(1, 2, 2), nn.GroupNorm(1, 2)

    def forward(self, x):
        b, t, n = x.shape
        x = self.a(x.reshape(b * t, n)).view(b * t, 1, 3, 3)
        return self.norm(F.relu(self.conv(x))).view(b, -1)


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.shift = nn.Linear(4, 6), nn.Linear(6, 3), nn.Parameter(torch.randn(3))

    def forward(self, x):
        x = self.b(F.relu(self.a(x), inplace=True))
        x += self.shift
        x.sub_(self.shift * 3)
        return F.leaky_relu_(x)


class Cross(nn.Module):
    """Attention over something else, with masks, extra keys and separate widths."""

    def __init__(self, **options):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True, **options)

    def forward(self, x, y):
        return self.attention(x, y, y)[0]


class Shapely(nn.Module):
    """Products, slices and views of bare parameters."""

    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(6, 4)), nn.Parameter(torch.randn(2, 8))

    def forward(self, x):
        y = x @ self.w.t() + torch.einsum("bti,oi->bto", x, self.w) + F.linear(x, self.w * self.b.view(4, 4)[:, :1].mean())
        return y[:, 0] + self.b[0, :6] + self.b.repeat(x.shape[0], 1, 1)[:, 1, :6]


class Convs(nn.Sequential):
    pass


def recurrent(kind, **options):
    return kind(4, 3, batch_first=True, **options)


x4 = torch.randn
LAYERS = {
    "linear": lambda: (nn.Linear(4, 3), x4(B, 4)),
    "linear sequence": lambda: (nn.Linear(4, 3), x4(B, 6, 4)),
    "linear, wide and short": lambda: (nn.Linear(40, 50), x4(B, 3, 40)),
    "linear on 4-D input": lambda: (nn.Linear(4, 3), x4(B, 2, 3, 4)),
    "linear without bias": lambda: (nn.Linear(4, 3, bias=False), x4(B, 4)),
    "non-contiguous activations": lambda: (nn.Linear(4, 3), x4(4, 6, B).permute(2, 1, 0)),
    "conv1d": lambda: (nn.Conv1d(4, 6, 3), x4(B, 4, 9)),
    "conv1d strided": lambda: (nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2), x4(B, 4, 11)),
    "conv2d": lambda: (nn.Conv2d(3, 4, 3, padding=1), x4(B, 3, 6, 5)),
    "conv2d options": lambda: (nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2),
                               x4(B, 4, 7, 8)),
    "conv2d depthwise": lambda: (nn.Conv2d(4, 4, 3, groups=4, bias=False), x4(B, 4, 5, 5)),
    "conv2d circular": lambda: (nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), x4(B, 3, 6, 6)),
    "conv2d reflect": lambda: (nn.Conv2d(3, 4, 3, padding=2, padding_mode="reflect"), x4(B, 3, 6, 6)),
    "conv2d same": lambda: (nn.Conv2d(3, 4, 3, padding="same"), x4(B, 3, 6, 6)),
    "conv2d same, even": lambda: (nn.Conv2d(3, 4, (2, 4), padding="same"), x4(B, 3, 6, 6)),
    "conv2d deep": lambda: (nn.Conv2d(20, 30, 3, padding=1), x4(B, 20, 3, 3)),
    "conv3d": lambda: (nn.Conv3d(2, 3, 2, padding=1), x4(B, 2, 4, 3, 3)),
    "transposed conv1d": lambda: (nn.ConvTranspose1d(4, 6, 3, stride=2, output_padding=1, groups=2), x4(B, 4, 5)),
    "transposed conv2d": lambda: (nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), x4(B, 3, 4, 4)),
    "transposed conv3d": lambda: (nn.ConvTranspose3d(2, 3, 2, dilation=2), x4(B, 2, 3, 3, 3)),
    "embedding": lambda: (nn.Embedding(7, 3), ints(B, 6)),
    "embedding, one each": lambda: (nn.Embedding(7, 3), ints(B)),
    "embedding padding_idx": lambda: (nn.Embedding(7, 3, padding_idx=2), ints(B, 9)),
    "embedding padding_idx from the end": lambda: (nn.Embedding(7, 3, padding_idx=-2), ints(B, 9)),
    "embedding bag": lambda: (nn.EmbeddingBag(7, 3), ints(B, 6)),
    "embedding bag sum": lambda: (nn.EmbeddingBag(7, 3, mode="sum", padding_idx=1), ints(B, 6)),
    "embedding bag mean, padded": lambda: (nn.EmbeddingBag(7, 3, padding_idx=1), ints(B, 6)),
    "embedding bag max": lambda: (nn.EmbeddingBag(7, 3, mode="max"), ints(B, 6)),
    "layer norm": lambda: (nn.LayerNorm(4), x4(B, 4)),
    "layer norm of planes": lambda: (nn.LayerNorm((3, 4)), x4(B, 6, 3, 4)),
    "group norm": lambda: (nn.GroupNorm(2, 4), x4(B, 4, 3, 3)),
    "instance norm": lambda: (nn.InstanceNorm2d(4, affine=True), x4(B, 4, 3, 3)),
    "rms norm": lambda: (nn.RMSNorm(4), x4(B, 6, 4)),
    "bilinear": lambda: (nn.Bilinear(4, 3, 2), x4(B, 4), x4(B, 3)),
    "prelu": lambda: (nn.PReLU(), x4(B, 4)),
    "prelu channels": lambda: (nn.PReLU(4), x4(B, 4, 3)),
    "attention": lambda: (Cross(), x4(B, 3, 4), x4(B, 5, 4)),
    "attention with extra keys": lambda: (Cross(add_bias_kv=True, add_zero_attn=True), x4(B, 3, 4), x4(B, 5, 4)),
    "attention of other widths": lambda: (Cross(kdim=3, vdim=3, bias=False), x4(B, 3, 4), x4(B, 5, 3)),
    "encoder layer": lambda: (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), x4(B, 3, 4)),
    "decoder layer": lambda: (nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0, batch_first=True), x4(B, 3, 4), x4(B, 2, 4)),
    "lstm": lambda: (recurrent(nn.LSTM), x4(B, 6, 4)),
    "lstm stack": lambda: (recurrent(nn.LSTM, num_layers=2, bidirectional=True), x4(B, 3, 4)),
    "lstm projected": lambda: (recurrent(nn.LSTM, proj_size=2, bias=False), x4(B, 3, 4)),
    "gru": lambda: (recurrent(nn.GRU, bidirectional=True), x4(B, 6, 4)),
    "rnn": lambda: (recurrent(nn.RNN), x4(B, 6, 4)),
    "rnn relu": lambda: (recurrent(nn.RNN, nonlinearity="relu"), x4(B, 6, 4)),
    "lstm cell": lambda: (nn.LSTMCell(4, 3), x4(B, 4)),
    "bare parameters": lambda: (Bare(), x4(B, 3, 4)),
    "positions without a batch": lambda: (Positions(), ints(B, B)),
    "tied": lambda: (Tied(), ints(B, 6)),
    "layer used twice": lambda: (Twice(), x4(B, 3, 4)),
    "time first": lambda: (TimeFirst(), x4(B, B, 4)),
    "flattened": lambda: (Flattened(), x4(B, 3, 9)),
    "in place": lambda: (InPlace(), x4(B, 4)),
    "slices and views": lambda: (Shapely(), x4(B, 3, 4)),
    "weight norm": lambda: (nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), x4(B, 4)),
    "spectral norm, evaluated": lambda: (nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)).eval(), x4(B, 4)),
    "conv net": lambda: (nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(inplace=True), nn.GroupNorm(2, 4), nn.MaxPool2d(2),
                                       nn.Flatten(), nn.Linear(16, 3)), x4(B, 1, 10, 10)),
}


@pytest.mark.filterwarnings("ignore:Using padding=:UserWarning", "ignore:LSTM with projections:UserWarning")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
@pytest.mark.parametrize("name", LAYERS)
def test_the_clipped_sum_of_a_layer_is_that_of_a_loop(name, dtype):
    torch.manual_seed(1)
    model, *inputs = LAYERS[name]()
    agree(model, tuple(inputs), square_loss, dtype=dtype)


SCOPES = {"per-layer": Clipping(scope="per-layer"), "automatic": Clipping(factor="automatic"),
          "groups": Clipping(scope={"": 0.6, "out": 0.8})}


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", ["conv net", "positions without a batch", "layer used twice", "lstm stack", "encoder layer",
                                  "tied"])
def test_every_scope_equals_the_loop(name, scope):
    torch.manual_seed(2)
    model, *inputs = LAYERS[name]()
    agree(model, tuple(inputs), square_loss, clipping=SCOPES[scope])


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("name", ["linear sequence", "conv2d", "bare parameters", "tied", "gru", "encoder layer", "flattened",
                                  "time first"])
def test_small_batches(name, records):
    torch.manual_seed(3)
    model, *inputs = LAYERS[name]()
    inputs = tuple(x[:records] for x in inputs)
    agree(model, inputs, square_loss)


@pytest.mark.parametrize("length", [1, 1000])
@pytest.mark.parametrize("name", ["linear", "embedding", "lstm", "conv1d", "tied table"])
def test_sequence_lengths_one_and_a_thousand(name, length):
    torch.manual_seed(4)
    model, x = {"linear": (nn.Linear(40, 50), x4(2, length, 40)), "embedding": (nn.Embedding(7, 3), ints(2, length)),
                "lstm": (recurrent(nn.LSTM), x4(2, length, 4)), "conv1d": (nn.Conv1d(4, 6, 1), x4(2, 4, length)),
                "tied table": (Tied(), ints(2, length))}[name]
    agree(model, (x,), square_loss, dtype=torch.float32)


def test_a_large_tied_table_is_measured_without_forming_it(monkeypatch):
    from discreet.training import clipped_sum

    monkeypatch.setattr(clipped_sum, "KEPT", 10)
    torch.manual_seed(5)
    agree(Tied(300), (ints(B, 6, high=300),), square_loss)
