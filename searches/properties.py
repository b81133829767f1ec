"""The property tests at random: each with ``size`` examples that no run has drawn before, 200 by default.

The suite itself draws the same examples every time. What fails here is saved with its arguments as they were printed,
which the suite then replays; arguments that cannot be read back as Python are printed only, to be written down as an
``@example``.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import discreet
from searches import _cases

ROOT = Path(__file__).resolve().parent.parent
SIZE = 200
# "Falsifying example" in older versions of Hypothesis
_CALL = re.compile(r"(?:Falsifying example|Failing test case): \w+\((.*?)^\)", re.DOTALL | re.MULTILINE)


def main(size: int | None = None, seed: int = 0) -> None:
    """Run every property test; raise if one fails."""
    os.environ["DISCREET_TEST_PROFILE"] = "random"
    os.environ["DISCREET_TEST_EXAMPLES"] = str(size or SIZE)
    finds = _Finds()
    arguments = ["-q", "-p", "no:cacheprovider", "-m", "not slow", f"--hypothesis-seed={seed}", str(ROOT / "tests")]
    pytest.main(arguments, plugins=[finds])
    print(f"properties: {finds.tried} tests, seed {seed}, {len(finds.failed)} failed")
    if finds.failed or not finds.tried:
        raise AssertionError(f"failed: {', '.join(finds.failed) or 'nothing was tried'}")


class _Finds:
    """A plugin of pytest that runs property tests alone, and saves what fails."""

    def __init__(self) -> None:
        self.tried, self.failed = 0, list[str]()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if getattr(getattr(item, "obj", None), "is_hypothesis_test", False)]
        self.tried = len(items)

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        if call.when != "call" or call.excinfo is None or call.excinfo.typename == "Skipped":
            return
        self.failed.append(item.nodeid)
        printed = "\n".join(getattr(call.excinfo.value, "__notes__", []))
        case = {"test": item.nodeid.split("[")[0], "arguments": arguments_of(printed)}
        try:
            _read(case)
        except Exception:
            print(f"{item.nodeid}: write this down as an @example:\n{printed}", flush=True)
        else:
            _cases.save("properties", case, f"{call.excinfo.typename}: {call.excinfo.value}")


def arguments_of(printed: str) -> str:
    """The arguments of a failing example, as Hypothesis printed them."""
    match = _CALL.search(printed)
    return "" if match is None else re.sub(r"  # or any other generated value", "", match[1]).strip()


def retry(case: dict[str, str]) -> None:
    """Call the test with the saved arguments."""
    test, arguments = _read(case)
    test(**arguments)


def _read(case: dict[str, str]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function inside a property test, and its arguments, in the words of its own module and of the events."""
    file, name = case["test"].split("::")
    spec = importlib.util.spec_from_file_location("discreet_case", ROOT / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    words = vars(discreet.events) | vars(module) | {"inf": float("inf"), "nan": float("nan")}
    arguments = eval(f"dict({case['arguments']})", words)  # a file of this repository
    return getattr(module, name).hypothesis.inner_test, arguments
