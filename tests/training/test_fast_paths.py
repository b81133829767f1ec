"""Shorter ways to the same sums: each is taken where it is meant to be, and gives what a loop over records gives."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn

from discreet.training.gradients import contraction, joint
from discreet.training.gradients.clipped_sum import ClippedSum
from discreet.training.gradients.clipping import Clipping
from discreet.training.gradients.rules import convolution, elementary, recurrence
from discreet.training.gradients.rules import outer_products as outer
from tests.training.oracle import agree, ours, watching
from tests.training.test_handlers import B, Tied, ints, square_loss


def counted(monkeypatch, owner, name):
    """The calls of a function from now on: their arguments and answers."""
    found, function = [], getattr(owner, name)

    def spy(*args, **kwargs):
        found.append((args, function(*args, **kwargs)))
        return found[-1][1]

    monkeypatch.setattr(owner, name, spy)
    return found


@pytest.mark.parametrize("first", [0, 1], ids=["records first", "steps first"])
def test_sequences_that_lie_step_by_step_are_one_product(monkeypatch, first):
    """Nothing is multiplied record by record."""

    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(40, 30)

        def forward(self, x):
            return self.layer(x.transpose(0, first).contiguous().tanh()).transpose(0, first)

    monkeypatch.setattr(outer.Outer, "prefers_instances", lambda *_: False)
    products, apart = counted(monkeypatch, torch, "mm"), counted(monkeypatch, torch, "addbmm")
    torch.manual_seed(1)
    agree(Steps(), (torch.randn(B, 7, 40),), square_loss)
    assert [args[0].shape for args, _ in products] == [(30, 7 * B)] * 3
    assert not apart


@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("layer", [nn.GroupNorm(2, 6), nn.InstanceNorm1d(6, affine=True)], ids=["group", "instance"])
def test_a_group_norms_scale_needs_no_normalised_inputs(monkeypatch, layer, offset):
    taken = counted(monkeypatch, elementary.GroupScale, "instantiate")
    torch.manual_seed(3)
    nn.init.normal_(layer.weight)
    agree(nn.Sequential(layer, nn.Flatten(), nn.Linear(24, 2)), (torch.randn(B, 6, 4) + offset,), square_loss)
    assert taken


def test_group_norm_of_frames_folded_into_the_batch(monkeypatch):
    class Frames(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.GroupNorm(2, 4)

        def forward(self, x):
            return self.norm(x.flatten(0, 1)).reshape(x.shape[0], -1)

    taken = counted(monkeypatch, elementary.GroupScale, "instantiate")
    torch.manual_seed(4)
    agree(Frames(), (torch.randn(B, 3, 4, 5),), square_loss)
    assert taken


def test_a_tables_rows_are_added_where_the_output_layers_product_is(monkeypatch):
    added = counted(monkeypatch, elementary.Rows, "add_weighted")
    monkeypatch.setattr(joint, "KEPT", 10)
    monkeypatch.setattr(outer, "KEPT", 10)
    torch.manual_seed(5)
    agree(Tied(300), (ints(B, 3, high=300),), square_loss)
    assert added
    alone = nn.Sequential(nn.Embedding(30, 4), nn.Flatten(), nn.Linear(12, 2))
    before = len(added)
    agree(alone, (ints(B, 3, high=30),), square_loss)
    assert len(added) > before


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}, {"bias": False}], ids=str)
def test_gates_in_compiled_loops_are_those_of_torch(monkeypatch, kind, options):
    """Outputs and the sum of a loop over records, from a state of their own; the loops are run, forward and back."""

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.over, self.start = kind(6, 9, batch_first=True, **options), nn.Parameter(torch.randn(9))

        def forward(self, x, state):
            state = (state * self.start).transpose(0, 1).repeat(len(self.over._all_weights), 1, 1)
            out, last = self.over(x, (state, state.tanh()) if kind is nn.LSTM else state)
            return out.flatten(1).sum(1) + 3 * (last[1] if kind is nn.LSTM else last).square().sum((0, 2))

    name = kind.__name__.lower()
    taken = [counted(monkeypatch, recurrence, f"{name}_{way}") for way in ("step", "back")]
    torch.manual_seed(6)
    agree(Recurrent(), (3 * torch.randn(B, 5, 6), torch.randn(B, 1, 9)), lambda m, *x: m(*x).sum(), dtype=torch.float32)
    assert all(taken)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_a_gate_that_is_not_a_number_stays_none(kind):
    """The record is lost, as it is in a loop over records; its neighbours are not."""
    torch.manual_seed(7)
    model, x = kind(4, 3, batch_first=True), torch.randn(B, 4, 4)
    wanted = ours(model, (x[1:],), square_loss, Clipping(), 1.0)
    for bad in (torch.nan, torch.inf):
        x[0, 1, 2] = bad
        torch.testing.assert_close(ours(model, (x,), square_loss, Clipping(), 1.0), wanted, rtol=1e-5, atol=1e-6)


COMPILED = {
    "strided, padded": (nn.Conv2d(1, 16, 8, 2, padding=3), (1, 13, 12)),
    "outputs beyond a block, taps beyond a tile": (nn.Conv2d(3, 19, 3, padding=1), (3, 6, 5)),
    "rows of the kernel apart": (nn.Conv2d(2, 5, (3, 4), stride=(2, 1), padding=(2, 1), dilation=(2, 1)), (2, 7, 6)),
    "unused border": (nn.Conv2d(4, 3, 2, stride=3, bias=False), (4, 7, 6)),
    "a line": (nn.Conv1d(4, 6, 3, stride=2, padding=1), (4, 9)),
    "circular": (nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), (3, 6, 6)),
    "transposed": (nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), (3, 4, 4)),
    "transposed line": (nn.ConvTranspose1d(5, 4, 3, stride=3), (5, 5)),
}


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "measured"])
@pytest.mark.parametrize("name", COMPILED)
def test_convolutions_whose_gradients_are_formed_by_compiled_loops(monkeypatch, name, kept):
    """Kept, or formed only to be measured, before torch adds them up."""
    taken = counted(monkeypatch, convolution, "record_gradients")
    monkeypatch.setattr(convolution.ConvolutionWeight, "prefers_instances", lambda *_: kept)
    measured = counted(monkeypatch, convolution.ConvolutionWeight, "_formed_norms")
    torch.manual_seed(8)
    layer, shape = COMPILED[name]
    x = torch.randn(B, *shape)
    agree(nn.Sequential(layer, nn.Tanh()), (x,), square_loss, dtype=torch.float32)
    assert taken
    assert bool(measured) is not kept


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv2d(8, 4, 2, groups=2), (8, 4, 4)),
        (nn.Conv2d(4, 4, 2, dilation=2), (4, 4, 4)),
        (nn.Conv2d(2, 4, 3), (2, 4, 4)),
        (nn.Conv3d(4, 3, 2), (4, 3, 3, 3)),
    ],
    ids=["groups", "columns apart", "few taps", "three dimensions"],
)
def test_other_convolutions_copy_windows(monkeypatch, layer, shape):
    taken = counted(monkeypatch, convolution, "record_gradients")
    torch.manual_seed(9)
    agree(nn.Sequential(layer, nn.Tanh()), (torch.randn(B, *shape),), square_loss, dtype=torch.float32)
    assert not taken


def test_compiled_loops_are_of_one_record_whatever_the_threads_the_batch_and_the_layout(monkeypatch):
    """To the last bit; of one record, of none, and of inputs with channels last in memory."""
    taken = counted(monkeypatch, convolution, "record_gradients")
    torch.manual_seed(10)
    handler = convolution.ConvolutionWeight(torch.randn(5, 4, 3, 3), (1, 1), (1, 1), (1, 1), 1)
    x, g, threads = torch.randn(7, 4, 6, 6), torch.randn(7, 5, 6, 6), torch.get_num_threads()
    alone = torch.cat([handler.instantiate(x[i : i + 1], g[i : i + 1]) for i in range(7)])
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            before = len(taken)
            assert torch.equal(handler.instantiate(x, g), alone)
            assert len(taken) == before + count
    finally:
        torch.set_num_threads(threads)
    last = [part.contiguous(memory_format=torch.channels_last) for part in (x, g)]
    assert torch.equal(handler.instantiate(*last), alone)
    assert handler.instantiate(x[:0], g[:0]).shape == (0, 5, 4, 3, 3)
    assert handler.squared_norms(x[:0], g[:0]).shape == (0,)


def test_compiled_loops_stay_inside_their_input_whatever_the_sizes(monkeypatch):
    """Strides, paddings, distances and kernels at random, also larger than the input; beside autograd, by record."""
    taken = counted(monkeypatch, convolution, "record_gradients")
    draw = random.Random(16)
    torch.manual_seed(16)
    for _ in range(120):
        transposed, channels, outputs = draw.random() < 0.5, draw.choice([1, 3, 8, 9]), draw.choice([1, 16, 17])
        pairs = [tuple(draw.randint(low, high) for _ in range(2)) for low, high in ((1, 3), (0, 4), (1, 5), (1, 8))]
        stride, padding, kernel, size = pairs
        dilation = draw.randint(1, 3), 1
        kind = nn.ConvTranspose2d if transposed else nn.Conv2d
        layer = kind(channels, outputs, kernel, stride, padding, dilation=dilation, bias=False)
        x = torch.randn(2, channels, *size)
        try:
            back = torch.randn(layer(x[:1]).shape).repeat(2, 1, 1, 1)
        except RuntimeError:  # no output at all
            continue
        back[1] *= 2
        handler = convolution.ConvolutionWeight(layer.weight, stride, padding, dilation, 1, transposed=transposed)
        alone = [
            torch.autograd.grad(layer(x[i : i + 1]), layer.weight, back[i : i + 1], allow_unused=True)[0]
            for i in range(2)
        ]
        torch.testing.assert_close(handler.instantiate(x, back), torch.stack(alone), rtol=1e-4, atol=1e-4)
    assert len(taken) > 30


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "measured"])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_convolution_loses_the_record_that_is_not_finite_and_no_other(monkeypatch, kept, bad):
    monkeypatch.setattr(convolution.ConvolutionWeight, "prefers_instances", lambda *_: kept)
    torch.manual_seed(11)
    model, x = nn.Conv2d(4, 3, 2), torch.randn(B, 4, 3, 3)
    wanted = ours(model, (x[1:],), square_loss, Clipping(), 1.0)
    x[0, 1, 2, 2] = bad
    torch.testing.assert_close(ours(model, (x,), square_loss, Clipping(), 1.0), wanted, rtol=1e-5, atol=1e-6)


def test_a_convolution_whose_terms_cancel_is_measured_outward():
    """Positions take each other away: the norm is what rounding may hide, not what it left."""
    torch.manual_seed(12)
    handler = convolution.ConvolutionWeight(torch.randn(3, 4, 2, 2), (2, 2), (0, 0), (1, 1), 1)
    window, way = torch.randn(5, 4, 2, 2) * 1e3, torch.randn(5, 3)
    x = window.repeat(1, 1, 8, 8)
    g = way[:, :, None, None] * torch.tensor([1.0, -1.0]).repeat(4)
    g = g.expand(5, 3, 8, 8).contiguous() * (1 + 1e-6 * torch.rand(5, 1, 8, 8))
    copies = [part.double() for part in (x, g)]
    truth = handler.instantiate(*copies).flatten(1).square().sum(1)
    squared, terms = handler._formed_norms(x, g)
    assert (squared.double() >= truth).all()
    assert (terms.double().square() >= 1e8 * truth).all()  # so that such a record is formed alone
    off = (handler.instantiate(x, g).double() - handler.instantiate(*copies)).flatten(1).norm(dim=1)
    assert (squared.double().sqrt() >= off).all()


@pytest.mark.parametrize("apart", [False, True], ids=["one block", "two blocks"])
def test_weights_that_got_one_gradient_are_measured_as_one(monkeypatch, apart):
    """An LSTM's two, and two layers whose outputs are added; but not where they are clipped apart."""

    class Added(nn.Module):
        def __init__(self):
            super().__init__()
            self.over, self.one, self.two = nn.LSTM(4, 5), nn.Linear(5, 3), nn.Linear(4, 3)

        def forward(self, x):
            x = x.transpose(0, 1)
            return (self.one(self.over(x)[0]) + self.two(x)).transpose(0, 1)

    monkeypatch.setattr(outer.Outer, "prefers_instances", lambda *_: False)
    joined = counted(monkeypatch, contraction, "as_one_weight")
    split = {"over.weight_ih_l0": 1.0, "one": 2.0, "": 1.0}
    torch.manual_seed(13)
    agree(Added(), (torch.randn(B, 7, 4),), square_loss, clipping=Clipping(scope=split) if apart else None)
    assert len(joined) == (0 if apart else 6)  # three clip norms


def test_two_biases_that_get_one_gradient_are_added_up_once(monkeypatch):
    """Those of an LSTM; each layer's anew, though one gradient may come to lie where another was."""
    monkeypatch.setattr(outer.Outer, "prefers_instances", lambda *_: False)
    summed = counted(monkeypatch, elementary.Bias, "instantiate")
    torch.manual_seed(15)
    agree(nn.LSTM(3, 4, 2, batch_first=True), (torch.randn(B, 5, 3),), lambda m, x: m(x)[0].square().sum())
    assert len(summed) == 3 * 2  # clip norms times layers, of two biases each


def test_a_scaled_gradient_is_not_measured_with_another(monkeypatch):
    """Each weight has scales of its own."""
    joined = counted(monkeypatch, contraction, "as_one_weight")
    model = nn.LSTM(3, 2, batch_first=True)
    sums = ClippedSum(dict(model.named_parameters()), Clipping(), "sum")
    sums.scale([torch.full_like(p, 2.0) for p in model.parameters()])
    x = torch.randn(B, 4, 3)
    sums.watch.begin(B)
    monkeypatch.setattr(outer.Outer, "prefers_instances", lambda *_: False)
    with watching(model, sums.watch):
        model(x)[0].sum().backward()
    sums.add(None, 1e6)
    found = torch.cat([part.reshape(-1) for part in sums.total])
    plain = ours(model, (x,), lambda m, x: m(x)[0].sum(), Clipping(), 1e6)
    torch.testing.assert_close(found, 2 * plain, rtol=1e-5, atol=1e-6)
    assert len(joined) == 1  # the plain one's


def test_a_tables_rows_are_added_where_the_output_layers_gradients_lie(monkeypatch):
    """Where both are formed; a row that is looked up twice counts twice."""
    added, formed = (counted(monkeypatch, elementary.Rows, name) for name in ("add_instances", "instantiate"))
    torch.manual_seed(14)
    words = ints(B, 5, high=7)
    words[:, 1] = words[:, 0]
    agree(Tied(), (words,), square_loss)
    assert added
    assert not formed
