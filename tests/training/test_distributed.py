"""Several ranks do what one process does: the same batches, the same clipped sum, the same price, noise once.

One group of two processes answers for most tests; what it found is compared here with a run of this process. Where
sums are compared the noise is next to nothing, so that they show.
"""

from __future__ import annotations

import copy
import math
import os
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from discreet.errors import BudgetExceeded
from discreet.training import (
    Clipping,
    PerUser,
    PrivateTrainingError,
    PublicScale,
    Quantile,
    Speed,
    TruncatedPoisson,
    fit,
    make_private,
)
from discreet.training.distributed import Ranks, Shards, SharedStreams
from discreet.training.noise import BandedInverse, LambdaCGD
from tests.training.loops import N, data, network, private, step, weights
from tests.training.ranks import on_ranks

QUIET = {"noise_multiplier": 1e-9}
PIECES = {"speed": Speed(max_physical_batch_size=3)}
ALARM = 1e-9  # the chance that a right noise is refused, of each test of a variance
BACK = 0.5
MOMENTUM = partial(torch.optim.SGD, momentum=0.9)  # not Adam: it makes much of a gradient that is all noise


class Tied(nn.Module):
    """A table that is also the output layer; with ``making``, beside a weight that is made of parameters."""

    def __init__(self, making=False):
        super().__init__()
        self.making = making
        torch.manual_seed(3)
        self.table, self.inner, self.out = nn.Embedding(7, 5), nn.Linear(5, 5), nn.Linear(5, 7, bias=False)
        self.out.weight = self.table.weight
        self.scale = nn.Parameter(torch.full((1,), 0.5))

    def forward(self, x):
        hidden = torch.tanh(self.inner(self.table(x).mean(1)))
        return self.out(F.linear(hidden, self.inner.weight * self.scale.exp()) if self.making else hidden * self.scale)


def tokens():
    generator = torch.Generator().manual_seed(5)
    return TensorDataset(torch.randint(7, (N, 4), generator=generator), torch.randint(7, (N,), generator=generator))


def wrapped(model):
    return nn.parallel.DistributedDataParallel(model)


def sharded(model, *parts):
    from torch.distributed.fsdp import fully_shard

    for part in parts:
        fully_shard(model.get_submodule(part))
    return fully_shard(model)


def whole(model):
    parts = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in model.parameters()]
    return torch.cat([part.detach().flatten() for part in parts])


def all_of(model, optimizer, loader):
    """All steps of the plan."""
    while optimizer.privacy.remaining_steps:
        for batch in loader:
            step(model, optimizer, batch)
            if not optimizer.privacy.remaining_steps:
                break
    return model


def trained(model=None, **options):
    return whole(all_of(*private(model, **QUIET | {"epochs": 1} | options))).numpy()


def raised(act):
    try:
        act()
    except Exception as error:
        return type(error), str(error)
    return None


# --- what runs are compared ------------------------------------------------------------------------------------------

ADAPTIVE = {"clipping": Clipping(adaptive=Quantile(count_noise=1e-6))}
# a user of seven records is larger than a piece, and no user is cut between ranks
USERS = [min(i // 7, 4) if i < 30 else i for i in range(N)]
BY_USER = {"sampler": PerUser(batch_size=12, dataset_size=35, users=USERS, records_per_user=7)}
COMMON = {
    "as it is": lambda wrap: trained(wrap(network())),
    "in pieces": lambda wrap: trained(wrap(network()), **PIECES),
    "empty batches": lambda wrap: trained(wrap(network()), batch=1, epochs=0.15),
    "padded batches": lambda wrap: trained(wrap(network()), sampler=TruncatedPoisson(batch_size=10, dataset_size=N)),
    "bins": lambda wrap: trained(wrap(network()), sampler="balls-in-bins"),
    "adaptive": lambda wrap: trained(wrap(network()), **ADAPTIVE),
    "users": lambda wrap: trained(wrap(network()), **BY_USER),
    "users in pieces": lambda wrap: trained(wrap(network()), **BY_USER, **PIECES),
    "tied": lambda wrap: trained(wrap(Tied()), records=tokens(), optimizer=MOMENTUM),
    "made of parameters": lambda wrap: trained(wrap(Tied(making=True)), records=tokens()),
}

SCALED = {"clipping": Clipping(scale=PublicScale(values={"0.weight": 3.0, "2.bias": 0.5}))}


def later(model):
    """Wrapped after make_private."""
    model, optimizer, loader = private(model, epochs=1, **QUIET)
    return weights(all_of(wrapped(model), optimizer, loader)).numpy()


class Book:
    """Notes a charge in a file, or refuses."""

    def __init__(self, place, refuses=False):
        self.place, self.refuses = place, refuses

    def charge(self, event, label="", *, unit="one record", reproducible=False):
        if self.refuses:
            raise BudgetExceeded("the book is empty")
        with open(self.place, "a") as file:
            file.write(f"{label}\n")


def noisy(count=40, size=2000, **options):
    """The noisy gradients of a model whose records have none, in standard deviations of the noise."""
    records = TensorDataset(torch.zeros(100, 1))
    options = {"epochs": 2, "noise_multiplier": 2.0, "max_grad_norm": 3.0, "loss_reduction": "mean"} | options
    model = nn.Linear(1, size, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    model, optimizer, loader = make_private(model, optimizer, DataLoader(records, 5), **options)
    found = []
    while len(found) < count:
        for (x,) in loader:
            optimizer.zero_grad()
            model(x).sum(1).mean().backward()
            optimizer.step()
            found.append(model.weight.grad.flatten().clone())
    return torch.stack(found).numpy() * 5 / 6


def one_number(noise):
    """A model that has no part for one of two ranks to draw noise for."""
    return noisy(noise=noise, epochs=1, count=3, size=1)


def mixing(rank):
    """A loss that compares the records of a batch, on rank 1 alone."""
    model, optimizer, loader = private()
    for x, y in loader:
        optimizer.zero_grad()
        found = F.cross_entropy(model(x), y, reduction="none")
        (found.mean() if rank == 0 else found.mean() ** 2).backward()
        optimizer.step()


def skipping(rank):
    """Rank 1 makes no step for one batch, so that a record could be in two parts of the next sum."""
    model, optimizer, loader = private()
    for number, batch in enumerate(loader):
        if not (rank and number == 1):
            step(model, optimizer, batch)


def other_way_round(rank):
    """The same records in another order on rank 1, where a record would be drawn in two places."""
    return TensorDataset(*(x.flip(0) if rank else x for x in data().tensors))


def other_users(rank):
    """Users that rank 1 groups in another way, so that it draws other records."""
    users = np.arange(N) // 3 if rank == 0 else np.arange(N)[::-1] // 3
    return PerUser(users=users, batch_size=5, dataset_size=20, records_per_user=2)


def moved(rank):
    """Weights that rank 0 alone has loaded: a record that comes or goes moves the others to another model."""
    model, optimizer, loader = private()
    if rank == 0:
        model.load_state_dict(network(seed=5).state_dict())
    all_of(model, optimizer, loader)


class Unsteady(torch.utils.data.Dataset):
    """Records that are others each time they are read, by a generator of their own."""

    def __init__(self):
        self.generator = np.random.default_rng(1)

    def __len__(self):
        return N

    def __getitem__(self, place):
        return self.generator.normal(size=4).astype("f"), place % 2


class Gathering(nn.Module):
    """Every row has that of the same place on the other rank in it."""

    def __init__(self, rank):
        super().__init__()
        self.rank, self.inner = rank, network()

    def forward(self, x):
        import torch.distributed as dist

        found = self.inner(x)
        gathered = [torch.empty_like(found) for _ in range(2)]
        dist.all_gather(gathered, found.detach())
        return found + gathered[1 - self.rank]


class Gathered(torch.autograd.Function):
    """As torch.distributed.nn does it, in the loss: what fills the tensor is no torch function."""

    @staticmethod
    def forward(ctx, found):
        import torch.distributed as dist

        gathered = [torch.empty_like(found) for _ in range(2)]
        dist.all_gather(gathered, found)
        return tuple(gathered)

    @staticmethod
    def backward(ctx, *gradients):
        return sum(gradients)


def gathering(rank):
    model, optimizer, loader = private(sampler="fixed-size")
    for x, y in loader:
        optimizer.zero_grad()
        found = model(x)
        F.cross_entropy(found + Gathered.apply(found)[1 - rank], y).backward()
        optimizer.step()


def halves():
    """A checkpoint half way."""
    model, optimizer, loader = private(optimizer=MOMENTUM, **QUIET)
    for batch in loader:
        step(model, optimizer, batch)
    return optimizer.privacy.state_dict()


def resumed(state, wrap=lambda model: model):
    model, optimizer, loader = private(wrap(network(seed=9)), optimizer=MOMENTUM, **QUIET)
    optimizer.privacy.load_state_dict(copy.deepcopy(state))  # torch's optimisers go on in the tensors they are given
    for batch in loader:
        step(model, optimizer, batch)
    return whole(model).numpy()


def shares(loops=20):
    """The records that this rank got, batch by batch, of a run without a seed."""
    *_, loader = private(rng=None)
    return [[i for i in loader.run.batch.indices if i >= 0] for _ in range(loops) for _ in loader]


def kept_whole(act):
    """For each batch of a run, whether the model was kept whole for it."""
    seen, begin = [], Shards.begin

    def noted(self, verified):
        begin(self, verified)
        seen.append(self._held is not None)

    Shards.begin = noted
    try:
        return act(sharded), seen
    finally:
        Shards.begin = begin


def everything(rank, count, folder, half):
    from torch.distributed.fsdp import fully_shard

    found = {
        "wrapped": {name: act(wrapped) for name, act in COMMON.items()},
        "scaled": trained(wrapped(network()), **SCALED),
        "bare": trained(network(seed=rank)),  # rank 0's weights are taken
        "later": later(network()),
        "sharded": {name: kept_whole(act) for name, act in COMMON.items()},
        "sharded by layers": trained(sharded(network(), "0", "2"), **PIECES),
        "half": halves(),
        "resumed": resumed(half, wrapped),
        "resumed in shards": resumed(half, sharded),
    }
    place = folder / "charges"
    _, optimizer, _ = private(wrapped(network()), book=Book(place), label="together")
    found["planned"] = optimizer.privacy.planned.to_json()
    options = {"epochs": 1, "noise_multiplier": 1.0, "loss_reduction": "mean"}
    late = private()
    fully_shard(late[0])

    def other_sampler():
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        make_private(model, optimizer, DataLoader(data(), 10, sampler=DistributedSampler(data())), **options)

    refused = wrapped(network())
    found["refused"] = {
        "empty book": raised(lambda: private(refused, book=Book(place, refuses=True))),
        "book elsewhere": raised(lambda: private(book=Book(place) if rank else None)),
        "other noise": raised(lambda: private(noise_multiplier=1.0 + rank)),
        "other data": raised(lambda: private(records=data(N - rank), dataset_size=N)),
        "one rank's option": raised(lambda: private(max_grad_norm=-1.0 if rank else 1.0)),
        "sampler": raised(other_sampler),
        "fit": raised(lambda: fit(network(), data(), epochs=1, batch_size=10, noise_multiplier=1.0)),
        "sharded late": raised(lambda: all_of(*late)),
        "mixing": raised(lambda: mixing(rank)),
        "skipping": raised(lambda: skipping(rank)),
        "other users": raised(lambda: all_of(*private(sampler=other_users(rank)))),
        "other order": raised(lambda: all_of(*private(records=other_way_round(rank)))),
        "other rate": raised(lambda: all_of(*private(lr=0.1 + rank))),
        "other weights": raised(lambda: moved(rank)),
        "unsteady": raised(lambda: all_of(*private(records=Unsteady()))),
        "gathering in the model": raised(lambda: all_of(*private(Gathering(rank), sampler="fixed-size"))),
        "gathering in the loss": raised(lambda: gathering(rank)),
    }
    found["averages as before"] = refused.require_backward_grad_sync
    found["shares"] = shares()
    found["noise"] = noisy()
    found["noise in slices of a seed"] = noisy(rng=4)
    found["believed"] = raised(lambda: all_of(*private(records=Unsteady(), epochs=0.5, unverified="same seeds")))
    found["one number"] = [one_number(noise) for noise in (LambdaCGD(back=BACK), BandedInverse(bands=2))]
    found["correlated noise"] = noisy(noise=LambdaCGD(back=BACK), epochs=1, count=20, size=4000)
    return found


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    answers = on_ranks(2, everything, folder, halves())
    for answer in answers:
        answer["whole"] = {name: seen for name, (_, seen) in answer["sharded"].items()}
        answer["sharded"] = {name: found for name, (found, _) in answer["sharded"].items()}
        answer["charges"] = (folder / "charges").read_text()
    return answers


def close(one, other):
    assert np.abs(one).max() > 0.05
    return np.abs(one - other).max() < 2e-5


# --- one process, or several -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["wrapped", "sharded"])
@pytest.mark.parametrize("name", COMMON)
def test_two_ranks_end_where_one_process_does(two, kind, name):
    alone = COMMON[name](lambda model: model)
    assert all(close(alone, answer[kind][name]) for answer in two)


def test_scales_are_taken_off_the_sum_of_all_ranks(two):
    alone = trained(network(), **SCALED)
    assert not np.allclose(alone, trained(network()), atol=1e-3)  # they make a difference
    assert all(close(alone, answer["scaled"]) for answer in two)


def test_a_sharded_model_is_whole_only_where_records_are_run_alone(two):
    assert two[0]["whole"] == two[1]["whole"]
    seen = two[0]["whole"]
    assert all(seen["made of parameters"])
    for name in ("as it is", "tied", "in pieces"):
        assert seen[name][:2] == [True, True]
        assert 0 < sum(seen[name]) < len(seen[name])


def test_the_order_of_calls_does_not_matter(two):
    alone = trained()
    for kind in ("bare", "later", "sharded by layers"):
        assert all(close(alone, answer[kind]) for answer in two), kind


def test_a_run_goes_on_with_another_number_of_ranks(two):
    alone = trained(optimizer=MOMENTUM, epochs=2)
    for answer in two:
        assert close(alone, answer["resumed"])
        assert close(alone, answer["resumed in shards"])
        assert close(alone, resumed(answer["half"]))


def test_the_plan_is_priced_as_in_one_process_and_charged_once(two):
    assert {answer["planned"] for answer in two} == {private()[1].privacy.planned.to_json()}
    assert two[0]["charges"].splitlines() == ["together"]


def test_a_step_that_is_drawn_again_sees_another_batch():
    """As the system's source would give it; a batch that was left out shifts later draws onto earlier numbers.

    Two Poisson batches of 60 records are the same once in 3e8 times, of 66 pairs one once in 5e6.
    """
    *_, loader = private(rng=None)
    loader.run.streams = SharedStreams(None, Ranks())
    drawn = [[tuple(loader.run.batch.indices) for _ in loader] for _ in range(2)]  # no steps, so the same numbers
    assert len(drawn[0]) == 6
    assert len({*drawn[0], *drawn[1]}) == 12


def test_ranks_share_out_one_sample_of_the_law_of_one_process(two):
    """Every record joins by a coin of chance 1/6: the number of heads, and of each record's, is binomial."""
    batches = [sorted([*one, *other]) for one, other in zip(two[0]["shares"], two[1]["shares"], strict=True)]
    assert [batch[::2] for batch in batches] == two[0]["shares"]
    assert [batch[1::2] for batch in batches] == two[1]["shares"]
    assert len(batches) == 120
    assert len(set(map(tuple, batches))) > 115
    heads = np.bincount(np.concatenate(batches).astype(int), minlength=N)
    for count, coins in [(heads.sum(), 120 * N), *((count, 120) for count in heads)]:
        assert stats.binomtest(int(count), coins, 1 / 6).pvalue > ALARM
    assert stats.binomtest(int(heads.sum()), 120 * N, 1 / 12).pvalue < ALARM  # as if every rank drew from half


# --- noise -----------------------------------------------------------------------------------------------------------


def variance_fits(values, variance=1.0):
    """Chi-square: of right noise this is false once in 1/ALARM times."""
    total = float((values**2).sum()) / variance
    return stats.chi2.ppf(ALARM / 2, values.size) < total < stats.chi2.isf(ALARM / 2, values.size)


@pytest.mark.parametrize("name", ["noise", "noise in slices of a seed"])
def test_noise_is_drawn_once(two, name):
    noise = two[0][name]
    assert np.array_equal(noise, two[1][name])
    half = noise.shape[1] // 2
    for part in (noise, noise[:, :half], noise[:, half:]):
        assert variance_fits(part)
        assert not variance_fits(part, 2.0)  # as if every rank drew it all
        assert not variance_fits(part, 0.5)
    together = float((noise[:, :half] * noise[:, half:]).sum())
    assert abs(together) < stats.norm.isf(ALARM / 2) * math.sqrt(noise.size / 2) < noise.size / 2


def test_correlated_noise_is_drawn_in_shares(two):
    noise = two[0]["correlated noise"][1:]
    assert np.array_equal(noise, two[1]["correlated noise"][1:])
    assert abs(float((noise**2).mean()) - (1 + BACK**2)) < 0.05  # a tenth of what a second draw would add
    together = np.mean([float((one * other).mean()) for one, other in pairwise(noise)])
    assert abs(together + BACK) < 0.05


def test_a_rank_without_a_part_of_the_model_draws_none(two):
    for one, other in zip(two[0]["one number"], two[1]["one number"], strict=True):
        assert np.array_equal(one, other)
        assert np.abs(one).min() > 0


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "first", "second"),
    [
        ("empty book", (BudgetExceeded, "book is empty"), (BudgetExceeded, "book is empty")),
        ("book elsewhere", (ValueError, "rank 0 charges"), (PrivateTrainingError, "rank 0 charges")),
        ("other noise", (ValueError, "the plan .* differs"), (ValueError, "the plan .* differs")),
        ("other data", (ValueError, "number of records differs"), (ValueError, "number of records differs")),
        ("one rank's option", (PrivateTrainingError, "Rank 1 refused"), (ValueError, "max_grad_norm")),
        ("sampler", (ValueError, "DistributedSampler"), (ValueError, "DistributedSampler")),
        ("fit", (ValueError, "fit trains in one process"), (ValueError, "fit trains in one process")),
        ("sharded late", (PrivateTrainingError, "First fully_shard"), (PrivateTrainingError, "First fully_shard")),
        ("skipping", (PrivateTrainingError, "different batches"), (PrivateTrainingError, "different batches")),
        ("mixing", (PrivateTrainingError, "Rank 1 refused"), (PrivateTrainingError, "record")),
        ("other users", (PrivateTrainingError, "different records"), (PrivateTrainingError, "different records")),
        ("other order", (ValueError, "what loader reads differs"), (ValueError, "what loader reads differs")),
        ("other rate", (PrivateTrainingError, "learning rate"), (PrivateTrainingError, "learning rate")),
        ("other weights", (PrivateTrainingError, "different weights"), (PrivateTrainingError, "different weights")),
        ("unsteady", (PrivateTrainingError, "read twice"), (PrivateTrainingError, "read twice")),
        ("gathering in the model", (PrivateTrainingError, "ask the other ranks"), (PrivateTrainingError, "ask the")),
        ("gathering in the loss", (PrivateTrainingError, "a record"), (PrivateTrainingError, "a record")),
    ],
)
def test_what_one_rank_refuses_all_refuse(two, what, first, second):
    for answer, (kind, text) in zip(two, (first, second), strict=True):
        found, message = answer["refused"][what]
        assert issubclass(found, kind)
        with pytest.raises(kind, match=text):
            raise kind(message)


def test_a_model_that_was_refused_is_as_it_was(two):
    assert all(answer["averages as before"] for answer in two)


def test_what_cannot_be_compared_is_believed_for_a_reason(two):
    assert [answer["believed"] for answer in two] == [None, None]


def dies(rank, count):
    """Rank 1 ends in the middle of a run."""
    model, optimizer, loader = private()
    for number, batch in enumerate(loader):
        if rank and number == 3:
            os._exit(1)
        try:
            step(model, optimizer, batch)
        except PrivateTrainingError as error:
            return str(error), optimizer.privacy.steps, raised(lambda batch=batch: step(model, optimizer, batch))
    return None


def test_a_rank_that_dies_stops_the_others_with_one_clean_error():
    (message, steps, again), _ = on_ranks(2, dies, dying=[1])
    assert "Another rank did not answer" in message
    assert steps == 3
    assert "stopped on all ranks" in again[1]


def test_processes_that_do_not_know_of_each_other_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    with pytest.raises(ValueError, match="init_process_group"):
        private()


# --- four ranks ------------------------------------------------------------------------------------------------------


def four(rank, count, half):
    return {
        "wrapped": {name: act(wrapped) for name, act in COMMON.items()},
        "sharded": {name: act(sharded) for name, act in COMMON.items()},
        "resumed": resumed(half, sharded),
        "noise": noisy(),
    }


@pytest.mark.slow(sibling="test_two_ranks_end_where_one_process_does")
def test_four_ranks_end_where_one_process_does():
    half = on_ranks(2, halved)[0]
    answers = on_ranks(4, four, half)
    for answer in answers:
        for kind in ("wrapped", "sharded"):
            for name, act in COMMON.items():
                assert close(act(lambda model: model), answer[kind][name]), (kind, name)
        assert close(trained(optimizer=MOMENTUM, epochs=2), answer["resumed"])
        assert np.array_equal(answer["noise"], answers[0]["noise"])
    assert variance_fits(answers[0]["noise"])


def halved(rank, count):
    return halves()
