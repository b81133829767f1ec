"""The documents tell the truth: what they show runs, and prints what they say."""

from __future__ import annotations

import importlib.util
import re
from itertools import pairwise
from pathlib import Path

import pytest
import typer

import discreet as dp
from discreet import cli
from tests import documents
from tests.documents import PAGES, ROOT


@pytest.fixture(autouse=True)
def _a_terminal_of_known_width(monkeypatch, tmp_path):
    """Tables wrap at the width of the terminal; files that an example writes go to a place of their own."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_is_what_happens(page):
    """Every block of Python and every session of the command line."""
    documents.run(page)


def test_the_readme_has_a_short_session():
    """One session of at most ten lines, with its output."""
    sessions = [block for block in documents.blocks(ROOT / "README.md") if ">>>" in block.body]
    assert len(sessions) == 1
    assert len(sessions[0].body.splitlines()) <= 10


def test_a_wrong_output_in_a_page_is_found(tmp_path):
    """The checker has power: each kind of block fails when its output is not what the page says."""
    wrong = [
        "```python\n>>> 1 + 1\n3\n```",
        "```python\nprint(2)\n```\n\n```text\n3\n```",
        "```console\n$ discreet epsilon --delta 2 'gaussian(1)'\nepsilon = 1\n```",
    ]
    for number, text in enumerate(wrong):
        page = tmp_path / f"{number}.md"
        page.write_text(text + "\n")
        with pytest.raises(AssertionError):
            documents.run(page)


# --- pages are found
# ---------------------------------------------------------------------------------------------------


def site_pages(nav: list, docs: Path) -> list:
    """What the site's own hook makes of a navigation."""
    found = importlib.util.spec_from_file_location("nav", ROOT / "docs" / "hooks" / "nav.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.pages(nav, docs)


def test_a_page_appears_when_it_is_written(tmp_path):
    """A place without a page, and a heading with no page under it, are left out; a folder lists its own pages."""
    nav = ["index.md", {"Data": [{"Synthetic": "synthesis.md"}]}, {"Decisions": "decisions/*"}, {"Course": "course/*"}]
    (tmp_path / "decisions").mkdir()
    for name in ("index.md", "decisions/0002-b.md", "decisions/index.md", "decisions/0001-a.md"):
        (tmp_path / name).touch()
    decisions = {"Decisions": ["decisions/index.md", "decisions/0001-a.md", "decisions/0002-b.md"]}
    assert site_pages(nav, tmp_path) == ["index.md", decisions]
    (tmp_path / "synthesis.md").touch()
    assert site_pages(nav, tmp_path) == ["index.md", {"Data": [{"Synthetic": "synthesis.md"}]}, decisions]


def test_every_room_has_a_reference_page():
    """docs/reference/<room>.md is enough: the navigation lists the folder."""
    rooms = [name for name in dir(dp) if (ROOT / "src" / "discreet" / name).is_dir()]
    assert len(rooms) >= 13
    assert [room for room in rooms if not (ROOT / "docs" / "reference" / f"{room}.md").is_file()] == []


def test_every_decision_has_a_number_of_its_own():
    """In its name and in its title; from 200 on, inside a range that the index gives to a room."""
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    assert len(set(numbers)) == len(numbers) > 60
    assert [int(page.read_text()[2:].split(".")[0]) for page in pages] == numbers
    index = (ROOT / "docs" / "decisions" / "index.md").read_text()
    ranges = [
        range(int(low), int(high) + 1) for low, high in re.findall(r"^\| (\d{4}) \| (\d{4}) \|", index, re.MULTILINE)
    ]
    assert all(before.stop == after.start for before, after in pairwise(ranges))
    assert [number for number in numbers if number >= 200 and not any(number in held for held in ranges)] == []


# --- the command line is documented ------------------------------------------------------------------------------


def commands(command: object, path: tuple[str, ...]) -> list[tuple[str, object]]:
    """Every leaf of the command tree with its full name."""
    children = getattr(command, "commands", None)
    if children is None:
        return [(" ".join(path), command)]
    return [found for name, child in children.items() for found in commands(child, (*path, name))]


COMMANDS = commands(typer.main.get_command(cli.app()), ("discreet",))


def section(name: str) -> str:
    """The part of the documentation under the heading that names a command, or the page that is named after it."""
    for page in PAGES:
        found = re.search(rf"^(#+) `?{name}`?$(.*?)(?=^#{{1,3}} |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
        if found:
            return found[2]
    page = ROOT / "docs" / f"{name.split()[-1]}.md"
    return page.read_text() if page.exists() and f"`{name}" in page.read_text() else ""


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_every_command_and_option_is_documented(name, command):
    """A heading for each command, and each of its options under it, by its full name."""
    text = section(name)
    assert text, f"no page has a heading for `{name}`"
    for parameter in command.params:
        for option in parameter.opts:
            if option.startswith("--") and option != "--help":
                assert f"`{option}" in text, f"`{name}` does not document {option}"
    assert command.help, f"`{name}` has no help text"


def test_every_parameter_has_a_help_text():
    """--help says something about each option."""
    for name, command in COMMANDS:
        for parameter in command.params:
            if parameter.name != "help":
                assert parameter.help, f"{parameter.name} of `{name}` has no help text"


def test_the_glossary_is_the_reports():
    """One list of words, in both places."""
    from discreet.reporting.words import GLOSSARY

    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert [f"| {word} | {meaning} |" in page for word, meaning in GLOSSARY.items()] == [True] * len(GLOSSARY)
