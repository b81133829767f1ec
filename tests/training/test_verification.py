"""Verification refuses what mixes records, loses gradients or keeps what it saw, and passes what does not."""

from __future__ import annotations

import itertools
import random
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import MixedRecords, PrivateTrainingError, make_private
from discreet.training.errors import UNEQUAL, UNJUDGED
from discreet.training.gradients import contraction
from discreet.training.gradients.clipped_sum import ClippedSum
from discreet.training.gradients.clipping import Clipping
from discreet.training.verification import compare as agreement
from discreet.training.verification import explanation, judgement
from discreet.training.verification.replay import restore_chance
from discreet.training.verification.verification import FIRST, Schedule, StepVerification
from tests.training import adversaries, honest, sensitivity
from tests.training.adversaries import (
    Around,
    Book,
    C,
    Codebook,
    D,
    Words,
    centre,
    later,
    tensors,
    token_mean,
    train,
    words,
)
from tests.training.loops import private, step, weights


@pytest.mark.parametrize("name", adversaries.MIXED)
def test_what_mixes_records_loses_gradients_or_writes_state_is_refused(name):
    adversaries.KEPT.clear()
    with pytest.raises((PrivateTrainingError, ValueError), match=r"\w"):
        adversaries.MIXED[name]()
    assert not _get_current_function_mode_stack() or name  # the loop was left in the middle of a batch


@pytest.mark.parametrize("name", honest.APART)
def test_what_treats_records_apart_passes(name):
    honest.APART[name].train()
    assert not _get_current_function_mode_stack()


def test_both_lists_are_long_enough():
    assert len(adversaries.MIXED) >= 60
    assert len(honest.APART) >= 60


@pytest.mark.parametrize(
    "sampler",
    [name if name == "poisson" else pytest.param(name, marks=pytest.mark.slow) for name in sensitivity.SAMPLERS],
)
def test_a_worst_case_record_moves_the_released_sum_by_at_most_the_clip_norm(sampler):
    moved = []
    for name, case in honest.APART.items():
        if name in honest.CHANCE:
            continue
        found, most = sensitivity.movement(case, sampler)
        assert found <= most, name
        moved.append(found / most)
    assert max(moved) > 0.4  # the bound is met by somebody, so the measure sees what it should
    assert len(moved) >= 50


# --- the findings ----------------------------------------------------------------------------------------------------


def test_a_token_mean_inside_the_model_is_refused_also_where_all_losses_are_alike():
    """Near initialisation every token has nearly the same loss; its gradient does not."""

    def quiet(scores, labels):
        return token_mean(0.01 * scores, labels)

    model = Words(quiet)
    x, y = tensors("words")
    values = [float(model(x[i : i + 1], y[i : i + 1])["loss"].detach()) for i in range(8) if bool((y[i] != -100).any())]
    assert max(values) - min(values) < 1e-2 * max(values)
    with pytest.raises(MixedRecords, match="alone"):
        words(quiet)


def test_an_order_that_is_changed_between_two_layers_must_be_changed_back():
    """Rows that were picked keep their owners (the zoo has that exactly); answers in another order mix records."""
    train(adversaries.Gated(back=True))
    with pytest.raises(MixedRecords):
        train(adversaries.Gated(back=False))


def test_weights_that_the_first_batch_decides_are_refused_by_name():
    with pytest.raises(PrivateTrainingError, match=r"Parameter '0\.shift' of Sequential"):
        train(nn.Sequential(adversaries.ActNorm(), nn.Linear(D, C)))


def test_a_codebook_that_some_passes_rewrite_is_refused_by_name():
    with pytest.raises(PrivateTrainingError, match="Buffer 'codes' of Codebook"):
        train(Codebook(every=16), steps=30, epochs=8)


def test_mixup_in_the_collate_function_is_refused_as_such():
    with pytest.raises(MixedRecords, match="collate function"):
        adversaries.MIXED["mixup in the collate function"]()


def test_padding_that_has_an_effect_is_refused():
    """A mean over the length of the batch: the longest record decides how much of the others is left."""

    class Careless(honest.Pooled):
        def forward(self, x):
            return self.out(self.word(x).mean(1))

    with pytest.raises(MixedRecords, match="padding"):
        honest.Case(Careless, data=honest.Ragged, collate=honest.padded).train()


# --- what a refusal says ---------------------------------------------------------------------------------------------


def test_a_refusal_on_made_up_records_names_the_module():
    model = nn.Sequential(nn.Linear(D, 4), adversaries.BatchRenorm(), nn.Linear(4, C))
    with pytest.raises(MixedRecords, match=r"BatchRenorm \(1\)"):
        train(model)


def only_on_large(m, x):
    """Mixes only where values are larger than made-up ones can be."""
    return x - x.mean(0) * (x.abs().max() > 5000).float()


def large():
    x, y = tensors()
    return TensorDataset(1e4 * x, y)


def test_a_refusal_on_private_records_is_one_fixed_sentence_and_debug_says_more():
    with pytest.raises(MixedRecords) as fixed:
        train(Around(before=only_on_large), data=large())
    assert str(fixed.value) == UNEQUAL
    with pytest.raises(MixedRecords, match=r"Around \(the model\)"):
        train(Around(before=only_on_large), data=large(), debug=True)


def test_a_run_for_debugging_says_that_it_is_not_private():
    _, optimizer, _ = private(debug=True, rng=None)
    assert not optimizer.privacy.private
    assert "not private" in repr(optimizer.privacy)
    assert private(rng=None)[1].privacy.private


def looped(out, y):
    """A loss that no replay on one record can follow."""
    return sum(F.cross_entropy(out[i], y[i]) for i in range(len(y))) / len(y)


def test_what_cannot_be_judged_is_refused_unless_a_reason_is_given_which_the_account_repeats():
    with pytest.raises(PrivateTrainingError) as refused:
        train(Around(), looped)
    assert str(refused.value) == UNJUDGED
    book = Book()
    _, optimizer = train(Around(), looped, unverified="one row at a time", book=book)
    assert optimizer.privacy.unverified == "one row at a time"
    assert "one row at a time" in repr(optimizer.privacy)
    assert book.label == "private training [not verified: one row at a time]"


def test_a_reason_does_not_excuse_what_is_seen_to_mix():
    with pytest.raises(MixedRecords):
        train(Around(before=lambda m, x: centre(x)), unverified="trust me")


# --- what can never fail ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30, 0.0, -1e-30])
def test_no_record_makes_an_honest_loop_fail(value):
    x, y = tensors()
    x[::3] = value
    train(Around(), data=TensorDataset(x, y))


def test_records_on_a_kink_pass():
    """Half of all inputs are where the slope changes, or within rounding of it."""
    model = nn.Sequential(nn.Linear(D, 8, bias=False), nn.ReLU(), nn.Linear(8, C))
    x, y = tensors()
    x[::2] = 0
    x[::4] = 1e-42
    train(model, data=TensorDataset(x, y))


def test_a_gradient_that_is_all_rounding_passes():
    """A bias before a norm has none: what is computed is noise, and differs alone."""
    model = nn.Sequential(nn.Linear(D, 8), nn.LayerNorm(8, elementwise_affine=False), nn.Linear(8, C))
    with torch.no_grad():
        model[0].weight.zero_()
    train(model)


def test_sums_over_very_many_positions_pass(monkeypatch):
    """Before a mean over an image every position gets the same gradient, which oneDNN adds up one after another."""
    closer, ask = [], agreement.Agreement.beyond_rounding
    monkeypatch.setattr(agreement.Agreement, "beyond_rounding", lambda *a: (closer.append(ask(*a)), closer[-1])[1])
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 2))
    torch.manual_seed(0)
    x, y = torch.rand(3, 1, 226, 226), torch.tensor([0, 1, 0])
    x[0] = 0.9  # a blank image: its weights' sums are as long, and as even
    found = ClippedSum(dict(model.named_parameters()), Clipping(), "mean")
    found.subscribe(StepVerification(found, lambda below: 0))
    found.attach(model)
    found.expect(3, (x, y))
    F.cross_entropy(model(x), y).backward()
    found.add(None, 1.0)
    assert closer or not torch.backends.mkldnn.is_available()
    assert not any(closer)


def test_another_generator_in_the_place_of_numpys_is_put_back():
    before = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's, that the state is no tuple
            began = random.getstate(), np.random.get_state()  # noqa: NPY002
            drawn = np.random.random()  # noqa: NPY002
            with restore_chance(SimpleNamespace(chance=began)):
                assert np.random.random() == drawn  # noqa: NPY002
            assert np.random.random() != drawn  # noqa: NPY002
    finally:
        np.random.set_bit_generator(before)


def test_a_difference_beyond_rounding_is_looked_at_twice(monkeypatch):
    """The branch that asks how stable a gradient is runs where claims differ, and decides nothing for a loop that
    mixes."""
    seen, ask = [], agreement.Agreement.beyond_rounding
    monkeypatch.setattr(agreement.Agreement, "beyond_rounding", lambda *a, **k: (seen.append(1), ask(*a, **k))[1])
    with pytest.raises(MixedRecords):
        train(Around(before=lambda m, x: centre(x)))
    assert seen
    seen.clear()
    train(Around())
    assert not seen


def test_a_claimed_norm_that_is_too_small_is_refused(monkeypatch):
    """The gradient is right, its norm is not: the record would pass unclipped."""
    right = contraction._norms
    monkeypatch.setattr(contraction, "_norms", lambda uses: 0.25 * right(uses))
    with pytest.raises(MixedRecords):
        train(Around())


def test_batches_of_one_record_pass_by_rule():
    train(Around(), batch=1, steps=6)


# --- when ------------------------------------------------------------------------------------------------------------


def test_the_first_batches_and_one_of_every_stretch_are_verified():
    source = random.Random(0)
    schedule = Schedule(source.randrange)
    verified = [step for step in range(400) if schedule.next(4)]
    assert verified[:FIRST] == list(range(FIRST))
    gaps = [b - a for a, b in itertools.pairwise(verified)]
    assert max(gaps) < 128
    assert len([v for v in verified if v < 200]) <= 8
    other = Schedule(random.Random(1).randrange)
    assert [step for step in range(400) if other.next(4)] != verified  # at random


def test_a_batch_of_one_record_hands_its_turn_to_the_next():
    schedule = Schedule(lambda below: 0)
    assert [schedule.next(n) for n in (1, 4, 1, 4)] == [False, True, False, True]


def test_a_model_that_mixes_later_on_is_met_there():
    seen, judge = [], judgement.Judge.judge

    def count(self, *args, **options):
        seen.append(1)
        return judge(self, *args, **options)

    judgement.Judge.judge = count
    try:
        with pytest.raises(MixedRecords) as refused:
            train(Around(before=later(centre, 40)), steps=118, epochs=24)
    finally:
        judgement.Judge.judge = judge
    assert str(refused.value) == UNEQUAL
    assert len(seen) > FIRST


# --- no trace --------------------------------------------------------------------------------------------------------


def test_a_verified_run_is_the_run_it_would_have_been(monkeypatch):
    """Dropout, counters and generators are as if nobody had looked."""
    case = honest.APART["dropout"]
    one = weights(case.train(steps=5))
    monkeypatch.setattr(Schedule, "next", lambda self, records: False)
    assert torch.equal(weights(case.train(steps=5)), one)


def test_nothing_is_held_after_a_verified_step():
    model, optimizer, loader = private()
    for batch in loader:
        step(model, optimizer, batch)
        verification = optimizer.privacy._run.verification
        assert verification._batch is None


def test_an_explanation_is_asked_for_only_where_it_may_be_given(monkeypatch):
    asked = []
    monkeypatch.setattr(explanation, "refuse", lambda *a, **k: asked.append(1))
    with pytest.raises(MixedRecords, match="In a verified batch"):
        train(Around(before=only_on_large), data=large())
    assert not asked


def test_a_size_of_the_batch_in_a_loss_is_known_by_following_it():
    """Declared a sum, the loss is divided by the number of records, told to Python: it changes from batch to batch."""
    with pytest.raises(MixedRecords):
        adversaries.MIXED["mean by hand declared a sum"]()
    honest.APART["constant divisor"].train(steps=5)


def test_two_runs_at_once_are_both_verified():
    ours, theirs = private(), private(noise_multiplier=2.0)
    for one, other in zip(ours[2], theirs[2], strict=True):
        step(*ours[:2], one)
        step(*theirs[:2], other)
    mixing = make_private(
        m := Around(before=lambda m, x: centre(x)),
        torch.optim.SGD(m.parameters(), lr=0.1),
        DataLoader(TensorDataset(*tensors()), 8),
        epochs=1,
        noise_multiplier=1.0,
        loss_reduction="mean",
    )
    third = private()

    def both():
        for one, other in zip(third[2], mixing[2], strict=False):
            step(*third[:2], one)
            step(*mixing[:2], other)

    with pytest.raises(MixedRecords):
        both()
