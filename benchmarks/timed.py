"""The stopwatch every measured process uses: one warm-up on another question, then one timed answer.

A process answers once, so nothing it remembers can help it; the caller takes the best of several processes. The peak
of memory is what warm-up and answer added to the process as it stood after its imports.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def answer_once(answer: Callable[[dict[str, Any]], Any]) -> None:
    """Read ``{"load": module, "warm": question, "question": question}``, print the answer with its time and memory."""
    asked = json.load(sys.stdin)
    import_module(asked["load"])
    before = peak_megabytes()
    answer(asked["warm"])
    start = time.perf_counter()
    value = answer(asked["question"])
    seconds = time.perf_counter() - start
    print(json.dumps({"value": value, "seconds": seconds, "megabytes": peak_megabytes() - before}))
