"""State has one owner: how often an object writes another's fields.

``python -m checks.writes [folder]`` lists every assignment to an attribute of something other than ``self`` or ``cls``
below a folder of the package (``training`` unless another is named), and their number. Objects of other packages that
are set up as their own users do it (a gradient, a hook's context, a trainer's arguments, an optimiser's methods) are
not counted, nor a public property, nor what a function does to a function.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import discreet

PACKAGE = Path(discreet.__file__).parent
FIELDS = {"data", "grad", "receive", "__kwdefaults__", "__name__", "__class__"}
OBJECTS = {"args", "optimizer", "privacy", "reply", "run.optimizer", "source", "trainer", "wrapper"}
"""Of torch, transformers, Lightning, Flower; ``privacy.local`` is a property that users set."""


def writes(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each such assignment.

    >>> list(writes("self.x = 1\\nrun.batch = None\\nrun.a.b += 1\\np.grad = None"))
    [(2, 'run.batch'), (3, 'run.a.b')]
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        for target in targets:
            for part in ast.walk(target):
                if not isinstance(part, ast.Attribute) or not isinstance(part.ctx, ast.Store):
                    continue
                own = isinstance(part.value, ast.Name) and part.value.id in ("self", "cls")
                if not own and part.attr not in FIELDS and ast.unparse(part.value) not in OBJECTS:
                    yield node.lineno, ast.unparse(part)


def main() -> None:
    """Print them."""
    root, number = PACKAGE / (sys.argv[1] if len(sys.argv) > 1 else "training"), 0
    for path in sorted(root.rglob("*.py")):
        for line, text in writes(path.read_text()):
            number += 1
            print(f"{path.relative_to(PACKAGE)}:{line}  {text}")
    print(f"{number} writes into other objects")


if __name__ == "__main__":
    main()
