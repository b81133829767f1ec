"""The process's generators decide nothing: ``python -m searches generators --size 300``.

A script that begins with ``torch.manual_seed(0)`` has public generators. Every operation is run with all of them seeded
in the same way, on its data and on a neighbour: what meets noise must differ by one unit's contribution alone, noise
must come from the system (record and replay see to both), and the generators must be afterwards as they were. Networks
that draw by themselves (dropout, augmentation, ...) are trained so, too: their clipped sums must not be the same twice.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from discreet.auditing import ReplayError, replay
from discreet.random.process import States
from searches._progress import with_progress

SIZE, SEED = 137, 30

__all__ = ["check", "main", "seed_all"]


def seed_all(seed: int) -> None:
    """Seed every generator of the process, as scripts do."""
    import torch

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (that one is meant)
    torch.manual_seed(seed)


def check(case: Any, seed: int) -> None:
    """Try one operation; what it owes to the process's generators raises ``AssertionError``."""

    moved = []

    def seeded(data: Any) -> Any:
        seed_all(seed)
        before = States.now()
        answer = case.run(data)
        moved.append(not before.same_as(States.now()))
        return answer

    try:
        replay(seeded, case.data, case.neighbour, fresh=False)
        replay(seeded, case.neighbour, case.data, fresh=False)
    except ReplayError as error:
        raise AssertionError(f"{case.name}: {error}") from None
    if any(moved):
        raise AssertionError(f"{case.name}: the process's generators are not as they were.")


def main(size: int | None = None) -> None:
    """Try so many operations and networks, one after the other, each round with other seeds."""
    from tests.operations.contract import every_case
    from tests.training.test_chance import KINDS, heard

    rng, cases, broken = random.Random(SEED), every_case(), []
    rng.shuffle(cases)
    for place in with_progress("generators", range(size or SIZE), 50):
        try:
            check(cases[place % len(cases)], rng.randrange(2**32))
        except AssertionError as error:
            broken.append(str(error))
    for place in range((size or SIZE) // 4):
        kind, seed = KINDS[place % len(KINDS)], rng.randrange(2**32)
        one, other = (heard(kind, None, seed) for _ in range(2))
        if float((one - other).norm()) <= 1e-3 * float(one.norm()):
            broken.append(f"network, {kind}: with the process's generators seeded, the sum is the same twice.")
    print(f"generators: {size or SIZE} operations, {(size or SIZE) // 4} networks tried, {len(broken)} broken")
    if broken:
        raise AssertionError("\n".join(broken))
