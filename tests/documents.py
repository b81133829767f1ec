"""Runs what the documents show: Python blocks and command-line sessions, each compared with the output printed there.

A ``python`` block with prompts is a doctest. One without is run, and what it prints must be the ``text`` block that
follows at once, if there is one. A ``console`` block is a session of ``$ discreet ...`` lines, each followed by its
output. The blocks of a page share their names, in order. A fence written as ``{ .python }`` in braces is for reading
only.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from discreet import cli

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])

FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Block:
    language: str
    body: str
    line: int
    output: str | None = None  # of a python block that a text block follows at once


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page that can be run."""
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    for number, match in enumerate(found):
        after = found[number + 1] if number + 1 < len(found) else None
        follows = after is not None and after["language"] == "text" and not text[match.end() : after.start()].strip()
        yield Block(
            match["language"],
            match["body"],
            text.count("\n", 0, match.start()) + 1,
            after["body"] if follows and after else None,
        )


def run(page: Path) -> None:
    """Run every block of a page; an AssertionError names the line whose output is not what the page says."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python":
            prompts(block, page, names) if ">>>" in block.body else script(block, page, names)
        elif block.language == "console":
            session(block, page)


def prompts(block: Block, page: Path, names: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(block.body, names, page.name, str(page), block.line)
    report = io.StringIO()
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.write, clear_globs=False)
    names.update(test.globs)
    assert not report.getvalue(), report.getvalue()


def script(block: Block, page: Path, names: dict[str, object]) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.body, f"{page.name}:{block.line}", "exec"), names)
    if block.output is not None:
        assert same(printed.getvalue(), block.output), f"{page.name}:{block.line} prints\n{printed.getvalue()}"


def session(block: Block, page: Path) -> None:
    for step in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, expected = step.partition("\n")
        printed = command_output(shlex.split(command)[1:])
        assert same(printed, expected), f"{page.name}:{block.line}: {command} prints\n{printed}"


def command_output(arguments: list[str]) -> str:
    """What ``discreet`` prints on both streams."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), contextlib.suppress(SystemExit):
        cli.main(arguments)
    return printed.getvalue()


def same(printed: str, expected: str) -> bool:
    """Line by line; three dots in a page stand for anything, such as noise."""
    got, want = ("\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n" for text in (printed, expected))
    return doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)
