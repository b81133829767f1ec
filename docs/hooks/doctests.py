"""Examples in docstrings are shown as code: Markdown would take ``>>>`` for a quotation and ``a[0][1]`` for a link."""

from __future__ import annotations

import re
from typing import Any

import griffe

# from a line with a prompt to the next empty line
SESSION = re.compile(r"^(?P<indent> *)>>> .*?(?=\n[ \t]*\n|\Z)", re.MULTILINE | re.DOTALL)


def fenced(text: str) -> str:
    """A docstring with a fence around each session."""
    return SESSION.sub(lambda found: f"{found['indent']}```pycon\n{found[0]}\n{found['indent']}```", text)


class Doctests(griffe.Extension):
    """Puts the fences in, object by object, before the docstrings are read."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called by griffe for each object."""
        if obj.docstring and "```" not in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)
