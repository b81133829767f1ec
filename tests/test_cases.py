"""What searches have found stays mended: every saved case is tried in every run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import random
from searches import _cases, properties
from tests.conftest import PROFILE


@pytest.mark.parametrize("path", _cases.saved(), ids=lambda path: path.stem)
def test_what_was_found_once_is_mended(path: Path) -> None:
    _cases.replay(path)


def test_a_case_that_was_saved_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails until it is mended."""
    search = ModuleType("searches.made_up")
    mended = False

    def check(case: dict[str, int]) -> None:
        assert mended or case["number"] < 3

    search.retry = check  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "searches.made_up", search)
    path = _cases.save("made_up", {"number": 3}, "it was 3", tmp_path)
    assert _cases.saved(tmp_path) == [path] == [_cases.save("made_up", {"number": 3}, "once more", tmp_path)]
    with pytest.raises(AssertionError):
        _cases.replay(path)
    mended = True
    _cases.replay(path)


@given(st.integers(0, 1000), st.sampled_from(["a", "b"]))
def failing(number: int, word: str) -> None:
    assert number < 500, word


def test_a_property_that_fails_is_saved_as_its_arguments(tmp_path: Path) -> None:
    """Read back from what Hypothesis prints, and called without it."""
    with pytest.raises(AssertionError) as caught:
        failing()
    arguments = properties.arguments_of("\n".join(caught.value.__notes__))
    case = {"test": "tests/test_cases.py::failing", "arguments": arguments}
    assert properties._read(case)[1] == {"number": 500, "word": "a"}
    with pytest.raises(AssertionError):
        properties.retry(case)


def test_nothing_is_drawn_by_luck() -> None:
    """The profile of the suites: the same examples every time, and no memory of other runs."""
    fixed = settings.get_profile("fixed")
    assert fixed.derandomize
    assert fixed.database is None
    assert settings().derandomize or os.environ.get(PROFILE) == "random"


def test_entropy_is_made_from_the_name_of_the_test() -> None:
    assert not random.system().reproducible
    assert random.system().word() == 16527862441980257975
