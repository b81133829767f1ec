"""What a checkpoint of another's loop may hold: nothing that tells of records."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from discreet.training.integrations.terms import TrainerTerms
from tests.training.loops import data, network, step


def batches(**terms):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data(), batch_size=10)
    found = TrainerTerms(noise_multiplier=1.0, **terms).arranged(model, optimizer, loader, lambda piece: None, epochs=2)
    return found, model, optimizer


def trained(steps, **terms):
    found, model, optimizer = batches(**terms)
    for batch in found:
        step(model, optimizer, batch)
        if found.privacy.steps == steps:
            break
    return found


@pytest.mark.parametrize("sampler", ["balls-in-bins", "kept-bins"])
def test_a_checkpoint_does_not_tell_which_batch_a_record_is_in(tmp_path, sampler):
    state = trained(2, sampler=sampler).state_dict()
    assert state["order"] is None
    other, *_ = batches(sampler=sampler)
    with pytest.raises(ValueError, match="give secrets="):
        other.load_state_dict(state)
    kept = trained(2, sampler=sampler, secrets=tmp_path)
    resumed, *_ = batches(sampler=sampler, secrets=tmp_path)
    resumed.load_state_dict(kept.state_dict())
    assert resumed.privacy.steps == 2
    torch.testing.assert_close(resumed.run._pass[1], kept.run._pass[1])


def test_between_two_passes_nothing_secret_is_needed():
    state = trained(6, sampler="balls-in-bins").state_dict()
    other, model, optimizer = batches(sampler="balls-in-bins")
    other.load_state_dict(state)
    for batch in other:
        step(model, optimizer, batch)
    assert other.privacy.remaining_steps == 0


def test_a_checkpoint_holds_no_generator_unless_there_is_a_seed():
    torch.manual_seed(0)
    assert "chance" not in trained(1).state_dict()
    seeded = trained(1, rng=1)
    assert torch.equal(seeded.state_dict()["chance"], torch.get_rng_state())
