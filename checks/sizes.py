"""How much is written, and how much of it twice: ``python -m checks.sizes [room …]``.

A line a room: its files, lines, functions and classes; the lines of written-out constructors (``__init__`` with its
signature and what it stores) and of signatures of eight keywords or more, which is where parameters are repeated.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "discreet"
MANY = 8  # keywords


def nodes(folder: Path) -> Iterator[ast.AST]:
    """Everything that is written below a folder."""
    for file in folder.rglob("*.py"):
        yield from ast.walk(ast.parse(file.read_text("utf-8")))


def figures(folder: Path) -> tuple[int, int, int, int, int, int]:
    """Files, lines, functions, classes, lines of constructors, lines of long signatures."""
    files = list(folder.rglob("*.py"))
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in files)
    functions = classes = constructors = signatures = 0
    for node in nodes(folder):
        classes += isinstance(node, ast.ClassDef)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions += 1
            if len(node.args.kwonlyargs) >= MANY or (node.name == "__init__" and len(node.args.kwonlyargs) >= MANY - 2):
                signatures += node.body[0].lineno - node.lineno
                constructors += (node.end_lineno or 0) - node.lineno + 1 if node.name == "__init__" else 0
    return len(files), lines, functions, classes, constructors, signatures


def main() -> None:
    """Print them."""
    rooms = sys.argv[1:] or sorted(folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").is_file())
    print(f"{'':12}{'files':>7}{'lines':>8}{'functions':>11}{'classes':>9}{'constructors':>14}{'signatures':>12}")
    for room in rooms:
        files, lines, functions, classes, constructors, signatures = figures(PACKAGE / room)
        print(f"{room:12}{files:7}{lines:8}{functions:11}{classes:9}{constructors:14}{signatures:12}")


if __name__ == "__main__":
    main()
