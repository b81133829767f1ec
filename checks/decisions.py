"""The decisions, and how many of those in force no line of the package cites:
``python -m checks.decisions [--list]``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

HOOK = Path(__file__).parent.parent / "docs" / "hooks" / "decisions.py"


def load_index() -> Any:
    """The module that makes the site's index."""
    spec = importlib.util.spec_from_file_location("decisions_index", HOOK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a dataclass looks for its annotations
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Print the figures, and with ``--list`` the index."""
    hook = load_index()
    pages = hook.decisions()
    uncited = [each for each in pages if not each.cited and each.replaced_by is None]
    replaced = sum(each.replaced_by is not None for each in pages)
    print(f"decisions {len(pages)}, replaced {replaced}, in force and cited by no line of the package {len(uncited)}")
    if "--list" in sys.argv[1:]:
        print(hook.index(pages))


if __name__ == "__main__":
    main()
