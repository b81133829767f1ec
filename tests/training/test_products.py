"""Parameters inside products, sums and attention: a rule each, so that nothing takes the slow way through ``vmap``."""

from __future__ import annotations

import logging

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from discreet.training import MixedRecords
from discreet.training.gradients import joint
from discreet.training.gradients.clipping import Clipping
from discreet.training.gradients.rules import fallback
from discreet.training.gradients.rules.outer_products import Outer
from discreet.training.gradients.trace import interception
from discreet.training.gradients.trace.dispatch import Ragged
from tests.training.oracle import agree, ours

B, T, N, M = 5, 4, 3, 6


def curved(model, *inputs):
    out = model(*inputs)
    return (out * torch.sin(out + 0.3)).sum()


class Called(nn.Module):
    """A function of parameters of these shapes and an input."""

    def __init__(self, function, *shapes):
        super().__init__()
        self.function = function
        self.parameters_ = nn.ParameterList(nn.Parameter(torch.randn(*shape)) for shape in shapes)

    def forward(self, x):
        return self.function(x, *self.parameters_)


def flat(x):
    return x.reshape(-1, x.shape[-1])


def heads(x):
    return x.unflatten(1, (2, 2)).transpose(0, 1)  # [2, B, 2, N]


PRODUCTS = {
    "matmul": (lambda x, w: x @ w, (N, M)),
    "matmul of rows": (lambda x, w: (flat(x) @ w).unflatten(0, (-1, T)), (N, M)),
    "matmul with a vector": (lambda x, w: x @ w, (N,)),
    "matmul from the left": (lambda x, w: w @ x, (M, T)),
    "a vector from the left": (lambda x, w: torch.matmul(w, x), (T,)),
    "matmul, a weight a head": (lambda x, w: torch.matmul(x.unsqueeze(1), w), (2, N, M)),
    "matmul, a weight a step": (lambda x, w: torch.matmul(x.unsqueeze(2), w), (T, N, M)),
    "matmul, turned": (lambda x, w: x @ w.T, (M, N)),
    "matmul, turned in its last two": (lambda x, w: x.unsqueeze(1) @ w.mT, (2, M, N)),
    "mm": (lambda x, w: torch.mm(flat(x), w).unflatten(0, (-1, T)), (N, M)),
    "mv": (lambda x, w: torch.mv(flat(x), w).unflatten(0, (-1, T)), (N,)),
    "addmm": (lambda x, b, w: torch.addmm(b, flat(x), w).unflatten(0, (-1, T)), (M,), (N, M)),
    "addmm, scaled": (
        lambda x, b, w: torch.addmm(b, flat(x), w, beta=0.5, alpha=3).unflatten(0, (-1, T)),
        (1, M),
        (N, M),
    ),
    "addmm, data added": (lambda x, w: torch.addmm(flat(x), flat(x), w).unflatten(0, (-1, T)), (N, N)),
    "addmv": (lambda x, b, w: torch.addmv(b, flat(x), w).unflatten(0, (-1, T)), (1,), (N,)),
    "bmm, time first": (lambda x, w: torch.bmm(x.transpose(0, 1), w).transpose(0, 1), (T, N, M)),
    "bmm, heads first": (
        lambda x, w: torch.bmm(heads(x).flatten(1, 2), w).unflatten(1, (-1, 2)).transpose(0, 1),
        (2, N, M),
    ),
    "baddbmm": (
        lambda x, b, w: torch.baddbmm(b, x.transpose(0, 1), w, alpha=2).transpose(0, 1),
        (T, 1, M),
        (T, N, M),
    ),
    "einsum": (lambda x, w: torch.einsum("bti,oi->bto", x, w), (M, N)),
    "einsum without an arrow": (lambda x, w: torch.einsum("bti,io", x, w), (N, M)),
    "einsum with dots": (lambda x, w: torch.einsum("...i,oi->...o", x, w), (M, N)),
    "einsum, operands in a list": (lambda x, w: torch.einsum("bti,oi->bto", [x, w]), (M, N)),
    "einsum, weight first": (lambda x, w: torch.einsum("hio,bti->bhto", w, x), (2, N, M)),
    "einsum, a weight a step": (lambda x, w: torch.einsum("bti,tio->bto", x, w), (T, N, M)),
    "einsum, dimensions in turns": (lambda x, w: torch.einsum("bti,hoi->bhto", x, w.permute(1, 0, 2)), (M, 2, N)),
    "einsum, inputs between outputs": (lambda x, w: torch.einsum("bti,hio->bhto", x, w), (2, N, M)),
    "einsum, two contracted": (lambda x, w: torch.einsum("bti,tio->bo", x, w), (T, N, M)),
    "einsum, a summed step": (lambda x, w: torch.einsum("bti,oi->bo", x, w), (M, N)),
    "tensordot": (lambda x, w: torch.tensordot(x, w, dims=1), (N, M)),
    "tensordot of two": (lambda x, w: torch.tensordot(x, w, dims=([1, 2], [0, 1])), (T, N, M)),
    "tensordot, weight first": (lambda x, w: torch.tensordot(w, x, dims=([1], [2])).movedim(1, 0), (M, N)),
    "a sum": (lambda x, w: x + w, (T, N)),
    "a sum over one": (lambda x, w: w + x, (1, 1, N)),
    "a difference": (lambda x, w, v: (w - x) * (x - v), (N,), (T, 1)),
    "a scaled sum": (lambda x, w: torch.add(x, w, alpha=2.5), (N,)),
    "a product": (lambda x, w: x * w, (N,)),
    "a product of rows": (lambda x, w: (flat(x) * w).unflatten(0, (-1, T)), (N,)),
    "a product over more dimensions": (lambda x, w: w * x, (1, 1, T, N)),
    "where": (lambda x, w: torch.where(x > 0, w, x), (T, N)),
    "masked fill": (lambda x, w: w.masked_fill(x > 0, 0.5) * x, (T, N)),
    "rows of a table": (lambda x, w: w[(x[:, :, 0] > 0).long()] + x[:, :, :1], (3, M)),
    "rows from the end": (lambda x, w: w[-(x[:, :, 0] > 0).long()] + x[:, :, :1], (3, M)),
    "index_select": (lambda x, w: w.index_select(0, (flat(x)[:, 0] > 0).long()).unflatten(0, (-1, T)), (3, M)),
    "learned queries": (lambda x, w: F.scaled_dot_product_attention(w, x, x), (1, 2, N)),
    "learned keys": (lambda x, k, v: F.scaled_dot_product_attention(x, k, v), (1, 7, N), (1, 7, N)),
    "a bias of positions": (lambda x, w: F.scaled_dot_product_attention(x, x, x, w), (T, T)),
    "a bias, by name": (lambda x, w: F.scaled_dot_product_attention(x, x, x, attn_mask=w, scale=0.7), (1, T, T)),
}


def no_fallback(*_):
    raise AssertionError("a call took the slow way")


@pytest.mark.parametrize("records", [B, 1], ids=["batch", "one"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_has_a_rule_of_its_own(monkeypatch, name, records):
    monkeypatch.setattr(interception, "recomputed", no_fallback)
    torch.manual_seed(1)
    function, *shapes = PRODUCTS[name]
    agree(Called(function, *shapes), (torch.randn(records, T, N),), curved)


@pytest.mark.parametrize("name", ["matmul", "addmm", "einsum", "bmm, time first", "einsum, weight first"])
def test_a_large_product_forms_no_gradient_of_a_record(monkeypatch, name):
    """Conv1D of GPT-2 is an ``addmm``: its gradients would be larger than everything else."""
    from discreet.training.gradients.rules import outer_products, products

    def refuse(self, activations, output_gradients):
        raise AssertionError("a record's gradient was formed")

    for module in (outer_products, products):
        monkeypatch.setattr(module, "KEPT", 0)
    monkeypatch.setattr(Outer, "instantiate", refuse)
    monkeypatch.setattr(products.GroupedWeight, "instantiate", refuse)
    function, *shapes = PRODUCTS[name]
    wide = {N: 40, M: 50}
    model = Called(function, *([wide.get(size, size) for size in shape] for shape in shapes))
    agree(model, (torch.randn(B, T, 40),), curved)


def test_what_takes_the_slow_way_is_told_once_with_the_modules_name(caplog):
    fallback._tell.cache_clear()
    model = nn.Sequential(nn.Linear(4, 4), nn.PReLU(), nn.PReLU())
    with caplog.at_level(logging.WARNING, "discreet.training"):
        for _ in range(2):
            ours(model, (torch.randn(B, 4),), curved, Clipping(), 1.0)
    assert [record.getMessage().partition(" has no rule")[0] for record in caplog.records] == [
        "prelu at module '1'",
        "prelu at module '2'",
    ]


class Capacity(nn.Module):
    """Experts that take only so many tokens: who comes first leaves no room for others."""

    def __init__(self, room):
        super().__init__()
        self.router, self.weights, self.room = nn.Linear(4, 2), nn.Parameter(torch.randn(2, 4, 4)), room

    def forward(self, x):
        tokens = x.reshape(-1, 4)
        expert = self.router(tokens).argmax(-1)
        slot = torch.stack([(expert[: i + 1] == expert[i]).sum() - 1 for i in range(len(tokens))])
        kept = slot < self.room
        buffer = torch.zeros(2, self.room, 4, dtype=x.dtype).index_put((expert[kept], slot[kept]), tokens[kept] * 2.0)
        out = torch.bmm(buffer + 0 * self.router(buffer).sum(-1, keepdim=True), self.weights)
        return x + out[expert, slot.clamp(max=self.room - 1)].view_as(x)


def test_experts_with_limited_room_are_refused():
    torch.manual_seed(2)
    with pytest.raises(MixedRecords):
        ours(Capacity(6), (torch.randn(B, 3, 4),), curved, Clipping(), 1.0)


class TwoOrders(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        h, one, two = self.a(x), x[:, 0].argsort(), x[:, 1].argsort()
        return self.b(h[one] + h[two])


def test_rows_in_two_orders_that_meet_are_refused():
    torch.manual_seed(3)
    with pytest.raises(MixedRecords, match="two orders"):
        ours(TwoOrders(), (torch.randn(B, 4),), curved, Clipping(), 1.0)


def test_a_parameter_and_data_without_a_known_place_are_no_constant():
    """Before, such a call was taken for one on parameters, and its gradient was lost."""

    class Folded(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.w = nn.Linear(4, 4), nn.Parameter(torch.randn(4))

        def forward(self, x):
            rows = self.a(x)
            gathered = torch.zeros(2, 4, dtype=x.dtype).index_add(0, torch.arange(len(x)) % 2, rows)
            return x * (gathered * self.w).sum()

    with pytest.raises(MixedRecords, match="no records were found"):
        ours(Folded(), (torch.randn(B, 4),), curved, Clipping(), 1.0)


@pytest.mark.parametrize("owner", [[0, 0, 2, 1, 2, 2], [1, 1], [0], []])
def test_ragged_rows_stand_side_by_side(owner):
    owner = torch.tensor(owner, dtype=torch.long)
    x = torch.arange(1.0, len(owner) + 1)[:, None]
    layout = Ragged.of(owner, 3)
    found = layout.apart(x)
    for record in range(3):
        rows = x[owner == record]
        assert torch.equal(found[record, : len(rows)], rows)
        assert not found[record, len(rows) :].any()
        assert torch.equal(
            layout.filled(x)[record, len(rows) :].unique(), rows[:1, 0] if len(rows) else torch.zeros(1)
        ) or (len(rows) == layout.fold)


@pytest.mark.parametrize("kind", ["matmul", "linear"])
def test_half_precision_by_autocast_reaches_no_norm(monkeypatch, kind):
    """Gram sums in half precision are off by more than the clip norm is widened."""
    seen = []
    measured = joint.joint_norms
    from discreet.training.gradients import contraction

    monkeypatch.setattr(
        contraction, "joint_norms", lambda uses: seen.append(torch.is_autocast_enabled("cpu")) or measured(uses)
    )
    model = nn.Linear(40, 50) if kind == "linear" else Called(lambda x, w: x @ w, (40, 50))
    x = torch.randn(B, 6, 40)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = ours(model, (x,), lambda m, a: (1000 * m(a).float()).sin().sum() * 1e4, Clipping(), 1.0)
    assert seen == [False] * len(seen)
    assert float(found.norm()) <= B * (1 + 2**-10)
