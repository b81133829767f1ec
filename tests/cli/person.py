"""A person at a terminal, for tests: a stream that is one, a timer that does not wait, and all commands there are."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

__all__ = ["AtOnce", "Terminal", "leaves"]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class AtOnce:
    """A timer for people who cannot wait."""

    def __init__(self, _after: float, begin: Any) -> None:
        self.start = begin

    def cancel(self) -> None:
        pass

    join = cancel


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command with its words."""
    inside = getattr(command, "commands", {})
    if not inside:
        yield " ".join(path), command
    for name, child in inside.items():
        yield from leaves(child, (*path, name))
