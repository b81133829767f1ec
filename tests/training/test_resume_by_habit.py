"""``model.load_state_dict`` and ``optimizer.load_state_dict``, as every loop does: the count of steps goes on."""

from __future__ import annotations

import io
import logging

import pytest
import torch
from torch.utils.data import DataLoader

import discreet as dp
from discreet.training import Clipping, PrivateTrainingError, Quantile, make_private
from discreet.training.optimisers import DiSK
from discreet.training.optimisers.marks import MARK
from tests.training.loops import data, network, private, run, step

STEPS = 12  # of the plan of ``private``: two passes of six


def half_way(**options):
    """What a habitual loop saves in the middle of the first pass."""
    model, optimizer, loader = private(**options)
    for i, batch in enumerate(loader):
        if i == 4:
            break
        step(model, optimizer, batch)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optim": optimizer.state_dict()}, file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=True)


def resumed_after(saved, **options):
    model, optimizer, loader = private(network(5), **options)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optim"])
    return model, optimizer, loader


def resumed_before(saved, kind=torch.optim.SGD, **options):
    model = network(5)
    optimizer = kind(model.parameters(), lr=0.1)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optim"])
    options = {"epochs": 2, "noise_multiplier": 1.0, "loss_reduction": "mean", "rng": 1} | options
    return make_private(model, optimizer, DataLoader(data(), 10), **options)


@pytest.mark.parametrize("resumed", [resumed_after, resumed_before])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, lambda p, lr: DiSK(torch.optim.Adam(p, lr))])
def test_the_count_goes_on_and_a_run_ends_where_its_plan_does(resumed, kind, caplog):
    saved = half_way(optimizer=kind)
    with caplog.at_level(logging.WARNING, "discreet.training"):
        model, optimizer, loader = (
            resumed(saved, optimizer=kind) if resumed is resumed_after else resumed(saved, kind=kind)
        )
    assert optimizer.privacy.steps == 4
    assert "4 steps: this run goes on from there, with 8 left" in caplog.text
    assert all(MARK not in group for group in optimizer.param_groups)
    with pytest.raises(dp.BudgetExceeded):
        run(model, optimizer, loader, epochs=3)
    assert optimizer.privacy.steps == STEPS


def test_an_adapted_clip_norm_goes_on_too():
    adaptive = {"clipping": Clipping(adaptive=Quantile(count_noise=2.0))}
    saved = half_way(**adaptive)
    norm = saved["optim"]["param_groups"][0][MARK]["clip_norm"]
    assert resumed_after(saved, **adaptive)[1].privacy.clip_norm == norm != 1.0


def test_the_state_of_another_plan_is_refused_before_the_charge_where_it_is_loaded_before():
    saved = half_way()
    with pytest.raises(ValueError, match="4 steps of another plan"):
        resumed_after(saved, noise_multiplier=2.0)
    book = dp.Ledger("sqlite://").open("people", epsilon=100.0, delta=1e-2)
    with pytest.raises(ValueError, match=r"load the model alone, with model\.load_state_dict"):
        resumed_before(saved, noise_multiplier=2.0, book=book)
    assert book.spent().epsilon == 0


@pytest.mark.parametrize("option", [{"noise": dp.training.noise.Banded(bands=2)}, {"sampler": "kept-bins"}])
def test_a_run_that_needs_more_than_the_optimizer_holds_is_refused_with_the_line_to_write(option):
    model, optimizer, loader = resumed_after(half_way(**option), **option)
    with pytest.raises(PrivateTrainingError, match=r"optimizer\.privacy\.load_state_dict"):
        run(model, optimizer, loader, epochs=1)


def test_one_that_is_shuffled_goes_on_between_two_passes():
    model, optimizer, loader = private(sampler="shuffled")
    run(model, optimizer, loader, epochs=1)
    saved = {"model": model.state_dict(), "optim": optimizer.state_dict()}
    assert run(*resumed_after(saved, sampler="shuffled"), epochs=1) is not None


def test_steps_of_two_runs_are_never_counted_as_one():
    saved = half_way()
    model, optimizer, loader = private()
    run(model, optimizer, loader, epochs=1)
    with pytest.raises(ValueError, match="this run has made 6 of its own"):
        optimizer.load_state_dict(saved["optim"])


def test_going_back_to_the_best_state_of_the_same_run_does_not_move_the_count_back():
    model, optimizer, loader = private()
    run(model, optimizer, loader, epochs=1)
    best = {"model": model.state_dict(), "optim": optimizer.state_dict()}
    run(model, optimizer, loader, epochs=1)
    model.load_state_dict(best["model"])
    optimizer.load_state_dict(best["optim"])
    assert optimizer.privacy.steps == STEPS


def test_a_plain_state_is_a_beginning_and_a_private_one_serves_a_plain_optimizer():
    model = network()
    plain = torch.optim.Adam(model.parameters())
    model(torch.randn(3, 4)).sum().backward()
    plain.step()
    saved = {"model": model.state_dict(), "optim": plain.state_dict()}
    for optimizer in (
        resumed_after(saved, optimizer=torch.optim.Adam)[1],
        resumed_before(saved, kind=torch.optim.Adam)[1],
    ):
        assert optimizer.privacy.steps == 0
    plain.load_state_dict(half_way(optimizer=torch.optim.Adam)["optim"])
    plain.step()
