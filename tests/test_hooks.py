"""What the site makes of docstrings."""

from __future__ import annotations

import importlib.util

import pytest

from tests.documents import ROOT

pytest.importorskip("griffe", reason="make docs installs it")


def hook(name):
    found = importlib.util.spec_from_file_location(name, ROOT / "docs" / "hooks" / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("tex", "told"),
    [
        (r"\delta(\epsilon) = \Phi\!\left(\tfrac{\mu}{2} - \tfrac{\epsilon}{\mu}\right)", "δ(ε) = Φ(μ/2 - ε/μ)"),
        (r"\frac{\sigma^2}{n} + \frac{\sigma^4}{16\tau^2}", "σ²/n + σ⁴/(16τ²)"),
        (r"\sqrt{2\ln(1/\delta')\sum_i\epsilon_i^2}", "√(2ln(1/δ')Σ_iε_i²)"),
        (r"e^{mcP}, e^{\epsilon}, x_{ij}, \hat\mu", "e^(mcP), e^ε, x_ij, μ\u0302"),
        (r"\log\frac{\alpha-1}{\alpha}", "log (α-1)/α"),
        (r"\binom{k}{i} \le \text{clients a round}", "(k over i) ≤ clients a round"),
        (r"\unknown{x}", "unknown x"),
    ],
)
def test_a_formula_is_shown_as_one_would_type_it(tex, told):
    assert hook("formulas").plain(tex) == told


def test_blocks_and_words_leave_the_rest_of_a_docstring():
    text = "A bound.\n\n    .. math:: a \\le\n        b\n\n    Holds for :math:`\\alpha > 1`.\n"
    assert (
        hook("formulas").formulas(text)
        == "A bound.\n\n    ```text\n    a ≤\n    b\n    ```\n\n    Holds for `α > 1`.\n"
    )


def test_no_formula_of_the_library_keeps_tex():
    """Every docstring's: neither a backslash nor a brace is left."""
    module = hook("formulas")
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found = [match["body"] for match in module.BLOCK.finditer(text)] + module.ROLE.findall(text)
        for tex in found:
            assert not set("\\{}") & set(module.plain(tex.strip())), (path.name, tex)


def test_parameters_become_a_list_and_code_stays():
    text = "Facts:\n\n    epsilon, delta:\n        The budget;\n        both.\n    size:\n        Public.\n\n"
    text += "    Guarantee: its event.\n"
    told = "Facts:\n\n    - `epsilon`, `delta`: The budget; both.\n    - `size`: Public.\n\n    Guarantee: its event.\n"
    assert hook("terms").listed(text) == told
    for other in (">>> for x in y:\n...     print(x)\n", "Args:\n    x: A number.\n"):
        assert hook("terms").listed(other) == other
