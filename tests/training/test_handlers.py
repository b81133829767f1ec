"""Every kind of layer: the clipped sum equals a loop over records."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from discreet.training import MixedRecords
from discreet.training.gradients.clipped_sum import ClippedSum
from discreet.training.gradients.clipping import Clipping
from tests.training.oracle import agree, clipped, close, gradients, naive, ours, trained

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
        y = (
            x @ self.w.t()
            + torch.einsum("bti,oi->bto", x, self.w)
            + F.linear(x, self.w * self.b.view(4, 4)[:, :1].mean())
        )
        return y[:, 0] + self.b[0, :6] + self.b.repeat(x.shape[0], 1, 1)[:, 1, :6]


class Biases(nn.Module):
    """A bias that two layers add, and one that comes before its weight."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 5), nn.Linear(5, 5)
        self.two.bias = self.one.bias
        self.c, self.v = nn.Parameter(torch.randn(7)), nn.Parameter(torch.randn(7, 5))

    def forward(self, x):
        return F.linear(self.two(torch.tanh(self.one(x))), self.v, self.c)


class Elsewhere(nn.Module):
    """A layer whose weight or bias is also what another weight is made of."""

    def __init__(self, make):
        super().__init__()
        self.w, self.b, self.make = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(4)), make

    def forward(self, x):
        return F.linear(x, self.w, self.b) + F.linear(x.square() + 1, self.make(self.w, self.b))


class OddBias(nn.Module):
    """A bias that is spread over the outputs."""

    def __init__(self, *shape):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(5, 4)), nn.Parameter(torch.randn(*shape))

    def forward(self, x):
        return F.linear(x, self.w, self.b)


class Again(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(torch.tanh(self.layer(x)))


class Turned(nn.Module):
    """The gradient of the layer's output does not lie as the output does."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 9)

    def forward(self, x):
        return self.layer(x).transpose(1, 2).contiguous()


def half_frozen(name):
    layer = nn.Linear(4, 3)
    getattr(layer, name).requires_grad_(False)
    return layer


def recurrent(kind, **options):
    return kind(4, 3, batch_first=True, **options)


x4 = torch.randn
LAYERS = {
    "linear": lambda: (nn.Linear(4, 3), x4(B, 4)),
    "linear sequence": lambda: (nn.Linear(4, 3), x4(B, 6, 4)),
    "linear, wide and short": lambda: (nn.Linear(40, 50), x4(B, 3, 40)),
    "linear on 4-D input": lambda: (nn.Linear(4, 3), x4(B, 2, 3, 4)),
    "linear without bias": lambda: (nn.Linear(4, 3, bias=False), x4(B, 4)),
    "linear, from few to many": lambda: (nn.Linear(3, 40), x4(B, 3)),
    "linear with a frozen weight": lambda: (half_frozen("weight"), x4(B, 4)),
    "linear with a frozen bias": lambda: (half_frozen("bias"), x4(B, 4)),
    "biases": lambda: (Biases(), x4(B, 4)),
    "a bias used elsewhere": lambda: (Elsewhere(lambda w, b: torch.diag(b)), x4(B, 4)),
    "a weight used elsewhere": lambda: (Elsewhere(lambda w, b: w.exp()), x4(B, 4)),
    "a bias for all outputs": lambda: (OddBias(1), x4(B, 4)),
    "a bias in a row": lambda: (OddBias(1, 5), x4(B, 4)),
    "linear used twice on vectors": lambda: (Again(), x4(B, 4)),
    "turned gradients": lambda: (Turned(), x4(B, 6, 4)),
    "non-contiguous activations": lambda: (nn.Linear(4, 3), x4(4, 6, B).permute(2, 1, 0)),
    "conv1d": lambda: (nn.Conv1d(4, 6, 3), x4(B, 4, 9)),
    "conv1d strided": lambda: (nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2), x4(B, 4, 11)),
    "conv2d": lambda: (nn.Conv2d(3, 4, 3, padding=1), x4(B, 3, 6, 5)),
    "conv2d options": lambda: (
        nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2),
        x4(B, 4, 7, 8),
    ),
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
    "decoder layer": lambda: (
        nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
        x4(B, 3, 4),
        x4(B, 2, 4),
    ),
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
    "conv net": lambda: (
        nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2),
            nn.ReLU(inplace=True),
            nn.GroupNorm(2, 4),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16, 3),
        ),
        x4(B, 1, 10, 10),
    ),
}


def losses(model, *inputs):
    """A loss for each record, curved, so that every output gradient differs."""
    out = model(*inputs)
    out = out[0] if isinstance(out, tuple) else out
    return (out * torch.sin(out + 0.3)).flatten(1).sum(1)


REDUCTIONS = {"mean": lambda m, *a: losses(m, *a).mean(), "sum": lambda m, *a: losses(m, *a).sum(), "none": losses}


def scopes(model):
    """Every way to cut a gradient into blocks, and the two factors."""
    names = list(trained(model))
    return {
        "flat": Clipping(),
        "per-layer": Clipping(scope="per-layer"),
        "groups": Clipping(scope={"": 0.6, names[-1]: 0.8}),
        "automatic": Clipping(factor="automatic"),
    }


quietly = pytest.mark.filterwarnings("ignore:Using padding=:UserWarning", "ignore:LSTM with projections:UserWarning")


EVERY = pytest.param(True, marks=pytest.mark.slow)


@quietly
@pytest.mark.parametrize("every", [False, EVERY], ids=["few", "every"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
@pytest.mark.parametrize("name", LAYERS)
def test_the_clipped_sum_of_a_layer_is_that_of_a_loop(name, dtype, every):
    """For every scope and every reduction, at a clip norm that some records exceed, and far above and below; the few
    leave out what combines two of them."""
    torch.manual_seed(1)
    model, *inputs = LAYERS[name]()
    model, inputs = model.to(dtype), tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
    each = list(gradients(model, inputs, REDUCTIONS["sum"]))
    for scope, clipping in scopes(model).items():
        for clip_norm in (1e-3, 1.0, 1e6) if every or scope == "flat" else (1.0,):
            wanted = clipped(model, each, clipping, clip_norm)
            all_of_them = (scope == "flat" or clip_norm == 1.0) if every else (scope == "flat" and clip_norm == 1.0)
            for reduction, loss in REDUCTIONS.items() if all_of_them else [("sum", square_loss)]:
                close(ours(model, inputs, loss, clipping, clip_norm, reduction), wanted, dtype)


@quietly
@pytest.mark.parametrize("records", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LAYERS)
def test_small_batches(name, records):
    torch.manual_seed(8)
    model, *inputs = LAYERS[name]()
    agree(model, tuple(x[:records] for x in inputs), square_loss)


class Coincident(nn.Module):
    """In-place functions, frozen attention and a layer with a handler of its own before parameters as long as the
    batch."""

    def __init__(self):
        super().__init__()
        self.a, self.attention = nn.Linear(4, 4), nn.MultiheadAttention(4, 2)
        self.attention.requires_grad_(False)
        self.shift, self.scale = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))

    def forward(self, x):
        h = self.a(x)
        h += self.shift * 3
        h.mul_(1 + self.scale)
        h = self.attention(h, h, h)[0] if h.dim() == 3 else h
        return h.tanh() * (self.shift - 1) + 2 * self.scale


@pytest.mark.parametrize("records", [3, 4, 5])
def test_parameters_as_long_as_the_batch_are_not_taken_for_records(records):
    torch.manual_seed(9)
    agree(Coincident(), (x4(records, 4),), square_loss)


@pytest.mark.parametrize("training", [True, False])
def test_time_first_layers_with_as_many_steps_as_records(training):
    """Also in evaluation, where some modules take another way through fused code without gradients."""

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)

        def forward(self, x):
            return self.layer(x.transpose(0, 1)).transpose(0, 1)

    torch.manual_seed(9)
    agree(Encoder().train(training), (x4(B, B, 4),), square_loss)


@quietly
@pytest.mark.parametrize("name", LAYERS)
def test_a_batch_of_nothing_is_a_sum_of_zero(name):
    """An empty draw never reaches a model (a placeholder does), but a clipped sum of no records is defined all the
    same."""
    torch.manual_seed(3)
    model, *inputs = LAYERS[name]()
    nothing = tuple(x[:0] for x in inputs)
    try:
        model(*nothing)
    except (RuntimeError, ValueError, IndexError):
        pytest.skip("torch itself cannot run this layer on no records")
    found = ours(model, nothing, square_loss, Clipping(), 1.0)
    assert found.shape == (sum(p.numel() for p in trained(model).values()),)
    assert not found.any()


LONG = {
    "linear": lambda t: (nn.Linear(40, 50), x4(2, t, 40)),
    "narrow linear": lambda t: (nn.Linear(4, 3), x4(2, t, 4)),
    "embedding": lambda t: (nn.Embedding(7, 3), ints(2, t)),
    "embedding bag": lambda t: (nn.EmbeddingBag(7, 3, padding_idx=1), ints(2, t)),
    "conv1d": lambda t: (nn.Conv1d(4, 6, 1), x4(2, 4, t)),
    "conv1d options": lambda t: (nn.Conv1d(4, 6, 3, stride=2, padding=4, dilation=2, groups=2), x4(2, 4, t)),
    "transposed conv1d": lambda t: (nn.ConvTranspose1d(4, 6, 3, stride=2, groups=2), x4(2, 4, t)),
    "layer norm": lambda t: (nn.LayerNorm(4), x4(2, t, 4)),
    "rms norm": lambda t: (nn.RMSNorm(4), x4(2, t, 4)),
    "group norm": lambda t: (nn.GroupNorm(2, 4), x4(2, 4, t)),
    "attention": lambda t: (Cross(), x4(2, t, 4), x4(2, t, 4)),
    "encoder layer": lambda t: (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), x4(2, t, 4)),
    "lstm": lambda t: (recurrent(nn.LSTM), x4(2, t, 4)),
    "gru": lambda t: (recurrent(nn.GRU), x4(2, t, 4)),
    "positions": lambda t: (Positions(t), ints(2, t)),
    "tied table": lambda t: (Tied(), ints(2, t)),
    "prelu": lambda t: (nn.PReLU(4), x4(2, 4, t)),
}


@pytest.mark.parametrize("length", [1, 60, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LONG)
def test_short_and_long_sequences(name, length):
    torch.manual_seed(4)
    model, *inputs = LONG[name](length)
    for dtype in (torch.float32, torch.float64):
        model = model.to(dtype)
        given = tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
        close(
            ours(model, given, square_loss, Clipping(), 1.0), naive(model, given, square_loss, Clipping(), 1.0), dtype
        )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_ignored_tokens_have_no_part_in_any_reduction(reduction):
    """A record's own mean over its tokens; one record has none at all."""
    torch.manual_seed(6)
    model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 7)).double()
    x = ints(B, 6)
    y = torch.where(torch.rand(B, 6) < 0.5, -100, x.roll(-1, 1))
    y[0] = -100

    def each(m, a, b):
        tokens = F.cross_entropy(m(a).transpose(1, 2), b, ignore_index=-100, reduction="none").sum(1)
        return tokens / (b != -100).sum(1).clamp(min=1)

    def loss(m, a, b):
        return {"mean": torch.mean, "sum": torch.sum, "none": lambda v: v}[reduction](each(m, a, b))

    for clipping in scopes(model).values():
        wanted = naive(model, (x, y), lambda m, a, b: each(m, a, b).sum(), clipping, 0.1)
        close(ours(model, (x, y), loss, clipping, 0.1, reduction), wanted, torch.float64)


class Alike(nn.Module):
    """Attention over steps that are all alike, so that rows of several steps and records cannot be told apart by
    copies."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        x = x.unsqueeze(1).expand(-1, 3, -1)
        return self.attention(x, x, x, need_weights=False)[0]


class Heads(nn.Module):
    """Heads folded into the second dimension, one record after another or in turns."""

    def __init__(self, turns):
        super().__init__()
        self.project, self.turns = nn.Linear(3, 2), turns

    def forward(self, x):  # [B, 4, 6]: two heads of three
        b, t, _ = x.shape
        x = x.transpose(0, 1).reshape(t, b, 2, 3)
        x = (x.transpose(1, 2) if self.turns else x).reshape(t, 2 * b, 3)
        x = self.project(x)
        x = x.view(t, 2, b, 2).transpose(1, 2) if self.turns else x.view(t, b, 2, 2)
        return torch.tanh(x).transpose(0, 1)


@pytest.mark.parametrize("turns", [False, True])
def test_heads_folded_into_the_second_dimension(turns):
    torch.manual_seed(9)
    agree(Heads(turns), (x4(B, 4, 6),), square_loss)


def test_steps_that_are_all_alike_are_told_apart_by_another_record():
    torch.manual_seed(9)
    agree(Alike(), (x4(B, 4),), square_loss)


def test_rows_that_nothing_tells_apart_are_refused():
    model = Alike()
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    with pytest.raises(MixedRecords, match="which are whose"):
        ours(model, (x4(B, 4),), square_loss, Clipping(), 1.0)


@pytest.mark.parametrize("shape", [(10_000,), (2, 60_000)], ids=["one step", "two steps"])
def test_inputs_whose_squares_vanish_do_not_hide_a_gradient(shape):
    """Inputs of 2e-23 have squares of nothing in single precision, but with output gradients of 1e19 they are a
    gradient."""
    model = nn.Linear(shape[-1], 3, bias=False)
    nn.init.zeros_(model.weight)
    x = torch.full((2, *shape), 2e-23)
    found = ours(model, (x,), lambda m, a: m(a).flatten(1).sum(1) * 1e19, Clipping(), 1e-3, "none")
    assert float(found.double().norm()) <= 2 * 1e-3 * (1 + 2**-10)


@pytest.mark.parametrize("shape", [(30,), (2, 30)], ids=["one step", "two steps"])
def test_output_gradients_whose_squares_vanish_do_not_hide_one(shape):
    """The same, the other way round: of a record that a model is sure of, with an input that no weight looks at yet."""
    model = nn.Linear(30, 30_000, bias=False)
    nn.init.zeros_(model.weight)
    x = torch.full((2, *shape), 1e18)
    found = ours(model, (x,), lambda m, a: m(a).flatten(1).sum(1) * 2e-23, Clipping(), 1e-3, "none")
    assert float(found.double().norm()) <= 2 * 1e-3 * (1 + 2**-10)


@pytest.mark.parametrize("records", [8, 9])
def test_thin_products_are_made_in_parts(monkeypatch, records):
    """Also where the rows cannot be shared out evenly."""
    from discreet.training.gradients.rules import outer_products as outer

    monkeypatch.setattr(outer, "TALL", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    torch.manual_seed(9)
    agree(nn.Sequential(nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 2)), (x4(records, 30),), square_loss)
    agree(nn.Sequential(nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 2)), (x4(records, 3, 30),), square_loss)


def test_parts_are_shared_evenly_among_threads(monkeypatch):
    from discreet.training.gradients.rules.outer_products import in_parts

    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    for records, most, sizes in ((64, 3, [4] * 16), (64, 30, [32, 32]), (10, 1, [4, 4, 2]), (3, 100, [3]), (0, 5, [0])):
        assert [len(part) for part in in_parts(torch.zeros(records), most)] == sizes


def test_layers_of_two_precisions_in_one_model():
    """The sum is kept in the finer one, and a coarser layer's bias has its place in it."""

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.coarse, self.fine = nn.Linear(4, 3), nn.Linear(3, 2).double()

        def forward(self, x):
            return self.fine(torch.tanh(self.coarse(x)).double())

    torch.manual_seed(10)
    model, inputs = Mixed(), (x4(B, 4),)
    for clip_norm in (1e-3, 1.0, 1e6):
        found = ours(model, inputs, square_loss, Clipping(), clip_norm)
        assert found.dtype == torch.float64
        close(found, naive(model, inputs, square_loss, Clipping(), clip_norm), torch.float32)


class LookedUpTwice(Tied):
    def forward(self, x):
        return self.out(torch.tanh(self.mix(self.word(x) + F.embedding(x.flip(1), self.word.weight))))


def test_a_table_that_is_looked_up_twice_and_tied_counts_all_three_uses(monkeypatch):
    from discreet.training.gradients import joint
    from discreet.training.gradients.rules import outer_products as outer

    monkeypatch.setattr(joint, "KEPT", 10)
    monkeypatch.setattr(outer, "KEPT", 10)
    torch.manual_seed(5)
    agree(LookedUpTwice(300), (ints(B, 3, high=300),), square_loss)


@pytest.mark.parametrize("scope", ["flat", "per-layer", {"a": 3.0, "": 4.0, "b.c": 0.5}])
def test_the_blocks_share_the_clip_norm(scope):
    """Squares of the shares add to one, and rounding widens the sensitivity by a little."""
    block, shares = Clipping(scope=scope).blocks(["a.weight", "a.bias", "b.c.weight", "d"])
    assert sum(share**2 for share in shares) == pytest.approx(1.0)
    assert set(block) == set(range(len(shares)))
    for dtype, most in ((torch.float64, 2.0**-39), (torch.float32, 2.0**-9)):
        found = ClippedSum({"a": torch.zeros(1, dtype=dtype)}, Clipping(), "sum").sensitivity(3.0)
        assert 3 < found < 3 * (1 + most)


def test_a_large_tied_table_is_measured_without_forming_it(monkeypatch):
    from discreet.training.gradients import joint
    from discreet.training.gradients.rules import outer_products as outer

    found, measured = [], joint._tied
    monkeypatch.setattr(joint, "KEPT", 10)
    monkeypatch.setattr(outer, "KEPT", 10)
    monkeypatch.setattr(joint, "_tied", lambda uses: found.append(measured(uses)) or found[-1])
    torch.manual_seed(5)
    agree(Tied(300), (ints(B, 3, high=300),), square_loss)
    assert found
    assert all(norms is not None and norms.shape == (B,) for norms in found)
