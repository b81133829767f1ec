"""A private step inside another's trainer against an ordinary step of the same trainer: processor time.

Hugging Face's ``Trainer`` tunes a GPT-2 of 0.5 M parameters on 16 records of 32 tokens a step, Lightning a network of
1.4 M parameters on 128 records. Short runs without and with privacy in turns, on one thread; a step lasts from the end
of the last one to its own end, so loading, clipping, noise and logging are in it. The median step of each run, the
median of the pairs' ratios: verified batches, which are few, are left out by that.
"""

from __future__ import annotations

import logging
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

PAIRS, STEPS, FIRST = 5, 24, 4
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


def hugging_face(private: bool) -> float:
    import transformers

    from discreet.training.integrations.huggingface import PrivateTrainer, causal_lm_loss

    clock = Clock()

    class Ticking(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.step()

    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=WIDTH, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    )
    kind, given = (PrivateTrainer, {"privacy": PRIVACY}) if private else (transformers.Trainer, {})
    with tempfile.TemporaryDirectory() as folder:
        args = transformers.TrainingArguments(
            folder, per_device_train_batch_size=16, max_steps=STEPS, report_to=[], disable_tqdm=True,
            save_strategy="no", use_cpu=True, dataloader_pin_memory=False,
        )  # fmt: skip
        kind(
            transformers.GPT2LMHeadModel(config),
            args,
            train_dataset=Texts(),
            compute_loss_func=causal_lm_loss,
            callbacks=[Ticking()],
            **given,
        ).train()
    return clock.median()


def lightning_(private: bool) -> float:
    import lightning.pytorch as pl

    from discreet.training.integrations.lightning import PrivateTraining

    clock = Clock()
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Task(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                                     nn.Linear(1024, 10))  # fmt: skip

        def training_step(self, batch: Any) -> Any:
            x, y = batch
            return F.cross_entropy(self.net(x), y)

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

        def on_train_batch_end(self, *_: Any) -> None:
            clock.step()

    records = TensorDataset(torch.randn(6400, 256), torch.randint(0, 10, (6400,)))
    pl.Trainer(
        max_steps=STEPS, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[PrivateTraining(**PRIVACY, max_grad_norm=1.0)] if private else [],
    ).fit(Task(), DataLoader(records, batch_size=128, shuffle=not private))  # fmt: skip
    return clock.median()


def compared(run: Callable[[bool], float], pairs: int) -> tuple[float, float, float]:
    """The median step without and with privacy, and the median ratio of neighbouring runs."""
    found = [(run(False), run(True)) for _ in range(pairs)]
    plain, private = (statistics.median(side) for side in zip(*found, strict=True))
    return plain, private, statistics.median(b / a for a, b in found)


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name, run in {"Hugging Face Trainer": hugging_face, "Lightning": lightning_}.items():
        plain, private, ratio = compared(run, 1 if "--quick" in sys.argv else PAIRS)
        print(f"{name}: {plain * 1e3:.1f} ms a step, private {private * 1e3:.1f} ms: {ratio:.2f} times", flush=True)


if __name__ == "__main__":
    main()
