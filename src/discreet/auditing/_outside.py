"""What a run does beside returning a result: files, prints, warnings, connections, processes, threads.

Python reports the opening of files, sockets and processes to audit hooks (PEP 578); the hook here is set once and
listens while an operation runs. It cannot see what compiled code does without Python (a database's files), memory
that the operation shares with others, environment variables, or the time it takes.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import threading
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Traces", "difference", "leaves_new_file", "trace_effects"]

_REACHES_OUT = {
    "socket.connect",
    "socket.sendto",
    "socket.sendmsg",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.spawn",
    "os.posix_spawn",
    "os.fork",
    "os.forkpty",
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


@dataclass
class Traces:
    """What one run left behind."""

    written: set[str] = field(default_factory=set)
    reached: set[str] = field(default_factory=set)
    files: dict[str, str | None] = field(default_factory=dict)
    printed: str = ""
    warned: list[tuple[str, str]] = field(default_factory=list)
    threads: int = 0


_current: Traces | None = None
_hooked = False


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _current is None:
        return
    if event in _REACHES_OUT:
        _current.reached.add(event)
    elif event == "open" and isinstance(args[0], (str, bytes)) and _for_writing(args[1], args[2]):
        _current.written.add(os.path.abspath(os.fsdecode(args[0])))


def _for_writing(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITES)


@contextmanager
def trace_effects() -> Iterator[Traces]:
    """Keep what is done beside the result inside the block. Prints and warnings are passed on at its end."""
    global _current, _hooked
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked = True
    traces, before, alive, text = Traces(), _current, set(threading.enumerate()), io.StringIO()
    caught: list[warnings.WarningMessage] = []
    _current = traces
    try:
        with warnings.catch_warnings(record=True) as caught, redirect_stdout(text):
            yield traces
    finally:
        _current = before
        traces.printed, traces.files = text.getvalue(), {path: _digest(path) for path in traces.written}
        traces.threads = len(set(threading.enumerate()) - alive)
        traces.warned = sorted((w.category.__name__, str(w.message)) for w in caught)
        sys.stdout.write(traces.printed)
        for w in caught:
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)


def _digest(path: str) -> str | None:
    try:
        return hashlib.blake2b(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None  # gone, or not a file


def leaves_new_file(first: Traces, second: Traces) -> bool:
    """Whether the second run left a file that the first did not write: a name may tell as much as what is in it."""
    return any(second.files[path] is not None for path in second.written - first.written)


def difference(first: Traces, second: Traces, reaches: Collection[str] = ()) -> str | None:
    """What two runs did differently beside their results, or what of it nobody can compare; none if nothing.

    ``reaches`` are ways out that the caller answers for.
    """
    if reached := sorted((first.reached | second.reached) - set(reaches)):
        return f"The operation reached outside ({', '.join(reached)}): what leaves there cannot be compared."
    if any(first.files.get(path) != second.files.get(path, _digest(path)) for path in first.written | second.written):
        return "A file that the operation writes differs on the neighbour."
    if first.printed != second.printed:
        return "What the operation prints differs on the neighbour."
    if first.warned != second.warned:
        return "The warnings of the operation differ on the neighbour."
    if first.threads or second.threads:
        return "The operation leaves a thread behind, which may do anything with the data."
    return None
