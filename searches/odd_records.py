"""Odd records among the others of every operation: ``python -m searches odd_records --size 10000``."""

from __future__ import annotations

import random
from collections import Counter

from searches._containers import one_connection
from searches._odd import FLOATS, OBJECTS, TEXTS, WHOLE
from searches._planting import Broken, check_record, plant_record
from searches._progress import with_progress
from tests.operations.contract import every_case

SIZE = 2000


def main(size: int | None = None, seed: int = 29) -> None:
    """Plant a record at random in the data of every operation in turn; raise if it decides more than it may."""
    rng, cases = random.Random(seed), [case for case in every_case() if not case.bound]
    counts, broken, planted = Counter[str](), Counter[str](), SIZE if size is None else size
    with one_connection():
        for number in with_progress("odd records", range(planted)):
            case, odd = cases[number % len(cases)], rng.choice(rng.choice([FLOATS, WHOLE, TEXTS, OBJECTS, OBJECTS]))
            try:
                answered = check_record(case, plant_record(case, odd, rng))
                counts["answered" if answered else "refused"] += 1
            except Broken as error:
                broken[f"{error} ({type(odd).__name__})"] += 1
                print(f"odd records: number {number}: {error} ({type(odd).__name__})", flush=True)
    print(f"odd records: {planted} planted in {len(cases)} operations, {dict(counts)}, {broken.total()} broken")
    if broken:
        raise AssertionError("\n".join(f"{count} x {message}" for message, count in broken.items()))
