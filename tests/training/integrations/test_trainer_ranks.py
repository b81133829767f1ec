"""Hugging Face's Trainer on two processes: the run of one process, charged once and saved once."""

from __future__ import annotations

import os

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import Speed
from discreet.training.distributed import Ranks
from discreet.training.integrations.terms import Terms
from tests.training.ranks import on_ranks

QUIET = {"noise_multiplier": 1e-9, "rng": 1}
RECORDS = 40


class Book:
    """Counts charges: next to no noise has no price that a ledger takes."""

    def __init__(self):
        self.charges = 0

    def charge(self, event, label="", *, unit=""):
        self.charges += 1


# --- the batches of any such loop -----------------------------------------------------------------------------------


def looped(rank, count):
    """A bare loop of another's: one batch a step, pieces added before it is met."""
    torch.manual_seed(rank)  # rank 0's model is everybody's
    model = nn.Linear(3, 2)
    x = torch.randn(RECORDS, 3, generator=torch.Generator().manual_seed(0))
    loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    book, met = Book(), []

    def added(batch):
        met.append(len(batch[0]))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
        optimizer.step()

    terms = Terms(**QUIET, book=book, speed=Speed(max_physical_batch_size=2))
    batches = terms.arranged(model, optimizer, loader, added, ranks=Ranks.found(), epochs=2)
    steps = 0
    for _ in range(2):
        for batch in batches:
            added(batch)
            steps += 1
    return steps, max(met), batches.privacy.steps, book.charges, [p.detach() for p in model.parameters()]


def test_a_loop_of_another_s_on_two_ranks_is_the_loop_of_one_process_and_charged_once():
    alone = looped(0, 1)
    first, second = on_ranks(2, looped)
    assert alone[:3] == first[:3] == second[:3] == (10, 2, 10)
    assert (alone[3], first[3], second[3]) == (1, 1, 0)
    torch.testing.assert_close(first[4], second[4], rtol=0, atol=0)
    torch.testing.assert_close(first[4], alone[4], rtol=1e-4, atol=1e-6)


# --- the Trainer ----------------------------------------------------------------------------------------------------


def tuned(rank, count, folder):
    """Two epochs, saved after five steps and at the end; then once more from the fifth, on the same ranks."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)} if count > 1 else {}
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
