"""A private step of an adapter against an ordinary one: LoRA on a transformer of 10 M parameters, time and memory.

GPT-2 with a vocabulary of 8,192 and ten layers of width 256, adapters of rank 8 on attention (``peft``), 8 records of
64 tokens, the record's own mean over its tokens as the loss. Plain and private steps in turns, in one process on one
thread, in processor time; the median of the pairs' ratios. Loading and verification, which a run does at few steps, are
left out. Memory is the most that tensors held at once in a step, by torch's own count.
"""

from __future__ import annotations

import statistics
import sys
import warnings
from collections.abc import Callable

import torch
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.models import least, peak
from discreet.training import make_private
from discreet.training.integrations.huggingface import causal_lm_loss
from discreet.training.run import Batch

OWED_TIME, OWED_MEMORY = 1.3, 1.15
RECORDS, LENGTH, WORDS, WIDTH, DEPTH, RANK = 8, 64, 8192, 256, 10, 8
PAIRS = 7


def adapted() -> torch.nn.Module:
    import peft
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=WIDTH, n_layer=DEPTH, n_head=4, bos_token_id=0, eos_token_id=0
    )
    lora = peft.LoraConfig(
        r=RANK, target_modules=["c_attn"], fan_in_fan_out=True, task_type=peft.TaskType.CAUSAL_LM, lora_dropout=0.0
    )
    return peft.get_peft_model(transformers.GPT2LMHeadModel(config), lora).train()


def steps(words: torch.Tensor) -> tuple[Callable[[], None], Callable[[], None]]:
    """A plain and a private step."""
    plain, private = adapted(), adapted()

    def optimizer(model: torch.nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)

    ordinary = optimizer(plain)
    model, trainer, loader = make_private(
        private,
        optimizer(private),
        DataLoader(TensorDataset(torch.zeros(50 * len(words))), len(words)),
        epochs=10,
        noise_multiplier=1.0,
        loss_reduction="mean",
        unverified="a benchmark on made-up records",
    )
    done = iter(range(10_000))

    def one() -> None:
        ordinary.zero_grad()
        causal_lm_loss(plain(input_ids=words), words).backward()
        ordinary.step()

    def other() -> None:
        loader.run.hand_out(Batch(len(words), None, next(done), True, True), (words,))
        trainer.zero_grad()
        causal_lm_loss(model(input_ids=words), words).backward()
        trainer.step()

    return one, other


def measured(records: int = RECORDS, length: int = LENGTH, pairs: int = PAIRS) -> tuple[float, float]:
    """Time and memory of a private step over a plain one's."""
    words = torch.randint(0, WORDS, (records, length), generator=torch.Generator().manual_seed(0))
    plain, private = steps(words)
    for _ in range(3):  # the first batches are verified
        plain(), private()
    ratios = [1 / (least(plain) / least(private)) for _ in range(pairs)]
    model = adapted()
    standing = sum(p.numel() * p.element_size() for p in model.parameters())
    return statistics.median(ratios), peak(private, standing) / peak(plain, standing)


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    size = sum(p.numel() for p in adapted().parameters()) / 1e6
    print(f"LoRA of rank {RANK} on GPT-2 of {size:.1f} M parameters, torch {torch.__version__}, one thread")
    shapes = [(RECORDS, LENGTH)] if "--quick" in sys.argv else [(RECORDS, LENGTH), (32, LENGTH)]
    for records, length in shapes:
        time, memory = measured(records, length)
        verdict = "kept" if time <= OWED_TIME and memory <= OWED_MEMORY else "missed"
        print(
            f"{records} records of {length} tokens: time {time:.2f}× (owed {OWED_TIME}×), memory {memory:.3f}× "
            f"(owed {OWED_MEMORY}×): {verdict}"
        )


if __name__ == "__main__":
    main()
