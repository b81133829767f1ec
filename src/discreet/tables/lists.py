"""Long lists of constants in SQL, taken out of the text before it is parsed.

A parser in Python makes an object of every constant, which takes seconds for 10^5 of them. Here a list after IN that
holds constants only is replaced by one constant that stands for it. Strings, quoted names and comments are stepped over
whole.

>>> query = "SELECT COUNT(*) FROM p WHERE a IN (1, -2.5) AND b IN ('x', 'it''s') AND c IN (1)"
>>> text, lists = take_out_lists(query, least=2)
>>> lists == {"list 0 of 1\\x00": [1.0, -2.5], "list 1 of 1\\x00": ["x", "it's"]}
True
>>> text.count("list"), "IN (1)" in text
(2, True)

Decision 99.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["take_out_lists"]

LEAST = 100  # values; shorter lists are parsed like the rest

_STRING = r"'(?:[^']|'')*+'"
_CONSTANT = rf"(?:-?\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?+|{_STRING})"
_SKIPPED = rf"[eE]'(?:[^'\\]|\\.|'')*+'|{_STRING}|\"(?:[^\"]|\"\")*+\"|--[^\n]*+|/\*.*?\*/|\$\$.*?\$\$"
_LIST = rf"\bIN\s*+\((?P<list>\s*+{_CONSTANT}\s*+(?:,\s*+{_CONSTANT}\s*+)*+)\)"
_TEXT = re.compile(rf"{_SKIPPED}|{_LIST}", re.IGNORECASE | re.DOTALL)
_EACH = re.compile(_CONSTANT)


def take_out_lists(query: str, least: int = LEAST) -> tuple[str, dict[str, list[Any]]]:
    """The query with a constant in place of each long list, and the lists by that constant,
    which the query does not hold.
    """
    found: dict[str, list[Any]] = {}
    ending = next(f" of {number}\0" for number in range(1, len(query) + 2) if f" of {number}\0" not in query)

    def placeholder(match: re.Match[str]) -> str:
        listed = match["list"]
        if listed is None or listed.count(",") + 1 < least:
            return match[0]
        name = f"list {len(found)}{ending}"
        values = [_value(text) for text in _EACH.findall(listed)]
        if len(values) < least:  # the commas were inside strings
            return match[0]
        found[name] = values
        return f"IN ('{name}')"

    return _TEXT.sub(placeholder, query), found


def _value(text: str) -> Any:
    return text[1:-1].replace("''", "'") if text.startswith("'") else float(text)
