"""Hugging Face's Trainer on two processes: the run of one process, charged once and saved once."""

from __future__ import annotations

import copy
import os

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.random import Streams
from discreet.training import PrivateTrainingError, Speed, make_private
from discreet.training.distributed import Ranks, SharedStreams
from discreet.training.integrations.terms import TrainerTerms
from discreet.training.noise import Banded
from tests.training.ranks import on_ranks

QUIET = {"noise_multiplier": 1e-9, "rng": 1}
RECORDS = 40


class Book:
    """Counts charges: next to no noise has no price that a ledger takes."""

    def __init__(self):
        self.charges = 0

    def charge(self, event, label="", *, unit="", reproducible=False):
        self.charges += 1


# --- the batches of any such loop -----------------------------------------------------------------------------------


def arranged(rank, **privacy):
    """A model, its batches, and what a loop does with one."""
    torch.manual_seed(rank)  # rank 0's model is everybody's
    model, met = nn.Linear(3, 2), []
    x = torch.randn(RECORDS, 3, generator=torch.Generator().manual_seed(0))
    loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    def added(batch):
        met.append(len(batch[0]))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()

    def stepped(batch):
        added(batch)
        optimizer.step()

    terms = TrainerTerms(rng=1, speed=Speed(max_physical_batch_size=2), **privacy)
    return model, met, stepped, terms.arranged(model, optimizer, loader, added, ranks=Ranks.current(), epochs=2)


def looped(rank, count, folder):
    """A bare loop of another's: one batch a step, pieces added before it is met."""
    book, steps = Book(), 0
    model, met, added, batches = arranged(rank, noise_multiplier=1e-9, book=book)
    for _ in range(2):
        for batch in batches:
            added(batch)
            steps += 1
    found = steps, max(met), batches.privacy.steps, book.charges, [p.detach() for p in model.parameters()]
    return *found, *((*remembered(rank, folder / str(count)), astray(rank)) if count > 1 else ())


def astray(rank):
    """One rank alone goes on from a checkpoint: what is said, and what was charged."""
    book = Book()
    _, _, added, batches = arranged(rank, noise_multiplier=1.0)
    for batch in batches:
        added(batch)
    state = batches.state_dict()
    *_, batches = arranged(rank, noise_multiplier=1.0, book=book)
    if rank:
        batches.load_state_dict(state)
    with pytest.raises(ValueError, match="the checkpoint differs between the ranks"):
        next(iter(batches))
    return book.charges


def remembered(rank, folder):
    """A pass with correlated noise; and one that is left after two steps, saved, and gone on with."""
    given = {"noise": Banded(bands=2), "noise_multiplier": 1.0, "secrets": folder}
    through, _, added, batches = arranged(rank, **given)
    for batch in batches:
        added(batch)
    model, _, added, batches = arranged(rank, **given)
    for step, batch in enumerate(batches):
        added(batch)
        if step == 1:
            break
    state, before = batches.state_dict(), copy.deepcopy(model.state_dict())
    model, _, added, batches = arranged(rank, **given)
    model.load_state_dict(before)
    batches.load_state_dict(state)
    for batch in batches:
        added(batch)
    return [p.detach() for p in through.parameters()], [p.detach() for p in model.parameters()], state["noise"]


def test_a_loop_of_another_s_on_two_ranks_is_the_loop_of_one_process_and_charged_once(tmp_path):
    alone = looped(0, 1, tmp_path)
    first, second = on_ranks(2, looped, tmp_path)
    assert alone[:3] == first[:3] == second[:3] == (10, 2, 10)
    assert (alone[3], first[3], second[3]) == (1, 1, 0)
    torch.testing.assert_close(first[4], second[4], rtol=0, atol=0)
    torch.testing.assert_close(first[4], alone[4], rtol=1e-4, atol=1e-6)
    assert first[8] == second[8] == 0
    for through, resumed, public in (first[5:8], second[5:8]):
        torch.testing.assert_close(resumed, through)
        assert public == {}
    assert len(list((tmp_path / "2").iterdir())) == 2  # each rank's part of what the noise remembers


# --- the Trainer ----------------------------------------------------------------------------------------------------


def tuned(rank, count, folder):
    """Two epochs, saved after five steps and at the end; then once more from the fifth, on the same ranks."""
    if count > 1:  # what torchrun says
        places = {name: str(rank) for name in ("RANK", "LOCAL_RANK")}
        counts = {name: str(count) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE")}
        os.environ |= places | counts | {"MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
    from tests.training.integrations.test_huggingface import Texts, gpt2, trainer, weights

    book = Book()
    given = {
        "per_device_train_batch_size": 4 // count,
        "gradient_accumulation_steps": 2,
        "learning_rate": 0.1,
        "optim": "sgd",
        "save_strategy": "steps",
        "save_steps": 5,
        "eval_strategy": "steps",
        "eval_steps": 5,
    }
    privacy = QUIET | {"evaluation": "public", "book": book}
    public = {"eval_dataset": Texts(7, seed=1)}
    place = folder / str(count)
    found = trainer(place, privacy=privacy, options=public, **given)
    answer = found.train()
    logs = [{name: x for name, x in line.items() if "runtime" not in name and "second" not in name}
            for line in found.state.log_history]  # fmt: skip
    after = trainer(place, gpt2(seed=5 + rank), privacy=privacy, options=public, **given)
    after.train(resume_from_checkpoint=str(place / "checkpoint-5"))
    return {
        "steps": (answer.global_step, found.privacy.steps, after.privacy.steps),
        "planned": found.privacy.planned,
        "charges": book.charges,
        "logs": logs,
        "weights": weights(found.model),
        "resumed": weights(after.model),
    }


@pytest.mark.slow(sibling="test_a_loop_of_another_s_on_two_ranks_is_the_loop_of_one_process_and_charged_once")
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_trainer_on_two_processes_is_the_trainer_on_one(tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    alone = tuned(0, 1, tmp_path)
    first, second = on_ranks(2, tuned, tmp_path)
    assert alone["steps"] == first["steps"] == second["steps"] == (10, 10, 10)
    assert alone["planned"] == first["planned"] == second["planned"]
    assert (alone["charges"], first["charges"], second["charges"]) == (2, 2, 0)  # once a run
    for part in ("weights", "resumed"):
        torch.testing.assert_close(first[part], second[part], rtol=0, atol=0)
        torch.testing.assert_close(first[part], alone["weights"], rtol=1e-3, atol=1e-5)
    assert [set(line) for line in first["logs"]] == [set(line) for line in alone["logs"]]
    seen = {name for line in first["logs"] for name in line}
    assert "eval_loss" in seen
    assert not seen & {"loss", "grad_norm", "train_loss", "total_flos"}
    from tests.training.integrations.test_huggingface import trainer, weights

    one = trainer(  # a checkpoint of two ranks, gone on with by one
        tmp_path / "2", privacy=QUIET, learning_rate=0.1, optim="sgd", per_device_train_batch_size=8
    )
    one.train(resume_from_checkpoint=str(tmp_path / "2" / "checkpoint-5"))
    torch.testing.assert_close(weights(one.model), alone["weights"], rtol=1e-3, atol=1e-5)


# --- an audit -------------------------------------------------------------------------------------------------------


def audited(rank, count, broken):
    """A run on all ranks that carries canaries: what they say, the coins, and what stopped it."""
    from discreet.auditing import GradientCanaries

    if broken:
        SharedStreams.noise = lambda self, *index: Streams.noise(self, *index)  # without the rank
    told = []
    model = nn.Linear(3, 2)
    x = torch.randn(RECORDS, 3, generator=torch.Generator().manual_seed(0))
    loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=20)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    audit = GradientCanaries(160, every=8, report=told.append, rng=1)
    options = {"noise_multiplier": 1.0, "epochs": 2, "loss_reduction": "mean", "rng": 1, "audit": audit}
    model, optimizer, loader = make_private(model, optimizer, loader, **options)
    try:
        for _ in range(2):
            for a, b in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(a), b).backward()
                optimizer.step()
    except PrivateTrainingError as stopped:
        return str(stopped), [], None
    found = optimizer.privacy.audit
    return "", [each.steps for each in told], (found.lower, found.violated, optimizer.privacy.observation.inside.sum())


@pytest.mark.parametrize("broken", [pytest.param(False, marks=pytest.mark.slow), True])
def test_canaries_are_one_population_on_two_ranks(broken):
    """Both ranks see the same releases and coins; the first tells. Noise that both draw from one stream stops both."""
    first, second = on_ranks(2, audited, broken)
    assert first[0] == second[0]
    if broken:
        assert "noise came again within a step" in first[0]
        return
    assert first[2] == second[2]
    assert (first[1], second[1]) == ([20], [])
    assert not first[2][1]
    assert first[2][0] > 0
