"""The library's own words are explained where a reader first meets them."""

from __future__ import annotations

import re

import pytest

from tests.documents import ROOT

WORDS = ("proved", "filter", "odometer", "head", "event", "plan")
READ_FIRST = ("index", "tutorial", "guarantee", "ledger", "report", "events")


def unexplained(text: str) -> list[str]:
    """Words whose first paragraph on a page neither sets them off nor leads to the glossary; code does not count."""
    prose = re.sub(r"^```.*?^```$|^ {4}.*$|^#.*$|`[^`\n]+`", "", text, flags=re.MULTILINE | re.DOTALL)
    prose = "\n\n".join(part for part in re.split(r"\n\s*\n", prose) if not part.lstrip().startswith("|"))
    missing = []
    for word in WORDS:
        first = next((part for part in prose.split("\n\n") if re.search(rf"\b{word}s?\b", part, re.IGNORECASE)), "")
        told = re.search(rf"\*[^*]*\b{word}s?\b[^*]*\*", first, re.IGNORECASE) or "glossary.md" in first
        if first and not told:
            missing.append(f"{word}: {first.strip()[:80]}")
    return missing


@pytest.mark.parametrize("name", READ_FIRST)
def test_a_word_is_explained_where_it_first_appears(name):
    assert unexplained((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")) == []


def test_every_word_is_in_the_glossary():
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert [word for word in WORDS if f"| {word} |" not in page] == []


def test_a_word_that_is_not_explained_is_found():
    assert unexplained("The book's odometer.\n\nAn *odometer* is a reading.") == ["odometer: The book's odometer."]
    assert unexplained("# Head\n\n```\nhead 3\n```\n\nThe *head* is a number. Keep the head.") == []
