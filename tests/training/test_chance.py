"""What private passes draw by themselves is nobody's to know, and the user's generators are as they were.

Each kind of chance is put where honest code has it. The process's generators are seeded in the same way before every
run, as a script does, and the clipped sum is heard before noise is put on it: without ``rng=`` it must not be the same
twice, and with it it must.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

from discreet.random import Streams
from discreet.training import PrivateTrainingError, Training, make_private
from discreet.training.chance import Chance
from tests.training.loops import data, network, private, step, weights
from tests.training.sensitivity import QUIET, Heard

N = 24
RECORDS = data(N)


def seed_all(number=0):
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002
    torch.manual_seed(number)


def draws():
    """Of each of the process's generators; an odd number of normal ones, so that one is in store."""
    return random.random(), random.gauss(0, 1), np.random.randn(), float(torch.rand(())), float(torch.randn(()))  # noqa: NPY002


class By(nn.Module):
    """A network that does something by chance to what it holds inside."""

    def __init__(self, chance):
        super().__init__()
        self.first, self.last, self.chance = nn.Linear(4, 8), nn.Linear(8, 2), chance

    def forward(self, x):
        return self.last(self.chance(torch.tanh(self.first(x))))


class Drawing(Dataset):
    """Records with noise on them; by the process's generators, or by one that the dataset holds."""

    def __init__(self, noise):
        self.noise = noise

    def __len__(self):
        return N

    def __getitem__(self, i):
        x, y = RECORDS[i]
        return x + float(self.noise()), y


class Own:
    """Noise by a generator of its own, with a seed."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, *_):
        return self.rng.normal()


def jittered(records):
    x, y = default_collate(records)
    return x + torch.from_numpy(np.random.normal(size=x.shape)).float(), y  # noqa: NPY002


def each_draws(kind):
    """A model, a dataset, a collate function, and what the loop does to inputs: one of them draws; several numbers, for
    of one number two draws are now and then nearly the same."""
    models = {
        "dropout": lambda: By(nn.Dropout(0.5)),
        "python in forward": lambda: By(lambda h: h * torch.tensor([random.uniform(0.5, 2) for _ in range(8)])),
        "numpy in forward": lambda: By(lambda h: h * torch.from_numpy(np.random.uniform(0.5, 2, 8)).float()),  # noqa: NPY002
        "gumbel": lambda: By(lambda h: F.gumbel_softmax(h)),
        "vae": lambda: By(lambda h: h + torch.randn_like(h)),
    }
    noises = {
        "python in data": random.random,
        "numpy in data": np.random.randn,
        "torch in data": lambda: torch.randn(()),
    }
    torch.manual_seed(3)
    model = models[kind]() if kind in models else network()
    records = Drawing(noises.get(kind) or Own()) if kind in noises or kind == "held by data" else RECORDS
    collate = jittered if kind == "collate" else None
    return model, records, collate, (lambda x: x + torch.randn_like(x)) if kind == "loop" else (lambda x: x)


KINDS = ["dropout", "python in forward", "numpy in forward", "gumbel", "vae", "python in data", "numpy in data"]
KINDS += ["torch in data", "held by data", "collate", "loop"]


def heard(kind, rng, seed=0, **options):
    """The clipped sum of a step that all records are in."""
    model, records, collate, act = each_draws(kind)
    loader = DataLoader(records, N, collate_fn=collate, **options)
    noise = Heard()
    model, optimizer, loader = make_private(
        model, torch.optim.SGD(model.parameters(), lr=0.0), loader, epochs=2, noise=noise, noise_multiplier=QUIET,
        loss_reduction="mean", rng=rng, unverified="chance in a forward pass" if "forward" in kind else "",
    )  # fmt: skip
    seed_all(seed)
    for x, y in loader:
        step(model, optimizer, (act(x), y))
    return optimizer.privacy._run._noise.total


@pytest.mark.parametrize("kind", KINDS)
def test_a_seeded_script_does_not_decide_what_private_passes_draw(kind):
    secret = [heard(kind, None) for _ in range(2)]
    assert float((secret[0] - secret[1]).norm()) > 1e-3 * float(secret[0].norm())
    seeded = [heard(kind, 1, seed) for seed in (0, 5)]
    assert torch.equal(*seeded)
    assert float((seeded[0] - heard(kind, 2)).norm()) > 1e-3 * float(seeded[0].norm())


def seeds_worker(_):
    seed_all(0)


@pytest.mark.parametrize("kind", ["numpy in data", "held by data"])
def test_workers_draw_in_secret_whatever_seeds_they_are_given(kind):
    options = {"num_workers": 1, "worker_init_fn": seeds_worker}
    secret = [heard(kind, None, **options) for _ in range(2)]
    assert float((secret[0] - secret[1]).norm()) > 1e-3 * float(secret[0].norm())
    assert torch.equal(*(heard(kind, 1, **options) for _ in range(2)))


@pytest.mark.parametrize("rng", [None, 1])
@pytest.mark.parametrize("kind", ["dropout", "held by data", "collate", "loop"])
def test_between_steps_and_after_the_loop_generators_are_the_users(kind, rng):
    model, records, collate, act = each_draws(kind)
    _, optimizer, loader = private(model, records, 6, rng=rng)
    loader.collate_fn = collate or default_collate
    held = getattr(getattr(records, "noise", None), "rng", np.random.default_rng(0))
    seed_all()
    wanted = [draws() for _ in range(len(loader) + 1)], np.random.default_rng(0).normal()
    seed_all()
    found = []
    for x, y in loader:
        inside = draws()
        step(model, optimizer, (act(x), y))
        found.append(draws())
        assert inside != found[-1]
    found.append(draws())
    assert (found, held.normal()) == wanted


def test_a_checkpoint_holds_nothing_of_any_generator():
    model, optimizer, loader = private(By(nn.Dropout(0.5)), rng=None)
    seed_all()
    for batch in loader:
        assert "chance" not in optimizer.privacy.state_dict()
        step(model, optimizer, batch)
    state = optimizer.privacy.state_dict()
    assert "chance" not in state
    other = private(By(nn.Dropout(0.5)), rng=None)[1]
    before = torch.get_rng_state()
    other.privacy.load_state_dict(state | {"chance": torch.zeros(5056, dtype=torch.uint8)})  # of an older version
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("kind", ["torch in data", "collate", "dropout"])
def test_under_a_seed_a_resumed_run_draws_the_same(kind):
    """From the middle of a pass, also where a collate function is tried before the first batch."""

    def begin():
        model, records, collate, _ = each_draws(kind)
        return make_private(
            model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(records, 6, collate_fn=collate), epochs=2,
            noise_multiplier=1.0, loss_reduction="mean", rng=3,
        )  # fmt: skip

    def finish(model, optimizer, loader):
        while optimizer.privacy.remaining_steps:
            for batch in loader:
                step(model, optimizer, batch)
                if not optimizer.privacy.remaining_steps:
                    break
        return weights(model)

    model, optimizer, loader = begin()
    batches = iter(loader)
    for _ in range(3):
        step(model, optimizer, next(batches))
    state = optimizer.privacy.state_dict()
    state = state | {"model": {k: v.clone() for k, v in state["model"].items()}}
    while (batch := next(batches, None)) is not None:
        step(model, optimizer, batch)
    other = begin()
    other[1].privacy.load_state_dict(state)
    assert torch.equal(finish(model, optimizer, loader), finish(*other))


# --- what is refused -------------------------------------------------------------------------------------------------


def test_a_seed_between_batch_and_step_is_refused_unless_the_run_has_one():
    for rng in (None, 1):
        model, optimizer, loader = private(By(nn.Dropout(0.5)), rng=rng)

        def loop(model=model, optimizer=optimizer, loader=loader):
            for batch in loader:
                torch.manual_seed(7)
                step(model, optimizer, batch)

        if rng is None:
            with pytest.raises(PrivateTrainingError, match="seeded between a batch and its step"):
                loop()
            assert optimizer.privacy.steps == 0
        else:
            loop()
            assert torch.initial_seed() == 7  # what the user said last holds


def test_a_seed_for_a_block_is_not_a_seed_of_the_pass():
    model, optimizer, loader = private(By(nn.Dropout(0.5)), rng=None)
    for batch in loader:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            torch.rand(3)
        step(model, optimizer, batch)
    assert optimizer.privacy.steps == len(loader)


def test_a_batch_of_a_loop_that_was_left_may_have_its_step_if_nothing_was_drawn():
    seed_all()
    wanted = draws()
    model, optimizer, loader = private(rng=None)
    seed_all()
    batch = next(iter(loader))  # the iterator is gone
    step(model, optimizer, batch)
    assert draws() == wanted
    model, optimizer, loader = private(By(nn.Dropout(0.5)), rng=None)
    batch = next(iter(loader))
    with pytest.raises(PrivateTrainingError, match=r"batches = iter\(loader\)"):
        step(model, optimizer, batch)
    batches = iter(loader)
    step(model, optimizer, next(batches))
    assert optimizer.privacy.steps == 1


def test_a_loop_that_is_left_before_a_step_gives_the_generators_back():
    model, _, loader = private(By(nn.Dropout(0.5)), rng=None)
    seed_all()
    wanted = draws()
    seed_all()
    for batch in loader:
        model(batch[0])
        break
    assert draws() == wanted


def test_after_an_error_and_a_new_seed_the_new_seed_holds():
    model, _, loader = private(By(nn.Dropout(0.5)), rng=None)
    held = []
    try:
        batches = iter(loader)
        held.append(batches)  # as a traceback holds it
        model(next(batches)[0])
        raise RuntimeError
    except RuntimeError:
        pass
    seed_all(4)
    other, theirs, again = private(By(nn.Dropout(0.5)), rng=None)
    seed_all(4)
    for batch in again:
        step(other, theirs, batch)
    found = draws()
    held.pop().close()
    seed_all(4)
    assert found == draws()


# --- several runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(None, 1), (1, None), (None, None)])
def test_passes_of_several_runs_may_be_open_at_once(order):
    """A run with a seed beside one without does not lend it its chance."""
    found = []
    for _ in range(2):
        noises = [Heard(), Heard()]
        runs = [
            private(each_draws("dropout")[0], rng=rng, noise=noise, noise_multiplier=QUIET, batch=60)
            for rng, noise in zip(order, noises, strict=True)
        ]
        seed_all()
        for batches in zip(runs[0][2], runs[1][2], strict=True):
            for (model, optimizer, _), batch in zip(runs, batches, strict=True):
                step(model, optimizer, batch)
        after = draws()
        seed_all()
        assert after == draws()
        found.append([optimizer.privacy._run._noise.total for _, optimizer, _ in runs])
    for rng, one, other in zip(order, *found, strict=True):
        assert rng is not None or float((one - other).norm()) > 1e-3 * float(one.norm())


def test_streams_of_chance_are_their_own():
    seeded = Streams(1)
    assert seeded.chance(3, 0).word() == Streams(1).chance(3, 0).word()
    words = [stream(3, 0).word() for stream in (seeded.chance, seeded.noise, seeded.sampling, seeded.public)]
    assert len({*words, seeded.chance(3, 1).word()}) == 5
    assert Streams(None).chance(3, 0).word() != Streams(None).chance(3, 0).word()
    assert Chance(Streams(None)).secret
    assert not Chance(seeded).secret


def test_an_operation_draws_in_secret_too():
    """``Training`` has no loop of the user's: its dropout came from the stream of public choices."""

    def sums(rng):
        noise = Heard()
        run = Training(
            lambda: each_draws("dropout")[0],
            dataset_size=N,
            batch_size=N,
            epochs=1,
            noise=noise,
            noise_multiplier=QUIET,
        )
        kept, noise_of, public = [], Heard.release, Streams.public

        def keep(self, step, total, gaussians):
            noise_of(self, step, total, gaussians)
            kept.append(self.total)

        Streams.public = lambda self, *index: public(Streams(9), *index)  # what anyone may know
        try:
            Heard.release = keep
            run.release(RECORDS.tensors, rng)
        finally:
            Streams.public, Heard.release = public, noise_of
        return kept[-1]

    one, other = sums(None), sums(None)
    assert float((one - other).norm()) > 1e-3 * float(one.norm())
    assert torch.equal(sums(1), sums(1))
