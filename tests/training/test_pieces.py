"""How many pieces a loop meets is public: whatever counts them tells nothing of how many records there were."""

from __future__ import annotations

import pytest
import torch
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import TensorDataset

import discreet as dp
from discreet.training import BallsInBins, KeptBins, PerUser, Poisson, Shuffled, Speed
from discreet.training.sampling.pieces import PLACEHOLDER, dealt, enough
from tests.training.loops import data, network, private, run, step, weights

PIECES = Speed(max_physical_batch_size=3)


def counted(records, sampler, epochs=3):
    """What counts in a loop: the loop itself, torch's average of weights, a scheduler of one's own, by its own hand."""
    model, optimizer, loader = private(network(), records, sampler=sampler, speed=PIECES, epochs=epochs, rng=None)

    class Late(LRScheduler):
        """Defined after the run began, with a step that asks nobody."""

        def get_lr(self):
            return [group["lr"] for group in self.optimizer.param_groups]

        def step(self, epoch=None):
            self.calls = getattr(self, "calls", -1) + 1

    average, scheduler, pieces, largest = AveragedModel(model), Late(optimizer), [], 0
    for _ in range(epochs):
        for batch in loader:
            pieces.append(optimizer.privacy.steps)
            largest = max(largest, len(batch[0]))
            step(model, optimizer, batch)
            average.update_parameters(model)
            scheduler.step()
    assert largest <= 3
    return pieces, int(average.n_averaged), scheduler.calls, optimizer.privacy.steps


@pytest.mark.parametrize("users", [False, True])
def test_what_counts_pieces_counts_the_same_for_neighbours(users):
    """Three steps of twelve records on average, of which no two batches need have as many."""

    def sampler(n):
        if users:
            names = [i // 2 for i in range(n)]
            return PerUser(users=names, batch_size=6, dataset_size=30, records_per_user=2)
        return Poisson(batch_size=12, dataset_size=60)

    x, y = data().tensors
    found = [counted(TensorDataset(x[:n], y[:n]), sampler(n), epochs=1) for n in (60, 58, 30, 2)]
    assert all(one == found[0] for one in found)
    pieces, average, calls, steps = found[0]
    each = enough(22 if users else 34, 2 if users else 1, 3, 1)
    assert (len(pieces), average, calls, steps) == (5 * each, 5 * each, 5, 5)  # a scheduler stands still between them


def test_a_batch_that_needs_more_pieces_has_larger_ones():
    """A declared size far below the true one: as many pieces, with all of the records."""
    model, optimizer, loader = private(sampler=Poisson(batch_size=6, dataset_size=6), speed=PIECES, epochs=1)
    batches = [x for x, _ in loader if step(model, optimizer, (x, torch.zeros(len(x), dtype=torch.long))) is None]
    assert len(batches) == loader.pieces_per_batch == 2
    assert sum(map(len, batches)) == 60


def test_batches_of_public_size_have_no_empty_pieces():
    model, optimizer, loader = private(sampler=Shuffled(batch_size=25, dataset_size=60), speed=PIECES, epochs=1)
    rows = []
    for batch in loader:
        rows.append(len(batch[0]))
        step(model, optimizer, batch)
    assert loader.pieces_per_batch is None
    assert sum(rows) == 60
    assert rows.count(3) == 8 + 8 + 3


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_all_ranks_have_as_many_and_every_record_once(ranks):
    drawn, number = list(range(20)), enough(30, 1, 4, ranks)
    each = [dealt(drawn, None, 0, 4, rank, ranks, number) for rank in range(ranks)]
    assert {len(pieces) for pieces in each} == {number}
    rows = [row for pieces in each for piece in pieces for row in piece.rows if row != PLACEHOLDER]
    assert sorted(rows) == drawn


@pytest.mark.parametrize("size", range(1, 9))
def test_enough_is_enough_for_units_of_any_size(size):
    generator = torch.Generator().manual_seed(size)
    for _ in range(50):
        units, most = (
            int(torch.randint(1, 12, (), generator=generator)),
            int(torch.randint(1, 9, (), generator=generator)),
        )
        owners = [u for u in range(units) for _ in range(int(torch.randint(1, most + 1, (), generator=generator)))]
        pieces = dealt(list(range(len(owners))), owners, 0, size, 0, 1)
        assert len(pieces) <= enough(units, most, size, 1)


def test_empty_pieces_change_nothing():
    whole, cut = (run(*private(speed=speed)) for speed in (None, PIECES))
    torch.testing.assert_close(weights(whole), weights(cut))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [None, 2])
def test_a_record_is_in_exactly_one_bin_of_a_pass_on_any_number_of_ranks(ranks, size):
    """And, where bins are kept, in the same one in every pass."""
    for sampler in (kind(batch_size=7, dataset_size=60) for kind in (BallsInBins, KeptBins)):
        keys, rng = [str(i) for i in range(57)], dp.random.as_rng(5)
        passes = []
        for _ in range(2):
            if not passes or not sampler.kept:
                order = sampler.order(keys, rng)
            bins = [sampler.draw(step, 57, keys, order, rng).tolist() for step in range(sampler.steps_per_pass)]
            shares = [[dealt(drawn, None, 0, size, rank, ranks) for drawn in bins] for rank in range(ranks)]
            rows = [row for share in shares for pieces in share for piece in pieces for row in piece.rows if row >= 0]
            assert sorted(rows) == list(range(57))
            passes.append(bins)
        assert (passes[0] == passes[1]) == sampler.kept
