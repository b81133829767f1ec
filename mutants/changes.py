"""The changes: cosmic-ray's operators, less those that cannot matter (annotations, decorators, variables)."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cosmic_ray.plugins as plugins
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_code

from mutants.rooms import ROOT

__all__ = ["Change", "sample"]

KINDS = (
    "ReplaceBinaryOperator",
    "ReplaceComparisonOperator",
    "ReplaceUnaryOperator",
    "AddNot",
    "NumberReplacer",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ZeroIterationForLoop",
)


@dataclass(frozen=True, slots=True)
class Change:
    """One mutant: an operator at one place of one file."""

    path: Path
    line: int
    operator: str
    occurrence: int

    def code(self) -> str:
        """The changed file."""
        return _changed(self.path, self.operator, self.occurrence)

    def columns_shown(self) -> tuple[str, str]:
        """The first line that differs, before and after."""
        before, after = (ROOT / self.path).read_text().splitlines(), self.code().splitlines()
        return next(((a.strip(), b.strip()) for a, b in zip(before, after, strict=False) if a != b), ("", ""))

    def compile(self) -> bool:
        """Whether the place lies in a function that numba compiles, whose lines no tracer sees."""
        nodes = ast.walk(ast.parse((ROOT / self.path).read_text()))
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        return any(node.lineno <= self.line <= (node.end_lineno or 0) and "njit" in map(_name, node.decorator_list)
                   for node in functions)  # fmt: skip

    @property
    def room(self) -> str:
        """The room its file stands in."""
        return self.path.parts[2]

    def described(self) -> dict[str, object]:
        """What a trial needs to know."""
        return {"place": str(self), "path": str(self.path), "line": self.line, "before": self.shown()[0],
                "code": self.code(), "compiled": self.compiled()}  # fmt: skip

    def __str__(self) -> str:
        before, after = self.shown()
        return f"{self.path}:{self.line}  {before}  =>  {after}"


def sample(files: list[Path], size: int, seed: int) -> list[Change]:
    """So many changes: places drawn uniformly, then one of the changes that can be made there.

    A place is drawn by a hash of the seed and of its line's text. So a draw stays what it was while the sources change
    elsewhere, and what was found of it can be checked later.
    """
    places = {place: changes for path in files for place, changes in _places(path).items()}
    chosen = sorted(places, key=lambda place: _rank(seed, *place))[:size]
    return [min(places[place], key=lambda change: _rank(seed, *place, change.operator)) for place in chosen]


def _rank(*words: object) -> bytes:
    return hashlib.sha256("\0".join(map(str, words)).encode()).digest()


@cache
def _changed(path: Path, operator: str, occurrence: int) -> str:
    changed = mutate_code((ROOT / path).read_text(), plugins.get_operator(operator)(), occurrence)
    assert changed is not None
    return str(changed)


def _name(decorator: ast.expr) -> str:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)


def _places(path: Path) -> dict[tuple[str, str, int, int], list[Change]]:
    """The changes by file, line (its text, and how many lines of that text stand above it) and column in the text."""
    skipped, lines = set(_idle_lines(path)), _told_apart((ROOT / path).read_text().splitlines())
    tree = get_ast_from_path(ROOT / path)
    nodes = [node for node in ast_nodes(tree) if node.type not in ("name", "string", "newline")]
    places: dict[tuple[str, str, int, int], list[Change]] = {}
    for name in sorted(plugins.operator_names()):
        if not name.split("/")[-1].startswith(KINDS):
            continue
        operator = plugins.get_operator(name)()
        found = ((start, node) for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, ((line, column), _) in enumerate(found):
            if (line, column) not in skipped and line not in skipped:
                text, above, margin = lines[line - 1]
                place = (path.as_posix(), text, above, column - margin)
                places.setdefault(place, []).append(Change(path, line, name, occurrence))
    return places


def _told_apart(lines: list[str]) -> list[tuple[str, int, int]]:
    """Each line's text, how many lines above have the same, and how far it is indented."""
    seen, told = Counter[str](), []
    for line in lines:
        text = line.strip()
        told.append((text, seen[text], len(line) - len(line.lstrip())))
        seen[text] += 1
    return told


def _idle_lines(path: Path) -> Iterator[int | tuple[int, int]]:
    """Places where a change does nothing: annotations, which are never evaluated, and what only type checkers read."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if annotation is not None:
                yield from (
                    (inner.lineno, column)
                    for inner in ast.walk(annotation)
                    if hasattr(inner, "lineno")
                    for column in range(annotation.col_offset, annotation.end_col_offset + 1)
                )
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
