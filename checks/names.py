"""How the code is named: ``python -m checks.names [--list]``.

A function is a verb in the imperative or the noun it returns. One that is named by a participle alone (``told``,
``_taken_out``) says neither; ``clipped_sum`` is a noun, and properties are values, so neither counts. A class name is
to mean one thing: names that several classes share are printed with their files.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "discreet"
IRREGULAR = frozenset(
    {
        "begun",
        "borne",
        "bought",
        "broken",
        "brought",
        "built",
        "caught",
        "chosen",
        "done",
        "drawn",
        "driven",
        "felt",
        "found",
        "frozen",
        "given",
        "gone",
        "grown",
        "held",
        "hidden",
        "hushed",
        "kept",
        "known",
        "learnt",
        "left",
        "lost",
        "made",
        "meant",
        "met",
        "paid",
        "risen",
        "said",
        "seen",
        "sent",
        "shown",
        "sold",
        "spent",
        "spoken",
        "stolen",
        "taken",
        "taught",
        "thought",
        "thrown",
        "told",
        "torn",
        "worn",
        "written",
    }
)
VERBS = frozenset(
    {  # that end in -ed
        "breed",
        "embed",
        "exceed",
        "feed",
        "need",
        "proceed",
        "seed",
        "shed",
        "speed",
        "succeed",
    }
)
PARTICLES = frozenset(
    {
        "apart",
        "as",
        "at",
        "away",
        "back",
        "behind",
        "by",
        "down",
        "for",
        "from",
        "in",
        "into",
        "of",
        "off",
        "on",
        "out",
        "over",
        "through",
        "to",
        "under",
        "up",
        "with",
    }
)


def is_participle(name: str) -> bool:
    """Whether a name is a participle, alone or with a particle.

    >>> [is_participle(name) for name in ("_told", "taken_out", "clipped_sum", "seed", "keep_rows")]
    [True, True, False, False, False]
    """
    first, *rest = name.strip("_").split("_")
    ends = first.endswith("ed") and len(first) > 3 and first not in VERBS
    return (first in IRREGULAR or ends) and PARTICLES.issuperset(rest)


def definitions() -> Iterator[tuple[Path, ast.AST]]:
    """Every function, method and class of the package, with its file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield path.relative_to(PACKAGE), node


def functions() -> list[str]:
    """The names of functions and methods, without properties and Python's own; each with its file and line."""
    return [
        f"{node.name} {path}:{node.lineno}"
        for path, node in definitions()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and not node.name.startswith("__")
        and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]


def participles() -> list[str]:
    """The functions among them that are named by a participle."""
    return [line for line in functions() if is_participle(line.split()[0])]


def shared_classes() -> dict[str, list[str]]:
    """The names of several classes, without those of events and the mechanisms that cost them."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path, node in definitions():
        if isinstance(node, ast.ClassDef):
            homes[node.name].append(str(path))
    several = {name: files for name, files in homes.items() if len(files) > 1}
    return {name: files for name, files in several.items() if not any(file.startswith("events/") for file in files)}


def main() -> None:
    """Print the figures, and with ``--list`` the names."""
    all_functions, named_so, shared = functions(), participles(), shared_classes()
    print(f"functions {len(all_functions):,}, named by a participle {len(named_so)}", end=" ")
    print(f"({len(named_so) / len(all_functions):.1%}, at most 5 %)")
    print(f"class names that several classes share {len(shared)} (at most 20, beside events and their mechanisms)")
    if "--list" in sys.argv[1:]:
        print(*named_so, sep="\n")
        print(*(f"{name}: {', '.join(files)}" for name, files in sorted(shared.items())), sep="\n")


if __name__ == "__main__":
    main()
