"""What the site makes of docstrings."""

from __future__ import annotations

import importlib.util
from xml.etree import ElementTree

import pytest

from tests.documents import ROOT

pytest.importorskip("griffe", reason="make docs installs it")


def hook(name):
    found = importlib.util.spec_from_file_location(name, ROOT / "docs" / "hooks" / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def formulas():
    pytest.importorskip("latex2mathml", reason="make docs installs it")
    return hook("formulas")


def shown(mathml):
    """What a page shows of a formula, as text."""
    return "".join(ElementTree.fromstring(mathml).itertext())


@pytest.mark.parametrize(
    ("tex", "parts", "text"),
    [
        (r"\frac{\sigma^2}{n}", {"mfrac", "msup"}, "σ2n"),
        (r"\sqrt{2\ln(1/\delta')\sum_i\epsilon_i^2}", {"msqrt", "msubsup"}, None),
        (r"\delta(\epsilon) = \Phi\!\left(\tfrac{\mu}{2}\right)", {"mfrac"}, "δ(ϵ)=Φ(μ2)"),
        (r"\lVert x \rVert \le \text{clients a round}", {"mtext"}, None),
    ],
)
def test_a_formula_is_set_by_the_browser(tex, parts, text):
    """Fractions, powers and roots are elements of MathML, and no name of TeX is left."""
    mathml = formulas().mathml(tex, "block")
    assert {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(mathml).iter()} >= parts
    assert text is None or "".join(shown(mathml).split()) == text
    assert "http" not in mathml.replace("http://www.w3.org/1998/Math/MathML", "")


def test_a_prime_is_seen():
    """It stands beside its letter at full size: as a power, its raised glyph would be raised once more."""
    mathml = formulas().mathml(r"D' \neq e^{\epsilon'}", "inline")
    assert "".join(shown(mathml).split()) == "D′≠eϵ′"
    assert mathml.count("&#x02032;</mo>") == 2
    assert mathml.count("<msup>") == 1  # that of e


def test_a_command_without_a_sign_stops_the_build():
    with pytest.raises(ValueError, match="cannot be set"):
        formulas().mathml(r"\unknown{x}", "block")


def test_blocks_and_words_leave_the_rest_of_a_docstring():
    text = "A bound.\n\n    .. math:: a \\le\n        b\n\n    Holds for :math:`\\alpha > 1`.\n"
    bound, blank, block, again, sentence = formulas().formulas(text).splitlines()
    assert (bound, blank, again) == ("A bound.", "", "")
    assert block.startswith('    <div class="formula"><math ')
    assert sentence.startswith('    Holds for <span class="formula"><math ')
    assert sentence.endswith("</math></span>.")


def test_a_page_may_have_formulas_too():
    page = formulas().on_page_markdown("Then\n\n```math\n\\frac{a}{b}\n```\n\nholds.\n")
    assert "<mfrac>" in page
    assert "```" not in page


def test_a_sentence_of_a_page_may_have_formulas_and_code_keeps_its_dollars():
    text = "Noise $\\sigma = 2$ and `$HOME`, `a$b`.\n\n```console\n$ discreet data $1\n```\n\nIt costs $5 or 6 $.\n"
    page = formulas().on_page_markdown(text)
    assert page.count("<math ") == 1
    assert "".join(shown(page[page.index("<math ") : page.index("</span>")]).split()) == "σ=2"
    assert text.partition(" and ")[2] == page.partition(" and ")[2]


def test_every_formula_of_the_pages_can_be_set():
    pages = {page: page.read_text("utf-8") for page in (ROOT / "docs").glob("**/*.md")}
    assert sum(formulas().on_page_markdown(text).count("<math ") for text in pages.values()) >= 100


def test_markdown_leaves_formulas_as_they_are():
    markdown = pytest.importorskip("markdown")
    text = formulas().formulas(".. math:: a * b * c_1 d_2\n\n:math:`x * y * z` begins a line.\n")
    page = markdown.markdown(text)
    assert "<em>" not in page
    assert page.count("<math ") == page.count("</math>") == 2
    assert "<p><span" in page


def test_every_formula_of_the_library_can_be_set():
    module = formulas()
    many = 0
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for tex in [match["body"] for match in module.BLOCK.finditer(text)] + module.ROLE.findall(text):
            ElementTree.fromstring(module.mathml(tex, "block"))
            many += 1
    assert many > 50


def test_parameters_become_a_list_and_code_stays():
    text = "Facts:\n\n    epsilon, delta:\n        The budget;\n        both.\n    size:\n        Public.\n\n"
    text += "    Guarantee: its event.\n"
    told = "Facts:\n\n    - `epsilon`, `delta`: The budget; both.\n    - `size`: Public.\n\n    Guarantee: its event.\n"
    assert hook("terms").listed(text) == told
    for other in (">>> for x in y:\n...     print(x)\n", "Args:\n    x: A number.\n"):
        assert hook("terms").listed(other) == other
