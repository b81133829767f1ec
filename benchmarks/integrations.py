"""A private step inside another's trainer against an ordinary step of the same trainer: processor time.

Two tasks: a GPT-2 of 0.5 M parameters on 16 records of 32 tokens a step, and a network of 1.3 M parameters on 128
records, in a bare loop (``make_private``), Hugging Face's ``Trainer`` (GPT-2 only) and Lightning. Runs without and with
privacy in turns, on one thread, each left after the first steps of a plan of a thousand; a step lasts from the end of
the last one to its own end, so loading, clipping, noise and logging are in it. The median step of each run, the median
of the pairs' ratios: verified batches and the account that a log asks for, which are few, are left out by that.
"""

from __future__ import annotations

import logging
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import islice, pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from discreet.training import make_private
from discreet.training.integrations.huggingface import PrivateTrainer, causal_lm_loss

PAIRS, STEPS, FIRST = 3, 24, 4
PLANNED = 1000
WORDS, LENGTH, WIDTH = 512, 32, 128
PRIVACY = {"epsilon": 3.0, "delta": 1e-5}


class Clock:
    """Processor time between the ends of steps, without the first few."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def step(self) -> None:
        self.ends.append(time.process_time())

    def median(self) -> float:
        ends = self.ends[FIRST:]
        return statistics.median(b - a for a, b in pairwise(ends))


class Texts(Dataset[Any]):
    """Made-up records."""

    def __init__(self) -> None:
        self.words = torch.randint(0, WORDS, (800, LENGTH), generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.words[index], "labels": self.words[index]}


class Task(NamedTuple):
    """A model, its records, how many of them a step has, and the loss of a batch."""

    model: Any
    records: Dataset[Any]
    batch: int
    loss: Callable[[Any, Any], Any]

    def loader(self) -> DataLoader[Any]:
        return DataLoader(self.records, batch_size=self.batch, shuffle=True)


def language() -> Task:
    import transformers

    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=WIDTH, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    )
    return Task(
        transformers.GPT2LMHeadModel(config).train(),
        Texts(),
        16,
        lambda model, batch: causal_lm_loss(model(input_ids=batch["input_ids"]), batch["labels"]),
    )


def network() -> Task:
    torch.manual_seed(0)
    layers = nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    records = TensorDataset(torch.randn(6400, 256), torch.randint(0, 10, (6400,)))
    return Task(nn.Sequential(*layers), records, 128, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]))


def loop(task: Task, private: bool, clock: Clock) -> None:
    model, loader, optimizer = task.model, task.loader(), torch.optim.AdamW(task.model.parameters())
    if private:
        model, optimizer, loader = make_private(
            model, optimizer, loader, **PRIVACY, epochs=PLANNED / len(loader), max_grad_norm=1.0, loss_reduction="mean"
        )
    for batch in islice(loader, STEPS):
        optimizer.zero_grad()
        task.loss(model, batch).backward()
        optimizer.step()
        clock.step()


def hugging_face(task: Task, private: bool, clock: Clock) -> None:
    import transformers

    class Ticking(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            clock.step()
            control.should_training_stop = len(clock.ends) >= STEPS

    kind, given = (PrivateTrainer, {"privacy": PRIVACY}) if private else (transformers.Trainer, {})
    with tempfile.TemporaryDirectory() as folder:
        args = transformers.TrainingArguments(
            folder, per_device_train_batch_size=task.batch, max_steps=PLANNED, report_to=[], disable_tqdm=True,
            save_strategy="no", use_cpu=True, dataloader_pin_memory=False,
        )  # fmt: skip
        kind(
            task.model,
            args,
            train_dataset=task.records,
            compute_loss_func=causal_lm_loss,
            callbacks=[Ticking()],
            **given,
        ).train()


def lightning_(task: Task, private: bool, clock: Clock) -> None:
    import lightning.pytorch as pl

    from discreet.training.integrations.lightning import PrivateTraining

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = task.model

        def training_step(self, batch: Any) -> Any:
            return task.loss(self.net, batch)

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

        def on_train_batch_end(self, *_: Any) -> None:
            clock.step()
            self.trainer.should_stop = len(clock.ends) >= STEPS

    pl.Trainer(
        max_steps=PLANNED, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[PrivateTraining(**PRIVACY, max_grad_norm=1.0)] if private else [],
    ).fit(Module(), task.loader())  # fmt: skip


RUNS: list[tuple[str, Callable[[], Task], Callable[[Task, bool, Clock], None]]] = [
    ("GPT-2, bare loop", language, loop),
    ("GPT-2, Hugging Face Trainer", language, hugging_face),
    ("GPT-2, Lightning", language, lightning_),
    ("network, bare loop", network, loop),
    ("network, Lightning", network, lightning_),
]


def timed(make: Callable[[], Task], run: Callable[[Task, bool, Clock], None], private: bool) -> float:
    clock = Clock()
    run(make(), private, clock)
    return clock.median()


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name, make, run in RUNS:
        pairs = range(1 if "--quick" in sys.argv else PAIRS)
        found = [(timed(make, run, False), timed(make, run, True)) for _ in pairs]
        plain, private = (statistics.median(side) * 1e3 for side in zip(*found, strict=True))
        ratio = statistics.median(b / a for a, b in found)
        print(f"{name}: {plain:.1f} ms a step, private {private:.1f} ms: {ratio:.2f} times", flush=True)


if __name__ == "__main__":
    main()
