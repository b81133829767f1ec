"""Formulas in docstrings are shown as one would type them: pages load nothing, so there is nothing that would set TeX.

``.. math::`` becomes a block of its own and ``:math:`` a word of code, with Greek letters and signs in place of TeX's
names for them: ``\\frac{\\sigma^2}{n}`` is σ²/n. What is not known keeps its name.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

BLOCK = re.compile(r"^(?P<indent> *)\.\. math::(?P<body>.*(?:\n(?P=indent) +\S.*)*)", re.MULTILINE)
ROLE = re.compile(r":math:`([^`]+)`")
TOKEN = re.compile(r"\\([A-Za-z]+|.)|([_^])|(.)", re.DOTALL)
GREEK = "alpha α beta β gamma γ delta δ epsilon ε varepsilon ε eta η theta θ kappa κ lambda λ mu μ pi π rho ρ sigma σ "
GREEK += "tau τ varphi φ omega ω Delta Δ Theta Θ Lambda Λ Pi Π Sigma Σ Phi Φ "
SIGNS = "le ≤ ge ≥ sum Σ prod Π int ∫ infty ∞ cdot · times × in ∈ leftarrow ← approx ≈ propto ∝ nabla ∇ top ᵀ ell ℓ "
SIGNS += "lVert ‖ rVert ‖ | ‖ langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ subseteq ⊆ sim ~ setminus ∖ otimes ⊗ dots … "
NAMES = dict(zip(*[iter((GREEK + SIGNS).split())] * 2, strict=True))
SPACES = {"quad": "  ", "qquad": "   ", " ": " ", ",": " ", ";": " ", "{": "{", "}": "}"}
NOTHING = {"left", "right", "big", "bigl", "bigr", "Big", "Bigl", "Bigr", "!", "textstyle"}
WORDS = {"text", "mathrm", "operatorname", "mathcal"}
TWO = {"frac", "tfrac", "binom"}
MARKS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304"}
APPLIED = TWO | WORDS | MARKS.keys() | {"sqrt", "^", "_"}
WORD = r"[\w'²³⁴ᵀ\u0302\u0303]*|."
RAISED = str.maketrans("0123456789+-T", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀ")


def argument(tex: str, at: int) -> tuple[str, int]:
    """What a command is applied to, a group in braces or one token, and where it ends."""
    while tex[at : at + 1].isspace():
        at += 1
    if tex[at : at + 1] != "{":
        end = TOKEN.match(tex, at).end() if at < len(tex) else at  # type: ignore[union-attr]
        return tex[at:end].rstrip(), end
    depth, end = 0, at
    while end < len(tex):
        depth += {"{": 1, "}": -1}.get(tex[end], 0)
        end += 1
        if not depth:
            break
    return tex[at + 1 : end - 1], end


def grouped(text: str, whole: str = r"\d+|.") -> str:
    """In brackets, unless it is a number, one sign, or what else is taken as a whole."""
    return text if re.fullmatch(whole, text) else f"({text})"


def applied(name: str, tex: str, at: int) -> tuple[str, int]:
    """What a command with arguments stands for, and where these end."""
    first, at = argument(tex, at)
    if name in TWO:
        second, at = argument(tex, at)
        if name == "binom":
            return f"({plain(first)} over {plain(second)})", at
        return f"{grouped(plain(first), WORD)}/{grouped(plain(second))}", at
    if name in WORDS:
        return first, at
    told = plain(first)
    if name in MARKS:
        return told + MARKS[name], at
    if name == "sqrt":
        return "√" + grouped(told), at
    raised = told.translate(RAISED)
    if name == "^" and re.fullmatch("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀ]+", raised):
        return raised, at
    return name + (grouped(told, WORD) if name == "_" else grouped(told)), at


def plain(tex: str) -> str:
    """TeX as a person would type it."""
    out, at = "", 0
    while at < len(tex):
        token = TOKEN.match(tex, at)
        assert token is not None
        name, letter, at = token[1] or token[2], token[3], token.end()
        if name in APPLIED:
            told, at = applied(name, tex, at)
            out += told
        elif name in NAMES:
            out += NAMES[name]
        elif name and name not in NOTHING:
            apart = name.isalpha() and tex[at : at + 1] not in " ("
            out += SPACES.get(name, name + " " * apart)
        elif letter and letter not in "{}":
            out += letter
    return re.sub(r"(?<=\S) {4,}", "   ", out)


def formulas(text: str) -> str:
    """A docstring with its formulas as blocks and words."""

    def block(found: re.Match[str]) -> str:
        indent, body = found["indent"], textwrap.dedent(found["body"]).strip()
        lines = [plain(line.strip()) for line in body.splitlines()]
        return "\n".join(indent + line for line in ("```text", *lines, "```"))

    return ROLE.sub(lambda found: f"`{plain(found[1])}`", BLOCK.sub(block, text))


class Formulas(griffe.Extension):
    """Object by object, before the docstrings are read."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called by griffe for each object."""
        if obj.docstring and "math:" in obj.docstring.value:
            obj.docstring.value = formulas(obj.docstring.value)
