"""Parameters that a docstring explains one by one are shown as a list: Markdown would make one paragraph of them."""

from __future__ import annotations

import re
from typing import Any

import griffe

# "epsilon, delta:" on a line of its own, and what is said of it in the lines below, further in
TERM = re.compile(
    r"^(?P<indent> *)(?P<name>[a-z_]\w*(?:, [a-z_]\w*)*):\n(?P<said>(?:(?P=indent) {4}\S.*(?:\n|\Z))+)", re.MULTILINE
)


def listed(text: str) -> str:
    """A docstring with an item for each such term."""

    def item(found: re.Match[str]) -> str:
        names = ", ".join(f"`{name}`" for name in found["name"].split(", "))
        said = " ".join(line.strip() for line in found["said"].splitlines())
        return f"{found['indent']}- {names}: {said}\n"

    return TERM.sub(item, text)


class Terms(griffe.Extension):
    """Object by object, before the docstrings are read."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called by griffe for each object."""
        if obj.docstring:
            obj.docstring.value = listed(obj.docstring.value)
