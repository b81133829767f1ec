"""Families of models that people bring: whether the clipped sum is exact, and a private step's time and memory over a
plain one's.

The models are the tests' zoo: tiny, so that what a step costs beside its products weighs more than it would in a real
one; ``training`` measures models of real size. Prints the table of ``docs/training.md``. Every time is the least of
several steps, plain and private in turns, in processor time on one thread. Memory is the most that tensors held at once
in a step, parameters and batch included, by torch's own count of its allocations.
"""

from __future__ import annotations

import platform
import sys
import time
import warnings
from collections.abc import Callable

import torch
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import make_private
from discreet.training.gradients.clipping import Clipping
from discreet.training.run import Batch
from tests.training.oracle import clipped
from tests.training.test_zoo import each, gap, middle, ours
from tests.training.zoo import ZOO, Member, made

STEPS = 5


def least(step: Callable[[], None]) -> float:
    start = time.process_time()
    step()
    return time.process_time() - start


def steps(name: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """A plain and a private step of the same model."""
    plain, private = made(name, 16), made(name, 16)

    def optimizer(member: Member) -> torch.optim.Optimizer:
        return torch.optim.SGD([p for p in member.model.parameters() if p.requires_grad], lr=0.01)

    records = TensorDataset(torch.zeros(1600))
    model, trainer, loader = make_private(
        private.model,
        optimizer(private),
        DataLoader(records, 16),
        epochs=10,
        noise_multiplier=1.0,
        loss_reduction="mean",
        unverified="a benchmark on made-up records",
    )
    ordinary, done = optimizer(plain), iter(range(1000))

    def one() -> None:
        ordinary.zero_grad()
        plain.losses(plain.model, plain.batch).mean().backward()
        ordinary.step()

    def other() -> None:
        loader.run.hand_out(Batch(16, None, next(done), True, True))
        trainer.zero_grad()
        private.losses(model, private.batch).mean().backward()
        trainer.step()

    return one, other


def peak(step: Callable[[], None], standing: int) -> int:
    """The most bytes of tensors at once in a step, beside which ``standing`` ones were there before it."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
        step()
    held = most = 0
    found = [x for x in seen.profiler.kineto_results.events() if x.name() == "[memory]"]  # type: ignore[union-attr]
    for event in sorted(found, key=lambda x: x.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most + standing


def standing(name: str) -> int:
    """Bytes of parameters, buffers and the batch."""
    member = made(name, 16)
    kept = [*member.model.parameters(), *member.model.buffers(), *member.batch.values()]
    return sum(x.numel() * x.element_size() for x in kept)


def row(name: str) -> str:
    member = made(name)
    gradients = list(each(member))
    clip_norm = middle(gradients)
    off = gap(ours(member, clip_norm), clipped(member.model, gradients, Clipping(), clip_norm))
    plain, private = steps(name)
    plain(), private()
    times = [(least(plain), least(private)) for _ in range(STEPS)]
    bytes_kept = standing(name)
    memory = peak(private, bytes_kept) / peak(plain, bytes_kept)
    return f"| {name} | {off:.0e} | {min(b for _, b in times) / min(a for a, _ in times):.1f}× | {memory:.1f}× |"


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print(f"{platform.processor() or platform.machine()}, torch {torch.__version__}, one thread\n")
    print("| model | off by | time over plain, tiny | memory over plain, tiny |\n|---|---|---|---|")
    for name in [x for x in sys.argv[1:] if x in ZOO] or ZOO:
        print(row(name), flush=True)


if __name__ == "__main__":
    main()
