"""A training run as an operation: public before it reads, charged on the one path, odd targets with a meaning."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import TensorDataset

import discreet as dp
from discreet.auditing import replay
from discreet.release import Operation, Preparing, charged
from discreet.training import Clipping, PrivateTrainingError, Speed, Training, fit
from discreet.training.fitting.losses import cross_entropy, loss_of
from tests.training.loops import data, weights
from tests.training.oracle import naive, ours

QUIET = {"noise_multiplier": 1e-9, "epochs": 1, "batch_size": 10, "lr": 0.5}


def run(**options):
    given = {"dataset_size": 60, "batch_size": 10, "epochs": 1, "noise_multiplier": 1.0} | options
    return Training(lambda: nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2)), **given)


def test_a_run_states_its_event_and_unit_before_it_has_data():
    one = dp.events.PoissonSampled(rate=1 / 6, event=dp.events.Gaussian(noise_multiplier=1.0))
    assert isinstance(run(), Operation)
    assert isinstance(run(), Preparing)
    assert run().event == run().event == one * 6
    assert dp.events.Event.from_json(run().event.to_json()) == run().event
    assert (run().unit, run(unit="patient").unit) == ("one record", "patient")
    assert run().release(data()).event == run().event


def test_each_release_trains_a_new_model_and_a_seed_repeats_it_with_its_first_weights_and_dropout():
    operation, state = run(), torch.random.get_rng_state()
    one, again, other = (operation.release(data(), rng=seed) for seed in (1, 1, 2))
    assert one.value is not again.value
    assert torch.equal(weights(one.value), weights(again.value))
    assert not torch.equal(weights(one.value), weights(other.value))
    assert one.reproducible
    assert not operation.release(data()).reproducible
    assert torch.equal(state, torch.random.get_rng_state())


class Unread(TensorDataset):
    def __getitem__(self, i):
        raise AssertionError("data was read")


class Read(TensorDataset):
    """Tensors that tell of every record that is read."""

    def __getitem__(self, i):
        SEEN.append("read")
        return super().__getitem__(i)


SEEN: list[str] = []


class Book:
    def charge(self, event, label="", *, unit="one record", reproducible=False):
        SEEN.append(f"charge {label}, {unit}")


def test_the_book_is_charged_once_and_before_a_record_is_read():
    SEEN.clear()
    operation = run(placeholder=(torch.zeros(4), torch.tensor(0)))
    charged(operation, Read(*data().tensors), book=Book(), rng=1)
    assert SEEN[0] == "charge private training, one record"
    assert set(SEEN[1:]) == {"read"}
    book = dp.Ledger("sqlite://").open("people", epsilon=0.1, delta=1e-6)
    with pytest.raises(dp.BudgetExceeded):
        fit(
            nn.Linear(4, 2),
            Unread(*data().tensors),
            epochs=1,
            noise_multiplier=1.0,
            book=book,
            placeholder=(torch.zeros(4), torch.tensor(0)),
        )


def test_what_is_publicly_wrong_is_found_before_the_charge():
    SEEN.clear()
    x, y = data().tensors
    for columns in ((x[:, :3], y), (x, y.float()), (x, y[:5]), (x, y[:, None])):
        with pytest.raises(ValueError, match=r"two made-up records|different lengths"):
            charged(run(), columns, book=Book())
    with pytest.raises(ValueError, match="number of records"):
        charged(run(sampler="shuffled", dataset_size=61), data(), book=Book())
    with pytest.raises(ValueError, match="say it in one place"):
        run(sampler=dp.training.Poisson(batch_size=3, dataset_size=50))
    with pytest.raises(ValueError, match="must be a Speed"):
        charged(run(speed={"secure": False}), data(), book=Book())
    assert SEEN == []


def trained(target, model=None, **options):
    torch.manual_seed(0)
    x, _ = data().tensors
    return weights(fit(nn.Linear(4, 2) if model is None else model, (x, target), rng=1, **QUIET | options).value)


@pytest.fixture(scope="module")
def with_target():
    """Weights after training with this target of one record, whole or in pieces; each run is made once."""

    @cache
    def weights_with(target, pieces=None):
        _, y = data().tensors
        y = y.clone()
        y[7] = 1 - y[7] if target == "another class" else target
        return trained(y, speed=Speed(max_physical_batch_size=pieces))

    return weights_with


@pytest.mark.parametrize("odd", [2, -1, -100, 2**62])
def test_a_target_that_is_no_class_of_the_model_contributes_nothing(odd, with_target):
    """Whichever it is; its record is then as if it had no gradient. A class instead would be seen,
    which is the power.
    """
    assert torch.equal(with_target(odd), with_target(5))
    assert not torch.equal(with_target(odd), with_target("another class"))
    assert torch.equal(with_target(odd, pieces=3), with_target(5, pieces=3))


def test_a_record_with_an_odd_target_has_the_gradient_zero_and_the_others_have_theirs():
    """The sum is the naive one over the records that have a class, divided by all of them."""
    x, y = data(8).tensors
    wrong = y.clone()
    wrong[3] = 9
    kept = torch.tensor([i for i in range(8) if i != 3])
    for loss in (lambda m, a, b: cross_entropy(m(a), b), lambda m, a, b: loss_of(F.cross_entropy, m(a), b)):
        model = nn.Linear(4, 2)
        found = ours(model, (x, wrong), loss, Clipping(), 0.5, "mean")
        wanted = naive(model, (x[kept], y[kept]), lambda m, a, b: F.cross_entropy(m(a), b), Clipping(), 0.5)
        torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-6)


def test_a_loss_that_fails_on_a_target_leaves_its_record_out():
    def strict(scores, target):
        if (target > 1).any():
            raise ValueError(f"no class: {target.max()}")
        return F.cross_entropy(scores, target)

    _, y = data().tensors
    wrong, other = y.clone(), y.clone()
    wrong[7], other[7] = 2, 3
    assert torch.equal(trained(wrong, loss_fn=strict), trained(other, loss_fn=strict))
    torch.testing.assert_close(trained(wrong, loss_fn=strict), trained(wrong))


def test_a_loss_that_fails_on_whole_batches_alone_stops_with_one_fixed_sentence():
    def never(scores, target):
        if len(scores) > 2:
            raise RuntimeError(f"secret {scores.max()}")
        return F.cross_entropy(scores, target)

    with pytest.raises(PrivateTrainingError, match=r"Training stopped \(RuntimeError\)\. The message is withheld"):
        trained(data().tensors[1], loss_fn=never)


def test_a_run_with_odd_records_passes_replay():
    """With and without a record of no class and no finite input; sums,
    steps and errors are those that the price covers.
    """
    x, y = data(12).tensors
    odd = torch.cat([torch.full((1, 4), torch.nan), x]), torch.cat([torch.tensor([-3]), y])
    operation = run(dataset_size=12, batch_size=4)

    def published(records):
        made = operation.release(TensorDataset(*records), rng=1)
        return replace(made, value=[p.detach().numpy() for p in made.value.parameters()])

    for pair in ((odd, (x, y)), ((x, y), odd)):
        assert len(replay(published, *pair, seeded=True).steps) == 3
