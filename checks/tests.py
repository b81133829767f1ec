"""Which tests are about a module: ``python -m checks.tests [part of a path …]``.

Those of its own name come first, then those that import it or use a public name that it defines, the most often first;
for what nobody names, the tests of its folder's name. Without a path: how many modules have tests of their name, and
how many have none by any of these rules.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE, TESTS = ROOT / "src" / "discreet", ROOT / "tests"


def modules() -> list[Path]:
    """The modules of the package that hold code of their own."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__init__.py"]


def tests_of(module: Path) -> list[Path]:
    """The files of tests that are about a module, the nearest first."""
    wanted, dotted = _public_names(module), _dotted(module)
    near = {path: words[dotted] + sum(words[name] for name in wanted) for path, words in _words().items()}
    own = [path for path in near if path.name == name_of_tests(module)]
    named = own + sorted((path for path in near if near[path] and path not in own), key=lambda path: -near[path])
    return named or [path for path in near if path.name == name_of_tests(module.parent)]


def name_of_tests(path: Path) -> str:
    """What the file of tests of a module, or of a folder, is called if there is one."""
    return f"test_{path.stem.lstrip('_')}.py"


def _dotted(module: Path) -> str:
    return ".".join(("discreet", *module.relative_to(PACKAGE).with_suffix("").parts))


def _public_names(module: Path) -> set[str]:
    """The classes, functions and constants that a module lists, or else defines without an underscore."""
    tree = ast.parse(module.read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return set(ast.literal_eval(node.value))
    defined = (node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)))
    return {node.name for node in defined if not node.name.startswith("_")}


@cache
def _words() -> dict[Path, Counter[str]]:
    """The names that each file of tests imports or uses, with the modules that it imports from."""
    found = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        words: Counter[str] = Counter()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                words[node.module] += 1
                words.update(f"{node.module}.{name.name}" for name in node.names)
            elif isinstance(node, (ast.Name, ast.Attribute)):
                words[node.id if isinstance(node, ast.Name) else node.attr] += 1
        found[path] = words
    return found


def main() -> None:
    """Print the tests of the modules that are asked for, or the figures."""
    asked = sys.argv[1:]
    for module in (path for path in modules() if any(part in str(path.relative_to(PACKAGE)) for part in asked)):
        print(module.relative_to(PACKAGE))
        for path in tests_of(module)[:8]:
            print(f"    {path.relative_to(ROOT)}")
    if not asked:
        each = {module: tests_of(module) for module in modules()}
        own = sum(bool(tests) and tests[0].name == name_of_tests(module) for module, tests in each.items())
        none = [str(module.relative_to(PACKAGE)) for module, tests in each.items() if not tests]
        print(f"modules {len(each)}, with tests of their name {own}, without tests by these rules {len(none)}:")
        print(*none, sep="\n")


if __name__ == "__main__":
    main()
