"""The lectures, made again: every experiment is quick on request and stands in a page; the small ones hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from experiments import __main__ as runner
from experiments import course, four_queries, ladder, perturbations, ptr_mode, report_picture
from tests.documents import PAGES, ROOT

NAMES = [*runner.EXPERIMENTS, *runner.CHOICES]
INDEX = (ROOT / "docs" / "experiments" / "index.md").read_text(encoding="utf-8")
LESSONS = sorted((ROOT / "docs" / "course").glob("[0-9]*.md"))


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_is_quick_on_request_and_stands_in_a_page(name):
    """``main`` takes ``quick`` and looks at it; the index names the experiment, and a page shows what it found."""
    tree = ast.parse((ROOT / "experiments" / f"{name}.py").read_text(encoding="utf-8"))
    main = next(each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "main")
    assert [argument.arg for argument in main.args.args][:1] == ["quick"]
    assert any(isinstance(each, ast.Name) and each.id == "quick" for each in ast.walk(main))
    assert f"`{name}`" in INDEX
    command = re.compile(rf"python -m\s+experiments[ .]([a-z_]+ )*{name}\b|`experiments/{name}\.py`")
    assert any(command.search(page.read_text(encoding="utf-8")) for page in PAGES)


def test_every_kept_result_has_its_page_and_every_picture_is_shown():
    """Nothing is kept that nobody sees."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    kept = {path.stem for path in (ROOT / "docs" / "experiments").glob("*.json")} - {"course"}  # its pages are lessons
    assert kept <= {path.stem for path in (ROOT / "docs" / "experiments").glob("*.md")}
    assert [path.name for path in (ROOT / "docs" / "images").iterdir() if f"images/{path.name}" not in text] == []


def test_every_picture_is_made_by_a_command():
    """An experiment names it, or a page names the benchmark; the frontier is what a command of docs/cli.md writes."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "experiments").glob("*.py"))
    made = {"frontier", *re.findall(r"figure\(\s*\"([\w-]+)\"", sources), *re.findall(r"([\w-]+)\.png", sources)}
    made |= {f"course-{name}" for name in re.findall(r"draw\(\s*\"(\w+)\"", sources)}
    made |= {f"pate-digits-{epsilon}" for epsilon in (1, 10)} | {"evolution-digits-1"}
    made |= {f"desk-{name}" for name in re.findall(r"\(\"\w+\", \"([\w-]+)\", \"/", sources)}
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    made |= set(re.findall(r"python -m benchmarks\.[^`]* docs/images/(\w+)\.png`", pages))
    assert [path.name for path in (ROOT / "docs" / "images").iterdir() if path.stem not in made] == []


def test_a_picture_needs_a_page(tmp_path, monkeypatch):
    """It says what is missing: first a browser, then the page."""
    for browser, told in ((None, "Chromium"), ("/bin/true", "make quickstart")):
        monkeypatch.setattr(report_picture.shutil, "which", lambda name, browser=browser: browser)
        with pytest.raises(SystemExit, match=told):
            report_picture.picture(tmp_path / "page.html", tmp_path / "page.png")


@pytest.mark.parametrize("page", LESSONS, ids=lambda page: page.stem)
def test_every_lesson_has_a_question_a_theorem_code_a_figure_and_exercises_with_answers(page: Path):
    """The question comes before the theorem, and each exercise has its folded answer."""
    text = page.read_text(encoding="utf-8")
    for part in (r"^## A question\n(?s:.*)\*\*(Theorem|Definition)", r"^```python$", r"^!\[[^]]+\]\(\.\./images/"):
        assert re.search(part, text, re.MULTILINE), part
    exercises = text.partition("\n## Exercises\n")[2]
    asked, answered = (
        re.findall(r"^\*\*\d\.\*\* ", exercises, re.MULTILINE),
        exercises.count("<summary>Answer</summary>"),
    )
    assert len(asked) == answered == exercises.count("\n</details>") >= 3
    assert 600 <= len(text.split()) <= 1200


def test_the_course_lists_every_lesson():
    index = (ROOT / "docs" / "course" / "index.md").read_text(encoding="utf-8")
    assert [lesson.name for lesson in LESSONS if index.count(f"({lesson.name})") < 2] == []


def test_an_unknown_experiment_is_refused_by_name():
    with pytest.raises(SystemExit, match="no experiment 'means3'"):
        runner.main(["means3", "--quick"])


@pytest.mark.parametrize("words", [["ladder"], ["course", "--quick"]], ids=" ".join)
def test_the_documentation_changes_only_where_that_is_asked_for(words, monkeypatch, capsys, tmp_path):
    """Results and pictures go to the folder of builds, and their paths are printed."""
    monkeypatch.setattr(ladder._results, "BUILD", tmp_path)
    monkeypatch.setattr(ladder._results, "DOCS", tmp_path / "docs")
    runner.main(words)
    printed = capsys.readouterr().out
    pictures = list(tmp_path.rglob("*.png"))
    assert pictures
    assert all(f"wrote {picture}" in printed for picture in pictures)
    assert not (tmp_path / "docs").exists()


def test_help_says_what_an_experiment_does_and_what_it_takes(capsys):
    with pytest.raises(SystemExit) as stopped:
        runner.main(["--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("--quick", "--write", *runner.EXPERIMENTS))
    with pytest.raises(SystemExit, match="contradict"):
        runner.main(["ladder", "--quick", "--write"])


def test_four_queries_have_the_lectures_errors():
    """128, 32, 12; what is measured is within five standard errors (one false alarm in a million); to know that no
    count is negative never hurts.
    """
    found = {each["way"]: each for each in four_queries.results(150) if each["epsilon"] == 0.1}
    for way, told in {"a quarter of ε each": 128, "all at once": 32, "four disjoint cells": 12}.items():
        assert found[way]["promised"] == pytest.approx(told, rel=0.01)
        assert abs(found[way]["measured"] - told) < 5 * found[way]["error"]
    for way in four_queries.STRATEGIES:
        assert found[f"{way}, none negative"]["measured"] < found[way]["measured"]


def test_ptrs_lead_does_not_depend_on_the_domain_and_the_histograms_does():
    ptr, histogram = (
        [ptr_mode.lead_needed(ptr_mode.ANSWERS[name], k, 60) for k in (2, 1000)]
        for name in ("PTR, δ = 1e-6", "noisy histogram")
    )
    assert ptr[0] == ptr[1] > histogram[1] > histogram[0] + 3


def test_noise_in_the_output_costs_most_where_the_loss_is_steep(monkeypatch):
    """On made-up rows with one steep direction: output's share of the loss there is far above the objective's."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 8)) * np.array([1.0, *[0.05] * 7])
    x /= np.linalg.norm(x, axis=1).max() * (1 + 1e-12)
    y = (x[:, 0] + rng.logistic(size=3000) > 0).astype(int)
    monkeypatch.setattr(perturbations, "adult_features", lambda: (x, y, x, y))
    monkeypatch.setattr(perturbations, "STEEP", 1)
    monkeypatch.setattr(perturbations, "SOLVERS", {"output": {}, "objective": {}})
    rows = perturbations.shares(perturbations.by_axis(6))
    steep = {name: float(first) / (float(first) + float(others)) for name, *_, first, others in rows}
    assert steep["output"] > 3 * steep["objective"]


def test_the_courses_figures_show_what_the_lessons_say():
    """The pair (ε, δ) says least; Gauss overtakes Laplace; the square root beats the tree, and it the rest."""
    curves = course.tradeoffs(np.array([0.01, 0.1]))
    pair = curves.pop("anything (1, 1e-5)-private")
    assert all(np.all(np.asarray(values) <= np.asarray(pair) + 1e-9) for values in curves.values())
    noise = course.noises((1, 100))
    assert noise["Laplace, δ = 0"][0] < noise["Gauss, δ = 1e-6"][0]
    assert noise["Laplace, δ = 0"][1] > 3 * noise["Gauss, δ = 1e-6"][1]
    (alone,), (tree,), (root,) = course.sums((256,)).values()
    assert root < tree < alone / 2
