"""Odd containers for every operation: ``python -m searches containers --size 10000``."""

from __future__ import annotations

import random
from collections import Counter

from searches._containers import one_connection
from searches._forms import forms
from searches._planting import Broken, check_container, plant_container
from tests.operations.contract import every_case

SIZE, SEED = 2000, 29


def main(size: int | None = None) -> None:
    """Give every operation in turn a container at random; raise if one is neither answered nor refused for nothing."""
    rng, cases, every = random.Random(SEED), every_case(), forms()
    counts, broken = Counter[str](), Counter[str]()
    with one_connection():
        for number in range(size or SIZE):
            case, (name, make) = cases[number % len(cases)], rng.choice(every)
            try:
                answered = check_container(case, plant_container(case, make(), rng.randrange(4)))
                counts["answered" if answered else "refused"] += 1
            except Broken as error:
                broken[f"{error} ({name})"] += 1
    print(f"containers: {size or SIZE} given to {len(cases)} operations, {dict(counts)}, {broken.total()} broken")
    if broken:
        raise AssertionError("\n".join(f"{count} x {message}" for message, count in broken.items()))
