"""The figures of the README are those that the experiments left, and those that the guides show."""

from __future__ import annotations

import importlib
import json
import re
from statistics import fmean
from typing import Any

import pytest

from tests.documents import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = ROOT / "docs"


def row(start: str) -> str:
    """The line of a table in the README that begins so."""
    return next(line for line in README.splitlines() if line.startswith(f"| {start}"))


def kept(name: str) -> Any:
    return json.loads((DOCS / "experiments" / f"{name}.json").read_text(encoding="utf-8"))


def test_mnist() -> None:
    found = kept("accuracy")
    told = ", ".join(f"{100 * fmean(found[epsilon]['accuracies']):.1f} %" for epsilon in ("0.5", "1", "2.93"))
    assert told in row("MNIST")


def test_a_synthetic_adult() -> None:
    stored = json.loads((ROOT / "benchmarks" / "synthesis_results.json").read_text(encoding="utf-8"))
    means = [
        fmean(e["error"] for e in stored if e["method"] == "discreet-residual" and e["epsilon"] == epsilon)
        for epsilon in (0.1, 1.0, 10.0)
    ]
    assert ", ".join(f"{mean:.3f}" for mean in means) in row("a synthetic Adult")
    assert all(f"{mean:.4f}" in (DOCS / "synthesis.md").read_text(encoding="utf-8") for mean in means)


def test_a_network_on_adult_and_text() -> None:
    adult, text = kept("adult_network"), kept("shakespeare")
    assert f"{100 * fmean(adult['network']):.1f} %" in row("Adult, a small network")
    bits = [text[name]["2"][0] for name in ("banded 4, cyclic Poisson", "independent, Poisson")]
    assert all(f"{value:.2f}" in row("tinyshakespeare") for value in bits)


@pytest.mark.parametrize(
    ("page", "figure"),
    [
        ("docs/estimators.md", "83.4 % / 0.877"),
        ("docs/estimators.md", "85.3 % / 0.904"),
        ("docs/linear.md", "| 100,000 × 50 | 0.11 | 0.13 | 1.2 |"),
    ],
)
def test_the_guides_have_the_same(page: str, figure: str) -> None:
    numbers = re.findall(r"\d+\.\d+", figure)
    assert figure in (ROOT / page).read_text(encoding="utf-8")
    assert numbers[-1] in README


@pytest.mark.parametrize("study", ["estimators", "classification"])
def test_the_table_of_a_study_shows_what_was_kept(study: str) -> None:
    page = (DOCS / "experiments" / f"{study}.md").read_text(encoding="utf-8")
    rows = importlib.import_module(f"experiments.{study}").rows(kept(study))
    shown = [line for line in page.splitlines() if line.startswith("| ")][2:]
    assert shown == ["| " + " | ".join(row) + " |" for row in rows]


def test_no_default_classifier_is_half_a_point_behind() -> None:
    rows = importlib.import_module("experiments.classification").rows(kept("classification"))
    assert len(rows) == 15
    assert max(float(row[-1]) for row in rows) <= 0.5


def test_the_found_at_most_table_is_computed() -> None:
    import discreet as dp

    told = re.search(r"\| found, at most \|(.*)\|", README)
    assert told is not None
    epsilons = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0)
    shares = [dp.guarantee(dp.events.ApproxDP(epsilon=e, delta=1e-6)).tpr_at(0.01) for e in epsilons]
    for text, share in zip(told[1].split("|")[1:], shares, strict=True):
        assert 0 <= float(text.strip().removesuffix(" %")) - 100 * share < 0.11  # rounded up to a tenth
