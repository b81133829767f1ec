"""Formulas are set by the browser itself: TeX becomes MathML when the site is built, so that pages load nothing for it.

In docstrings ``.. math::`` is a formula on a line of its own and ``:math:`` one inside of a sentence; in pages a fence
``math`` is the former, and ``$...$`` outside of code the latter.
"""

from __future__ import annotations

import html
import re
import textwrap
from typing import Any

import griffe
from latex2mathml.converter import convert

BLOCK = re.compile(r"^(?P<indent> *)\.\. math::(?P<body>.*(?:\n(?P=indent) +\S.*)*)", re.MULTILINE)
ROLE = re.compile(r":math:`([^`]+)`")
FENCE = re.compile(r"^```math\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
# code first, so that a dollar sign in it stays one; a formula has no space inside of its signs
INLINE = re.compile(r"^```.*?^```$|`[^`\n]+`|(?<!\$)\$(?=\S)(?P<tex>[^$`]+?)(?<=\S)\$(?!\w)", re.MULTILINE | re.DOTALL)
# a prime that is a power is raised twice, by the formula and by its glyph, to a speck: put beside its letter instead
PRIME = re.compile(r"<msup>((?:(?!<msup>).)*?)(?:<mi>&#x02032;</mi>|<mrow><mi>&#x02032;</mi></mrow>)</msup>")
# what the converter has no sign for, in words that it has one for
NEAR = {
    r"\\arg": r"\\operatorname{arg}",
    r"\\tfrac": r"\\frac",
    r"\\[lr]Vert": r"\\|",
    r"\\[bB]ig[lr]?(?![A-Za-z])": "",
    r"\\textstyle": "",
}


def mathml(tex: str, display: str) -> str:
    """A formula as one line of MathML; one with a command that has no sign is refused."""
    for command, near in NEAR.items():
        tex = re.sub(command + "(?![A-Za-z])", near, tex)
    math: str = convert(" ".join(tex.split()), display=display)
    math = PRIME.sub(r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>', math)
    if "\\" in html.unescape(math):
        raise ValueError(f"A formula has a command that cannot be set: {tex!r}.")
    return math.replace("*", "&#42;").replace("_", "&#95;")  # which Markdown would take for emphasis


def block(tex: str) -> str:
    """A formula on a line of its own."""
    return f'<div class="formula">{mathml(tex, "block")}</div>'


def formulas(text: str) -> str:
    """A docstring with its formulas as MathML."""
    text = BLOCK.sub(lambda match: match["indent"] + block(textwrap.dedent(match["body"])), text)
    return ROLE.sub(lambda match: inline(match[1]), text)


def inline(tex: str) -> str:
    """A formula inside of a sentence; a span, because Markdown takes a line that begins with <math> for a block."""
    return f'<span class="formula">{mathml(tex, "inline")}</span>'


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for each page."""
    markdown = FENCE.sub(lambda match: f"\n{block(match['body'])}\n", markdown)
    return INLINE.sub(lambda match: inline(match["tex"]) if match["tex"] else match[0], markdown)


class Formulas(griffe.Extension):
    """Object by object, before the docstrings are read."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called by griffe for each object."""
        if obj.docstring and "math:" in obj.docstring.value:
            obj.docstring.value = formulas(obj.docstring.value)
