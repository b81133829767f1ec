"""The site's navigation: pages appear by being there, so that no room edits a list that another room edits too.

``folder/*`` in ``mkdocs.yml`` stands for every page of that folder, by name, ``index.md`` first. A page named there
that is not written yet keeps its place and is left out, and so is a heading with nothing under it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Called by mkdocs before it reads the navigation."""
    config.nav = pages(config.nav, Path(config.docs_dir))
    return config


def pages(nav: list[Any], docs: Path) -> list[Any]:
    """The entries of which there is something."""
    kept: list[Any] = []
    for entry in nav:
        title, item = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        found = pages(item, docs) if isinstance(item, list) else _there(item, docs)
        if found:
            kept += [found] if title is None else [{title: found}]
    return kept


def _there(item: str, docs: Path) -> str | list[str] | None:
    if item.endswith("/*"):
        found = sorted((docs / item).parent.glob("*.md"), key=lambda page: (page.name != "index.md", page.name))
        return [str(page.relative_to(docs)) for page in found]
    return item if (docs / item).is_file() else None
