"""Scale, then privatise: the sum, the bound, the noise, replay, and what scales are made of."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.auditing import ReplayError, replay
from discreet.training import Clipping, MixedRecords, PastGradients, PublicScale, make_private, noise
from discreet.training.gradients import ClippedSum
from discreet.training.gradients.scaling import Scale, Scales
from discreet.training.gradients.units import Owners
from tests.training.loops import network, private, run, step, weights
from tests.training.test_noise import ROWS, trained


def scales(model, seed=3):
    torch.manual_seed(seed)
    return {name: torch.rand_like(p) * 4 + 0.1 for name, p in model.named_parameters()}


MODELS = {
    "layers": (network, lambda: torch.randn(6, 4)),
    "convolution": (
        lambda: nn.Sequential(nn.Conv1d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(9, 2)),
        lambda: torch.randn(6, 2, 5),
    ),
    "table": (
        lambda: nn.Sequential(nn.Embedding(5, 4), nn.LayerNorm(4), nn.Flatten(), nn.Linear(12, 2)),
        lambda: torch.randint(0, 5, (6, 3)),
    ),
}


@pytest.mark.parametrize("scope", ["flat", "per-layer"])
@pytest.mark.parametrize("name", MODELS)
def test_the_sum_is_that_of_scaled_gradients_clipped(name, scope):
    """Against a loop over lone records: scale, clip, add up."""
    made, inputs = MODELS[name]
    torch.manual_seed(0)
    model, x, y = made(), inputs(), torch.randint(0, 2, (6,))
    factors, clipping = scales(model), Clipping(max_grad_norm=0.7, scope=scope)
    names = [n for n, _ in model.named_parameters()]
    blocks, shares = clipping.blocks(names)
    wanted = [torch.zeros_like(p) for p in model.parameters()]
    for i in range(6):
        model.zero_grad()
        F.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
        parts = [p.grad * factors[n] for n, p in model.named_parameters()]
        for block, share in enumerate(shares):
            own = [part for part, b in zip(parts, blocks, strict=True) if b == block]
            norm = torch.cat([part.reshape(-1) for part in own]).norm()
            for total, part, b in zip(wanted, parts, blocks, strict=True):
                if b == block:
                    total += part * min(1.0, 0.7 * share / float(norm))
    model.zero_grad()
    clipped = ClippedSum(dict(model.named_parameters()), clipping, "mean")
    clipped.scale(list(factors.values()))
    clipped.attach(model)
    clipped.begin()
    clipped.expect(6, (x, y))
    F.cross_entropy(model(x), y).backward()
    clipped.add(None, 0.7)
    for total, part in zip(wanted, clipped.total, strict=True):
        assert torch.allclose(total, part, atol=1e-5)


def test_noise_is_in_proportion_to_one_over_the_scale_and_is_what_privacy_says():
    """False alarms: below 1e-9 (20,000 coordinates each; 5 % are 10 standard errors)."""
    model = nn.Linear(20_000, 2, bias=False)
    scale = torch.cat([torch.full((1, 20_000), 4.0), torch.full((1, 20_000), 0.5)])
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(TensorDataset(torch.zeros(10, 20_000)), 10),
        noise_multiplier=3.0,
        epochs=1,
        loss_reduction="mean",
        clipping=Clipping(scale=PublicScale(values={"weight": scale})),
        rng=1,
    )
    for (x,) in loader:
        model(x).square().mean().backward()
        optimizer.step()
    found = model.weight.grad.square().mean(1)
    wanted = optimizer.privacy.noise_variance(model.weight).mean(1)
    assert torch.allclose(wanted, (3.0 * (1 + 2.0**-10) / 10 / scale[:, 0]) ** 2)
    assert torch.allclose(found, wanted, rtol=0.05)
    assert not torch.allclose(found * 1.2, wanted, rtol=0.05)


def test_a_scale_of_ones_changes_nothing_and_no_scale_changes_the_price():
    ones = Clipping(scale=PublicScale(values={}))
    plain, scaled, following = (private(clipping=c) for c in (Clipping(), ones, Clipping(scale=PastGradients())))
    assert plain[1].privacy.planned == scaled[1].privacy.planned == following[1].privacy.planned
    found = [weights(run(*each)) for each in (plain, scaled)]
    assert torch.allclose(*found, atol=1e-5)


HUGE = (9e3, -9e3, 0)


@pytest.mark.parametrize("given", [None, noise.LambdaCGD()])
def test_a_record_moves_the_scaled_sum_by_no_more_than_the_bound_and_scales_by_nothing(given):
    """Record-and-replay: the neighbour meets the same scales, because they are made of what was released."""
    for every in (1, 2):
        clipping = Clipping(max_grad_norm=0.5, scale=PastGradients(every=every, floor=0.01))
        found = replay(lambda rows, c=clipping: trained(rows, given, clipping=c), [HUGE, *ROWS], ROWS, seeded=True)
        assert len(found.steps) == 4


class Spying(Scale):
    """A scale that is not made of what was released, but of records: replay finds it."""

    def __init__(self, secret):
        self.secret = secret

    def begun(self, parameters):
        size = float(len(self.secret))
        return Scales([torch.full_like(p, size) for p in parameters.values()])


def test_a_scale_made_of_records_is_found_by_replay():
    """Power: such a scale comes out with the gradient, which is divided by it."""
    with pytest.raises(ReplayError):
        replay(
            lambda rows: trained(rows, None, clipping=Clipping(scale=Spying(rows))), [HUGE, *ROWS], ROWS, seeded=True
        )


def test_scales_follow_released_gradients_less_their_noise():
    """One coordinate has gradients ten times the others': its scale is a tenth of theirs; lengths are kept."""
    followed = PastGradients(decay=0.9, every=5, floor=0.01).begun({})
    torch.manual_seed(0)
    signal = torch.cat([torch.full((1000,), 10.0), torch.full((1000,), 1.0)])
    for count in range(60):
        assert (followed.values is None) == (count < 5)
        followed.learn([signal + 0.5 * torch.randn(2000)], [0.25])
    found = followed.values[0]
    assert float(found[:1000].mean() / found[1000:].mean()) == pytest.approx(0.1, rel=0.05)
    assert float((found * signal).norm() / signal.norm()) == pytest.approx(1.0, rel=0.02)
    nothing = PastGradients(every=1).begun({})
    nothing.learn([torch.zeros(3)], [1.0])
    assert nothing.values is None, "all of it was noise: scales stay ones"


def test_a_scaled_run_goes_on_from_a_checkpoint_bit_for_bit():
    def begun():
        return private(clipping=Clipping(scale=PastGradients(every=2)), epochs=2)

    model, optimizer, loader = begun()
    for count, batch in enumerate(loader):
        if count == 5:
            break
        step(model, optimizer, batch)
    checkpoint = copy.deepcopy(optimizer.privacy.state_dict())
    assert len(checkpoint["scale"]["values"]) == 4
    run(model, optimizer, loader, 1)
    other, again, batches = begun()
    again.privacy.load_state_dict(checkpoint)
    run(other, again, batches, 1)
    assert torch.equal(weights(model), weights(other))


def test_scaled_runs_are_verified():
    """A loss that mixes records is refused with scales as without."""
    model, optimizer, loader = private(clipping=Clipping(scale=PublicScale(values=scales(network()))))
    run(model, optimizer, loader)
    model, optimizer, loader = private(clipping=Clipping(scale=PublicScale(values=scales(network()))))

    def mixed():
        for x, _ in loader:
            out = model(x)
            (out - out.mean(0)).square().mean().backward()
            optimizer.step()

    with pytest.raises(MixedRecords):
        mixed()


def test_a_unit_in_parts_is_scaled_as_one_in_one_piece():
    """Its sum is divided by the scales as all others are, so it must have been multiplied by them."""
    torch.manual_seed(0)
    first, x = network(), torch.randn(4, 4)

    def summed(pieces):
        model = copy.deepcopy(first)
        clipped = ClippedSum(dict(model.named_parameters()), Clipping(max_grad_norm=0.1), "sum")
        clipped.scale(list(scales(model).values()))
        clipped.attach(model)
        clipped.begin()
        for rows, owners in pieces:
            clipped.expect(len(rows), (rows,), None, owners)
            model(rows).square().sum().backward()
            clipped.add(None, 0.1, owners)
        return clipped.total

    two = torch.zeros(2, dtype=torch.long)
    whole = summed([(x, Owners(torch.zeros(4, dtype=torch.long)))])
    parts = summed([(x[:2], Owners(two, part_of=0, open=True)), (x[2:], Owners(two, part_of=0))])
    for a, b in zip(whole, parts, strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_public_mistakes_are_refused():
    model = network()
    for values, why in (
        ({"nowhere": 1.0}, "nowhere"),
        ({"0.weight": torch.ones(3)}, "shape"),
        ({"0.weight": 0.0}, "above zero"),
        ({"0.weight": float("nan")}, "above zero"),
    ):
        with pytest.raises(ValueError, match=why):
            PublicScale(values=values).begun(dict(model.named_parameters()))
    with pytest.raises(ValueError, match="Scale"):
        Clipping(scale=2.0)
    for wrong in ({"decay": 1.0}, {"every": 0}, {"floor": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            PastGradients(**wrong)
