"""Progress of a search, so that what was stopped is not lost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def with_progress(name: str, items: Iterable[Item], every: int = 250) -> Iterator[Item]:
    """The items, with a line after so many of them."""
    started = time.process_time()
    for number, item in enumerate(items, 1):
        yield item
        if number % every == 0:
            print(f"{name}: {number}, {time.process_time() - started:.0f} CPU seconds", flush=True)
