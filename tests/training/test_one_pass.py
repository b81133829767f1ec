"""A single thin linear layer in one compiled pass: the same clipped sum, the same refusals, whatever the records."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from discreet.training.gradients import clipped_sum, one_pass
from discreet.training.gradients.clipped_sum import WIDENED, ClippedSum
from discreet.training.gradients.clipping import Clipping, Quantile
from discreet.training.memory import SMALL, Room, side_by_side
from discreet.training.verification.verification import StepVerification
from tests.training.oracle import close, naive, ours, trained, watching

SIZES = [1, 3, 4, 63, 64, 65, 131]
HUGE, TORN = 2e18, 2e-23  # numbers whose squares are just finite, and nothing, in single precision


@pytest.fixture
def taken(monkeypatch):
    """Whether each batch was summed in one pass."""
    found = []
    original = clipped_sum.in_one_pass

    def watched(*args):
        squares = original(*args)
        found.append(squares is not None)
        return squares

    monkeypatch.setattr(clipped_sum, "in_one_pass", watched)
    return found


def curved(model, x):
    out = model(x)
    return (out * torch.sin(out + 0.3)).sum()


def given(model, x, gradients, *, clipping=None, clip_norm=1.0, reduction="sum", weights=None):
    """The sum where these gradients come back to the model's outputs."""
    found = ClippedSum(trained(model), clipping or Clipping(), reduction)
    found.watch.begin(len(x))
    with watching(model, found.watch):
        model(x).backward(gradients)
    found.add(weights, clip_norm)
    return torch.cat([part.reshape(-1) for part in found.total]), found


@pytest.mark.parametrize("records", SIZES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("clipping", [Clipping(), Clipping(factor="automatic")], ids=["abadi", "automatic"])
def test_the_sum_is_that_of_a_loop(taken, records, bias, clipping):
    torch.manual_seed(records)
    model, x = nn.Linear(7, 3, bias=bias), torch.randn(records, 7)
    x[::3] *= 1e-3  # some are not clipped
    for clip_norm in (0.5, 1e3):
        found = ours(model, (x,), curved, clipping, clip_norm)
        close(found, naive(model, (x,), curved, clipping, clip_norm), torch.float32)
    assert taken == [True] * 2


def test_an_empty_batch_sums_to_zeros():
    found, _ = given(nn.Linear(5, 2), torch.zeros(0, 5), torch.zeros(0, 2))
    assert found.tolist() == [0.0] * 12


@pytest.mark.parametrize("outputs", [1, one_pass.THIN])
def test_weights_and_means_count_as_in_the_ordinary_way(taken, outputs, monkeypatch):
    torch.manual_seed(0)
    model, x, g = nn.Linear(5, outputs), torch.randn(70, 5), torch.randn(70, outputs)
    weights = torch.randint(0, 2, (70,)).float()
    found, counted = given(model, x, g / 70, clipping=Clipping(adaptive=Quantile()), reduction="mean", weights=weights)
    monkeypatch.setattr(clipped_sum, "in_one_pass", lambda *_: None)
    usual, other = given(model, x, g / 70, clipping=Clipping(adaptive=Quantile()), reduction="mean", weights=weights)
    assert taken == [True]
    assert counted.unclipped == other.unclipped
    close(found, usual.double(), torch.float32)


def _frozen(name):
    model = nn.Linear(6, 2)
    getattr(model, name).requires_grad_(False)
    return model


class Twice(nn.Linear):
    def forward(self, x):
        return super().forward(x) + super().forward(x.square())


DECLINED = {
    "a sequence a record": (nn.Linear(6, 2), torch.randn(9, 4, 6)),
    "double precision": (nn.Linear(6, 2).double(), torch.randn(9, 6).double()),
    "many outputs": (nn.Linear(6, one_pass.THIN + 1), torch.randn(9, 6)),
    "long inputs": (nn.Linear(one_pass.LONG + 1, 1), torch.randn(3, one_pass.LONG + 1)),
    "inputs that do not lie in rows": (nn.Linear(6, 2), torch.randn(6, 9).T),
    "two layers": (nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 2)), torch.randn(9, 6)),
    "a layer that is used twice": (Twice(6, 2), torch.randn(9, 6)),
    "a bias alone": (_frozen("weight"), torch.randn(9, 6)),
}


@pytest.mark.parametrize("case", DECLINED)
def test_what_is_not_for_one_pass_goes_the_ordinary_way(taken, case):
    model, x = DECLINED[case]
    found = ours(model, (x,), curved, Clipping(), 0.5)
    assert not any(taken)
    close(found, naive(model, (x,), curved, Clipping(), 0.5), x.dtype)


def test_blocks_and_scales_go_the_ordinary_way(taken):
    model, x = nn.Linear(6, 2), torch.randn(9, 6)
    scoped = Clipping(scope={"weight": 0.3, "bias": 0.4})
    close(ours(model, (x,), curved, scoped, 0.5), naive(model, (x,), curved, scoped, 0.5), torch.float32)
    assert not any(taken)


def test_a_frozen_bias_counts_for_nothing(taken):
    model, x = _frozen("bias"), torch.randn(9, 6)
    close(ours(model, (x,), curved, Clipping(), 0.5), naive(model, (x,), curved, Clipping(), 0.5), torch.float32)
    assert taken == [True]


def test_a_parameter_that_was_not_used_gets_zeros(taken):
    model = nn.Linear(6, 2)
    model.other = nn.Parameter(torch.ones(3, 3))
    found = ours(model, (torch.randn(9, 6),), curved, Clipping(), 0.5)
    assert taken == [True]
    assert not found[-9:].any() or not found[:9].any()
    assert len(found) == 6 * 2 + 2 + 9


def test_half_precision_is_summed_in_single(taken):
    model, x = nn.Linear(6, 2), torch.randn(40, 6)

    def loss(model, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(x)
        return (out.float() * torch.arange(2.0)).sum()

    found = ours(model, (x,), loss, Clipping(), 0.5)
    assert taken == [True]
    assert found.dtype == torch.float32
    wanted = naive(model, (x.bfloat16().float(),), lambda m, x: (m(x) * torch.arange(2.0)).sum(), Clipping(), 0.5)
    assert float((found.double() - wanted).norm()) < 2e-3 * float(wanted.norm())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 2e19, 3e38])
@pytest.mark.parametrize("where", ["inputs", "gradients"])
def test_a_record_that_is_not_finite_is_left_out_whole(taken, bad, where):
    """Or one whose norm is beyond single precision; the others' sum is what it was."""
    torch.manual_seed(1)
    model, x, g = nn.Linear(5, 2), torch.randn(9, 5), torch.randn(9, 2)
    without, _ = given(model, torch.cat([x[:4], x[5:]]), torch.cat([g[:4], g[5:]]))
    (x if where == "inputs" else g)[4, 1] = bad
    found, _ = given(model, x, g)
    assert taken == [True, False]
    close(found, without.double(), torch.float32)


@pytest.mark.parametrize("outputs", [2, one_pass.THIN + 1])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("inputs", "gradient"), [(1.0, 1.0), (HUGE, TORN), (TORN, HUGE), (1e-30, 1e8)])
def test_no_record_counts_for_more_than_the_clip_norm(outputs, bias, inputs, gradient):
    """In one pass and in the ordinary way; also where the square of one factor is nothing and the other is huge: a
    mean's divisor then makes much of little."""
    model = nn.Linear(50, outputs, bias=bias)
    x, g = torch.zeros(4096, 50), torch.zeros(4096, outputs)
    x[7], g[7] = inputs, gradient
    found, _ = given(model, x, g, clip_norm=0.25, reduction="mean")
    assert float(found.double().norm()) <= 0.25 * (1 + WIDENED)


def test_another_record_moves_the_sum_by_no_more_than_the_clip_norm():
    """Whatever its place: records after it are added in other chunks."""
    torch.manual_seed(3)
    model, x, g = nn.Linear(20, 2), torch.randn(3000, 20).abs(), torch.ones(3000, 2)  # all in one direction
    whole, _ = given(model, x, g)
    for place in (0, 1500, 2999):
        kept = torch.arange(3000) != place
        part, _ = given(model, x[kept], g[kept])
        assert float((whole.double() - part.double()).norm()) <= 1 + WIDENED


def test_the_pass_is_verified(taken):
    """What verification is told are the norms of the pass, for the records that it asks of."""
    model, x, y = nn.Linear(6, 2), torch.randn(9, 6), torch.randint(0, 2, (9,))
    found, told = ClippedSum(trained(model), Clipping(), "mean"), []
    verification = StepVerification(found, lambda below: 0)
    claim = verification.claim
    verification.claim = lambda *args: (told.append(args[1]), claim(*args))
    found.subscribe(verification)
    found.attach(model)
    found.expect(9, (x, y))
    F.cross_entropy(model(x), y).backward()
    found.add(None, 1.0)
    assert taken == [True]
    assert [bool(torch.isfinite(squares[0]).all()) for squares in told] == [True]


# --- room --------------------------------------------------------------------------------------------------------


def test_small_sums_lie_side_by_side_and_are_no_views():
    cpu = torch.device("cpu")
    facts = [
        (torch.Size(shape), dtype, cpu)
        for shape, dtype in (
            ((2, 3), torch.float32),
            ((SMALL + 1,), torch.float32),
            ((4,), torch.float64),
            ((), torch.float32),
            ((0, 2), torch.float32),
            ((5,), torch.float32),
        )
    ]
    found, again = Room(facts).fresh(), Room(facts).fresh()
    assert [(x.shape, x.dtype, x.device) for x in found] == facts
    together = side_by_side([found[i] for i in (0, 3, 4, 5)])
    assert together.shape == (12,)
    together.copy_(torch.arange(12.0))
    assert found[0].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert [found[3].item(), *found[5].tolist()] == [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
    assert {x.data_ptr() for x in found if x.numel()}.isdisjoint(x.data_ptr() for x in again)
    for x in found:
        x.detach_()


def test_what_does_not_lie_side_by_side_is_not_taken_for_one():
    whole = torch.zeros(10)
    assert side_by_side([whole[:4], whole[5:]]) is None
    assert side_by_side([whole[4:], whole[:4]]) is None
    assert side_by_side([whole[:4], torch.zeros(6)]) is None
    assert side_by_side([torch.zeros(2, 2).T, torch.zeros(2)]) is None
