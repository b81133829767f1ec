"""Hostile neighbours of tables and statistics, end to end: ``python -m searches neighbours --size 5000``."""

from __future__ import annotations

from collections import Counter

from discreet.auditing import ReplayError
from searches import _cases
from searches._containers import one_connection
from searches._neighbours import cases, check

SIZE, SEED = 2000, 20


def main(size: int | None = None, seed: int = SEED) -> None:
    """Try so many cases, print how many of each operation answered, and raise if any broke its promise."""
    tried: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    broken: dict[str, int] = {}
    with one_connection():
        for number, case in enumerate(cases(size or SIZE, seed)):
            tried[case.operation.name] += 1
            try:
                answered[case.operation.name] += check(case)
            except ReplayError as error:
                broken[str(error)] = broken.get(str(error), 0) + 1
                _cases.save("neighbours", [seed, number], str(error))
    for name, count in sorted(tried.items()):
        print(f"  {name:<40} {count:6} tried {answered[name]:6} answered")
    print(f"neighbours: {sum(tried.values())} tried, {sum(answered.values())} answered, {sum(broken.values())} broken")
    if broken:
        raise AssertionError("\n".join(f"{count} x {message}" for message, count in broken.items()))


def retry(case: list[int]) -> None:
    """The case of a seed and a number."""
    seed, number = case
    with one_connection():
        check(cases(number + 1, seed)[number])
