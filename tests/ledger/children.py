"""Forked children that talk to their parent through a pipe."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable


def forked(work: Callable[[int], object]) -> tuple[int, int]:
    """Run ``work`` in a forked child, with the pipe it may write to; its number, and where to read.
    It never returns here.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            work(writer)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    return child, reader


def rest(reader: int) -> bytes:
    """What was said until the pipe closed."""
    said = b""
    while more := os.read(reader, 65536):
        said += more
    os.close(reader)
    return said


def in_child(work: Callable[[Callable[[str], None]], None], patience: int | None = None) -> list[str]:
    """What a forked child says, line by line, until it ends, or until it is killed after so many lines."""
    child, reader = forked(lambda pipe: work(lambda word: os.write(pipe, f"{word}\n".encode()) and None))
    said = b""
    if patience is not None:
        while said.count(b"\n") < patience and (more := os.read(reader, 65536)):
            said += more
        os.kill(child, signal.SIGKILL)
    said += rest(reader)
    _, status = os.waitpid(child, 0)
    assert patience is not None or status == 0, "the child failed"
    return said.decode().splitlines()
