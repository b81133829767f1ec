"""A person who waits at a terminal is told what is being done, for how long, and how far it is where that is known.

One way for all commands: ``with waiting("fitting") as told: work(progress=told)``. Nothing is shown before a second has
gone by, so that quick commands stay quiet; nothing where standard error is no terminal, and nothing beside JSON. The
variable DISCREET_PROGRESS decides otherwise: 1 writes plain lines where there is no terminal, for a log, and 0 shows
nothing anywhere.

What is told is public: stages by name, and shares of work whose amount is public or is the engine's own estimate for a
scan. How many rows there are is not among it.

Decision 530.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from discreet.cli import show

__all__ = ["VARIABLE", "Told", "waiting"]

VARIABLE = "DISCREET_PROGRESS"
AFTER = 1.0  # seconds

Told = Callable[..., None]  # told(share from 0 to 1, what is being done)


@contextmanager
def waiting(doing: str, *, silent: bool = False) -> Iterator[Told | None]:
    """What work may call with a share from 0 to 1 and the name of a stage; none where nobody is to be told."""
    asked = os.environ.get(VARIABLE)
    if silent or asked == "0":
        yield None
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with _bar(doing) as told:
            yield told
    else:
        yield _lines(doing) if asked == "1" else None


@contextmanager
def _bar(doing: str) -> Iterator[Told]:
    """A line that moves, and is gone when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20), TaskProgressColumn())
    shown = Progress(
        *columns,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,  # a library that is imported meanwhile may keep the stream that it sees
        redirect_stderr=False,
    )
    task = shown.add_task(doing, total=None)  # without a share it says that work goes on

    def tell(share: float, stage: str = doing) -> None:
        shown.update(task, total=1.0, completed=min(share, 0.999), description=show.clean(stage))  # at 1 time stops

    begin = threading.Timer(AFTER, shown.start)
    begin.daemon = True
    begin.start()
    try:
        yield tell
    finally:
        begin.cancel()
        begin.join()
        if shown.live.is_started:
            shown.stop()


def _lines(doing: str) -> Told:
    """A line for each stage, and for each tenth of it."""
    print(doing, file=sys.stderr, flush=True)
    last = ("", -1)

    def tell(share: float, stage: str = doing) -> None:
        nonlocal last
        now = (stage, int(10 * share))
        if now != last:
            last = now
            print(f"{show.clean(stage)}: {10 * now[1]} %", file=sys.stderr, flush=True)

    return tell
