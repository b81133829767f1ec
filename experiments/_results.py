"""Where experiments leave what the documentation shows: a small JSON file and a figure each, and the page that has the
table."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers import BUILD

__all__ = ["DOCS", "asked", "figure", "kept", "load", "resumed", "save", "show", "write_table"]

DOCS = Path(__file__).resolve().parent.parent / "docs"


def resumed(name: str, run: Callable[[], Any]) -> Any:
    """What the run of that name found, which is kept in ``build/``: a study that was stopped goes on where it was."""
    path = BUILD / "experiments" / f"{name}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(run()), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def save(name: str, found: Any) -> None:
    """Keep results beside the page that shows them."""
    path = DOCS / "experiments" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def load(name: str) -> Any:
    """What was kept."""
    return json.loads((DOCS / "experiments" / f"{name}.json").read_text(encoding="utf-8"))


def asked(name: str, seeds: int, quick: bool) -> tuple[list[str], int]:
    """The words after ``python -m experiments.name`` (none, where several experiments are run), and the number of
    ``--seeds``: one where it is quick, and ``seeds`` otherwise, unless it is given.
    """
    words = sys.argv[1:] if sys.argv[0].endswith(f"{name}.py") else []
    return words, int(words[words.index("--seeds") + 1]) if "--seeds" in words else 1 if quick else seeds


def kept(name: str) -> dict[str, Any]:
    """What was kept so far, by name; nothing before the first run."""
    try:
        return dict(load(name))
    except FileNotFoundError:
        return {}


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for number, name in enumerate(header):
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=max(110, Console().width)).print(table)


def write_table(name: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, mark: str = "table") -> None:
    """Put a table between the two marks that its page has for it, in place of the one before."""
    path = DOCS / "experiments" / f"{name}.md"
    before, found, rest = path.read_text(encoding="utf-8").partition(f"<!-- {mark} -->\n")
    if not found:
        raise ValueError(f"{path.name} has no mark <!-- {mark} --> for a table.")
    _, _, after = rest.partition("<!-- end -->")
    lines = [header, ["---:" if n else "---" for n in range(len(header))], *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    path.write_text(f"{before}<!-- {mark} -->\n\n{table}\n\n<!-- end -->{after}", encoding="utf-8")


@contextmanager
def figure(name: str, panels: int, width: float = 8.0, rows: int = 1) -> Iterator[list[Any]]:
    """Axes to draw on, side by side, or in so many rows; the picture goes to the documentation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = -(-panels // rows)
    drawn, axes = pyplot.subplots(rows, columns, figsize=(width, 3.4 * rows), constrained_layout=True, squeeze=False)
    for spare in axes.ravel()[panels:]:
        spare.set_axis_off()
    yield list(axes.ravel()[:panels])
    drawn.savefig(DOCS / "images" / f"{name}.png", dpi=90, metadata={"Software": None})
    pyplot.close(drawn)
